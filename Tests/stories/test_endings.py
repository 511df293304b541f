"""How playbacks and contexts end: what is told, in which order, and what is waited for."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import usher
from stage import CHALLENGE, REAL_TIMEOUT_S, Stage
from usher.testing.headend import Fault

E = usher.EventType


def test_context_shutDownWhileABeatNeverAnswers_returnsWithTheLastTeardown(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.stall("before"))
    playback = stage.play()
    stage.advance(60_000)
    stage.headend.wait_held()
    closing = stage.call(stage.context.shutdown)
    stage.until(lambda: playback.session_state is usher.SessionState.ENDED)
    stage.advance(3_000)
    assert stage.routes() == ["setup", "heartbeat", "teardown"]
    assert closing.result(REAL_TIMEOUT_S) == 0, "the beat that is still under way holds no slot"
    stage.headend.release()


def test_contextClosed_whileASetupIsOnItsWay_givesBackWhatItBrings(stage: Stage) -> None:
    """Also after PLAYBACK_CLOSED was told: freeing waits, within its six seconds, for a reply that may bring a slot's token."""
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


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_contextClosed_whileALicenceNeverComes_waitsNoLongerThanForItsSlot(stage: Stage, kind: str) -> None:
    """V1 tears down at the cap with the token it has; V2 leaves the session: whatever the licence's reply brings changes nothing."""
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


class Slow(usher.CommonDelegate):
    """Its steps answer later, or never."""

    def certificate(self, call: Any) -> Any:
        return usher.LATER

    def content_identifier(self, call: Any) -> Any:
        return usher.LATER


@pytest.mark.parametrize("what", ["certificate", "certificate step", "content identifier step"])
def test_close_beforeWhatWasAskedForCame_endsTheRequestBeforeItTellsTheEnd(stage: Stage, what: str) -> None:
    """After PLAYBACK_CLOSED nothing is told of it (docs/threading.md: Callbacks)."""
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
    """Nothing is left to tell of this playback, so nothing is waited for."""
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
