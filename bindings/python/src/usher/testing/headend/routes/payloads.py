"""Reads the payload of a licence request, and makes the reply with the licence, for each key system.

The head-end reads the payload before it changes a session. The members of the reply that describe the session differ
between SSP V1 and V2, so the caller passes them (``Members``).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any
from xml.sax.saxutils import escape

from ...fairplay import is_spc, make_ckc
from ..codes import Problem, Refusal
from ..config import KeySystem
from ..fixtures import ckc, encode_base64, playready_license, widevine_license
from ..network.replies import Reply, bytes_reply, json_reply
from ..oracle.journal import Entry
from ..service import Grant, Service
from ..state.tokens import b64url, unb64url
from .ssm import json_challenge

_XML_TYPE = "text/xml; charset=utf-8"

Members = Mapping[str, Any]
"""The members that describe the session. They are in the JSON of the reply, or for PlayReady in ``CustomData``."""

Build = Callable[[Members], Reply]
"""A function that makes the reply to a licence request."""

Prepare = Callable[[Service, Entry, Grant], Build]
"""A function that reads the payload, and returns the function that makes the reply. It raises an exception if the
payload is bad."""


def fairplay(service: Service, entry: Entry, grant: Grant) -> Build:
    """Reads a FairPlay payload, which is an SPC. Returns the function that makes the reply: ``{"CkcMessage": base64}``
    or a raw CKC (source: FairPlay licence service)."""
    if not entry.body:
        raise Refusal(Problem.BAD_CHALLENGE, "SPC is empty")
    message = _key_message(service, grant, entry.body) if is_spc(entry.body) else ckc(entry.body)

    def build(members: Members) -> Reply:
        if service.config.fairplay_reply == "raw":
            return bytes_reply(message)
        return json_reply({"CkcMessage": encode_base64(message, service.config.fairplay_base64), **members})

    return build


def _key_message(service: Service, grant: Grant, spc: bytes) -> bytes:
    """Returns the CKC with the content key for an SPC that ``usher.testing.fairplay`` made (it contains ``USPC``)."""
    _, kid, key = service.read_spc(spc, grant.keys)
    service.check_kids(grant, [kid])
    return make_ckc(spc, kid, key)


def widevine(service: Service, entry: Entry, grant: Grant) -> Build:
    """Reads a Widevine payload, which is a challenge, in JSON or as raw bytes. Returns the function that makes the
    reply, which has the same encoding (source: Widevine licence service)."""
    if grant.renewal:
        raise Refusal(Problem.BAD_BODY, "Widevine renews at the session service")
    as_json = is_json(entry)
    challenge = json_challenge(entry.body) if as_json else entry.body
    if not challenge:
        raise Refusal(Problem.BAD_CHALLENGE, "challenge is empty")
    made = widevine_license(challenge)

    def build(members: Members) -> Reply:
        if not as_json:
            return bytes_reply(made)
        text = base64.b64encode(made).decode("ascii")
        return json_reply({"status": "OK", "errorCode": 0, "license": [text], **members})

    return build


def playready(service: Service, entry: Entry, grant: Grant) -> Build:
    """Reads a PlayReady payload, which is SOAP. Returns the function that makes the reply: SOAP, in which
    ``CustomData`` describes the session (source: PlayReady licence service)."""
    if b"<" not in entry.body:
        raise Refusal(Problem.BAD_CHALLENGE, "challenge is not SOAP")
    text = base64.b64encode(playready_license(entry.body)).decode("ascii")

    def build(members: Members) -> Reply:
        data = f"<CustomData>{escape(json.dumps(members))}</CustomData>" if members else ""
        xml = (
            '<?xml version="1.0" encoding="utf-8"?>'
            '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>'
            '<AcquireLicenseResponse xmlns="http://schemas.microsoft.com/DRM/2007/03/protocols">'
            f"<AcquireLicenseResult><Response><LicenseResponse><Licenses><License>{text}</License></Licenses>"
            f"{data}</LicenseResponse></Response></AcquireLicenseResult></AcquireLicenseResponse>"
            "</soap:Body></soap:Envelope>"
        )
        return Reply(body=xml.encode("utf-8"), content_type=_XML_TYPE)

    return build


def clearkey(service: Service, entry: Entry, grant: Grant) -> Build:
    """Reads a Clear Key payload, which is a W3C licence request. Returns the function that makes the reply, which has
    keys of the key store (source: Clear Key licence service)."""
    kids = _requested_kids(entry.body)
    service.check_kids(grant, kids)
    keys: list[dict[str, str]] = []
    for kid in kids:
        key = grant.keys.get(kid, service.keys.get(kid))
        if key is None:
            raise Refusal(Problem.NO_KEY, f"no key for key id {kid.hex()}")
        keys.append({"kty": "oct", "kid": b64url(kid), "k": b64url(key)})
    kind = json.loads(entry.body).get("type", "temporary")

    def build(members: Members) -> Reply:
        return json_reply({"keys": keys, "type": kind, **members})

    return build


def _requested_kids(body: bytes) -> list[bytes]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(Problem.BAD_CHALLENGE, "body is not JSON") from error
    kids = value.get("kids") if isinstance(value, dict) else None
    if not isinstance(kids, list) or not kids:
        raise Refusal(Problem.BAD_CHALLENGE, "body names no kids")
    found: list[bytes] = []
    for text in kids:
        try:
            kid = unb64url(text) if isinstance(text, str) else b""
        except ValueError as error:
            raise Refusal(Problem.BAD_KEY_ID, f"kid {text!r} is not base64url") from error
        if len(kid) != 16 or "=" in text:
            raise Refusal(Problem.BAD_KEY_ID, f"kid {text!r} is not 16 bytes in base64url without padding")
        found.append(kid)
    return found


def is_json(entry: Entry) -> bool:
    return (entry.header("content-type") or "").lower().startswith("application/json")


PREPARE: Mapping[KeySystem, Prepare] = {
    "fairplay": fairplay,
    "widevine": widevine,
    "playready": playready,
    "clearkey": clearkey,
}
"""For each key system, the function that reads a payload of this key system."""
