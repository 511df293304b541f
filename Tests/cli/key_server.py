"""FairPlay key servers, written only to test ``usher check``: a key server, an entitlement server and ExpressPlay in
one program. They follow docs/protocol.md, and share no code with the reference head-end.

``KeyServer()`` obeys every statement of the protocol; ``KeyServer(FAULTS)`` breaks the statements whose names it gets.
A server takes SPCs in one form only: ``KeyServer(form="json")`` takes JSON. Standard library only.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Collection
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

from .small_server import SmallServer

CONTENT_ID = "movie-7"
FAULTS = frozenset(
    {
        "ckc",
        "ckc-refused",
        "certificate",
        "entitlement",
        "entitlement-denied",
        "entitlement-id",
        "rights",
        "rights-unknown",
        "rights-error",
    }
)
"""The names of the statements of ``usher check`` that the server can break."""
FORMS = ("raw", "form", "form-plain", "form-whole", "base64", "json")
"""The forms in which a client may send an SPC. In three of them the body consists of `name=value` pairs: with ``form``
each value is percent-coded, with ``form-plain`` nothing, and with ``form-whole`` the whole body."""
_TYPES = {"raw": "application/octet-stream", "base64": "text/plain", "json": "application/json"}
_NO_RIGHT = -2018


def _plain(text: str) -> bytes:
    """Decodes base64 of the standard alphabet with padding. Returns the bytes; raises an exception for any other
    text."""
    return base64.b64decode(text, validate=True)


class KeyServer(SmallServer):
    methods = ("GET", "POST")

    def __init__(
        self, faults: Collection[str] = (), *, form: str = "raw", content_field: str | None = None, path: str = ""
    ) -> None:
        """`content_field`: a field of the request that must name the content. `path`: if it is set, the reply is JSON,
        and the CKC is at this path in it."""
        self._faults = frozenset(faults)
        self._form = form
        self._content_field = content_field
        self._path = path
        self._rights: set[str] = set()
        self._lock = threading.Lock()
        super().__init__()
        self.url = self.origin

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``usher check`` for this server."""
        return [
            *("--key-server", f"{self.url}/keys", "--certificate", f"{self.url}/certificate"),
            *("--entitlement", f"{self.url}/entitlement", "--content-id", CONTENT_ID),
        ]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        address = urlsplit(request.path)
        with self._lock:
            match address.path:
                case "/keys":
                    reply = self._keys(request.headers.get("Content-Type", ""), body)
                case "/certificate":
                    reply = self._certificate()
                case "/entitlement":
                    reply = self._entitlement(body)
                case "/rights":
                    reply = self._redeem(parse_qs(address.query).get("ExpressPlayToken", [""])[0], body)
                case _:
                    reply = 404, b'{"errorCode": 1404}'
        request.send_response(reply[0])
        request.send_header("Content-Length", str(len(reply[1])))
        request.end_headers()
        request.wfile.write(reply[1])

    def _keys(self, content_type: str, body: bytes) -> tuple[int, bytes]:
        if "ckc" in self._faults:
            return 200, b"<html><body>Please sign in.</body></html>"
        try:
            spc = self._read(content_type, body)
        except ValueError as error:
            if "ckc-refused" not in self._faults:
                return 400, json.dumps({"errorCode": 1207, "message": f"no SPC: {error}"}).encode()
            spc = body
        text = base64.urlsafe_b64encode(_ckc(spc)).rstrip(b"=").decode()
        if not self._path:
            return 200, f"<?xml version='1.0'?>\n<ckc>{text}</ckc>\n".encode()
        value: object = text
        for name in reversed(self._path.split(".")):
            value = {name: value}
        return 200, json.dumps(value).encode()

    def _read(self, content_type: str, body: bytes) -> bytes:
        """Returns the SPC of a request, which must have the form and the content type of this server."""
        if content_type != _TYPES.get(self._form, "application/x-www-form-urlencoded"):
            raise ValueError(f"content type {content_type}")
        fields: dict[str, str] = {}
        match self._form:
            case "raw":
                spc = body
            case "base64":
                spc = _plain(body.decode("ascii"))
            case "json":
                fields = json.loads(body)
                spc = _plain(fields.get("spc", ""))
            case "form":
                fields = {
                    name: values[0] for name, values in parse_qs(body.decode("ascii"), strict_parsing=True).items()
                }
                spc = _plain(fields.get("spc", ""))
            case _:
                if self._form == "form-whole" and b"=" in body:
                    raise ValueError("the form is not percent-coded")
                text = unquote(body.decode("ascii")) if self._form == "form-whole" else body.decode("ascii")
                pairs = (pair.partition("=") for pair in text.split("&"))
                fields = {name: value if name == "spc" else unquote(value) for name, _, value in pairs}
                spc = _plain(fields.get("spc", ""))
        if int.from_bytes(spc[:4], "big") not in (1, 2):
            raise ValueError("it has no version")
        if self._content_field is not None and fields.get(self._content_field) != CONTENT_ID:
            raise ValueError(f"{self._content_field} is not the content")
        return spc

    def _certificate(self) -> tuple[int, bytes]:
        der = b"\x30\x82\x01\x00" + bytes(range(256))
        if "certificate" in self._faults:
            return 200, der[:-40]  # cut: shorter than its DER says
        return 200, b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"

    def _entitlement(self, body: bytes) -> tuple[int, bytes]:
        asked = json.loads(body)
        reply = {"messageID": "" if "entitlement-id" in self._faults else asked["messageID"], "version": 1}
        if asked["contentID"] != CONTENT_ID and "entitlement-denied" not in self._faults:
            reply |= {"isAllowed": False, "epTokenURL": "", "error": 17, "errorText": "no such content"}
            return 200, json.dumps(reply).encode()
        right = secrets.token_hex(32)
        self._rights.add(right)
        url = "tokens/7" if "entitlement" in self._faults else f"{self.url}/rights?ExpressPlayToken={right}"
        return 200, json.dumps({**reply, "isAllowed": True, "epTokenURL": url}).encode()

    def _redeem(self, right: str, spc: bytes) -> tuple[int, bytes]:
        if right not in self._rights and "rights-unknown" not in self._faults:
            number = 2018 if "rights-error" in self._faults else _NO_RIGHT
            return 400, f"<html><body><h1>Error {number}</h1></body></html>".encode()
        return 200, b"" if "rights" in self._faults else _ckc(spc)


def _ckc(spc: bytes) -> bytes:
    """Returns bytes that are no text, and that differ for each SPC."""
    return b"\x00\x00\x00\x02" + hashlib.sha512(spc).digest()
