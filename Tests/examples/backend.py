"""An operator's back end for the customer SSM examples: sessions and Clear Key licences over HTTP.

The requests are POST /start and /renew/SESSION, with a W3C Clear Key request, and POST /alive/SESSION and
/stop/SESSION. A reply is JSON. If the request succeeds, the reply has `session`, `period` in seconds, `renewals` (1:
renewals keep the session alive; 0: requests to /alive keep it alive) and `licence`. Otherwise the reply has `code` and
`message`; its status is 409 with code 1007 if the account has too many sessions, and 403 if the back end does not hold
the session. Standard library only.
"""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class Backend:
    """A server on loopback. `with` starts and stops the server. The tests check its journal and its sessions."""

    keys: dict[bytes, bytes]
    renewals: bool
    period_s: float = 1.0
    limit: int = 1
    journal: list[tuple[str, str, int]] = field(default_factory=list)
    """One entry for each request: its operation, its session, and the HTTP status of the reply."""
    sessions: dict[str, str] = field(default_factory=dict)
    """Maps each session to `held`, `stopped` or `killed`."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Backend:
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                what, _, session = self.path.strip("/").partition("/")
                status, answer = backend.answer(what, session, body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Prints nothing: the journal records each request."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def held(self) -> list[str]:
        with self.lock:
            return [name for name, state in self.sessions.items() if state == "held"]

    def whats(self, session: str = "") -> list[str]:
        """Returns the operations of all requests, in order: only those of one session, or those of all sessions."""
        with self.lock:
            return [what for what, of, _ in self.journal if not session or of == session]

    def kill(self) -> None:
        with self.lock:
            self.sessions.update(
                dict.fromkeys((name for name, state in self.sessions.items() if state == "held"), "killed")
            )

    def answer(self, what: str, session: str, body: bytes) -> tuple[int, dict[str, Any]]:
        with self.lock:
            status, answer = self._answer(what, session, body)
            self.journal.append((what, str(answer.get("session", session)), status))
            return status, answer

    def _answer(self, what: str, session: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if what == "start":
            if sum(state == "held" for state in self.sessions.values()) >= self.limit:
                return 409, {"code": 1007, "message": f"maximum number of active sessions ({self.limit}) exceeded"}
            session = f"session-{len(self.sessions) + 1}"
            self.sessions[session] = "held"
            return self._licence(session, body)
        if self.sessions.get(session) != "held":
            return 403, {"code": 1006, "message": f"no such session: {session}"}
        if what == "renew":
            return self._licence(session, body)
        if what == "stop":
            self.sessions[session] = "stopped"
        return 200, {"session": session}

    def _licence(self, session: str, body: bytes) -> tuple[int, dict[str, Any]]:
        kids = [base64.urlsafe_b64decode(kid + "==") for kid in json.loads(body)["kids"]]
        keys = [{"kty": "oct", "kid": base64url(kid), "k": base64url(self.keys[kid])} for kid in kids]
        licence = json.dumps({"keys": keys, "type": "temporary"})
        return 200, {"session": session, "period": self.period_s, "renewals": int(self.renewals), "licence": licence}
