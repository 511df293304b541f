"""Measures heartbeats per second with a slow server, for several limits on requests in flight."""

from __future__ import annotations

import sys

import plots
from heartbeats import AIOHTTP, EASY, MULTI, OURS, PYTHON, REQUESTS
from measure import Program, Run, interleaved, spread
from report import Section
from server import Server

DELAYS_MS = (0, 50, 200)
PEER_BOUNDS = (64, 1000)


def name(who: str, bound: int) -> str:
    return f"{who}, {bound} in flight" if bound else f"{who}, its default"


def contestants(run: Run, server: Server, delay_ms: int) -> list[Program]:
    """Returns the programs to compare.

    In each program, the heartbeats of all sessions are due at once, so the program always has as many requests in
    flight as its limit allows.
    """
    base = ("--base", server.base(f"/beats-{delay_ms}" if delay_ms else ""), "--rounds", 1, "--warm-up", 1)

    def sessions(bound: int) -> int:
        return 20 if run.quick else 2000 if not delay_ms else min(2000, 8 * bound)

    found = [Program(EASY, run.c("beats_easy", *base, "--sessions", 5 if delay_ms else sessions(1)))]
    for bound in PEER_BOUNDS[:1] if run.quick else PEER_BOUNDS:
        found.append(
            Program(
                name(MULTI, bound), run.c("beats_multi", *base, "--sessions", sessions(bound), "--in-flight", bound)
            )
        )
    for bound in run.bounds:
        found.append(
            Program(
                name(OURS, bound),
                run.c("beats_usher", *base, "--sessions", sessions(bound or 1000), "--in-flight", bound),
            )
        )
    for who, script in ((REQUESTS, "beats_requests.py"), (AIOHTTP, "beats_aiohttp.py")):
        words = (PYTHON / script, *base, "--sessions", min(sessions(64), 500), "--in-flight", 64)
        found.append(Program(name(who, 64), [sys.executable, *map(str, words)]))
    return found


def measure(run: Run) -> list[Section]:
    sections = []
    rates: dict[int, dict[str, float]] = {}
    with Server() as server:
        for delay_ms in DELAYS_MS[:2] if run.quick else DELAYS_MS:
            found = contestants(run, server, delay_ms)
            interleaved(found, run.repetitions)
            rows = []
            for program in found:
                rate = spread([1e6 / wall for wall in program.wall_us])
                rates.setdefault(delay_ms, {})[program.name] = rate.median
                rows.append([program.name, rate.text(0), spread(program.cpu_us).text()])
            words = f"The server answers after {delay_ms} ms." if delay_ms else "The server answers at once."
            words += " At every moment more heartbeats are due than may be\n"
            words += "in flight; the others wait in the queue, for a shorter time if the rate is higher."
            sections.append(
                Section(
                    f"Beats per second, delay {delay_ms} ms", words, ["", "beats per second", "CPU µs per beat"], rows
                )
            )
    if run.pictures:
        plots.rates(run.pictures / "rates.svg", rates)
        sections[-1].picture = "rates.svg"
    return sections
