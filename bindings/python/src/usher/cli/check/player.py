"""Plays stories against a head-end, and keeps a model of the sessions: which the head-end must hold, and which of their
tokens is the newest."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..interrupts import Interrupts
from ..target import Target
from ..wire.client import Client
from ..wire.exchange import Exchange, Headers
from ..wire.redact import Redactor
from . import key_requests
from .key_requests import KEY_CALLS
from .replies import session_token
from .story import WITHOUT_SESSION, Ask, Call, History, Pause, Seen, Story, Wait, was_refused_first

_PATIENCE_S = 5.0
"""How many seconds an interrupted command waits for the replies to the requests in flight."""
UNKNOWN_TOKEN = "usher-check-unknown-token"
"""A token that no head-end has given out."""


@dataclass
class Session:
    """A session as the story knows it.

    Attributes:
        tokens: its tokens, the oldest first, without repetitions.
        ended: whether a teardown of it has succeeded.
        kept_at: when the head-end last answered set-up or a keep-alive, in seconds of ``Player.now()``.
    """

    tokens: list[str] = field(repr=False)
    kept_at: float
    period_s: float
    ended: bool = False


class Player:
    """Plays stories against a head-end.

    Args:
        target: the head-end.
        payload: the body of licence requests.
        wait: a function that moves a manual clock forward by some seconds; None: the story waits in real time.

    Attributes:
        interrupts: handles Ctrl-C; while its ``with`` block runs, Ctrl-C ends a story only between two requests.
        slot_limit: the limit of the account, if the head-end frees a slot only some time after a teardown.
        slot_delay_s: how long after a teardown the head-end frees the slot.
    """

    def __init__(self, target: Target, payload: bytes, wait: Callable[[float], None] | None = None) -> None:
        self.target = target
        self.redactor = Redactor()
        for token in target.tokens:
            self.redactor.content_token(token)
        self.payload = payload
        self._wait = wait
        self._waited = 0.0
        self._client = Client(target.limit_s, target.ca_file)
        self.requests = 0
        self._sessions: dict[int, Session] = {}
        self._origin: dict[str, str] = {}
        self.interrupts = Interrupts()
        self._ended_at: list[float] = []
        self._rights_url = ""
        self.slot_limit: int | None = None
        self.slot_delay_s = 0.0

    def now(self) -> float:
        """Returns the time in seconds: that of a monotonic clock, plus the time by which the player has moved a manual
        clock."""
        return time.monotonic() + self._waited

    def play(self, story: Story, *, patient: bool = False) -> History:
        """Plays a story, then tears down every session that the story has left. Returns the requests and their replies.

        Args:
            patient: whether to stop if the first set-up is refused, so that the caller can play the story again later.
        """
        history = History(story)
        self._sessions = {}
        self._rest(story)
        try:
            for number, step in enumerate(story):
                if patient and was_refused_first(history):
                    break
                if isinstance(step, Wait):
                    self._pause(step)
                elif isinstance(step, Pause):
                    self.interrupts.sleep(step.seconds)
                else:
                    self._ask(history, step, number)
        finally:
            self.clean()
        return history

    def clean(self) -> None:
        """Tears down every session of the last story that the head-end may hold."""
        for session in self._sessions.values():
            if not session.ended:
                for token in reversed(session.tokens):  # a wrong head-end may accept only an older token
                    if self._send("teardown", token).succeeded:
                        break
                self._end(session)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _end(self, session: Session) -> None:
        session.ended = True
        self._ended_at.append(time.monotonic())

    def _rest(self, story: Story) -> None:
        """If the head-end frees a slot only some time after the teardown, waits until as many slots are free as the
        story has set-up steps, or until all ``slot_limit`` slots are free."""
        if self.slot_limit is None or not self.slot_delay_s:
            return
        needed = min(self.slot_limit, sum(1 for step in story if isinstance(step, Ask) and step.call == "setup"))
        while True:
            late = [at for at in self._ended_at if at + self.slot_delay_s > time.monotonic()]
            if len(late) + needed <= self.slot_limit:
                self._ended_at = late
                return
            self.interrupts.sleep(max(0.0, late[0] + self.slot_delay_s - time.monotonic()))

    def _pause(self, step: Wait) -> None:
        period_s = next((each.period_s for each in self._sessions.values() if each.period_s), 0.0)
        began = time.monotonic()
        (self._wait or self.interrupts.sleep)(step.periods * period_s)
        self._waited += max(0.0, step.periods * period_s - (time.monotonic() - began))

    def _ask(self, history: History, ask: Ask, group: int) -> None:
        session = self._sessions.get(ask.session)
        needs_session = ask.call in ("heartbeat", "teardown", "renew") or (
            ask.call == "license" and ask.token not in ("content", "unknown")
        )
        if needs_session and session is None and ask.token not in ("unknown", "none"):
            return  # the session was never set up
        token = self._token(ask, session)
        if token is None or (ask.call == "rights" and not self._rights_url):
            return  # there is no such token, or no reply has brought a token URL
        held = sum(1 for each in self._sessions.values() if not each.ended)
        refusals = sum(1 for each in history.of("setup") if not each.ok)
        teardowns = sum(1 for each in history.of("teardown") if each.ok)
        exchanges = self._send_together(ask, token)
        for place, exchange in enumerate(exchanges):
            seen = Seen(ask, exchange, held=held, group=group, refusals=refusals, teardowns=teardowns)
            if session is not None and token in session.tokens and ask.call != "setup":
                seen.age = len(session.tokens) - 1 - session.tokens.index(token)
                seen.ended = session.ended
                seen.from_reply = self._origin.get(token, "")
                seen.idle = (self.now() - session.kept_at) / session.period_s if session.period_s else 0.0
            is_of_session = session is not None and (ask.call == "setup" or token in session.tokens)
            self._learn(ask, exchange, session if is_of_session else None, ask.session + place)
            history.seen.append(seen)
        self.interrupts.check()

    def _token(self, ask: Ask, session: Session | None) -> str | None:
        """Returns the token that the request must carry: "" if it carries no session token; None if it must carry a
        session token that the session does not have."""
        if ask.token == "unknown":
            return UNKNOWN_TOKEN
        if ask.token in ("none", "content") or ask.call in ("setup", *WITHOUT_SESSION):
            return ""
        tokens = [] if session is None else session.tokens
        back = {"newest": 1, "previous": 2, "older": 3}[ask.token]
        return tokens[-back] if len(tokens) >= back else None

    def _send_together(self, ask: Ask, token: str) -> list[Exchange]:
        """Sends each request on its own thread, waits for the replies, and returns the exchanges. After Ctrl-C it waits
        only some seconds more, because the replies may have session tokens; _ask() raises the KeyboardInterrupt
        later."""
        found: list[Exchange] = []
        ready = threading.Barrier(ask.together)
        ended = [threading.Event() for _ in range(ask.together)]

        def send(done: threading.Event) -> None:
            ready.wait()
            found.append(self._send(ask.call, token, ask))
            done.set()

        for done in ended:
            threading.Thread(target=send, args=(done,), daemon=True).start()
        for done in ended:
            end = float("inf")
            while not done.wait(0.1) and time.monotonic() < end:
                if self.interrupts.pressed.is_set():
                    end = min(end, time.monotonic() + _PATIENCE_S)
        return list(found)

    def _send(self, call: Call, token: str, ask: Ask | None = None) -> Exchange:
        self.requests += 1
        target = self.target
        url, method, body = self._place(call, ask)
        value = self._authorization(call, token, ask)
        name = target.token_header.upper() if ask is not None and ask.capitals else target.token_header
        headers: list[tuple[str, str]] = [("User-Agent", "usher-check")]
        if call not in ("heartbeat", "teardown"):
            headers.append(("Accept-Encoding", "gzip, deflate"))
        if value:
            headers.append((name, value))
        headers += self._types(call)
        return self._client.send(method, url, (*headers, *target.headers), body)

    def _place(self, call: Call, ask: Ask | None) -> tuple[str, str, bytes]:
        target = self.target
        if call in KEY_CALLS:
            unknown = UNKNOWN_TOKEN if ask is not None and ask.token == "unknown" else ""
            url, body = key_requests.place(call, target, self.payload, self._rights_url, unknown)
            return url, "POST", body
        license_url = target.license or ""
        if call == "certificate":
            return target.certificate or "", "GET", b""
        if call == "renew":
            return f"{license_url}{'&' if '?' in license_url else '?'}renew=true", "POST", self.payload
        if call in ("license", "license-alone") or (call == "setup" and target.v2):
            return license_url, "POST", self.payload
        return target.session_url(call), "POST", b"{}"

    def _authorization(self, call: Call, token: str, ask: Ask | None) -> str:
        which = "newest" if ask is None else ask.token
        if which == "none" or call == "certificate" or call in KEY_CALLS:
            return ""
        if call in ("setup", "license-alone"):
            return UNKNOWN_TOKEN if which == "unknown" else self.target.token
        if call == "license":
            return self.target.token if which == "content" else f"{self.target.token},{token}"
        return token

    def _types(self, call: Call) -> Headers:
        if call == "certificate":
            return ()
        if call in KEY_CALLS:
            return key_requests.types(call, self.target)
        license = call in ("license", "license-alone", "renew") or (call == "setup" and self.target.v2)
        kinds = {"fairplay": "application/octet-stream", "playready": "text/xml; charset=utf-8"}
        kind = kinds.get(self.target.key_system, "application/json") if license else "application/json; charset=utf-8"
        accept = () if license and self.target.key_system == "playready" else (("Accept", "application/json"),)
        return (("Content-Type", kind), *accept)

    def _learn(self, ask: Ask, exchange: Exchange, session: Session | None, number: int) -> None:
        if ask.call == "entitlement":
            self._rights_url = key_requests.rights_url(exchange, self.target) or self._rights_url
            return
        issued = session_token(exchange)
        if issued is not None:
            self.redactor.session_token(issued)
        if ask.call == "setup":
            if issued is not None and exchange.succeeded:
                value = exchange.member("heartbeat")
                usable = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
                self._sessions[number] = Session([issued], self.now(), float(value) if usable else 0.0)
                self._origin[issued] = "setup"
            return
        if session is None or not exchange.succeeded:
            return
        if ask.call == "teardown":
            self._end(session)
        elif ask.call in ("heartbeat", "renew"):
            session.kept_at = self.now()
        if issued is not None and issued not in session.tokens:
            session.tokens.append(issued)
            self._origin[issued] = ask.call


def clear_key_payload(key_ids: Sequence[bytes]) -> bytes:
    """Returns the licence request of W3C Clear Key."""
    kids = [base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in key_ids]
    return json.dumps({"kids": kids, "type": "temporary"}).encode()
