"""Tests the licences of each key system, and the two ways to keep a session alive: heartbeats and renewals."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from usher.testing.headend import Fault, ckc, playready_license, widevine_license

E = usher.EventType
SYSTEMS = {
    "clearkey": usher.KeySystem.CLEARKEY,
    "fairplay": usher.KeySystem.FAIRPLAY,
    "playready": usher.KeySystem.PLAYREADY,
    "widevine": usher.KeySystem.WIDEVINE,
}
PAYLOAD = {
    "clearkey": usher.clear_key_request([KID]),
    "fairplay": bytes(range(256)) * 8,
    "playready": b"<soap:Envelope>\xc3\xa9</soap:Envelope>",
    "widevine": b"\x08\x01\x12" + bytes(range(256)),
}


def check(key_system: str, license: usher.License) -> None:
    """Checks that the server got the payload, and that the caller got the licence, both byte for byte."""
    payload = PAYLOAD[key_system]
    if key_system == "clearkey":
        assert license.clear_keys() == {KID: KEY}
    elif key_system == "fairplay":
        assert license.data == ckc(payload)
    elif key_system == "widevine":
        assert license.data == widevine_license(payload)
    else:
        assert base64.b64encode(playready_license(payload)) in license.data


@pytest.mark.parametrize("key_system", SYSTEMS)
def test_license_ofEachKeySystem_arrivesAndBeatsKeepItAlive(stage: Stage, key_system: str) -> None:
    playback = stage.play(key_system=key_system)
    stage.settle()
    license = playback.get_license(SYSTEMS[key_system], PAYLOAD[key_system])
    check(key_system, license)
    assert (license.period_ms, license.renew_type, license.type) == (
        60_000,
        usher.RenewType.HEARTBEAT,
        usher.LicenseType.REQUEST,
    )
    stage.advance(120_000)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "license", "heartbeat", "heartbeat", "teardown"]


HEADERS = {
    "clearkey": ("application/json", "application/json", None),
    "fairplay": ("application/octet-stream", "application/json", None),
    "playready": (
        "text/xml; charset=utf-8",
        None,
        '"http://schemas.microsoft.com/DRM/2007/03/protocols/AcquireLicense"',
    ),
    "widevine": ("application/json", "application/json", None),
}


@pytest.mark.parametrize("key_system", SYSTEMS)
def test_licenseRequest_ofEachKeySystem_hasItsHeaders(stage: Stage, key_system: str) -> None:
    playback = stage.play(key_system=key_system)
    stage.settle()
    playback.get_license(SYSTEMS[key_system], PAYLOAD[key_system])
    entry = stage.headend.journal.last("license")
    content_type, accept, action = HEADERS[key_system]
    assert (entry.method, entry.header("content-type"), entry.header("soapaction")) == ("POST", content_type, action)
    if accept:
        assert entry.header("accept") == accept


@pytest.mark.parametrize("key_system", ["clearkey", "fairplay", "playready"])
def test_session_enforced_isKeptAliveByRenewals(stage_factory: StageFactory, key_system: str) -> None:
    stage = stage_factory(headend={"enforced": {key_system}})
    asked: list[str] = []
    renewed: list[usher.License] = []

    def payload(request: usher.PayloadRequest) -> bytes:
        asked.append(request.key_system)
        return PAYLOAD[key_system]

    playback = stage.play(key_system=key_system, payload=payload, renewed=lambda p, license: renewed.append(license))
    stage.settle()
    license = playback.get_license(SYSTEMS[key_system], PAYLOAD[key_system])
    check(key_system, license)
    assert license.renew_type is usher.RenewType.ENFORCED
    stage.advance(120_000)
    playback.close()
    stage.settle()
    assert stage.seqs() == [
        ("setup", None),
        ("license", 1),
        ("license-renewal", 2),
        ("license-renewal", 3),
        ("teardown", 4),
    ]
    assert asked == [SYSTEMS[key_system].value] * 2
    assert len(renewed) == 2
    for one in renewed:
        check(key_system, one)
        assert one.type is usher.LicenseType.RENEWAL
    for entry in stage.sent("license-renewal"):
        assert entry.query_value("renew") == "true"
        assert entry.header("nv-authorizations") == entry.session_token.raw
    assert stage.events.types().count("KEPT_ALIVE") == 2


@pytest.mark.parametrize("key_system", ["clearkey", "fairplay", "playready"])
def test_session_enforcedWithoutPayloadCallback_asksTheHost(stage_factory: StageFactory, key_system: str) -> None:
    stage = stage_factory(headend={"enforced": {key_system}})
    playback = stage.play(key_system=key_system)
    stage.settle()
    playback.get_license(SYSTEMS[key_system], PAYLOAD[key_system])
    stage.advance(60_000)
    stage.events.only(E.RENEWAL_DUE)
    license = playback.get_license(SYSTEMS[key_system], PAYLOAD[key_system], type=usher.LicenseType.RENEWAL)
    check(key_system, license)
    playback.close()
    stage.settle()
    assert stage.seqs() == [("setup", None), ("license", 1), ("license-renewal", 2), ("teardown", 3)]


def test_session_ofWidevineEnforced_isRenewedByTheCdmAtTheSessionManager(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"widevine"}, "grace": 3.0})
    playback = stage.play(key_system="widevine")
    stage.settle()
    license = playback.get_license(usher.KeySystem.WIDEVINE, PAYLOAD["widevine"])
    assert license.renew_type is usher.RenewType.CDM
    stage.advance(59_000)
    renewal = playback.get_license(usher.KeySystem.WIDEVINE, b"renew me", type=usher.LicenseType.RENEWAL)
    assert renewal.data == widevine_license(b"renew me")
    assert renewal.type is usher.LicenseType.RENEWAL
    stage.advance(61_000)  # the library has no timer here, so nothing happens at the end of a period
    playback.close()
    stage.settle()
    assert stage.seqs() == [("setup", None), ("license", 1), ("renewal-wv", 1), ("teardown", 2)]
    entry = stage.headend.journal.last("renewal-wv")
    assert entry.path == "/TENANT1/ssm/v1/renewal-license-wv"
    assert json.loads(entry.body) == {"challenge": base64.b64encode(b"renew me").decode()}


def test_widevine_raw_sendsAndTakesOctets(stage: Stage) -> None:
    playback = stage.play(delegate=stage.delegate("widevine", wire_format=usher.WireFormat.RAW))
    stage.settle()
    check("widevine", playback.get_license(usher.KeySystem.WIDEVINE, PAYLOAD["widevine"]))
    entry = stage.headend.journal.last("license")
    assert (entry.body, entry.header("content-type")) == (PAYLOAD["widevine"], "application/octet-stream")


def test_widevine_auto_sendsJson(stage: Stage) -> None:
    playback = stage.play(key_system="widevine")
    stage.settle()
    playback.get_license(usher.KeySystem.WIDEVINE, PAYLOAD["widevine"])
    assert json.loads(stage.headend.journal.last("license").body) == {
        "challenge": base64.b64encode(PAYLOAD["widevine"]).decode()
    }


def test_widevine_serviceCertificateRequest_isAnsweredRaw(stage: Stage) -> None:
    playback = stage.play(key_system="widevine")
    stage.settle()
    assert playback.get_license(usher.KeySystem.WIDEVINE, b"\x08\x04").data.startswith(b"WVSC")


@pytest.mark.parametrize(
    "settings",
    [
        {"fairplay_reply": "raw"},
        *({"fairplay_base64": form} for form in ("padded", "unpadded", "urlsafe", "urlsafe-unpadded")),
    ],
    ids=str,
)
def test_fairplay_replyInAnyForm_isTheCkc(stage_factory: StageFactory, settings: dict[str, Any]) -> None:
    stage = stage_factory(headend=settings)
    playback = stage.play(key_system="fairplay")
    stage.settle()
    check("fairplay", playback.get_license(usher.KeySystem.FAIRPLAY, PAYLOAD["fairplay"]))
    assert stage.headend.journal.last("license").body == PAYLOAD["fairplay"]


@pytest.mark.parametrize("form", [str.upper, str.lower, lambda s: "urn:uuid:" + s], ids=["upper", "lower", "urn"])
def test_keySystem_inAnySpelling_isKnown(stage: Stage, form: Any) -> None:
    playback = stage.play()
    stage.settle()
    check("clearkey", playback.get_license(form(usher.KeySystem.CLEARKEY.value), PAYLOAD["clearkey"]))


def test_certificate_isFetchedOnceAndAFailureIsNotRemembered(stage: Stage) -> None:
    stage.headend.faults.add("certificate", Fault.status(500))
    playback = stage.play(
        delegate=stage.delegate("fairplay", certificate_url=stage.headend.certificate_url("fairplay"))
    )
    stage.settle()
    with pytest.raises(usher.HTTPStatusError) as caught:
        playback.get_certificate()
    assert caught.value.origin is usher.Origin.CERTIFICATE
    first = playback.get_certificate()
    assert first[:2] == b"\x30\x82"
    assert playback.request_certificate().result(5) == first
    assert stage.headend.journal.count("certificate") == 2
    entry = stage.headend.journal.last("certificate")
    assert (entry.method, entry.header("nv-authorizations")) == ("GET", None)


def test_certificate_withoutAUrl_isAStateError(stage: Stage) -> None:
    playback = stage.play()
    stage.settle()
    with pytest.raises(usher.StateError):
        playback.get_certificate()
    with pytest.raises(usher.StateError):
        playback.request_certificate()


def test_license_askedBeforeTheSession_waitsForIt(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.stall())
    playback = stage.play()
    future = playback.request_license(usher.KeySystem.CLEARKEY, PAYLOAD["clearkey"])
    stage.headend.wait_held()
    assert not future.done()
    stage.headend.release()
    check("clearkey", future.result(5))
    assert stage.routes() == ["setup", "license"]


def test_license_onAStalledServer_timesOutOnTheContextsClock(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.stall())
    playback = stage.play()
    stage.settle()
    asking = stage.call(playback.get_license, usher.KeySystem.CLEARKEY, PAYLOAD["clearkey"], timeout_ms=4_000)
    stage.headend.wait_held()
    stage.wait_timer(4_000)
    stage.advance(4_000)
    with pytest.raises(usher.UsherTimeoutError) as caught:
        asking.result(5)
    assert caught.value.operation is usher.Operation.LICENSE


BAD_REPLIES = {
    "html": (Fault.html_page(), {"clearkey", "fairplay", "widevine", "playready"}),
    "not JSON": (Fault.non_json("hello"), {"clearkey", "widevine"}),
    "no license": (Fault.reply(200, body={"status": "OK"}), {"clearkey", "fairplay", "widevine"}),
    "empty": (Fault.empty_body(), {"clearkey", "fairplay", "widevine", "playready"}),
    "bad base64": (Fault.reply(200, body={"CkcMessage": "*", "license": ["*"]}), {"fairplay", "widevine"}),
}


@pytest.mark.parametrize(
    ("kind", "key_system"), [(kind, system) for kind, (_, systems) in BAD_REPLIES.items() for system in sorted(systems)]
)
def test_licenseReply_unreadable_isAProtocolError(stage: Stage, kind: str, key_system: str) -> None:
    stage.headend.faults.add("license", BAD_REPLIES[kind][0])
    playback = stage.play(key_system=key_system)
    stage.settle()
    with pytest.raises(usher.ProtocolError) as caught:
        playback.get_license(SYSTEMS[key_system], PAYLOAD[key_system])
    assert (caught.value.origin, caught.value.operation) == (usher.Origin.LICENSE, usher.Operation.LICENSE)
    stage.settle()
    stage.events.only(E.LICENSE_ERROR)


def test_license_refusedWith1007_isNotTheSessionLimit(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.error(1007))
    playback = stage.play(key_system="widevine")
    stage.settle()
    with pytest.raises(usher.RefusedError) as caught:
        playback.get_license(usher.KeySystem.WIDEVINE, PAYLOAD["widevine"])
    assert not isinstance(caught.value, usher.LimitError)
    assert (caught.value.service_code, caught.value.origin) == (1007, usher.Origin.LICENSE)


def test_license_tooLarge_isRefused(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.oversized(2 * 1024 * 1024))
    playback = stage.play()
    stage.settle()
    with pytest.raises(usher.TooLargeError):
        playback.get_license(usher.KeySystem.CLEARKEY, PAYLOAD["clearkey"])


@pytest.mark.breaks_rules("late-beat")
def test_renewal_failed_isAHeartbeatErrorAndTheFlagIsReset(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"fairplay"}, "grace": 10.0})
    playback = stage.play(key_system="fairplay", payload=lambda request: PAYLOAD["fairplay"])
    stage.settle()
    playback.get_license(usher.KeySystem.FAIRPLAY, PAYLOAD["fairplay"])
    stage.headend.faults.add("license-renewal", Fault.error(4000))
    stage.advance(60_000)
    assert stage.events.error(E.HEARTBEAT_ERROR).operation is usher.Operation.RENEWAL
    again = stage.play(key_system="fairplay")
    stage.settle()
    assert again.get_license(usher.KeySystem.FAIRPLAY, PAYLOAD["fairplay"]).data
    entry = stage.headend.journal.last()
    assert (entry.route, entry.query_value("renew"), entry.header("nv-authorizations").count(",")) == (
        "license",
        None,
        1,
    )


# ---- the token callback ----------------------------------------------------------------------------------------------


def test_furtherLicense_withTokenCallback_isASessionWithTheNewToken(stage: Stage) -> None:
    fresh = stage.headend.content_token(content_id="content-2")
    playback = stage.play(token_callback=lambda request: fresh)
    stage.settle()
    stage.clear_keys(playback)
    stage.clear_keys(playback)
    assert stage.routes() == ["setup", "license", "teardown", "setup", "license"]
    assert stage.headend.journal.last("license").header("nv-authorizations").startswith(fresh + ",")
    assert len(stage.headend.sessions.active()) == 1


def test_furtherLicense_withoutTokenCallback_usesTheSessionAgain(stage: Stage) -> None:
    playback = stage.play()
    stage.settle()
    stage.clear_keys(playback)
    stage.clear_keys(playback)
    assert stage.routes() == ["setup", "license", "license"]


def test_play_withoutToken_asksTheCallback(stage: Stage) -> None:
    token = stage.headend.content_token()
    delegate = stage.delegate(token_callback=lambda request: token)
    playback = stage.player.play(delegate=delegate)
    stage.settle()
    assert stage.clear_keys(playback)
    assert stage.headend.journal.last("setup").header("nv-authorizations") == token


def test_tokenCallback_answersLater_fromAnyThread(stage: Stage) -> None:
    kept: list[usher.TokenRequest] = []

    def later(request: usher.TokenRequest) -> Any:
        kept.append(request)
        return usher.LATER

    stage.player.play(delegate=stage.delegate(token_callback=later), tag="mine")
    stage.settle()
    assert stage.routes() == []
    assert kept[0].tag == "mine"
    with pytest.raises(usher.InvalidArgumentError):
        kept[0].answer("")
    kept[0].answer(stage.headend.content_token())
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED"]
    with pytest.raises(usher.InvalidCompletionError):
        kept[0].answer("again")


def test_tokenCallback_returnsAFuture_isAnsweredByIt(stage: Stage) -> None:
    from concurrent.futures import Future

    future: Future[str] = Future()
    stage.player.play(delegate=stage.delegate(token_callback=lambda request: future))
    stage.settle()
    future.set_result(stage.headend.content_token())
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED"]


def test_tokenCallback_answersAfterItsDeadline_changesNothing(stage: Stage) -> None:
    kept: list[usher.TokenRequest] = []

    def later(request: usher.TokenRequest) -> Any:
        kept.append(request)
        return usher.LATER

    playback = stage.player.play(delegate=stage.delegate(token_callback=later))
    future = playback.request_license(usher.KeySystem.CLEARKEY, PAYLOAD["clearkey"])
    stage.advance(5_000)
    with pytest.raises(usher.UsherError) as caught:
        future.result(5)
    assert isinstance(caught.value, (usher.NoTokenError, usher.SessionError))
    assert isinstance(stage.events.error(E.SETUP_ERROR), usher.NoTokenError)
    with pytest.raises(usher.InvalidCompletionError):
        kept[0].answer(stage.headend.content_token())
    playback.free()
    with pytest.raises(usher.InvalidCompletionError):
        kept[0].fail()
    assert stage.routes() == []


@pytest.mark.parametrize("answer", [lambda request: None, lambda request: request.fail()], ids=["None", "fail"])
def test_tokenCallback_withoutAToken_isNoToken(stage: Stage, answer: Any) -> None:
    playback = stage.player.play(delegate=stage.delegate(token_callback=answer))
    stage.settle()
    assert isinstance(stage.events.error(E.SETUP_ERROR), usher.NoTokenError)
    with pytest.raises(usher.NoTokenError):
        playback.wait_session()


def test_play_withNeitherTokenNorCallback_isNoToken(stage: Stage) -> None:
    """If the playback has neither a token nor a token callback, set-up fails with NO_TOKEN after ``token_wait_ms``."""
    stage.player.play(delegate=stage.delegate())
    stage.advance(4999)
    assert stage.events.all(E.SETUP_ERROR) == []
    stage.advance(1)
    assert isinstance(stage.events.error(E.SETUP_ERROR), usher.NoTokenError)
