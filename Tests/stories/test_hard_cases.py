"""Cases that went wrong once: each story failed before its mend."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import usher
from stage import KID, Stage, StageFactory
from usher.testing.headend import Fault, HeadEnd

E = usher.EventType


def challenge() -> bytes:
    return usher.clear_key_request([KID])


# ---- the newest token -----------------------------------------------------------------------------------------------------


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
    request = playback.request_license(usher.KeySystem.CLEARKEY, challenge())
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


# ---- zapping and closing ----------------------------------------------------------------------------------------------------


def test_zap_whileASessionIsReplaced_startsTheNextItem(stage: Stage) -> None:
    first = stage.play(token_callback=lambda request: stage.headend.content_token(), tag="first")
    stage.settle()
    stage.clear_keys(first)
    stage.headend.faults.add("teardown", Fault.stall("after"))
    first.request_license(usher.KeySystem.CLEARKEY, challenge())
    stage.headend.wait_held()
    stage.advance(3_500)
    stage.play(tag="second")
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert "SESSION_STARTED" in stage.events.types("second")


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
    calls = [stage.call(playback.wait_closed), stage.call(stage.context.shutdown, 20_000)]
    stage.headend.wait_held()
    stage.call(lib.usher_context_free, stage.context._handle)
    stage.context._has_handle = False
    for call in calls:
        error = call.exception(10)
        assert error is None or isinstance(error, usher.UsherError)


# ---- limits ------------------------------------------------------------------------------------------------------------------


def test_setup_refusedJustBeforeOurOwnTeardownEnded_isTriedOnceMore(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    first = stage.play(player=usher.Player(stage.context))
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall("before"))
    stage.headend.faults.add("setup", Fault.stall("after"))
    first.close()
    stage.headend.wait_held()
    stage.play(tag="second")
    stage.headend.wait_held(2)
    stage.headend.release("teardown")
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert stage.events.types("second") == ["SESSION_STARTED"]


def test_setup_refusedWhileAnotherHeadEndHangs_waitsForItsOwnOnly(
    stage_factory: StageFactory, headend_factory: Any
) -> None:
    stage = stage_factory(headend={"limit": 1})
    other: HeadEnd = headend_factory(period_s=60)
    elsewhere = stage.delegate(license_url=other.license_url("clearkey"), ssm_url=other.ssm_url)
    foreign = stage.play(other.content_token(), delegate=elsewhere, player=usher.Player(stage.context))
    first = stage.play(player=usher.Player(stage.context))
    stage.settle()
    other.faults.add("teardown", Fault.stall("before"))
    foreign.close()
    other.wait_held()
    stage.headend.faults.add("teardown", Fault.stall("before"))
    first.close()
    stage.headend.wait_held()
    stage.play(tag="second")
    stage.headend.journal.wait_for(2, answered=True)
    stage.headend.release()
    stage.events.wait(E.SESSION_STARTED, "second")
    other.release()


# ---- replies -------------------------------------------------------------------------------------------------------------------


@pytest.mark.leaves_session
def test_heartbeat_refusedInA200_isRefused(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.reply(200, body={"errorCode": 1006, "message": "gone"}))
    stage.play()
    stage.advance(60_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.http_status, error.service_code) == (200, 1006)


def test_setup_refusedInA200_isTheLimit(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.reply(200, body={"errorCode": 1007, "message": "too many"}))
    stage.play()
    stage.settle()
    assert isinstance(stage.events.error(E.SETUP_ERROR), usher.LimitError)


@pytest.mark.breaks_rules("late-beat")
def test_heartbeat_redirectedOnce_isTriedAgain(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.redirect("http://127.0.0.1/login"))
    stage.play()
    stage.advance(62_000)
    assert stage.events.types() == ["SESSION_STARTED", "KEPT_ALIVE"]


@pytest.mark.leaves_session
def test_teardown_toldToWaitADay_doesNot(stage: Stage) -> None:
    stage.headend.faults.add("teardown", Fault.status(503, retry_after=86_400))
    playback = stage.play()
    stage.settle()
    playback.close()
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED", "TEARDOWN_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"]


@pytest.mark.leaves_session
def test_tokens_ofAnyShape_areKeptOutOfWhatTheServerSays(stage: Stage) -> None:
    opaque = "6f1c2f0e-6f5b-4a53"
    stage.headend.faults.add("setup", Fault.fields(sessionToken=opaque))
    stage.headend.faults.add(
        "heartbeat", Fault.reply(400, body={"errorCode": 1006, "message": f"session {opaque} unknown"})
    )
    stage.play()
    stage.advance(60_000)
    assert str(stage.events.error(E.HEARTBEAT_ERROR)).count("[redacted]") == 1
    assert not any(opaque in line for line in stage.logs)


def test_renewals_missed_areAskedForEveryPeriod(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"clearkey"}, "grace": 50.0})
    playback = stage.play()
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(300_000)
    assert [e.time_ms for e in stage.events.all(E.RENEWAL_DUE)] == [60_000, 120_000, 180_000, 240_000, 300_000]


# ---- the environment -----------------------------------------------------------------------------------------------------------

PROXIED = """
import sys, usher
with usher.Context(clock="manual") as context:
    delegate = usher.SSPDelegate(context, license_url=sys.argv[1], ssm_url=sys.argv[1])
    playback = usher.Player(context).play("SECRET-CONTENT-TOKEN", delegate=delegate)
    context.settle()
"""


def test_loopback_inPlainHttp_bypassesTheEnvironmentsProxy(lib: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy, socket.create_server(("127.0.0.1", 0)) as closed:
        proxy.settimeout(0.2)
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/x"
        closed.close()
        package = str(Path(usher.__file__).parents[1])
        environment = {
            **os.environ,
            "http_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}",
            "no_proxy": "",
            "PYTHONPATH": package,
        }
        subprocess.run([sys.executable, "-c", PROXIED, url], env=environment, timeout=30, check=True)
        with pytest.raises(TimeoutError):
            proxy.accept()
