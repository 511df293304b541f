"""Tests the limit on the number of connections of a context, and requests that wait for a free connection."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import usher
from stage import CHALLENGE, Stage, StageFactory
from stage.fps import SKD, loader, ready
from usher.testing.headend import Fault, HeadEnd

E = usher.EventType


def screens(stage: Stage, count: int, delegate: usher.SSPDelegate | None = None, tag: str = "screen") -> None:
    """Starts playbacks, each on a separate player."""
    delegate = delegate or stage.delegate()
    for number in range(count):
        stage.play(player=usher.Player(stage.context), delegate=delegate, tag=f"{tag} {number}")


@pytest.fixture
def other(headend_factory: Callable[..., HeadEnd]) -> HeadEnd:
    return headend_factory(period_s=60, limit=99)


def elsewhere(stage: Stage, other: HeadEnd) -> usher.SSPDelegate:
    """Returns a delegate of another head-end. From then on the stage also counts the requests that this other head-end
    holds."""
    stage.also_held.append(lambda: other.held)
    return stage.delegate(license_url=other.license_url("clearkey"), ssm_url=other.ssm_url)


def test_setups_beyondTheBound_waitAndSucceed(stage_factory: StageFactory) -> None:
    """If many sessions start at the same time and the server stalls, the library never has more requests in flight than
    `connections_max` allows; every set-up succeeds when the server replies."""
    stage = stage_factory(headend={"limit": 99}, connections_max=3)
    stage.headend.faults.add("setup", Fault.stall(), always=True)
    screens(stage, 40)
    stage.advance(5_000)
    assert stage.headend.held == 2, "each second another request gets a permit; one connection stays free"
    assert stage.context.pending().queued == 38
    stage.headend.faults.clear()
    stage.headend.release()
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED"] * 40


def test_heartbeat_whileAnotherServersSetupsHoldAllConnections_takesOneOfThem(
    stage_factory: StageFactory, other: HeadEnd
) -> None:
    """If no connection is free for a heartbeat, the library ends the set-up that has waited longest for a reply."""
    stage = stage_factory(headend={"limit": 9}, connections_max=2)
    screens(stage, 1, tag="plays")
    stage.settle()
    there = elsewhere(stage, other)
    stage.advance(58_000)
    other.faults.add("setup", Fault.stall("before"), always=True)
    screens(stage, 2, there, tag="hangs")
    stage.advance(2_100)
    kept = stage.events.only(E.KEPT_ALIVE)
    assert (kept.tag, kept.lateness_ms) == ("plays 0", 100)
    failed = stage.events.only(E.SETUP_ERROR)
    assert failed.tag == "hangs 0" and failed.error
    assert (failed.error.status, failed.error.orphan_possible) == (usher.Status.TIMEOUT, True)
    other.faults.clear()
    other.release()
    stage.settle()


def test_heartbeat_whileAnotherServerHangs_findsAConnection(stage_factory: StageFactory, other: HeadEnd) -> None:
    """If one server hangs, the library sends a heartbeat to another server on time, although far more requests go to
    the server that hangs."""
    stage = stage_factory(headend={"limit": 9}, connections_max=8)
    screens(stage, 1, tag="plays")
    there = elsewhere(stage, other)
    stage.settle()
    # The library allows two requests to the server that hangs, and two more each second. So after 3 s the requests to
    # this server could use all eight connections.
    stage.advance(54_000)
    other.faults.add("setup", Fault.stall("before"), always=True)
    screens(stage, 50, there, tag="hangs")
    stage.advance(6_000)
    assert stage.events.only(E.KEPT_ALIVE).lateness_ms == 0
    assert stage.events.all(E.SETUP_ERROR) == []
    other.faults.clear()
    other.release()
    stage.settle()


@pytest.mark.breaks_rules("late-beat")
def test_heartbeats_toAServerThatHangs_keepToTheBound_andFollowWhenItReplies(stage_factory: StageFactory) -> None:
    """While the server hangs, the library sends 20 of 100 heartbeats. It sends the others when the server replies
    again."""
    stage = stage_factory(headend={"limit": 999, "grace": 9}, connections_max=24)
    screens(stage, 100)
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.stall("before"), always=True)
    stage.advance(63_000)
    assert stage.headend.held == 20 and stage.context.pending().queued == 80
    stage.headend.faults.clear()
    stage.headend.release()
    stage.settle()
    assert stage.events.types().count("KEPT_ALIVE") == 100 and stage.events.all(E.HEARTBEAT_ERROR) == []


def test_licence_thatWaitedInTheQueue_hasItsWholeTimeoutAfterwards(stage_factory: StageFactory) -> None:
    """A request's time-out begins when the request leaves the queue, so both slow licences arrive in time."""
    stage = stage_factory(headend={"limit": 9}, requests_per_origin_max=1, http_timeout_ms=2_000)
    playback = stage.play(delegate=stage.delegate())
    stage.settle()
    stage.headend.faults.add("license", Fault.delay(1_500), always=True)
    first = playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    second = playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    stage.advance(4_000)
    assert [first.exception(10), second.exception(10)] == [None, None]
    sent = [entry.at_ms for entry in stage.sent("license")]
    assert sent[1] - sent[0] == 1_000, "the second licence left the queue when the first had waited for a second"


def test_request_cancelledInFlight_givesItsPermitToTheNext(stage_factory: StageFactory) -> None:
    """The library sends a queued set-up when the request that had the only permit is cancelled."""
    stage = stage_factory(headend={"limit": 9}, requests_per_origin_max=1)
    ready(stage)
    loader(stage)
    playback = stage.play(delegate=stage.delegate(), tag="closes")
    stage.settle()
    stage.headend.faults.add("ckc", Fault.stall())
    load = playback.load_resource(SKD)
    stage.headend.wait_held()
    stage.play(player=usher.Player(stage.context), delegate=stage.delegate(), tag="waits")
    stage.settle()
    assert stage.routes() == ["setup", "ckc"]
    playback.close()
    stage.settle()
    assert stage.context.pending().queued == 0, f"a request still waits for a permit: {stage.routes()}"
    assert isinstance(load.exception(10), usher.ClosedError)
    assert sorted(stage.routes()) == ["ckc", "setup", "setup", "teardown"]


# ---- connections made ------------------------------------------------------------------------------------------------


class CountingServer(ThreadingHTTPServer):
    """A session manager that counts its connections. It closes the connection of each of the first `drops` heartbeats
    without a reply."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), SSMHandler)
        self.lock = threading.Lock()
        self.connections = 0
        self.drops = 0
        self.beats = 0

    def get_request(self) -> Any:
        connection = super().get_request()
        with self.lock:
            self.connections += 1
        return connection


class SSMHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CountingServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if "heartbeat" in self.path:
            with self.server.lock:
                self.server.beats += 1
                drop = self.server.beats <= self.server.drops
            if drop:
                self.close_connection = True
                return
        body = json.dumps({"sessionToken": "t", "heartbeat": 60}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    with CountingServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


def test_heartbeats_afterAConnectionThatEnded_openNewOnesOnlyUntilOneReplies(
    stage_factory: StageFactory, counting: CountingServer
) -> None:
    """After a connection has ended without a reply, the library opens new connections only until the next reply."""
    stage = stage_factory(requests_per_origin_max=1)
    url = f"http://127.0.0.1:{counting.server_port}"
    delegate = stage.delegate(license_url=url, ssm_url=url)
    screens(stage, 8, delegate)
    stage.settle()
    before = counting.connections  # until the server is known to keep connections, set-ups open new ones
    assert before <= 8
    counting.drops = 1
    stage.advance(62_000)
    made = counting.connections
    assert made <= before + 2, "only requests before the next reply open new connections"
    stage.advance(4 * 60_000)
    assert counting.beats >= 8 * 5 and counting.connections == made
    for playback in stage._playbacks:
        playback.close()
    stage.settle()


def test_keptConnection_besideManyRequestsToServersThatHang_isUsedForEachHeartbeat(stage_factory: StageFactory) -> None:
    """While 576 set-ups wait for the replies of nine servers, the library sends the heartbeats of a session at a tenth
    server. It uses the connection over which it sent the set-up of this session."""
    stage = stage_factory(connections_max=640, requests_per_origin_max=64, http_timeout_ms=600_000)
    screens(stage, 1, tag="plays")
    stage.settle()
    with contextlib.ExitStack() as listening:
        for _ in range(9):
            server = listening.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            delegate = stage.delegate(license_url=url, ssm_url=url, setup_timeout_ms=600_000)
            screens(stage, 64, delegate, tag=f"hangs at {url}")
        stage.also_held.append(lambda: 9 * 64)
        stage.advance(180_000)
        assert stage.events.types() == ["SESSION_STARTED"] + 3 * ["KEPT_ALIVE"]
        assert stage.headend.connections_made == 1
        stage.close()


# ---- the limit of file descriptors -----------------------------------------------------------------------------------

HOST = """
import collections, json, os, resource, sys, threading, usher
limit, screens, spare = (int(text) for text in sys.argv[1:4])
pairs = [pair.split(",") for pair in sys.argv[4:]]
names = collections.Counter()
most, failed = 0, []
over = threading.Event()
def watch():
    global most
    while not over.wait(0.002):
        try:
            with open("/dev/null"):
                most = max(most, len(os.listdir("/proc/self/fd")))
        except OSError as error:
            failed.append(str(error))
def on_event(event):
    names[event.type.name + (f" {event.error.status.name}" if event.error else "")] += 1
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
with usher.Context(proxy="", callback_threads_max=2, http_timeout_ms=60_000) as context:
    context.add_observer(on_event)
    patience = {"setup_timeout_ms": 60_000, "teardown_timeout_ms": 60_000}
    delegates = [usher.SSPDelegate(context, license_url=url, ssm_url=url, **patience) for url, _ in pairs]
    players = [usher.Player(context) for _ in range(screens)]
    if spare:
        taken = []
        try:
            while True: taken.append(open("/dev/null"))
        except OSError: pass
        for _ in range(spare - 1): taken.pop().close()
    else:
        watcher = threading.Thread(target=watch)
        watcher.start()
    playing = [
        player.play(pairs[at % len(pairs)][1], delegate=delegates[at % len(pairs)]) for at, player in enumerate(players)
    ]
    for playback in playing:
        try: playback.wait_session(60_000)
        except usher.UsherError: pass
    over.set()
    if spare: taken.clear()
    else: watcher.join()
    context.shutdown(60_000)
print(json.dumps({"events": names, "most": most, "failed": failed}))
"""


SUCCESS = ("SESSION_STARTED", "SESSION_ENDED", "PLAYBACK_CLOSED")


def host(limit: int, screens: int, *headends: HeadEnd, spare: int = 0) -> dict[str, Any]:
    """Runs a host with `limit` file descriptors, which plays on `screens` screens and then closes all playbacks.

    If `spare` is not 0, the host first opens files until the system refuses another file, and then closes `spare` - 1
    of them. If `spare` is 0, a thread of the host opens and closes a file again and again instead.

    Returns how many events of each name and status came, the largest number of open descriptors, and the errors of
    open().
    """
    pairs = [f"{headend.ssm_url},{headend.content_token()}" for headend in headends]
    environment = {**os.environ, "PYTHONPATH": str(Path(usher.__file__).parents[1])}
    command = [sys.executable, "-c", HOST, str(limit), str(screens), str(spare), *pairs]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def real(lib: Any) -> Iterator[Callable[..., HeadEnd]]:
    """Makes head-ends on the system's clock."""
    made: list[HeadEnd] = []

    def make() -> HeadEnd:
        made.append(HeadEnd(period_s=600, limit=9_999).start())
        return made[-1]

    yield make
    for headend in made:
        headend.stop()


def test_host_of64Descriptors_plays600ScreensAndOpensItsOwnFiles(real: Callable[..., HeadEnd]) -> None:
    """If the process may have only 64 descriptors, every screen still gets its session, and the host can open its
    files."""
    found = host(64, 600, real())
    assert found["events"] == dict.fromkeys(SUCCESS, 600)
    assert found["failed"] == [] and found["most"] <= 48


def test_host_of1024Descriptors_twoSlowServers_failsNothing(real: Callable[..., HeadEnd]) -> None:
    """If two servers need 1.5 s for each set-up, every screen of a host with at most 1,024 descriptors gets its
    session, and the host can open its files."""
    slow = [real(), real()]
    for headend in slow:
        headend.faults.add("setup", Fault.delay(1_500), always=True)
    found = host(1024, 1_000, *slow)
    assert found["events"] == dict.fromkeys(SUCCESS, 1_000)
    assert found["failed"] == [] and found["most"] <= 600


def test_host_thatLeavesOneDescriptor_requestsTakeTurns(real: Callable[..., HeadEnd]) -> None:
    """If the host leaves one descriptor free, all requests wait for the only connection, and all of them succeed."""
    found = host(64, 20, real(), spare=2)
    assert found["events"] == dict.fromkeys(SUCCESS, 20)


def test_host_thatLeavesNoDescriptor_isToldSo(real: Callable[..., HeadEnd]) -> None:
    """If no descriptor is free, and no other request is in flight whose connection could become free, a set-up fails
    with SYSTEM."""
    headend = real()
    found = host(64, 3, headend, spare=1)
    assert found["events"] == {"SETUP_ERROR SYSTEM": 3, "PLAYBACK_CLOSED": 3}
    assert headend.journal.routes() == []
