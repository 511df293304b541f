"""The session service, SSM v1: set-up, heartbeat, teardown and Widevine renewal."""

from __future__ import annotations

import base64
import binascii
import json

from ..codes import Problem, Refusal
from ..fixtures import widevine_license
from ..network.replies import Reply, json_reply
from ..oracle.journal import Entry
from ..service import Answer, Route, Service
from ..state.sessions import Session


def set_up(service: Service, entry: Entry) -> Answer:
    """Opens a session, which takes a slot. Replies with the first session token and the period in s (source: SSM v1
    setup)."""
    session = service.open_session(service.account_token(entry), "setup")
    body = {
        "sessionToken": service.session_token(session),
        service.config.heartbeat_key: service.period_field(),
    }
    return _given(service, session, json_reply(body))


def heartbeat(service: Service, entry: Entry) -> Answer:
    """Keeps a session alive, and replies with the next session token (source: SSM v1 heartbeat)."""
    session = service.sessions.keep_alive(service.lone_session(entry))
    return _given(service, session, json_reply({"sessionToken": service.session_token(session)}))


def renew_widevine(service: Service, entry: Entry) -> Answer:
    """Handles a Widevine renewal, which keeps a session alive. In the reply ``license`` is a string (source: enforced
    mode)."""
    session = service.lone_session(entry)
    challenge = json_challenge(entry.body)
    session = service.sessions.keep_alive(session)
    license_text = base64.b64encode(widevine_license(challenge)).decode("ascii")
    body = {"sessionToken": service.session_token(session), "license": license_text}
    return _given(service, session, json_reply(body))


def tear_down(service: Service, entry: Entry) -> Answer:
    """Ends the session, which frees its slot (source: SSM v1 teardown)."""
    session = service.sessions.tear_down(service.lone_session(entry))
    replies = {
        "json": json_reply({}),
        "no-content": Reply(status=204),
        "text": Reply(body=b"session torn down", content_type="text/plain; charset=utf-8"),
    }
    return Answer(replies[service.config.teardown_reply], account=session.account, session=session.id)


def json_challenge(body: bytes) -> bytes:
    """Returns the challenge in ``{"challenge": "<base64>"}``.

    Raises:
        Refusal: the body has another form.
    """
    try:
        value = json.loads(body)
        challenge = base64.b64decode(value["challenge"], validate=True)
    except (ValueError, TypeError, KeyError, binascii.Error, RecursionError) as error:
        raise Refusal(Problem.BAD_CHALLENGE, 'body is not {"challenge": "<base64>"}') from error
    if not challenge:
        raise Refusal(Problem.BAD_CHALLENGE, "challenge is empty")
    return challenge


def _given(service: Service, session: Session, reply: Reply) -> Answer:
    return Answer(
        reply,
        account=session.account,
        session=session.id,
        issued=session.seq,
        token=service.session_token(session),
    )


ROUTES = (
    Route("POST", "/ssm/v1/sessions/setup", "setup", set_up),
    Route("POST", "/ssm/v1/sessions/heartbeat", "heartbeat", heartbeat),
    Route("POST", "/ssm/v1/sessions/teardown", "teardown", tear_down),
    Route("POST", "/ssm/v1/renewal-license-wv", "renewal-wv", renew_widevine, key_system="widevine"),
    Route("POST", "/ssm/v1/sessions/renewal-license-wv", "renewal-wv", renew_widevine, key_system="widevine"),
)
