"""A licence server without a session manager, written only to test ``usher check``. It serves Clear Key licences as
docs/protocol.md says. It shares no code with the reference head-end.

``LicenseServer()`` obeys every statement of the protocol; ``LicenseServer(FAULTS)`` breaks the statements whose names
it gets. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from http.server import BaseHTTPRequestHandler

from .small_server import SmallServer

CONTENT_TOKEN = "content-token-of-the-license-server"
FAULTS = frozenset({"license-alone", "license-token", "no-token", "error-form", "final"})
"""The names of the statements of ``usher check`` that the server can break."""


class LicenseServer(SmallServer):
    def __init__(self, faults: Collection[str] = ()) -> None:
        self._faults = frozenset(faults)
        super().__init__()
        self.url = f"{self.origin}/clear-key"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        status, reply = self._license(request.headers.get("nv-authorizations"), body)
        request.send_response(status)
        request.send_header("Content-Length", str(len(reply)))
        request.end_headers()
        request.wfile.write(reply)

    def _license(self, token: str | None, body: bytes) -> tuple[int, bytes]:
        if token != CONTENT_TOKEN and ("no-token" if token is None else "license-token") not in self._faults:
            refusal = (
                b"Forbidden" if "error-form" in self._faults else b'{"errorCode": 4002, "message": "no such token"}'
            )
            return 503 if "final" in self._faults else 403, refusal
        keys = [{"kty": "oct", "kid": kid, "k": "AAAAAAAAAAAAAAAAAAAAAA"} for kid in json.loads(body)["kids"]]
        value = {"type": "temporary", "keys": [] if "license-alone" in self._faults else keys}
        return 200, json.dumps(value).encode()
