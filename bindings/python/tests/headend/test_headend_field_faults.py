"""Tests the faults that have the names of toxiproxy and WireMock."""

from __future__ import annotations

import http.client
import socket
from typing import Any

import pytest
from headend_client import Client, InBackground, raw, setup_bytes

from usher.testing.headend import Fault, HeadEnd, Outcome
from usher.testing.headend.network.field_faults import TOXICS, WIREMOCK_FAULTS

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "latency": {"latency": 1000, "jitter": 200},
    "jitter": {"jitter": 200},
    "bandwidth": {"rate": 1},
    "slow_close": {"delay": 1000},
    "timeout": {"timeout": 1000},
    "reset_peer": {"timeout": 1000},
    "slicer": {"average_size": 64, "size_variation": 32, "delay": 10},
    "limit_data": {"bytes": 100},
}
"""For each fault of toxiproxy (it calls them "toxics"), attributes as toxiproxy writes them."""


def piece(connection: socket.socket) -> bytes:
    """Returns what the connection has received; waits until it has received something."""
    return connection.recv(65_536)


def rest(connection: socket.socket) -> bytes:
    """Returns all bytes until the head-end closes the connection."""
    received = b""
    while more := piece(connection):
        received += more
    return received


def asking(headend: HeadEnd) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", headend.port), timeout=5)
    connection.sendall(setup_bytes(headend))
    return connection


def test_latency_delaysTheReplyOfAnExecutedRequest(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.latency(3000))
    setup = InBackground(client.setup)
    headend.wait_delayed(1)
    assert len(headend.sessions.active()) == 1
    headend.advance(2999)
    headend.wait_delayed(1)
    headend.advance(1)
    assert setup.result().status == 200
    assert headend.journal[0].fault == "latency 3000 ms"


def test_latency_upstream_delaysTheRequest(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.latency(3000, stream="upstream"))
    setup = InBackground(client.setup)
    headend.wait_delayed(1)
    assert len(headend.sessions.active()) == 0
    headend.advance(3000)
    assert setup.result().status == 200


@pytest.mark.parametrize("fault", [Fault.latency(1000, 200), Fault.jitter(1200)])
def test_jitter_sameSeed_drawsTheSameDelays(headend: HeadEnd, client: Client, fault: Fault) -> None:
    client.setup()

    def delays(seed: int) -> list[int]:
        script = HeadEnd(fault_seed=seed).faults
        script.add("setup", fault, times=20)
        drawn = [script.take(headend.journal[0]) for _ in range(20)]
        return [made.delay_ms[1] for made in drawn if made is not None]

    first = delays(1)
    assert len(set(first)) > 5 and delays(1) == first != delays(2)
    least = 800 if fault.delay_ms[1] == 1000 else 0
    assert all(least <= ms <= 1201 for ms in first)


def test_toxicity_half_someRequestsGetTheFault(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("teardown", Fault.connection_reset_by_peer() | Fault.latency(toxicity=0.5), always=True)
    assert [Fault.latency(toxicity=chance).toxicity for chance in (0, 1)] == [0.0, 1.0]
    token, resets = client.setup().token, 0
    for _ in range(30):
        try:
            client.teardown(token)
        except ConnectionResetError:
            resets += 1
    assert 5 < resets < 25


def test_bandwidth_replyTakesSizeDividedByRate(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    body = "x" * 450
    headend.faults.add("teardown", Fault.reply(200, body=body, processed=True) | Fault.bandwidth(1))
    teardown = InBackground(client.teardown, token)
    start = headend.now_ms
    while teardown.is_alive():
        headend.catch_up()
        if getattr(headend.clock, "waiting", 0):
            headend.advance(10)
    assert teardown.result().body == body.encode()
    took = headend.now_ms - start
    assert 450 < took < 800  # 450 bytes and the headers, at 1 byte per ms


def test_bandwidth_thenNextRequest_sameConnection(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.bandwidth(1_000_000))
    connection = http.client.HTTPConnection("127.0.0.1", headend.port, timeout=5)
    for _ in range(2):
        connection.request("POST", f"{headend.ssm_url}/v1/sessions/setup", headers={"nv-authorizations": "x"})
        assert connection.getresponse().read()
    connection.close()
    assert headend.connections_made == 1


def test_slicer_replyComesInSlicesAtTheirTimes(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.slicer(40, 10, 5_000_000))
    with asking(headend) as connection:
        slices = [piece(connection)]
        while b"sessionToken" not in b"".join(slices):
            headend.wait_delayed(1)
            headend.advance(4999)
            headend.wait_delayed(1)
            headend.advance(1)
            slices.append(piece(connection))
    assert all(30 <= len(one) <= 50 for one in slices) and len(set(map(len, slices))) > 1
    assert b"".join(slices).startswith(b"HTTP/1.1 200 OK\r\n")


def test_slicer_lastSliceSent_tokenIsDelivered(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.slicer(16))
    assert client.setup().status == 200
    headend.journal.wait_for(lambda journal: journal[0].delivered)
    assert headend.journal[0].outcome is Outcome.ANSWERED


@pytest.mark.parametrize("limit", [0, 100, 300])
def test_limitData_longerReply_isCutAndClosed(headend: HeadEnd, limit: int) -> None:
    headend.faults.add("setup", Fault.limit_data(limit))
    with asking(headend) as connection:
        assert len(rest(connection)) == limit
    entry = headend.journal.last("setup")
    assert (entry.outcome, entry.delivered) == (Outcome.DAMAGED, False)


def test_limitData_shorterReply_arrivesWhole(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.limit_data(100_000))
    assert client.setup().token
    assert headend.journal[0].delivered and headend.journal[0].outcome is Outcome.ANSWERED


def test_slowClose_replyAtOnce_connectionEndsLater(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.slow_close(5000))
    with asking(headend) as connection:
        received = piece(connection)
        assert b"Connection: close" in received and b"sessionToken" in received
        headend.wait_delayed(1)
        assert headend.journal[0].delivered
        headend.advance(5000)
        assert rest(connection) == b""


def test_timeout_closesLaterWithoutAReply(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.timeout(5000))
    with asking(headend) as connection:
        headend.wait_delayed(1)
        assert len(headend.sessions.active()) == 1
        headend.advance(5000)
        assert rest(connection) == b""
    assert headend.journal[0].outcome is Outcome.DROPPED


@pytest.mark.parametrize(("stream", "active"), [("downstream", 1), ("upstream", 0)])
def test_timeoutZero_releaseEndsIt(headend: HeadEnd, stream: str, active: int) -> None:
    headend.faults.add("setup", Fault.timeout(0, stream="upstream" if stream == "upstream" else "downstream"))
    with asking(headend) as connection:
        headend.wait_held(1)
        headend.release()
        assert rest(connection) == b""
    assert len(headend.sessions.active()) == active


def test_resetPeer_resetsAfterTheTimeout(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.reset_peer(2000))
    with asking(headend) as connection:
        headend.wait_delayed(1)
        headend.advance(2000)
        with pytest.raises(ConnectionResetError):
            piece(connection)
    assert len(headend.sessions.active()) == 1


def test_emptyResponse_closesWithoutAByte(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.empty_response())
    assert raw(headend, setup_bytes(headend)) == b""
    assert len(headend.sessions) == 0


def test_malformedResponseChunk_headersThenNoise(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.malformed_response_chunk(), times=2)
    head, _, noise = raw(headend, setup_bytes(headend)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK") and b"chunked" in head and len(noise) == 512
    with pytest.raises((http.client.HTTPException, ValueError)):
        client.setup()
    assert headend.journal[0].outcome is Outcome.DAMAGED and not headend.journal[0].delivered


def test_randomDataThenClose_isNoHttp(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.random_data_then_close(), times=2)
    assert len(noise := raw(headend, setup_bytes(headend))) == 512 and not noise.startswith(b"HTTP/")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        client.setup()


def test_connectionResetByPeer_isAReset(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.connection_reset_by_peer())
    with pytest.raises(ConnectionResetError):
        raw(headend, setup_bytes(headend))
    assert len(headend.sessions) == 0


@pytest.mark.parametrize("kind", TOXICS)
def test_toxic_asToxiproxyWritesIt_isTheSameFault(kind: str) -> None:
    attributes = ATTRIBUTES[kind]
    made = getattr(Fault, kind)(**attributes)
    toxic = {"name": f"{kind}_downstream", "type": kind, "stream": "downstream", "toxicity": 1.0}
    assert Fault.from_json({**toxic, "attributes": attributes}) == made
    assert Fault.from_json({"kind": kind, **attributes}) == made


@pytest.mark.parametrize("name", WIREMOCK_FAULTS)
def test_wiremockFault_byItsName_isTheSameFault(name: str) -> None:
    assert Fault.from_json(name) == Fault.from_json({"kind": name}) == getattr(Fault, name.lower())()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"kind": "latency", "latency": -1}, "latency: -1 is not a whole number of at least 0"),
        ({"kind": "latency", "latency": "1s"}, "latency: '1s' is not a whole number"),
        ({"kind": "latency", "delay": 1}, "unexpected keyword argument 'delay'"),
        ({"kind": "bandwidth", "rate": 0}, "rate: 0 is not a whole number of at least 1"),
        ({"kind": "slicer", "average_size": 8, "size_variation": 8}, "8 is not less than average_size, 8"),
        ({"kind": "timeout", "timeout": 1, "stream": "up"}, "neither downstream nor upstream"),
        ({"kind": "limit_data", "bytes": True}, "bytes: True is not a whole number"),
        ({"kind": "jitter", "jitter": 1, "toxicity": 1.5}, "toxicity: 1.5 is not a number from 0 to 1"),
        ({"type": "latency", "attributes": {"latency": 1}, "enabled": True}, "a toxic has no enabled"),
        ({"type": "slow_close", "attributes": {"delay": 1}, "stream": "upstream"}, "unexpected keyword"),
        ("EMPTY", "unknown fault kind 'EMPTY'"),
    ],
)
def test_fieldFault_wrongValue_isRefusedInWords(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Fault.from_json(value)


SCRIPT = [
    {"route": "setup", "fault": "EMPTY_RESPONSE"},
    {"route": "setup", "fault": {"type": "latency", "attributes": {"latency": 1000}}, "times": 2, "account": "alice"},
    {"route": "heartbeat", "fault": [{"kind": "status", "status": 503}, {"kind": "reset_peer"}]},
]


def test_script_overHttpAndInPython_isTheSame(headend: HeadEnd, client: Client) -> None:
    headend.faults.load(SCRIPT)
    in_python = headend.faults.script()
    headend.faults.clear()
    reply = client.control("POST", "faults", {"script": SCRIPT})
    assert (reply.status, reply.json) == (200, {"pending": 5})
    assert headend.faults.script() == in_python and len(in_python) == 4


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"route": "set-up", "fault": "EMPTY_RESPONSE"}, "unknown route 'set-up'"),
        ({"route": "setup"}, "no fault"),
        ({"route": "setup", "fault": "EMPTY_RESPONSE", "tims": 3}, "unknown member tims"),
        ({"route": "setup", "fault": "EMPTY_RESPONSE", "times": 0}, "times: 0 is less than one"),
        ("setup", "not a JSON object"),
    ],
)
def test_script_wrongLine_queuesNothing(headend: HeadEnd, client: Client, line: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"line 2 of the fault script: {words}"):
        headend.faults.load([SCRIPT[0], line])
    reply = client.control("POST", "faults", {"script": [SCRIPT[0], line]})
    assert reply.status == 400 and words in reply.json["error"]
    assert headend.faults.pending == 0
