"""Licence requests of each key system, and what their replies say."""

from __future__ import annotations

import base64
import json
import xml.etree.ElementTree as ET
from typing import Any, get_args

from headend_client import Answer, Client

from usher.testing.headend import Api, KeySystem

SPC = bytes(range(256))
SOAP = b"<soap/>"
KID, KEY = b"i" * 16, b"k" * 16
KIND = "{http://schemas.microsoft.com/DRM/2007/03/protocols}"
ALL_KINDS: tuple[KeySystem, ...] = get_args(KeySystem)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def custom_data(reply: Answer) -> dict[str, Any]:
    """What PlayReady's reply says of the session."""
    found = ET.fromstring(reply.body).find(f".//{KIND}CustomData")
    return {} if found is None else dict(json.loads(found.text or ""))


def members(key_system: KeySystem, reply: Answer) -> dict[str, Any]:
    """What a reply says of the session, wherever the key system puts it."""
    return custom_data(reply) if key_system == "playready" else dict(reply.json)


def ask(
    client: Client, key_system: KeySystem, token: str | None, *, renew: bool = False, api: Api = "v1", **options: Any
) -> Answer:
    """A licence request with a fitting payload."""
    if key_system == "widevine":
        return client.license("widevine", token, {"challenge": b64(SPC)}, renew=renew, api=api, **options)
    if key_system == "clearkey":
        client.he.add_key(KID, KEY)
        return client.license(
            "clearkey", token, {"kids": [b64url(KID)], "type": "temporary"}, renew=renew, api=api, **options
        )
    return client.license(
        key_system, token, SOAP if key_system == "playready" else SPC, renew=renew, api=api, **options
    )
