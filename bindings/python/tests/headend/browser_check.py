"""Checks the head-end's page in a real browser, and takes screenshots. It needs Chromium (Debian package ``chromium``).

    python bindings/python/tests/headend/browser_check.py                      # the checks
    python bindings/python/tests/headend/browser_check.py --axe                # also axe-core, as `make docs-check`
    python bindings/python/tests/headend/browser_check.py --pictures FOLDER    # also screenshots: light, dark …
    python bindings/python/tests/headend/browser_check.py --docs               # takes docs/images/headend*.png again

`make test` runs the same checks (test_headend_browser.py), except one that measures real time.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.resources
from pathlib import Path

from headend_client import Client, InBackground
from page_browser import Page, browser, js, run
from page_checks import CHECKS, HOSTILE, filter_ofALongList_isQuick
from page_checks_connect import show_connect

from usher.testing.headend import Fault, HeadEnd

DOCS_PICTURES = Path(__file__).resolve().parents[4] / "docs" / "images"


def scene(he: HeadEnd) -> None:
    """Plays an example with three accounts: one account is at its limit and had a refused set-up. There are heartbeats,
    an expired session, a teardown and a fault."""
    client = Client(he, timeout=20)

    def start(account: str, device: str, content: str, limit: int | None = None) -> str:
        return client.setup(he.content_token(account, content, device=device, max_sessions=limit)).token

    def license_for(account: str, content: str, device: str, session: str) -> None:
        client.license("fairplay", f"{he.content_token(account, content, device=device)},{session}", b"spc")

    nguyen = start("nguyen", "bedroom-tv", "late-show")
    he.advance(23_400)
    smith = start("smith-family", "living-room-tv", "the-crossing")
    license_for("smith-family", "the-crossing", "living-room-tv", smith)
    he.advance(18_250)
    garcia = start("garcia", "projector", "cup-final-uhd", 4)
    he.advance(40_150)
    smith = client.heartbeat(smith).token
    gone = start("garcia", "kitchen-tablet", "cup-final-uhd", 4)
    he.advance(18_700)
    garcia = client.heartbeat(garcia).token
    kids = start("smith-family", "kids-tablet", "night-garden")
    he.advance(22_340)
    client.heartbeat(nguyen)
    client.teardown(gone)
    start("garcia", "bedroom-tv", "cup-final-uhd", 4)
    start("nguyen", "bedroom-tv", "late-show")
    he.advance(18_060)
    smith = client.heartbeat(smith).token
    he.advance(18_700)
    client.heartbeat(garcia)
    he.faults.add("heartbeat", Fault.status(503, retry_after=5), account="smith-family")
    client.heartbeat(kids)
    he.advance(5_000)
    client.heartbeat(kids)
    he.advance(11_420)
    client.setup(he.content_token("smith-family", "the-crossing", device="phone-anna"))
    he.advance(16_300)
    client.heartbeat(smith)
    he.advance(7_000)
    he.faults.add("teardown", Fault.stall("after"), account="garcia")


async def pictures(page: Page, folder: Path) -> None:
    """Takes screenshots of the page in every form: light, dark, narrow and so on."""
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        await page.picture(folder / "empty.png")
        await page.run("document.querySelector('#connect-open').click()")
        scene(he)
        await page.picture(folder / "light.png")
        for name, width, height, scheme in (
            ("dark", 1440, 1000, "dark"),
            ("wide", 1920, 1080, "dark"),
            ("middle", 1000, 1200, "light"),
            ("narrow", 390, 2900, "light"),
            ("narrow-dark", 390, 2900, "dark"),
        ):
            await page.look(width, height, scheme)
            await page.picture(folder / f"{name}.png")
        await connect(page, he)
        for name, width, height, scheme in (
            ("connect", 1440, 1000, "light"),
            ("connect-dark", 1440, 1000, "dark"),
            ("connect-middle", 1000, 1200, "light"),
            ("connect-narrow", 390, 1800, "light"),
            ("connect-narrow-dark", 390, 1800, "dark"),
        ):
            await page.look(width, height, scheme)
            await page.picture(folder / f"{name}.png")
        await page.run("document.querySelector('#connect-open').click()")
        await page.look(1440, 1000, "light")
        he.faults.add("setup", Fault.stall())
        waiting = InBackground(Client(he).setup, he.content_token("garcia"))
        he.wait_held(1)
        await page.picture(folder / "held.png")
        he.stop()
        waiting.join()
        await page.until("document.body.dataset.link === 'lost'")
        await page.picture(folder / "stopped.png")
    with HeadEnd(limit=3, period_s=4) as he:
        await page.open(he.page_url, scheme="dark")
        await page.run("document.querySelector('#connect-open').click()")
        for number in range(260):
            he.sessions.set_up(account=f"home-{number % 90:03}", device=f"box-{number}", content_ids=("news",), limit=3)
        client = Client(he)
        for _ in range(3):
            client.setup(he.content_token(HOSTILE, HOSTILE, device=HOSTILE))
        he.faults.add("setup", Fault.drop(), Fault.truncate(), Fault.html_page())
        for _ in range(3):
            InBackground(client.setup, he.content_token("home-001")).join()
        await asyncio.sleep(4)
        await page.picture(folder / "many.png")
        await page.look(390, 1200, "light")
        await page.picture(folder / "many-narrow.png")


async def docs(page: Page) -> None:
    """Takes the screenshots for docs/headend.md."""
    with HeadEnd(clock="manual", port=8480) as he:
        scene(he)
        await page.open(he.page_url, 1320, 955)
        await page.picture(DOCS_PICTURES / "headend.png")
        await connect(page, he)
        await page.look(1320, 660, "light")
        await page.picture(DOCS_PICTURES / "headend-connect.png")


async def connect(page: Page, he: HeadEnd) -> None:
    """Opens the panel Connect a player, and makes a content token."""
    await show_connect(page)
    for name, value in (("account", "smith-family"), ("content", "the-crossing"), ("device", "living-room-tv")):
        await page.run(f"document.querySelector('#token-{name}').value = {js(value)}")
    await page.run("document.querySelector('#token-form').requestSubmit()")
    await page.until("document.querySelector('#token').textContent")


async def accessible(page: Page) -> None:
    """Checks with axe-core the accessibility of every state of the page, on a desktop and on a phone, light and dark.

    Raises:
        ModuleNotFoundError: the Python package ``axe-playwright-python``, which contains axe-core, is not installed.
    """
    program = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")

    async def look(what: str) -> None:
        for width, height in ((1440, 1000), (390, 844)):
            for scheme in ("light", "dark"):
                await page.look(width, height, scheme)
                await asyncio.sleep(1.6)  # the page highlights new rows for a moment, and fades after a stop
                if not await page.run("Boolean(window.axe)"):
                    await page.run(f"{program}; undefined")
                found = (await page.run("axe.run()"))["violations"]
                nodes = [f"{rule['id']}: {node['html']}" for rule in found for node in rule["nodes"]]
                assert not found, f"{what}, {width} px, {scheme}:\n" + "\n".join(nodes)
        print(f"ok - axe-core finds no fault: {what}")

    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        await look("a head-end without requests, and the panel Connect a player")
        scene(he)
        await connect(page, he)
        he.faults.add("setup", Fault.stall())
        waiting = InBackground(Client(he).setup, he.content_token("garcia"))
        he.wait_held(1)
        await page.until("!document.querySelector('#held').hidden")
        await look("sessions, errors, faults, a held request and a content token")
        for number in range(90):
            he.sessions.set_up(account=f"home-{number:03}", device="tv", content_ids=("news",), limit=1 + number % 8)
        await page.until("document.querySelectorAll('.card').length > 40")
        await look("many accounts")
        he.stop()
        waiting.join()
        await page.until("document.body.dataset.link === 'lost'")
        await look("a head-end that was stopped")


async def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="write screenshots of the page in every form to this folder"
    )
    parser.add_argument("--axe", action="store_true", help="check the accessibility with axe-core too")
    parser.add_argument("--docs", action="store_true", help="only take the screenshots for docs/headend.md again")
    options = parser.parse_args()
    async with browser() as page:
        if options.docs:
            await docs(page)
            return
        for check in (*CHECKS, filter_ofALongList_isQuick):
            await run(check, page)
            print(f"ok - {check.__name__}")
        if options.axe:
            await accessible(page)
        if options.pictures is not None:
            await pictures(page, options.pictures)


if __name__ == "__main__":
    asyncio.run(main())
