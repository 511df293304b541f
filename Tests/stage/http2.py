"""A door that speaks HTTP/2 with its clients: the head-end behind it speaks only HTTP/1.1."""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from usher.testing.doors import Door, State

from .closing import RESET

_PIECE = 65_536
_OF_ONE_CONNECTION = ("connection", "keep-alive", "transfer-encoding")
"""Headers of HTTP/1.1 that HTTP/2 does not allow."""


class Http2Door(Door):
    """A TLS door that accepts only HTTP/2. It sends each request to the server over a new HTTP/1.1 connection.

    The door resets a stream (RST_STREAM) if the server resets its connection, or if the body of the reply has a chunk
    that is not readable. It does not compare the body with its Content-Length; the client does.

    Attributes:
        closes_after_s: how long after a reply the door resets the connection, in s; None: it keeps the connection open.
            While it waits to reset the connection, it does not answer the next request.
    """

    closes_after_s: float | None = None

    def __init__(self, target: str, *, tls: ssl.SSLContext, at: object = None) -> None:
        super().__init__(target, tls=_only_http2(tls), at=at)  # type: ignore[arg-type]

    def present(self, tls: ssl.SSLContext) -> None:
        super().present(_only_http2(tls))

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _Connection(self, reader, writer).serve()


def _only_http2(tls: ssl.SSLContext) -> ssl.SSLContext:
    tls.set_alpn_protocols(["h2"])
    return tls


@dataclass
class _Stream:
    """One request, and the task that gets the reply to it."""

    headers: list[tuple[str, str]]
    body: bytearray = field(default_factory=bytearray)
    task: asyncio.Task[None] | None = None


class _Connection:
    """A connection of one client."""

    def __init__(self, door: Http2Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._door, self._reader, self._writer = door, reader, writer
        self._http2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="latin-1", validate_outbound_headers=False)
        )
        self._streams: dict[int, _Stream] = {}
        self._window_grew = asyncio.Event()
        self._is_closing = False

    async def serve(self) -> None:
        chosen = self._writer.get_extra_info("ssl_object").selected_alpn_protocol()
        assert chosen == "h2", f"the client has chosen {chosen}"
        self._http2.initiate_connection()
        self._flush()
        try:
            while data := await self._reader.read(_PIECE):
                for event in self._http2.receive_data(data):
                    self._handle(event)
                self._flush()
                await self._writer.drain()
        except h2.exceptions.ProtocolError:
            pass  # the client has ended the connection while it received a reply
        finally:
            for stream in self._streams.values():
                if stream.task is not None:
                    stream.task.cancel()

    def _flush(self) -> None:
        if self._door._state is not State.MUTE:
            self._writer.write(self._http2.data_to_send())

    def _handle(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._streams[event.stream_id] = _Stream([(str(name), str(value)) for name, value in event.headers])
        elif isinstance(event, h2.events.DataReceived):
            self._streams[event.stream_id].body += event.data
            self._http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded) and not self._is_closing:
            if self._door._state is State.MUTE:
                self._door._hold(self._writer)
            else:
                stream = self._streams[event.stream_id]
                stream.task = asyncio.get_running_loop().create_task(self._answer(event.stream_id, stream))
        elif isinstance(event, h2.events.StreamReset):
            self._end(event.stream_id)
        elif isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            self._window_grew.set()

    def _end(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None and stream.task is not None:
            stream.task.cancel()

    async def _answer(self, number: int, stream: _Stream) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._door._target)
            try:
                server_writer.write(_request(stream))
                await self._send_reply(number, server_reader)
                if self._door.closes_after_s is not None:
                    await self._close(self._door.closes_after_s)
            finally:
                server_writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            self._http2.reset_stream(number, h2.errors.ErrorCodes.INTERNAL_ERROR)
            self._flush()
        except h2.exceptions.ProtocolError:
            pass  # the client has reset the stream
        self._streams.pop(number, None)

    async def _close(self, pause_s: float) -> None:
        self._is_closing = True
        await asyncio.sleep(pause_s)
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._writer.transport.abort()

    async def _send_reply(self, number: int, server: asyncio.StreamReader) -> None:
        head = (await server.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        lines = [line.partition(":") for line in head[1:] if line]
        headers = [(name.lower(), value.strip()) for name, _, value in lines]
        kept = [(name, value) for name, value in headers if name not in _OF_ONE_CONNECTION]
        self._http2.send_headers(number, [(":status", head[0].split(" ")[1]), *kept])
        self._flush()
        if ("transfer-encoding", "chunked") in headers:
            while size := int(await server.readline(), 16):
                await self._send(number, (await server.readexactly(size + 2))[:-2])
        else:
            while data := await server.read(_PIECE):
                await self._send(number, data)
        self._http2.end_stream(number)
        self._flush()

    async def _send(self, number: int, data: bytes) -> None:
        """Sends a part of a body, as far as the client's flow control allows it."""
        while data:
            room = min(self._http2.local_flow_control_window(number), self._http2.max_outbound_frame_size)
            if room == 0:
                self._window_grew.clear()
                await self._window_grew.wait()
                continue
            self._http2.send_data(number, data[:room])
            self._flush()
            await self._writer.drain()
            data = data[room:]


def _request(stream: _Stream) -> bytes:
    """Returns the request in the form of HTTP/1.1."""
    fields = dict(stream.headers)
    lines = [f"{fields[':method']} {fields[':path']} HTTP/1.1", f"Host: {fields[':authority']}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in stream.headers if not name.startswith(":")]
    if "content-length" not in fields:
        lines.append(f"Content-Length: {len(stream.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + bytes(stream.body)
