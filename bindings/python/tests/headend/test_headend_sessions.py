"""Tests sessions: set-up, keep-alive, teardown, limits, rotation, expiry and kills. Each test runs with the session
table in memory and in Redis."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from headend_client import Client
from headend_requests import ask

from pytest_usher import HeadEndFactory
from usher.testing.headend import HeadEnd, SessionState
from usher.testing.redis_server import RedisServer


@pytest.fixture(params=["memory", "redis"])
def headend_factory(
    request: pytest.FixtureRequest, headend_factory: HeadEndFactory, redis_server: RedisServer
) -> HeadEndFactory:
    """The fixture ``headend_factory`` of the pytest plugin. With the parameter ``redis``, its head-ends keep their
    sessions in Redis."""
    if request.param == "memory":
        return headend_factory
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushdb()
    return lambda **settings: headend_factory(sessions_url=redis_server.url, **settings)


def test_setup_withContentToken_givesTokenAndPeriod(headend: HeadEnd, client: Client) -> None:
    reply = client.setup(headend.content_token("alice", "movie", device="tv"))
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("application/json")
    assert set(reply.json) == {"sessionToken", "heartbeat"}
    assert reply.json["heartbeat"] == 60 and isinstance(reply.json["heartbeat"], int)
    session = headend.sessions.only("alice")
    assert (session.device, session.content_ids, session.tokens_issued, session.beats) == ("tv", ("movie",), 1, 0)
    assert session.created_ms == session.last_keepalive_ms == headend.now_ms
    assert session.expires_ms == headend.now_ms + 120_000


def test_setup_withKeyTokenInside_isOneTokenToTheClient(headend: HeadEnd, client: Client) -> None:
    assert client.setup(headend.content_token_with_key("alice")).status == 200
    assert [part.kind for part in headend.journal.last("setup").parts] == ["content", "key"]


def test_setup_withDeviceToken_countsForItsAccount(headend: HeadEnd, client: Client) -> None:
    assert client.setup(headend.device_token("alice", "tv")).status == 200
    assert client.setup(headend.device_token(None, "phone")).status == 200
    assert headend.sessions.only("alice").device == "tv"
    assert headend.sessions.only("phone").device == "phone"


def test_setup_withoutAccount_countsForTheTokenItself(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(limit=1)
    client, token = Client(he), he.content_token(None)
    assert client.setup(token).status == 200
    assert client.setup(token).code == 1007
    assert client.setup(he.content_token(None, "other")).status == 200


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"body": b"{}", "headers": {"Content-Type": "application/json; charset=utf-8"}},
        {"body": b"", "headers": {"Content-Type": "application/octet-stream", "Content-Length": "0"}},
        {"body": iter([b"{", b"}"]), "encode_chunked": True, "headers": {"Transfer-Encoding": "chunked"}},
        {"body": b"not json at all", "headers": {"Content-Type": "text/plain"}},
    ],
    ids=["no body", "json", "length 0", "chunked", "text"],
)
def test_setup_withAnyBody_isAccepted(headend: HeadEnd, client: Client, options: dict[str, Any]) -> None:
    assert client.setup(**options).status == 200


def test_setup_spelling_followsTheConfig(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(heartbeat_key="heartBeat", period_s=0.07)
    assert Client(he).setup().json["heartBeat"] == 0.07


def test_setup_atLimit_isRefusedWith1007AndMessage(headend: HeadEnd, client: Client) -> None:
    token = headend.content_token("alice", max_sessions=1)
    assert client.setup(token).status == 200
    refused = client.setup(token)
    assert (refused.status, refused.code) == (400, 1007)
    assert refused.json["message"] == "maximum number of active sessions (1) exceeded"
    assert headend.journal.last("setup").error_code == 1007
    assert client.setup(headend.content_token("bob", max_sessions=1)).status == 200


def test_setup_withoutMaxSessions_takesTheConfiguredLimit(headend: HeadEnd, client: Client) -> None:
    assert [client.setup().status for _ in range(3)] == [200, 200, 400]


def test_setup_withoutSessionControl_isRefusedOnlyWhenRequired(headend_factory: HeadEndFactory) -> None:
    open_he, strict_he = headend_factory(), headend_factory(require_session_control=True)
    assert Client(open_he).setup(open_he.content_token(session_control=False)).status == 200
    assert Client(strict_he).setup(strict_he.content_token(session_control=False)).code == 1008


def test_heartbeat_withNewestToken_rotatesAndExtends(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    for beat in range(1, 6):
        headend.advance(60_000)
        reply = client.heartbeat(token)
        assert set(reply.json) == {"sessionToken"}
        assert reply.token != token
        token = reply.token
        session = headend.sessions.only()
        assert (session.beats, session.seq, session.tokens_issued) == (beat, beat + 1, beat + 1)
        assert session.expires_ms == headend.now_ms + 120_000
    headend.assert_clean()


def test_heartbeat_strictRotation_refusesThePreviousToken(headend: HeadEnd, client: Client) -> None:
    first = client.setup().token
    second = client.heartbeat(first).token
    assert (client.heartbeat(first).status, client.heartbeat(first).code) == (400, 1006)
    assert client.heartbeat(second).status == 200


def test_heartbeat_acceptPrevious_takesItOnceAfterALostReply(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(token_rotation="accept_previous")
    client = Client(he)
    first = client.setup().token
    client.heartbeat(first)
    third = client.heartbeat(first)
    assert third.status == 200
    assert client.heartbeat(first).code == 1006
    assert client.heartbeat(third.token).status == 200


def test_heartbeat_noRotation_keepsTheToken(headend_factory: HeadEndFactory) -> None:
    client = Client(headend_factory(token_rotation="none"))
    token = client.setup().token
    assert [client.heartbeat(token).token for _ in range(3)] == [token] * 3
    assert client.teardown(token).status == 200
    client.he.assert_clean()


def test_heartbeat_withContentToken_is1006(headend: HeadEnd, client: Client) -> None:
    client.setup()
    assert (client.heartbeat(headend.content_token()).status, client.heartbeat(headend.content_token()).code) == (
        400,
        1006,
    )


def test_heartbeat_withoutToken_is1003(client: Client) -> None:
    assert client.heartbeat(None).code == 1003
    assert client.heartbeat("").code == 1003


@pytest.mark.shows("teardown-frees-slot")
def test_teardown_freesTheSlot_andAgainIs1006(headend: HeadEnd, client: Client) -> None:
    token = client.setup(headend.content_token(max_sessions=1)).token
    gone = client.teardown(token)
    assert (gone.status, gone.json) == (200, {})
    assert headend.sessions.active() == []
    assert headend.sessions.all()[0].state is SessionState.TORN_DOWN
    assert client.teardown(token).code == 1006
    assert client.heartbeat(token).code == 1006
    assert client.setup(headend.content_token(max_sessions=1)).status == 200


@pytest.mark.parametrize(
    ("spelling", "status", "body"), [("no-content", 204, b""), ("text", 200, b"session torn down")]
)
def test_teardown_reply_followsTheConfig(
    headend_factory: HeadEndFactory, spelling: str, status: int, body: bytes
) -> None:
    client = Client(headend_factory(teardown_reply=spelling))
    reply = client.teardown(client.setup().token)
    assert (reply.status, reply.body) == (status, body)


def test_session_withoutKeepAlive_expiresAtPeriodTimesGrace(headend: HeadEnd, client: Client) -> None:
    token = client.setup(headend.content_token(max_sessions=1)).token
    headend.advance(119_999)
    assert len(headend.sessions.active()) == 1
    assert client.setup(headend.content_token(max_sessions=1)).code == 1007
    headend.advance(1)
    session = headend.sessions.all()[0]
    assert (session.state, session.ended_ms) == (SessionState.EXPIRED, session.expires_ms)
    refused = client.heartbeat(token)
    assert (refused.code, refused.json["message"]) == (1006, "session is over: expired")
    assert client.setup(headend.content_token(max_sessions=1)).status == 200


@pytest.mark.parametrize("enforced", [frozenset(), frozenset({"clearkey"})])
def test_session_getsLicences_expiresAsIfItHadNone(headend_factory: HeadEndFactory, enforced: frozenset[str]) -> None:
    """A session gets licences, but no keep-alive. It expires two periods after its set-up."""
    headend = headend_factory(enforced=enforced)
    client = Client(headend)
    content = headend.content_token()
    token = client.setup(content).token
    for _ in range(3):
        headend.advance(39_999)
        answer = ask(client, "clearkey", f"{content},{token}")
        assert answer.status == 200
        token = answer.json.get("sessionToken", token)
    assert len(headend.sessions.active()) == 1
    headend.advance(3)
    assert headend.sessions.all()[0].state is SessionState.EXPIRED


def test_session_expiry_isJudgedByTheTimeOfExpiryAfterALongJump(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    headend.advance(60_000)
    client.heartbeat(token)
    due = headend.now_ms + 120_000
    headend.advance(3_600_000)
    assert headend.sessions.in_state("expired")[0].ended_ms == due


def test_kill_account_endsItsSessionsOnly(headend: HeadEnd, client: Client) -> None:
    alice = [client.setup(headend.content_token("alice")).token for _ in range(2)]
    bob = client.setup(headend.content_token("bob")).token
    url = f"{headend.ssm_url}/v1/sessions/killAccountSessions"
    for key, killed in (("account", 2), ("accountId", 0)):
        reply = client.send("PUT", url, headend.operator_token(), f'{{"{key}": "alice"}}')
        assert (reply.status, reply.json) == (200, killed)
    assert client.heartbeat(alice[0]).code == 1006
    assert client.teardown(alice[0]).code == 1006
    assert client.heartbeat(bob).status == 200
    assert headend.journal.last("kill-account").account == "alice"


def test_kill_device_endsItsSessionsOnly(headend: HeadEnd, client: Client) -> None:
    client.setup(headend.content_token("alice", device="tv"))
    client.setup(headend.content_token("alice", device="phone"))
    url = f"{headend.ssm_url}/v1/sessions/killDeviceSessions"
    assert client.send("PUT", url, headend.operator_token(), '{"device": "tv"}').json == 1
    assert client.send("PUT", url, headend.operator_token(), '{"deviceId": "tv"}').json == 0
    assert headend.sessions.only("alice").device == "phone"


def test_kill_withoutOperatorToken_isRefused(headend: HeadEnd, client: Client) -> None:
    url = f"{headend.ssm_url}/v1/sessions/killAccountSessions"
    assert client.send("PUT", url, headend.content_token(), '{"account": "alice"}').code == 1006
    assert client.send("PUT", url, None, '{"account": "alice"}').code == 1003
    assert client.send("PUT", url, headend.operator_token(), "nonsense").code == 1000
    assert client.send("PUT", url, headend.operator_token(), "{}").code == 1000
    assert client.send("PUT", url, headend.operator_token(expires_in_s=-1), '{"account": "a"}').code == 1004


def test_kill_byHand_needsNoRequest(headend: HeadEnd, client: Client) -> None:
    client.setup(headend.content_token("alice", device="tv"))
    assert (headend.kill_account("bob"), headend.kill_device("tv"), headend.kill_account("alice")) == (0, 1, 0)


def test_sessions_table_answersSnapshots(headend: HeadEnd, client: Client) -> None:
    token = client.setup(headend.content_token("alice")).token
    before = headend.sessions.get(headend.sessions.only().id)
    client.heartbeat(token)
    assert before.beats == 0 and headend.sessions.get(before.id).beats == 1
    assert len(headend.sessions) == 1
    with pytest.raises(KeyError):
        headend.sessions.get("nobody")
    with pytest.raises(AssertionError, match="0 sessions are active"):
        headend.sessions.only("bob")
