"""Events: what the library tells the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._c.enums import EventType, KeySystem, Operation, Origin, SessionState
from ._errors import UsherError

if TYPE_CHECKING:
    from .playback import Playback
    from .player import Player

__all__ = ["Event", "EventType", "KeySystem", "Operation", "Origin", "SessionState"]


@dataclass(frozen=True)
class Event:
    """One event; plain values that may be kept.

    Attributes:
        type: what happened.
        left: for SESSION_ENDED: the session was left at the head-end on purpose.
        sequence: counts the events of the context from 1, in the order of happening.
        time_ms: when, milliseconds on the context's clock (starts at 0).
        playback: about which playback; None when the object is gone already.
        player: on which player; None when the object is gone already.
        tag: the `tag` given to Player.play().
        period_ms: keep-alive period in milliseconds (0: none); SESSION_STARTED.
        lateness_ms: how long after it was due the keep-alive was sent, milliseconds; KEPT_ALIVE.
        error: what went wrong, not raised; None for events that are no errors.
        orphan_possible: a session may be held at the head-end whose token never reached us; it ends by expiry. Also told
            with PLAYBACK_CLOSED, which is no error.
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
