"""Tests ExpressPlay licences, and the entitlement server, which a player asks first."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from headend_client import Answer, Client

from pytest_usher import HeadEndFactory
from usher.testing import fairplay
from usher.testing.headend import ExpressPlay, Fault, HeadEnd, Sees

KID, KEY = bytes(range(16)), bytes(range(100, 116))
OTHER_KID, OTHER_KEY = b"o" * 16, b"p" * 16


@pytest.fixture
def client(headend: HeadEnd) -> Client:
    """A client of a head-end that has the key of one content and sends errors as JSON."""
    headend.add_key(KID, KEY, "movie")
    return Client(headend)


def with_movie(he: HeadEnd) -> Client:
    he.add_key(KID, KEY, "movie")
    return Client(he)


def ask(client: Client, url: str, spc: bytes, **headers: str) -> Answer:
    return client.send("POST", url, body=spc, headers={"Content-Type": "application/octet-stream", **headers})


def number(client: Client, url: str, spc: bytes | None = None) -> int:
    """Sends a licence request that the head-end refuses. Returns the error number."""
    reply = ask(client, url, fairplay.make_spc("movie") if spc is None else spc)
    assert reply.status == 400
    told = client.he.journal.last("rights")
    assert told.error_code is not None and f"Error {told.error_code}" in reply.body.decode()
    assert told.error_message is not None and told.error_message in reply.body.decode()
    return told.error_code


def entitle(client: Client, content_id: str = "movie", **members: Any) -> Answer:
    value = {"messageID": "m-1", "version": 1, "requestType": 1, "contentID": content_id, **members}
    return client.send(
        "POST", client.he.entitlement_url, body=json.dumps(value), headers={"Content-Type": "application/json"}
    )


def test_rights_token_givesTheKey(headend: HeadEnd, client: Client) -> None:
    url = headend.rights_token_url("movie")
    assert (
        url.startswith(f"{headend.rights_url}?ExpressPlayToken=") and len(parse_qsl(urlsplit(url).query)[0][1]) == 128
    )
    spc = fairplay.make_spc("movie")
    for _ in range(2):
        reply = ask(client, url, spc)
        assert (reply.status, reply.headers["Content-Type"]) == (200, "application/octet-stream")
        assert fairplay.open_ckc(reply.body, spc) == (KID, KEY)
    assert [(entry.route, entry.key_system, entry.parts) for entry in headend.journal] == [
        ("rights", "fairplay", ())
    ] * 2


def test_rights_token_inAHeader_isTaken(headend: HeadEnd, client: Client) -> None:
    assert (
        ask(
            client, headend.rights_url, fairplay.make_spc("movie"), ExpressPlayToken=headend.rights_token("movie")
        ).status
        == 200
    )


def test_rights_token_missingOrUnknown_is4010(headend: HeadEnd, client: Client) -> None:
    assert number(client, headend.rights_url) == -4010
    assert headend.journal.last().error_message == "token is missing"
    assert number(client, headend.rights_token_url("movie")[:-1]) == -4010


def test_rights_token_expires(headend: HeadEnd, client: Client) -> None:
    url = headend.rights_token_url("movie", expires_in_s=60)
    headend.advance(59_999)
    assert ask(client, url, fairplay.make_spc("movie")).status == 200
    headend.advance(1)
    assert number(client, url) == -2002


def test_rights_token_lifetimeAndUses_areSettings(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(expressplay=ExpressPlay(lifetime_s=10, one_shot=True))
    client, spc = with_movie(he), fairplay.make_spc("movie")
    once, twice = he.rights_token_url("movie"), he.rights_token_url("movie", uses=2, expires_in_s=100)
    assert [ask(client, once, spc).status for _ in range(2)] == [200, 400]
    assert (he.journal.last().error_code, he.journal.last().error_message) == (-4010, "token has been used")
    he.advance(10_000)
    assert number(client, he.rights_token_url("movie", expires_in_s=0)) == -2002
    assert [ask(client, twice, spc).status for _ in range(3)] == [200, 200, 400]


def test_rights_refused_usesNothingUp(headend: HeadEnd, client: Client) -> None:
    url = headend.rights_token_url("movie", uses=1)
    assert number(client, url, b"") == -6004
    assert number(client, url, b"spc=AAAA") == -6004
    assert number(client, url, fairplay.make_spc("movie", b"another certificate")) == -6004
    assert number(client, url, fairplay.make_spc("nothing")) == -2005
    assert ask(client, url, fairplay.make_spc("movie")).status == 200


def test_rights_token_ofOneContent_givesNoOther(headend: HeadEnd, client: Client) -> None:
    headend.add_key(OTHER_KID, OTHER_KEY, "series")
    assert number(client, headend.rights_token_url("movie"), fairplay.make_spc("series")) == -4018
    headend.add_key(OTHER_KID, OTHER_KEY, "movie")
    only = headend.rights_token_url("movie", kid=KID)
    assert number(client, only, fairplay.make_spc(OTHER_KID.hex())) == -4018
    assert ask(client, only, fairplay.make_spc(KID.hex())).status == 200


@pytest.mark.parametrize(
    ("style", "body"),
    [
        ("json", {"errorCode": -4010, "errorMessage": "token is missing"}),
        ("json-short", {"code": -4010, "message": "token is missing"}),
        ("json-error", {"error": -4010, "message": "token is missing"}),
    ],
)
def test_rights_errors_inJson(headend_factory: HeadEndFactory, style: Any, body: dict[str, Any]) -> None:
    he = headend_factory(expressplay=ExpressPlay(errors=style))
    reply = ask(Client(he), he.rights_url, fairplay.make_spc("movie"))
    assert (reply.status, reply.json) == (400, body)
    assert he.journal.last().error_code == -4010


def test_rights_errors_ofAnyNumber_byFault(headend: HeadEnd, client: Client) -> None:
    headend.faults.add(
        "rights", Fault.rights_error(-2034, "output control", status=404), Fault.rights_error(-6009, style="json")
    )
    url = headend.rights_token_url("movie", uses=1)
    page = ask(client, url, fairplay.make_spc("movie"))
    assert page.status == 404 and b"<h1>Error -2034</h1><p>output control</p>" in page.body
    assert ask(client, url, fairplay.make_spc("movie")).json == {"errorCode": -6009, "errorMessage": "by fault script"}
    assert ask(client, url, fairplay.make_spc("movie")).status == 200


def test_entitlement_allowed_leadsToTheKey(headend: HeadEnd, client: Client) -> None:
    said = entitle(client).json
    assert {name: said[name] for name in ("messageID", "version", "isAllowed")} == {
        "messageID": "m-1",
        "version": 1,
        "isAllowed": True,
    }
    spc = fairplay.make_spc("movie")
    assert fairplay.open_ckc(ask(client, said["epTokenURL"], spc).body, spc) == (KID, KEY)
    assert headend.journal.routes() == ["entitlement", "rights"]


def test_entitlement_denied_hasTextAndNoUrl(headend: HeadEnd, client: Client) -> None:
    headend.deny("movie", "Not in your package", 4711)
    reply = entitle(client)
    assert reply.status == 200
    told = {"isAllowed": False, "epTokenURL": "", "error": 4711, "errorText": "Not in your package"}
    assert reply.json == {"messageID": "m-1", "version": 1, **told}
    assert (headend.journal.last().error_code, headend.journal.last().error_message) == (4711, "Not in your package")
    headend.allow("movie")
    assert entitle(client).json["isAllowed"] is True
    assert entitle(client, "nothing").json["errorText"] == "unknown content"


@pytest.mark.parametrize(
    ("message_id", "wanted"),
    [("wrong", lambda said: said["messageID"] not in ("m-1", "")), ("missing", lambda said: "messageID" not in said)],
)
def test_entitlement_messageId_canBeWrong(headend_factory: HeadEndFactory, message_id: Any, wanted: Any) -> None:
    client = with_movie(headend_factory(sees=Sees(message_id=message_id, denied_status=403)))
    said = entitle(client).json
    assert said["isAllowed"] is True and wanted(said)
    assert entitle(client, "nothing").status == 403


def test_entitlement_deviceBinding_takesTwoPasses(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(sees=Sees(bound_only=True))
    client = with_movie(he)
    assert entitle(client).json["error"] == -6008
    assert entitle(client, requestType=3, customerCookie="cookie-1").json["error"] == -4001
    assert entitle(client, requestType=2).json["error"] == -2033
    assert entitle(client, requestType=2, customerCookie="c" * 33).json["error"] == -2033
    registration = entitle(client, requestType=2, customerCookie="cookie-1").json["epTokenURL"]
    assert number(client, registration, fairplay.make_spc("movie")) == -6008
    assert he.registered_device("cookie-1") is None
    assert ask(client, registration, fairplay.make_spc("movie", device=b"tv")).status == 200
    assert he.registered_device("cookie-1") == b"tv"
    bound = entitle(client, requestType=3, customerCookie="cookie-1").json["epTokenURL"]
    assert number(client, bound, fairplay.make_spc("movie", device=b"phone")) == -4001
    assert number(client, bound, fairplay.make_spc("movie")) == -4001
    spc = fairplay.make_spc("movie", device=b"tv")
    assert fairplay.open_ckc(ask(client, bound, spc).body, spc) == (KID, KEY)
    assert entitle(client, requestType=3, customerCookie="cookie-2").json["error"] == -4001


@pytest.mark.parametrize(
    "members",
    [
        {"messageID": 7},
        {"messageID": ""},
        {"version": "1"},
        {"version": 2},
        {"requestType": 4},
        {"contentID": None},
        {"customerCookie": 5},
    ],
)
def test_entitlement_nonsense_is400(client: Client, members: dict[str, Any]) -> None:
    refused = entitle(client, **members)
    assert (refused.status, refused.code) == (400, 1001)
    assert client.send("POST", client.he.entitlement_url, body="nonsense").code == 1001
    assert client.send("POST", client.he.entitlement_url, body="[]").code == 1001


def test_entitlement_optionalMembers_mayBeMissing(client: Client) -> None:
    value = {"messageID": "m", "version": 1, "contentID": "movie"}
    assert client.send("POST", client.he.entitlement_url, body=json.dumps(value)).json["isAllowed"] is True


def test_entitlement_authorization_401WithoutAnd403WithAnother(headend_factory: HeadEndFactory) -> None:
    client = with_movie(
        headend_factory(
            sees=Sees(authorization="Bearer right", rights_url="https://rights.example.invalid:80/hms/fp/rights/")
        )
    )
    value = json.dumps({"messageID": "m", "version": 1, "contentID": "movie"})

    def post(**headers: str) -> Answer:
        return client.send("POST", client.he.entitlement_url, body=value, headers=headers)

    assert [post().status, post(Authorization="Bearer wrong").status] == [401, 403]
    assert (
        post(Authorization="Bearer right")
        .json["epTokenURL"]
        .startswith("https://rights.example.invalid:80/hms/fp/rights/?ExpressPlayToken=")
    )


def test_rights_overControl(headend: HeadEnd, client: Client) -> None:
    token = client.control(
        "POST", "token", {"kind": "rights", "content_id": "movie", "kid": KID.hex(), "device": "tv", "uses": 1}
    ).json["token"]
    url = f"{headend.rights_url}?ExpressPlayToken={token}"
    assert number(client, url) == -4001
    assert ask(client, url, fairplay.make_spc("movie", device=b"tv")).status == 200
    assert number(client, url, fairplay.make_spc("movie", device=b"tv")) == -4010
    assert client.control("POST", "entitlement", {"content_id": "movie", "allowed": False, "text": "no"}).json == {}
    assert entitle(client).json["errorText"] == "no"
    client.control("POST", "entitlement", {"content_id": "movie"})
    assert entitle(client).json["isAllowed"] is True
    client.control(
        "POST", "faults", {"route": "rights", "fault": {"kind": "rights_error", "number": -2030, "style": "json"}}
    )
    assert ask(client, url, b"").json["errorCode"] == -2030
