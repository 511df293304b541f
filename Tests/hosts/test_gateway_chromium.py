"""Web pages in Chromium that play by EME with licences of `usher gateway`."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hosts.chromium import Chromium
from hosts.conftest import Clip, Row
from hosts.damage import damaged
from hosts.gateway import HOST, Gateway, Start, ask
from hosts.scene import until, until_ended

from usher.testing.headend import Fault, HeadEnd

EME = f"{HOST}, Chromium (EME)"
VIDEO = 'video/mp4; codecs="avc1.42c00b"'


def page_url(gateway: Gateway) -> str:
    """Returns the gateway's URL without its last part, as the page needs it."""
    return gateway.url().rsplit("/", 1)[0]


def visit(start: Start, chromium: Chromium, clip: Clip, **options: object) -> dict[str, Any]:
    """Starts the gateway with `options`; a page in Chromium plays the clip. Returns what the page reports."""
    gateway = start(content_id=clip.content.content_id, allow_origin=chromium.origin, **options)
    return chromium.play(clip.file, VIDEO, page_url(gateway))


def test_gatewayChromium_isExact(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row
) -> None:
    """A page in Chromium decodes a clip by EME with licences of the gateway; each picture equals that of the clear
    clip. When the operator kills the session, the page stops, and the viewer reads why."""
    clip = clips["cenc"]
    times = [second + 0.51 for second in range(6)]
    clear = chromium.play(chromium.fragmented(clip.clear), VIDEO)
    expected = chromium.pictures(times, 160, 90)
    assert len(set(expected)) == len(times)
    assert clear["decoded"] == clip.content.frames
    seen = visit(start, chromium, clip)
    assert seen["decoded"] == clear["decoded"]
    assert chromium.pictures(times, 160, 90) == expected
    assert server.sessions.active()
    assert chromium.words() == ""
    server.kill_account("account-1")
    ended = chromium.next_report()["ended"]
    assert len(ended) > 20
    assert chromium.words() == ended
    row("content", EME, clip.name, "every picture is decoded; screenshots are exact")
    row("trouble", EME, "the operator ends the session", "the page stops, and shows why")


def test_gatewayChromium_limit(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], tmp_path: Path, row: Row
) -> None:
    """The account has no free slot; a page in Chromium gets no key, and the viewer reads why."""
    clip = clips["cenc"]
    server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)
    seen = visit(start, chromium, clip)
    assert seen["refused"] == 403
    assert "license" not in server.journal.routes()
    assert "1007" in seen["words"]
    assert chromium.words().strip() == seen["words"].strip()
    chromium.screenshot(tmp_path / "limit.png")
    row("trouble", EME, "the limit is reached", "the page shows why, and gets no key")


def test_gatewayChromium_license_isForOtherKeys(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row
) -> None:
    """The licence does not have the key of the clip; the viewer reads this on the page, and sees no picture."""
    clip = clips["cenc"]
    other = {"keys": [{"kty": "oct", "kid": "AAAAAAAAAAAAAAAAAAAAAA", "k": "AAAAAAAAAAAAAAAAAAAAAA"}]}
    server.faults.add("license", Fault.reply(200, body=other, processed=True), always=True)
    assert visit(start, chromium, clip)["refused"] == 403
    assert "other content" in chromium.words()
    row("trouble", EME, "a licence for other keys", "the page shows why, and gets no key")


@pytest.mark.parametrize(
    ("route", "fault"), [("setup", Fault.html_page()), ("license", Fault.empty_body())], ids=["setup", "license"]
)
def test_gatewayChromium_garbage(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row, route: str, fault: Fault
) -> None:
    """The head-end sends an unusable reply; the viewer reads why the page does not play."""
    clip = clips["cenc"]
    server.faults.add(route, fault, always=True)
    assert visit(start, chromium, clip)["refused"] == 502
    assert len(chromium.words()) > 20
    name = {"setup": "the set-up", "license": "the licence request"}[route]
    row("trouble", EME, f"{name} gets: {fault.label}", "the page shows why, and gets no key")


def test_gatewayChromium_mute(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row
) -> None:
    """The head-end does not reply to the set-up; when --timeout has passed, the viewer reads why the page does not
    play."""
    clip = clips["cenc"]
    server.faults.add("setup", Fault.stall(), always=True)
    assert visit(start, chromium, clip, timeout=1, quit_timeout=1)["refused"] in (502, 504)
    assert len(chromium.words()) > 20
    row("trouble", EME, "no reply to the set-up", "the page shows why at --timeout, and gets no key")


def test_gatewayChromium_slow_thenDead(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row
) -> None:
    """The head-end takes two seconds for each of two replies; the page plays when both have come. Then the head-end
    stops; the page stops when the lease of the session has ended, and the viewer reads why."""
    clip = clips["cenc"]
    server.faults.add("setup", Fault.delay(2000))
    server.faults.add("license", Fault.delay(2000))
    gateway = start(content_id=clip.content.content_id, allow_origin=chromium.origin)
    begin = time.monotonic()
    assert chromium.play(clip.file, VIDEO, page_url(gateway))["decoded"] == clip.content.frames
    assert time.monotonic() - begin >= 4 + 6, "the clip of 6 s begins when both replies have come"
    row("trouble", EME, "each reply takes two seconds", "the page plays four seconds later")
    server.stop()
    ended = chromium.next_report()["ended"]
    assert len(ended) > 20
    assert chromium.words() == ended
    row("trouble", EME, "the head-end dies", "the page stops when the session must have expired, and shows why")


@pytest.mark.parametrize("end", ["the tab is closed", "SIGKILL to the browser"])
def test_gatewayChromium_isGone(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row, end: str
) -> None:
    """The viewer closes the tab, or the browser crashes; the session ends after the time of --idle."""
    clip = clips["cenc"]
    assert "decoded" in visit(start, chromium, clip, idle=2)
    assert server.sessions.active()
    begin = time.monotonic()
    if end == "the tab is closed":
        chromium.close_tab()
    else:
        chromium.kill()
    until_ended(server)
    assert 1.9 < time.monotonic() - begin < 5
    row("ends", EME, end, "the session, for the time of --idle; then nothing")


def test_gatewayChromium_isElsewhere(server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip]) -> None:
    """A page in Chromium knows the secret path in the gateway's URL, but the gateway does not allow the origin of the
    page; the page gets no key and no licence."""
    clip = clips["cenc"]
    gateway = start(content_id=clip.content.content_id, allow_origin="https://tv.example")
    chromium.open(clip.file, VIDEO, page_url(gateway))
    until(lambda: chromium.origin in gateway.errors, "the gateway says which page it refused")
    assert not server.journal.entries()


# ---- the gateway's own page ------------------------------------------------------------------------------------------

PAGE = f"{HOST}, Chromium, the gateway's page"


def test_gatewayPage_plays(server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row) -> None:
    """The gateway prints the URL of its own page when the clip is an encrypted MP4. The page plays the clip to its
    end."""
    clip = clips["cenc"]
    gateway = start(clip.file, content_id=clip.content.content_id)
    chromium.visit(gateway.url())
    until(lambda: chromium.words() == f"The end, after {clip.content.frames} pictures.", "the page plays the clip")
    assert server.sessions.active()
    row("content", PAGE, clip.name, "every picture is decoded")


def test_gatewayPage_operatorKills(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row
) -> None:
    """The operator kills the session while the page plays slowly: the page removes the pictures before the end of the
    clip, and the viewer reads why."""
    clip = clips["cenc"]
    gateway = start(clip.file, content_id=clip.content.content_id)
    chromium.visit(gateway.url())
    until(lambda: chromium.evaluate("video.currentTime > 0"), "the page plays the clip")
    chromium.evaluate("video.playbackRate = 0.1")
    assert chromium.evaluate("!video.paused && !video.ended && video.style.display == ''")
    assert not chromium.words()
    server.kill_account("account-1")
    until(chromium.words, "the page shows why it stops")
    assert "The end" not in chromium.words() and len(chromium.words()) > 20
    assert chromium.evaluate("video.paused && !video.hasAttribute('src') && video.style.display == 'none'")
    row("trouble", PAGE, "the operator ends the session", "the page stops, and shows why")


def test_gatewayPage_limit(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], tmp_path: Path, row: Row
) -> None:
    """The account has no free slot; the viewer of the gateway's own page reads why the clip does not play."""
    clip = clips["cenc"]
    server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)
    gateway = start(clip.file, content_id=clip.content.content_id)
    chromium.visit(gateway.url())
    until(lambda: "1007" in chromium.words(), "the page shows why it does not play")
    assert "license" not in server.journal.routes()
    chromium.screenshot(tmp_path / "limit.png")
    row("trouble", PAGE, "the limit is reached", "the page shows why, and gets no key")


def test_gatewayPage_clipIsProgressive(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row
) -> None:
    """The clip is a progressive MP4, which no web page can append; the viewer reads this, and no session begins."""
    clip = clips["progressive"]
    gateway = start(clip.file, content_id=clip.content.content_id)
    chromium.visit(gateway.url())
    words = "A web page plays fragmented MP4 only. This clip is something else."
    until(lambda: chromium.words() == words, "the page says why it does not play")
    assert not server.journal.entries()
    row("content", PAGE, clip.name, "refused with the reason: a web page plays fragments only")


DAMAGE = {
    "subsamples-too-long": ("The browser cannot play this file: it is damaged", "the page shows why, and gets no key"),
    "other-key-id": ("The licence server could not match the stream", "the page shows why, and gets no key"),
    "cut-in-the-middle": ("The end, after 73 pictures.", "the page plays the part that is there"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_gatewayPage_clipIsDamaged(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], tmp_path: Path, row: Row, kind: str
) -> None:
    """The clip is damaged. If it is cut, the page plays the fragments that are there. Otherwise the viewer reads why
    nothing plays, and no session remains."""
    clip = clips["cenc"]
    words, result = DAMAGE[kind]
    gateway = start(damaged(kind, clip, tmp_path), content_id=clip.content.content_id)
    chromium.visit(gateway.url())
    until(lambda: chromium.words().startswith(words), f"the page says: {words}")
    if kind == "subsamples-too-long":
        assert not server.journal.entries()
    elif kind == "other-key-id":
        assert not [entry for entry in server.journal.entries(route="license") if entry.status == 200]
        until(lambda: not server.sessions.active(), "no session remains")
    row("trouble", PAGE, f"a file that is damaged: {kind.replace('-', ' ')}", result)


def test_gatewayPage_gatewayIsKilled(server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip]) -> None:
    """The gateway is killed while its page plays: the page stops, although it has the key, and shows why."""
    clip = clips["cenc"]
    gateway = start(clip.file, content_id=clip.content.content_id)
    chromium.visit(gateway.url())
    until(lambda: chromium.evaluate("video.currentTime > 0"), "the page plays the clip")
    chromium.evaluate("video.playbackRate = 0.1")
    gateway.close()
    until(lambda: chromium.words() == "The gateway does not reply any more.", "the page shows why it stops")
    assert chromium.evaluate("video.paused && !video.hasAttribute('src') && video.style.display == 'none'")


def test_gatewayPage_clipHasNoPssh_plays(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], tmp_path: Path, row: Row
) -> None:
    """The clip has no pssh box, like every clip that ffmpeg encrypts. The page asks for the key ids of the tenc box,
    and plays every picture."""
    clip = clips["cenc"]
    bare = tmp_path / "bare.mp4"
    bare.write_bytes(clip.file.read_bytes().replace(b"pssh", b"free"))
    chromium.visit(start(bare, content_id=clip.content.content_id).url())
    until(lambda: chromium.words() == "The end, after 150 pictures.", "the page plays the clip")
    row("content", PAGE, f"{clip.name}, without a pssh box", "every picture is decoded")


def test_gatewayPage_thatStops_readsNoMore(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], tmp_path: Path
) -> None:
    """The page stops while the gateway still sends a long clip. The page closes the connection, so that the gateway
    ends the session after --idle."""
    clip = clips["cenc"]
    long = tmp_path / "long.mp4"
    size = 200_000_000
    with long.open("wb") as file:
        file.write(clip.file.read_bytes() + size.to_bytes(4, "big") + b"free")
        file.truncate(file.tell() + size - 8)
    chromium.visit(start(long, content_id=clip.content.content_id, idle=2).url())
    until(lambda: chromium.evaluate("video.currentTime > 0"), "the page plays the clip")
    chromium.evaluate("stop('The test stops the page.')")
    until(lambda: not server.sessions.active(), "the gateway has ended the session")


@pytest.mark.quick
def test_gatewayPage_ofAnotherOrigin_getsNothing(server: HeadEnd, start: Start, clips: dict[str, Clip]) -> None:
    """The gateway sends its page with a Content-Security-Policy, and accepts licence requests only from the page's
    origin."""
    clip = clips["cenc"]
    gateway = start(clip.file, content_id=clip.content.content_id)
    url = gateway.url()
    page = ask(url)
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in page.text
    own, license_url = url[: url.index("/", 7)], url.replace("/page", "/license")
    body = json.dumps({"kids": [base64.urlsafe_b64encode(clip.content.keys[0].kid).decode().rstrip("=")]}).encode()
    for origin in ("http://127.0.0.1:1", own.replace("http:", "https:"), "null", "http://tv.example"):
        assert ask(license_url, "POST", body, Origin=origin).status == 403
    assert not server.journal.entries()
    assert ask(license_url, "POST", body, Origin=own).status == 200
