"""Counts the instructions and system calls of a heartbeat. These figures do not depend on other work of the machine."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import hotpath
from heartbeats import EASY, MULTI, OURS
from measure import PYTHON, Goal, Run
from report import Section
from server import Server

PACE = 100
WORDS = f"""\
Instructions in user space, by valgrind's callgrind. [PROFILE.md](PROFILE.md) shows them by function. {hotpath.SESSIONS}
sessions have heartbeats that are due at once; plain C with libcurl easy sends them one after another."""
CALLS_WORDS = f"""\
System calls per heartbeat with {PACE} heartbeats a second on the real clock. strace counts them, and makes the programs
slower. The last column has all others."""
NAMED = ("sendto", "recvfrom", "poll", "epoll_wait", "clock_nanosleep", "timerfd_settime", "futex", "read", "write")


def instructions(run: Run, server: Server) -> Section:
    words = ("--base", server.base(), "--sessions", hotpath.SESSIONS, "--warm-up", 1)
    programs = {EASY: "beats_easy", MULTI: "beats_multi", OURS: "beats_usher"}
    rounds = (1, 2) if run.quick else hotpath.ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: hotpath.cost_of_beat(run.c(program, *words), Path(folder), rounds)
            for name, program in programs.items()
        }
    bare = found[MULTI].total
    rows = [[name, f"{cost.total:,.0f}", f"{cost.total / bare:.3f}"] for name, cost in found.items()]
    goals = [Goal(f"instructions per heartbeat, libusher / {MULTI}", found[OURS].total / bare, 1.05)]
    return Section("Instructions per heartbeat", WORDS, ["", "instructions", f"/ {MULTI}"], rows, goals)


def system_calls(run: Run) -> Section:
    few, many = (1, 2) if run.quick else (2, 12)
    with Server(period_s=1) as server:
        base = ("--base", server.base(), "--pace", PACE, "--sessions", PACE, "--warm-up", 0)
        script = [sys.executable, *map(str, (PYTHON / "beats_requests.py", *base, "--in-flight", 1))]
        programs = {
            EASY: (run.c("beats_easy", *base), "--rounds"),
            MULTI: (run.c("beats_multi", *base, "--in-flight", 1), "--rounds"),
            OURS: (run.c("held_usher", *base, "--spread", 1, "--variant", 1), "--seconds"),
            "Python requests": (script, "--rounds"),
        }
        rows = []
        for name, (command, option) in programs.items():
            calls = hotpath.calls_between(command, option, (few, many), PACE)
            cells = [f"{calls[call]:.2f}" if calls.get(call, 0) >= 0.005 else "" for call in NAMED]
            others = sum(count for call, count in calls.items() if call not in NAMED)
            rows.append([name, f"{sum(calls.values()):.1f}", *cells, f"{others:.2f}"])
    return Section("System calls per heartbeat", CALLS_WORDS, ["", "all", *NAMED, "others"], rows)


def measure(run: Run) -> list[Section]:
    with Server() as server:
        sections = [instructions(run, server)]
    return [*sections, system_calls(run)]
