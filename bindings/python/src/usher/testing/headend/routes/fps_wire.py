"""The encodings of key requests and CKCs over HTTP (source: SPC/CKC encodings)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from ..fixtures import encode_base64
from ..knobs import Fps, RequestForm
from ..network.replies import Reply, bytes_reply, json_reply, text_reply

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")
_ESCAPED = re.compile(r"%(2B|2F|3D)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A key request, decoded.

    Attributes:
        form: how the SPC was encoded.
        spc: the SPC.
        fields: the other fields of the form or of the JSON.
    """

    form: RequestForm
    spc: bytes
    fields: dict[str, str] = field(default_factory=dict)


def read_key_request(content_type: str | None, body: bytes, spc_field: str = "spc") -> KeyRequest:
    """Reads the body of a key request, and returns the decoded request.

    Args:
        content_type: the ``Content-Type`` of the request; None if the request has none.
        body: its body.
        spc_field: the field of the SPC in a form or in JSON.

    Raises:
        ValueError: the body does not match its content type, or has no SPC.
    """
    kind = (content_type or "").partition(";")[0].strip().lower()
    if not body:
        raise ValueError("the key request is empty")
    if kind.endswith("json"):
        return _from_json(body, spc_field)
    if kind == "application/x-www-form-urlencoded":
        return _from_form(body, spc_field)
    if kind.startswith("text/") or _BASE64.fullmatch(body.strip()):
        return KeyRequest("base64", _unbase64(body.decode("ascii", "replace").strip()))
    return KeyRequest("raw", body)


def _from_json(body: bytes, spc_field: str) -> KeyRequest:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("the key request is not JSON") from error
    if not isinstance(value, dict) or not isinstance(value.get(spc_field), str):
        raise ValueError(f"the key request has no {spc_field}")
    others = {name: item for name, item in value.items() if name != spc_field and isinstance(item, str)}
    return KeyRequest("json", _unbase64(value[spc_field]), others)


def _from_form(body: bytes, spc_field: str) -> KeyRequest:
    try:
        text = body.decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError("the key request is not a form") from error
    form: RequestForm = "form"
    if "=" not in text and "%3d" in text.lower():
        form, text = "form-whole", unquote(text)
    pairs = [pair.partition("=") for pair in text.split("&")]
    values = {unquote(name.replace("+", " ")): value for name, _, value in pairs}
    if spc_field not in values:
        raise ValueError(f"the form has no {spc_field}")
    spc = values.pop(spc_field)
    if form == "form" and any(mark in spc for mark in "+/=") and not _ESCAPED.search(spc):
        form = "form-plain"
    others = {name: unquote(value.replace("+", " ")) for name, value in values.items()}
    return KeyRequest(form, _unbase64(unquote(spc)), others)


def _unbase64(text: str) -> bytes:
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (ValueError, binascii.Error) as error:
        raise ValueError("the SPC is not base64") from error
    if not data:
        raise ValueError("the SPC is empty")
    return data


def ckc_reply(ckc: bytes, settings: Fps) -> Reply:
    """Makes the reply with a CKC, in the encoding that the settings name."""
    if settings.reply == "raw":
        return bytes_reply(ckc)
    text = encode_base64(ckc, settings.base64)
    if settings.reply == "json":
        value: Any = text
        for name in reversed(settings.reply_path.split(".")):
            value = {name: value}
        return json_reply(value)
    if settings.reply == "xml":
        text = f"\n<ckc>{text}</ckc>\n"
    return text_reply(text)
