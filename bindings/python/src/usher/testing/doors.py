"""Doors: proxies in front of a server. A test can break a door while the server keeps running.

A player uses the door's address instead of the server's address. The server gets only the requests that the door
forwards. So the journal of a head-end still shows the requests that arrived there, and its session table shows the
sessions that the head-end holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Coroutine
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from .loops import catch_up

_START_TIMEOUT_S = 10.0
_LINGER_NOTHING = struct.pack("ii", 1, 0)
_PIECE = 65_536


class State(Enum):
    """The ways in which a door handles connections."""

    OPEN = "open"
    REFUSING = "refusing"
    """The door does not listen: it refuses new connections and resets existing ones."""
    MUTE = "mute"
    """The door accepts connections and reads from them, but forwards nothing and sends no reply."""


def _bound() -> socket.socket:
    """Returns a socket that is bound to a free port. So the door keeps this port while it does not listen."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as found:
            address = found.getsockname()
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)
        try:
            made.bind(address)
        except OSError:
            made.close()
        else:
            return made


class Loop:
    """An event loop that runs on a separate thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        pending = asyncio.all_tasks(self.loop)
        for task in pending:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self.loop.close()

    def call(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine on the event loop, and waits for its result. Do not call this on the thread of the event
        loop."""
        asyncio.run_coroutine_threadsafe(work, self.loop).result(_START_TIMEOUT_S)

    def stop(self) -> None:
        """Stops the event loop. A second call does nothing."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(_START_TIMEOUT_S)


class Door:
    """A TCP door to one server. It begins in the state open. With ``tls`` it accepts TLS connections, and forwards
    plain HTTP to the server.

    Any thread may call any method. The door listens until ``close()``; the end of a block ``with Door(…) as door``
    calls close().

    Args:
        target: the address of the server, ``http://host:port``; the door ignores a path in it.
        tls: TLS settings for a server; with these the door accepts only TLS connections.
        at: a bound socket, on which the door listens and which the door closes; default: a free port of 127.0.0.1.
    """

    def __init__(self, target: str, *, tls: ssl.SSLContext | None = None, at: socket.socket | None = None) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._tls = tls
        self._state = State.OPEN
        self._socket = _bound() if at is None else at
        self._socket.setblocking(False)
        self._changed = threading.Condition()
        self._connections = 0
        self._handshakes_failed = 0
        self._handshakes_resumed = 0
        self._listening = False
        self._waiting: dict[asyncio.StreamWriter, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._work = Loop("usher-door")
        self._work.call(self._enter(State.OPEN))

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the door and resets its connections. A second call does nothing."""
        self._work.stop()
        self._socket.close()

    @property
    def port(self) -> int:
        """The door's port, which is the same in every state."""
        return int(self._socket.getsockname()[1])

    def url(self, address: str, host: str = "127.0.0.1") -> str:
        """Returns an address of the server with the door's host and port. A player uses it instead of the server's
        address."""
        parts = urlsplit(address)
        return parts._replace(scheme="https" if self._tls else "http", netloc=f"{host}:{self.port}").geturl()

    def set(self, state: State) -> None:
        """Changes the state for new and existing connections. Returns when the new state is in effect."""
        self._work.call(self._enter(state))

    def present(self, tls: ssl.SSLContext) -> None:
        """Uses these TLS settings for new connections, and resets existing connections."""

        async def change() -> None:
            self._tls = tls
            self._reset_all()

        self._work.call(change())

    @property
    def connections(self) -> int:
        """How many connections the door has accepted."""
        with self._changed:
            return self._connections

    @property
    def handshakes_failed(self) -> int:
        """How many of the accepted connections failed during the TLS handshake."""
        with self._changed:
            return self._handshakes_failed

    @property
    def handshakes_resumed(self) -> int:
        """How many of the accepted connections continued the TLS session of an earlier connection. Their handshakes are
        shorter: no certificate goes over the network."""
        with self._changed:
            return self._handshakes_resumed

    @property
    def held(self) -> int:
        """How many clients have sent data while the door was mute, and now wait for a reply."""
        with self._changed:
            return sum(self._waiting.values())

    def catch_up(self) -> None:
        """Waits until the door has handled everything that its clients have sent or closed before the call."""
        catch_up(self._work.loop)

    def wait_held(self, count: int, timeout: float = 5.0) -> None:
        """Waits until exactly ``count`` clients wait for a reply, while the door is mute.

        Raises:
            TimeoutError: after ``timeout`` real seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: sum(self._waiting.values()) == count, timeout):
                raise TimeoutError(f"{sum(self._waiting.values())} clients wait after {timeout} s, expected {count}")

    # The methods below run on the thread of the event loop.

    async def _enter(self, state: State) -> None:
        before, self._state = self._state, state
        if state is State.REFUSING:
            # The socket is bound but does not listen. So the door keeps its port, and the kernel refuses connections.
            if self._listening:
                self._socket.shutdown(socket.SHUT_RDWR)
            self._listening = False
            self._reset_all()
        elif not self._listening:
            self._listening = True
            self._socket.listen(1024)
            self._start(self._accept())
        if state is State.OPEN and before is State.MUTE:
            self._reset_all()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _reset_all(self) -> None:
        for writer in list(self._waiting):
            peer: socket.socket | None = writer.get_extra_info("socket")
            if peer is None:
                continue  # the connection is closed already
            with contextlib.suppress(OSError):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOTHING)
            writer.transport.abort()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while self._listening:
            try:
                client, _ = await loop.sock_accept(self._socket)
            except OSError:
                return  # the door has stopped listening
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                self._connections += 1
            self._start(self._serve(client))

    async def _serve(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        tls = None if self._state is State.MUTE else self._tls
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, client, ssl=tls)
        except (OSError, ssl.SSLError):
            with self._changed:
                self._handshakes_failed += 1
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        handshake = writer.get_extra_info("ssl_object")
        with self._changed:
            self._waiting[writer] = False
            self._handshakes_resumed += handshake is not None and bool(handshake.session_reused)
        try:
            if self._state is State.MUTE:
                while await reader.read(_PIECE):
                    self._hold(writer)
            else:
                await self._relay(reader, writer)
        except (OSError, ssl.SSLError):
            pass  # the client or the server has closed the connection
        finally:
            with self._changed:
                del self._waiting[writer]
                self._changed.notify_all()
            writer.transport.abort()

    def _hold(self, writer: asyncio.StreamWriter) -> None:
        with self._changed:
            self._waiting[writer] = True
            self._changed.notify_all()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._join(reader, writer, self._target)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: tuple[str, int]) -> None:
        there_reader, there_writer = await asyncio.open_connection(*target)
        back = asyncio.ensure_future(self._pass_back(there_reader, writer))
        try:
            while data := await reader.read(_PIECE):
                if self._state is State.MUTE:
                    self._hold(writer)
                else:
                    there_writer.write(data)
                    await there_writer.drain()
        finally:
            back.cancel()
            there_writer.transport.abort()

    async def _pass_back(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            while data := await there.read(_PIECE):
                if self._state is not State.MUTE:
                    writer.write(data)
                    await writer.drain()
            writer.close()


class Proxy(Door):
    """An HTTP proxy: a door that forwards each connection to the address in its CONNECT request, unless the port is in
    ``denied``.

    Attributes:
        denied: ports; the reply to a CONNECT request to one of them has status 502.
    """

    def __init__(self) -> None:
        self.denied: set[int] = set()
        super().__init__("http://127.0.0.1")

    @property
    def address(self) -> str:
        """The URL of the proxy, for a player's settings."""
        return f"http://127.0.0.1:{self.port}"

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        host, _, port = target.rpartition(":")
        if method != "CONNECT" or not port.isdigit() or int(port) in self.denied:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await self._join(reader, writer, (host.strip("[]"), int(port)))
