"""An HTTP client that times each step of a request, and reports every failure as a value.

It makes a new connection for each request, so that each exchange shows the whole cost, and a session cannot depend on a
connection.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from .exchange import Exchange, Failure, Headers, Timing

MOST_BYTES = 1024 * 1024
"""The largest reply body that is read. The library has the same limit, unless the host raises it."""
_PIECE = 64 * 1024
_TLS_REASONS = {
    "WRONG_VERSION_NUMBER": "the server does not speak TLS on this port",
    "UNEXPECTED_EOF_WHILE_READING": "the server ended the connection during the handshake",
}


class _Stop(Exception):
    def __init__(self, failure: Failure, detail: object = "") -> None:
        self.failure = failure
        self.detail = str(detail)


def _milliseconds(since: float) -> float:
    return (time.monotonic() - since) * 1000


class _Connection(http.client.HTTPConnection):
    """A connection that times the look-up of the name, the connect and the TLS handshake."""

    def __init__(self, url: SplitResult, limit_s: float, tls: ssl.SSLContext | None, timing: Timing) -> None:
        super().__init__(url.hostname or "", url.port or (443 if tls else 80), timeout=limit_s)
        self._tls = tls
        self._timing = timing
        self.deadline = time.monotonic() + limit_s

    def connect(self) -> None:
        began = time.monotonic()
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise _Stop(Failure.NAME, error) from None
        self._timing.lookup = _milliseconds(began)
        began = time.monotonic()
        self.sock = self._first(found)
        self._timing.connect = _milliseconds(began)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return
        began = time.monotonic()
        try:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)
        except TimeoutError as error:
            raise _Stop(Failure.TLS, "the TLS handshake did not end in time") from error
        except ssl.SSLCertVerificationError as error:
            raise _Stop(Failure.TLS, f"its certificate is not accepted: {error.verify_message}") from error
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or str(error)
            raise _Stop(Failure.TLS, _TLS_REASONS.get(reason, reason.lower().replace("_", " "))) from error
        self._timing.tls = _milliseconds(began)

    def _first(self, found: Iterable[tuple[int, int, int, str, tuple[object, ...]]]) -> socket.socket:
        last: OSError = OSError("no address")
        for family, kind, protocol, _, address in found:
            made = socket.socket(family, kind, protocol)
            made.settimeout(max(0.001, self.deadline - time.monotonic()))
            try:
                made.connect(address)
                return made
            except OSError as error:
                made.close()
                last = error
        if isinstance(last, ConnectionRefusedError):
            raise _Stop(Failure.REFUSED, last)
        raise _Stop(Failure.CONNECT_TIMEOUT if isinstance(last, TimeoutError) else Failure.UNREACHABLE, last)

    def wait_until_deadline(self) -> None:
        """Limits the next operation on the socket to the time that is left until the deadline."""
        if self.sock is not None:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the time limit has passed")
            self.sock.settimeout(left)


@dataclass
class Client:
    """Sends requests.

    Attributes:
        limit_s: the time limit of a whole request.
        ca_file: the authorities to trust, as a PEM file; None: those of the system.
        most_bytes: the largest body that is read.
    """

    limit_s: float = 10.0
    ca_file: str | None = field(default=None, repr=False)
    most_bytes: int = MOST_BYTES

    def send(self, method: str, url: str, headers: Headers = (), body: bytes = b"") -> Exchange:
        """Sends a request, and returns the exchange. If the request fails, the exchange says why; the method raises
        only a KeyboardInterrupt."""
        made = Exchange(method, url, headers, body)
        parts = urlsplit(url)
        began = time.monotonic()
        connection: _Connection | None = None
        try:
            tls = ssl.create_default_context(cafile=self.ca_file) if parts.scheme == "https" else None
            connection = _Connection(parts, self.limit_s, tls, made.timing)
            self._exchange(connection, made, f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}")
        except _Stop as stop:
            made.failure, made.detail = stop.failure, stop.detail
        except TimeoutError as error:
            made.failure, made.detail = Failure.TIMEOUT, str(error)
        except http.client.RemoteDisconnected as error:
            made.failure, made.detail = Failure.CLOSED, str(error)
        except http.client.IncompleteRead as error:
            made.failure, made.detail = Failure.CUT, str(error)
        except (ConnectionError, ssl.SSLError) as error:
            made.failure = Failure.CUT if made.status else Failure.RESET
            made.detail = str(error)
        except (http.client.HTTPException, ValueError) as error:
            made.failure = Failure.NOT_HTTP
            made.detail = f"{type(error).__name__}: {error}"
        except OSError as error:
            made.failure, made.detail = Failure.UNREACHABLE, str(error)
        finally:
            if connection is not None:
                connection.close()
        made.timing.total = _milliseconds(began)
        return made

    def _exchange(self, connection: _Connection, made: Exchange, target: str) -> None:
        connection.putrequest(made.method, target, skip_accept_encoding=True)
        for name, value in made.request_headers:
            connection.putheader(name, value)
        if made.request_body or made.method == "POST":
            connection.putheader("Content-Length", str(len(made.request_body)))
        connection.endheaders(made.request_body or None)
        sent = time.monotonic()
        connection.wait_until_deadline()
        reply = connection.getresponse()
        made.timing.first_byte = _milliseconds(sent)
        made.status, made.reason, made.headers = reply.status, reply.reason, tuple(reply.getheaders())
        pieces: list[bytes] = []
        size = 0
        while True:
            connection.wait_until_deadline()
            piece = (
                reply.read1(_PIECE) if reply.chunked or reply.length is None else reply.read(min(_PIECE, reply.length))
            )
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
            made.body = b"".join(pieces)[: self.most_bytes] if size > self.most_bytes else b""
            if size > self.most_bytes:
                raise _Stop(Failure.TOO_LARGE, f"more than {self.most_bytes} bytes")
        made.body = b"".join(pieces)
        if reply.length:
            raise http.client.IncompleteRead(made.body, reply.length)
