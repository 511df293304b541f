"""Requests go through a proxy that wants a sign-in: HTTP with CONNECT, or SOCKS 4 and 5."""

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
    """A proxy on 127.0.0.1 that speaks HTTP (CONNECT), SOCKS 4 and SOCKS 5, and demands ``NAME`` and ``PASSWORD``; in
    SOCKS 4 there is no password.

    Attributes:
        passed: the host of each connection that it passed on, as the client named it.
        refused: how many clients had no or a wrong sign-in.
        offered: the methods of sign-in that clients of SOCKS 5 offered, as in RFC 1928.
    """

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.refused = 0
        self.offered: set[int] = set()
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
            first = exactly(incoming, 1)
            speak = {b"\x04": self._socks4, b"\x05": self._socks5}.get(first, self._connect)
            target = speak(client, incoming)
            if target is None:
                return
            self.passed.append(target[0])
            with socket.create_connection(target) as server:
                back = threading.Thread(target=copy, args=(server, client), daemon=True)
                back.start()
                copy(client, server)
                back.join()

    def _connect(self, client: socket.socket, incoming: BinaryIO) -> tuple[str, int] | None:
        """The first byte of the request has been read."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += exactly(incoming, 1)
        sign_in = b"Proxy-Authorization: Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode())
        if sign_in not in head.split(b"\r\n"):
            self.refused += 1
            client.sendall(b"HTTP/1.1 407 Sign in\r\nProxy-Authenticate: Basic realm=p\r\nContent-Length: 0\r\n\r\n")
            return None
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        host, _, port = head.split()[1].decode().rpartition(":")
        return host, int(port)

    def _socks4(self, client: socket.socket, incoming: BinaryIO) -> tuple[str, int] | None:
        """SOCKS 4 and 4a, after the version."""
        exactly(incoming, 1)
        port = int.from_bytes(exactly(incoming, 2), "big")
        address = exactly(incoming, 4)
        is_good = text(incoming) == NAME
        is_name = address[:3] == bytes(3)
        host = text(incoming) if is_name else socket.inet_ntop(socket.AF_INET, address)
        self.refused += not is_good
        client.sendall((b"\x00\x5a" if is_good else b"\x00\x5b") + bytes(6))
        return (host, port) if is_good else None

    def _socks5(self, client: socket.socket, incoming: BinaryIO) -> tuple[str, int] | None:
        """RFC 1928, after the version, with the sign-in of RFC 1929."""
        methods = exactly(incoming, exactly(incoming, 1)[0])
        self.offered |= set(methods)
        if 2 not in methods:
            self.refused += 1
            client.sendall(b"\x05\xff")
            return None
        client.sendall(b"\x05\x02")
        exactly(incoming, 1)
        name, password = (exactly(incoming, exactly(incoming, 1)[0]).decode() for _ in range(2))
        is_good = (name, password) == (NAME, PASSWORD)
        self.refused += not is_good
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


def text(incoming: BinaryIO) -> str:
    """Reads to the next NUL."""
    found = b""
    while (byte := exactly(incoming, 1)) != b"\0":
        found += byte
    return found.decode()


def copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        finally:
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy() -> Iterator[SignInProxy]:
    server = SignInProxy()
    yield server
    server.close()


@pytest.mark.parametrize("scheme", ["http", "socks4", "socks4a", "socks5", "socks5h"])
def test_proxy_withNameAndPassword_getsEveryRequest(
    stage_factory: StageFactory, proxy: SignInProxy, scheme: str
) -> None:
    """The URL of the proxy has a name and a password (network.md: Proxies): set-up and teardown go through the
    proxy. http, socks4a and socks5h leave the look-up of the server's name to the proxy. The library does not offer
    GSS-API, with which libcurl would wait on the I/O thread."""
    address = f"{scheme}://{NAME}:{PASSWORD}@127.0.0.1:{proxy.port}"
    stage = stage_factory(headend={"tls": True}, proxy=address)
    host = "127.0.0.1" if scheme in ("socks4", "socks5") else "localhost"
    before = stage.headend.connections_made
    playback = stage.play(delegate=stage.delegate(ssm_url=stage.headend.ssm_url.replace("127.0.0.1", host)))
    playback.wait_session()
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]
    assert proxy.passed == [host] * (stage.headend.connections_made - before) != []
    assert proxy.refused == 0 and 1 not in proxy.offered


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
