"""Requests go through a proxy that wants a sign-in: HTTP with CONNECT, or SOCKS."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import BinaryIO

import pytest

import usher
from stage import StageFactory

NAME, PASSWORD = "guest", "proxy-password-1"


class SignInProxy:
    """A proxy on 127.0.0.1 that speaks HTTP (CONNECT) and SOCKS 5, and demands ``NAME`` and ``PASSWORD``.

    Attributes:
        passed: the address of each connection that it passed on, as the client named it.
        refused: how many clients had no or a wrong sign-in.
    """

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.refused = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb", buffering=0) as incoming, contextlib.suppress(OSError):
            is_socks = client.recv(1, socket.MSG_PEEK) == b"\x05"
            target = self._socks(client, incoming) if is_socks else self._connect(client, incoming)
            if target is None:
                self.refused += 1
                return
            self.passed.append(target[0])
            with socket.create_connection(target) as server:
                back = threading.Thread(target=copy, args=(server, client), daemon=True)
                back.start()
                copy(client, server)
                back.join()

    def _connect(self, client: socket.socket, incoming: BinaryIO) -> tuple[str, int] | None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += incoming.read(1)
        sign_in = b"Proxy-Authorization: Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode())
        if sign_in not in head.split(b"\r\n"):
            client.sendall(b"HTTP/1.1 407 Sign in\r\nProxy-Authenticate: Basic realm=p\r\nContent-Length: 0\r\n\r\n")
            return None
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        host, _, port = head.split()[1].decode().rpartition(":")
        return host, int(port)

    def _socks(self, client: socket.socket, incoming: BinaryIO) -> tuple[str, int] | None:
        """RFC 1928, with the sign-in of RFC 1929."""
        _, count = exactly(incoming, 2)
        if 2 not in exactly(incoming, count):
            client.sendall(b"\x05\xff")
            return None
        client.sendall(b"\x05\x02")
        exactly(incoming, 1)
        name, password = (exactly(incoming, exactly(incoming, 1)[0]).decode() for _ in range(2))
        is_good = (name, password) == (NAME, PASSWORD)
        client.sendall(b"\x01\x00" if is_good else b"\x01\x01")
        if not is_good:
            return None
        kind = exactly(incoming, 4)[3]
        host = (
            exactly(incoming, exactly(incoming, 1)[0]).decode()
            if kind == 3
            else socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, exactly(incoming, 4 * kind))
        )
        port = int.from_bytes(exactly(incoming, 2), "big")
        client.sendall(b"\x05\x00\x00\x01" + bytes(6))
        return host, port


def exactly(incoming: BinaryIO, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = incoming.read(count - len(found))
        if not more:
            raise OSError("the client has closed the connection")
        found += more
    return found


def copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy() -> Iterator[SignInProxy]:
    server = SignInProxy()
    yield server
    server.close()


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_proxy_withNameAndPassword_getsEveryRequest(
    stage_factory: StageFactory, proxy: SignInProxy, scheme: str
) -> None:
    """The URL of the proxy has a name and a password (network.md: Proxies): set-up and teardown go through the
    proxy."""
    address = f"{scheme}://{NAME}:{PASSWORD}@127.0.0.1:{proxy.port}"
    stage = stage_factory(headend={"tls": True}, proxy=address)
    playback = stage.play()
    playback.wait_session()
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]
    assert proxy.passed and proxy.refused == 0


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_proxy_withAWrongPassword_failsTheSetup(stage_factory: StageFactory, proxy: SignInProxy, scheme: str) -> None:
    """Set-up fails, with 407 if the proxy speaks HTTP, and no request arrives (network.md: Proxies). The
    error does not show the password."""
    stage = stage_factory(headend={"tls": True}, proxy=f"{scheme}://{NAME}:wrong-password-2@127.0.0.1:{proxy.port}")
    with pytest.raises(usher.TransportError) as caught:
        stage.play().wait_session()
    assert caught.value.http_status == (407 if scheme == "http" else -1)
    assert not caught.value.orphan_possible and "wrong-password-2" not in str(caught.value)
    assert stage.routes() == [] and proxy.passed == [] and proxy.refused > 0
