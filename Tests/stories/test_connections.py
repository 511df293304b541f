"""The server closes a kept connection without a reply. By default libcurl then sends the request again, although the
server may have executed it. The library prevents this."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import usher
from stage import Stage
from usher.testing.headend import Fault

E = usher.EventType

BODIES = {"a body": "{}", "no body": "", "a long body": '{"device":"' + "d" * 60_000 + '"}'}


@pytest.mark.leaves_session
@pytest.mark.parametrize("body", BODIES)
def test_setup_overAKeptConnectionThatDies_isNotSentAgain(stage: Stage, body: str) -> None:
    delegate = stage.delegate(setup_body=BODIES[body])
    stage.play(delegate=delegate, tag="first")
    stage.settle()
    stage.headend.faults.add("setup", Fault.drop("after"))
    stage.play(delegate=delegate, tag="second", player=usher.Player(stage.context))
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR, "second")
    assert isinstance(error, usher.TransportError) and error.orphan_possible
    assert stage.routes() == ["setup", "setup"]


@pytest.mark.parametrize("body", BODIES)
def test_heartbeat_overAKeptConnectionThatDies_isTriedAgainByTheSessionOnly(stage: Stage, body: str) -> None:
    stage.play(delegate=stage.delegate(keep_alive_body=BODIES[body]))
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.drop("before"))
    stage.advance(60_000)
    assert stage.routes() == ["setup", "heartbeat"]
    stage.advance(1_000)
    assert stage.routes() == ["setup", "heartbeat", "heartbeat"]
    assert stage.events.types() == ["SESSION_STARTED", "KEPT_ALIVE"]


def test_setup_thatTheLastConnectionTookAlong_mayHaveLeftAnOrphan(lib: Any) -> None:
    """The server closes the kept connection without a reply to set-up, and accepts no new connection. The error says
    that the server may hold a session."""
    failed: list[usher.Event] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = threading.Thread(target=answer_once_then_go, args=(listening,))
        server.start()
        with usher.Context(proxy="") as context:
            context.add_observer(lambda event: failed.append(event) if event.type is E.SETUP_ERROR else None)
            delegate = usher.SSPDelegate(context, license_url=url, ssm_url=url)
            usher.Player(context).play("token", delegate=delegate).wait_session()
            time.sleep(0.05)  # a connection that stays open for 20 ms is used for set-ups, too
            with pytest.raises(usher.TransportError):
                usher.Player(context).play("token", delegate=delegate).wait_session()
        server.join(10)
    assert [event.error.orphan_possible for event in failed if event.error] == [True]


@pytest.mark.parametrize("first", ["connect_timeout_ms", "http_timeout_ms"])
def test_connection_thatIsNotMadeInTime_isATimeOut(lib: Any, first: str) -> None:
    """The server accepts the TCP connection, but never answers the TLS handshake. Set-up fails with TIMEOUT, whichever
    time limit is shorter. The error says that the server holds no session (protocol.md: When it fails)."""
    limits = {"connect_timeout_ms": 60_000, "http_timeout_ms": 60_000, first: 300}
    errors: list[usher.UsherError | None] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with usher.Context(proxy="", **limits) as context:
            context.add_observer(lambda event: errors.append(event.error) if event.type is E.SETUP_ERROR else None)
            delegate = usher.SSPDelegate(context, license_url=url, ssm_url=url)
            with pytest.raises(usher.UsherTimeoutError) as caught:
                usher.Player(context).play("token", delegate=delegate).wait_session(20_000)
    assert (caught.value.origin, caught.value.orphan_possible) == (usher.Origin.SSM, False)
    assert [error and error.status for error in errors] == [usher.Status.TIMEOUT]


def answer_once_then_go(listening: socket.socket) -> None:
    reply = b'{"sessionToken":"t","heartbeat":600}'
    connection, _ = listening.accept()
    listening.close()
    with connection, connection.makefile("rb") as incoming:
        read_request(incoming)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(reply), reply)
        )
        read_request(incoming)


def read_request(incoming: BinaryIO) -> None:
    length = 0
    while (line := incoming.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    incoming.read(length)


PROXIED = """
import sys, usher
with usher.Context(clock="manual") as context:
    delegate = usher.SSPDelegate(context, license_url=sys.argv[1], ssm_url=sys.argv[1])
    playback = usher.Player(context).play("SECRET-CONTENT-TOKEN", delegate=delegate)
    context.settle()
"""


def test_loopback_inPlainHttp_bypassesTheEnvironmentsProxy(lib: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy, socket.create_server(("127.0.0.1", 0)) as closed:
        proxy.settimeout(0.2)
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/x"
        closed.close()
        package = str(Path(usher.__file__).parents[1])
        environment = {
            **os.environ,
            "http_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}",
            "no_proxy": "",
            "PYTHONPATH": package,
        }
        subprocess.run([sys.executable, "-c", PROXIED, url], env=environment, timeout=30, check=True)
        with pytest.raises(TimeoutError):
            proxy.accept()
