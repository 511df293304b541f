"""Web pages in Chromium that play by EME with licences of `usher gateway`."""

from __future__ import annotations

from hosts.chromium import Chromium
from hosts.conftest import Clip, Row
from hosts.gateway import HOST, Start
from hosts.scene import until

from usher.testing.headend import HeadEnd

VIDEO = 'video/mp4; codecs="avc1.42c00b"'


def test_gatewayChromium_isExact(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row
) -> None:
    """A page in Chromium decodes a clip by EME with licences of the gateway, exactly; it stops when the operator
    kills the session."""
    clip = clips["cenc"]
    times = [second + 0.51 for second in range(6)]
    clear = chromium.play(chromium.fragmented(clip.clear), VIDEO)
    expected = chromium.pictures(times, 160, 90)
    assert len(set(expected)) == len(times)
    assert clear["decoded"] == clip.content.frames
    gateway = start(content_id=clip.content.content_id, allow_origin=chromium.origin)
    seen = chromium.play(clip.file, VIDEO, gateway.url().rsplit("/", 1)[0])
    assert seen["decoded"] == clear["decoded"]
    assert chromium.pictures(times, 160, 90) == expected
    assert server.sessions.active()
    server.kill_account("account-1")
    ended = chromium.next_report()["ended"]
    assert len(ended) > 20
    row("content", f"{HOST}, Chromium (EME)", clip.name, "every picture is decoded; screenshots are exact")
    row("trouble", f"{HOST}, Chromium (EME)", "the operator ends the session", "the page hears why, and stops")


def test_gatewayChromium_limit(
    server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip], row: Row
) -> None:
    """A page in Chromium gets words and no key when the limit is reached."""
    clip = clips["cenc"]
    server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)
    gateway = start(content_id=clip.content.content_id, allow_origin=chromium.origin)
    seen = chromium.play(clip.file, VIDEO, gateway.url().rsplit("/", 1)[0])
    assert seen["refused"] == 403
    assert "1007" in seen["words"]
    row("trouble", f"{HOST}, Chromium (EME)", "the limit is reached", "the page gets the reason, and no key")


def test_gatewayChromium_isElsewhere(server: HeadEnd, start: Start, chromium: Chromium, clips: dict[str, Clip]) -> None:
    """A page in Chromium whose origin is not allowed gets nothing, though it knows the path."""
    clip = clips["cenc"]
    gateway = start(content_id=clip.content.content_id, allow_origin="https://tv.example")
    chromium.open(clip.file, VIDEO, gateway.url().rsplit("/", 1)[0])
    until(lambda: chromium.origin in gateway.errors, "the gateway says which page it refused")
    assert not server.journal.entries()
