"""Checks of the panel Connect a player."""

from __future__ import annotations

import base64
import json

from headend_client import Client
from page_browser import Page, js

from usher.testing.headend import KEY_SYSTEMS, HeadEnd


async def show_connect(page: Page) -> None:
    """Opens the panel Connect a player, if it is closed."""
    await page.run("document.querySelector('#connect').hidden && document.querySelector('#connect-open').click()")


async def urls_areThoseOfTheHeadEnd_andCanBeCopied(page: Page) -> None:
    with HeadEnd(clock="manual", tenant="LAB 1") as he:
        session = f"{he.ssm_url}/v1/sessions"
        expected = [he.ssm_url, f"{session}/setup", f"{session}/heartbeat", f"{session}/teardown"]
        expected += [he.license_url(key_system) for key_system in KEY_SYSTEMS]
        expected += [he.license_url(key_system, "v2") for key_system in KEY_SYSTEMS]
        expected += [he.certificate_url("fairplay"), he.certificate_url("widevine")]
        expected += [he.fps_url, he.fps_certificate_url, he.rights_url, he.entitlement_url]
        await page.open(he.page_url)
        await page.allow_clipboard(he.url)
        await show_connect(page)
        assert await page.run("[...document.querySelectorAll('#urls .url')].map(cell => cell.innerText)") == expected
        copied = []
        for number in range(len(expected)):
            await page.run(f"document.querySelectorAll('#urls .copy')[{number}].click()")
            await page.until("document.querySelector('#toast').className === 'toast shown'")
            copied.append(await page.run("navigator.clipboard.readText()"))
            await page.run("document.querySelector('#toast').className = 'toast'")
        assert copied == expected
        await page.run("document.querySelector('#address').click()")
        await page.until("document.querySelector('#toast').className === 'toast shown'")
        assert await page.run("navigator.clipboard.readText()") == he.ssm_url
        names = await page.run("[...document.querySelectorAll('#urls .copy')].map(button => button.ariaLabel)")
        assert len(set(names)) == len(expected) and names[1] == "Copy the URL: Sessions, SSM v1, set-up"


async def urls_withoutAClipboard_areSelectedAndCopied(page: Page) -> None:
    """A page that is neither from loopback nor https has no ``navigator.clipboard``. The button beside a URL still
    selects and copies the URL. If even this fails, the page shows an error, and the URL stays selected."""
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        await page.allow_clipboard(he.url)
        await show_connect(page)
        await page.run("window.clipboard = navigator.clipboard")
        await page.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        await page.run("document.querySelectorAll('#urls .copy')[1].click()")
        await page.until("document.querySelector('#toast').className === 'toast shown'")
        assert await page.run("getSelection().toString()") == f"{he.ssm_url}/v1/sessions/setup"
        assert await page.run("window.clipboard.readText()") == f"{he.ssm_url}/v1/sessions/setup"
        await page.run("document.execCommand = () => false")
        await page.run("document.querySelectorAll('#urls .copy')[2].click()")
        await page.until("document.querySelector('#toast').className === 'toast shown bad'")
        assert await page.run("getSelection().toString()") == f"{he.ssm_url}/v1/sessions/heartbeat"


async def tokenForm_makesATokenThatOpensASession(page: Page) -> None:
    with HeadEnd(clock="manual", limit=5, accounts=("alice", "bob"), content_id="film") as he:
        he.add_key(b"k" * 16, b"v" * 16, "news")
        await page.open(he.page_url)
        await page.allow_clipboard(he.url)
        await show_connect(page)
        await page.until("document.querySelectorAll('#names option').length === 2")
        assert await page.run("[...document.querySelectorAll('#names option')].map(o => o.value)") == ["alice", "bob"]
        assert await page.run("[...document.querySelectorAll('#contents option')].map(o => o.value)") == [
            "film",
            "news",
        ]
        filled = "['account', 'content', 'streams'].map(name => document.querySelector(`#token-${name}`))"
        assert await page.run(f"{filled}.map(input => input.value || input.placeholder)") == ["alice", "film", "5"]
        for name, value in (("account", "carol"), ("device", "tv"), ("streams", "1"), ("valid", "60")):
            await page.run(f"document.querySelector('#token-{name}').value = {js(value)}")
        await page.run("document.querySelector('#token-form').requestSubmit()")
        await page.until("document.querySelector('#token').textContent")
        token = await page.run("document.querySelector('#token').textContent")
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        assert claims["exp"] == he.now_ms // 1000 + 60
        assert await page.run("document.querySelector('#made-for').textContent") == "For carol on tv, film:"
        await page.run("document.querySelector('#made .copy').click()")
        await page.until("document.querySelector('#toast').className === 'toast shown'")
        assert await page.run("navigator.clipboard.readText()") == token
        client = Client(he)
        assert client.setup(token).status == 200 and client.setup(token).code == 1007
        session = he.sessions.only("carol")
        assert (session.device, session.content_ids) == ("tv", ("film",))
        sent = json.dumps([he.journal.dump(), client.control("GET", "journal").json])
        assert token not in sent, "the journal of the control endpoints has no whole token"


async def tokenForm_refusedByTheHeadEnd_saysWhy(page: Page) -> None:
    with HeadEnd(clock="manual") as he:
        await page.open(he.page_url)
        await show_connect(page)
        await page.run("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
        await page.run("document.querySelector('#token-form').requestSubmit()")
        await page.until("!document.querySelector('#token-wrong').hidden")
        assert await page.run("document.querySelector('#token-wrong').textContent") == "the head-end does not answer"
        assert await page.run("document.querySelector('#made').hidden")
