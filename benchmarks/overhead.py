"""Measures the library's fixed costs: loading, size, calls through the C interface."""

from __future__ import annotations

import os
import sys

from measure import PYTHON, Goal, Program, Run, interleaved, spread, told_by
from report import Section
from server import Server

CALLS = {
    "nothing": "an empty function",
    "version": "usher_version()",
    "state": "usher_playback_session_state()",
    "stale": "the same with a stale handle: refused",
    "callback": "an event passed to an observer, pumped",
}


def measure_loading(run: Run) -> Section:
    curl = Program("libcurl", run.c("load_time", "libcurl.so.4"))
    ours = Program("libusher", run.c("load_time", "libcurl.so.4", "libjson-c.so.5", run.library))
    interleaved([curl, ours], run.repetitions if run.quick else 3 * run.repetitions)
    rows = [
        ["dlopen of libusher, libcurl and json-c being loaded, ms", spread([us / 1000 for us in ours.wall_us]).text(3)],
        ["dlopen of libcurl by itself, ms", spread([us / 1000 for us in curl.wall_us]).text(3)],
        ["size of libusher.so, stripped, bytes", f"{run.library.stat().st_size:,}"],
    ]
    goals = [
        Goal("dlopen beyond libcurl's own", spread(ours.wall_us).median / 1000, 0.3, "ms"),
        Goal("size, stripped", run.library.stat().st_size / 1000, 680, "kB"),
    ]
    return Section("Loading and size", "", ["", ""], rows, goals)


def measure_calls(run: Run) -> Section:
    found: dict[str, dict[str, list[float]]] = {"C": {}, "Python": {}}
    with Server() as server:
        base = ("--base", server.base(), "--sessions", 50 if run.quick else 1000, "--rounds")
        commands = {
            "C": run.c("calls_usher", *base, 1 if run.quick else 1000),
            "Python": [sys.executable, *map(str, (PYTHON / "calls_usher.py", *base, 1 if run.quick else 100))],
        }
        os.environ["USHER_LIBRARY"] = str(run.library)
        for _ in range(run.repetitions):
            for language, command in commands.items():
                for name, ns in told_by(command).items():
                    found[language].setdefault(name, []).append(ns)
    rows = [
        [words, *(spread(told[name]).text(0) if name in told else "" for told in found.values())]
        for name, words in CALLS.items()
    ]
    event_us = spread(found["Python"]["callback"]).median / 1000
    goals = [Goal("an event passed to an observer in Python", event_us, 2, "µs")]
    return Section("Crossing the interface", "CPU time of one call, in nanoseconds.", ["", *found], rows, goals)


def measure(run: Run) -> list[Section]:
    return [measure_loading(run), measure_calls(run)]
