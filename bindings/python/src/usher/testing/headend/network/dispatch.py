"""Handles a request: reads it, adds it to the journal, applies a fault, executes it, and replies."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

from ..clock import Clock
from ..codes import Problem, Refusal
from ..oracle.journal import Entry, Journal, Outcome
from ..routes import Router
from ..service import Answer, Route, Service
from ..state.tokens import Authorization
from .effects import Delivery, FaultError
from .faults import Fault
from .gate import Gate
from .replies import Reply, error_reply, json_reply
from .script import FaultScript
from .wire import deliver, fits

log = logging.getLogger("usher.testing.headend")

_SILENT = (Delivery.CLOSE, Delivery.RESET)
_AT_ONCE = (Delivery.WHOLE, Delivery.SLOW_CLOSE)
_SLOW = (Delivery.TRICKLE, Delivery.PACED)
_INTACT = (*_AT_ONCE, *_SLOW)


class Dispatcher:
    """Handles every request except those to the control endpoints. Runs on the server's loop."""

    def __init__(self, service: Service, router: Router, journal: Journal, faults: FaultScript, gate: Gate) -> None:
        self._service = service
        self._router = router
        self._journal = journal
        self._faults = faults
        self._gate = gate
        self.stopping = False

    @property
    def _clock(self) -> Clock:
        return self._service.clock

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handles one request, and records its outcome in the journal. Returns the response."""
        at_ms = self._clock.now_ms()
        try:
            body, refused = await request.read(), None
        except web.HTTPRequestEntityTooLarge:
            body, refused = b"", Reply(status=413)
        except (asyncio.CancelledError, OSError, web.PayloadAccessError):
            entry = self._open(request, b"", at_ms)
            self._journal.amend(entry.number, outcome=self._lost())
            raise
        entry = self._open(request, body, at_ms)
        fault = self._faults.take(entry)
        if fault is not None:
            self._journal.amend(entry.number, fault=fault.label)
        try:
            return await self._answer(request, entry, fault, refused)
        except (asyncio.CancelledError, ConnectionError):
            changes: dict[str, Any] = {"outcome": self._lost(), "delivered": False}
            if fault is None or fault.delivery in _INTACT:
                changes["status"] = None
                self._journal.amend(entry.number, **changes)
            raise
        except Exception:
            self._journal.amend(entry.number, outcome=Outcome.ANSWERED, status=500)
            raise

    def _lost(self) -> Outcome:
        return Outcome.DROPPED if self.stopping else Outcome.CLIENT_GONE

    def _open(self, request: web.Request, body: bytes, at_ms: int) -> Entry:
        path, query = _split(request.raw_path)
        route = self._router.find(request.method, path)
        items = tuple(parse_qsl(query, keep_blank_values=True))
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers)
        authorization = self._authorization(headers)
        session = authorization.session
        speaking = next((p for p in authorization.parts if p.kind in ("content", "device")), session)
        return self._journal.open(
            Entry(
                number=0,
                at_ms=at_ms,
                route=_name(route, items),
                key_system=route.key_system if route is not None else None,
                method=request.method,
                path=request.raw_path,
                query=items,
                headers=headers,
                body=body,
                authorization=authorization,
                account=speaking.account if speaking is not None else None,
                session=session.jti if session is not None else None,
            )
        )

    def _authorization(self, headers: tuple[tuple[str, str], ...]) -> Authorization:
        wanted = {name.lower() for name in self._service.config.auth_headers}
        values = [value for name, value in headers if name.lower() in wanted]
        return self._service.mint.read(values, strict=self._service.config.strict_header)

    async def _answer(
        self, request: web.Request, entry: Entry, fault: Fault | None, refused: Reply | None
    ) -> web.StreamResponse:
        await self._pause(entry, fault, "before")
        if refused is not None:
            answer = Answer(refused)
        elif fault is None or fault.processes:
            answer = self._process(entry)
        else:
            answer = Answer(Reply())
        self._journal.amend(entry.number, **_effects(answer))
        await self._pause(entry, fault, "after")
        reply = answer.reply
        for edit in fault.edits if fault is not None else ():
            try:
                reply = edit(reply)
            except FaultError as error:
                log.error("request %d to %s: %s", entry.number, entry.route, error)
                reply = error_reply(500, 0, f"fault {fault.label if fault else ''}: {error}")
                break
        delivery = fault.delivery if fault is not None else Delivery.WHOLE
        if fault is not None and delivery is Delivery.LIMITED and fits(reply, fault):
            fault, delivery = replace(fault, delivery=Delivery.WHOLE), Delivery.WHOLE
        code, message = (answer.error_code, answer.error_message) if reply is answer.reply else _error(reply)
        arrives = answer.token is not None and reply.status < 300 and _holds(reply, answer.token)
        if delivery in _SILENT:
            self._journal.amend(entry.number, outcome=Outcome.DROPPED)
        else:
            self._journal.amend(
                entry.number,
                status=reply.status,
                error_code=code,
                error_message=message,
                outcome=Outcome.ANSWERED if delivery in _INTACT else Outcome.DAMAGED,
                answered_ms=self._clock.now_ms(),
                delivered=arrives and delivery in _AT_ONCE,
            )
        response = await deliver(request, reply, fault, self._clock)
        if arrives and delivery in _SLOW:
            self._journal.amend(entry.number, delivered=True, answered_ms=self._clock.now_ms())
        return response

    async def _pause(self, entry: Entry, fault: Fault | None, when: str) -> None:
        if fault is None:
            return
        if fault.hold == when:
            await self._gate.hold(entry)
        delay_ms = fault.delay_ms[0 if when == "before" else 1]
        if delay_ms:
            await self._clock.wait_until(self._clock.now_ms() + delay_ms)

    def _process(self, entry: Entry) -> Answer:
        path, _ = _split(entry.path)
        route = self._router.find(entry.method, path)
        if route is None:
            methods = self._router.methods(path)
            if methods:
                return Answer(Reply(status=405).with_header("Allow", ", ".join(methods)))
            return Answer(json_reply({"message": "nothing is served at this path"}, 404))
        try:
            return route.handler(self._service, entry)
        except Refusal as refusal:
            return self._service.refuse(route.family, refusal)
        except Exception:
            log.exception("request %d to %s", entry.number, entry.route)
            return self._service.refuse(route.family, Refusal(Problem.INTERNAL))


def _split(raw_path: str) -> tuple[str, str]:
    if raw_path.startswith("/"):
        path, _, query = raw_path.partition("?")
        return path, query.partition("#")[0]
    parts = urlsplit(raw_path)
    return parts.path, parts.query


def _name(route: Route | None, query: tuple[tuple[str, str], ...]) -> str:
    if route is None:
        return "unknown"
    return route.renewal_name if route.renewal_name and ("renew", "true") in query else route.name


def _effects(answer: Answer) -> dict[str, Any]:
    found = {"account": answer.account, "session": answer.session, "issued": answer.issued}
    return {name: value for name, value in found.items() if value is not None}


def _holds(reply: Reply, token: str) -> bool:
    """Whether the reply, after a fault has changed it, still contains this token in its body or in a header."""
    return token.encode() in reply.body or any(token in value for _, value in reply.headers)


def _error(reply: Reply) -> tuple[int | None, str | None]:
    """Returns ``errorCode`` and ``message`` of an error reply; None for each of them that the reply does not have."""
    value = reply.json_object() if reply.status >= 400 else None
    code, message = (value.get("errorCode"), value.get("message")) if value is not None else (None, None)
    numbered = isinstance(code, int) and not isinstance(code, bool)
    return code if numbered else None, message if isinstance(message, str) else None
