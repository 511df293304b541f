"""Sends licence requests of each key system, and reads the session's fields in the replies."""

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
    """Returns the session's fields in a reply of PlayReady."""
    found = ET.fromstring(reply.body).find(f".//{KIND}CustomData")
    return {} if found is None else dict(json.loads(found.text or ""))


def members(key_system: KeySystem, reply: Answer) -> dict[str, Any]:
    """Returns the session's fields in a reply: in PlayReady's ``CustomData``, otherwise in the JSON."""
    return custom_data(reply) if key_system == "playready" else dict(reply.json)


def ask(
    client: Client, key_system: KeySystem, token: str | None, *, renew: bool = False, api: Api = "v1", **options: Any
) -> Answer:
    """Sends a licence request with a payload that fits the key system. Returns the reply."""
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
