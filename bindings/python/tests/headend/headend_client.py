"""A client for the tests of the head-end. It sends the requests of a player as plain HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from usher.testing.headend import Api, HeadEnd, KeySystem

AUTH = "nv-authorizations"


@dataclass(frozen=True)
class Answer:
    """One reply: its status, its headers and the bytes of its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> int:
        return int(self.json["errorCode"])

    @property
    def token(self) -> str:
        return str(self.json["sessionToken"])


@dataclass
class Client:
    """Sends requests to one head-end, each on a new connection."""

    he: HeadEnd
    timeout: float = 5.0
    context: ssl.SSLContext | None = field(default=None)

    def send(
        self,
        method: str,
        url: str,
        token: str | None = None,
        body: Any = b"",
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Answer:
        parts = urlsplit(url)
        assert parts.hostname is not None
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=self.timeout, context=self.context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout)
        sent = dict(headers or {})
        if token is not None:
            sent[AUTH] = token
        try:
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request(method, target, body=body, headers=sent, **options)
            reply = connection.getresponse()
            return Answer(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    def ssm(self, operation: str, token: str | None, **options: Any) -> Answer:
        return self.send("POST", f"{self.he.ssm_url}/v1/sessions/{operation}", token, **options)

    def setup(self, token: str | None = None, **options: Any) -> Answer:
        return self.ssm("setup", self.he.content_token() if token is None else token, **options)

    def heartbeat(self, token: str | None, **options: Any) -> Answer:
        return self.ssm("heartbeat", token, **options)

    def teardown(self, token: str | None, **options: Any) -> Answer:
        return self.ssm("teardown", token, **options)

    def license(
        self,
        key_system: KeySystem,
        token: str | None,
        body: bytes | Mapping[str, Any] = b"payload",
        *,
        renew: bool = False,
        content_type: str = "application/octet-stream",
        api: Api = "v1",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        if not isinstance(body, bytes):
            body, content_type = json.dumps(body).encode(), "application/json"
        url = self.he.license_url(key_system, api) + ("?renew=true" if renew else "")
        return self.send("POST", url, token, body, {"Content-Type": content_type, **(headers or {})})

    def control(self, method: str, name: str, body: Mapping[str, Any] | None = None) -> Answer:
        return self.send(method, f"{self.he.control_url}/{name}", body=b"" if body is None else json.dumps(body))


class InBackground(threading.Thread):
    """Sends a request on a separate thread while the test continues."""

    def __init__(self, work: Callable[..., Answer], *arguments: Any, **options: Any) -> None:
        super().__init__(daemon=True)
        self._work: Callable[[], Answer] = lambda: work(*arguments, **options)
        self._answer: Answer | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._answer = self._work()
        except Exception as error:  # kept for the test: result() raises it
            self.error = error

    def result(self, timeout: float = 5.0) -> Answer:
        self.join(timeout)
        assert not self.is_alive(), "the request has no reply yet"
        if self.error is not None:
            raise self.error
        assert self._answer is not None
        return self._answer


def setup_bytes(he: HeadEnd) -> bytes:
    """Returns the bytes of a set-up with a new content token."""
    path = urlsplit(f"{he.ssm_url}/v1/sessions/setup").path
    token = he.content_token()
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{AUTH}: {token}\r\nContent-Length: 0\r\n\r\n".encode()


def raw(he: HeadEnd, request: bytes) -> bytes:
    """Sends bytes, and returns all bytes that the head-end sends before it closes the connection."""
    with socket.create_connection((he.config.host, he.port), timeout=5) as connection:
        connection.sendall(request)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received
