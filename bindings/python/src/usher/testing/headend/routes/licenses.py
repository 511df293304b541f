"""Licences of SSP V1 and V2: FairPlay, Widevine, PlayReady and Clear Key.

A handler reads a licence request, checks its tokens, and only then changes the session. So if the head-end refuses a
request, the request never opens a session, and the session token does not change.
"""

from __future__ import annotations

import base64
from typing import Any

from ..codes import Problem, Refusal
from ..config import KEY_SYSTEMS, SERVICE_OF, Api, KeySystem
from ..fixtures import WIDEVINE_CERTIFICATE_REQUEST
from ..network.replies import Reply, bytes_reply, json_reply
from ..oracle.journal import Entry
from ..service import Answer, Grant, Handler, Route, Service
from ..state.sessions import Session
from .payloads import PREPARE, is_json
from .ssm import json_challenge


def _v1(key_system: KeySystem) -> Handler:
    """Returns the handler of licence requests of SSP V1. The request has the session token; in enforced mode the reply
    has a new session token.

    (source: SSP licence service)
    """

    def handle(service: Service, entry: Entry) -> Answer:
        grant = service.license_grant(entry)
        build = PREPARE[key_system](service, entry, grant)
        service.play(grant)
        enforced = grant.session is not None and key_system in service.config.enforced
        flag = {"sessionDrmEnforced": enforced} if key_system == "widevine" else {}
        if grant.session is None:
            return Answer(build(flag))
        issues = grant.renewal or (enforced and key_system != "widevine")
        session = _counted(service, grant, grant.session, rotate=issues)
        if not issues:
            return Answer(build(flag), account=session.account, session=session.id)
        token = service.session_token(session)
        return _given(session, token, build({"sessionToken": token}))

    return handle


def _v2(key_system: KeySystem) -> Handler:
    """Returns the handler of licence requests of SSP V2. A request without a session token opens a session, and the
    reply describes this session.

    (source: SSM v2, inferred wire form)
    """

    def handle(service: Service, entry: Entry) -> Answer:
        grant = service.license_grant(entry, opens=True)
        says = service.config.v2
        if says.tenant == "required" and not entry.tenant_id:
            raise Refusal(Problem.HEADER_MISSING, "nv-tenant-id is missing")
        build = PREPARE[key_system](service, entry, grant)
        if grant.needs_session and grant.content is not None:
            session = service.open_session(grant.content, "license")
            session = service.sessions.license(session, grant.content.content_ids, rotate=False)
        elif grant.session is not None:
            session = _counted(service, grant, grant.session, rotate=True)
        else:
            service.play(grant)
            return Answer(build({}))
        service.play(grant)
        token = service.session_token(session)
        members: dict[str, Any] = {}
        _put(members, says.token_field, token)
        if not grant.renewal:
            _put(members, says.period_field, service.period_field())
            _put(members, says.enforced_field, key_system in service.config.enforced)
        reply = build(members)
        return _given(session, token, reply.with_header(says.token_header, token) if says.token_header else reply)

    return handle


def _counted(service: Service, grant: Grant, session: Session, *, rotate: bool) -> Session:
    if grant.renewal:
        return service.sessions.keep_alive(session)
    content_ids = grant.content.content_ids if grant.content is not None else ()
    return service.sessions.license(session, content_ids, rotate=rotate)


def _given(session: Session, token: str, reply: Reply) -> Answer:
    return Answer(reply, account=session.account, session=session.id, issued=session.seq, token=token)


def _put(members: dict[str, Any], path: str | None, value: object) -> None:
    """Sets a member of a JSON object; the path has the names that lead to it. Does nothing if the path is None."""
    if path is None:
        return
    *way, last = path.split(".")
    for name in way:
        members = members.setdefault(name, {})
    members[last] = value


def _with_service_certificate(handle: Handler) -> Handler:
    def handle_widevine(service: Service, entry: Entry) -> Answer:
        as_json = is_json(entry)
        challenge = json_challenge(entry.body) if as_json and entry.body else entry.body
        if challenge != WIDEVINE_CERTIFICATE_REQUEST:
            return handle(service, entry)
        service.license_content(entry)
        if not as_json:
            return Answer(bytes_reply(service.widevine_certificate))
        text = base64.b64encode(service.widevine_certificate).decode("ascii")
        return Answer(json_reply({"status": "OK", "errorCode": 0, "license": [text]}))

    return handle_widevine


def _route(key_system: KeySystem, api: Api) -> Route:
    handler = (_v1 if api == "v1" else _v2)(key_system)
    return Route(
        "POST",
        f"/{SERVICE_OF[key_system]}/contentlicenseservice/{api}/licenses",
        "license",
        _with_service_certificate(handler) if key_system == "widevine" else handler,
        family="license",
        key_system=key_system,
        renewal_name="license-renewal",
    )


_APIS: tuple[Api, ...] = ("v1", "v2")
ROUTES = tuple(_route(key_system, api) for api in _APIS for key_system in KEY_SYSTEMS)
