"""Tests head-ends that share their session table in Redis."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from headend_client import Client

from pytest_usher import HeadEndFactory
from usher.testing.headend import HeadEnd, SessionState
from usher.testing.redis_server import RedisServer

UNAVAILABLE = (503, 4001)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A Redis server of this test alone, which the test may kill."""
    with RedisServer() as server:
        yield server


def shared(headend_factory: HeadEndFactory, server: RedisServer, count: int = 2, **settings: object) -> list[HeadEnd]:
    """Starts head-ends that share their sessions, and returns them."""
    return [headend_factory(sessions_url=server.url, clock="system", **settings) for _ in range(count)]


def test_sessions_ofSeveralHeadEnds_countTogether(headend_factory: HeadEndFactory, server: RedisServer) -> None:
    """Alice opens a session at one head-end. The other one refuses her second session, keeps the first one alive, and
    ends it; then she may open another."""
    one, other = shared(headend_factory, server, limit=1)
    token = Client(one).setup(one.content_token("alice")).token
    refused = Client(other).setup(other.content_token("alice"))
    assert (refused.status, refused.code) == (400, 1007)
    token = Client(other).heartbeat(token).token
    assert one.sessions.only("alice").beats == 1
    assert Client(one).teardown(token).status == 200
    assert Client(other).setup(other.content_token("alice")).status == 200
    assert [account.refused for account in one.sessions.accounts()] == [1]
    assert other.sessions.counts()[SessionState.TORN_DOWN] == 1


def test_limit_requestsAtTheSameTime_isNeverExceeded(headend_factory: HeadEndFactory, server: RedisServer) -> None:
    """Sixteen threads ask two head-ends for sessions of one account, all at once: exactly two get one."""
    ends = shared(headend_factory, server, limit=2)
    gate = threading.Barrier(16)

    def ask(number: int) -> int:
        he = ends[number % 2]
        gate.wait()
        return Client(he).setup(he.content_token("alice")).status

    with ThreadPoolExecutor(16) as pool:
        statuses = sorted(pool.map(ask, range(16)))
    assert statuses == [200] * 2 + [400] * 14
    assert len(ends[0].sessions.active("alice")) == 2
    assert ends[1].sessions.account("alice").refused == 14


def test_redis_goneAndBack_refusesAndLosesNothing(headend_factory: HeadEndFactory, server: RedisServer) -> None:
    """Redis dies while Alice has a session, and comes back. In between each request gets 503; afterwards her session
    lives on, and her limit still holds."""
    (he,) = shared(headend_factory, server, 1, limit=1, token_rotation="accept_previous")
    client = Client(he)
    token = client.setup(he.content_token("alice")).token
    server.kill()
    for refused in (client.heartbeat(token), client.setup(he.content_token("bob")), client.teardown(token)):
        assert (refused.status, refused.code) == UNAVAILABLE
        assert "session table in Redis" in refused.json["message"]
    server.start()
    token = client.heartbeat(token).token
    assert client.setup(he.content_token("alice")).code == 1007
    assert client.teardown(token).status == 200


def test_table_manyChangesAtOnce_losesNone(headend_factory: HeadEndFactory, server: RedisServer) -> None:
    """Eight threads send heartbeats for one session through two head-ends. Each heartbeat counts."""
    ends = shared(headend_factory, server, token_rotation="none")
    token = Client(ends[0]).setup(ends[0].content_token("alice")).token

    def beat(number: int) -> list[int]:
        return [Client(ends[number % 2]).heartbeat(token).status for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        statuses = [status for found in pool.map(beat, range(8)) for status in found]
    assert statuses == [200] * 80
    assert ends[0].sessions.only("alice").beats == 80


def test_clear_ofATenant_leavesOtherTenants(headend_factory: HeadEndFactory, server: RedisServer) -> None:
    one = headend_factory(sessions_url=server.url, tenant="T1")
    other = headend_factory(sessions_url=server.url, tenant="T12")
    for he in (one, other):
        assert Client(he).setup(he.content_token("alice")).status == 200
    one.restart(keep_table=False)
    assert (len(one.sessions), len(other.sessions)) == (0, 1)


def test_config_opaqueTokensInASharedTable_areRefused() -> None:
    with pytest.raises(ValueError, match="token_form"):
        HeadEnd(sessions_url="redis://127.0.0.1:1/0", token_form="uuid")


def test_redis_keys_beginWithTheTenant(headend_factory: HeadEndFactory, server: RedisServer) -> None:
    (he,) = shared(headend_factory, server, 1)
    Client(he).setup(he.content_token("alice"))
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        keys = list(client.scan_iter())
    assert keys and all(key.startswith("usher:TENANT1:") for key in keys)
