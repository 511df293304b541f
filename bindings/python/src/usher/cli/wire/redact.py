"""Redaction: no token and no key in what a command prints.

A ``Redactor`` replaces the secrets that it knows by names, such as ``<content token>`` and ``<session token 2>``. It
replaces an unknown text that looks like a token or a key by its length, such as ``<32 characters>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

_SECRET_HEADERS = re.compile(r"authorization|cookie|token|secret|api-?key", re.I)
_SECRET_MEMBERS = re.compile(r"token|^k$|^key$|secret|password", re.I)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LIKE_A_TOKEN = re.compile(r"(?<![\w+/=.-])(?=[\w+/=.-]*\d)[\w+/=-][\w+/=.-]{23,}")
LONGEST = 160
"""How many characters of a text in a body are shown; the rest of a longer text is cut off."""


class Redactor:
    """Knows the secrets that occur in one run of a command, and hides them in texts."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._sessions = 0

    def content_token(self, token: str) -> None:
        """Adds a content token."""
        self._add(token, "<content token>")

    def session_token(self, token: str) -> str:
        """Adds a session token. Returns the name that replaces the token in texts; each token has its own number."""
        if token not in self._names:
            self._sessions += 1
            self._add(token, f"<session token {self._sessions}>")
        return self._names[token]

    def _add(self, secret: str, name: str) -> None:
        for form in {secret, quote(secret, safe="", errors="surrogatepass"), json.dumps(secret)[1:-1]}:
            if form:
                self._names.setdefault(form, name)

    def text(self, value: str) -> str:
        """Returns a text with a name in place of each known secret, and a length in place of each word that looks like
        a token. Lone surrogates become their escapes in JSON."""
        return _encodable(self._hidden(value))

    def _hidden(self, value: str) -> str:
        return _LIKE_A_TOKEN.sub(lambda found: f"<{len(found[0])} characters>", self._known(value))

    def _known(self, value: str) -> str:
        for secret in sorted(self._names, key=len, reverse=True):
            value = value.replace(secret, self._names[secret])
        return value

    def url(self, value: str) -> str:
        """Returns a URL without its user name and its fragment. Other texts replace the values in the query, except in
        the query ``renew=true``, and the secrets in the path."""
        parts = urlsplit(value)
        query = re.sub(r"=[^&]*", "=…", parts.query) if parts.query != "renew=true" else parts.query
        path = "/".join(self.text(segment) for segment in self._known(parts.path).split("/"))
        shown = urlunsplit(parts._replace(path=path, query=query, netloc=parts.netloc.rpartition("@")[2], fragment=""))
        return _encodable(shown)

    def header(self, name: str, value: str) -> str:
        """Returns the value of a header with other texts in place of secrets."""
        shown = self.text(value)
        if name.lower() == "location":
            return self.url(value)
        is_secret = _SECRET_HEADERS.search(name) and not shown.startswith("<")
        return f"<{len(value)} characters>" if is_secret else shown

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Replaces the secrets in headers."""
        return [(name, self.header(name, value)) for name, value in headers]

    def body(self, content: bytes | None) -> str:
        """Returns a body as text without secrets; for binary data only its size."""
        if content is None:
            return "<a body that cannot be decoded>"
        if not content:
            return ""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return f"<{len(content)} bytes>"
        if any(character < " " and character not in "\t\n\r" for character in text):
            return f"<{len(content)} bytes>"
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return _cut(self.text(" ".join(text.split())))
        return _encodable(json.dumps(self._json(value), ensure_ascii=False))

    def _json(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._json(item, str(key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._json(item, name) for item in value]
        if isinstance(value, str):
            shown = self._hidden(value)
            is_secret = _SECRET_MEMBERS.search(name) and not shown.startswith("<") and value
            return f"<{len(value)} characters>" if is_secret else _cut(shown)
        return value


def _encodable(text: str) -> str:
    """Returns a text with the escape in JSON, such as ``\\ud800``, in place of each lone surrogate, which UTF-8 cannot
    encode."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"
