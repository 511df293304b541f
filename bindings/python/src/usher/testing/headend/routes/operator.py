"""Operator calls, which kill the sessions of an account or a device (source: operator calls)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..codes import Problem, Refusal
from ..network.replies import json_reply
from ..oracle.journal import Entry
from ..service import Answer, Route, Service


def kill_account(service: Service, entry: Entry) -> Answer:
    """Kills the sessions of the account in ``{"account": id}`` or ``{"accountId": id}``. The reply is the number of
    killed sessions, as JSON."""
    service.operator(entry)
    account = _named(entry.body, ("account", "accountId"))
    return Answer(json_reply(service.sessions.kill(account=account)), account=account)


def kill_device(service: Service, entry: Entry) -> Answer:
    """Kills the sessions of the device in ``{"device": id}`` or ``{"deviceId": id}``. The reply is the number of killed
    sessions, as JSON."""
    service.operator(entry)
    device = _named(entry.body, ("device", "deviceId"))
    return Answer(json_reply(service.sessions.kill(device=device)))


def _named(body: bytes, keys: Sequence[str]) -> str:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(Problem.BAD_BODY, "body is not JSON") from error
    for key in keys:
        if isinstance(value, dict) and isinstance(value.get(key), str) and value[key]:
            return str(value[key])
    raise Refusal(Problem.BAD_BODY, f"body names no {' or '.join(keys)}")


ROUTES = (
    Route("PUT", "/ssm/v1/sessions/killAccountSessions", "kill-account", kill_account),
    Route("PUT", "/ssm/v1/sessions/killDeviceSessions", "kill-device", kill_device),
)
