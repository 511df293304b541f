"""A server that replies with exactly the bytes that a test chooses; no HTTP library would send some of these bytes."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType

PIECE = 64 * 1024


class RawServer:
    """A server that reads one request per connection, and sends the next reply in pieces. After the last reply in the
    list it repeats this reply."""

    def __init__(self, *answers: bytes | Iterable[bytes], tls: ssl.SSLContext | None = None) -> None:
        self._answers = list(answers)
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.requests: list[bytes] = []
        self.sent = 0
        """The number of bytes of replies that the client has accepted."""

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}/"

    def __enter__(self) -> RawServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # __exit__ has shut the socket down
                return
            client.settimeout(10)
            with (
                client,
                contextlib.suppress(OSError),
            ):  # the client closed the connection, or does not trust this server; `sent` counts what it accepted
                self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        with self._tls.wrap_socket(client, server_side=True) if self._tls else client as connection:
            self._read_and_answer(connection)

    def _read_and_answer(self, connection: socket.socket) -> None:
        if request := whole_request(connection):
            self.requests.append(request)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            for piece in [answer] if isinstance(answer, bytes) else answer:
                connection.sendall(piece)
                self.sent += len(piece)


def whole_request(client: socket.socket) -> bytes:
    """Reads one request, and returns its headers and its body; returns no bytes if the client closes the connection
    before the end of the headers."""
    read = b""
    while b"\r\n\r\n" not in read:
        if not (more := client.recv(PIECE)):
            return b""
        read += more
    head, _, body = read.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while lengths and len(body) < lengths[0]:
        body += client.recv(PIECE)
    return head + b"\r\n\r\n" + body


def reply(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """Returns a complete reply. Each header is a line without its line end."""
    lines = [
        b"HTTP/1.1 " + status,
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
        b"Connection: close",
        *headers,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def endless(start: bytes, piece: bytes, most: int) -> Iterator[bytes]:
    """Returns a reply in pieces: `start`, and then `piece` again and again, until the pieces have `most` bytes."""
    yield start
    for _ in range(most // len(piece)):
        yield piece
