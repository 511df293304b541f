"""A server on a free port of 127.0.0.1 for the independent servers of these tests. Standard library only."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

Server = TypeVar("Server", bound="SmallServer")


class SmallServer:
    """``with`` starts and stops it. It passes each request with one of ``methods`` to ``answer``, on a thread of its
    own."""

    methods = ("POST",)

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *values: object) -> None:
                pass

        for method in self.methods:
            setattr(Handler, f"do_{method}", lambda request: self.answer(request))
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._http.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        raise NotImplementedError

    def __enter__(self: Server) -> Server:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
