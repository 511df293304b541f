"""The requests to FairPlay key servers, ExpressPlay and entitlement servers.

The source is docs/protocol.md, A FairPlay key server.
"""

from __future__ import annotations

import json
import re
from typing import Literal
from urllib.parse import urlsplit

from ..exits import CommandError
from ..target import Target, check_url
from ..wire.exchange import Exchange, Headers

KeyCall = Literal["ckc", "entitlement", "rights"]
KEY_CALLS: tuple[KeyCall, ...] = ("ckc", "entitlement", "rights")
NO_SPC = b"This text is no SPC: usher check sends it to see a refusal."
MESSAGE_ID = "usher-check-message"
"""The ``messageID`` of an entitlement request."""


def place(call: KeyCall, target: Target, payload: bytes, rights_url: str, unknown: str) -> tuple[str, bytes]:
    """Returns the URL and the body of a request.

    Args:
        payload: the SPC.
        rights_url: the URL in the newest reply of the entitlement server.
        unknown: "" for a correct request. Otherwise the request must be wrong: it has this unknown token or content id
            instead of the correct one, or (key server) a text instead of the SPC.
    """
    if call == "ckc":
        spc = NO_SPC if unknown else payload
        return target.key_server or "", target.spc_form.body(spc, target.content_id)
    if call == "rights":
        return re.sub(r"=[^&]*", f"={unknown}", rights_url) if unknown else rights_url, payload
    content_id = unknown or target.content_id
    asked = {"messageID": MESSAGE_ID, "version": 1, "requestType": 1, "contentID": content_id}
    return target.entitlement or "", json.dumps(asked).encode()


def types(call: KeyCall, target: Target) -> Headers:
    """Returns the header with the content type of a request."""
    others = {"entitlement": "application/json", "rights": "application/octet-stream"}
    return (("Content-Type", others.get(call, target.spc_form.content_type)),)


def rights_url(exchange: Exchange, target: Target) -> str:
    """Returns the token URL to which the check sends the SPC; "" if there is none, or if it is plain http to another
    machine and the options do not allow this."""
    url = given_url(exchange)
    try:
        check_url("epTokenURL", url or "", target.allow_http)
    except CommandError:
        return ""
    return url or ""


def given_url(exchange: Exchange) -> str | None:
    """Returns the token URL in the reply of an entitlement server; None if the reply has no token URL that can be
    used."""
    value = exchange.json() if exchange.succeeded else None
    url = value.get("epTokenURL") if isinstance(value, dict) else None
    try:
        usable = isinstance(url, str) and urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        return None
    return url if usable else None
