"""Stories: sequences of requests to a head-end, and what came back.

A story is plain data, so that it can be shortened and played again. ``Player`` plays it, and keeps a model of the
sessions: which the head-end must hold, and which of their tokens is the newest.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..interrupts import Interrupts
from ..target import Target
from ..wire.client import Client
from ..wire.exchange import Exchange, Headers
from ..wire.redact import Redactor
from . import key_requests
from .key_requests import KEY_CALLS
from .replies import error_code, session_token

Call = Literal["setup", "heartbeat", "teardown", "license", "renew", "certificate", "ckc", "entitlement", "rights"]
Which = Literal["newest", "previous", "older", "unknown", "none", "content"]
_PATIENCE_S = 5.0
"""How long an interrupted command waits for the reply to the request in flight."""
UNKNOWN_TOKEN = "usher-check-unknown-token"
"""A token that no head-end has given out."""


@dataclass(frozen=True)
class Ask:
    """A request of a story.

    Attributes:
        call: what is asked.
        session: the number of the session in the story; ``setup`` begins it.
        token: which token it carries: of the session the newest, the one before, or an older one; an unknown token;
            none; or, for a licence, only the content token. ``newest`` of a set-up is the content token.
        together: how many such requests are sent at the same time; each set-up begins a session of its own.
        capitals: whether the name of the token header is in capital letters.
    """

    call: Call
    session: int = 0
    token: Which = "newest"
    together: int = 1
    capitals: bool = False

    def __str__(self) -> str:
        times = f", {self.together} together" if self.together > 1 else ""
        said = {
            "newest": "",
            "previous": ", token before the newest",
            "older": ", old token",
            "unknown": ", unknown token",
            "none": ", no token",
            "content": ", content token only",
        }[self.token]
        number = "" if self.call == "certificate" or self.call in KEY_CALLS else f" {self.session + 1}"
        return f"{self.call}{number}{said}{times}"


@dataclass(frozen=True)
class Wait:
    """A pause of a story, in periods of the first session."""

    periods: float

    def __str__(self) -> str:
        return f"wait {self.periods:g} periods"


@dataclass(frozen=True)
class Pause:
    """A short pause of a story, in seconds of real time."""

    seconds: float

    def __str__(self) -> str:
        return f"wait {self.seconds:g} s"


Story = tuple["Ask | Wait | Pause", ...]


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


@dataclass
class Seen:
    """A request that was sent, and what the story knew then.

    Attributes:
        age: how many tokens of the session are newer than the one sent; None if it sent none of them.
        from_reply: which call's reply had brought the token.
        ended: whether a teardown of the session had succeeded before.
        held: how many sessions the head-end had to hold before the request; without those sent together with it.
        group: the same number for requests that were sent together.
        idle: the periods since the session was last kept alive.
        refusals: how many set-ups the story has seen refused before.
        teardowns: how many teardowns the story has seen succeed before.
    """

    ask: Ask
    exchange: Exchange = field(repr=False)
    age: int | None = None
    from_reply: str = field(default="", repr=False)
    ended: bool = False
    held: int = 0
    group: int = 0
    idle: float = 0.0
    refusals: int = 0
    teardowns: int = 0

    @property
    def ok(self) -> bool:
        return self.exchange.succeeded

    @property
    def error_code(self) -> int | None:
        return error_code(self.exchange)

    @property
    def is_live(self) -> bool:
        """Whether the request carries the newest token of a session that the head-end has to hold."""
        return self.age == 0 and not self.ended and self.idle < 1.5


@dataclass
class History:
    """What came back in a story."""

    story: Story = field(repr=False)
    seen: list[Seen] = field(default_factory=list)

    def of(self, call: Call) -> list[Seen]:
        return [each for each in self.seen if each.ask.call == call]


class Player:
    """Plays stories against a head-end.

    Args:
        target: the head-end.
        payload: the body of licence requests.
        wait: a function that lets some seconds pass on a manual clock; None: the story really waits.

    Attributes:
        interrupts: Ctrl-C; while its ``with`` block runs, a story ends between two requests.
        slot_limit: the limit of the account, if the head-end frees a slot only some time after a teardown.
        slot_delay_s: this time.
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
        """The time in seconds, with the time that a manual clock has moved."""
        return time.monotonic() + self._waited

    def play(self, story: Story, *, patient: bool = False) -> History:
        """Plays a story, then tears down every session that it has left.

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
                for token in reversed(session.tokens):  # a head-end with a fault may know only an older one
                    if self._send("teardown", token).succeeded:
                        break
                self._end(session)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _end(self, session: Session) -> None:
        session.ended = True
        self._ended_at.append(time.monotonic())

    def _rest(self, story: Story) -> None:
        """Waits until so many slots are free that the story can set all its sessions up, if the head-end frees a slot
        only some time after the teardown."""
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
            return  # its set-up was refused, or left out
        token = self._token(ask, session)
        if token is None or (ask.call == "rights" and not self._rights_url):
            return  # the session has not as many tokens
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
        """Returns the token to send, "" for none; None if the story has no such token."""
        if ask.token == "unknown":
            return UNKNOWN_TOKEN
        if ask.token in ("none", "content") or ask.call in ("setup", "certificate", *KEY_CALLS):
            return ""
        tokens = [] if session is None else session.tokens
        back = {"newest": 1, "previous": 2, "older": 3}[ask.token]
        return tokens[-back] if len(tokens) >= back else None

    def _send_together(self, ask: Ask, token: str) -> list[Exchange]:
        """Sends each request on its own thread. After Ctrl-C it waits some seconds for the replies, because they may
        have session tokens. _ask() raises the KeyboardInterrupt later."""
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
        if call == "license" or (call == "setup" and target.v2):
            return license_url, "POST", self.payload
        return target.session_url(call), "POST", b"{}"

    def _authorization(self, call: Call, token: str, ask: Ask | None) -> str:
        which = "newest" if ask is None else ask.token
        if which == "none" or call == "certificate" or call in KEY_CALLS:
            return ""
        if call == "setup":
            return UNKNOWN_TOKEN if which == "unknown" else self.target.token
        if call == "license":
            return self.target.token if which == "content" else f"{self.target.token},{token}"
        return token

    def _types(self, call: Call) -> Headers:
        if call == "certificate":
            return ()
        if call in KEY_CALLS:
            return key_requests.types(call)
        license = call in ("license", "renew") or (call == "setup" and self.target.v2)
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


def was_refused_first(history: History) -> bool:
    """Whether the first request was a set-up, and was refused, so that the rest of the story was not played."""
    first = history.seen[0] if history.seen else None
    return first is not None and first.ask == Ask("setup", first.ask.session) and not first.ok


def describe(story: Story) -> str:
    """Returns a story as one line."""
    return " → ".join(map(str, story))


def clear_key_payload(key_ids: Sequence[bytes]) -> bytes:
    """Returns the licence request of W3C Clear Key."""
    import base64

    kids = [base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in key_ids]
    return json.dumps({"kids": kids, "type": "temporary"}).encode()
