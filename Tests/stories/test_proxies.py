"""Requests go through a proxy that wants a sign-in: HTTP with CONNECT, or SOCKS 4 and 5."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Iterator

import pytest

import usher
from stage import StageFactory
from usher.testing.doors import Door

NAME, PASSWORD = "guest", "proxy-password-1"
Target = tuple[str, int]


class SignInProxy(Door):
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
        super().__init__("http://127.0.0.1")

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = await reader.readexactly(1)
            speak = {b"\x04": self._socks4, b"\x05": self._socks5}.get(first, self._connect)
            target = await speak(reader, writer)
        except asyncio.IncompleteReadError:  # the client has closed the connection
            return
        if target is None:
            writer.close()
            await writer.wait_closed()
            return
        self.passed.append(target[0])
        await self._join(reader, writer, target)

    def _answer(self, writer: asyncio.StreamWriter, is_good: bool, good: bytes, bad: bytes) -> bool:
        self.refused += not is_good
        writer.write(good if is_good else bad)
        return is_good

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Target | None:
        """Reads an HTTP request, whose first byte, the `C` of CONNECT, the caller has already read. Returns the address
        in the request; None if the proxy refuses the client."""
        head = await reader.readuntil(b"\r\n\r\n")
        sign_in = b"Proxy-Authorization: Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode())
        refusal = b"HTTP/1.1 407 Sign in\r\nProxy-Authenticate: Basic realm=p\r\nContent-Length: 0\r\n\r\n"
        if not self._answer(writer, sign_in in head.split(b"\r\n"), b"HTTP/1.1 200 Connected\r\n\r\n", refusal):
            return None
        host, _, port = head.split()[1].decode().rpartition(":")
        return host, int(port)

    async def _socks4(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Target | None:
        """Reads a request of SOCKS 4 or 4a, whose first byte the caller has already read. Returns the address in the
        request; None if the proxy refuses the client."""
        head = await reader.readexactly(7)  # the command, the port, the address
        port, address = int.from_bytes(head[1:3], "big"), head[3:]
        name = await reader.readuntil(b"\0")
        is_name = address[:3] == bytes(3)
        host = (await reader.readuntil(b"\0"))[:-1].decode() if is_name else socket.inet_ntop(socket.AF_INET, address)
        is_good = name == NAME.encode() + b"\0"
        return (host, port) if self._answer(writer, is_good, b"\0\x5a" + bytes(6), b"\0\x5b" + bytes(6)) else None

    async def _socks5(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Target | None:
        """Speaks SOCKS 5 (RFC 1928), with the sign-in of RFC 1929. Returns the address in the client's request; None if
        the proxy refuses the client."""
        methods = await counted(reader)
        self.offered |= set(methods)
        if not self._answer(writer, 2 in methods, b"\x05\x02", b"\x05\xff"):
            return None
        await reader.readexactly(1)
        name, password = await counted(reader), await counted(reader)
        is_good = (name.decode(), password.decode()) == (NAME, PASSWORD)
        if not self._answer(writer, is_good, b"\x01\x00", b"\x01\x01"):
            return None
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            host = (await counted(reader)).decode()
        else:
            family = socket.AF_INET if kind == 1 else socket.AF_INET6
            host = socket.inet_ntop(family, await reader.readexactly(4 * kind))
        port = int.from_bytes(await reader.readexactly(2), "big")
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        return host, port


async def counted(reader: asyncio.StreamReader) -> bytes:
    """Reads one byte, whose value is a length, and then as many bytes as this length says. Returns these bytes."""
    return await reader.readexactly((await reader.readexactly(1))[0])


@pytest.fixture
def proxy() -> Iterator[SignInProxy]:
    with SignInProxy() as server:
        yield server


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
    """The password in the URL of the proxy is wrong. Set-up fails, and no request arrives (network.md: Proxies). If the
    proxy speaks HTTP, the error has the status 407. The error does not show the password."""
    stage = stage_factory(headend={"tls": True}, proxy=f"{scheme}://{NAME}:wrong-password-2@127.0.0.1:{proxy.port}")
    with pytest.raises(usher.TransportError) as caught:
        stage.play().wait_session()
    assert caught.value.http_status == (407 if scheme == "http" else -1)
    assert not caught.value.orphan_possible and "wrong-password-2" not in str(caught.value)
    assert stage.routes() == [] and proxy.passed == [] and proxy.refused > 0
