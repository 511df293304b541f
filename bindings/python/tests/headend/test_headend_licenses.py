"""Tests licences and certificates of the four key systems."""

from __future__ import annotations

import base64
import json
import secrets
import xml.etree.ElementTree as ET

import pytest
from cryptography import x509
from headend_client import Client
from headend_requests import ALL_KINDS, KIND, SPC, ask, b64, b64url, custom_data

from pytest_usher import HeadEndFactory
from usher.testing.headend import HeadEnd, KeySystem, ckc, playready_license, service_certificate, widevine_license


@pytest.mark.parametrize("key_system", ALL_KINDS)
def test_license_needsContentAndLiveSession(headend: HeadEnd, client: Client, key_system: KeySystem) -> None:
    content = headend.content_token()
    session = client.setup(content).token
    assert ask(client, key_system, f"{content},{session}").status == 200
    assert ask(client, key_system, content).code == 4000
    assert ask(client, key_system, session).code == 4001
    assert ask(client, key_system, None).code == 4001
    client.teardown(session)
    assert ask(client, key_system, f"{content},{session}").code == 1006
    assert headend.sessions.all()[0].licenses == 1


def test_license_withKeyTokenBetween_isGiven(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token_with_key()
    session = client.setup(content).token
    assert ask(client, "fairplay", f"{content},{session}").status == 200
    assert [part.kind for part in headend.journal.last("license").parts] == ["content", "key", "session"]


@pytest.mark.parametrize(("required", "status"), [("token", 200), ("always", 400), ("never", 200)])
def test_license_withoutSessionControl_needsASessionByConfig(
    headend_factory: HeadEndFactory, required: str, status: int
) -> None:
    client = Client(headend_factory(ssm_required=required))
    assert ask(client, "fairplay", client.he.content_token(session_control=False)).status == status


def test_license_ofAnotherAccount_isRefused(headend: HeadEnd, client: Client) -> None:
    session = client.setup(headend.content_token("alice")).token
    assert ask(client, "fairplay", f"{headend.content_token('bob')},{session}").code == 4010


def test_license_ofAnotherContent_isNotedInTheSession(headend: HeadEnd, client: Client) -> None:
    session = client.setup(headend.content_token("alice", "one")).token
    assert ask(client, "fairplay", f"{headend.content_token('alice', 'two')},{session}").status == 200
    assert headend.sessions.only().content_ids == ("one", "two")


def test_license_replayOfAToken_is4006(headend: HeadEnd, client: Client) -> None:
    once = headend.content_token(jti="play-once")
    session = client.setup(once).token
    assert ask(client, "fairplay", f"{once},{session}").status == 200
    assert ask(client, "fairplay", f"{once},{session}").code == 4006
    forever = headend.content_token(jti="other", expires_in_s=25 * 3600)
    assert ask(client, "fairplay", f"{forever},{session}").code == 4005


def test_fairplay_heartbeatMode_answersTheCkcAlone(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    session = client.setup(content).token
    reply = client.license("fairplay", f"{content},{session}", SPC)
    assert set(reply.json) == {"CkcMessage"}
    assert base64.b64decode(reply.json["CkcMessage"]) == ckc(SPC)
    assert ckc(SPC).startswith(b"CKC1") and len(ckc(SPC)) == 36
    assert client.license("fairplay", f"{content},{session}", b"").code == 2001


@pytest.mark.parametrize("form", ["padded", "unpadded", "urlsafe", "urlsafe-unpadded"])
def test_fairplay_base64Forms_holdTheSameBytes(headend_factory: HeadEndFactory, form: str) -> None:
    client = Client(headend_factory(fairplay_base64=form, ssm_required="never"))
    spc = next(s for s in (n.to_bytes(2, "big") for n in range(65536)) if {"+", "/"} <= set(b64(ckc(s))))
    text = client.license("fairplay", client.he.content_token(), spc).json["CkcMessage"]
    assert base64.b64decode(
        text + "=" * (-len(text) % 4), altchars=b"-_" if form.startswith("urlsafe") else None
    ) == ckc(spc)


def test_fairplay_rawReply_isTheCkc(headend_factory: HeadEndFactory) -> None:
    client = Client(headend_factory(fairplay_reply="raw", ssm_required="never"))
    assert client.license("fairplay", client.he.content_token(), SPC).body == ckc(SPC)


def test_fairplay_enforced_rotatesWithEachLicence(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(enforced={"fairplay"})
    client, content = Client(he), he.content_token()
    first = client.setup(content).token
    second = ask(client, "fairplay", f"{content},{first}").token
    he.advance(60_000)
    third = ask(client, "fairplay", second, renew=True)
    assert base64.b64decode(third.json["CkcMessage"]) == ckc(SPC)
    assert ask(client, "fairplay", second, renew=True).code == 1006
    assert he.journal.routes() == ["setup", "license", "license-renewal", "license-renewal"]
    session = he.sessions.only()
    assert (session.beats, session.licenses, session.seq) == (1, 1, 3)
    assert session.expires_ms == he.now_ms + 120_000
    assert client.teardown(third.token).status == 200


def test_renewal_withContentToken_isRefused(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    session = client.setup(content).token
    assert ask(client, "fairplay", f"{content},{session}", renew=True).code == 1004
    assert ask(client, "fairplay", content, renew=True).code == 3005
    assert ask(client, "fairplay", None, renew=True).code == 4000
    assert headend.sessions.only().seq == 1


def test_refusedPayload_doesNotRotate(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(enforced={"fairplay", "clearkey"})
    client = Client(he)
    session = client.setup().token
    assert client.license("fairplay", session, b"", renew=True).code == 2001
    assert client.license("clearkey", session, {"kids": [b64url(b"?" * 16)]}, renew=True).code == 4011
    assert he.sessions.only().seq == 1


def test_widevine_json_answersAnArray(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    reply = ask(client, "widevine", f"{content},{client.setup(content).token}")
    assert reply.json == {
        "status": "OK",
        "errorCode": 0,
        "license": [b64(widevine_license(SPC))],
        "sessionDrmEnforced": False,
    }
    assert headend.journal.last("license").error_code is None


def test_widevine_raw_answersRawBytes(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    tokens = f"{content},{client.setup(content).token}"
    assert client.license("widevine", tokens, SPC).body == widevine_license(SPC)
    assert client.license("widevine", tokens, b"").code == 2001
    assert client.license("widevine", tokens, {"challenge": "%%%"}).code == 2001
    assert client.license("widevine", tokens, b"[]", content_type="application/json").code == 2001


def test_widevine_serviceCertificateRequest_needsNoSession(headend: HeadEnd, client: Client) -> None:
    token, certificate = headend.content_token(), service_certificate("TENANT1")
    assert client.license("widevine", token, b"\x08\x04").body == certificate
    assert client.license("widevine", token, {"challenge": "CAQ="}).json["license"] == [b64(certificate)]
    assert client.license("widevine", None, b"\x08\x04").code == 4001
    assert client.send("GET", headend.certificate_url("widevine")).body == certificate


@pytest.mark.parametrize("path", ["v1/renewal-license-wv", "v1/sessions/renewal-license-wv"])
def test_widevine_renewal_isAStringAndKeepsAlive(headend_factory: HeadEndFactory, path: str) -> None:
    he = headend_factory(enforced={"widevine"})
    client, content = Client(he), he.content_token()
    session = client.setup(content).token
    assert ask(client, "widevine", f"{content},{session}").json["sessionDrmEnforced"] is True
    he.advance(60_000)
    reply = client.send("POST", f"{he.ssm_url}/{path}", session, json.dumps({"challenge": b64(SPC)}))
    assert reply.json["license"] == b64(widevine_license(SPC))
    assert client.heartbeat(reply.token).status == 200
    assert client.send("POST", f"{he.ssm_url}/{path}", reply.token, "{}").code == 1006
    assert he.journal.routes()[-3:] == ["renewal-wv", "heartbeat", "renewal-wv"]
    assert he.sessions.only().beats == 2


def test_widevine_renewAtTheLicenceServer_isRefused(headend: HeadEnd, client: Client) -> None:
    assert ask(client, "widevine", client.setup().token, renew=True).code == 1001


def test_playready_heartbeatMode_hasNoCustomData(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    soap = b"<soap:Envelope>challenge</soap:Envelope>"
    tokens = f"{content},{client.setup(content).token}"
    reply = client.license("playready", tokens, soap, content_type="text/xml; charset=utf-8")
    assert reply.headers["Content-Type"] == "text/xml; charset=utf-8"
    assert custom_data(reply) == {}
    assert ET.fromstring(reply.body).findtext(f".//{KIND}License") == b64(playready_license(soap))
    assert client.license("playready", tokens, b"no soap").code == 2001


def test_playready_enforced_carriesTheTokenInCustomData(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(enforced={"playready"})
    client, content = Client(he), he.content_token()
    first = custom_data(ask(client, "playready", f"{content},{client.setup(content).token}"))["sessionToken"]
    second = custom_data(ask(client, "playready", first, renew=True))["sessionToken"]
    assert client.teardown(second).status == 200
    assert [entry.delivered for entry in he.journal][:3] == [True, True, True]


def test_clearkey_givesTheRealKeys(headend: HeadEnd, client: Client) -> None:
    pairs = {secrets.token_bytes(16): secrets.token_bytes(16) for _ in range(2)}
    for kid, key in pairs.items():
        headend.add_key(kid, key)
    content = headend.content_token()
    tokens = f"{content},{client.setup(content).token}"
    reply = client.license("clearkey", tokens, {"kids": [b64url(kid) for kid in pairs], "type": "temporary"})
    keys = [{"kty": "oct", "kid": b64url(kid), "k": b64url(key)} for kid, key in pairs.items()]
    assert reply.json == {"keys": keys, "type": "temporary"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"kids": ["AAAAAAAAAAAAAAAAAAAAAA"]}', 4011),
        (b'{"kids": ["AAAAAAAAAAAAAAAAAAAAAA=="]}', 4014),
        (b'{"kids": ["AAAA"]}', 4014),
        (b'{"kids": ["???"]}', 4014),
        (b'{"kids": [7]}', 4014),
        (b'{"kids": []}', 2001),
        (b"[]", 2001),
        (b"nonsense", 2001),
        (b"", 2001),
    ],
)
def test_clearkey_badRequest_isRefused(headend: HeadEnd, client: Client, body: bytes, code: int) -> None:
    content = headend.content_token()
    refused = client.license(
        "clearkey", f"{content},{client.setup(content).token}", body, content_type="application/json"
    )
    assert (refused.status, refused.code) == (400, code)


def test_clearkey_outsideTheTokensRights_isRefused(headend: HeadEnd, client: Client) -> None:
    headend.add_key(b"a" * 16, b"k" * 16)
    content = headend.content_token(kids=[b"b" * 16])
    tokens = f"{content},{client.setup(content).token}"
    assert client.license("clearkey", tokens, {"kids": [b64url(b"a" * 16)]}).code == 4000


def test_clearkey_enforced_renewsWithTheSessionTokenAlone(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(enforced={"clearkey"})
    client, content = Client(he), he.content_token()
    first = ask(client, "clearkey", f"{content},{client.setup(content).token}")
    renewed = ask(client, "clearkey", first.token, renew=True)
    assert renewed.json["keys"] == first.json["keys"]
    assert renewed.token != first.token


def test_certificate_fairplay_isARealOne(headend: HeadEnd, client: Client) -> None:
    url = headend.certificate_url("fairplay")
    reply = client.send("GET", url)
    assert reply.body.startswith(b"\x30\x82")
    assert x509.load_der_x509_certificate(reply.body).subject.rfc4514_string()
    assert client.send("GET", f"{url}/TENANT1").body == reply.body
    assert [(entry.route, entry.key_system) for entry in headend.journal] == [("certificate", "fairplay")] * 2
    with pytest.raises(ValueError, match="clearkey has no certificates"):
        headend.certificate_url("clearkey")
