"""Measures how often a context that holds one playback wakes up."""

from __future__ import annotations

from typing import Any

from measure import Goal, Run, told_by
from report import Section
from server import Server

WORDS = """\
One playback on the real clock. The kernel counts how often each thread of the library goes to sleep. A heartbeat needs
two wake-ups of the I/O thread: one when it is due, and one when its reply arrives. 60 heartbeats are those of an hour
with a period of 60 s; here they take a minute, with a period of 1 s. In the other row no heartbeat is due."""


def hold(run: Run, period_s: int, seconds: int) -> dict[str, Any]:
    with Server(period_s=period_s) as server:
        return told_by(run.c("idle_usher", "--base", server.base(), "--seconds", seconds), timeout_s=seconds + 60)


def measure(run: Run) -> list[Section]:
    seconds = 2 if run.quick else 60
    beating, resting = hold(run, 1, seconds), hold(run, 900, seconds)
    rows = []
    for name, told in ((f"{seconds} s, a heartbeat each second", beating), (f"{seconds} s, no heartbeat", resting)):
        threads = ", ".join(f"{thread} {count}" for thread, count in told["sleeps"].items() if count) or "none"
        rows.append([name, str(told["operations"]), threads, f"{told['cpu_ns'] / 1000:,.0f}"])
    if beating["operations"] == 0:
        raise RuntimeError("no heartbeat was sent")
    more = max(0, sum(beating["sleeps"].values()) - 2 * beating["operations"])
    an_hour = 3600 // seconds * sum(resting["sleeps"].values())
    goals = [
        Goal("one playback: wake-ups beyond two for each of 60 heartbeats", more, 0, "wake-ups"),
        Goal("one playback: wake-ups in an hour without heartbeats", an_hour, 0, "wake-ups"),
    ]
    return [Section("A context at rest", WORDS, ["", "heartbeats", "wake-ups", "CPU µs, all"], rows, goals)]
