"""Checks the head-end's page in a real browser. Run it by hand: it needs Chromium (Debian package ``chromium``).

    python bindings/python/tests/headend/browser_check.py                      # the checks
    python bindings/python/tests/headend/browser_check.py --pictures FOLDER    # also screenshots: light, dark, narrow …
    python bindings/python/tests/headend/browser_check.py --docs               # takes docs/images/headend.png again

The program controls Chromium through Chromium's debugging port, with aiohttp, which the head-end needs anyway.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from headend_client import Client, InBackground

from usher.testing.headend import Fault, HeadEnd

DOCS_PICTURE = Path(__file__).resolve().parents[4] / "docs" / "images" / "headend.png"
HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>\u202e'\"&"


class Page:
    """One tab of Chromium, controlled by the Chrome DevTools protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []

    async def call(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=20)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
        if message["method"] == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.complaints.append(str(params["entry"]["text"]))

    async def run(self, expression: str) -> Any:
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, expression: str, seconds: float = 10) -> None:
        """Waits until a JavaScript expression is true. Evaluates the expression a few times per second."""
        end = asyncio.get_running_loop().time() + seconds
        while not await self.run(f"Boolean({expression})"):
            if asyncio.get_running_loop().time() > end:
                shown = await self.run("document.body.innerText")
                raise TimeoutError(f"not within {seconds} s: {expression}\n{shown}\n{self.complaints}")
            await asyncio.sleep(0.05)

    async def open(self, url: str, width: int = 1440, height: int = 1000, scheme: str = "light") -> None:
        await self.look(width, height, scheme)
        await self.call("Page.navigate", url=url)
        await self.until("document.body?.dataset.link === 'live'")

    async def look(self, width: int, height: int, scheme: str) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def picture(self, file: Path) -> None:
        await asyncio.sleep(1.6)  # the page highlights new rows for a moment
        data = await self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(data["data"]))
        print(f"     {file.name} {file.stat().st_size // 1024} kB")


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Starts Chromium with one empty tab."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        sys.exit("Chromium is not on the PATH (Debian package: chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
        ]
        process = await asyncio.create_subprocess_exec(
            program, *options, "about:blank", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            line = ""
            while "DevTools listening on ws://" not in line:
                line = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
                if not line:
                    sys.exit("Chromium ended before it listened")
            host = line.split("ws://")[1].split("/")[0]
            drain = asyncio.create_task(process.stderr.read())
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://{host}/json/list") as reply:
                    (tab, *_) = [target for target in await reply.json(content_type=None) if target["type"] == "page"]
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    page = Page(socket)
                    for domain in ("Page", "Runtime", "Log"):
                        await page.call(f"{domain}.enable")
                    yield page
            drain.cancel()
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def ok(what: str) -> None:
    print(f"ok - {what}")


async def checks(page: Page) -> None:
    """Checks the behaviour that only a browser shows."""
    with HeadEnd(clock="manual", limit=2) as he:
        client = Client(he)
        await page.open(he.page_url)
        await page.until("document.querySelector('#accounts-empty')?.innerText.includes('appears here')")
        ok("the page of a head-end without requests says how to begin")

        token = client.setup(he.content_token("alice", device="tv")).token
        await page.until("document.querySelector('#sessions [data-state=active]')?.innerText.includes('alice')")
        await page.until("document.querySelectorAll('#requests .row').length === 1")
        ok("the page shows a session that is set up while it is open, and its request")

        client.setup(he.content_token(HOSTILE, HOSTILE, device=HOSTILE))
        await page.until(
            f"[...document.querySelectorAll('#sessions .name')].some(n => n.textContent === {js(HOSTILE)})"
        )
        assert await page.run("document.title") == "2 sessions · Usher head-end"
        assert await page.run("document.querySelectorAll('main img, main script').length") == 0
        ok("the page shows names with HTML in them as text")

        blocked = await page.run("try { document.body.innerHTML = '<b>x</b>'; 'parsed' } catch (error) { error.name }")
        assert blocked == "TypeError", blocked
        ok("the Content-Security-Policy forbids parsing HTML")

        await page.run("document.querySelector('#advance [data-ms=\"60000\"]').click()")
        await page.until("document.querySelector('#time').textContent.startsWith('+0:01:00')")
        await page.until(
            "[...document.querySelectorAll('#sessions .lease')].every(lease => lease.innerText.includes('60 s left'))"
        )
        client.heartbeat(token)
        await page.until("document.querySelector('#sessions').innerText.includes('120 s left')")
        await page.run("document.querySelector('#advance [data-ms=\"60000\"]').click()")
        await page.until("document.querySelector('#sessions [data-state=expired]')")
        ok("the clock's buttons move time, and the session expires")

        await page.run("document.querySelector('#kind').value = 'stall'; document.querySelector('#kind').onchange()")
        await page.run("document.querySelector('#form').requestSubmit()")
        await page.until("document.querySelector('#faults li')?.innerText.includes('stall before')")
        waiting = InBackground(client.heartbeat, he.content_token("alice"))
        await page.until(
            "!document.querySelector('#held').hidden && document.querySelector('.badge.wait')?.textContent === 'held'"
        )
        await page.run("document.querySelector('#release').click()")
        await page.until("document.querySelector('#held').hidden && document.querySelector('#requests .row.error')")
        assert (await asyncio.to_thread(waiting.result)).status == 400
        ok("the form scripts a stall, the page shows the held request, and Release releases it")

        card = "[...document.querySelectorAll('.card')].find(c => c.innerText.includes('alice'))"
        kill = f"{card}.querySelector('.foot button')"
        await page.run(f"{kill}.click()")
        assert len(he.sessions.active("alice")) == 1
        await page.run(f"{kill}.click()")
        await page.until("document.querySelector('#sessions [data-state=killed]')")
        ok("the second click on Kill, not the first, kills the sessions of an account")

        for number in range(400):
            he.sessions.set_up(account=f"home-{number % 100}", device=f"box-{number}", content_ids=("news",), limit=4)
        await page.until("document.querySelector('#sessions-count').innerText.startsWith('400 held')")
        assert await page.run("document.querySelectorAll('#sessions .row').length") == 60
        await page.run("document.querySelector('.sessions .scroll').scrollTop = 1e6")
        await page.until("document.querySelectorAll('#sessions .row').length === 120")
        took = await page.run(
            "new Promise(done => { const began = performance.now(); document.querySelector('#search').value = 'box-7';"
            " document.querySelector('#search').oninput();"
            " requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))); })"
        )
        assert await page.run("document.querySelectorAll('#sessions .row').length") == 11, "box-7 and box-70 … box-79"
        assert took < 500, took
        ok(f"a list of 400 sessions renders only the rows near the visible ones, and filters quickly ({took:.0f} ms)")
        await page.run(
            "document.querySelector('#search').value = 'nothing like it'; document.querySelector('#search').oninput()"
        )
        await page.until("document.querySelector('#sessions-empty').innerText.includes('No session matches')")
        await page.run("document.querySelector('#sessions-empty button').click()")
        await page.until("document.querySelectorAll('#sessions .row').length === 60")
        ok("if a filter matches nothing, the page says so and offers to remove the filter")

        he.stop()
        await page.until("document.body.dataset.link === 'lost' && !document.querySelector('#notice').hidden")
        assert "stopped" in await page.run("document.querySelector('#notice').innerText")
        await page.until("document.title === 'Stopped · Usher head-end'")
        assert await page.run("document.querySelector('#link-text').innerText") == "Stopped"
        he.restart(keep_table=False)
        await page.until(
            "document.body.dataset.link === 'live' && document.querySelector('#sessions').children.length === 0"
        )
        ok("the page reports that the head-end stopped, and connects again after its restart")
        await page.until("true")
        await page.call("Page.navigate", url="about:blank")
        for _ in range(100):
            if he.feed.watchers == 0:
                break
            await asyncio.sleep(0.05)
        assert he.feed.watchers == 0
        ok("after the tab leaves the page, the head-end has no watcher")
    expected = ("This document requires", "Content Security Policy", "net::ERR")
    unexpected = [text for text in page.complaints if not any(mark in text for mark in expected)]
    assert not unexpected, unexpected
    ok("the browser's console has no errors except the expected ones")


def js(text: str) -> str:
    """Converts a string to a JavaScript literal."""
    import json

    return json.dumps(text)


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
        scene(he)
        await page.picture(folder / "light.png")
        for name, width, height, scheme in (
            ("dark", 1440, 1000, "dark"),
            ("wide", 1920, 1080, "dark"),
            ("middle", 1000, 1200, "light"),
            ("narrow", 390, 2900, "light"),
        ):
            await page.look(width, height, scheme)
            await page.picture(folder / f"{name}.png")
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


async def docs(page: Page) -> None:
    """Takes the screenshot for docs/headend.md."""
    with HeadEnd(clock="manual", port=8480) as he:
        await page.open(he.page_url, 1320, 955)
        scene(he)
        await page.picture(DOCS_PICTURE)


async def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="write screenshots of the page in every form to this folder"
    )
    parser.add_argument("--docs", action="store_true", help="only take the screenshot for docs/headend.md again")
    options = parser.parse_args()
    async with browser() as page:
        if options.docs:
            await docs(page)
            return
        await checks(page)
        if options.pictures is not None:
            await pictures(page, options.pictures)


if __name__ == "__main__":
    asyncio.run(main())
