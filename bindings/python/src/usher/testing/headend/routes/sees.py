"""The entitlement server, SEES: it decides whether a customer may play a content, and returns the token URL for it."""

from __future__ import annotations

import json
import uuid
from typing import Any

from ..codes import Problem, Refusal
from ..network.replies import json_reply
from ..oracle.journal import Entry
from ..service import Answer, Route, Service
from ..state.rights import CONTENT_KEY, COOKIE, DEVICE_AUTHENTICATION, DEVICE_BINDING, Right, RightsRefusal
from .expressplay import TOKEN_NAME

_TIME_BASED, _DEVICE_REGISTRATION, _DEVICE_BOUND = 1, 2, 3
_COOKIE_MAX = 32


def entitlement(service: Service, entry: Entry) -> Answer:
    """Replies to an entitlement request. If the server denies the entitlement, the reply still has the status 200,
    unless the settings name another status for denials (source: SEES entitlement server)."""
    settings = service.config.sees
    authorization = entry.header("authorization")
    if settings.authorization is not None and authorization != settings.authorization:
        raise Refusal(Problem.UNAUTHORIZED if authorization is None else Problem.FORBIDDEN)
    asked = _request(entry.body)
    message_id = asked["messageID"] if settings.message_id == "same" else str(uuid.uuid4())
    said: dict[str, Any] = {"messageID": message_id, "version": 1}
    if settings.message_id == "missing":
        del said["messageID"]
    try:
        right = _right(service, asked)
    except RightsRefusal as refusal:
        said |= {"isAllowed": False, "epTokenURL": "", "error": refusal.number, "errorText": str(refusal)}
        return Answer(json_reply(said, settings.denied_status), error_code=refusal.number, error_message=str(refusal))
    base = settings.rights_url or f"{service.tenant_url}/hms/fp/rights/"
    said |= {"isAllowed": True, "epTokenURL": f"{base}?{TOKEN_NAME}={service.rights.issue(right)}"}
    return Answer(json_reply(said))


def _request(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(Problem.BAD_BODY, "the entitlement request is not JSON") from error
    kinds: dict[str, type] = {
        "messageID": str,
        "version": int,
        "requestType": int,
        "contentID": str,
        "customerCookie": str,
    }
    if not isinstance(value, dict):
        raise Refusal(Problem.BAD_BODY, "the entitlement request is no object")
    for name, kind in kinds.items():
        if name not in value and name in ("requestType", "customerCookie"):
            continue
        if type(value.get(name)) is not kind or value[name] == "":
            raise Refusal(Problem.BAD_BODY, f"{name} is missing or of the wrong type")
    if value["version"] != 1:
        raise Refusal(Problem.BAD_BODY, f"version {value['version']} is not supported")
    if value.get("requestType", _TIME_BASED) not in (_TIME_BASED, _DEVICE_REGISTRATION, _DEVICE_BOUND):
        raise Refusal(Problem.BAD_BODY, f"unknown requestType {value['requestType']}")
    return dict(value)


def _right(service: Service, asked: dict[str, Any]) -> Right:
    kind, cookie, content_id = asked.get("requestType", _TIME_BASED), asked.get("customerCookie"), asked["contentID"]
    if cookie is not None and len(cookie) > _COOKIE_MAX:
        raise RightsRefusal(COOKIE, f"a cookie has at most {_COOKIE_MAX} characters")
    service.rights.check_entitled(content_id)
    if not service.keys.kids(content_id):
        raise RightsRefusal(CONTENT_KEY, "unknown content")
    if kind == _TIME_BASED:
        if service.config.sees.bound_only:
            raise RightsRefusal(DEVICE_BINDING, "the licence must be bound to a device")
        return service.right(content_id)
    if cookie is None:
        raise RightsRefusal(COOKIE, "device binding needs a cookie")
    if kind == _DEVICE_REGISTRATION:
        return service.right(content_id, cookie=cookie)
    device = service.rights.device(cookie)
    if device is None:
        raise RightsRefusal(DEVICE_AUTHENTICATION, "no device is registered under this cookie")
    return service.right(content_id, device=device)


ROUTES = (Route("POST", "/sees/entitlement", "entitlement", entitlement, family="license", key_system="fairplay"),)
