"""Tests HTTP/2, where all requests share one connection. The server stops replying on this connection, but does not
close it."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import usher
from usher.testing.headend.fixtures import Authority

HEADERS, DATA, SETTINGS = 1, 0, 4


class SilentServer:
    """A server that replies only to the first request on its first connection. It then keeps this connection open, but
    sends nothing more on it. On every later connection the server replies to each request."""

    def __init__(self) -> None:
        self.authority = Authority("localhost")
        self._tls: ssl.SSLContext = self.authority.server_context()
        self._tls.set_alpn_protocols(["h2"])
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # ends accept()
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                raw, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(raw, self.connections), daemon=True).start()

    def _serve(self, raw: socket.socket, number: int) -> None:
        answered = 0
        with contextlib.suppress(OSError, EOFError), self._tls.wrap_socket(raw, server_side=True) as stream:
            incoming = stream.makefile("rb")
            self._read(incoming, 24)
            stream.sendall(self._frame(SETTINGS, 0, 0))
            while True:
                head = self._read(incoming, 9)
                kind, flags, where = head[3], head[4], struct.unpack("!I", head[5:])[0] & 0x7FFFFFFF
                self._read(incoming, int.from_bytes(head[:3], "big"))
                if kind == SETTINGS and not flags & 1:
                    stream.sendall(self._frame(SETTINGS, 1, 0))
                if kind in (HEADERS, DATA) and flags & 1 and not (number == 1 and answered):
                    answered += 1
                    body = json.dumps({"sessionToken": f"token-{number}-{where}", "heartbeat": 0.3}).encode()
                    stream.sendall(self._frame(HEADERS, 4, where, b"\x88") + self._frame(DATA, 1, where, body))

    @staticmethod
    def _read(incoming: Any, count: int) -> bytes:
        data: bytes = incoming.read(count)
        if len(data) < count:
            raise EOFError
        return data

    @staticmethod
    def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
        return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


@pytest.fixture
def silent() -> Iterator[SilentServer]:
    server = SilentServer()
    yield server
    server.close()


def test_heartbeat_overADeadConnection_isTriedAgainOverAFreshOne(lib: Any, silent: SilentServer) -> None:
    """A server stops replying on its first connection. The library retries the heartbeat on a new connection, and never
    sends another request on the first connection."""
    changed = threading.Condition()
    events: list[usher.Event] = []

    def look(event: usher.Event) -> None:
        with changed:
            events.append(event)
            changed.notify_all()

    def are_kept_alive() -> bool:
        return sum(event.type is usher.EventType.KEPT_ALIVE for event in events) >= 4

    with usher.Context(ca_file=silent.authority.ca_file, proxy="", http2=True) as context:
        context.add_observer(look)
        delegate = usher.SSPDelegate(
            context, license_url=silent.url, ssm_url=silent.url, period_min_ms=300, keep_alive_timeout_ms=1000
        )
        playback = usher.Player(context).play("token", delegate=delegate)
        with changed:
            assert changed.wait_for(are_kept_alive, 20)
        assert silent.connections == 2
        playback.close()


@pytest.mark.parametrize(("http2", "spoken"), [(False, "http/1.1"), (True, "h2")])
def test_https_speaksHttp2_onlyIfTheHostAllowsIt(lib: Any, http2: bool, spoken: str) -> None:
    """A server offers both versions of HTTP; the library chooses HTTP/2 only in a context with `http2`."""
    authority = Authority("localhost")
    tls = authority.server_context()
    tls.set_alpn_protocols(["h2", "http/1.1"])
    chosen: list[str | None] = []

    def serve() -> None:
        raw, _ = listening.accept()
        with contextlib.suppress(OSError), tls.wrap_socket(raw, server_side=True) as stream:
            chosen.append(stream.selected_alpn_protocol())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with usher.Context(ca_file=authority.ca_file, proxy="", http2=http2) as context:
            delegate = usher.SSPDelegate(context, license_url=url, ssm_url=url)
            usher.Player(context).play("token", delegate=delegate)
            server.join(10)
    assert chosen == [spoken]
