"""CPU and wall time per heartbeat: libusher beside plain C over libcurl and beside Python."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from measure import Goal, Program, interleaved, ratio, spread
from report import Section
from server import Server

PYTHON = Path(__file__).parent / "python"
EASY, MULTI, REQUESTS, AIOHTTP = "C, libcurl easy", "C, libcurl multi and epoll", "Python requests", "Python aiohttp"
OURS, OBSERVED, PUMPED = "libusher", "libusher, observer on callback threads", "libusher, observer pumped"


@dataclass(frozen=True)
class Load:
    """How many sessions are due at once, and how many requests may be under way."""

    title: str
    sessions: int
    in_flight: int
    rounds: int
    python_rounds: int


LOADS = (Load("1 in flight", 200, 1, 50, 5), Load("64 in flight", 64, 64, 150, 15), Load("1,000 due at once", 1000, 0, 10, 1))
QUICK = (Load("1 in flight", 20, 1, 3, 1), Load("64 in flight", 64, 64, 3, 1), Load("1,000 due at once", 1000, 0, 1, 1))


def contestants(programs: Path, server: Server, load: Load, *, ca: str | None = None, path: str = "") -> dict[str, Program]:
    def options(rounds: int, in_flight: int, variant: int | None = None) -> list[str]:
        told = ["--base", server.base(path), "--sessions", load.sessions, "--rounds", rounds, "--in-flight", in_flight, "--warm-up", min(2, rounds)]
        told += [] if ca is None else ["--ca", ca]
        told += [] if variant is None else ["--variant", variant]
        return [str(word) for word in told]

    def c(name: str, in_flight: int, variant: int | None = None) -> list[str]:
        return [str(programs / name), *options(load.rounds, in_flight, variant)]

    def python(name: str) -> list[str]:
        return [sys.executable, str(PYTHON / name), *options(load.python_rounds, load.in_flight or 64)]

    found = [Program(EASY, c("beats_easy", 0)), Program(MULTI, c("beats_multi", load.in_flight))]
    if not load.in_flight:
        found.append(Program(f"{MULTI}, 64 at once", c("beats_multi", 64)))
    bound = load.in_flight if load.in_flight == 1 else 0  # the library's own, where it may
    found += [Program(OURS, c("beats_usher", bound, 0)), Program(OBSERVED, c("beats_usher", bound, 1)), Program(PUMPED, c("beats_usher", bound, 2))]
    found += [Program(REQUESTS, python("beats_requests.py")), Program(AIOHTTP, python("beats_aiohttp.py"))]
    return {program.name: program for program in found}


def goals(load: Load, found: dict[str, Program]) -> list[Goal]:
    def cpu(base: str) -> float:
        return ratio(found[OURS].cpu_us, found[base].cpu_us).median

    bound = {"1 in flight": (EASY, 1.10), "64 in flight": (MULTI, 1.15), "1,000 due at once": (EASY, 1.0)}
    base, most = bound[load.title]
    return [Goal(f"{load.title}: CPU against {base}", cpu(base), most), Goal(f"{load.title}: CPU against {REQUESTS}", cpu(REQUESTS), 1 / 20)]


def measure(programs: Path, repetitions: int, quick: bool) -> list[Section]:
    sections = []
    with Server() as server:
        for load in QUICK if quick else LOADS:
            found = contestants(programs, server, load)
            interleaved(list(found.values()), repetitions)
            rows = [
                [
                    name,
                    spread(program.cpu_us).text(),
                    spread(program.wall_us).text(),
                    ratio(program.cpu_us, found[EASY].cpu_us).text(2),
                    ratio(program.cpu_us, found[MULTI].cpu_us).text(2),
                ]
                for name, program in found.items()
            ]
            header = ["", "CPU µs per beat", "wall µs per beat", "CPU / easy", "CPU / multi"]
            sections.append(Section(f"Heartbeats, {load.title}", "", header, rows, goals(load, found)))
    return sections
