"""Measures what the guardian costs a heartbeat: the host writes a recovery record for each new token."""

from __future__ import annotations

from heartbeats import ALL, OURS, QUICK, SIXTY_FOUR
from measure import Goal, Program, Run, in_turns, ratio, spread
from report import Section
from server import Server

GUARDED = "libusher, with a guardian"
LOADS = (SIXTY_FOUR, ALL)
MOST = 1.02
TURNS = 800
"""The number of turns of each program; in a turn each session sends one heartbeat."""


def measure(run: Run) -> list[Section]:
    rows, goals = [], []
    with Server() as server:
        for load in QUICK[1:2] if run.quick else LOADS:
            base = ("--base", server.base(), "--sessions", load.sessions, "--warm-up", 3)
            plain = Program(OURS, run.c_for_small_differences("beats_usher", *base))
            guarded = Program(GUARDED, run.c_for_small_differences("beats_usher", *base, "--variant", 4))
            in_turns([plain, guarded], 2 if run.quick else TURNS, 1)
            against = ratio(guarded.cpu_us, plain.cpu_us)
            for program in (plain, guarded):
                rows.append([f"{load.title}: {program.name}", spread(program.cpu_us).text(), ""])
            rows[-1][-1] = against.text(2)
            goals.append(Goal(f"{load.title}: CPU per heartbeat, with / without a guardian", against.median, MOST))
    words = """\
The difference is small, so both programs run at the same time and play their rounds in turns; each ratio compares two
rounds that follow one another. `malloc()` keeps its memory in these runs (`MALLOC_TRIM_THRESHOLD_`), because giving it
back costs more than the guardian."""
    return [Section("Guardian", words, ["", "CPU µs per beat", "with / without"], rows, goals)]
