"""Licences of SSP v1: FairPlay, Widevine, PlayReady and Clear Key.

A licence request is read first, then authorised, and only then takes effect, so that a refusal
never rotates a session token.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape

from ..codes import Problem, Refusal
from ..config import SERVICE_OF, KeySystem
from ..fixtures import (
    WIDEVINE_CERTIFICATE_REQUEST,
    ckc,
    encode_base64,
    playready_license,
    widevine_license,
)
from ..journal import Entry
from ..replies import Reply, bytes_reply, json_reply
from ..service import Answer, Grant, Handler, Route, Service
from ..tokens import b64url, unb64url
from .ssm import json_challenge

_XML_TYPE = "text/xml; charset=utf-8"

Build = Callable[[str | None, bool], Reply]
"""Makes the reply from (session token to send or None, whether the session is enforced)."""

Prepare = Callable[[Service, Entry, Grant], Build]
"""Reads the payload, refusing a bad one, and says how the reply is made."""


def _license(key_system: KeySystem, prepare: Prepare, *, token_in_reply: bool) -> Handler:
    def handle(service: Service, entry: Entry) -> Answer:
        grant = service.license_grant(entry)
        build = prepare(service, entry, grant)
        session = grant.session
        service.play(grant)
        if session is None:
            return Answer(build(None, False))
        enforced = key_system in service.config.enforced
        issues = grant.renewal or (enforced and token_in_reply)
        if grant.renewal:
            session = service.sessions.keep_alive(session)
        else:
            content_ids = grant.content.content_ids if grant.content is not None else ()
            session = service.sessions.license(session, content_ids, rotate=issues)
        token = service.session_token(session) if issues else None
        return Answer(
            build(token, enforced),
            account=session.account,
            session=session.id,
            issued=session.seq if issues else None,
            token=token,
        )

    return handle


def _fairplay(service: Service, entry: Entry, grant: Grant) -> Build:
    """Raw SPC in, ``{"CkcMessage": base64}`` or the raw CKC out (source: FairPlay licence service)."""
    if not entry.body:
        raise Refusal(Problem.BAD_CHALLENGE, "SPC is empty")
    message = ckc(entry.body)

    def build(token: str | None, enforced: bool) -> Reply:
        if service.config.fairplay_reply == "raw":
            return bytes_reply(message)
        body = {"CkcMessage": encode_base64(message, service.config.fairplay_base64)}
        return json_reply(body if token is None else {**body, "sessionToken": token})

    return build


def _widevine(service: Service, entry: Entry, grant: Grant) -> Build:
    """JSON or raw challenge in, the same encoding out (source: Widevine licence service)."""
    if grant.renewal:
        raise Refusal(Problem.BAD_BODY, "Widevine renews at the session service")
    as_json = _is_json(entry)
    challenge = json_challenge(entry.body) if as_json else entry.body
    if not challenge:
        raise Refusal(Problem.BAD_CHALLENGE, "challenge is empty")
    made = widevine_license(challenge)

    def build(token: str | None, enforced: bool) -> Reply:
        if not as_json:
            return bytes_reply(made)
        text = base64.b64encode(made).decode("ascii")
        return json_reply({"status": "OK", "errorCode": 0, "license": [text], "sessionDrmEnforced": enforced})

    return build


def _playready(service: Service, entry: Entry, grant: Grant) -> Build:
    """SOAP in, SOAP out; ``CustomData`` carries the token when enforced (source: PlayReady licence service)."""
    if b"<" not in entry.body:
        raise Refusal(Problem.BAD_CHALLENGE, "challenge is not SOAP")
    text = base64.b64encode(playready_license(entry.body)).decode("ascii")

    def build(token: str | None, enforced: bool) -> Reply:
        data = "" if token is None else f"<CustomData>{escape(json.dumps({'sessionToken': token}))}</CustomData>"
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


def _clearkey(service: Service, entry: Entry, grant: Grant) -> Build:
    """W3C licence request in, the real keys of the key store out (source: Clear Key licence service)."""
    kids = _requested_kids(entry.body)
    service.check_kids(grant, kids)
    keys: list[dict[str, str]] = []
    for kid in kids:
        key = service.keys.get(kid)
        if key is None:
            raise Refusal(Problem.NO_KEY, f"no key for key id {kid.hex()}")
        keys.append({"kty": "oct", "kid": b64url(kid), "k": b64url(key)})
    kind = json.loads(entry.body).get("type", "temporary")

    def build(token: str | None, enforced: bool) -> Reply:
        body: dict[str, Any] = {"keys": keys, "type": kind}
        return json_reply(body if token is None else {**body, "sessionToken": token})

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


def _is_json(entry: Entry) -> bool:
    return (entry.header("content-type") or "").lower().startswith("application/json")


def _with_service_certificate(handle: Handler) -> Handler:
    def handle_widevine(service: Service, entry: Entry) -> Answer:
        as_json = _is_json(entry)
        challenge = json_challenge(entry.body) if as_json and entry.body else entry.body
        if challenge != WIDEVINE_CERTIFICATE_REQUEST:
            return handle(service, entry)
        service.license_content(entry)
        if not as_json:
            return Answer(bytes_reply(service.widevine_certificate))
        text = base64.b64encode(service.widevine_certificate).decode("ascii")
        return Answer(json_reply({"status": "OK", "errorCode": 0, "license": [text]}))

    return handle_widevine


def _routes() -> tuple[Route, ...]:
    handlers: dict[KeySystem, Handler] = {
        "fairplay": _license("fairplay", _fairplay, token_in_reply=True),
        "widevine": _with_service_certificate(_license("widevine", _widevine, token_in_reply=False)),
        "playready": _license("playready", _playready, token_in_reply=True),
        "clearkey": _license("clearkey", _clearkey, token_in_reply=True),
    }
    return tuple(
        Route(
            "POST",
            f"/{SERVICE_OF[key_system]}/contentlicenseservice/v1/licenses",
            "license",
            handler,
            family="license",
            key_system=key_system,
            renewal_name="license-renewal",
        )
        for key_system, handler in handlers.items()
    )


ROUTES = _routes()
