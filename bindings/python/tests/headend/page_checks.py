"""Checks of the head-end's page that need a browser. ``test_headend_browser.py`` and ``browser_check.py`` run them.

Each check is one story with a head-end of its own. The session table and the fault script of the head-end show what the
page really did.
"""

from __future__ import annotations

import asyncio
import json

from headend_client import Client, InBackground
from page_browser import Check, Page, js, until
from page_checks_accounts import (
    accounts_byTheTabKey_showTheFocusedCardWhole,
    accounts_endOfScrollReportedLate_restOnARowAllTheSame,
    accounts_inEveryWindow_areNotCut,
)
from page_checks_connect import (
    tokenForm_makesATokenThatOpensASession,
    tokenForm_refusedByTheHeadEnd_saysWhy,
    urls_areThoseOfTheHeadEnd_andCanBeCopied,
    urls_withoutAClipboard_areSelectedAndCopied,
)

from usher.testing.headend import Fault, HeadEnd
from usher.testing.headend.network.faults import KINDS

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>\u202e'\"&"


async def emptyHeadEnd_saysHowToBegin(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        await page.until("document.querySelector('#accounts-empty')?.innerText.includes('appears here')")
        assert await page.run("!document.querySelector('#connect').hidden"), "the panel Connect a player is open"
        Client(he).setup(he.content_token("alice"))
        await page.until("document.querySelectorAll('#requests .row').length === 1")
        assert await page.run("!document.querySelector('#connect').hidden"), "it stays open"
        await page.open(he.page_url)
        assert await page.run("document.querySelector('#connect').hidden"), "after requests it is closed at first"
        assert await page.run("document.querySelector('#connect-open').ariaExpanded") == "false"
        await page.run("document.querySelector('#connect-open').click()")
        assert await page.run("document.querySelector('#connect-open').ariaExpanded") == "true"
        assert await page.run("document.querySelector('#urls').getBoundingClientRect().height > 0")


async def session_setUp_appearsWithItsRequest(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        Client(he).setup(he.content_token("alice", device="tv"))
        await page.until("document.querySelector('#sessions [data-state=active]')?.innerText.includes('alice')")
        await page.until("document.querySelectorAll('#requests .row').length === 1")


async def hostileNames_stayText(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        Client(he).setup(he.content_token(HOSTILE, HOSTILE, device=HOSTILE))
        await page.until(
            f"[...document.querySelectorAll('#sessions .name')].some(n => n.textContent === {js(HOSTILE)})"
        )
        await page.until("document.title === '1 session · Usher head-end'")
        assert await page.run("document.querySelectorAll('main img, main script').length") == 0
        blocked = await page.run("try { document.body.innerHTML = '<b>x</b>'; 'parsed' } catch (error) { error.name }")
        assert blocked == "TypeError", blocked


async def clockButtons_moveTime_andTheSessionExpires(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        client = Client(he)
        await page.open(he.page_url)
        token = client.setup(he.content_token("alice")).token
        await page.until("document.querySelectorAll('#sessions .row').length === 1")
        await page.run("document.querySelector('#advance [data-ms=\"60000\"]').click()")
        await page.until("document.querySelector('#time').textContent.startsWith('+0:01:00')")
        await page.until("document.querySelector('#sessions .lease').innerText.includes('60 s left')")
        client.heartbeat(token)
        await page.until("document.querySelector('#sessions').innerText.includes('120 s left')")
        for _ in range(2):
            await page.run("document.querySelector('#advance [data-ms=\"60000\"]').click()")
        await page.until("document.querySelector('#sessions [data-state=expired]')")


async def stall_byTheForm_isHeldUntilReleased(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        client = Client(he)
        await page.open(he.page_url)
        await page.run("document.querySelector('#kind').value = 'stall'; document.querySelector('#kind').onchange()")
        await page.run("document.querySelector('#form').requestSubmit()")
        await page.until("document.querySelector('#faults li')?.innerText.includes('stall before')")
        waiting = InBackground(client.heartbeat, he.content_token("alice"))
        await page.until(
            "!document.querySelector('#held').hidden && document.querySelector('.badge.wait')?.textContent === 'held'"
        )
        await page.until("document.title.startsWith('(1 waiting)')")
        await page.run("document.querySelector('#release').click()")
        await page.until("document.querySelector('#held').hidden && document.querySelector('#requests .row.error')")
        assert (await asyncio.to_thread(waiting.result)).status == 400


async def faultForm_everyKind_hasTheNamesOfTheApi(page: Page) -> None:
    """For each kind of fault, the page shows the body of the control endpoint and the call in Python. Both make the
    fault that the form scripts."""
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        kinds = await page.run("[...document.querySelectorAll('#kind option')].map(option => option.value)")
        assert set(kinds) == set(KINDS) - {"none", "reply", "fields"} and len(set(kinds)) == len(kinds)
        words = await page.run("[...document.querySelectorAll('#kind option')].map(option => option.text)")
        assert all(f"({kind})" in text for kind, text in zip(kinds, words, strict=True)), words
        labels = []
        for kind in kinds:
            await page.run(f"document.querySelector('#kind').value = {js(kind)}")
            await page.run("document.querySelector('#kind').onchange()")
            shown = await page.run(
                "Object.fromEntries([...document.querySelectorAll('#fault-names div')]"
                ".map(row => [...row.children].map(cell => cell.textContent)))"
            )
            made = [Fault.from_json(json.loads(shown["HTTP"])), eval(shown["Python"], {"Fault": Fault})]
            assert made[0].label == made[1].label, shown
            labels.append(made[0].label)
            await page.run("document.querySelector('#form').requestSubmit()")
            await until(lambda: he.faults.pending == len(labels), f"the form has scripted {shown}")
            assert he.faults.script()[-1].label == labels[-1]
            for name, other in shown.items():
                if name in ("toxiproxy", "WireMock"):
                    assert other == kind, shown
        assert await page.run("document.querySelector('#wrong').hidden")


async def faultForm_changedArgument_changesTheNamesShown(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        await page.run("document.querySelector('#kind').value = 'delay'; document.querySelector('#kind').onchange()")
        await page.run("document.querySelector('#fields [name=ms]').value = '250'")
        await page.run("document.querySelector('#fields').dispatchEvent(new Event('input'))")
        assert await page.run("[...document.querySelectorAll('#fault-names code')].map(code => code.textContent)") == [
            '{ "kind": "delay", "ms": 250, "when": "before" }',
            'Fault.delay(ms=250, when="before")',
            "toxiproxy latency",
        ]
        assert await page.run("document.querySelector('#route [value=setup]').text") == "set-up (setup)"


async def kill_secondClick_killsTheSessionsOfTheAccount(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        Client(he).setup(he.content_token("alice"))
        await page.until("document.querySelectorAll('.card').length === 1")
        await page.run("document.querySelector('.card .foot button').click()")
        assert len(he.sessions.active("alice")) == 1
        await page.run("document.querySelector('.card .foot button').click()")
        await page.until("document.querySelector('#sessions [data-state=killed]')")


async def longLists_renderOnlyRowsNearTheVisibleOnes(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        for number in range(400):
            he.sessions.set_up(account=f"home-{number % 100}", device=f"box-{number}", content_ids=("news",), limit=4)
        await page.until("document.querySelector('#sessions-count').innerText.startsWith('400 held')")
        assert await page.run("document.querySelectorAll('#sessions .row').length") == 60
        await page.run("document.querySelector('.sessions .scroll').scrollTop = 1e6")
        await page.until("document.querySelectorAll('#sessions .row').length === 120")
        await filter_by(page, "box-7")
        await page.until("document.querySelectorAll('#sessions .row').length === 11")  # box-7 and box-70 … box-79
        await filter_by(page, "nothing like it")
        await page.until("document.querySelector('#sessions-empty').innerText.includes('No session matches')")
        await page.run("document.querySelector('#sessions-empty button').click()")
        await page.until("document.querySelectorAll('#sessions .row').length === 60")


async def filter_by(page: Page, text: str) -> None:
    await page.run(f"document.querySelector('#search').value = {js(text)}; document.querySelector('#search').oninput()")


async def stopped_pageSaysSo_andConnectsAgainAfterARestart(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        Client(he).setup(he.content_token("alice"))
        await page.until("document.title === '1 session · Usher head-end'")
        # A browser draws nothing in a hidden tab, but the page must change its title even there.
        await page.run("window.requestAnimationFrame = () => 0")
        await page.run(
            "window.failed = 0; const Source = EventSource; window.EventSource = class extends Source {"
            " constructor(url) { super(url); this.addEventListener('error', () => window.failed++); } }; undefined"
        )
        he.stop()
        await page.until("document.title === 'Stopped · Usher head-end'")
        assert await page.run("document.querySelector('#link-text').innerText") == "Stopped"
        notice = await page.run("document.querySelector('#notice').innerText")
        assert "The head-end was stopped" in notice and "tries to connect again" in notice
        # The page tries to connect again each second. A failed attempt changes nothing that the page shows.
        await page.until("window.failed >= 2")
        said = await page.run("[document.title, document.querySelector('#link-text').innerText]")
        assert said == ["Stopped · Usher head-end", "Stopped"]
        assert not await page.run("/reconnecting/i.test(document.body.innerText)")
        doing = "[...document.querySelectorAll('form .main, #advance button, .card .foot button')]"
        assert await page.run(f"{doing}.every(button => button.disabled)")
        he.restart(keep_table=False)
        await page.until("document.title === '0 sessions · Usher head-end'")
        assert await page.run("document.querySelector('#link-text').innerText") == "Live"
        assert await page.run("document.querySelector('#notice').hidden")


async def hiddenTab_closesItsConnection_andSaysPaused(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        await page.run(
            "window.wait = window.setTimeout;"
            "window.setTimeout = (work, ms) => window.wait(work, ms === 60000 ? 0 : ms);"
            "Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        await page.until("document.title === 'Paused · Usher head-end'")
        await until(lambda: he.feed.watchers == 0, "the page has closed its connection")
        await page.run(
            "Object.defineProperty(document, 'hidden', { value: false, configurable: true });"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        await page.until("document.title === '0 sessions · Usher head-end'")
        assert he.feed.watchers == 1


async def tab_leavesThePage_headEndHasNoWatcher(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        assert he.feed.watchers == 1
        await page.call("Page.navigate", url="about:blank")
        await until(lambda: he.feed.watchers == 0, "the page has closed its connection")


async def filter_ofALongList_isQuick(page: Page) -> None:
    """The search in a list of 400 sessions takes less than half a second. This check measures real time, so only
    ``browser_check.py`` runs it."""
    with HeadEnd(clock="manual") as he:
        for number in range(400):
            he.sessions.set_up(account=f"home-{number % 100}", device=f"box-{number}", content_ids=("news",), limit=4)
        await page.open(he.page_url)
        await page.until("document.querySelectorAll('#sessions .row').length === 60")
        took = await page.run(
            "new Promise(done => { const began = performance.now(); document.querySelector('#search').value = 'box-7';"
            " document.querySelector('#search').oninput();"
            " requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))); })"
        )
        assert await page.run("document.querySelectorAll('#sessions .row').length") == 11, "box-7 and box-70 … box-79"
        assert took < 500, took


CHECKS: tuple[Check, ...] = (
    emptyHeadEnd_saysHowToBegin,
    session_setUp_appearsWithItsRequest,
    hostileNames_stayText,
    urls_areThoseOfTheHeadEnd_andCanBeCopied,
    urls_withoutAClipboard_areSelectedAndCopied,
    tokenForm_makesATokenThatOpensASession,
    tokenForm_refusedByTheHeadEnd_saysWhy,
    clockButtons_moveTime_andTheSessionExpires,
    stall_byTheForm_isHeldUntilReleased,
    faultForm_everyKind_hasTheNamesOfTheApi,
    faultForm_changedArgument_changesTheNamesShown,
    kill_secondClick_killsTheSessionsOfTheAccount,
    accounts_inEveryWindow_areNotCut,
    accounts_endOfScrollReportedLate_restOnARowAllTheSame,
    accounts_byTheTabKey_showTheFocusedCardWhole,
    longLists_renderOnlyRowsNearTheVisibleOnes,
    stopped_pageSaysSo_andConnectsAgainAfterARestart,
    hiddenTab_closesItsConnection_andSaysPaused,
    tab_leavesThePage_headEndHasNoWatcher,
)
