"""A host that stops playback first and tears the session down afterwards, as applications of SSP V2 may do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.v2 import PAYLOAD, ask, licence, play
from usher.testing.headend import Fault

E = usher.EventType
T, LEAVE, DEFAULT = usher.CloseMode.TEARDOWN, usher.CloseMode.LEAVE, usher.CloseMode.DEFAULT

Ending = Callable[[Stage, usher.Playback], None]


def close_playback(stage: Stage, playback: usher.Playback) -> None:
    playback.close(T)


def stop_player(stage: Stage, playback: usher.Playback) -> None:
    stage.player.stop(T)


WAYS = pytest.mark.parametrize("tear_down", [close_playback, stop_player])


@WAYS
@pytest.mark.parametrize("how", [LEAVE, DEFAULT])
def test_teardown_afterAStop_isSentAndFreesTheSlot(
    stage_factory: StageFactory, how: usher.CloseMode, tear_down: Ending
) -> None:
    """The host stops the player, and then tears the session down. The head-end frees the slot, so that the next item
    plays although the limit is one (SSM V2 page)."""
    stage = stage_factory(headend={"limit": 1})
    playback = play(stage, tag="first")
    licence(playback)
    stage.player.stop(how)
    stage.settle()
    assert stage.routes() == ["license"]
    assert stage.events.types("first")[-2:] == ["SESSION_ENDED", "PLAYBACK_CLOSED"]
    tear_down(stage, playback)
    stage.settle()
    assert stage.seqs() == [("license", None), ("teardown", 1)]
    ended = stage.events.all(tag="first")[-1]
    assert (ended.type, ended.left, ended.playback) == (E.SESSION_ENDED, False, playback)
    second = play(stage)
    assert licence(second).clear_keys() == {KID: KEY}
    second.close(T)


@WAYS
def test_teardown_afterAStop_isSentOnce(stage: Stage, tear_down: Ending) -> None:
    """The host asks several times to tear down a session that it left, also while the teardown is in flight; the
    library sends only one teardown."""
    playback = play(stage)
    licence(playback)
    playback.close(LEAVE)
    stage.headend.faults.add("teardown", Fault.stall())
    tear_down(stage, playback)
    stage.headend.wait_held()
    tear_down(stage, playback)
    stage.headend.release()
    stage.settle()
    tear_down(stage, playback)
    playback.close(T)
    stage.player.stop(T)
    stage.settle()
    assert stage.routes() == ["license", "teardown"]


def test_closeTwice_afterATeardown_doesNothing(stage: Stage) -> None:
    """After a close with TEARDOWN, further calls that close the playback or stop the player do nothing, whatever their
    mode. The library sends one teardown."""
    playback = play(stage)
    licence(playback)
    playback.close(T)
    for mode in (LEAVE, DEFAULT, T):
        playback.close(mode)
    stage.player.stop(T)
    stage.settle()
    assert stage.routes() == ["license", "teardown"]
    assert stage.events.types().count("SESSION_ENDED") == 1


@WAYS
def test_teardown_thatFailsAfterAStop_isReported(stage: Stage, tear_down: Ending) -> None:
    """The head-end refuses the teardown of a session that the host left; the observers get TEARDOWN_ERROR, although the
    playback was already closed."""
    stage.headend.faults.add("teardown", Fault.status(400), always=True)
    playback = play(stage)
    licence(playback)
    playback.close()
    stage.settle()
    before = len(stage.events.all())
    tear_down(stage, playback)
    stage.settle()
    assert stage.events.types()[before:] == ["TEARDOWN_ERROR", "SESSION_ENDED"]
    error = stage.events.error(E.TEARDOWN_ERROR)
    assert (error.http_status, error.must_stop) == (400, False)
    stage.headend.faults.clear()
    stage.headend.advance(240_000)


@WAYS
def test_teardown_whileTheOpeningReplyIsUnderWay_usesItsToken(stage: Stage, tear_down: Ending) -> None:
    """The host leaves a session whose first licence is in flight, and then tears it down; the library waits for the
    reply and sends the teardown with the reply's token."""
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = play(stage)
    future = ask(playback)
    stage.headend.wait_held()
    playback.close(LEAVE)
    assert isinstance(future.exception(10), usher.ClosedError)
    tear_down(stage, playback)
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("license", None), ("teardown", 1)]


@WAYS
def test_teardown_afterTheOpeningReplyOfALeftSession_usesItsToken(stage: Stage, tear_down: Ending) -> None:
    """The reply to the first licence request arrives after the host has left the session. A later teardown uses the
    token of this reply."""
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = play(stage)
    ask(playback)
    stage.headend.wait_held()
    playback.close(LEAVE)
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["license"]
    tear_down(stage, playback)
    stage.settle()
    assert stage.seqs() == [("license", None), ("teardown", 1)]


def test_teardown_whileARenewalOfALeftSessionIsUnderWay_usesTheNewestToken(stage_factory: StageFactory) -> None:
    """The host leaves a session while a renewal is in flight, and then tears the session down. The library waits for
    the reply, which brings a new token."""
    stage = stage_factory(headend={"enforced": {"fairplay"}, "grace": 3.0})
    stage.headend.faults.add("license-renewal", Fault.stall("after"))
    playback = play(stage, "fairplay", payload=lambda request: PAYLOAD["fairplay"])
    licence(playback, "fairplay")
    stage.advance(60_000)
    stage.headend.wait_held()
    playback.close(LEAVE)
    playback.close(T)
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("license", None), ("license-renewal", 1), ("teardown", 2)]


@WAYS
def test_teardown_withoutAToken_isRefusedWithState(stage: Stage, tear_down: Ending) -> None:
    """The host left a session whose token the library never received, because the reply was lost. A later teardown
    fails with STATE, so that the host knows that the session still uses the slot."""
    stage.headend.faults.add("license", Fault.stall("after") | Fault.drop("after"))
    playback = play(stage)
    ask(playback)
    stage.headend.wait_held()
    playback.close(LEAVE)
    stage.headend.release()
    stage.settle()
    with pytest.raises(usher.StateError):
        tear_down(stage, playback)
    stage.headend.advance(240_000)


@WAYS
def test_teardown_ofASessionThatTheServerEnded_isAnEndWithoutARequest(stage: Stage, tear_down: Ending) -> None:
    """The head-end has killed the session, and the library knows this from a heartbeat. The host leaves the session and
    then tears it down. The library sends nothing, and reports that the session has ended."""
    playback = play(stage)
    licence(playback)
    stage.headend.sessions.kill()
    stage.advance(60_000)
    assert stage.events.types()[-1] == "HEARTBEAT_ERROR"
    playback.close(LEAVE)
    stage.settle()
    before = len(stage.events.all())
    tear_down(stage, playback)
    stage.settle()
    assert "teardown" not in stage.routes()
    (ended,) = stage.events.all()[before:]
    assert (ended.type, ended.left) == (E.SESSION_ENDED, False)


@WAYS
@pytest.mark.parametrize("outcome", ["the reply is lost", "the request is refused"])
def test_teardown_ofASessionThatNeverGotAToken_ends(stage: Stage, tear_down: Ending, outcome: str) -> None:
    """The host leaves a session whose first licence request is in flight, and then tears it down; no token arrives. The
    library reports SESSION_ENDED. If the head-end may hold the session, the library reports TEARDOWN_ERROR first."""
    is_lost = outcome == "the reply is lost"
    stage.headend.faults.add("license", Fault.stall("after") | Fault.drop("after") if is_lost else Fault.stall())
    playback = play(stage, token=None if is_lost else "a token that the head-end does not know")
    ask(playback)
    stage.headend.wait_held()
    playback.close(LEAVE)
    stage.events.wait(E.PLAYBACK_CLOSED)
    before = len(stage.events.all())
    tear_down(stage, playback)
    stage.headend.release()
    stage.settle()
    types = stage.events.types()[before:]
    if is_lost:
        assert types == ["TEARDOWN_ERROR", "SESSION_ENDED"]
        error = stage.events.error(E.TEARDOWN_ERROR)
        assert (error.status, error.orphan_possible) == (usher.Status.STATE, True)
    else:
        assert types == ["SESSION_ENDED"]
    stage.headend.advance(240_000)


def test_stop_afterTheHandleIsFreed_isRefusedWithState(stage: Stage) -> None:
    """The library keeps the token of a left session until the host frees the playback. After that, stop(TEARDOWN) fails
    with STATE."""
    playback = play(stage)
    licence(playback)
    playback.close()
    stage.settle()
    playback.free()
    with pytest.raises(usher.StateError):
        stage.player.stop(T)
    assert stage.routes() == ["license"]
    stage.headend.advance(240_000)


def test_stop_ofTheNextItem_doesNotTouchTheSessionLeftBefore(stage: Stage) -> None:
    """stop(TEARDOWN) tears down only the session of the item that plays. The left session of the previous item
    continues until the host closes the playback of this previous item with TEARDOWN."""
    first = play(stage, leave_on_zap=True)
    licence(first)
    second = play(stage)
    licence(second)
    for _ in range(2):
        stage.player.stop(T)
        stage.settle()
    assert stage.routes() == ["license", "license", "teardown"]
    first.close(T)
    stage.settle()
    assert stage.routes() == ["license", "license", "teardown", "teardown"]
    assert not stage.headend.sessions.active()


def test_waitClosed_afterATeardownOfALeftSession_waitsForIt(stage: Stage) -> None:
    """The host tears a left session down and calls wait_closed(), which returns after the reply to the teardown."""
    playback = play(stage)
    licence(playback)
    playback.close(LEAVE)
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    playback.close(T)
    waiting = stage.call(playback.wait_closed)
    stage.headend.wait_held()
    assert stage.still_waiting(waiting)
    stage.headend.release()
    waiting.result(10)
    assert not stage.headend.sessions.active()


def test_contextClose_afterATeardownOfALeftSession_waitsForIt(stage: Stage) -> None:
    """The host tears down a left session, and closes the context at once. The close waits for the teardown."""
    playback = play(stage)
    licence(playback)
    stage.player.stop()
    stage.player.stop(T)
    assert stage.context.close() == 0
    assert not stage.headend.sessions.active()
