"""Events that the library reports to observers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ._c.enums import EventType, KeySystem, NoticeType, Operation, Origin, SessionState
from ._errors import UsherError

if TYPE_CHECKING:
    from .playback import Playback
    from .player import Player

__all__ = ["Event", "EventType", "KeySystem", "Notice", "NoticeType", "Operation", "Origin", "SessionState"]


class Event(NamedTuple):
    """One event. It is a plain value; you may keep it.

    Attributes:
        type: what happened.
        left: for SESSION_ENDED: whether the library left the session at the head-end on purpose, or the customer
            delegate has no teardown callback.
        sequence: the number of the event in its context, from 1, in the order in which events happened.
        time_ms: when the event happened, in milliseconds on the context's clock, which starts at 0.
        playback: its playback; None if Python has freed the object.
        player: its player; None if Python has freed the object.
        tag: the `tag` given to Player.play().
        period_ms: for SESSION_STARTED: keep-alive period in milliseconds; 0: no keep-alives.
        lateness_ms: for KEPT_ALIVE: how many milliseconds after its due time the keep-alive was sent.
        error: the error; None for events that report no error.
        orphan_possible: whether the head-end may hold a session whose token the library did not get. This session ends
            when it expires. Events with an `error` may have this flag, and also PLAYBACK_CLOSED, which reports no
            error.
    """

    type: EventType
    left: bool
    sequence: int
    time_ms: int
    playback: Playback | None
    player: Player | None
    tag: object
    period_ms: int
    lateness_ms: int
    error: UsherError | None
    orphan_possible: bool = False

    @property
    def must_stop(self) -> bool:
        """Playback must stop now."""
        return self.error is not None and self.error.must_stop


@dataclass(frozen=True)
class Notice:
    """What a viewer must know about the current item of a player. It is a plain value; you may keep it.

    Attributes:
        type: what has happened.
        playback: its playback; None if Python has freed the object.
        player: its player; None if Python has freed the object.
        tag: the `tag` given to Player.play().
        error: for WAITING, REFUSED and LOST: why; for ENDED: why the teardown failed. Otherwise None.
        summary: what has happened, in a sentence for the viewer.
        advice: what the viewer can do.
    """

    type: NoticeType
    playback: Playback | None
    player: Player | None
    tag: object
    error: UsherError | None
    summary: str
    advice: str
