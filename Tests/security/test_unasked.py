"""A server sends bytes after a reply, or while no request is in flight. The library must not read these bytes as the
reply to the next request."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import usher
from stage import HEADER, REAL_TIMEOUT_S, Stage
from stage.raw import whole_request
from usher.testing.headend.fixtures import Authority


def head(*lines: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Type: application/json", *lines]) + b"\r\n\r\n"


def body(token: str) -> bytes:
    return json.dumps({"sessionToken": token, "heartbeat": 60}).encode()


def whole(token: str) -> bytes:
    return head(b"Content-Length: %d" % len(body(token))) + body(token)


POISON = whole("poison")


class KeepingServer:
    """A session manager that keeps its connections open. It cuts each reply into pieces with `pieces`, and sends these
    pieces.

    The token in the reply to request number n is ``token-n``.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._changed = threading.Condition()
        self.pieces: Callable[[str], list[bytes]] = lambda token: [whole(token)]
        self.tokens: list[str] = []
        """The token of each request."""
        self.connections = 0
        """The number of connections the client has made."""
        self.ended = 0
        """The number of connections the client has closed."""
        self._unasked, self._wake = socket.socketpair()
        self._threads: list[threading.Thread] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._wake.close()
        for thread in self._threads:
            thread.join(REAL_TIMEOUT_S)
        self._unasked.close()

    def send_unasked(self, data: bytes) -> None:
        """Sends bytes on a connection while no request is in flight. The thread of the connection sends them, because
        two threads must not use a TLS connection at the same time."""
        self._wake.sendall(data)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            stream = self._tls.wrap_socket(client, server_side=True) if self._tls else client
            with stream:
                self.connections += 1
                while request := self._next_request(stream):
                    self._answer(stream, request)
        with self._changed:
            self.ended += 1
            self._changed.notify_all()

    def _next_request(self, stream: socket.socket) -> bytes:
        while True:
            ready, _, _ = select.select([stream, self._unasked], [], [])
            if stream in ready:
                return whole_request(stream)
            data = self._unasked.recv(65_536)
            if not data:  # the test has ended
                return b""
            stream.sendall(data)

    def _answer(self, stream: socket.socket, request: bytes) -> None:
        fields = dict(line.split(b": ", 1) for line in request.split(b"\r\n")[1:] if b": " in line)
        self.tokens.append(fields[HEADER.encode()].decode())
        for number, piece in enumerate(self.pieces(f"token-{len(self.tokens)}")):
            if number:
                time.sleep(0.03)  # so that the client reads the pieces one by one
            stream.sendall(piece)

    def wait_ended(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended >= count, REAL_TIMEOUT_S), "the connection stays open"


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, authority: Authority) -> Iterator[KeepingServer]:
    made = KeepingServer(authority.server_context() if request.param == "https" else None)
    yield made
    made.close()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def stage(stage_factory: Callable[..., Stage], authority: Authority) -> Stage:
    return stage_factory(ca_file=str(authority.ca_file))


def play(stage: Stage, server: KeepingServer) -> None:
    stage.play(token="content", delegate=stage.delegate(ssm_url=server.url))
    stage.settle()


def test_reply_onAnIdleConnection_closesIt(stage: Stage, server: KeepingServer) -> None:
    """A server sends a reply while no request is in flight. The library closes the connection at once. The next
    heartbeat uses a new connection and gets the right reply."""
    play(stage, server)
    server.send_unasked(POISON)
    server.wait_ended(1)
    stage.advance(120_000)
    assert server.tokens == ["content", "token-1", "token-2"]
    assert server.connections == 2


def chunked(token: str) -> bytes:
    return head(b"Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body(token)), body(token))


def long(token: str, size: int) -> bytes:
    """Returns a reply with this token, whose body has at least this size."""
    text = json.dumps({"sessionToken": token, "heartbeat": 60, "rest": "x" * size}).encode()
    return head(b"Content-Length: %d" % len(text)) + text


SPLITS: dict[str, Callable[[str], list[bytes]]] = {
    "in one piece": lambda token: [whole(token) + POISON],
    "with the body": lambda token: [
        head(b"Content-Length: %d" % len(body(token))),
        body(token) + POISON,
    ],
    "with the end of the body": lambda token: [whole(token)[:-5], whole(token)[-5:] + POISON],
    "half of it with the body": lambda token: [
        head(b"Content-Length: %d" % len(body(token))),
        body(token) + POISON[:20],
        POISON[20:],
    ],
    "with a chunked reply": lambda token: [chunked(token) + POISON],
    "in one piece, and longer than any part that libcurl reads": lambda token: [whole(token) + POISON + b" " * 9000],
    "with the end of a chunked reply": lambda token: [chunked(token)[:-3], chunked(token)[-3:] + POISON],
}


@pytest.mark.parametrize("split", SPLITS)
def test_secondReply_afterTheFirst_isNotTheNextReply(stage: Stage, server: KeepingServer, split: str) -> None:
    """A server sends two replies to one request, cut into pieces in several ways. The library uses only the first reply
    to each heartbeat: the next heartbeat carries the token of this reply."""
    server.pieces = SPLITS[split]
    play(stage, server)
    for beat in range(1, 4):
        stage.advance(60_000)
        assert server.tokens == ["content", *(f"token-{number + 1}" for number in range(beat))]


def test_queuedRequest_afterTwoReplies_takesItsOwnReply(
    stage_factory: Callable[..., Stage], authority: Authority, server: KeepingServer
) -> None:
    """A server sends two replies to one request while another request is queued for the same connection. The library
    sends this other request on a new connection."""
    stage = stage_factory(ca_file=str(authority.ca_file), requests_per_origin_max=1)
    server.pieces = SPLITS["with the body"]
    delegate = stage.delegate(ssm_url=server.url)
    for _ in range(3):
        stage.play(token="content", delegate=delegate, player=usher.Player(stage.context))
    stage.advance(120_000)
    assert len(server.tokens) == 9
    assert "poison" not in server.tokens


def test_connection_ofAServerThatSendsWhatIsAsked_isKept(stage: Stage, server: KeepingServer) -> None:
    """A server sends one reply to each request; the library uses one connection for all requests."""
    play(stage, server)
    stage.advance(600_000)
    assert len(server.tokens) == 11 and server.connections == 1
    assert not stage.events.all(usher.EventType.HEARTBEAT_ERROR)


@pytest.mark.parametrize("size", [5_000, 9_000, 15_000, 40_000])
def test_connection_ofLongReplies_isKept(stage: Stage, server: KeepingServer, size: int) -> None:
    """libcurl reads a long reply in several parts. The library does not take a later part for a second reply."""
    server.pieces = lambda token: [long(token, size)]
    play(stage, server)
    stage.advance(600_000)
    assert len(server.tokens) == 11 and server.connections == 1
    assert not stage.events.all(usher.EventType.HEARTBEAT_ERROR)
