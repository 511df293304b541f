"""The head-end's page, and the control endpoints under ``/_control/``, with which tests in any language control the
head-end.

All bodies are JSON objects. The reply to a wrong request has status 400 and ``{"error": text}``. A request from a web
page of another origin gets status 403, and a request without the control token gets 401 (``guard``).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import difflib
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiohttp import web

from ..network import guard
from ..state.sessions import Session, SessionState
from . import page
from .hiding import hide, hide_body, hide_path
from .journal import Entry

if TYPE_CHECKING:
    from ..server import HeadEnd

_Answerer = Callable[["HeadEnd", Mapping[str, str], dict[str, Any]], Awaitable[dict[str, Any]]]
PREFIX = "/_control/"

_PAGE_PATHS = ("/", PREFIX + "page")
_ICON_PATH = "/favicon.ico"
_EVENTS_PATH = PREFIX + "events"
_SEND_BUFFER_BYTES = 256 * 1024


def concerns(request: web.Request, auth_headers: Iterable[str]) -> bool:
    """Whether a request is for the control endpoints or the page. A request with tokens is
    for neither, since it comes from a player."""
    if request.raw_path.startswith(PREFIX):
        return True
    reads = request.method in ("GET", "HEAD") and request.path in (*_PAGE_PATHS, _ICON_PATH)
    return reads and not any(name in request.headers for name in auth_headers)


def entry_json(entry: Entry, *, tokens: bool = False) -> dict[str, Any]:
    """Returns an entry as a JSON object: the members of ``Entry``, the body as base64, and each token as its short name
    and claims.

    Args:
        entry: the entry.
        tokens: whether to keep the whole tokens; otherwise short names replace them, also in the body.
    """

    def shown(text: str) -> str:
        return text if tokens else hide(text, entry)

    return {
        "number": entry.number,
        "at_ms": entry.at_ms,
        "route": entry.route,
        "key_system": entry.key_system,
        "method": entry.method,
        "path": entry.path if tokens else hide_path(entry.path, entry),
        "query": [[name, shown(value)] for name, value in entry.query],
        "headers": [[name, shown(value)] for name, value in entry.headers],
        "body_base64": base64.b64encode(entry.body if tokens else hide_body(entry.body, entry)).decode("ascii"),
        "authorization": [
            {"kind": p.kind, "short": p.short, "jti": p.jti, "seq": p.seq, "signed": p.signed, "spaced": p.spaced}
            for p in entry.parts
        ],
        "account": entry.account,
        "session": entry.session,
        "status": entry.status,
        "error_code": entry.error_code,
        "error_message": None if entry.error_message is None else shown(entry.error_message),
        "fault": None if entry.fault is None else shown(entry.fault),
        "outcome": entry.outcome.value,
        "answered_ms": entry.answered_ms,
        "issued": entry.issued,
        "delivered": entry.delivered,
    }


def session_json(session: Session) -> dict[str, Any]:
    """Returns a session as a JSON object; the members have the names of the attributes."""
    return {**asdict(session), "state": session.state.value}


async def _journal(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    filters: dict[str, Any] = {
        name: query[name] for name in ("route", "account", "session", "key_system") if name in query
    }
    after = int(query.get("after", 0))
    if "answered" in query:
        filters["answered"] = query["answered"] == "true"
    least, timeout_ms = int(query.get("min", 0)), int(query.get("timeout_ms", 0))

    def collect() -> list[Entry]:
        return he.journal.entries(**filters, after=after)

    def wait() -> bool:
        he.journal.wait_for(lambda _: len(collect()) >= least, timeout_ms / 1000)
        return True

    reached = len(collect()) >= least
    if not reached and timeout_ms > 0:
        try:
            reached = await asyncio.get_running_loop().run_in_executor(None, wait)
        except TimeoutError:
            reached = False
    entries = collect()
    return {
        "reached": reached,
        "routes": [entry.route for entry in entries],
        "entries": [entry_json(entry, tokens=he.config.journal_tokens) for entry in entries],
        "text": he.journal.dump(entries),
    }


async def _sessions(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    found = he.sessions.all(query.get("account"))
    states = [state.value for state in SessionState]
    if query.get("state", states[0]) not in states:
        raise ValueError(f"there is no state {query['state']!r}; there are {', '.join(states)}")
    if "state" in query:
        found = [session for session in found if session.state.value == query["state"]]
    return {
        "active": sum(1 for session in found if session.active),
        "sessions": [session_json(session) for session in found],
    }


async def _state(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    return {
        "now_ms": he.now_ms,
        "clock": "manual" if he.manual else "system",
        "held": he.held,
        "active": len(he.sessions.active()),
        "requests": he.journal.counts(),
        "faults_pending": he.faults.pending,
        "period_s": he.config.period_s,
        "grace": he.config.grace,
        "limit": he.config.limit,
        "token_rotation": he.config.token_rotation,
    }


async def _violations(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    ignore = [kind for kind in query.get("ignore", "").split(",") if kind]
    return {"violations": [asdict(violation) for violation in he.violations(ignore=ignore)]}


async def _advance(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    return {"now_ms": he.advance(int(_take(body, "ms")))}


async def _faults(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    if body.pop("clear", False):
        he.faults.clear(body.pop("route", None))
    elif "script" in body:
        he.faults.load(body.pop("script"))
    else:
        line = dict(body)
        body.clear()
        he.faults.load([line])
    return {"pending": he.faults.pending}


async def _release(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    return {"released": he.release(body.pop("route", None), body.pop("count", None))}


async def _token(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    kind = str(body.pop("kind", "content"))
    makers: dict[str, Callable[..., str]] = {
        "content": he.content_token,
        "content-with-key": he.content_token_with_key,
        "device": he.device_token,
        "operator": he.operator_token,
        "rights": he.rights_token,
    }
    if kind not in makers:
        raise ValueError(f"unknown token kind {kind!r}; kinds are {', '.join(makers)}")
    arguments = {**body}
    body.clear()
    if "kids" in arguments:
        arguments["kids"] = [bytes.fromhex(kid) for kid in arguments["kids"]]
    if "keys" in arguments:
        arguments["keys"] = {bytes.fromhex(kid): bytes.fromhex(key) for kid, key in arguments["keys"].items()}
    if kind == "rights" and "kid" in arguments:
        arguments["kid"] = bytes.fromhex(arguments["kid"])
    if kind == "rights" and "device" in arguments:
        arguments["device"] = str(arguments["device"]).encode()
    return {"token": makers[kind](**arguments)}


async def _revoke(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    he.revoke_tokens(body.pop("account", None))
    return {}


async def _device(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    device = str(_take(body, "device"))
    if body.pop("registered", True):
        he.register_device(device, str(_take(body, "account")))
    else:
        he.unregister_device(device)
    return {}


async def _rights(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    options = {name: body.pop(name) for name in ("max_sessions", "session_control") if name in body}
    he.grant_rights(str(_take(body, "account")), *map(str, body.pop("content_ids", [])), **options)
    return {}


async def _entitlement(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    content_id = str(_take(body, "content_id"))
    if body.pop("allowed", True):
        he.allow(content_id)
    else:
        he.deny(content_id, **{name: body.pop(name) for name in ("text", "error") if name in body})
    return {}


async def _key(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    kid, key = (bytes.fromhex(str(_take(body, name))) for name in ("kid", "key"))
    he.add_key(kid, key, body.pop("content_id", None))
    return {"keys": len(he.keys)}


async def _kill(he: HeadEnd, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    if "device" in body:
        return {"killed": he.kill_device(str(body.pop("device")))}
    if "account_of" in body:
        return {"killed": he.kill_account_of(str(body.pop("account_of")))}
    return {"killed": he.kill_account(str(_take(body, "account")))}


_ENDPOINTS: dict[tuple[str, str], _Answerer] = {
    ("GET", "journal"): _journal,
    ("GET", "sessions"): _sessions,
    ("GET", "state"): _state,
    ("GET", "violations"): _violations,
    ("POST", "advance"): _advance,
    ("POST", "faults"): _faults,
    ("POST", "release"): _release,
    ("POST", "token"): _token,
    ("POST", "key"): _key,
    ("POST", "revoke"): _revoke,
    ("POST", "device"): _device,
    ("POST", "rights"): _rights,
    ("POST", "entitlement"): _entitlement,
    ("POST", "kill"): _kill,
}


_NAMES: dict[str, str] = {
    "journal": "route account session key_system after min answered timeout_ms text",
    "sessions": "account state",
    "state": "",
    "violations": "ignore",
    "advance": "ms",
    "faults": "clear script route fault times always account key_system",
    "release": "route count",
    "key": "kid key content_id",
    "revoke": "account",
    "device": "device account registered",
    "rights": "account content_ids max_sessions session_control",
    "entitlement": "content_id allowed text error",
    "kill": "account device account_of",
}
"""For each endpoint, the names that its query (GET) or its body (POST) may have. The endpoint ``token`` is missing
here, because each kind of token has its own names."""


def _check_names(endpoint: str, method: str, query: Mapping[str, str], body: Mapping[str, Any]) -> None:
    """Raises ValueError if the query or the body has an unknown name. The caller does this before anything else, so
    that a wrong request has no effect."""
    if endpoint not in _NAMES:
        return
    known = _NAMES[endpoint].split()
    for name in query if method == "GET" else body:
        if name not in known:
            like = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {like[0]}?" if like else f"there are {', '.join(known) or 'none'}"
            kind = "query" if method == "GET" else "member"
            raise ValueError(f"unknown {kind} {name}: {hint}")


async def handle(he: HeadEnd, request: web.Request) -> web.StreamResponse:
    """Handles one request to the control endpoints or the page, and returns the response."""
    refused = guard.why_refused(request, he.config.host, he.config.host_names)
    if refused is not None:
        response: web.StreamResponse = web.json_response({"error": refused}, status=403)
    elif not guard.has_token(request, he.control_token, in_query=request.path in _PAGE_PATHS):
        error = {"error": "send the control token: Authorization: Bearer TOKEN, or open the page with /?token=TOKEN"}
        response = web.json_response(error, status=401, headers={"WWW-Authenticate": "Bearer"})
    elif request.method in ("GET", "HEAD") and request.path in _PAGE_PATHS:
        response = web.Response(body=page.HTML, content_type="text/html", charset="utf-8", headers=page.HEADERS)
        if he.control_token is not None:
            response.set_cookie(guard.COOKIE, he.control_token, httponly=True, samesite="Strict", path="/")
    elif request.method in ("GET", "HEAD") and request.path == _ICON_PATH:
        response = web.Response(body=page.ICON, content_type="image/svg+xml")
    elif request.method == "GET" and request.path == _EVENTS_PATH:
        return await _events(he, request)
    else:
        response = await _endpoint(he, request)
    response.headers.extend(guard.HEADERS)
    return response


async def _events(he: HeadEnd, request: web.Request) -> web.StreamResponse:
    """Sends the feed as server-sent events until the head-end stops or the page disconnects."""
    response = web.StreamResponse(headers=guard.HEADERS)
    response.content_type = "text/event-stream"
    response.force_close()
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the page has disconnected")
    # This makes the send buffer small. So the events for a slow page wait in the queue of the feed, which has a limit.
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        await he.feed.watch(response.write, transport.abort)
    return response


async def _endpoint(he: HeadEnd, request: web.Request) -> web.Response:
    name = request.path.removeprefix(PREFIX)
    answerer = _ENDPOINTS.get((request.method, name))
    if answerer is None:
        allowed = [method for method, known in _ENDPOINTS if known == name]
        if allowed:
            error = {"error": f"{name} takes {', '.join(allowed)}"}
            return web.json_response(error, status=405, headers={"Allow": ", ".join(allowed)})
        names = ", ".join(["GET page", "GET events", *(f"{method} {known}" for method, known in _ENDPOINTS)])
        return web.json_response({"error": f"no control endpoint {name!r}; there are {names}"}, status=404)
    try:
        raw = await request.read()
        body = _object(json.loads(raw)) if raw.strip() else {}
        _check_names(name, request.method, request.query, body)
        result = await answerer(he, request.query, body)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        return web.json_response({"error": f"{name}: {error}"}, status=400)
    if name == "journal" and request.query.get("text") == "true":
        return web.Response(text=f"{result['text']}\n")
    return web.json_response(result)


def _take(body: dict[str, Any], name: str) -> Any:
    if name not in body:
        raise ValueError(f"body has no {name}")
    return body.pop(name)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return dict(value)
