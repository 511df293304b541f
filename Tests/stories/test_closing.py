"""Tests the close of playbacks and contexts: which events the library reports, in which order, and how long the calls
wait."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import usher
from stage import CHALLENGE, REAL_TIMEOUT_S, Stage, StageFactory
from usher._c import ffi
from usher.testing.headend import Fault

E = usher.EventType
SOON_S = 1.2 * REAL_TIMEOUT_S / 10
"""The longest real time that a close with a time limit of at most 0.5 s takes, also on a busy machine."""


def test_context_shutDownWhileABeatNeverAnswers_returnsWithTheLastTeardown(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.stall("before"))
    playback = stage.play()
    stage.advance(60_000)
    stage.headend.wait_held()
    closing = stage.call(stage.context.shutdown)
    stage.until(lambda: playback.session_state is usher.SessionState.ENDED)
    stage.advance(3_000)
    assert stage.routes() == ["setup", "heartbeat", "teardown"]
    assert closing.result(REAL_TIMEOUT_S) == 0, "the heartbeat in flight holds no slot, so close does not wait for it"
    stage.headend.release()


def test_contextClosed_whileASetupIsOnItsWay_givesBackWhatItBrings(stage: Stage) -> None:
    """The close of the context waits for up to six seconds for the reply to a set-up, also after PLAYBACK_CLOSED,
    because this reply may contain a session token. If the reply has a token, the library tears down the session of this
    token."""
    told = threading.Event()
    context = usher.Context(proxy="")
    delegate = usher.SSPDelegate(
        context,
        license_url=stage.headend.license_url("clearkey"),
        ssm_url=stage.headend.ssm_url,
        teardown_timeout_ms=50,
        jitter_permille=usher.OFF,
    )
    context.add_observer(lambda event: told.set() if event.type is E.PLAYBACK_CLOSED else None)
    stage.headend.faults.add("setup", Fault.stall("after"))
    usher.Player(context).play(stage.headend.content_token(), delegate=delegate)
    stage.headend.wait_held()
    closing = stage.call(context.close)
    assert told.wait(REAL_TIMEOUT_S)
    assert stage.still_waiting(closing) and len(stage.headend.sessions.active()) == 1
    stage.headend.release()
    closing.result(REAL_TIMEOUT_S)
    assert stage.routes() == ["setup", "teardown"] and not stage.headend.sessions.active()


def real_stage(stage_factory: StageFactory, fault: str, **options: Any) -> tuple[Stage, usher.Playback]:
    """Makes a stage on the system clock, whose head-end does not reply to requests of the kind `fault`, and starts a
    playback. Returns both."""
    stage = stage_factory(clock="system", **options)
    stage.headend.faults.add(fault, Fault.stall("before"), always=True)
    playback = stage.play(tag="a")
    return stage, playback


@pytest.mark.leaves_session
@pytest.mark.parametrize("callbacks", ["threaded", "pumped"])
def test_contextFreed_whileTheHeadEndIsMute_endsInTheTimeThatTheHostStates(
    stage_factory: StageFactory, callbacks: str
) -> None:
    """The host closes the context with a time limit of 0.3 s, and the head-end does not reply to the teardown. The call
    returns soon after the time limit. Before it returns, the host gets TEARDOWN_ERROR and PLAYBACK_CLOSED."""
    stage, playback = real_stage(stage_factory, "teardown", callbacks=callbacks)
    if callbacks == "threaded":
        playback.wait_session()
    else:
        stage.until(lambda: not stage.context.pump() and playback.session_state is usher.SessionState.ACTIVE)
    began = time.monotonic()
    stage.context.close(timeout_ms=300)
    assert time.monotonic() - began < SOON_S
    assert stage.events.types("a")[-3:] == ["TEARDOWN_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert stage.events.error(E.TEARDOWN_ERROR, "a").orphan_possible
    stage.headend.wait_held(0)


@pytest.mark.leaves_session
def test_contextFreed_afterACloseThatTimedOut_doesNotWaitAgain(stage_factory: StageFactory) -> None:
    """usher_context_close() reaches its time limit. Then usher_context_free() does not wait again: it reports the end
    of the open playback and returns."""
    stage, playback = real_stage(stage_factory, "teardown")
    playback.wait_session()
    assert stage.context.shutdown(200) == 1
    assert "PLAYBACK_CLOSED" not in stage.events.types("a")
    began = time.monotonic()
    stage.context.close(timeout_ms=None)
    assert time.monotonic() - began < SOON_S
    assert stage.events.types("a")[-3:] == ["TEARDOWN_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    stage.headend.wait_held(0)


@pytest.mark.leaves_session
@pytest.mark.parametrize("head_end", ["mute", "resets"])
def test_contextFreed_withoutAClose_endsInTheTimeOfItsTeardowns(stage_factory: StageFactory, head_end: str) -> None:
    """The host frees a context that it has not closed. The head-end does not reply to the teardown, or resets each
    connection. usher_context_free() returns after about twice `teardown_timeout_ms`, and reports the end of the
    playback."""
    stage = stage_factory(clock="system")
    playback = stage.play(tag="a", teardown_timeout_ms=300)
    playback.wait_session()
    if head_end == "mute":
        stage.headend.faults.add("teardown", Fault.stall("before"), always=True)
    else:
        stage.headend.faults.add("teardown", Fault.reset(), always=True)
    began = time.monotonic()
    stage.context._has_handle = False
    assert ffi.lib.usher_context_free(stage.context._handle) == usher.Status.OK
    took = time.monotonic() - began
    assert 0.4 < took < SOON_S, took
    assert stage.events.types("a")[-3:] == ["TEARDOWN_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    stage.headend.wait_held(0)


def test_beginClose_returnsAtOnce_andAnEventFollowsTheLastTeardown(stage: Stage) -> None:
    """The host begins to close the context while two sessions are alive; CONTEXT_CLOSED comes after both teardowns, and
    it names no playback."""
    for tag in ("a", "b"):
        stage.play(player=usher.Player(stage.context), tag=tag)
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall("before"))
    stage.context.begin_close()
    stage.headend.wait_held()
    assert "CONTEXT_CLOSED" not in stage.events.types()
    with pytest.raises(usher.ClosedError):
        stage.play()
    stage.headend.release()
    stage.settle()
    assert stage.events.types().count("PLAYBACK_CLOSED") == 2
    closed = stage.events.only(E.CONTEXT_CLOSED)
    assert (closed.error, closed.playback, closed.player, closed.tag) == (None, None, None, None)
    assert closed.sequence > max(event.sequence for event in stage.events.all(E.PLAYBACK_CLOSED))
    assert stage.context.shutdown() == 0


@pytest.mark.leaves_session
def test_beginClose_whileTheHeadEndIsMute_saysSoAtTheTimeLimit(stage: Stage) -> None:
    """The head-end does not answer the teardown; at the time limit CONTEXT_CLOSED has a time-out as its error."""
    stage.play()
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall("before"), always=True)
    stage.context.begin_close(1_000)
    stage.headend.wait_held()
    stage.context.advance(999)
    stage.context.settle(1, 0)
    assert "CONTEXT_CLOSED" not in stage.events.types()
    stage.context.advance(1)
    stage.until(lambda: "CONTEXT_CLOSED" in stage.events.types())
    assert type(stage.events.error(E.CONTEXT_CLOSED)) is usher.UsherTimeoutError
    stage.context.close()
    assert stage.events.types()[-1] == "PLAYBACK_CLOSED"
    stage.headend.release()


@pytest.mark.leaves_session
def test_contextFreed_afterContextClosed_doesNotWait(stage: Stage) -> None:
    """CONTEXT_CLOSED reports that the time limit has passed while a teardown has no reply. After this event
    usher_context_free() does not wait for the reply, even if the clock is manual."""
    stage.play(tag="a")
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall("before"), always=True)
    stage.context.begin_close(1_000)
    stage.headend.wait_held()
    stage.context.advance(1_000)
    stage.until(lambda: "CONTEXT_CLOSED" in stage.events.types())
    began = time.monotonic()
    stage.context.close()
    assert time.monotonic() - began < 0.9, "the library waits in steps of one second"
    assert stage.events.types("a")[-3:] == ["TEARDOWN_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    stage.headend.release()


def test_beginClose_onThePumpingThread_isHeardInThePump(stage_factory: StageFactory) -> None:
    """A pumping host calls begin_close() and then continues to pump; it gets CONTEXT_CLOSED after the teardown."""
    stage = stage_factory(clock="system", callbacks="pumped")
    stage.play(tag="a")
    stage.until(lambda: not stage.context.pump() and "SESSION_STARTED" in stage.events.types("a"))
    stage.context.begin_close(5_000)
    stage.until(lambda: not stage.context.pump() and "CONTEXT_CLOSED" in stage.events.types())
    assert stage.events.types("a")[-2:] == ["SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert stage.routes() == ["setup", "teardown"]


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_contextClosed_whileALicenceNeverComes_waitsNoLongerThanForItsSlot(stage: Stage, kind: str) -> None:
    """A context closes while a licence request has no reply. In V1 the library waits for the reply until the teardown
    time-out has passed, and then tears the session down with the token that it has. In V2 a close leaves the session by
    default, so the library needs no token and does not wait."""
    if kind == "v1":
        playback = stage.play()
    else:
        delegate = usher.SSPV2Delegate(
            stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url
        )
        playback = stage.play(delegate=delegate)
    stage.settle()
    stage.headend.faults.add("license", Fault.stall("before"))
    playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    stage.headend.wait_held()
    closing = stage.call(stage.context.shutdown)
    stage.until(lambda: playback.session_state is usher.SessionState.ENDED)
    if kind == "v1":
        stage.advance(3_000)
        assert stage.routes() == ["setup", "license", "teardown"]
    assert closing.result(REAL_TIMEOUT_S) == 0
    stage.headend.release()


def test_contextClosed_afterARefusedTeardown_waitsForTheReplyWithANewerToken(stage_factory: StageFactory) -> None:
    """A context closes while a licence reply with a newer token has not arrived yet. The head-end would refuse a
    teardown with the old token. The library waits for the reply, and tears the session down with the newer token."""
    stage = stage_factory(headend={"enforced": {"clearkey"}})
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = stage.play()
    stage.settle()
    playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    stage.headend.wait_held()
    closing = stage.call(stage.context.shutdown)
    stage.until(lambda: playback.session_state is usher.SessionState.ENDED)
    stage.advance(3_000)
    stage.until(lambda: stage.events.all(E.PLAYBACK_CLOSED))
    assert stage.still_waiting(closing)
    stage.headend.release()
    assert closing.result(REAL_TIMEOUT_S) == 0
    assert [seq for route, seq in stage.seqs() if route == "teardown"] == [1, 2]


class Slow(usher.CommonDelegate):
    """A delegate whose hooks never answer."""

    def certificate(self, call: Any) -> Any:
        return usher.LATER

    def content_identifier(self, call: Any) -> Any:
        return usher.LATER


@pytest.mark.parametrize("what", ["certificate", "certificate step", "content identifier step"])
def test_close_beforeWhatWasAskedForCame_endsTheRequestBeforeItTellsTheEnd(stage: Stage, what: str) -> None:
    """After PLAYBACK_CLOSED no callback reports anything about this playback (docs/threading.md: Callbacks)."""
    order: list[str] = []
    stage.context.add_observer(lambda event: order.append(event.type.name))
    urls = {
        "license_url": stage.headend.license_url("fairplay"),
        "certificate_url": stage.headend.certificate_url("fairplay"),
    }
    stage.headend.faults.add("certificate", Fault.stall())
    playback = stage.play(
        delegate=Slow(stage.context, **urls) if "step" in what else stage.delegate(ssm_url=None, **urls)
    )

    def note(answer: Any) -> None:
        order.append(type(answer.exception()).__name__)

    if what.startswith("certificate"):
        playback.request_certificate(callback=note)
    else:
        playback.request_content_id("skd://one", callback=note)
    stage.settle()
    playback.close()
    stage.settle()
    assert order == ["ClosedError", "PLAYBACK_CLOSED"]


def test_waitClosed_whileTheOnlyCallbackThreadIsBusyWithAnother_returns(stage: Stage) -> None:
    """The only callback thread runs a callback of another playback. No event of this playback is queued any more, so
    wait_closed() does not wait for the callback thread."""
    asked, gate = threading.Event(), threading.Event()

    def token(request: usher.TokenRequest) -> None:
        asked.set()
        gate.wait(10)

    with usher.Context(proxy="", callback_threads_max=1) as context:
        delegate = usher.SSPDelegate(
            context,
            license_url=stage.headend.license_url("clearkey"),
            ssm_url=stage.headend.ssm_url,
            token_callback=token,
            jitter_permille=usher.OFF,
        )
        busy, player = usher.Player(context), usher.Player(context)
        busy.play(delegate=delegate)
        assert asked.wait(10)
        playback = player.play(stage.headend.content_token(), delegate=delegate)
        playback.wait_session()
        stage.headend.faults.add("teardown", Fault.stall("after"))
        playback.close()
        stage.headend.wait_held()
        waiting = stage.call(playback.wait_closed, 5_000)
        assert stage.still_waiting(waiting)
        stage.headend.release()
        waiting.result(REAL_TIMEOUT_S)
        gate.set()
    assert not stage.headend.sessions.active()


def test_teardown_triedAgain_carriesTheTokenThatCameMeanwhile(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.stall("after"))
    stage.headend.faults.add("teardown", Fault.status(503))
    playback = stage.play()
    stage.advance(60_000)
    playback.close()
    stage.advance(3_000)
    stage.headend.release()
    stage.settle()
    assert [seq for route, seq in stage.seqs() if route == "teardown"] == [1, 2]


def test_close_afterALicenseRotatedTheToken_isNotStoppedByTheStaleBeat(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"clearkey"}})
    playback = stage.play()
    stage.advance(59_000)
    stage.headend.faults.add("license", Fault.stall("after"))
    stage.headend.faults.add("heartbeat", Fault.stall("after"))
    request = playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    stage.headend.wait_held()
    stage.advance(1_000)
    stage.headend.wait_held(2)
    stage.headend.release("license")
    stage.settle()
    assert request.result(5).data
    playback.close()
    stage.headend.release()
    stage.advance(4_000)
    assert stage.sent("teardown")[-1].status == 200


def test_close_whileATokenIsAsked_isNoError(stage: Stage) -> None:
    asked = threading.Event()

    def later(request: usher.TokenRequest) -> object:
        asked.set()
        return usher.LATER

    playback = stage.player.play(None, delegate=stage.delegate(token_callback=later), tag="a")
    assert asked.wait(5)
    playback.close()
    stage.settle()
    assert stage.events.types("a") == ["PLAYBACK_CLOSED"]


def test_close_whileAPayloadIsAsked_isNoError(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"clearkey"}})
    playback = stage.play(payload=lambda request: usher.LATER, tag="a")
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(60_000)
    playback.close()
    stage.settle()
    assert "HEARTBEAT_ERROR" not in stage.events.types("a")


def test_context_closedWhileALateTeardownIsUnderWay_waitsForIt(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.stall("after"))
    playback = stage.play()
    stage.headend.wait_held()
    playback.close()
    stage.advance(3_000)
    stage.headend.faults.add("teardown", Fault.stall("before"))
    stage.headend.release()
    stage.headend.wait_held()
    closing = stage.call(stage.context.shutdown)
    assert stage.still_waiting(closing)
    stage.headend.release()
    assert closing.result(5) == 0


def test_playback_closedWhileItsObserverIsBusy_isWaitedForUntilTold(stage: Stage) -> None:
    gate, seen = threading.Event(), []

    def slow(event: usher.Event) -> None:
        if event.type is E.SESSION_ENDED:
            gate.wait(10)
        seen.append(event.type)

    stage.context.add_observer(slow)
    playback = stage.play()
    stage.settle()
    stage.held_callbacks = 9
    playback.close()
    waiting = stage.call(playback.wait_closed)
    assert stage.still_waiting(waiting)
    gate.set()
    waiting.result(5)
    assert E.PLAYBACK_CLOSED in seen
    stage.held_callbacks = 0


@pytest.mark.parametrize("call", ["wait_closed", "close"])
def test_wait_whileACallbackBlocks_andAnotherThreadFreesTheContext_keepsItsTimeLimit(
    stage: Stage, lib: Any, call: str
) -> None:
    """The observer of PLAYBACK_CLOSED blocks, and another thread frees the context. wait_closed() and the close of a
    sync playback still return at their time limit. On a busy machine, wait_closed() may begin so late that the handle
    is already invalid; then it raises InvalidHandleError."""
    blocks, gate = threading.Event(), threading.Event()

    def slow(event: usher.Event) -> None:
        if event.type is E.PLAYBACK_CLOSED:
            blocks.set()
            gate.wait(60)

    context = usher.Context(proxy="")
    context.add_observer(slow)
    delegate = usher.SSPDelegate(
        context,
        license_url=stage.headend.license_url("clearkey"),
        ssm_url=stage.headend.ssm_url,
        sync_setup_teardown=call == "close",
        teardown_timeout_ms=1_000,
    )
    playback = usher.Player(context).play(delegate=delegate, clear=True)
    if call == "close":
        waiting: Any = stage.call(playback.close)
    else:
        playback.close()
        waiting = stage.call(playback.wait_closed, 1_000)
    assert blocks.wait(REAL_TIMEOUT_S)
    assert stage.still_waiting(waiting)
    free = stage.call(lib.usher_context_free, context._handle)
    context._has_handle = False
    error = waiting.exception(REAL_TIMEOUT_S)
    assert error is None if call == "close" else isinstance(error, usher.UsherTimeoutError | usher.InvalidHandleError)
    assert not free.done()
    gate.set()
    free.result(REAL_TIMEOUT_S)


def test_waitClosed_ofAClosedPlayback_withoutTime_isOK(stage: Stage, lib: Any) -> None:
    with usher.Context(proxy="") as context:
        delegate = usher.SSPDelegate(
            context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url
        )
        playback = usher.Player(context).play(delegate=delegate, clear=True)
        playback.close()
        playback.wait_closed()
        for timeout_ms in [0, 1, 2] * 200:
            assert lib.usher_playback_wait_closed(playback._handle, timeout_ms) == 0


def test_certificate_whoseServerHangs_endsWithThePlayback(stage: Stage) -> None:
    stage.headend.faults.add("certificate", Fault.stall("before"))
    playback = stage.play(
        delegate=stage.delegate("fairplay", certificate_url=stage.headend.certificate_url("fairplay"))
    )
    stage.settle()
    waiting = stage.call(playback.get_certificate)
    stage.headend.wait_held()
    playback.close()
    with pytest.raises(usher.ClosedError):
        waiting.result(5)


@pytest.mark.leaves_session
def test_calls_thatRaceWithTheEndOfTheirContext_return(stage: Stage, lib: Any) -> None:
    stage.headend.faults.add("teardown", Fault.stall("before"))
    playback = stage.play()
    stage.settle()
    calls = [stage.call(playback.wait_closed), stage.call(stage.context.shutdown, 5_000)]
    stage.headend.wait_held()
    free = stage.call(lib.usher_context_free, stage.context._handle)
    stage.context._has_handle = False
    for call in calls:
        error = call.exception(10)
        assert error is None or isinstance(error, usher.UsherError)
    free.result(10)
    stage.headend.wait_held(0)  # a teardown that the head-end still held now would end the session
