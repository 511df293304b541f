"""A door that closes each connection after a reply, without a header that announces this."""

from __future__ import annotations

import asyncio
import socket
import struct

from usher.testing.doors import Door

RESET = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which the system ends a connection by a reset (RST)."""


class ClosingDoor(Door):
    """A door for requests and replies that have a Content-Length, or no body. While it waits to close a connection, it
    does not read the next request.

    Attributes:
        closes_after_s: how long after a reply the door closes the connection, in s; None: it keeps the connection open.
    """

    closes_after_s: float | None = None

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._target)
        try:
            while request := await _message(reader):
                server_writer.write(request)
                writer.write(await _message(server_reader))
                await writer.drain()
                if self.closes_after_s is not None:
                    await asyncio.sleep(self.closes_after_s)
                    peer: socket.socket = writer.get_extra_info("socket")
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    return
        finally:
            server_writer.transport.abort()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Returns the next request or reply; empty if the connection has ended."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        lengths = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
        return head + await reader.readexactly(lengths[0] if lengths else 0)
    except asyncio.IncompleteReadError:
        return b""
