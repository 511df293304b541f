"""Tests the head-end inside a test process: start and stop, clocks, TLS and settings."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from typing import Any

import pytest
from headend_client import Client, InBackground

from pytest_usher import HeadEndFactory
from usher.testing.headend import Fault, HeadEnd, HeadEndConfig, ManualClock, Outcome, SystemClock


def test_with_startsAndStops() -> None:
    with HeadEnd(HeadEndConfig(tenant="T2")) as he:
        assert he.running and he.port and he.url == f"http://127.0.0.1:{he.port}"
        assert (he.tenant_url, he.ssm_url) == (f"{he.url}/T2", f"{he.url}/T2/ssm")
        assert he.license_url("clearkey") == f"{he.url}/T2/ckls/contentlicenseservice/v1/licenses"
        assert Client(he).setup().status == 200
        with pytest.raises(RuntimeError, match="started already"):
            he.start()
    assert not he.running and he.journal.routes() == ["setup"] and len(he.sessions.active()) == 1
    with pytest.raises(ConnectionRefusedError):
        Client(he).setup()
    he.stop()


def test_start_onATakenPort_raises() -> None:
    with HeadEnd() as first:
        second = HeadEnd(port=first.port)
        with pytest.raises(OSError, match="address already in use"):
            second.start()
        assert not second.running


def test_restart_samePort_keepsTheTable(headend: HeadEnd, client: Client) -> None:
    port, token = headend.port, client.setup().token
    headend.restart()
    assert headend.port == port
    assert client.heartbeat(token).status == 200


def test_restart_withoutTable_forgets(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    headend.restart(keep_table=False)
    assert client.heartbeat(token).code == 1006
    assert headend.journal.routes() == ["setup", "heartbeat"]


def test_stop_dropsHeldRequests(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.stall(), Fault.delay(1000))
    asking = [InBackground(client.setup)]
    headend.wait_held(1)
    asking.append(InBackground(client.setup))
    headend.journal.wait_for(2)
    headend.stop()
    for ask in asking:
        with pytest.raises(ConnectionError):
            ask.result()
    assert headend.held == 0
    assert [entry.outcome for entry in headend.journal] == [Outcome.DROPPED] * 2
    headend.advance(1000)
    headend.start()
    assert client.setup().status == 200


def test_tls_hasAnAuthorityOfItsOwn(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(tls=True)
    assert he.url.startswith("https://") and he.ca_file is not None
    context = ssl.create_default_context(cafile=str(he.ca_file))
    assert Client(he, context=context).setup().status == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        Client(he, context=ssl.create_default_context()).setup()
    old = ssl.create_default_context(cafile=str(he.ca_file))
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert Client(he, context=old).setup().status == 200


def test_tls_faultsWorkToo(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(tls=True)
    client = Client(he, context=ssl.create_default_context(cafile=str(he.ca_file)))
    he.faults.add("setup", Fault.reset("after"), Fault.drop("after"), Fault.status(503))
    for _ in range(2):
        with pytest.raises(OSError):
            client.setup()
    assert client.setup().status == 503
    assert len(he.sessions.active()) == 2
    assert he.ca_file is not None and headend_factory().ca_file is None


def test_manualClock_wakesInOrderAndOnlyForward() -> None:
    clock = ManualClock(1000)
    woken: list[int] = []

    async def story() -> None:
        async def wait(deadline: int) -> None:
            await clock.wait_until(deadline)
            woken.append(deadline)

        tasks = [asyncio.create_task(wait(deadline)) for deadline in (1000, 1300, 1100, 1200)]
        await asyncio.sleep(0)
        assert clock.waiting == 3
        await asyncio.to_thread(clock.advance, 250)
        await asyncio.gather(tasks[2], tasks[3])
        assert woken == [1000, 1100, 1200] and clock.now_ms() == 1250
        clock.advance(50)
        await asyncio.gather(*tasks)

    asyncio.run(story())
    assert woken[-1] == 1300
    with pytest.raises(ValueError, match="back in time"):
        clock.advance(-1)


def test_systemClock_isTheEpochAndCannotBeMoved() -> None:
    with HeadEnd() as he:
        assert isinstance(he.clock, SystemClock) and he.now_ms > 1_600_000_000_000
        with pytest.raises(RuntimeError, match="not manual"):
            he.advance(1)
        he.faults.add("setup", Fault.delay(5))
        assert Client(he).setup().status == 200
        entry = he.journal[0]
        assert entry.answered_ms is not None and entry.answered_ms - entry.at_ms >= 5


def test_clock_canBeShared() -> None:
    clock = ManualClock(5000)
    with HeadEnd(clock=clock) as one, HeadEnd(clock=clock) as two:
        clock.advance(5)
        assert one.now_ms == two.now_ms == 5005 and one.manual


def test_severalHeadEnds_areIndependent(headend_factory: HeadEndFactory) -> None:
    one, two = headend_factory(), headend_factory(tenant="T2")
    token = Client(one).setup().token
    assert Client(two).heartbeat(token).code == 1005
    assert one.port != two.port and len(two.sessions) == 0


def test_manyClientsAtOnce_neverExceedTheLimit(headend: HeadEnd, client: Client) -> None:
    token = headend.content_token(max_sessions=3)
    asking = [InBackground(client.setup, token) for _ in range(24)]
    statuses = [ask.result().status for ask in asking]
    assert statuses.count(200) == 3 and statuses.count(400) == 21
    assert [entry.number for entry in headend.journal] == list(range(1, 25))


def test_bodyTooLarge_is413(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(max_body_bytes=1000)
    assert Client(he).license("fairplay", he.content_token(), b"x" * 2000).status == 413
    assert he.journal[0].status == 413


def test_keptAliveConnection_isServed(headend: HeadEnd) -> None:
    import requests

    with requests.Session() as session:
        url, token = f"{headend.ssm_url}/v1/sessions", headend.content_token()
        for _ in range(3):
            made = session.post(f"{url}/setup", headers={"nv-authorizations": token}, json={}).json()["sessionToken"]
            assert session.post(f"{url}/teardown", headers={"nv-authorizations": made}, json={}).json() == {}
    assert headend.connections_made == 1
    headend.assert_clean()


def test_connectionsMade_countsClosedConnectionsAndRequestsThatCannotBeRead(headend: HeadEnd, client: Client) -> None:
    client.setup()
    headend.restart()
    client.setup()
    with socket.create_connection(("127.0.0.1", headend.port), timeout=10) as stream:
        stream.sendall(b"no request\r\n\r\n")
        assert b" 400 " in stream.recv(100)
    assert headend.connections_made == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tenant": "a/b"}, "tenant"),
        ({"port": 99_999}, "port: 99999 is not a number from 0 to 65535"),
        ({"period_s": 0}, "period_s"),
        ({"period_s": float("nan")}, "period_s"),
        ({"grace": 0.5}, "grace"),
        ({"limit": -1}, "limit"),
        ({"clock": "sundial"}, "clock"),
        ({"token_rotation": "sometimes"}, "token_rotation"),
        ({"enforced": {"betamax"}}, "enforced: unknown key system betamax"),
        ({"enforced": {"fairplay"}, "fairplay_reply": "raw"}, "raw CKC"),
        ({"keys": {b"short": bytes(16)}}, "16 bytes each"),
    ],
)
def test_badSettings_areRefused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HeadEnd(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limit": "1"}, "limit: '1' is a str; give an int"),
        ({"limit": True}, "limit: True is a bool; give an int"),
        ({"period_s": "5"}, "period_s: '5' is a str; give a float"),
        ({"tls": "yes"}, "tls: this is a str; give a bool"),
        ({"journal_limit": 1.5}, "journal_limit: 1.5 is a float; give an int or None"),
        ({"tenant": None}, "tenant: this is None; give a str"),
    ],
)
def test_settings_ofAWrongType_areNamed(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        HeadEnd(**settings)
    assert str(caught.value) == message


def test_configAndSettings_cannotBothBeGiven() -> None:
    with pytest.raises(TypeError, match=r"HeadEnd\(\) has no option 'period': did you mean 'period_s'\?"):
        HeadEnd(period=10)
    with pytest.raises(TypeError, match="not both"):
        HeadEnd(HeadEndConfig(), limit=1)


def test_secrets_areNotInReprs(headend: HeadEnd) -> None:
    assert "fixture key" not in repr(headend.config)


def test_stop_leavesNoThread() -> None:
    before = threading.active_count()
    with HeadEnd() as he:
        Client(he).setup()
    assert threading.active_count() == before
