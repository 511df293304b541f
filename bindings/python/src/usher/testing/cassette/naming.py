"""Turns requests and replies into exchanges: operations, names of tokens, and what may be kept of a reply."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from .format import TOKEN_MEMBER, Exchange, known_members

_BY_PATH = (
    ("/sessions/setup", "set-up"),
    ("/sessions/heartbeat", "heartbeat"),
    ("/sessions/teardown", "teardown"),
    ("/renewal-license-wv", "renewal"),
    ("/licenses", "licence"),
    ("/certificates", "certificate"),
)
_SESSION_ONLY = ("heartbeat", "teardown", "renewal")
MAX_AGE_S = 10**9


def operation_of(path: str, query: Mapping[str, str]) -> str:
    """Returns the operation of a request."""
    found = next((name for end, name in _BY_PATH if path.rstrip("/").endswith(end)), "other")
    return "renewal" if found == "licence" and query.get("renew") == "true" else found


class TokenNames:
    """Gives names to tokens. Stores only hashes of the tokens, not the tokens themselves."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._contents = 0
        self._newest: dict[str, int] = {}

    def sent(self, operation: str, header: str) -> tuple[str, ...]:
        """Returns the names of the tokens in an authorisation header."""
        parts = [part.strip() for part in header.split(",") if part.strip()]
        return tuple(self._name(part, operation in _SESSION_ONLY or index > 0) for index, part in enumerate(parts))

    def issued(self, token: str, sent: tuple[str, ...]) -> str:
        """Returns the name of a session token in a reply to a request that carried these tokens."""
        known = self._names.get(_hash(token))
        if known is not None:
            return known
        session = next((name.partition("#")[0] for name in sent if name.startswith("S")), None)
        return self._learn(token, session or self._new_session())

    def teach(self, token: str, name: str) -> None:
        """Gives a token this name."""
        self._names[_hash(token)] = name

    def _name(self, token: str, of_session: bool) -> str:
        known = self._names.get(_hash(token))
        if known is not None:
            return known
        if of_session:
            return self._learn(token, self._new_session())
        self._contents += 1
        return self._names.setdefault(_hash(token), f"C{self._contents}")

    def _new_session(self) -> str:
        return f"S{len(self._newest) + 1}"

    def _learn(self, token: str, session: str) -> str:
        self._newest[session] = self._newest.get(session, 0) + 1
        return self._names.setdefault(_hash(token), f"{session}#{self._newest[session]}")


def exchange(
    names: TokenNames,
    *,
    at_ms: int,
    operation: str,
    tokens: tuple[str, ...],
    took_ms: int,
    status: int | None,
    body: bytes,
    retry_after: str | None,
) -> Exchange:
    """Makes an exchange. Of the reply it keeps only the status, the kind and size of the body, known members, the names
    of session tokens, and the seconds in ``Retry-After``."""
    kind, value = _read(body)
    members: dict[str, int | float | bool | str] = {**known_members(value)}
    if isinstance(value, dict):
        for name, item in value.items():
            if name.lower() == TOKEN_MEMBER and isinstance(item, str) and item:
                members[name] = names.issued(item, tokens)
    after = int(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
    return Exchange(
        at_ms=at_ms,
        operation=operation,
        tokens=tokens,
        took_ms=took_ms,
        status=status,
        body=kind,
        size=len(body),
        members=members,
        retry_after_s=None if after is None else min(after, MAX_AGE_S),
    )


def _read(body: bytes) -> tuple[str, object]:
    if not body:
        return "empty", None
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes", None
    try:
        return "json", json.loads(text)
    except (ValueError, RecursionError):
        return "text", None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
