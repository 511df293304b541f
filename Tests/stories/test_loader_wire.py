"""Tests the fields of an SPC, all encodings of key requests and replies, and replies that contain no CKC."""

from __future__ import annotations

import base64
import json

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.fps import CDM, CONTENT, SKD, failed, loader, play, ready
from usher.testing import fairplay
from usher.testing.headend import Fault
from usher.testing.headend.knobs import Fps
from usher.testing.headend.routes.fps_wire import read_key_request

FORM, JSON = usher.FPSRequest.FORM, usher.FPSRequest.JSON


@pytest.mark.parametrize(
    ("options", "form", "kind"),
    [
        ({}, "raw", "application/octet-stream"),
        ({"request_format": FORM}, "form", "application/x-www-form-urlencoded"),
        (
            {"request_format": FORM, "spc_urlencode": usher.URLEncode.NONE},
            "form-plain",
            "application/x-www-form-urlencoded",
        ),
        (
            {"request_format": FORM, "spc_urlencode": usher.URLEncode.WHOLE},
            "form-whole",
            "application/x-www-form-urlencoded",
        ),
        ({"request_format": usher.FPSRequest.BASE64}, "base64", "text/plain"),
        ({"request_format": JSON}, "json", "application/json"),
    ],
    ids=["raw", "form", "form, nothing coded", "form, whole coded", "base64", "json"],
)
def test_spc_inEveryEncoding_arrivesWhole(
    stage_factory: StageFactory, options: dict[str, object], form: str, kind: str
) -> None:
    taken = (
        {form, "form"} if form == "form-plain" else {form}
    )  # base64 without "+", "/" and "=" is the same with and without percent-coding
    stage = stage_factory(headend={"fps": Fps(requests=frozenset(taken))})  # type: ignore[arg-type]
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, **options)
    playback = play(stage)
    for _ in range(8):  # the nonce makes each base64 text different
        assert cdm.opened(playback.get_resource(SKD)) == (KID, KEY)
    sent = stage.sent("ckc")
    assert {str(one.header("content-type")).split(";")[0] for one in sent} == {kind}
    assert {read_key_request(one.header("content-type"), one.body).form for one in sent} <= taken
    assert form != "form-plain" or not [one for one in sent if b"%" in one.body]


@pytest.mark.parametrize("encoding", [FORM, JSON])
def test_fields_ofFormAndJson_areNamedAsTold(stage_factory: StageFactory, encoding: usher.FPSRequest) -> None:
    stage = stage_factory(headend={"fps": Fps(spc_field="challenge", asset_field="asset Id&1")})
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, request_format=encoding, spc_field="challenge", content_id_field="asset Id&1")
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)
    sent = stage.sent("ckc")[0]
    fields = read_key_request(sent.header("content-type"), sent.body, "challenge").fields
    assert json.loads(fields["asset Id&1"])["ContentId"] == CONTENT


@pytest.mark.parametrize(
    "option", [{"spc_field": ""}, {"content_id_field": ""}, {"spc_field": "x" * 257}, {"spc_field": "a\0b"}]
)
def test_fieldName_thatIsNone_isRefused(stage_factory: StageFactory, option: dict[str, str]) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage_factory(), request_format=FORM, **option)


def test_contentIdField_thatIsNoText_failsInJsonOnly(stage_factory: StageFactory) -> None:
    """A form can contain an identifier of any bytes, percent-coded. JSON cannot contain such an identifier, so a load
    with JSON fails."""
    stage = stage_factory()
    ready(stage)
    url = "skd://" + base64.b64encode(b"\xff\xfe\x00" * 6).decode()
    rule = usher.ContentIDRule.DECODED_BASE64
    loader(stage, request_format=JSON, content_id_field="assetId", content_id_rule=rule)
    assert isinstance(failed(play(stage), url), usher.CallbackError)
    assert stage.routes() == []
    loader(stage, request_format=FORM, content_id_field="assetId", content_id_rule=rule)
    failed(play(stage), url)  # fails: the head-end does not know the content
    assert b"assetId=%FF%FE%00" in stage.sent("ckc")[0].body


# ---- the reply -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coded", ["padded", "unpadded", "urlsafe", "urlsafe-unpadded"])
@pytest.mark.parametrize(
    ("reply", "path", "options"),
    [
        ("raw", "ckc", {}),
        ("raw", "ckc", {"response_format": usher.FPSResponse.RAW}),
        ("json", "CkcMessage", {}),
        ("json", "ckc", {}),
        ("json", "License", {}),
        ("json", "ckcMessage", {}),
        ("json", "ckc", {"response_format": usher.FPSResponse.JSON}),
        ("json", "data.key.ckc", {"response_path": "data.key.ckc"}),
        ("json", "data.key.ckc", {"response_path": "data.key.ckc", "response_format": usher.FPSResponse.JSON}),
        ("xml", "ckc", {}),
        ("xml", "ckc", {"response_format": usher.FPSResponse.ELEMENT}),
        ("base64", "ckc", {}),
        ("base64", "ckc", {"response_format": usher.FPSResponse.BASE64}),
    ],
    ids=str,
)
def test_ckc_inEveryEncoding_isUnwrapped(
    stage_factory: StageFactory, reply: str, path: str, options: dict[str, object], coded: str
) -> None:
    stage = stage_factory(headend={"fps": Fps(reply=reply, reply_path=path, base64=coded)})  # type: ignore[arg-type]
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, **options)
    playback = play(stage)
    for _ in range(4):
        assert cdm.opened(playback.get_resource(SKD)) == (KID, KEY)


NO_CKC: list[tuple[str, dict[str, object], dict[str, object], type[usher.UsherError]]] = [
    ("no bytes", {"body": b""}, {}, usher.ProtocolError),
    ("no bytes, raw", {"body": b""}, {"response_format": usher.FPSResponse.RAW}, usher.ProtocolError),
    ("web page", {"body": "<!DOCTYPE html><html>sign in</html>"}, {}, usher.ProtocolError),
    ("text", {"body": "please sign in"}, {}, usher.ProtocolError),
    ("json without the member", {"body": {"key": "AAAA"}}, {}, usher.ProtocolError),
    ("json of a number", {"body": {"ckc": 7}}, {}, usher.ProtocolError),
    ("json of null", {"body": {"ckc": None}}, {}, usher.ProtocolError),
    ("json, no base64", {"body": {"ckc": "$$$$"}}, {}, usher.ProtocolError),
    ("json, empty", {"body": {"ckc": ""}}, {}, usher.ProtocolError),
    ("json, broken", {"body": '{"ckc": "AA'}, {}, usher.ProtocolError),
    ("json, another path", {"body": {"ckc": "AAAA"}}, {"response_path": "data.ckc"}, usher.ProtocolError),
    ("element, no base64", {"body": "<ckc>$$$</ckc>"}, {}, usher.ProtocolError),
    ("element, not closed", {"body": "<ckc>AAAA"}, {}, usher.ProtocolError),
    ("element, empty", {"body": "<ckc></ckc>"}, {}, usher.ProtocolError),
    ("base64, broken", {"body": "AAA$"}, {"response_format": usher.FPSResponse.BASE64}, usher.ProtocolError),
    (
        "bytes where JSON is told",
        {"body": b"\x00\x01"},
        {"response_format": usher.FPSResponse.JSON},
        usher.ProtocolError,
    ),
    (
        "bytes where an element is told",
        {"body": b"\x00\x01"},
        {"response_format": usher.FPSResponse.ELEMENT},
        usher.ProtocolError,
    ),
    ("10 MB", {"body": bytes(10_000_000)}, {}, usher.TooLargeError),
]


@pytest.mark.parametrize(
    ("answer", "options", "wanted"), [case[1:] for case in NO_CKC], ids=[case[0] for case in NO_CKC]
)
def test_reply_thatIsNoCkc_failsTheRequest(
    stage_factory: StageFactory, answer: dict[str, object], options: dict[str, object], wanted: type[usher.UsherError]
) -> None:
    stage = stage_factory()
    ready(stage)
    loader(stage, **options)
    stage.headend.faults.add("ckc", Fault.reply(200, **answer))  # type: ignore[arg-type]
    playback = play(stage)
    error = failed(playback)
    assert type(error) is wanted, error
    assert (error.origin, error.operation, error.http_status) in [
        (usher.Origin.LICENSE, usher.Operation.LICENSE, 200),
        (usher.Origin.LICENSE, usher.Operation.LICENSE, -1),
    ]
    stage.settle()
    assert stage.events.types() == ["LICENSE_ERROR"]
    assert error.must_stop and stage.events.error(usher.EventType.LICENSE_ERROR).must_stop


def test_reply_ofAStrangersCkc_isHandedOverAsItIs(stage_factory: StageFactory) -> None:
    """The library does not check the contents of a CKC, because only the CDM can read them. It returns any other bytes
    unchanged."""
    stage = stage_factory()
    body = bytes(range(256)) * 64
    loader(stage)
    stage.headend.faults.add("ckc", Fault.reply(200, body=body))
    assert play(stage).get_resource(SKD) == body


def test_ckc_ofExactlyTheBound_isTaken_oneByteMoreIsNot(stage_factory: StageFactory) -> None:
    stage = stage_factory(max_response_bytes=100_000)
    loader(stage)
    stage.headend.faults.add("ckc", Fault.reply(200, body=b"\xff" * 100_000), Fault.reply(200, body=b"\xff" * 100_001))
    playback = play(stage)
    assert len(playback.get_resource(SKD)) == 100_000
    assert isinstance(failed(playback), usher.TooLargeError)


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", ".".join("abcdefghijklmnopq"), "x" * 1025])
def test_responsePath_thatIsNone_isRefused(stage_factory: StageFactory, path: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage_factory(), response_path=path)


@pytest.mark.parametrize("size", [1, 72, 65_536, 1024 * 1024])
def test_spc_ofEverySize_arrivesWhole(stage_factory: StageFactory, size: int) -> None:
    stage = stage_factory()
    spc = (b"\x00\x00\x00\x01" + bytes(range(256)) * 4096)[:size]
    loader(stage, lambda request: spc, request_format=FORM)
    stage.headend.faults.add("ckc", Fault.reply(200, body=b"\xfb" * 20))
    assert play(stage).get_resource(SKD) == b"\xfb" * 20
    sent = stage.sent("ckc")[0]
    assert read_key_request(sent.header("content-type"), sent.body).spc == spc


def test_ckc_isNotInTheRepresentationOfTheRequest(stage_factory: StageFactory) -> None:
    stage = stage_factory()
    ready(stage)
    loader(stage)
    load = play(stage).load_resource(SKD)
    ckc = load.result(10)
    assert ckc[:4] == fairplay.CKC_MAGIC
    assert repr(ckc) not in repr(load)
    stage.settle()
    assert not [line for line in stage.logs if ckc.hex() in line or base64.b64encode(ckc).decode() in line]


# ---- the content id in the SPC ---------------------------------------------------------------------------------------


def test_spc_nameOfTheContent_isWhatTheRuleSays(stage: Stage) -> None:
    ready(stage)
    kept: dict[usher.ContentIDRule, bytes] = {}
    playback = None
    url = f"skd://{CONTENT}.example.com:80/a%20b?x=1;{CONTENT}"
    for rule in usher.ContentIDRule:

        def spc(request: usher.SPCRequest, rule: usher.ContentIDRule = rule) -> bytes:
            kept[rule] = request.content_id
            return fairplay.make_spc(CONTENT)

        loader(stage, spc, content_id_rule=rule)
        playback = playback or play(stage)
        playback.get_resource(url)
        assert kept[rule] == usher.content_id(url, rule)
    assert kept == {
        usher.ContentIDRule.DECODED_JSON: b"movie-1.example.com:80/a b",
        usher.ContentIDRule.DECODED_BASE64: b"movie-1.example.com:80/a b",
        usher.ContentIDRule.HOST: b"movie-1.example.com",
        usher.ContentIDRule.AFTER_SCHEME: b"movie-1.example.com:80/a%20b?x=1;movie-1",
        usher.ContentIDRule.AFTER_SEMICOLON: b"movie-1",
        usher.ContentIDRule.WHOLE_URL: url.encode(),
        usher.ContentIDRule.SSP: b"movie-1.example.com:80/a b",
    }


@pytest.mark.parametrize("rule", list(usher.ContentIDRule))
def test_spc_nameOfAPackagersAsset_isWhatTheRuleSays(stage: Stage, rule: usher.ContentIDRule) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, content_id_rule=rule)
    playback = play(stage)
    if rule in (usher.ContentIDRule.WHOLE_URL, usher.ContentIDRule.AFTER_SEMICOLON):
        assert isinstance(failed(playback), usher.RefusedError), "the head-end has no content of that name"
    else:
        assert cdm.opened(playback.get_resource(SKD)) == (KID, KEY)
    assert cdm.asked[0].content_id == usher.content_id(SKD, rule)


@pytest.mark.parametrize("rule", [-1, 7, 1000])
def test_rule_thatIsNone_isRefused(stage: Stage, rule: int) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage, content_id_rule=rule)
