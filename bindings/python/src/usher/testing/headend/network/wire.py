"""Sends a reply over the network, complete or changed by a fault."""

from __future__ import annotations

import asyncio
import http
import random
import socket
import struct

from aiohttp import web

from ..clock import Clock
from .effects import Delivery, Effects
from .replies import Reply

_BLANKS = b" " * 65_536
_LINGER_NOTHING = struct.pack("ii", 1, 0)


class _Sent(web.StreamResponse):
    """A response object for a reply that is already written to the transport. This object writes nothing."""

    def __init__(self, *, stays_open: bool = False) -> None:
        super().__init__()
        self._stays_open = stays_open

    @property
    def keep_alive(self) -> bool:
        """Whether the client may send another request on this connection."""
        return self._stays_open

    async def prepare(self, request: web.BaseRequest) -> None:
        """Does nothing, because the headers have already been sent."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Does nothing, because the body has already been sent."""


async def deliver(request: web.Request, reply: Reply, fault: Effects | None, clock: Clock) -> web.StreamResponse:
    """Sends a reply. Returns the response object that aiohttp needs.

    Raises:
        ConnectionError: the client has disconnected.
    """
    delivery = fault.delivery if fault is not None else Delivery.WHOLE
    if fault is None or delivery is Delivery.WHOLE:
        response = web.Response(status=reply.status, body=reply.body or None)
        _set_headers(response, reply)
        await response.prepare(request)
        await response.write_eof()
        return response
    if delivery is Delivery.TRICKLE:
        return await _trickle(request, reply, fault, clock)
    if delivery is Delivery.ENDLESS:
        return await _endless(request, reply, fault)
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client has disconnected")
    if delivery is Delivery.PACED:
        return await _paced(request, transport, reply, fault, clock)
    if delivery is Delivery.SLOW_CLOSE:
        transport.write(_whole(reply))
        await clock.wait_until(clock.now_ms() + fault.every_ms)
        transport.close()
        return _Sent()
    if delivery is Delivery.CLOSE:
        transport.close()
        return _Sent()
    half = len(reply.body) // 2 if fault.keep_bytes is None else fault.keep_bytes
    sent = {
        Delivery.TRUNCATED: _head(reply, f"Content-Length: {max(len(reply.body), half + 1)}") + reply.body[:half],
        Delivery.SHORT_LENGTH: _head(reply, f"Content-Length: {half}") + reply.body,
        Delivery.BAD_CHUNKS: _head(reply, "Transfer-Encoding: chunked") + b"zz\r\n" + reply.body + b"\r\n0\r\n\r\n",
        Delivery.TRUNCATED_CHUNKS: _head(reply, "Transfer-Encoding: chunked") + _chunk(reply.body[:half]),
        Delivery.LIMITED: _whole(reply)[:half],
        Delivery.RANDOM_CHUNK: _head(reply, "Transfer-Encoding: chunked") + _random_bytes(fault),
        Delivery.RANDOM: _random_bytes(fault),
    }.get(delivery)
    if sent is not None:
        transport.write(sent)
        transport.close()
        return _Sent()
    if delivery in (Delivery.RESET_IN_HEAD, Delivery.RESET_IN_BODY):
        head = _head(reply, f"Content-Length: {len(reply.body)}")
        transport.write(head[: len(head) // 2] if delivery is Delivery.RESET_IN_HEAD else head + reply.body[:half])
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOTHING)
    transport.abort()
    return _Sent()


def fits(reply: Reply, fault: Effects) -> bool:
    """Whether a limited reply is within the limit, so that the client gets all of it."""
    return len(_whole(reply)) <= (fault.keep_bytes or 0)


async def _paced(
    request: web.Request, transport: asyncio.Transport, reply: Reply, fault: Effects, clock: Clock
) -> web.StreamResponse:
    whole, start = _whole(reply, "keep-alive" if request.keep_alive else "close"), clock.now_ms()
    assert fault.pace is not None
    for at_ms, first, end in fault.pace.pieces(len(whole), fault.seed):
        await clock.wait_until(start + at_ms)
        if transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        transport.write(whole[first:end])
        await asyncio.sleep(0)  # so that each piece is sent on its own
    return _Sent(stays_open=request.keep_alive)


async def _trickle(request: web.Request, reply: Reply, fault: Effects, clock: Clock) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status)
    _set_headers(response, reply)
    response.content_length = len(reply.body)
    await response.prepare(request)
    start = clock.now_ms()
    for index, offset in enumerate(range(0, len(reply.body), fault.piece_bytes)):
        await clock.wait_until(start + index * fault.every_ms)
        await response.write(reply.body[offset : offset + fault.piece_bytes])
    await response.write_eof()
    return response


async def _endless(request: web.Request, reply: Reply, fault: Effects) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status)
    _set_headers(response, reply)
    response.content_length = fault.size_bytes
    await response.prepare(request)
    left = fault.size_bytes
    while left > 0:
        await response.write(_BLANKS[:left])
        left -= len(_BLANKS)
    await response.write_eof()
    return response


def _set_headers(response: web.StreamResponse, reply: Reply) -> None:
    if reply.content_type:
        response.headers["Content-Type"] = reply.content_type
    for name, value in reply.headers:
        response.headers.add(name, value)


def _random_bytes(fault: Effects) -> bytes:
    return random.Random(fault.seed).randbytes(fault.size_bytes)


def _whole(reply: Reply, connection: str = "close") -> bytes:
    return _head(reply, f"Content-Length: {len(reply.body)}", connection) + reply.body


def _chunk(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part) if part else b""


def _head(reply: Reply, framing: str, connection: str = "close") -> bytes:
    try:
        reason = http.HTTPStatus(reply.status).phrase
    except ValueError:
        reason = "Status"
    lines = [f"HTTP/1.1 {reply.status} {reason}"]
    if reply.content_type:
        lines.append(f"Content-Type: {reply.content_type}")
    lines += [f"{name}: {value}" for name, value in reply.headers]
    return "\r\n".join([*lines, framing, f"Connection: {connection}", "", ""]).encode("latin-1")
