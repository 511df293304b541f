"""A head-end that follows docs/protocol.md, written only to test ``usher check``. It shares no code with the reference
head-end, and differs from it wherever the protocol lets it: opaque tokens, of which only the newest is valid; gzip;
other names in error replies; a text as the reply to teardown; one licence service, for Clear Key.

Standard library only. ``with RightServer(limit=2) as server: server.url``.
"""

from __future__ import annotations

import base64
import gzip
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

from .small_server import SmallServer

CONTENT_TOKEN = "content-token-of-the-right-server"


class Refused(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class RightServer(SmallServer):
    def __init__(self, *, limit: int = 2, slot_delay_s: float = 0) -> None:
        """With `slot_delay_s` the server breaks the protocol: after a teardown the slot stays in use for this time."""
        self.limit = limit
        self.period_s = 30
        self.lease_s = 2.2 * self.period_s
        self._slot_delay_s = slot_delay_s
        self._ended_at: list[float] = []
        self._lock = threading.Lock()
        self._newest: dict[str, str] = {}
        """The newest token of each session."""
        self._until: dict[str, float] = {}
        self._sessions_made = 0
        super().__init__()
        self.url = f"{self.origin}/sessions-service"
        self.license_url = f"{self.origin}/clear-key"

    @property
    def held(self) -> int:
        """How many sessions the server holds."""
        with self._lock:
            self._expire()
            return len(self._newest)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        try:
            token = request.headers.get("nv-authorizations")
            if not token:
                raise Refused(401, 1001, "authorization header missing")
            with self._lock:
                status, value = 200, self._execute(request.path, token, body)
        except Refused as refused:
            status = refused.status
            value = json.dumps({"code": refused.code, "errorMessage": str(refused)}).encode()
        headers = {}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            value, headers = gzip.compress(value), {"Content-Encoding": "gzip"}
        request.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(value)), **headers}.items():
            request.send_header(name, text)
        request.end_headers()
        request.wfile.write(value)

    def _execute(self, path: str, token: str, body: bytes) -> bytes:
        self._expire()
        match path.rpartition("/")[2]:
            case "setup":
                return self._set_up(token)
            case "heartbeat":
                session = self._session(token)
                self._until[session] = time.monotonic() + self.lease_s
                return json.dumps({"sessionToken": self._rotate(session)}).encode()
            case "teardown":
                session = self._session(token)
                del self._newest[session], self._until[session]
                self._ended_at.append(time.monotonic())
                return b"session torn down"
            case "clear-key":
                content, _, session_token = token.partition(",")
                self._content(content)
                self._session(session_token)
                return self._license(body)
        raise Refused(404, 1404, "no such service")

    def _set_up(self, token: str) -> bytes:
        self._content(token)
        late = [at for at in self._ended_at if at + self._slot_delay_s > time.monotonic()]
        if len(self._newest) + len(late) >= self.limit:
            raise Refused(403, 1007, f"{self.limit} streams play already")
        self._sessions_made += 1
        session = f"session-{self._sessions_made}"
        self._until[session] = time.monotonic() + self.lease_s
        return json.dumps({"heartBeat": self.period_s, "sessionToken": self._rotate(session)}).encode()

    def _license(self, body: bytes) -> bytes:
        kids = json.loads(body)["kids"]
        key = base64.urlsafe_b64encode(bytes(range(16))).rstrip(b"=").decode()
        keys: list[dict[str, Any]] = [{"kty": "oct", "kid": kid, "k": key} for kid in kids]
        return json.dumps({"keys": keys, "type": "temporary"}).encode()

    # ---- sessions ----------------------------------------------------------------------------------------------------

    def _content(self, token: str) -> None:
        if token != CONTENT_TOKEN:
            raise Refused(403, 1003, "unknown content token")

    def _session(self, token: str) -> str:
        for session, newest in self._newest.items():
            if secrets.compare_digest(newest, token):
                return session
        raise Refused(404, 1006, "no such session")

    def _rotate(self, session: str) -> str:
        self._newest[session] = secrets.token_urlsafe(24)
        return self._newest[session]

    def _expire(self) -> None:
        now = time.monotonic()
        for session in [session for session, until in self._until.items() if until < now]:
            del self._newest[session], self._until[session]
