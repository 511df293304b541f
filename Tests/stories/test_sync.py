"""Tests calls that wait: play and close of a sync delegate, wait_session(), and blocking calls in callbacks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import usher
from stage import Stage
from usher.testing.headend import Fault

E = usher.EventType


def test_play_withSyncAndAStalledServer_returnsAfter5s(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.stall())
    playing = stage.call(stage.play, sync_setup_teardown=True)
    stage.headend.wait_held()
    stage.wait_timer(5_000)
    stage.advance(4_999)
    assert stage.still_waiting(playing)
    stage.advance(1)
    playback = playing.result(5)
    assert playback.session_state is usher.SessionState.PENDING
    stage.headend.release()
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED"]
    closing = stage.call(playback.close)
    closing.result(5)


def test_play_withSync_returnsWithTheSession(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.stall())
    playing = stage.call(stage.play, sync_setup_teardown=True)
    stage.headend.wait_held()
    assert stage.still_waiting(playing)
    stage.headend.release()
    playback = playing.result(10)
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close()
    assert not stage.headend.sessions.active()


@pytest.mark.shows("v1-sync-teardown-limit")
def test_close_withSyncAndAStalledServer_returnsAfter3s(stage: Stage) -> None:
    playback = stage.play(sync_setup_teardown=True)
    stage.headend.faults.add("teardown", Fault.stall())
    closing = stage.call(playback.close)
    stage.headend.wait_held()
    # Two timers are due in 3 s: the timer of the teardown and the timer of close(). wait_timer() returns when it finds
    # one of them. If it finds the timer of the teardown, close() may not have begun to wait; still_waiting() gives
    # close() time for this.
    stage.wait_timer(3_000)
    assert stage.still_waiting(closing)
    stage.advance(2_999)
    assert stage.still_waiting(closing)
    stage.advance(1)
    closing.result(5)
    stage.headend.release()
    stage.settle()
    stage.events.only(E.PLAYBACK_CLOSED)


SYNC_ENDS: dict[str, Callable[[Stage, usher.Playback], None]] = {
    "free": lambda stage, playback: playback.free(),
    "stop": lambda stage, playback: stage.player.stop(),
    "close of the player": lambda stage, playback: stage.player.close(),
}


@pytest.mark.parametrize("end", SYNC_ENDS)
def test_syncPlayback_freedOrStopped_waitsForTheTeardownAtMost3s(stage: Stage, end: str) -> None:
    """The host frees or closes a sync playback, or stops its player. The call returns when the session is torn down
    (SSM v1 page), or after 3 s if the head-end does not reply."""
    player = stage.player
    playback = stage.play(sync_setup_teardown=True)
    stage.headend.faults.add("teardown", Fault.stall("after"))
    ending = stage.call(SYNC_ENDS[end], stage, playback)
    stage.headend.wait_held()
    assert stage.still_waiting(ending)
    stage.headend.release()
    ending.result(10)
    assert stage.routes() == ["setup", "teardown"]
    if end != "stop":
        return
    stage.play(sync_setup_teardown=True, player=player)
    stage.headend.faults.add("teardown", Fault.stall())
    ending = stage.call(player.stop)
    stage.headend.wait_held()
    stage.wait_timer(3_000)
    assert stage.still_waiting(ending)
    stage.advance(3_000)
    ending.result(10)
    stage.headend.release()
    stage.settle()


def test_stopWithATeardown_onAStalledServer_waitsOnceForTheLimit(stage: Stage) -> None:
    """The host stops a sync player with TEARDOWN, and the head-end does not reply; the call returns after
    `teardown_timeout_ms`, not after twice this time."""
    stage.play(sync_setup_teardown=True)
    stage.headend.faults.add("teardown", Fault.stall())
    stopping = stage.call(stage.player.stop, usher.CloseMode.TEARDOWN)
    stage.headend.wait_held()
    stage.wait_timer(3_000)
    assert stage.still_waiting(stopping)
    stage.advance(3_000)
    stopping.result(10)
    stage.headend.release()
    stage.settle()


def test_syncPlayback_endedInACallback_doesNotWait(stage: Stage) -> None:
    """The host stops the player in a callback; the call returns at once, although the delegate is synchronous."""
    returned: list[bool] = []

    def observer(event: usher.Event) -> None:
        if event.type is E.SESSION_STARTED and event.playback is not None:
            stage.player.stop()
            returned.append(bool(stage.headend.sessions.active()))

    stage.headend.faults.add("teardown", Fault.stall())
    stage.context.add_observer(observer)
    stage.play(sync_setup_teardown=True)
    stage.headend.wait_held()
    stage.until(lambda: returned)
    assert returned == [True]
    stage.headend.release()
    stage.settle()


def test_waitSession_onAStalledServer_timesOutAndTheSetupGoesOn(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.stall())
    playback = stage.play()
    waiting = stage.call(playback.wait_session, 2_000)
    stage.headend.wait_held()
    stage.wait_timer(2_000)
    stage.advance(2_000)
    with pytest.raises(TimeoutError):
        waiting.result(5)
    stage.headend.release()
    stage.settle()
    playback.wait_session()


def test_waitSession_withoutATimeout_waitsForTheSetupTimeoutOfTheDelegate(stage: Stage) -> None:
    """The head-end does not reply to set-up, and the host calls wait_session() without a time-out; the call waits for
    `setup_timeout_ms` of the delegate, and no longer."""
    stage.headend.faults.add("setup", Fault.stall())
    playback = stage.play(delegate=stage.delegate(setup_timeout_ms=700))
    waiting = stage.call(playback.wait_session)
    stage.headend.wait_held()
    stage.wait_timer(700)
    stage.advance(699)
    assert stage.still_waiting(waiting)
    stage.advance(1)
    with pytest.raises(TimeoutError):
        waiting.result(5)
    stage.headend.release()
    stage.settle()


def test_blockingCalls_insideACallback_answerWouldDeadlock(stage: Stage) -> None:
    found: list[type[BaseException]] = []

    def observer(event: usher.Event) -> None:
        if event.type is E.SESSION_STARTED and event.playback is not None:
            playback, context = event.playback, stage.context
            sync = stage.delegate(sync_setup_teardown=True)
            for call in (
                lambda: playback.wait_session(),
                lambda: playback.wait_closed(10),
                lambda: playback.get_license(usher.KeySystem.CLEARKEY, b"{}"),
                lambda: playback.get_certificate(),
                lambda: context.advance(1),
                lambda: context.jump(1),
                lambda: context.settle(0, 0, 1),
                lambda: context.pending(),
                lambda: stage.player.play("token", delegate=sync),
            ):
                try:
                    call()
                    found.append(type(None))
                except usher.UsherError as error:
                    found.append(type(error))

    stage.context.add_observer(observer)
    stage.play()
    stage.settle()
    assert found == [usher.WouldDeadlockError] * 9
