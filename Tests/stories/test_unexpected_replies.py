"""Servers send invalid replies, or close connections before the reply."""

from __future__ import annotations

from typing import Any

import pytest

import usher
from stage import Stage, StageFactory
from usher.testing.doors import Proxy
from usher.testing.headend import Fault, HeadEnd

E = usher.EventType


def certified(stage: Stage) -> usher.Playback:
    """Starts a playback whose delegate has a certificate URL. Returns the playback when its session is set up."""
    delegate = stage.delegate("fairplay", certificate_url=stage.headend.certificate_url("fairplay"))
    playback = stage.play(delegate=delegate)
    stage.settle()
    return playback


# ---- whether the head-end may have read the request ------------------------------------------------------------------


@pytest.mark.leaves_session
def test_setup_whoseConnectionDiesAndTheNextIsRefused_mayLeaveAnOrphan(stage: Stage) -> None:
    stage.play(tag="before", player=usher.Player(stage.context)).close()
    stage.settle()
    stage.headend.faults.add("setup", Fault.stall("after"))
    stage.play(tag="a")
    stage.headend.wait_held()
    stage.headend.stop()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR, "a")
    assert (error.status, error.orphan_possible) == (usher.Status.TRANSPORT, True)


def test_setup_afterAnOutage_isNotSpoiltByIt(stage: Stage) -> None:
    playback = stage.play(tag="before", player=usher.Player(stage.context))
    stage.settle()
    stage.headend.faults.add("license", Fault.stall("before"))
    playback.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([b"0123456789abcdef"]))
    stage.headend.wait_held()
    stage.headend.stop()
    stage.settle()
    stage.headend.start()
    stage.play(tag="after")
    stage.settle()
    assert stage.events.types("after") == ["SESSION_STARTED"]


def test_setup_deniedByTheProxy_leavesNoOrphan(stage_factory: StageFactory) -> None:
    with Proxy() as proxy:
        stage = stage_factory(headend={"tls": True}, proxy=proxy.address)
        proxy.denied.add(stage.headend.port)
        stage.play()
        stage.settle()
        assert not stage.events.error(E.SETUP_ERROR).orphan_possible


# ---- a session token that was lost -----------------------------------------------------------------------------------


@pytest.mark.leaves_session
def test_heartbeat_whoseNewTokenIsLost_mayLeaveAnOrphan(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.drop("after"))
    playback = stage.play()
    stage.advance(61_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.service_code, error.orphan_possible) == (1006, True)
    playback.close()
    stage.settle()
    assert stage.events.only(E.PLAYBACK_CLOSED).orphan_possible


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("given", [7, ["token"], {"token": "x"}, True, "a\r\nX: y"], ids=str)
def test_heartbeat_answeredWithATokenThatIsNone_isTriedAgain(stage_factory: StageFactory, given: Any) -> None:
    stage = stage_factory(headend={"token_rotation": "accept_previous"})
    stage.headend.faults.add("heartbeat", Fault.fields(sessionToken=given))
    stage.play()
    stage.advance(61_000)
    assert stage.events.types() == ["SESSION_STARTED", "KEPT_ALIVE"]
    assert [seq for route, seq in stage.seqs() if route == "heartbeat"] == [1, 1]
    stage.advance(59_000)
    assert stage.seqs()[-1] == ("heartbeat", 3)


# ---- invalid replies -------------------------------------------------------------------------------------------------


@pytest.mark.leaves_session
@pytest.mark.parametrize("status", [200, 201, 204])
def test_setup_answeredWithoutAToken_isToldWithItsHTTPStatus(stage: Stage, status: int) -> None:
    body: dict[str, Any] = {} if status == 204 else {"body": {"heartbeat": 60}}
    stage.headend.faults.add("setup", Fault.reply(status, processed=True, **body))
    stage.play()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR)
    assert (error.status, error.http_status, error.orphan_possible) == (usher.Status.PROTOCOL, status, True)


@pytest.mark.breaks_rules("after-teardown")
def test_teardown_answeredByASignInPage_isTriedAgain(stage: Stage) -> None:
    stage.headend.faults.add("teardown", Fault.html_page())
    playback = stage.play()
    stage.settle()
    playback.close()
    stage.advance(1000)
    assert stage.routes() == ["setup", "teardown", "teardown"]
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_ENDED", "PLAYBACK_CLOSED"]


SOAP = (
    b"<s:Envelope><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>overloaded</faultstring></s:Fault>"
    b"</s:Body></s:Envelope>"
)


@pytest.mark.parametrize(
    "route", ["setup", "license", "heartbeat", pytest.param("teardown", marks=pytest.mark.leaves_session)]
)
def test_soapFault_ofEachOperation_isTheMessageOfTheError(stage: Stage, route: str) -> None:
    """A server answers with HTTP 400 and a SOAP fault; the message of the error is the fault's code and its reason
    (protocol.md: Licences)."""
    stage.headend.faults.add(route, Fault.reply(400, body=SOAP, content_type="text/xml"), always=True)
    playback = stage.play()
    playback.request_license(usher.KeySystem.WIDEVINE, b"challenge")
    stage.advance(60_000)
    playback.close()
    stage.advance(60_000)
    kind = E.LICENSE_ERROR if route == "license" else E[f"{route.upper()}_ERROR"]
    error = stage.events.all(kind)[0].error
    assert error is not None and (error.http_status, error.message) == (400, "s:Server overloaded")


@pytest.mark.parametrize("fault", [Fault.html_page(), Fault.short_length()], ids=["sign-in page", "cut short"])
def test_certificate_thatIsNone_isNotKept(stage: Stage, fault: Fault) -> None:
    stage.headend.faults.add("certificate", fault)
    playback = certified(stage)
    with pytest.raises(usher.ProtocolError):
        playback.get_certificate()
    whole = playback.get_certificate()
    assert whole[:2] == b"\x30\x82" and playback.get_certificate() == whole
    assert stage.headend.journal.count("certificate") == 2


def test_certificate_ofASilentServer_isTheServersFault(stage: Stage) -> None:
    stage.headend.faults.add("certificate", Fault.stall())
    playback = certified(stage)
    asked = playback.request_certificate()
    stage.headend.wait_held()
    stage.advance(10_000)
    error = asked.exception(5)
    assert isinstance(error, usher.UsherTimeoutError)
    assert error.origin is usher.Origin.CERTIFICATE


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


@pytest.mark.parametrize("errors", [5, "text", True, {"errorCode": 1007}, []])
def test_setup_whoseErrorsAreNoArray_isRefused_andTheHostContinues(stage: Stage, errors: Any) -> None:
    """A reply has another JSON value where the library expects an array. The library must check this, because json-c
    ends the process if a program reads an element of a value that is not an array."""
    stage.headend.faults.add(
        "setup", Fault.error(7, status=500) | Fault.without("errorCode", "message") | Fault.fields(errors=errors)
    )
    stage.play(tag="a")
    stage.settle()
    assert stage.events.error(E.SETUP_ERROR, "a").status is usher.Status.HTTP
