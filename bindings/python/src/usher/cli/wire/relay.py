"""A relay between the library and a head-end: it passes each request on, and keeps the exchange.

The library gets URLs of the relay on loopback. The relay sends each request to the real server with ``Client``, over
TLS if the real URL is https, and gives the library the reply. If there was no reply, it closes the connection. So the
exchanges have the exact requests of the library, and the time that each step took at the real server.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit

from .client import Client
from .exchange import Exchange

_OF_A_CONNECTION = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade"}
)


class Relay:
    """Relays requests while its ``with`` block runs. Any thread may read ``exchanges``."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.exchanges: list[Exchange] = []
        self._origins: list[str] = []
        relay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:  # the library has closed the connection
                    self.close_connection = True

            def _relay(self) -> None:
                relay._handle(self)

            do_POST = do_GET = do_PUT = _relay

            def log_message(self, format: str, *values: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="usher-relay", daemon=True
        )

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, real: str) -> str:
        """Returns the URL of the relay for the URL of a server. Path and query stay as they are, because the library
        reads them."""
        parts = urlsplit(real)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._origins:
            self._origins.append(origin)
        rest = real[len(origin) :]
        return f"http://127.0.0.1:{self._server.server_port}/{self._origins.index(origin)}{rest or '/'}"

    def real(self, path: str) -> str:
        """Returns the real URL for a path and query of the relay."""
        number, slash, rest = path.lstrip("/").partition("/")
        return f"{self._origins[int(number)]}{slash}{rest}"

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = tuple(
            (name, value) for name, value in handler.headers.items() if name.lower() not in _OF_A_CONNECTION
        )
        exchange = self.client.send(handler.command, self.real(handler.path), headers, body)
        self.exchanges.append(exchange)
        handler.close_connection = exchange.failure is not None
        if not exchange.status:
            return
        handler.send_response_only(exchange.status, exchange.reason)
        for name, value in exchange.headers:
            if name.lower() not in _OF_A_CONNECTION:
                handler.send_header(name, value)
        if exchange.status not in (204, 304):
            missing = exchange.failure is not None  # the library must see that the reply is not complete
            handler.send_header("Content-Length", str(len(exchange.body) + missing))
        handler.end_headers()
        handler.wfile.write(exchange.body)
