"""Compares the times of a replay with those of its cassette."""

from __future__ import annotations

from .format import Exchange

KEPT_BY_THE_PLAYER = ("heartbeat", "renewal")
"""The requests whose time the player's timer decides. A viewer decides when set-ups and teardowns come."""

EARLY_SHARE = 0.05
"""By default libusher sends the keep-alives of a playback early by a random share of the period; this is the largest
share (option `jitter_permille`)."""


def intervals(exchanges: tuple[Exchange, ...]) -> dict[int, int]:
    """Returns for each heartbeat and renewal, by the number of its exchange, the time since the previous request of the
    same session, in ms."""
    before: dict[str, int] = {}
    found: dict[int, int] = {}
    for number, one in enumerate(exchanges, start=1):
        sessions = sessions_of(one.tokens)
        if one.operation in KEPT_BY_THE_PLAYER:
            for session in sessions & before.keys():
                found[number] = one.at_ms - before[session]
        if one.session_token is not None:
            sessions |= sessions_of((one.session_token,))
        before |= dict.fromkeys(sessions, one.at_ms)
    return found


def sessions_of(tokens: tuple[str, ...]) -> set[str]:
    """Returns the names of the sessions to which these tokens belong."""
    return {name.partition("#")[0] for name in tokens if name.startswith("S")}


def interval_differs(now_ms: float, recorded_ms: float, tolerance_ms: float | None) -> bool:
    """Whether the time between two requests differs by more than the tolerance and ``EARLY_SHARE`` of the recorded
    time. None: times are not compared."""
    return tolerance_ms is not None and differs(now_ms, recorded_ms, tolerance_ms + EARLY_SHARE * recorded_ms)


def differs(now_ms: float, recorded_ms: float, tolerance_ms: float | None) -> bool:
    """Whether two times differ by more than the tolerance. None: times are not compared."""
    return tolerance_ms is not None and abs(now_ms - recorded_ms) > tolerance_ms
