"""Reads CKCs and certificates in the forms that the library takes (docs/protocol.md: Licences)."""

from __future__ import annotations

import base64
import binascii
import re

from ..wire.exchange import Exchange
from .replies import error_code

SMALLEST = 16
_NAMES = ("CkcMessage", "ckc", "License")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")


def ckc_fault(exchange: Exchange, path: str | None = None) -> str:
    """Returns what is wrong with the CKC in a reply; "" if the library accepts the CKC. `path`: the member of a JSON
    reply that has the CKC, as names with dots between them; None: ``CkcMessage``, ``ckc`` or ``License``."""
    content = (exchange.content() or b"").removeprefix(b"\xef\xbb\xbf")
    value = exchange.json()
    if isinstance(value, dict):
        number = error_code(exchange)
        found = next((value[name] for name in _NAMES if value.get(name)), None) if path is None else _at(value, path)
        if found is None:
            return f"the reply has no CKC, but an error code: {number}" if number else "the reply has no CKC"
        content = _encoded(found) if isinstance(found, str) else b"{}"
    else:
        inner = re.search(rb"<ckc>(.*?)</ckc>", content, re.S)
        if inner is None and content.lstrip()[:1] == b"<":
            return "the reply is a web page, or XML without <ckc>"
        content = content if inner is None else inner[1]
    plain = _unbase64(content)
    if plain is None:
        return "CkcMessage is not base64" if isinstance(value, dict) else _raw_fault(content)
    return _raw_fault(plain)


def _at(value: object, path: str) -> object:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _encoded(text: str) -> bytes:
    """Returns a text of a JSON reply as bytes. "?" replaces a lone surrogate, which UTF-8 cannot encode; base64 allows
    neither of the two characters."""
    return text.encode(errors="replace")


def _unbase64(content: bytes) -> bytes | None:
    text = b"".join(content.split())
    if not _BASE64.fullmatch(text):
        return None
    text = text.replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return None


def _raw_fault(data: bytes) -> str:
    if is_text(data):
        return "the CKC is text" if data else "the CKC is empty"
    return _size_fault(data)


def is_text(data: bytes) -> bool:
    return all(32 <= byte < 127 or byte in b"\r\n\t" for byte in data)


def certificate_fault(exchange: Exchange) -> str:
    """Returns what is wrong with the certificate in a reply; "" if the library takes it."""
    content = (exchange.content() or b"").removeprefix(b"\xef\xbb\xbf")
    value = exchange.json()
    if isinstance(value, dict):
        found = value.get("certificate") or value.get("cert")
        plain = _unbase64(_encoded(found)) if isinstance(found, str) else None
        return _der_fault(plain, text=True) if plain else "the reply is JSON without a certificate in base64"
    pem = re.search(rb"-----BEGIN [A-Z0-9 ]+-----(.*?)-----END", content, re.S)
    plain = _unbase64(content if pem is None else pem[1])
    return _der_fault(content, text=False) if plain is None else _der_fault(plain, text=True)


def _der_fault(data: bytes, *, text: bool) -> str:
    """Returns what is wrong with the bytes of a certificate; "" if the library takes them.

    Args:
        text: whether the server sent the bytes as base64. If so, they must be DER; otherwise they may also have the
            format of a vendor.
    """
    if data[:1] == b"\x30" and len(data) >= 2:
        count = data[1] & 0x7F if data[1] & 0x80 else 0
        size = int.from_bytes(data[2 : 2 + count], "big") if count else data[1]
        if 2 + count + size == len(data):
            return ""
        return f"the certificate has {len(data)} bytes, and its DER says {2 + count + size}"
    if text:
        return "the decoded bytes are not a certificate"
    if not data:
        return "the reply is empty"
    return "the reply is text, not a certificate" if is_text(data) else _size_fault(data)


def _size_fault(data: bytes) -> str:
    return f"it has {len(data)} bytes; the library refuses fewer than {SMALLEST}" if len(data) < SMALLEST else ""
