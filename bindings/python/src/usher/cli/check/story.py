"""Stories: sequences of requests to a head-end, and what came back.

A story is plain data, so that it can be shortened and played again (``player.Player``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..wire.exchange import Exchange
from .key_requests import KEY_CALLS
from .replies import error_code

Call = Literal[
    "setup",
    "heartbeat",
    "teardown",
    "license",
    "renew",
    "license-alone",
    "certificate",
    "ckc",
    "entitlement",
    "rights",
]
WITHOUT_SESSION: tuple[Call, ...] = ("license-alone", "certificate", *KEY_CALLS)
"""The calls that belong to no session."""
Which = Literal["newest", "previous", "older", "unknown", "none", "content"]


@dataclass(frozen=True)
class Ask:
    """A request of a story.

    Attributes:
        call: what is asked; ``license-alone`` is a licence request to a server without a session manager.
        session: the number of the session in the story; the call ``setup`` opens this session.
        token: which token it carries. ``newest``, ``previous``, ``older``: the newest token of the session, the one
            before it, and the one before that. ``unknown``: a token that the head-end does not know. ``none``: no
            token. ``content``: a licence request carries the content token, but no session token. For ``setup`` and
            ``license-alone``, ``newest`` means the content token.
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
        number = "" if self.call in WITHOUT_SESSION else f" {self.session + 1}"
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
class Seen:
    """A request that was sent, with the state of the story at that moment.

    Attributes:
        age: how many tokens of the session are newer than the one in the request; None if the request has none of them.
        from_reply: the call whose reply brought the token.
        ended: whether a teardown of the session had succeeded before.
        held: how many sessions the head-end had to hold before it got this request and those sent together with it.
        group: the place of the step in the story; requests that were sent together have the same.
        idle: the periods since the session was last kept alive.
        refusals: how many set-ups of the story were refused before this request.
        teardowns: how many teardowns of the story succeeded before this request.
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
    """A story that was played, with the requests that were sent and their replies."""

    story: Story = field(repr=False)
    seen: list[Seen] = field(default_factory=list)

    def of(self, call: Call) -> list[Seen]:
        return [each for each in self.seen if each.ask.call == call]


def was_refused_first(history: History) -> bool:
    """Whether the first request was a set-up that the head-end refused. A patient player then ends the story."""
    first = history.seen[0] if history.seen else None
    return first is not None and first.ask == Ask("setup", first.ask.session) and not first.ok


def describe(story: Story) -> str:
    """Returns a story as one line."""
    return " → ".join(map(str, story))
