"""Tests the generic FairPlay key server: certificates, key requests and CKCs in every encoding."""

from __future__ import annotations

import base64
import json
import ssl
from typing import Any
from urllib.parse import quote

import pytest
from headend_client import Answer, Client
from headend_requests import b64

from pytest_usher import HeadEndFactory
from usher.testing import fairplay
from usher.testing.headend import REQUEST_FORMS, Certificate, Fps, HeadEnd, RequestForm, read_key_request

KID, KEY = bytes(range(16)), bytes(range(100, 116))
OTHER_KID, OTHER_KEY = b"o" * 16, b"p" * 16
ASSET = fairplay.identifier("movie", KID, bytes(16))
FORM = "application/x-www-form-urlencoded"


def spc_with(*needed: str) -> bytes:
    """Returns an SPC whose base64 has the characters in `needed`, and padding."""
    while True:
        spc = fairplay.make_spc(ASSET + b" ")
        if {*needed, "="} <= set(b64(spc)):
            return spc


def encoded(spc: bytes, form: RequestForm) -> tuple[str, bytes]:
    """Returns the content type and the body of a key request."""
    text = b64(spc)
    bodies: dict[RequestForm, tuple[str, str]] = {
        "form": (FORM, f"spc={quote(text, safe='')}&assetId=movie"),
        "form-plain": (FORM, f"spc={text}"),
        "form-whole": (FORM, quote(f"spc={text}", safe="")),
        "base64": ("text/plain", text),
        "json": ("application/json", json.dumps({"spc": text, "assetId": "movie"})),
    }
    if form == "raw":
        return "application/octet-stream", spc
    return bodies[form][0], bodies[form][1].encode()


def ask(client: Client, spc: bytes, form: RequestForm = "raw", **headers: str) -> Answer:
    kind, body = encoded(spc, form)
    return client.send("POST", client.he.fps_url, body=body, headers={"Content-Type": kind, **headers})


@pytest.mark.parametrize("form", REQUEST_FORMS)
def test_ckc_forEveryRequestForm_holdsTheKey(headend: HeadEnd, client: Client, form: RequestForm) -> None:
    headend.add_key(KID, KEY)
    spc = spc_with("+", "/")
    reply = ask(client, spc, form)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/octet-stream")
    assert fairplay.open_ckc(reply.body, spc) == (KID, KEY)
    entry = headend.journal.last("ckc")
    assert (entry.key_system, entry.parts) == ("fairplay", ())
    request = read_key_request(entry.header("content-type"), entry.body)
    assert (request.form, request.spc) == (form, spc)
    assert request.fields == ({"assetId": "movie"} if form in ("form", "json") else {})


@pytest.mark.parametrize("form", REQUEST_FORMS)
def test_ckc_ofAFormNotTaken_isRefused(headend_factory: HeadEndFactory, form: RequestForm) -> None:
    he = headend_factory(fps=Fps(requests=frozenset(REQUEST_FORMS) - {form}))
    he.add_key(KID, KEY)
    spc = spc_with("+", "/")
    answers = {other: ask(Client(he), spc, other) for other in REQUEST_FORMS}
    assert [other for other, reply in answers.items() if reply.status != 200] == [form]
    assert answers[form].code == 1001


@pytest.mark.parametrize(
    ("settings", "begins", "ends"),
    [
        ({"reply": "json"}, b'{"ckc": "', b'"}'),
        ({"reply": "json", "reply_path": "CkcMessage"}, b'{"CkcMessage": "', b'"}'),
        ({"reply": "json", "reply_path": "data.fairplay.License"}, b'{"data": {"fairplay": {"License": "', b'"}}}'),
        ({"reply": "xml"}, b"\n<ckc>", b"</ckc>\n"),
        ({"reply": "base64"}, b"", b""),
    ],
)
@pytest.mark.parametrize("form", ["padded", "unpadded", "urlsafe", "urlsafe-unpadded"])
def test_ckc_inEveryReplyForm_isTheSame(
    headend_factory: HeadEndFactory, settings: dict[str, Any], begins: bytes, ends: bytes, form: Any
) -> None:
    he = headend_factory(fps=Fps(**settings, base64=form))
    he.add_key(KID, KEY)
    while True:
        spc = fairplay.make_spc(ASSET)
        if {"+", "/", "="} <= set(b64(fairplay.make_ckc(spc, KID, KEY))):
            break
    body = ask(Client(he), spc).body
    assert body.startswith(begins) and body.endswith(ends)
    text = body[len(begins) : len(body) - len(ends)].decode()
    urlsafe, padded = form.startswith("urlsafe"), not form.endswith("unpadded")
    assert ({"-", "_"} <= set(text), text.endswith("=")) == (urlsafe, padded)
    padding = "=" * (-len(text) % 4)
    assert fairplay.open_ckc(base64.b64decode(text + padding, altchars=b"-_" if urlsafe else None), spc) == (KID, KEY)


@pytest.mark.parametrize(
    ("identifier", "kid"),
    [
        (ASSET, KID),
        (base64.b64encode(ASSET), KID),
        (b'{"KeyId":"6f6f6f6f-6f6f-6f6f-6f6f-6f6f6f6f6f6f"}', OTHER_KID),
        (b"movie", OTHER_KID),
        (OTHER_KID.hex().encode(), OTHER_KID),
        (b'{"ContentId":"movie"}', OTHER_KID),
    ],
)
def test_ckc_keyIsOfTheIdentifier(headend: HeadEnd, client: Client, identifier: bytes, kid: bytes) -> None:
    headend.add_key(KID, KEY, "movie")
    headend.add_key(OTHER_KID, OTHER_KEY, "movie")
    spc = fairplay.make_spc(identifier)
    assert fairplay.open_ckc(ask(client, spc).body, spc) == (kid, KEY if kid == KID else OTHER_KEY)


@pytest.mark.parametrize(
    ("identifier", "code"),
    [(b"series", 4011), (fairplay.identifier("series", KID, bytes(16)), 4011), (b"\xff\xfe", 2001), (b"{}", 2001)],
)
def test_ckc_ofAnUnknownIdentifier_isRefused(headend: HeadEnd, client: Client, identifier: bytes, code: int) -> None:
    headend.add_key(KID, KEY, "movie")
    refused = ask(client, fairplay.make_spc(identifier))
    assert (refused.status, refused.code) == (400, code)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/octet-stream", b""),
        ("application/octet-stream", bytes(range(256))),
        ("application/octet-stream", fairplay.make_spc("x")[:-1]),
        (FORM, fairplay.make_spc("movie")),
        (FORM, b"other=AAAA"),
        (FORM, b"spc="),
        ("text/plain", b"%%%"),
        ("application/json", b"{}"),
        ("application/json", b'{"spc": 7}'),
        ("application/json", b"nonsense"),
    ],
)
def test_ckc_forNonsense_isRefused(headend: HeadEnd, client: Client, kind: str, body: bytes) -> None:
    headend.add_key(KID, KEY, "movie")
    assert client.send("POST", headend.fps_url, body=body, headers={"Content-Type": kind}).code == 2001


def test_ckc_certificateOfTheSpc_isChecked(headend: HeadEnd, client: Client) -> None:
    headend.add_key(KID, KEY)
    certificate = client.send("GET", headend.fps_certificate_url).body
    assert ask(client, fairplay.make_spc(ASSET, certificate)).status == 200
    refused = ask(client, fairplay.make_spc(ASSET, certificate[:-1]))
    assert (refused.code, refused.json["message"]) == (2001, "the SPC was made with another certificate")
    assert headend.journal.routes() == ["certificate", "ckc", "ckc"]


def test_ckc_assetField_mustNameTheSameContent(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(fps=Fps(asset_field="assetId", spc_field="playerSpc"))
    he.add_key(KID, KEY, "movie")
    he.add_key(OTHER_KID, OTHER_KEY, "series")
    client, text = Client(he), b64(fairplay.make_spc(ASSET))

    def post(**members: str) -> Answer:
        return client.send("POST", he.fps_url, body=json.dumps(members), headers={"Content-Type": "application/json"})

    assert post(playerSpc=text, assetId="movie").status == 200
    assert post(playerSpc=text, assetId=base64.b64encode(ASSET).decode()).status == 200
    assert post(playerSpc=text, assetId="series").code == 4000
    assert post(playerSpc=text, assetId="nothing").code == 4011
    assert post(playerSpc=text).code == 1001
    assert post(spc=text, assetId="movie").code == 2001


def test_ckc_authorization_401WithoutAnd403WithAnother(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(fps=Fps(authorization="Bearer right"))
    he.add_key(KID, KEY)
    client, spc = Client(he), fairplay.make_spc(ASSET)
    assert [ask(client, spc).status, ask(client, spc, Authorization="Bearer wrong").status] == [401, 403]
    assert ask(client, spc, Authorization="Bearer right").status == 200


def test_sspLicense_forAnSpcOfOurs_holdsTheKey(headend: HeadEnd, client: Client) -> None:
    headend.add_key(KID, KEY)
    content = headend.content_token(content_id="movie", kids=[KID])
    tokens, spc = f"{content},{client.setup(content).token}", fairplay.make_spc(ASSET)
    reply = client.license("fairplay", tokens, spc)
    assert fairplay.open_ckc(base64.b64decode(reply.json["CkcMessage"]), spc) == (KID, KEY)
    assert client.license("fairplay", tokens, fairplay.make_spc("nothing")).code == 4011
    headend.add_key(OTHER_KID, OTHER_KEY)
    assert client.license("fairplay", tokens, fairplay.make_spc(OTHER_KID.hex())).code == 4000


@pytest.mark.parametrize("url", ["fps_certificate_url", "ssp"])
@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"form": "base64"}, "text/plain; charset=utf-8"),
        ({"form": "base64", "base64": "unpadded"}, "text/plain; charset=utf-8"),
        ({"form": "pem"}, "application/x-pem-file"),
        ({"form": "json", "field": "Certificate", "base64": "urlsafe"}, "application/json; charset=utf-8"),
    ],
)
def test_certificate_wrapped_isTheSame(
    headend_factory: HeadEndFactory, settings: dict[str, Any], kind: str, url: str
) -> None:
    he = headend_factory(certificate=Certificate(**settings))
    he.add_key(KID, KEY)
    client = Client(he)
    reply = client.send("GET", he.certificate_url("fairplay") if url == "ssp" else he.fps_certificate_url)
    assert reply.headers["Content-Type"] == kind
    text = reply.json["Certificate"] if settings["form"] == "json" else reply.body.decode()
    if settings["form"] == "pem":
        der = ssl.PEM_cert_to_DER_cert(text)
    else:
        assert ("=" in text[-2:]) <= (settings.get("base64") != "unpadded")
        der = base64.b64decode(
            text + "=" * (-len(text) % 4),
            altchars=b"-_" if "base64" in settings and "urlsafe" in settings["base64"] else None,
        )
    assert der.startswith(b"\x30\x82")
    assert ask(client, fairplay.make_spc(ASSET, der)).status == 200


def test_certificate_emptyOrHuge(headend_factory: HeadEndFactory) -> None:
    empty = Client(headend_factory(certificate=Certificate(form="empty")))
    reply = empty.send("GET", empty.he.fps_certificate_url)
    assert (reply.status, reply.body) == (200, b"")
    huge = Client(headend_factory(certificate=Certificate(size_bytes=10_000_000)))
    huge.he.add_key(KID, KEY)
    der = huge.send("GET", huge.he.certificate_url("fairplay")).body
    assert len(der) == 10_000_000 and der.startswith(b"\x30\x82")
    assert ask(huge, fairplay.make_spc(ASSET, der)).status == 200


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Fps(requests=frozenset({"carrier-pigeon"})), "fps.requests: unknown value 'carrier-pigeon'"),  # type: ignore[arg-type]
        (lambda: Fps(reply="soap"), "fps.reply: unknown value 'soap'"),  # type: ignore[arg-type]
        (lambda: Fps(reply_path="a."), "'a.' is not a path"),
        (lambda: Certificate(form="p12"), "certificate.form: unknown value 'p12'"),  # type: ignore[arg-type]
    ],
)
def test_settings_thatMakeNoSense_areRefused(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_keyOverControl_isOfItsContent(headend: HeadEnd, client: Client) -> None:
    body = {"kid": KID.hex(), "key": KEY.hex(), "content_id": "movie"}
    assert client.control("POST", "key", body).json == {"keys": 1}
    spc = fairplay.make_spc("movie")
    assert fairplay.open_ckc(ask(client, spc).body, spc) == (KID, KEY)
    assert headend.keys.content_ids(KID) == {"movie"}
