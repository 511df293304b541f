"""Measures many playbacks in one process on the real clock: memory of an idle playback, lateness of heartbeats, and the
CPU time of a process in Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import plots
from measure import PYTHON, Goal, Run, told_by
from report import Section
from server import TOKEN_BYTES, Server

PERIOD_S = 60
LATE_MS = 20
PERIODS = 2
TOKENS = TOKEN_BYTES + len("content.token")
WORDS = f"""\
Real clock, a period of {PERIOD_S} s, no jitter; the host spreads the set-ups over the first period, then holds the
sessions for {PERIODS} periods. Memory is the growth from the first playback to the last one, divided by the number of
playbacks. It is given twice: in bytes that malloc has given out, and in bytes of the resident set. {TOKENS} bytes of
these two figures are the tokens. The third figure is malloc's at the end, after the heartbeats: from then on each
playback also keeps the tokens of its last requests, so that no message repeats a part of them (at most 32 tokens, and
about 4 kB). Lateness is measured twice: by the library, in each KEPT_ALIVE event, and from the server's
log, as the time of a heartbeat minus its due time. The n-th heartbeat of a session is due n periods after the reply to
its set-up; the token in each heartbeat shows to which session it belongs."""


PYTHON_PERIOD_S = 10
PYTHON_LATE_MS = 500
PYTHON_WORDS = f"""\
One Python process in pumped mode with one observer, real clock, a period of {PYTHON_PERIOD_S} s, no jitter. The host
spreads the set-ups over the first period, then holds the sessions for {PERIODS} periods. It calls pump() when the file
descriptor of the pump is readable, or at fixed intervals. With the option timer_slack_ms the library sends the
heartbeats of 50 ms together, as in a load generator."""
PUMPING = {"when callbacks are due": (0, 0), "every 20 ms": (20, 0), "every 20 ms, timer_slack_ms 50": (20, 50)}
"""How the process pumps, and the values of the options `--every` and `--slack`."""


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def lateness_by_server(log: Iterable[str], period_s: int, until: float) -> list[float]:
    """Returns how late each heartbeat was, in milliseconds: its time minus its due time. The due time of
    heartbeat n is the time of the set-up plus n periods.

    Each reply has a new token, and the next request of the session carries this token, so the function can follow the
    requests of one session.
    """
    sessions: dict[str, tuple[float, int]] = {}
    late = []
    for line in log:
        when, given, came = line.split()
        started, beats = sessions.pop(came, (float(when), -1))
        sessions[given] = (started, beats + 1)
        if beats >= 0 and float(when) < until:
            late.append((float(when) - started - (beats + 1) * period_s) * 1000)
    return sorted(late)


def hold(run: Run, sessions: int, period_s: int) -> tuple[dict[str, Any], list[float]]:
    """Measures a run that spreads the set-ups over one period, and then continues for PERIODS periods. Returns what the
    program prints, and how late each heartbeat arrived at the server, in milliseconds."""
    with Server(logs=True, period_s=period_s) as server:
        words = ("--base", server.base(), "--sessions", sessions, "--spread", period_s, "--seconds", PERIODS * period_s)
        told = told_by(run.c("held_usher", *words), timeout_s=(1 + PERIODS) * period_s + 120)
        server.stop()  # so that nginx writes its buffered log lines
        with server.log.open(encoding="ascii") as lines:
            return told, lateness_by_server(lines, period_s, told["until"])


def row(name: str, told: dict[str, Any], late: Sequence[float], server_late: Sequence[float]) -> list[str]:
    cells = [
        name,
        f"{told['allocated'] / told['sessions']:,.0f}",
        f"{told['resident_kb'] * 1024 / told['sessions']:,.0f}",
        f"{told['allocated_end'] / told['sessions']:,.0f}",
        f"{len(late):,}",
    ]
    for figures in (late, server_late):
        cells.append(
            " / ".join(f"{value:,.0f}" for value in (percentile(figures, 0.5), percentile(figures, 0.99), figures[-1]))
        )
        cells.append(f"{sum(value > LATE_MS for value in figures):,}")
    return [*cells, f"{told['cpu_ns'] / max(1, len(late)) / 1000:,.1f}"]


def hold_in_python(run: Run) -> Section:
    """Measures how much of a processor core a Python process needs for many playbacks."""
    sessions, period_s = (200, 1) if run.quick else (10_000, PYTHON_PERIOD_S)
    os.environ["USHER_LIBRARY"] = str(run.library)
    rows, goals = [], []
    for name, (every, slack) in PUMPING.items():
        with Server(period_s=period_s) as server:
            words = ("--base", server.base(), "--sessions", sessions, "--spread", period_s, "--every", every)
            seconds = ("--slack", slack, "--seconds", PERIODS * period_s)
            command = [sys.executable, PYTHON / "held_usher.py", *words, *seconds]
            told = told_by([*map(str, command)], timeout_s=(1 + PERIODS) * period_s + 120)
        if told["active"] != sessions or told["errors"]:
            raise RuntimeError(f"{told['active']} of {sessions} sessions active at the end: {told['errors']}")
        late = sorted(float(ms) for ms, count in told["late_ms"].items() for _ in range(count))
        core = 100 * told["cpu_ns"] / told["wall_ns"]
        most_late = f"{percentile(late, 0.5):,.0f} / {percentile(late, 0.99):,.0f} / {late[-1]:,.0f}"
        per_beat = told["cpu_ns"] / len(late) / 1000
        rows.append([f"{sessions:,} playbacks, pumped {name}", f"{core:.1f}", f"{per_beat:.1f}", most_late])
        goals.append(Goal(f"{sessions:,} playbacks in Python, pumped {name}: share of a core", core, 8, "%"))
        too_late = sum(value > PYTHON_LATE_MS for value in late)
        goals.append(Goal(f"pumped {name}: beats later than {PYTHON_LATE_MS} ms", too_late, 0, "beats"))
    header = ["", "% of a core", "CPU µs per beat", "late ms p50 / p99 / most"]
    return Section("Many playbacks held by Python", PYTHON_WORDS, header, rows, goals)


def measure(run: Run) -> list[Section]:
    rows, goals, curves = [], [], {}
    for sessions in (200,) if run.quick else (50_000, 100_000):
        told, server_late = hold(run, sessions, 1 if run.quick else PERIOD_S)
        if told["active"] != sessions or told["errors"]:
            raise RuntimeError(f"{told['active']} of {sessions} sessions active at the end, {told['errors']} errors")
        late = sorted(float(ms) for ms, count in told["late_ms"].items() for _ in range(count))
        name = f"{sessions:,} playbacks"
        rows.append(row(name, told, late, server_late))
        curves[name] = late
        goals += [
            Goal(
                f"{name}: bytes per idle playback, beside {TOKENS} of tokens",
                told["allocated"] / sessions - TOKENS,
                800,
                "bytes",
            ),
            Goal(
                f"{name}: beats later than {LATE_MS} ms, by the server's log",
                sum(value > LATE_MS for value in server_late),
                0,
                "beats",
            ),
        ]
    lateness = ("late ms p50 / p99 / most", f"> {LATE_MS} ms", "the same by the server's log", f"> {LATE_MS} ms")
    header = [
        "",
        "bytes each, malloc",
        "bytes each, resident",
        "malloc, at the end",
        "beats",
        *lateness,
        "CPU µs per beat",
    ]
    section = Section("Many playbacks held", WORDS, header, rows, goals)
    if run.pictures and curves:
        plots.lateness(run.pictures / "lateness.svg", curves)
        section.picture = "lateness.svg"
    return [section, hold_in_python(run)]
