"""The generic FairPlay key server: a request has an SPC, and the reply has a CKC with the real content key."""

from __future__ import annotations

from ...fairplay import make_ckc
from ..codes import Problem, Refusal
from ..oracle.journal import Entry
from ..service import Answer, Route, Service
from .fps_wire import KeyRequest, ckc_reply, read_key_request


def ckc(service: Service, entry: Entry) -> Answer:
    """Replies to a key request in any encoding that the settings accept (source: SPC/CKC encodings)."""
    settings = service.config.fps
    authorization = entry.header("authorization")
    if settings.authorization is not None and authorization != settings.authorization:
        raise Refusal(Problem.UNAUTHORIZED if authorization is None else Problem.FORBIDDEN)
    try:
        request = read_key_request(entry.header("content-type"), entry.body, settings.spc_field)
    except ValueError as error:
        raise Refusal(Problem.BAD_CHALLENGE, str(error)) from error
    if request.form not in settings.requests:
        raise Refusal(Problem.BAD_BODY, f"key requests of form {request.form} are not accepted")
    _, kid, key = service.read_spc(request.spc)
    if settings.asset_field is not None:
        _check_asset(service, request, settings.asset_field, kid)
    return Answer(ckc_reply(make_ckc(request.spc, kid, key), settings))


def _check_asset(service: Service, request: KeyRequest, name: str, kid: bytes) -> None:
    asset = request.fields.get(name)
    if not asset:
        raise Refusal(Problem.BAD_BODY, f"the key request has no {name}")
    if service.keys.named(asset.encode(), {})[1] != kid:
        raise Refusal(Problem.NOT_GRANTED, f"{name} names a different content than the SPC")


ROUTES = (Route("POST", "/fps/ckc", "ckc", ckc, family="license", key_system="fairplay"),)
