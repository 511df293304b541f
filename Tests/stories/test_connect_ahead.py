"""Connections that are open before the first play, and how the library uses idle connections and TLS sessions
(docs/delegates.md: connect ahead)."""

from __future__ import annotations

import ssl
import time

import pytest

import usher
from stage import HEADER, KEY, KID, Stage, StageFactory, customer, v2
from usher.testing.doors import Door, State
from usher.testing.headend import Fault
from usher.testing.headend.fixtures import Authority

E = usher.EventType
PAUSE_MS = 11_250
"""Three quarters of the 15 s for which an idle connection may be used again."""


@pytest.fixture
def stage(stage_factory: StageFactory) -> Stage:
    """A stage whose head-end has no page at `/`. So the journal also has the requests for `/`, which a head-end with a
    page does not record."""
    return stage_factory(headend={"control": False})


def lasting() -> None:
    """Waits 50 ms. The library sends a request that it must not repeat over an open connection only if this connection
    has stayed open for 20 ms."""
    time.sleep(0.05)


def heads(stage: Stage) -> int:
    return sum(entry.method == "HEAD" for entry in stage.headend.journal)


def test_connectAhead_beforeThePlay_opensTheConnectionThatThePlayUses(stage: Stage) -> None:
    """connect_ahead() takes no slot and sends no token; set-up and licence then need no new connection."""
    delegate = stage.delegate(extra_headers="x-tenant: 7")
    delegate.connect_ahead()
    stage.settle()
    sent = stage.headend.journal[0]
    assert (sent.method, sent.path, sent.header(HEADER), sent.header("x-tenant")) == ("HEAD", "/", None, None)
    assert not stage.headend.sessions.active()
    lasting()
    assert stage.clear_keys(stage.play(delegate=delegate)) == {KID: KEY}
    assert stage.routes() == ["unknown", "setup", "license"]
    assert stage.headend.connections_made == 1
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED", "LICENSE"]


def test_connectAhead_withSSPV2_opensTheConnectionOfTheLicence(stage: Stage) -> None:
    delegate = v2.delegate(stage, teardown_on_close=True)
    delegate.connect_ahead()
    stage.settle()
    lasting()
    v2.licence(stage.play(delegate=delegate))
    assert (stage.routes(), stage.headend.connections_made) == (["unknown", "license"], 1)


def test_connectAhead_forTwoServers_opensAConnectionToEach(stage: Stage) -> None:
    """The SSM and the licences are at two servers. The library sends `HEAD /` to each of them, and ignores the path and
    the query of its URL."""
    with Door(stage.headend.url) as door:
        delegate = stage.delegate(license_url=door.url(stage.headend.license_url("clearkey")) + "?region=eu/1")
        delegate.connect_ahead()
        stage.settle()
        assert [(entry.method, entry.path) for entry in stage.headend.journal] == [("HEAD", "/")] * 2
        assert door.connections == 1
        lasting()
        assert stage.clear_keys(stage.play(delegate=delegate)) == {KID: KEY}
        assert (door.connections, stage.headend.connections_made) == (1, 2)
        stage.close()


def test_connectAhead_withZapWithoutWaiting_opensTwoConnectionsToTheSSM(stage: Stage) -> None:
    """The library opens two connections to the SSM. At the zap it sends the teardown over one of them and the set-up
    over the other."""
    delegate = stage.delegate(zap_without_waiting=True)
    delegate.connect_ahead()
    stage.settle()
    lasting()
    for _ in range(2):
        assert stage.clear_keys(stage.play(delegate=delegate)) == {KID: KEY}
        stage.settle()
    assert sorted(stage.routes()[4:6]) == ["setup", "teardown"]
    assert stage.headend.connections_made == 2


def test_connectAhead_withATime_keepsTheConnectionsReadyForThisTime(stage: Stage) -> None:
    """Until `keep_ms` has passed, the library sends `HEAD /` over the idle connection before the connection becomes too
    old to be used again."""
    stage.delegate().connect_ahead(3 * PAUSE_MS)
    stage.settle()
    counts = [heads(stage)]
    for _ in range(4):
        stage.advance(PAUSE_MS)
        counts.append(heads(stage))
    assert counts == [1, 2, 3, 3, 3]
    assert stage.headend.connections_made == 1


def test_connectAhead_calledAgain_replacesTheTime(stage: Stage) -> None:
    """The host calls connect_ahead() without a limit, and then with `keep_ms` 0. From then on the library sends no
    request to keep the connection ready."""
    delegate = stage.delegate()
    delegate.connect_ahead(usher.OFF)
    stage.settle()
    lasting()
    delegate.connect_ahead(0)
    stage.advance(10 * PAUSE_MS)
    assert heads(stage) == 1


def test_connectAhead_whileOtherRequestsUseTheConnection_sendsNothing(stage: Stage) -> None:
    """The reply to another request shows that the connection works, so the library sends the next `HEAD /` later."""
    delegate = stage.delegate()
    delegate.connect_ahead(usher.OFF)
    stage.settle()
    lasting()
    stage.advance(PAUSE_MS - 1)
    stage.play(delegate=delegate)
    stage.settle()
    stage.advance(PAUSE_MS - 1)
    assert stage.routes() == ["unknown", "setup"]
    stage.advance(1)
    assert stage.routes() == ["unknown", "setup", "unknown"]


def test_connectAhead_atAServerThatNamesItsTime_usesThisTime(stage: Stage) -> None:
    """The server keeps connections for 60 s (`Keep-Alive: timeout=60`), so the library uses a connection again that has
    been idle for up to 58 s. It sends the next `HEAD /` after three quarters of this time: after 43.5 s."""
    stage.headend.faults.add("*", Fault.header("Keep-Alive", "max=100, timeout=60"), always=True)
    stage.delegate().connect_ahead(usher.OFF)
    stage.advance(43_499)
    assert heads(stage) == 1
    stage.advance(1)
    assert heads(stage) == 2


def test_setup_atAServerThatClosesIdleConnectionsSoon_usesANewConnection(stage: Stage) -> None:
    """The server closes a connection after two idle seconds, and says so. If it closes the connection while a set-up is
    on its way, the library cannot know whether the server executed the set-up, and must not repeat it. So a set-up uses
    a new connection. A licence request uses a kept connection, since the library may repeat it."""
    stage.headend.faults.add("*", Fault.header("Keep-Alive", "timeout=2"), always=True)
    delegate = stage.delegate()
    for _ in range(3):
        assert stage.clear_keys(stage.play(delegate=delegate)) == {KID: KEY}
        stage.settle()
        lasting()
    assert stage.headend.connections_made == 3


def test_connectAhead_atAServerThatIsDown_changesNothing(stage: Stage) -> None:
    """If the server is down, `HEAD /` fails without an event. A play after the server is back opens a connection."""
    with Door(stage.headend.url) as door:
        door.set(State.REFUSING)
        delegate = stage.delegate(
            license_url=door.url(stage.headend.license_url("clearkey")), ssm_url=door.url(stage.headend.ssm_url)
        )
        delegate.connect_ahead(usher.OFF)
        stage.advance(PAUSE_MS)
        assert stage.events.types() == []
        assert sum(line.startswith("connection: ") for line in stage.logs) == 2
        door.set(State.OPEN)
        assert stage.clear_keys(stage.play(delegate=delegate)) == {KID: KEY}
        stage.close()


def test_connectAhead_whoseReplyNeverComes_delaysNoPlay(stage: Stage) -> None:
    """The server does not answer `HEAD /`; a play uses another connection and does not wait."""
    stage.headend.faults.add("unknown", Fault.stall(), always=True)
    delegate = stage.delegate()
    delegate.connect_ahead(usher.OFF)
    stage.settle()
    assert stage.clear_keys(stage.play(delegate=delegate)) == {KID: KEY}
    stage.headend.release()
    stage.settle()


def test_connectAhead_afterTheContextBeganToClose_isRefusedAndSendsNothing(stage: Stage) -> None:
    delegate = stage.delegate()
    delegate.connect_ahead(usher.OFF)
    stage.settle()
    stage.context.begin_close()
    stage.advance(2 * PAUSE_MS)
    assert heads(stage) == 1
    with pytest.raises(usher.ClosedError):
        delegate.connect_ahead()
    delegate.close()
    with pytest.raises(usher.InvalidHandleError):
        delegate.connect_ahead()


def test_connectAhead_inPumpedMode_needsNoPump(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"control": False}, callbacks="pumped")
    stage.delegate().connect_ahead()
    stage.until(lambda: heads(stage) == 1)


def test_connectAhead_forDelegatesWithoutServers_doesNothing(stage: Stage) -> None:
    customer.Portal(stage, customer.BEATS).connect_ahead(usher.OFF)
    stage.advance(PAUSE_MS)
    assert len(stage.headend.journal) == 0


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS 1.2", "TLS 1.3"])
def test_furtherConnections_toAServer_continueTheTLSSessionOfTheFirst(
    stage_factory: StageFactory, newest: ssl.TLSVersion
) -> None:
    """Only the first connection of a context needs a full handshake. To get further connections, each play has its own
    delegate, and sends its set-up while earlier set-ups still wait for their replies."""
    authority = Authority("localhost")
    tls = authority.server_context()
    tls.maximum_version = newest
    stage = stage_factory(headend={"limit": 9}, ca_file=str(authority.ca_file))
    with Door(stage.headend.url, tls=tls) as door:
        for number in range(4):
            stage.play(delegate=stage.delegate(ssm_url=door.url(stage.headend.ssm_url)), screen=f"screen {number}")
            stage.settle()
            stage.headend.faults.add("setup", Fault.stall())
        assert (door.connections, door.handshakes_resumed) == (3, 2)
        stage.headend.faults.clear()
        stage.headend.release()
        stage.close()


def test_connection_afterTheNetworkChanged_continuesItsTLSSession(stage_factory: StageFactory) -> None:
    """When the network changes, the library closes its idle connections. The next connection to the server needs no
    full handshake."""
    authority = Authority("localhost")
    stage = stage_factory(headend={"control": False}, ca_file=str(authority.ca_file))
    with Door(stage.headend.url, tls=authority.server_context()) as door:
        delegate = stage.delegate(ssm_url=door.url(stage.headend.ssm_url))
        for _ in range(3):
            delegate.connect_ahead()
            stage.settle()
            stage.context.network_changed()
            stage.settle()
        assert (door.connections, door.handshakes_resumed) == (3, 2)
        stage.close()


def test_newContext_atAServerThatAnotherOneUsed_beginsATLSSessionOfItsOwn(stage_factory: StageFactory) -> None:
    """Contexts share no TLS sessions: a server cannot recognise that two contexts belong to one process."""
    authority = Authority("localhost")
    first = stage_factory(headend={"control": False}, ca_file=str(authority.ca_file))
    with Door(first.headend.url, tls=authority.server_context()) as door:
        second = stage_factory(first.headend, ca_file=str(authority.ca_file))
        for stage in (first, second):
            stage.delegate(ssm_url=door.url(stage.headend.ssm_url)).connect_ahead()
            stage.settle()
        assert (door.connections, door.handshakes_resumed) == (2, 0)
        first.close()
        second.close()
