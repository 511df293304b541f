"""The host zaps at servers that close each connection after one reply, without a header that announces this
(docs/architecture.md: connections).

A client of such a server may send its next request on a connection that the server is just closing. Then no reply
comes, and the client cannot know whether the server has executed the request."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory, v2

ZAPS = 30


class ClosingServer(socketserver.ThreadingTCPServer):
    """A server that forwards one request of each connection to the head-end, and closes the connection `pause_s` after
    the reply. If the client sends a second request on the connection, the server does not read it, and the system
    resets the connection."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, headend: str, pause_s: float) -> None:
        super().__init__(("127.0.0.1", 0), ClosingHandler)
        self.headend = urlsplit(headend)
        self.pause_s = pause_s
        self.is_closing = True
        """Whether the server closes connections after a reply."""
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class ClosingHandler(socketserver.BaseRequestHandler):
    server: ClosingServer
    request: socket.socket

    def handle(self) -> None:
        self.server.connections += 1
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headend = (self.server.headend.hostname or "", self.server.headend.port or 0)
        with socket.create_connection(headend) as upstream:
            while message := self.message(self.request):
                upstream.sendall(message)
                self.request.sendall(self.message(upstream))
                if self.server.is_closing:
                    break
        time.sleep(self.server.pause_s)  # in this time the client may send its next request
        # With this option the system ends the connection with a reset (RST), not in the usual way (FIN).
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    @staticmethod
    def message(source: socket.socket) -> bytes:
        """Reads one request or reply; Content-Length has the length of its body. Returns no bytes if the connection has
        ended."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = source.recv(65536)
            if not more:
                return b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        missing = int(lengths[0]) - len(body) if lengths else 0
        while missing > 0:
            more = source.recv(missing)
            if not more:
                return b""
            data, missing = data + more, missing - len(more)
        return data


Serve = Callable[[Stage, float], ClosingServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ClosingServer] = []

    def start(stage: Stage, pause_s: float) -> ClosingServer:
        server = ClosingServer(stage.headend.ssm_url, pause_s)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def moved(url: str, server: ClosingServer) -> str:
    """Returns the same URL, but with the address of the closing server."""
    return urlsplit(url)._replace(netloc=urlsplit(server.url).netloc).geturl()


def ssp(stage: Stage, server: ClosingServer) -> usher.SSPDelegate:
    return stage.delegate(
        license_url=moved(stage.headend.license_url("clearkey"), server), ssm_url=moved(stage.headend.ssm_url, server)
    )


def ssp_v2(stage: Stage, server: ClosingServer) -> usher.SSPDelegate:
    return v2.delegate(
        stage,
        license_url=moved(stage.headend.license_url("clearkey", api="v2"), server),
        ssm_url=moved(stage.headend.ssm_url, server),
    )


@pytest.mark.many_connections("the server closes each connection after its reply")
@pytest.mark.parametrize("pause_ms", [0, 1, 5])
@pytest.mark.parametrize("kind", [ssp, ssp_v2])
def test_zaps_whileTheServerClosesEachConnectionAfterItsReply_allPlay(
    stage_factory: StageFactory,
    serve: Serve,
    kind: Callable[[Stage, ClosingServer], usher.SSPDelegate],
    pause_ms: int,
) -> None:
    """A viewer plays 30 streams, one after another, on one screen. Each stream gets its licence, and no set-up is
    refused, although the account may have only one session."""
    stage = stage_factory(headend={"limit": 1, "clock": "system"}, clock="system")
    server = serve(stage, pause_ms / 1000)
    delegate = kind(stage, server)
    for _ in range(ZAPS):
        playback = stage.play(delegate=delegate)
        assert stage.clear_keys(playback) == {KID: KEY}, stage.events.types()
    playback.close(usher.CloseMode.TEARDOWN)
    stage.context.shutdown(10_000)
    assert [name for name in stage.events.types() if name.endswith("ERROR")] == []
    assert stage.events.types().count("SESSION_ENDED") == ZAPS


def test_setups_whileTheServerKeepsConnections_useKeptOnes(stage_factory: StageFactory, serve: Serve) -> None:
    """After the first reply over a kept connection, set-ups use kept connections too, so a zap does not wait for a
    handshake."""
    stage = stage_factory(headend={"limit": 1})
    server = serve(stage, 0)
    server.is_closing = False
    delegate = ssp(stage, server)
    for _ in range(5):
        stage.clear_keys(stage.play(delegate=delegate))
    assert server.connections == 1


def test_manySetups_whileTheServerKeepsConnections_openFewConnections(
    stage_factory: StageFactory, serve: Serve
) -> None:
    """A hundred players start at the same time. The library opens new connections for their set-ups only until one
    connection has stayed open for 20 ms."""
    stage = stage_factory(headend={"limit": 100}, requests_per_origin_max=1)
    server = serve(stage, 0)
    server.is_closing = False
    delegate = ssp(stage, server)
    for _ in range(100):
        stage.play(player=usher.Player(stage.context), delegate=delegate)
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED"] * 100
    assert server.connections < 60
