"""Checks of the box with the accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from page_browser import Page

from usher.testing.headend import HeadEnd

BOX = "document.querySelector('#accounts')"
"""JavaScript: the box that contains the cards of the accounts."""
CUT = """[...document.querySelectorAll('#accounts .card')].filter(card => {
  const box = document.querySelector('#accounts').getBoundingClientRect(), { top, bottom, height }
    = card.getBoundingClientRect();
  const seen = Math.min(bottom, box.bottom) - Math.max(top, box.top);
  return seen > 1 && seen < height - 1;
}).map(card => card.innerText)"""
"""JavaScript: the texts of the account cards of which the box shows only a part."""
WATCH = f"""window.moves = [];
for (const kind of ['wheel', 'scroll', 'scrollend']) document.addEventListener(kind, event => {{
  window.moves.push([kind, Math.round(performance.now()), event.target.id, {BOX}.scrollTop]);
}}, true);"""
"""JavaScript that records from now on in ``window.moves`` how the box scrolls. The message of a check that fails shows
this record."""
REST = f"""(async () => {{
  const frame = () => new Promise(requestAnimationFrame), top = {BOX}.scrollTop;
  for (let still = 0; still < 5; still++) {{
    await frame();
    if ({BOX}.scrollTop !== top || {CUT}.length) return null;
  }}
  return top;
}})()"""
"""JavaScript: the scroll position at which the box rests; null while the box scrolls or shows only a part of a card."""
SIZES = ((1440, 1000), (1320, 955), (1000, 1200), (390, 844), (844, 390))
SCROLLED = ((1440, 1000), (390, 844))


async def rests(page: Page, there: Callable[[float], bool]) -> None:
    """Waits until the box rests at a scroll position for which `there` is true."""
    end = asyncio.get_running_loop().time() + 20
    while (top := await page.run(REST)) is None or not there(top):
        if asyncio.get_running_loop().time() > end:
            raise TimeoutError(f"the box rests at {top} after {await page.run('JSON.stringify(window.moves)')}")


async def accounts_inEveryWindow_areNotCut(page: Page) -> None:
    """The box of the accounts shows whole cards: at first, and wherever the viewer scrolls with wheel or keys."""
    with HeadEnd(clock="manual") as he:
        for accounts in (3, 12, 40):
            for number in range(len(he.sessions.accounts()), accounts):
                limit = 1 + number % 9  # an account with more than six slots has a bar
                for device in ("tv", "tablet")[:limit]:
                    he.sessions.set_up(account=f"home-{number:03}", device=device, content_ids=("a",), limit=limit)
            await page.open(he.page_url)
            await page.until(f"document.querySelectorAll('.card').length === {accounts}")
            await page.run(WATCH)
            for width, height in SIZES:
                await page.look(width, height, "light")
                await page.until(f"{CUT}.length === 0")
                over = "[...document.querySelectorAll('.card')].filter(card => card.scrollHeight > card.clientHeight)"
                assert await page.run(f"{over}.length") == 0, "a card is too small for its content"
                room = await page.run(f"{BOX}.scrollHeight - {BOX}.clientHeight")
                if (width, height) not in SCROLLED or room == 0:
                    continue
                await page.run(f"{BOX}.scrollIntoView(); {BOX}.focus()")
                await page.wheel("#accounts", 53)  # less than half a row
                await rests(page, lambda top: top > 0)
                await page.press("End", 35)
                await rests(page, lambda top, room=room: top > room - 1)
                await page.press("ArrowUp", 38)
                await rests(page, lambda top, room=room: top < room - 1)
                await page.press("Home", 36)
                await rests(page, lambda top: top == 0)


async def open_forty(page: Page, he: HeadEnd) -> None:
    """Opens the page of a head-end that has 40 accounts."""
    for number in range(40):
        he.sessions.set_up(account=f"home-{number:03}", device="tv", content_ids=("a",), limit=2)
    await page.open(he.page_url)
    await page.until("document.querySelectorAll('.card').length === 40")


async def accounts_endOfScrollReportedLate_restOnARowAllTheSame(page: Page) -> None:
    """The browser may report late that the viewer has stopped scrolling: the box then already scrolls by itself to a
    whole row."""
    with HeadEnd(clock="manual") as he:
        await open_forty(page, he)
        await page.run(f"{WATCH}; {BOX}.addEventListener('scroll', () => {BOX}.dispatchEvent(new Event('scrollend')))")
        await page.run(f"{BOX}.scrollIntoView(); {BOX}.focus()")
        await page.wheel("#accounts", 53)
        await rests(page, lambda top: top > 0)
        await page.wheel("#accounts", -20)
        await rests(page, lambda top: top == 0)


async def accounts_byTheTabKey_showTheFocusedCardWhole(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await open_forty(page, he)
        await page.run(f"{BOX}.focus()")
        names = []
        for _ in range(80):
            await page.press("Tab", 9)
            names.append(await page.run("document.activeElement.closest('.card')?.innerText.split('\\n')[0]"))
            await page.until(f"{CUT}.length === 0")
            assert await page.run(
                "(box => (c => c.top >= box.top && c.bottom <= box.bottom)"
                "(document.activeElement.closest('.card').getBoundingClientRect()))"
                f"({BOX}.getBoundingClientRect())"
            )
        assert sorted(set(names)) == [f"home-{number:03}" for number in range(40)]
