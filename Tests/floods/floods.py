"""The bytes that each flooding server sends: the kinds of flood, and the frames of which they consist."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass

PIECE = 256 * 1024
"""About how many bytes a server sends in one call."""
SLOW_PIECE = 16 * 1024
"""About how many bytes a slow server sends before it waits until the client's system has received them."""


@dataclass(frozen=True)
class Flood:
    """The bytes that a server sends after it has read a request: `start` once, then `unit` again and again without end.

    Attributes: kind: "http" (HTTP/1.1), "h2" (HTTP/2 over TLS), "tickets" (TLS session tickets, then HTTP/1.1), "raw"
    (bytes to a client that expects TLS, before the client sends anything), or "key updates" (the program key_updates.c,
    with `unit` as its argument).
    """

    kind: str
    start: bytes
    unit: bytes
    is_too_large: bool = False
    """Whether the error must be TOO_LARGE. This is so for the floods whose bytes the library counts as part of the
    reply."""
    acknowledges: bool = True
    """Over HTTP/2: whether the server acknowledges the client's SETTINGS."""

    def pieces(self, size: int = PIECE) -> Iterator[bytes]:
        """Yields what the server sends after `start`, without end, in pieces of about `size` bytes."""
        return itertools.repeat(self.unit * max(1, size // len(self.unit))) if self.unit else iter(())


@dataclass
class Servers:
    """The flooding servers: the file of their certificate authority, the URL of each kind of flood, and the URLs of the
    slow servers, one for each flood whose error must be TOO_LARGE."""

    ca_file: str
    urls: dict[str, str]
    slow_urls: dict[str, str]


# ---- HTTP/2 ----------------------------------------------------------------------------------------------------------

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ALTSVC, ORIGIN, PRIORITY_UPDATE = 0x0A, 0x0C, 0x10
END_STREAM, ACK, END_HEADERS = 1, 1, 4
OK = b"\x88"
"""HPACK: `:status: 200`."""
EARLY_HINTS = b"\x08\x03103"
"""HPACK: `:status: 103`."""


def frame(kind: int, payload: bytes = b"", stream: int = 1, flags: int = 0) -> bytes:
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


def field(name: bytes, value: bytes) -> bytes:
    """Returns one header in HPACK, as a literal without indexing."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


ANSWER = frame(HEADERS, OK, flags=END_HEADERS)
GET = b"\x82\x87\x84\x01\x01a"
"""HPACK: `:method: GET`, `:scheme: https`, `:path: /`, `:authority: a`."""


def http2(unit: bytes, start: bytes = b"") -> Flood:
    return Flood("h2", start, unit)


class PushPromises(Flood):
    """A flood of PUSH_PROMISE frames; `unit` is the promised request. Each frame promises another stream, because a
    client closes the connection if a stream is promised twice."""

    def pieces(self, size: int = PIECE) -> Iterator[bytes]:
        head = frame(PUSH_PROMISE, b"\0\0\0\0" + self.unit, flags=END_HEADERS)[:9]
        count = size // (len(head) + 4 + len(self.unit))
        for first in itertools.count(2, 2 * count):
            streams = range(first, first + 2 * count, 2)
            yield b"".join(head + stream.to_bytes(4, "big") + self.unit for stream in streams)


# ---- all -------------------------------------------------------------------------------------------------------------

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

FLOODS: dict[str, Flood] = {
    "trailers": Flood("http", CHUNKED + b"0\r\n", b"X-Filler: " + b"x" * 100 + b"\r\n", True),
    "short trailers": Flood("http", CHUNKED + b"0\r\n", b"a:\r\n", True),
    "chunk extension": Flood("http", CHUNKED + b"1;", b"x" * 1024, True),
    "chunk extensions": Flood("http", CHUNKED, b"1;" + b"x" * 4096 + b"\r\na\r\n", True),
    "short chunks": Flood("http", CHUNKED, b"1\r\na\r\n"),
    "interim replies": Flood("http", b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", True),
    "header lines": Flood("http", b"HTTP/1.1 200 OK\r\n", b"a:\r\n", True),
    "one header line": Flood("http", b"HTTP/1.1 200 OK\r\nX-Filler: ", b"x" * 1024, True),
    "body": Flood("http", CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n", True),
    "error body": Flood("http", b"HTTP/1.1 500 Oops\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 1024, True),
    "after the reply": Flood("http", REPLY, REPLY),
    "TLS hello requests": Flood("raw", b"", b"\x16\x03\x03\x40\x00" + b"\0\0\0\0" * 4096),
    "TLS session tickets": Flood("tickets", REPLY, b""),
    "TLS key updates": Flood("key updates", b"", b"plain"),
    "TLS key updates that ask for one": Flood("key updates", b"", b"asking"),
    "h2 WINDOW_UPDATE": http2(frame(WINDOW_UPDATE, b"\0\0\0\1", 0)),
    "h2 WINDOW_UPDATE of the stream": http2(frame(WINDOW_UPDATE, b"\0\0\0\1")),
    "h2 HEADERS": http2(frame(HEADERS, EARLY_HINTS + field(b"link", b"</a>"), flags=END_HEADERS)),
    "h2 trailers": http2(frame(HEADERS, field(b"x-filler", b"x" * 100), flags=END_HEADERS), ANSWER),
    "h2 RST_STREAM": http2(frame(RST_STREAM, b"\0\0\0\0")),
    "h2 GOAWAY": http2(frame(GOAWAY, b"\0\0\0\1\0\0\0\0", 0)),
    "h2 SETTINGS": http2(frame(SETTINGS, b"", 0)),
    "h2 SETTINGS ACK": http2(frame(SETTINGS, b"", 0, ACK)),
    "h2 PING": http2(frame(PING, b"12345678", 0)),
    "h2 PING ACK": http2(frame(PING, b"12345678", 0, ACK)),
    "h2 CONTINUATION": http2(frame(CONTINUATION, field(b"a", b"b")), frame(HEADERS, OK)),
    "h2 PRIORITY": http2(frame(PRIORITY, b"\0\0\0\3\0")),
    "h2 empty DATA": http2(frame(DATA), ANSWER),
    "h2 padding": http2(frame(DATA, b"\xff" + b"\0" * 255, flags=8), ANSWER),
    "h2 unknown frames": http2(frame(0xEE, b"x" * 20, 0)),
    "h2 ALTSVC": http2(frame(ALTSVC, b"\0\1aclear", 0)),
    "h2 ORIGIN": http2(frame(ORIGIN, b"\0\x09https://a", 0)),
    "h2 PRIORITY_UPDATE": http2(frame(PRIORITY_UPDATE, b"\0\0\0\1u=0", 0)),
    "h2 PUSH_PROMISE": PushPromises("h2", b"", GET),
    "h2 PUSH_PROMISE before SETTINGS ACK": PushPromises("h2", b"", GET, acknowledges=False),
}
