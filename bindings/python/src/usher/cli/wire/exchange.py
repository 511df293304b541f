"""One request and its reply, as the commands show and judge them."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Headers = tuple[tuple[str, str], ...]


class Failure(Enum):
    """Why a request has no reply, or only a part of one. The value is the text for people."""

    NAME = "the name {host} is not known to the name server"
    REFUSED = "no program listens on {host}, port {port}: the connection was refused"
    UNREACHABLE = "there is no way through the network to {host}, port {port}"
    CONNECT_TIMEOUT = "{host}, port {port}, did not accept a connection in time"
    TLS = "there is no secure connection to {host}"
    TIMEOUT = "the server accepted the request, and sent no complete reply in time"
    RESET = "the server reset the connection instead of replying"
    CLOSED = "the server closed the connection without a reply"
    NOT_HTTP = "the server sent something that is not HTTP"
    CUT = "the connection ended before the end of the reply"
    TOO_LARGE = "the reply is larger than the limit"

    @property
    def connected(self) -> bool:
        """Whether there was a connection, so that the server may have got the request."""
        return self not in (Failure.NAME, Failure.REFUSED, Failure.UNREACHABLE, Failure.CONNECT_TIMEOUT, Failure.TLS)


@dataclass
class Timing:
    """How long each step of a request took, in milliseconds. None: the request did not need this step, or ended before
    it."""

    lookup: float | None = None
    connect: float | None = None
    tls: float | None = None
    first_byte: float | None = None
    total: float = 0.0

    def parts(self) -> list[tuple[str, float]]:
        """Returns the steps that took place, with their names."""
        named = (("name", self.lookup), ("connect", self.connect), ("TLS", self.tls), ("reply", self.first_byte))
        return [(name, value) for name, value in named if value is not None]


@dataclass
class Exchange:
    """A request and what came back. Most of it may contain tokens, so commands show it through a ``Redactor``.

    Attributes:
        failure: why there is no complete reply; None if there is one.
        detail: the text of the system or of the TLS library for the failure.
        status: the HTTP status; 0 without a status line.
        body: the bytes of the reply's body, without chunking, with its content coding.
    """

    method: str = field(repr=False)
    url: str = field(repr=False)
    request_headers: Headers = field(repr=False)
    request_body: bytes = field(repr=False)
    status: int = 0
    reason: str = field(default="", repr=False)
    headers: Headers = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    failure: Failure | None = None
    detail: str = field(default="", repr=False)
    timing: Timing = field(default_factory=Timing)

    def header(self, name: str) -> str | None:
        """Returns the first value of a reply header; None if the reply does not have it. The letter case of the name
        does not matter."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def succeeded(self) -> bool:
        """Whether a complete reply has a status that is a success."""
        return self.failure is None and 200 <= self.status <= 299

    @property
    def coding(self) -> str:
        """The content coding of the reply, in lower case; "" for none."""
        return (self.header("Content-Encoding") or "").strip().lower().replace("identity", "")

    def content(self) -> bytes | None:
        """Returns the body without its content coding; None if it cannot be decoded."""
        try:
            if self.coding in ("gzip", "x-gzip"):
                return gzip.decompress(self.body)
            if self.coding == "deflate":
                try:
                    return zlib.decompress(self.body)
                except zlib.error:
                    return zlib.decompress(self.body, -zlib.MAX_WBITS)
        except (OSError, EOFError, zlib.error):
            return None
        return None if self.coding else self.body

    def json(self) -> Any:
        """Returns the JSON value of the body; None if the body is not JSON."""
        content = self.content()
        if content is None:
            return None
        try:
            return json.loads(content.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return None

    def member(self, name: str) -> Any:
        """Returns a member of the JSON object in the body; None if there is none. The letter case does not matter."""
        value = self.json()
        if not isinstance(value, dict):
            return None
        if name in value:
            return value[name]
        return next((item for key, item in value.items() if key.lower() == name.lower()), None)
