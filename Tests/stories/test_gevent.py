"""Tests a pumped context in gevent's event loop, without monkey-patching. Greenlets wait for answers; a watcher of
gevent's hub calls `pump()` when callbacks are due."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import usher
from stage import KID, StageFactory

gevent = pytest.importorskip("gevent")
from gevent.event import AsyncResult  # noqa: E402

pytestmark = pytest.mark.keeps_resources("gevent keeps its loop until the process ends")

E = usher.EventType
READ = 1


class Hub:
    """Pumps a context from the gevent hub of this thread."""

    def __init__(self, context: usher.Context) -> None:
        self.context = context
        self.watcher = gevent.get_hub().loop.io(context.pump_fd, READ)
        self.watcher.start(context.pump)

    def close(self) -> None:
        self.watcher.stop()
        self.watcher.close()


def license_of(playback: usher.Playback) -> usher.License:
    """Requests a licence, lets other greenlets run until the answer has come, and returns the licence."""
    answer: Any = AsyncResult()

    def answered(done: Any) -> None:
        if done.exception() is None:
            answer.set(done.result())
        else:
            answer.set_exception(done.exception())

    playback.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]), callback=answered)
    return answer.get(timeout=20)  # type: ignore[no-any-return]


def test_greenlets_playBesideEachOther_onOneThread(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 5}, callbacks="pumped")
    threads, started, closed = set(), AsyncResult(), AsyncResult()
    ticks, before = [0], set(threading.enumerate())

    def observer(event: usher.Event) -> None:
        threads.add(threading.get_ident())
        if event.type is E.SESSION_STARTED:
            started.set(event)
        if len(stage.events.all(E.PLAYBACK_CLOSED)) == 3:
            closed.set(True)

    def tick() -> None:
        while not closed.ready():
            ticks[0] += 1
            gevent.sleep(0.001)

    def watch(token: str) -> dict[bytes, bytes]:
        player = usher.Player(stage.context)
        playback = stage.play(token, player=player)
        started.get(timeout=20)
        return license_of(playback).clear_keys()

    stage.context.add_observer(observer)
    hub = Hub(stage.context)
    ticking = gevent.spawn(tick)
    watching = [gevent.spawn(watch, stage.headend.content_token()) for _ in range(3)]
    gevent.joinall(watching, timeout=20, raise_error=True)
    assert [list(one.value) for one in watching] == [[KID]] * 3

    for _ in range(2):  # virtual time: the library keeps the sessions alive, the hub only delivers the events
        stage.headend.advance(60_000)
        stage.context.advance(60_000)
        deadline = time.monotonic() + 20
        while not settled(stage.context):
            assert time.monotonic() < deadline, stage.context.pending()
            gevent.sleep(0.001)
    assert stage.headend.journal.count("heartbeat") == 6
    assert len(stage.events.all(E.KEPT_ALIVE)) == 6
    for event in stage.events.all(E.SESSION_STARTED):
        if event.player is not None:
            event.player.close()
    assert closed.get(timeout=20)
    ticking.join(timeout=20)
    hub.close()
    assert ticks[0] > 1, "other greenlets ran while the library worked"
    assert threads == {threading.get_ident()}
    assert set(threading.enumerate()) <= before


def settled(context: usher.Context) -> bool:
    try:
        context.settle(0, 0, 0)
    except usher.UsherTimeoutError:
        return False
    return True
