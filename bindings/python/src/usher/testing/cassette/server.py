"""Plays a cassette back as a server: a player sends its requests, and gets the recorded replies."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, get_args

from aiohttp import web

from .format import TOKEN_MEMBER, Cassette, Exchange
from .naming import TokenNames, operation_of
from .serving import LocalServer
from .timing import interval_differs, intervals, sessions_of

Order = Literal["strict", "lenient"]
_LARGEST_BODY = 1024 * 1024


class ReplayServer(LocalServer):
    """A server that plays a cassette; ``with ReplayServer(cassette) as server`` starts and stops it.

    It never waits: each reply goes out at once, so a player on virtual time plays an hour in a second.

    Args:
        cassette: the cassette.
        order: ``strict``: the requests must come in the order of the cassette. ``lenient``: a request gets the first
            unused reply to the same operation of the same session. If this session has no such reply, the request gets
            the first unused reply to the same operation of any session.
        token_header: the header that carries the tokens.
        port: the port on 127.0.0.1; 0: a free one.
        tolerance_ms: for heartbeats and renewals: by how much the time since the previous request of the session may
            differ from the time in the cassette. The server adds 5 % of the time in the cassette, because libusher
            sends keep-alives early by a random share of the period. None: the server does not compare times.
        now_ms: the player's clock, for ``tolerance_ms``; by default real time.
    """

    def __init__(
        self,
        cassette: Cassette,
        *,
        order: Order = "strict",
        token_header: str = "nv-authorizations",
        port: int = 0,
        tolerance_ms: float | None = None,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        if order not in get_args(Order):
            raise ValueError(f"order: {order!r} is neither strict nor lenient")
        self._left = list(enumerate(cassette.exchanges, start=1))
        super().__init__("usher-replay", port, _LARGEST_BODY)
        self._order, self._header = order, token_header
        self._intervals = intervals(cassette.exchanges)
        self._tolerance_ms, self._now_ms = tolerance_ms, now_ms
        self._last_ms: dict[str, float] = {}
        """For each session, the time of its newest request on the player's clock, in ms."""
        self._names = TokenNames()
        self._found: list[str] = []
        self._requests = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The URL of the server, with a tenant in its path. The player's SSM URL is this URL with ``/ssm`` at its
        end."""
        return f"http://127.0.0.1:{self._port}/REPLAY"

    @property
    def requests(self) -> int:
        """How many requests have arrived."""
        return self._requests

    @property
    def is_over(self) -> bool:
        """Whether the player has got every reply of the cassette."""
        with self._lock:
            return not self._left

    def differences(self) -> list[str]:
        """Returns the differences between the player's requests and the cassette, each as one sentence."""
        with self._lock:
            missing = [f"{number} ({one.operation})" for number, one in self._left]
            if not missing:
                return list(self._found)
            return [*self._found, f"these requests of the cassette never came: {', '.join(missing)}"]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        operation = operation_of(request.path, request.query)
        tokens = self._names.sent(operation, ",".join(request.headers.getall(self._header, [])))
        with self._lock:
            self._requests += 1
            number, chosen = self._choose(operation, tokens)
            self._compare_time(number, operation, tokens, chosen)
        if chosen is None:
            return web.json_response({"errorCode": 4000, "message": "not in the cassette"}, status=409)
        if chosen.status is None:
            if request.transport is not None:
                request.transport.close()
            return web.Response(status=502)
        return self._reply(chosen)

    def _choose(self, operation: str, tokens: tuple[str, ...]) -> tuple[int, Exchange | None]:
        """Returns the exchange that the request gets, with its number; None if the cassette has none for it."""
        came = f"request {self._requests}: the player sent a {operation}"
        if not self._left:
            self._found.append(f"{came}; the cassette has no more requests")
            return 0, None
        if self._order == "strict":
            number, expected = self._left[0]
            if expected.operation != operation:
                self._found.append(f"{came}; the cassette has a {expected.operation} (exchange {number})")
                return 0, None
            if expected.tokens != tokens:
                self._found.append(
                    f"{came} with {_listed(tokens)}; exchange {number} of the cassette has {_listed(expected.tokens)}"
                )
            del self._left[0]
            return number, expected
        same = [item for item in self._left if item[1].operation == operation]
        if not same:
            self._found.append(f"{came}; the cassette has no further {operation}")
            return 0, None
        own = [item for item in same if sessions_of(tokens) & sessions_of(item[1].tokens)]
        chosen = (own or same)[0]
        self._left.remove(chosen)
        return chosen

    def _compare_time(self, number: int, operation: str, tokens: tuple[str, ...], chosen: Exchange | None) -> None:
        """Compares the time since the session's previous request with the cassette, and stores the present time."""
        now, sessions = self._now_ms(), sessions_of(tokens)
        recorded = self._intervals.get(number)
        for session in sessions & self._last_ms.keys():
            waited = now - self._last_ms[session]
            if recorded is not None and interval_differs(waited, recorded, self._tolerance_ms):
                self._found.append(
                    f"request {self._requests}: the {operation} came {waited / 1000:.1f} s after the session's request "
                    f"before it; exchange {number} of the cassette has {recorded / 1000:.1f} s"
                )
        if chosen is not None and chosen.session_token is not None:
            sessions |= sessions_of((chosen.session_token,))
        self._last_ms |= dict.fromkeys(sessions, now)

    def _reply(self, chosen: Exchange) -> web.Response:
        headers = {} if chosen.retry_after_s is None else {"Retry-After": str(chosen.retry_after_s)}
        size = min(chosen.size, _LARGEST_BODY)
        if chosen.body == "json":
            members: dict[str, Any] = dict(chosen.members)
            for name, value in members.items():
                if name.lower() == TOKEN_MEMBER:
                    members[name] = token_for(str(value))
                    self._names.teach(members[name], str(value))
            return web.Response(
                status=chosen.status or 200,
                body=json.dumps(members).encode(),
                headers={**headers, "Content-Type": "application/json"},
            )
        body = b"" if chosen.body == "empty" else (b"x" if chosen.body == "text" else b"\xff") * size
        return web.Response(status=chosen.status or 200, body=body or None, headers=headers)


def token_for(name: str) -> str:
    """Returns the token that a replay sends in place of the token with this name. It is made from the name and is no
    secret: no head-end accepts it."""
    return f"replayed-{name.replace('#', '-')}"


def _listed(tokens: tuple[str, ...]) -> str:
    return ", ".join(tokens) or "no token"
