"""Tests SSP V2, where the licence request opens the session."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from headend_client import Client
from headend_requests import ALL_KINDS, KEY, SPC, ask, b64, b64url, members

from pytest_usher import HeadEndFactory
from usher.testing.headend import V2, Fault, HeadEnd, KeySystem, SessionState, ckc

RENEWING: tuple[KeySystem, ...] = ("fairplay", "playready", "clearkey")


@pytest.mark.parametrize("enforced", [False, True])
@pytest.mark.parametrize("key_system", ALL_KINDS)
def test_v2License_withTheContentTokenAlone_setsTheSessionUp(
    headend_factory: HeadEndFactory, key_system: KeySystem, enforced: bool
) -> None:
    he = headend_factory(enforced={key_system} if enforced else set())
    client = Client(he)
    reply = ask(client, key_system, he.content_token("alice", "movie", device="tv"), api="v2")
    says = members(key_system, reply)
    assert (reply.status, says["heartbeat"], says["sessionDrmEnforced"]) == (200, 60, enforced)
    session = he.sessions.only("alice")
    assert (session.created_by, session.device, session.content_ids, session.seq, session.licenses) == (
        "license",
        "tv",
        ("movie",),
        1,
        1,
    )
    assert session.expires_ms == he.now_ms + 120_000
    entry = he.journal.last("license")
    assert (entry.session, entry.issued, entry.delivered, entry.account) == (session.id, 1, True, "alice")
    assert client.heartbeat(says["sessionToken"]).status == 200
    assert he.journal.routes() == ["license", "heartbeat"]


def test_v2License_holdsTheRealLicence(headend: HeadEnd, client: Client) -> None:
    token = headend.content_token()
    assert base64.b64decode(ask(client, "fairplay", token, api="v2").json["CkcMessage"]) == ckc(SPC)
    assert ask(client, "clearkey", token, api="v2").json["keys"][0]["k"] == b64url(KEY)


@pytest.mark.parametrize("key_system", RENEWING)
def test_v2Session_enforced_isRenewedWithItsTokenAlone(headend_factory: HeadEndFactory, key_system: KeySystem) -> None:
    he = headend_factory(enforced={key_system})
    client = Client(he)
    first = members(key_system, ask(client, key_system, he.content_token(), api="v2"))["sessionToken"]
    he.advance(60_000)
    renewed = members(key_system, ask(client, key_system, first, renew=True, api="v2"))
    assert renewed["sessionToken"] != first
    assert "heartbeat" not in renewed and "sessionDrmEnforced" not in renewed
    assert (he.sessions.only().beats, he.sessions.only().seq) == (1, 2)
    assert ask(client, key_system, first, renew=True, api="v2").code == 1006
    assert client.teardown(renewed["sessionToken"]).status == 200
    assert he.journal.routes() == ["license", "license-renewal", "license-renewal", "teardown"]
    assert [violation.kind for violation in he.violations()] == ["stale-token"]


def test_v2Session_ofWidevine_isRenewedAtTheSessionService(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(enforced={"widevine"})
    client = Client(he)
    first = ask(client, "widevine", he.content_token(), api="v2").token
    assert ask(client, "widevine", first, renew=True, api="v2").code == 1001
    renewed = client.send("POST", f"{he.ssm_url}/v1/renewal-license-wv", first, json.dumps({"challenge": b64(SPC)}))
    assert client.teardown(renewed.token).status == 200
    he.assert_clean()


def test_v2License_atTheLimit_is1007AtTheLicenceServer(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(limit=1)
    client = Client(he)
    first = ask(client, "clearkey", he.content_token("alice"), api="v2").token
    refused = ask(client, "clearkey", he.content_token("alice"), api="v2")
    assert (refused.status, refused.json) == (
        400,
        {"errorCode": 1007, "message": "maximum number of active sessions (1) exceeded"},
    )
    assert client.setup(he.content_token("alice")).code == 1007
    assert he.sessions.account("alice").refused == 2
    client.teardown(first)
    assert ask(client, "clearkey", he.content_token("alice"), api="v2").status == 200


def test_v2License_withALiveSession_isGivenUnderIt(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token("alice", "one")
    first = ask(client, "fairplay", content, api="v2").token
    second = ask(client, "fairplay", f"{headend.content_token('alice', 'two')},{first}", api="v2")
    session = headend.sessions.only()
    assert (session.licenses, session.seq, session.content_ids) == (2, 2, ("one", "two"))
    assert ask(client, "fairplay", f"{headend.content_token('bob')},{second.token}", api="v2").code == 4010
    assert client.teardown(second.token).status == 200
    headend.assert_clean()


def test_v2License_refused_setsNothingUp(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    assert client.license("fairplay", content, b"", api="v2").code == 2001
    assert client.license("clearkey", content, {"kids": [b64url(b"?" * 16)]}, api="v2").code == 4011
    assert ask(client, "fairplay", None, api="v2").code == 4001
    assert ask(client, "fairplay", headend.content_token(expires_in_s=-1), api="v2").code == 4005
    assert len(headend.sessions) == 0


def test_v2License_replayedToken_setsUpOnce(headend: HeadEnd, client: Client) -> None:
    once = headend.content_token(jti="once")
    assert ask(client, "fairplay", once, api="v2").status == 200
    assert ask(client, "fairplay", once, api="v2").code == 4006
    assert len(headend.sessions) == 1


@pytest.mark.parametrize(("required", "control"), [("never", True), ("token", False)])
def test_v2License_thatNeedsNoSession_saysNothingOfOne(
    headend_factory: HeadEndFactory, required: str, control: bool
) -> None:
    he = headend_factory(ssm_required=required)
    reply = ask(Client(he), "fairplay", he.content_token(session_control=control), api="v2")
    assert set(reply.json) == {"CkcMessage"}
    assert len(he.sessions) == 0
    assert he.journal.last().issued is None


def test_v2License_needsSessionControl_onlyWhenRequired(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(require_session_control=True, ssm_required="always")
    assert ask(Client(he), "fairplay", he.content_token(session_control=False), api="v2").code == 1008


@pytest.mark.parametrize("key_system", ALL_KINDS)
def test_v2Fields_canStandElsewhere(headend_factory: HeadEndFactory, key_system: KeySystem) -> None:
    he = headend_factory(
        v2=V2(token_field="session.token", period_field="session.keepAlive.seconds", enforced_field="enforced"),
        period_s=0.5,
    )
    client = Client(he)
    says = members(key_system, ask(client, key_system, he.content_token(), api="v2"))
    assert says["session"]["keepAlive"] == {"seconds": 0.5}
    assert says["enforced"] is False and "sessionToken" not in says and "heartbeat" not in says
    assert client.teardown(says["session"]["token"]).status == 200


def test_v2Token_inAHeader_isDelivered(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(v2=V2(token_field=None, token_header="x-session-token"), fairplay_reply="raw")
    client = Client(he)
    reply = ask(client, "fairplay", he.content_token(), api="v2")
    assert reply.body == ckc(SPC)
    assert he.journal.last("license").delivered
    assert client.heartbeat(reply.headers["x-session-token"]).status == 200
    he.assert_clean()


def test_v2Token_toldNowhere_leavesTheSessionToExpire(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(v2=V2(token_field=None, period_field=None, enforced_field=None))
    reply = ask(Client(he), "fairplay", he.content_token(), api="v2")
    assert set(reply.json) == {"CkcMessage"}
    assert not he.journal.last("license").delivered
    he.advance(120_000)
    assert he.sessions.all()[0].state is SessionState.EXPIRED


def test_v2Tenant_isRecorded_andNeededByConfig(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(v2=V2(tenant="required"))
    client, token = Client(he), he.content_token()
    assert ask(client, "fairplay", token, api="v2").code == 3003
    assert ask(client, "fairplay", token, api="v2", headers={"nv-tenant-id": "OTHER"}).code == 4009
    assert ask(client, "fairplay", token, api="v2", headers={"nv-tenant-id": "TENANT1"}).status == 200
    assert [entry.tenant_id for entry in he.journal] == [None, "OTHER", "TENANT1"]
    assert len(he.sessions) == 1


def test_v2Checker_knowsSessionsOfLicences(headend: HeadEnd, client: Client) -> None:
    first = ask(client, "fairplay", headend.content_token(), api="v2").token
    headend.advance(60_000)
    second = client.heartbeat(first).token
    headend.assert_clean()
    headend.advance(61_000)
    third = client.heartbeat(second).token
    client.heartbeat(second)
    client.teardown(third)
    client.heartbeat(third)
    assert [violation.kind for violation in headend.violations()] == ["late-beat", "stale-token", "after-teardown"]


def test_v2Checker_firstBeatIsDueAPeriodAfterTheLicence(headend: HeadEnd, client: Client) -> None:
    token = ask(client, "fairplay", headend.content_token(), api="v2").token
    headend.advance(60_251)
    client.heartbeat(token)
    assert [violation.kind for violation in headend.violations()] == ["late-beat"]


def test_v2Checker_sessionLeftToExpire_isNoMistake(headend: HeadEnd, client: Client) -> None:
    token = ask(client, "fairplay", headend.content_token(max_sessions=1), api="v2").token
    headend.advance(60_000)
    client.heartbeat(token)
    assert ask(client, "fairplay", headend.content_token(max_sessions=1), api="v2").code == 1007
    headend.advance(120_000)
    assert headend.sessions.all()[0].state is SessionState.EXPIRED
    assert ask(client, "fairplay", headend.content_token(max_sessions=1), api="v2").status == 200
    headend.assert_clean()


def test_v2Faults_meetTheLicenceRequest(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("license", Fault.drop("after"), Fault.without("sessionToken"), Fault.fields(heartbeat="60"))
    token = headend.content_token(max_sessions=9)
    with pytest.raises(OSError):
        ask(client, "fairplay", token, api="v2")
    assert "sessionToken" not in ask(client, "fairplay", token, api="v2").json
    assert ask(client, "fairplay", token, api="v2").json["heartbeat"] == "60"
    assert [entry.delivered for entry in headend.journal] == [False, False, True]
    assert len(headend.sessions.active()) == 3


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"tenant": "maybe"}, "v2.tenant: unknown value 'maybe'"),
        ({"token_field": "a..b"}, "'a..b' is not a path of names"),
        ({"token_field": "a", "period_field": "a.b"}, "two values stand at 'a'"),
    ],
)
def test_v2Settings_thatMakeNoSense_areRefused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        V2(**settings)
