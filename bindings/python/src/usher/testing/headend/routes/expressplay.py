"""The ExpressPlay licence service: a request has a rights token in its URL, and an SPC as its body; the reply is a CKC.

(source: ExpressPlay licence request)
"""

from __future__ import annotations

from ...fairplay import Spc, make_ckc
from ..codes import Problem, Refusal
from ..network.replies import bytes_reply
from ..oracle.journal import Entry
from ..service import Answer, Route, Service
from ..state.rights import (
    CKC_FAILED,
    CONTENT_KEY,
    DEVICE_AUTHENTICATION,
    DEVICE_BINDING,
    KEY_ID,
    Right,
    RightsRefusal,
    error_reply,
)

TOKEN_NAME = "ExpressPlayToken"
"""The name of the query item that has the token. The server also accepts a header of this name."""


def license_request(service: Service, entry: Entry) -> Answer:
    """Replies with the licence that a rights token grants, or with an error that has a number."""
    token = entry.query_value(TOKEN_NAME) or entry.header(TOKEN_NAME)
    try:
        right = service.rights.check(token)
        said, kid, key = _asked(service, entry.body, right)
    except RightsRefusal as refusal:
        reply = error_reply(refusal.number, str(refusal), service.config.expressplay.errors)
        return Answer(reply, error_code=refusal.number, error_message=str(refusal))
    service.rights.redeem(token or "", said.device)
    return Answer(bytes_reply(make_ckc(entry.body, kid, key)))


def _asked(service: Service, body: bytes, right: Right) -> tuple[Spc, bytes, bytes]:
    try:
        said, kid, key = service.read_spc(body)
    except Refusal as refusal:
        number = CONTENT_KEY if refusal.problem is Problem.NO_KEY else CKC_FAILED
        raise RightsRefusal(number, f"{refusal}") from refusal
    if kid != right.kid if right.kid is not None else kid not in service.keys.kids(right.content_id):
        raise RightsRefusal(KEY_ID)
    if right.cookie is not None and said.device is None:
        raise RightsRefusal(DEVICE_BINDING, "the SPC names no device")
    if right.device is not None and right.device != said.device:
        raise RightsRefusal(DEVICE_AUTHENTICATION)
    return said, kid, key


ROUTES = (Route("POST", "/hms/fp/rights/", "rights", license_request, family="license", key_system="fairplay"),)
