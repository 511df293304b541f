"""Tests the routes by which a resource loader gets a key: a fixed key server, an entitlement server, or a token URL in
the content."""

from __future__ import annotations

import json
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.fps import CDM, CONTENT, SKD, failed, host, loader, play, ready, skd
from usher import EventType
from usher.testing.headend import Fault
from usher.testing.headend.knobs import ExpressPlay, Sees


def events(stage: Stage) -> list[str]:
    stage.settle()
    return stage.events.types()


# ---- an operator's key server ----------------------------------------------------------------------------------------


def test_keyServer_fixed_givesTheKeyOfTheContent(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, license_url=stage.headend.fps_url)
    ckc = play(stage).get_resource(SKD)
    assert cdm.opened(ckc) == (KID, KEY)
    (sent,) = stage.sent("ckc")
    assert sent.header("content-type") == "application/octet-stream"
    assert sent.header("nv-authorizations") is None, "the key request carries no session token and no content token"
    (asked,) = cdm.asked
    assert asked.url == SKD
    assert json.loads(asked.content_id)["ContentId"] == CONTENT
    assert events(stage) == ["LICENSE"]


def test_keyServer_fixed_takesItsHeaders(stage_factory: StageFactory) -> None:
    from usher.testing.headend.knobs import Fps

    stage = stage_factory(headend={"fps": Fps(authorization="Bearer 1")})
    ready(stage)
    loader(stage, license_url=stage.headend.fps_url, extra_headers="Authorization: Bearer 1\nX-Device: tv")
    play(stage).get_resource(SKD)
    assert stage.sent("ckc")[0].header("x-device") == "tv"


def test_keyServer_derived_isTheUrlInsideTheSkdUrl(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON, allowed_hosts=[host(stage)])
    ckc = play(stage).get_resource(f"{skd(stage.headend.fps_url)}?x=1;{CONTENT}")
    assert cdm.opened(ckc) == (KID, KEY)
    assert stage.sent("ckc")[0].path == f"/TENANT1/fps/ckc?x=1;{CONTENT}"


def test_keyServer_derived_isHttpsByDefault(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"tls": True}, ca_file=None)
    assert stage.headend.ca_file is not None
    stage = stage_factory(headend=stage.headend, ca_file=stage.headend.ca_file)
    ready(stage)
    cdm = CDM()
    usher.ResourceLoader(
        stage.context, cdm, content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON, allowed_hosts=["127.0.0.1:*"]
    )
    ckc = play(stage).get_resource(f"{skd(stage.headend.fps_url)}?;{CONTENT}")
    assert cdm.opened(ckc) == (KID, KEY)


def test_keyServer_neitherFixedNorInTheUrl_isRefusedWithoutARequest(stage: Stage) -> None:
    ready(stage)
    loader(stage, allowed_hosts=["*.example.com"])
    error = failed(play(stage))
    assert isinstance(error, usher.NotAllowedError)
    assert stage.routes() == []


def test_keyServer_refuses_isToldWithItsCodeAndText(stage: Stage) -> None:
    ready(stage)
    loader(stage)
    stage.headend.faults.add("ckc", Fault.error(4000, message="not granted", status=403))
    error = failed(play(stage))
    assert isinstance(error, usher.RefusedError)
    assert (error.service_code, error.message, error.http_status) == (4000, "not granted", 403)
    assert (error.origin, error.operation) == (usher.Origin.LICENSE, usher.Operation.LICENSE)
    stage.settle()
    assert stage.events.error(EventType.LICENSE_ERROR).message == "not granted"


def test_keyServer_redirects_isNotFollowed(stage: Stage) -> None:
    ready(stage)
    loader(stage)
    stage.headend.faults.add("ckc", Fault.redirect(stage.headend.fps_url))
    assert isinstance(failed(play(stage)), usher.RedirectError)
    assert stage.routes() == ["ckc"]


# ---- the entitlement server ------------------------------------------------------------------------------------------


def test_entitlement_fixed_itsTokenUrlGivesTheKey(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)
    assert stage.routes() == ["entitlement", "rights"]
    asked = json.loads(stage.sent("entitlement")[0].body)
    assert asked["contentID"] == CONTENT
    assert (asked["version"], asked["requestType"]) == (1, 1)
    assert "customerCookie" not in asked
    assert stage.sent("rights")[0].query[0][0] == "ExpressPlayToken"


def test_entitlement_derived_isTheUrlInsideTheSkdUrl_andAsksForItsCid(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, route=usher.Route.ENTITLEMENT)
    url = f"{skd(stage.headend.entitlement_url)}?cid={CONTENT}"
    assert cdm.opened(play(stage).get_resource(url)) == (KID, KEY)
    sent = stage.sent("entitlement")[0]
    assert (sent.path, json.loads(sent.body)["contentID"]) == (f"/TENANT1/sees/entitlement?cid={CONTENT}", CONTENT)
    assert cdm.asked[0].content_id == CONTENT.encode(), "the content id of the SPC is the same"


def test_entitlement_derivedWithAnotherRule_theRuleSaysWhatNamesTheKey(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, route=usher.Route.ENTITLEMENT, content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON)
    assert cdm.opened(play(stage).get_resource(f"{skd(stage.headend.entitlement_url)}?cid=movie%2D1&x;{CONTENT}")) == (
        KID,
        KEY,
    )
    assert json.loads(stage.sent("entitlement")[0].body)["contentID"] == "movie-1"


def test_entitlement_eachQuestion_hasAMessageIdOfItsOwn(stage: Stage) -> None:
    ready(stage)
    loader(stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    playback = play(stage)
    for _ in range(3):
        playback.get_resource(SKD)
    assert len({json.loads(sent.body)["messageID"] for sent in stage.sent("entitlement")}) == 3


def test_entitlement_denied_isToldWithItsText(stage: Stage) -> None:
    ready(stage)
    stage.headend.deny(CONTENT, "not in your package", 17)
    cdm = CDM()
    loader(stage, cdm, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    error = failed(play(stage))
    assert isinstance(error, usher.RefusedError)
    assert (error.message, error.service_code) == ("not in your package", 17)
    assert (error.origin, error.operation) == (usher.Origin.ENTITLEMENT, usher.Operation.ENTITLEMENT)
    assert stage.routes() == ["entitlement"]
    assert not cdm.asked, "the library asks for no SPC after a denial"
    stage.settle()
    assert stage.events.error(EventType.LICENSE_ERROR).message == "not in your package"


def test_entitlement_deniedWithAStatus_isToldWithItsText(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"sees": Sees(denied_status=403)})
    ready(stage)
    stage.headend.deny(CONTENT, "not in your package", 17)
    loader(stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    error = failed(play(stage))
    assert isinstance(error, usher.RefusedError)
    assert (error.message, error.service_code, error.http_status) == ("not in your package", 17, 403)


def test_entitlement_allowedAgain_isAskedAgain(stage: Stage) -> None:
    ready(stage)
    stage.headend.deny(CONTENT, "no")
    loader(stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    playback = play(stage)
    assert isinstance(failed(playback), usher.RefusedError)
    stage.headend.allow(CONTENT)
    assert playback.get_resource(SKD)


def test_entitlement_answerToAnotherMessage_isNoAnswer(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"sees": Sees(message_id="wrong")})
    ready(stage)
    loader(stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    error = failed(play(stage))
    assert isinstance(error, usher.ProtocolError)
    assert (error.origin, error.message) == (
        usher.Origin.ENTITLEMENT,
        "the entitlement server answered another message",
    )
    assert stage.routes() == ["entitlement"], "the library did not use the token URL of this reply"


@pytest.mark.parametrize(
    ("answer", "wanted", "said"),
    [
        (Fault.non_json("<html>"), usher.ProtocolError, "is not JSON"),
        (Fault.empty_body(), usher.ProtocolError, "is not JSON"),
        (Fault.without("epTokenURL"), usher.ProtocolError, "named no token URL"),
        (Fault.fields(epTokenURL=7), usher.ProtocolError, "named no token URL"),
        (Fault.fields(epTokenURL=""), usher.ProtocolError, "named no token URL"),
        (Fault.fields(epTokenURL="https://127.0.0.1/\n"), usher.ProtocolError, "named no token URL"),
        (Fault.fields(version=2), usher.ProtocolError, "in a later version"),
        (Fault.without("isAllowed"), usher.RefusedError, "denied"),
        (Fault.fields(isAllowed="true"), usher.RefusedError, "denied"),
        (Fault.fields(epTokenURL="https://somewhere.example.com/"), usher.NotAllowedError, "allow-list"),
        (Fault.status(503), usher.HTTPStatusError, ""),
        (Fault.status(503) | Fault.fields(isAllowed=True), usher.HTTPStatusError, ""),
        (Fault.redirect("http://127.0.0.1:1/"), usher.RedirectError, ""),
        (Fault.drop("before"), usher.TransportError, ""),
        (Fault.oversized(10_000_000), usher.TooLargeError, ""),
    ],
    ids=lambda value: getattr(value, "label", getattr(value, "__name__", None)),
)
def test_entitlement_brokenAnswer_isAnErrorOfTheEntitlement(
    stage: Stage, answer: Fault, wanted: type[usher.UsherError], said: str
) -> None:
    ready(stage)
    loader(stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    stage.headend.faults.add("entitlement", answer)
    error = failed(play(stage))
    assert type(error) is wanted, error
    assert said in error.message
    assert error.operation is usher.Operation.ENTITLEMENT
    assert stage.routes() == ["entitlement"]


# ---- binding to a device ---------------------------------------------------------------------------------------------


def bound(stage: Stage, cookie: str | None) -> dict[str, Any]:
    """Returns the options of a loader whose entitlement server binds tokens to the device."""
    entitled = {"route": usher.Route.ENTITLEMENT, "entitlement_url": stage.headend.entitlement_url}
    return {**entitled, "device_binding": True, "customer_cookie": cookie}


def kinds(stage: Stage) -> list[tuple[int, str | None]]:
    return [
        (body["requestType"], body.get("customerCookie"))
        for body in (json.loads(sent.body) for sent in stage.sent("entitlement"))
    ]


def test_deviceBinding_takesTwoPasses_theSecondTokenIsGoodForThisDeviceOnly(stage: Stage) -> None:
    ready(stage)
    cdm = CDM(device=b"this tv")
    loader(stage, cdm, **bound(stage, "household-1"))
    playback = play(stage)
    assert cdm.opened(playback.get_resource(SKD)) == (KID, KEY)
    assert cdm.opened(playback.get_resource(SKD)) == (KID, KEY)
    assert kinds(stage) == [(2, "household-1"), (3, "household-1")]
    assert stage.routes() == ["entitlement", "rights", "entitlement", "rights"]

    stranger = CDM(device=b"another tv")
    token = dict(stage.sent("rights")[1].query)["ExpressPlayToken"]
    loader(stage, stranger, license_url=f"{stage.headend.rights_url}?ExpressPlayToken={token}")
    error = failed(playback)
    assert isinstance(error, usher.RefusedError)
    assert error.service_code == -4001


def test_deviceBinding_ofAnotherDevice_beginsAgain(stage: Stage) -> None:
    """The server has registered another device for this cookie, so it refuses the request (-4001). With its next
    request the library registers this device."""
    ready(stage)
    devices = iter([b"old tv", b"new tv", b"new tv", b"new tv"])

    def spc(request: usher.SPCRequest) -> bytes:
        return CDM(device=next(devices)).make(request)

    loader(stage, spc, **bound(stage, "household-1"))
    playback = play(stage)
    playback.get_resource(SKD)
    error = failed(playback)
    assert (type(error), error.service_code) == (usher.RefusedError, -4001)
    playback.get_resource(SKD)
    playback.get_resource(SKD)
    assert [kind for kind, _ in kinds(stage)] == [2, 3, 2, 3]


def test_deviceBinding_firstPassFails_isNotCountedAsRegistered(stage: Stage) -> None:
    ready(stage)
    cdm = CDM(device=b"tv")
    loader(stage, cdm, **bound(stage, "c"))
    stage.headend.faults.add("rights", Fault.status(503))
    playback = play(stage)
    assert isinstance(failed(playback), usher.HTTPStatusError)
    playback.get_resource(SKD)
    assert [kind for kind, _ in kinds(stage)] == [2, 2]


def test_deviceBinding_withoutACookie_isRefused(stage: Stage) -> None:
    for cookie in (None, "", "c" * 33):
        with pytest.raises(usher.InvalidArgumentError):
            loader(stage, **bound(stage, cookie))


def test_customerCookie_withoutBinding_isSentWithATimeBasedQuestion(stage: Stage) -> None:
    ready(stage)
    loader(
        stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url, customer_cookie="ä" * 16
    )
    play(stage).get_resource(SKD)
    assert kinds(stage) == [(1, "ä" * 16)]


# ---- the token URL in the content ------------------------------------------------------------------------------------


def token_url(stage: Stage) -> str:
    """Makes a URL as a packager writes it: the token URL with another scheme, and in the query, after a semicolon, the
    content id."""
    return skd(stage.headend.rights_token_url(CONTENT)) + f"&a=1;{CONTENT}"


def test_tokenUrl_inTheContent_onlyItsSchemeIsReplaced(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, route=usher.Route.TOKEN_URL, content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON)
    url = token_url(stage)
    assert cdm.opened(play(stage).get_resource(url)) == (KID, KEY)
    (sent,) = stage.sent("rights")
    assert "skd" + stage.headend.url[4:] + sent.path == url
    assert sent.header("content-type") == "application/octet-stream"


def test_tokenUrl_ofAnUnlistedHost_isRefusedWithoutARequest(stage: Stage) -> None:
    ready(stage)
    loader(
        stage,
        route=usher.Route.TOKEN_URL,
        content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON,
        allowed_hosts=["127.0.0.1"],
    )
    assert isinstance(failed(play(stage), token_url(stage)), usher.NotAllowedError), "the port is not in the allow-list"
    assert stage.routes() == []


TEXTS = {-2002: "the token has expired", -4010: "the token is invalid", -6004: "the CKC could not be made"}


@pytest.mark.parametrize("style", ["html", "json", "json-short", "json-error"])
@pytest.mark.parametrize(
    ("number", "text"), [(-2002, "token has expired"), (-4010, "token is not valid"), (-6004, "CKC generation failed")]
)
def test_tokenUrl_refused_isToldWithItsNumberAndText(
    stage_factory: StageFactory, style: str, number: int, text: str
) -> None:
    stage = stage_factory(headend={"expressplay": ExpressPlay(errors=style)})  # type: ignore[arg-type]
    ready(stage)
    loader(stage, route=usher.Route.TOKEN_URL, content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON)
    stage.headend.faults.add("rights", Fault.rights_error(number, text, style=style))  # type: ignore[arg-type]
    error = failed(play(stage), token_url(stage))
    assert isinstance(error, usher.RefusedError), error
    assert error.service_code == number
    assert error.message == (TEXTS[number] if style == "html" else text), "an HTML page has no message"
    assert error.origin is usher.Origin.LICENSE


def test_tokenUrl_usedUp_isRefusedTheSecondTime(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"expressplay": ExpressPlay(one_shot=True)})
    ready(stage)
    loader(stage, route=usher.Route.TOKEN_URL, content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON)
    playback, url = play(stage), token_url(stage)
    playback.get_resource(url)
    error = failed(playback, url)
    assert (type(error), error.service_code) == (usher.RefusedError, -4010)


def test_tokenUrl_ofAnEntitlementServer_isUsedOnceAndAskedForEachTime(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"expressplay": ExpressPlay(one_shot=True)})
    ready(stage)
    loader(stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    playback = play(stage)
    for _ in range(2):
        playback.get_resource(SKD)
    assert stage.routes() == ["entitlement", "rights"] * 2


def test_tokenUrl_echoedInAServersText_isNotTold(stage: Stage) -> None:
    ready(stage)
    loader(stage, route=usher.Route.TOKEN_URL, content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON)
    url = token_url(stage)
    token = url.split("ExpressPlayToken=")[1].split("&")[0]
    stage.headend.faults.add("rights", Fault.rights_error(-4010, f"token {token} is not valid", style="json"))
    error = failed(play(stage), url)
    assert token not in error.message
    stage.settle()
    assert token not in stage.events.error(EventType.LICENSE_ERROR).message
    assert not [line for line in stage.logs if token in line]
