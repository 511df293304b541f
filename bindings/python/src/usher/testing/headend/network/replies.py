"""Replies as values, before a fault changes them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

JSON_TYPE = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP reply.

    Attributes:
        status: HTTP status.
        body: the body bytes.
        content_type: the value of ``Content-Type``; if empty, the reply does not have this header.
        headers: further headers, in order.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def with_header(self, name: str, value: str) -> Reply:
        """Returns a copy of the reply with one more header."""
        return replace(self, headers=(*self.headers, (name, value)))

    def json_object(self) -> dict[str, Any] | None:
        """Returns the body as a JSON object; None if the body is not a JSON object."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


def json_reply(value: Any, status: int = 200) -> Reply:
    """A JSON reply."""
    return Reply(status=status, body=json.dumps(value).encode("utf-8"), content_type=JSON_TYPE)


def bytes_reply(data: bytes) -> Reply:
    """A binary reply."""
    return Reply(body=data, content_type="application/octet-stream")


def text_reply(text: str, content_type: str = "text/plain; charset=utf-8") -> Reply:
    """A reply of text."""
    return Reply(body=text.encode("utf-8"), content_type=content_type)


def error_reply(status: int, code: int, message: str) -> Reply:
    """Makes a reply with an error body in the platform's form (source: error bodies and codes)."""
    return json_reply({"errorCode": code, "message": message}, status)
