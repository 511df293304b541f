"""Replaces the secrets of a request by short names wherever the head-end shows the request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from .journal import Entry

_SECRET_NAME = re.compile("auth|cookie|credential|key|pass|secret|session|ticket|token", re.IGNORECASE)
_PUBLIC_NAMES = frozenset({"key_id", "key_system", "sec-websocket-key"})
_LONG_WORD = re.compile(r"[A-Za-z0-9+=_.~%-]{20,}")
_MEMBER = re.compile(r'("[^"]*(?:auth|cookie|pass|secret|token)[^"]*"\s*:\s*")([^"]*)(")', re.IGNORECASE)
_KNOWN_SEGMENTS = frozenset(
    {"certificates", "contentlicenseservice", "entitlement", "entitlements", "heartbeat", "licenses", "sessions"}
    | {"teardown"}
)


def plain(text: str) -> str:
    """Returns the text as one line of visible characters. U+FFFD replaces all other characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def hide(text: str, entry: Entry) -> str:
    """Returns a text with short names in place of the request's tokens, credentials and other long words.

    If the text still contains a secret in another spelling after that, returns "…" instead of the text.
    """
    names = _names(entry)
    for whole in sorted(names, key=len, reverse=True):
        for spelling in {whole, quote(whole), quote(whole, safe="")}:
            text = text.replace(spelling, names[whole])
    read = unquote(text).lower()
    if any(len(whole) >= 6 and unquote(whole).lower() in read for whole in names):
        return "…"
    return _LONG_WORD.sub(lambda found: _short(found[0]) if _looks_secret(found[0]) else found[0], text)


def hide_path(path: str, entry: Entry) -> str:
    """Returns a path with short names in place of secrets, as ``hide`` does for a text. If the head-end does not serve
    this path, only the short and the known segments of the path remain."""
    shown = hide(path, entry)
    if entry.route != "unknown":
        return shown
    route, mark, query = shown.partition("?")
    segments = (part if len(part) <= 8 or part in _KNOWN_SEGMENTS else _short(part) for part in route.split("/"))
    return "/".join(segments) + mark + query


def hide_body(body: bytes, entry: Entry) -> bytes:
    """Returns the body of the request with short names in place of the request's tokens, and with shortened values of
    the JSON members whose names suggest a secret."""
    text = body.decode("latin-1")
    for whole, short in _names(entry).items():
        text = text.replace(whole, short.replace("…", "..."))
    return _MEMBER.sub(lambda found: found[1] + found[2][:4] + "..." + found[3], text).encode("latin-1")


def _names(entry: Entry) -> dict[str, str]:
    names = {part.raw: part.short for part in entry.parts if part.raw}
    for name, value in (*entry.query, *entry.headers):
        if not _SECRET_NAME.search(name) or name.lower() in _PUBLIC_NAMES:
            continue
        for word in {value, value.rpartition(" ")[2], *value.split(",")}:
            if word.strip():
                names.setdefault(word.strip(), _short(word.strip()))
    return names


def _looks_secret(word: str) -> bool:
    return len(word) > 40 or sum(c.isdigit() for c in word) >= 2


def _short(word: str) -> str:
    return f"{word[:4]}…"
