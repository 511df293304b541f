"""Reads the error code and the session token in a reply."""

from __future__ import annotations

from ..wire.exchange import Exchange


def error_code(exchange: Exchange) -> int | None:
    """Returns the code of an error reply (protocol.md: When it fails); None if the reply has no code."""
    value = exchange.json()
    if not isinstance(value, dict):
        return None
    inner = [value.get(name) for name in ("error", "errorResponse", "status", "result")]
    errors = value.get("errors")
    inner += errors[:1] if isinstance(errors, list) else []
    for place in [value, *inner]:
        if not isinstance(place, dict):
            continue
        for name in ("errorCode", "code", "error_code"):
            number = _number(place.get(name))
            if number is not None and (name == "errorCode" or 1000 <= number <= 4999 or number <= -1000):
                return number
    return None


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return None
    return None


def session_token(exchange: Exchange) -> str | None:
    """Returns the session token in a reply; None if there is none."""
    value = exchange.member("sessionToken")
    return value if isinstance(value, str) and value else None
