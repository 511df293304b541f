"""What happens in a run of chaos, and when: drawn from a seed, so that a run can be repeated."""

from __future__ import annotations

import random
from dataclasses import dataclass

KILL_EVERY_S = 60.0
CALM_S = 8.0
"""Between two troubles nothing happens for at least this long: longer than a period, so that each session has sent a
heartbeat."""


@dataclass(frozen=True)
class Trouble:
    """One trouble of a run.

    Attributes:
        kind: a key of ``chaos.TROUBLES``.
        at_s: when it begins, counted from the moment when all items play.
        lasts_s: how long it lasts; 0: it is over at once.
    """

    kind: str
    at_s: float
    lasts_s: float


KINDS: tuple[tuple[str, float, float], ...] = (
    ("partition", 5, 5),
    ("move", 0, 0),
    ("restart, table kept", 1, 4),
    ("stop", 3, 15),
    ("loss", 15, 30),
    ("restart, table lost", 1, 4),
    ("move", 0, 0),
    ("partition", 20, 20),
    ("stop", 1, 5),
    ("loss", 15, 30),
    ("restart, table kept", 1, 4),
    ("partition", 60, 60),
)
"""The kinds of troubles, each with its shortest and longest time in s. A run plays all entries in random order, and
then all of them again in another order, and so on."""


def draw(seed: int, seconds: float) -> list[Trouble]:
    """Returns the troubles of a run. Every minute (in a run of less than two minutes: once in the middle) the next
    trouble is the death of the host. It never comes during another trouble. Otherwise the judge could not tell which of
    the two ended a session."""
    dice = random.Random(seed)
    found: list[Trouble] = []
    deck: list[tuple[str, float, float]] = []
    now, kill_at = CALM_S, min(KILL_EVERY_S, seconds / 2)
    while True:
        if now >= kill_at:
            trouble = Trouble("kill", now, 0)
            kill_at += KILL_EVERY_S
        else:
            if not deck:
                deck = list(KINDS)
                dice.shuffle(deck)
            kind, least, most = deck.pop()
            # A short run has no room for long troubles.
            lasts = min(dice.uniform(least, most), seconds / 12)
            trouble = Trouble(kind, now, round(lasts, 3))
        if trouble.at_s + trouble.lasts_s + CALM_S > seconds:
            return found
        found.append(trouble)
        now = trouble.at_s + trouble.lasts_s + CALM_S + dice.uniform(0, 4)
