"""Cookies of servers, for example of a load balancer that uses a cookie to send all requests of a session to the same
server (docs/protocol.md: cookies)."""

from __future__ import annotations

from typing import Any

import pytest

import usher
from stage import KEY, KID, PERIOD_MS, Stage, StageFactory
from usher.testing.doors import Door
from usher.testing.headend import Fault, HeadEnd
from usher.testing.headend.fixtures import Authority

E = usher.EventType


def cookies(headend: HeadEnd) -> list[str | None]:
    """Returns the header Cookie of each request that arrived, in order."""
    return [entry.header("Cookie") for entry in headend.journal]


def balance(headend: HeadEnd, cookie: str) -> None:
    """Makes the head-end act like a load balancer: each reply sets a cookie, and every request except a set-up is
    refused if it does not have the cookie."""
    headend.faults.add("setup", Fault.header("Set-Cookie", cookie), always=True)
    name = cookie.partition(";")[0]
    headend.faults.add(
        "*",
        Fault.error(1006),
        always=True,
        where=lambda entry: entry.route != "setup" and name not in (entry.header("Cookie") or ""),
    )


def play(stage: Stage, **options: Any) -> usher.Playback:
    """Plays one period."""
    playback = stage.play(**options)
    stage.advance(PERIOD_MS)
    return playback


def test_loadBalancer_withACookie_sessionPlays(stage_factory: StageFactory) -> None:
    """A load balancer refuses requests without its cookie. With `keep_cookies` the library sends the cookie of the
    set-up's reply in all later requests; licence, heartbeat and teardown succeed."""
    stage = stage_factory(keep_cookies=True)
    balance(stage.headend, "node=7; Path=/; HttpOnly")
    playback = play(stage)
    assert stage.clear_keys(playback) == {KID: KEY}
    playback.close()
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED", "KEPT_ALIVE", "LICENSE", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert cookies(stage.headend) == [None, "node=7", "node=7", "node=7"]


def test_cookie_byDefault_isNotKept(stage_factory: StageFactory) -> None:
    """A server sets a cookie, and the host has not set `keep_cookies`; the library sends no cookie."""
    stage = stage_factory()
    stage.headend.faults.add("*", Fault.header("Set-Cookie", "node=7; Path=/"), always=True)
    play(stage).close()
    stage.settle()
    assert cookies(stage.headend) == [None] * 3


@pytest.mark.parametrize("has_tls", [False, True])
def test_cookieOfOneServer_isNotSentToAnotherPort(stage_factory: StageFactory, has_tls: bool) -> None:
    """Two servers have two ports of one host. The library sends the cookies of each server only to that server. RFC
    6265 allows more: a cookie may go to every port of its host, and a cookie from https may also go over http unless it
    is `Secure`."""
    authority = Authority("localhost")
    stage = stage_factory(keep_cookies=True, ca_file=str(authority.ca_file))
    for route in ("setup", "heartbeat", "license"):
        cookie = f"{route}=1; Path=/"
        stage.headend.faults.add(route, Fault.header("Set-Cookie", cookie), always=True)
    with Door(stage.headend.url, tls=authority.server_context() if has_tls else None) as door:
        address = door.url(stage.headend.license_url("clearkey"))
        playback = play(stage, delegate=stage.delegate(license_url=address))
        for _ in range(2):
            assert stage.clear_keys(playback) == {KID: KEY}
        playback.close()
        stage.settle()
        sent = [(entry.route, entry.header("Cookie")) for entry in stage.headend.journal]
        assert sent == [
            ("setup", None),
            ("heartbeat", "setup=1"),
            ("license", None),
            ("license", "license=1"),
            ("teardown", "heartbeat=1; setup=1"),
        ]


def test_cookies_ofAnotherContext_areNotSent(stage_factory: StageFactory) -> None:
    """A server sets a cookie in one context. After this context has ended, a new context begins without cookies."""
    first = stage_factory(keep_cookies=True)
    first.headend.faults.add("*", Fault.header("Set-Cookie", "node=7; Path=/"), always=True)
    play(first).close()
    first.close()
    stage = stage_factory(first.headend, keep_cookies=True)
    before = len(first.headend.journal)
    stage.play().close()
    stage.settle()
    assert cookies(stage.headend)[before] is None


def test_server_thatSetsEverMoreCookies_doesNotFillTheMemory(stage_factory: StageFactory) -> None:
    """A server sets 40 new cookies in each of its replies. When it has set more than 64, the library forgets all
    cookies of this server."""
    stage = stage_factory(keep_cookies=True)
    numbers = iter(range(1_000_000))

    def more(reply: Any) -> Any:
        for _ in range(40):
            reply = reply.with_header("Set-Cookie", f"c{next(numbers)}=v; Path=/")
        return reply

    stage.headend.faults.add("*", Fault("many cookies", edits=(more,)), always=True)
    playback = play(stage)
    stage.advance(5 * PERIOD_MS)
    playback.close()
    stage.settle()
    counts = [(text or "").count("=") for text in cookies(stage.headend)]
    assert counts[:2] == [0, 40] and max(counts) <= 64 and len(counts) == 8, counts


def test_keepCookies_thatIsNeither0Nor1_isRefused(lib: Any) -> None:
    """A host sets `keep_cookies` to 2; the library refuses the option."""
    with pytest.raises(usher.InvalidArgumentError):
        usher.Context(keep_cookies=2)  # type: ignore[arg-type]
