"""The outcome of a fault as text: events and errors, the number of requests, and the number of sessions that the
head-end still holds."""

from __future__ import annotations

from dataclasses import dataclass

import usher
from usher import EventType, Operation, Origin

ENDINGS = (EventType.SESSION_ENDED, EventType.PLAYBACK_CLOSED)


@dataclass(frozen=True)
class Outcome:
    """One cell of the table in docs/faults.md: the outcome of one fault in one operation.

    Attributes:
        told: events and answers, from the start of the fault until the host closes the playback.
        arrived: how many requests of the operation arrived at the head-end.
        end: the result of the close.
        held: how many sessions the head-end still holds.
        again: the error of a second request after the fault; empty if it succeeds.
    """

    told: str
    arrived: int
    end: str
    held: int
    again: str = ""

    def __str__(self) -> str:
        parts = [part for part in (self.told, self.end) if part]
        parts.append(f"{self.arrived} arrived" + (f", {self.held} held" if self.held else ""))
        if self.again:
            parts.append(f"again: {self.again}")
        return "; ".join(parts)


def tell_error(error: usher.UsherError, origin: Origin, operation: Operation) -> str:
    """Returns an error as text: status, HTTP status, service code and flags; also origin and operation if these are not
    the expected ones."""
    words = [error.status.name]
    if error.http_status >= 0:
        words.append(str(error.http_status))
    if error.service_code:
        words.append(f"code {error.service_code}")
    if (error.origin, error.operation) != (origin, operation):
        words.append(f"from {error.origin.name} in {error.operation.name}")
    words += [word for flag, word in ((error.must_stop, "stop"), (error.orphan_possible, "orphan")) if flag]
    return " ".join(words)


def tell_events(events: list[usher.Event], origin: Origin, operation: Operation) -> str:
    """Returns the events as text, in order. Equal events in a row appear once, with their number."""
    lines: list[tuple[str, int]] = []
    for event in events:
        line = event.type.name
        if event.error is not None:
            line += " " + tell_error(event.error, origin, operation)
        elif event.orphan_possible:
            line += " orphan"
        if lines and lines[-1][0] == line:
            lines[-1] = (line, lines[-1][1] + 1)
        else:
            lines.append((line, 1))
    return ", ".join(line if count == 1 else f"{line} x{count}" for line, count in lines)


def tell_end(events: list[usher.Event], torn_down: bool, origin: Origin, operation: Operation) -> str:
    """Returns the result of a close as text: its errors, or whether the head-end executed a teardown."""
    types = [event.type for event in events]
    assert types.count(EventType.SESSION_ENDED) <= 1 and types[-1:] == [EventType.PLAYBACK_CLOSED], types
    errors = [event for event in events if event.type not in ENDINGS]
    orphan = events[-1].orphan_possible
    if errors:
        assert orphan == any(event.orphan_possible for event in errors), events
        return tell_events(errors, origin, operation)
    return "torn down" if torn_down else "closed orphan" if orphan else "closed"
