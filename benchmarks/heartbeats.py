"""Measures the CPU time and real time per heartbeat of libusher, of plain C programs with libcurl, and of Python
programs."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import plots
from measure import Goal, Program, Run, in_turns, interleaved, ratio, spread
from report import Section
from server import Server

PYTHON = Path(__file__).parent / "python"
EASY, MULTI, REQUESTS, AIOHTTP = "C, libcurl easy", "C, libcurl multi + epoll", "Python requests", "Python aiohttp"
JOURNAL_CLEAR, JOURNAL_KEY = "libusher, journal in clear", "libusher, journal encrypted"
OURS, OBSERVED, PUMPED = "libusher", "libusher, observer on callback threads", "libusher, observer pumped"


@dataclass(frozen=True)
class Load:
    """How many sessions have heartbeats that are due at once, how many requests may be in flight (0: all), and how many
    rounds the programs in C and in Python play."""

    title: str
    key: str
    sessions: int
    in_flight: int
    rounds: int
    python_rounds: int


STEPPED, IN_FLIGHT, AT_ONCE = "virtual time: one heartbeat stepped", "64 in flight", "1,000 due at once"
ONE, SIXTY_FOUR, ALL = (
    Load(STEPPED, "1", 200, 1, 50, 5),
    Load(IN_FLIGHT, "64", 640, 64, 15, 2),
    Load(AT_ONCE, "1000", 1000, 0, 10, 1),
)
LOADS = (ONE, SIXTY_FOUR, ALL)
QUICK = (
    Load(STEPPED, "1", 20, 1, 2, 1),
    Load(IN_FLIGHT, "64", 80, 64, 1, 1),
    Load(AT_ONCE, "1000", 1000, 0, 1, 1),
)
WORDS = {
    STEPPED: """\
A test moves the manual clock from one heartbeat to the next, and waits for it. In each step the host's thread and the
I/O thread wait for each other once; a host on the real clock has no such step (next two tables).""",
}
PACES = (100, 1000)
WITH_TLS = (
    ("https", "TLS", "HTTP/1.1 over TLS 1.3."),
    ("http2", "HTTP/2", "HTTP/2 over TLS 1.3. The Python clients do not support HTTP/2 and use HTTP/1.1."),
)
GOALS = {STEPPED: (EASY, 1.5), IN_FLIGHT: (MULTI, 0.9), AT_ONCE: (MULTI, 0.5)}
PACED_GOAL = 1.0


def contestants(run: Run, server: Server, load: Load, scheme: str = "http") -> dict[str, Program]:
    base = (
        "--base",
        server.base(scheme=scheme),
        "--ca",
        server.ca,
        "--sessions",
        load.sessions,
        "--warm-up",
        1 if run.quick else 2,
    )

    def c(name: str, in_flight: int, *more: object) -> list[str]:
        return run.c(name, *base, "--rounds", load.rounds, "--in-flight", in_flight, *more)

    def python(name: str) -> list[str]:
        words = (PYTHON / name, *base, "--rounds", load.python_rounds, "--in-flight", load.in_flight or 64)
        return [sys.executable, *map(str, words)]

    found = [Program(EASY, c("beats_easy", 0)), Program(MULTI, c("beats_multi", load.in_flight))]
    if not load.in_flight:
        found.append(Program(f"{MULTI}, 64 at once", c("beats_multi", 64)))
    own = 1 if load.in_flight == 1 else 0  # 0: the library's own limit
    found.append(Program(OURS, c("beats_usher", own)))
    if scheme == "http":
        found += [
            Program(OBSERVED, c("beats_usher", own, "--variant", 1)),
            Program(PUMPED, c("beats_usher", own, "--variant", 2)),
        ]
    found.append(Program(REQUESTS, python("beats_requests.py")))
    found.append(Program(AIOHTTP, python("beats_aiohttp.py")))
    return {program.name: program for program in found}


def goals(load: Load, found: dict[str, Program]) -> list[Goal]:
    base, most = GOALS[load.title]
    against_base = ratio(found[OURS].cpu_us, found[base].cpu_us).median
    times_less = ratio(found[REQUESTS].cpu_us, found[OURS].cpu_us).median
    return [
        Goal(f"{load.title}: CPU per heartbeat, libusher / {base}", against_base, most),
        Goal(f"{load.title}: CPU per heartbeat, {REQUESTS} / libusher", times_less, 20, at_least=True),
    ]


def table(title: str, words: str, found: dict[str, Program]) -> Section:
    header = ["", "CPU µs per beat", "wall µs per beat", "CPU / easy", "CPU / multi", "CPU / requests"]
    rows = [
        [name, spread(program.cpu_us).text(), spread(program.wall_us).text()]
        + [
            ratio(program.cpu_us, found[base].cpu_us).text(2 if base != REQUESTS else 3)
            for base in (EASY, MULTI, REQUESTS)
        ]
        for name, program in found.items()
    ]
    return Section(title, words, header, rows)


def measure_paced(run: Run, server: Server, pace: int) -> Section:
    """Measures heartbeats at equal intervals on the real clock, one in flight: what a heartbeat costs a host."""
    seconds = 1 if run.quick else 4
    base = ("--base", server.base(), "--pace", pace, "--sessions", pace)
    rounds = (*base, "--rounds", seconds, "--warm-up", 0)
    held = (*base, "--spread", 1, "--seconds", seconds)

    def python(name: str) -> list[str]:
        words = (PYTHON / name, *base, "--in-flight", 1, "--rounds", seconds, "--warm-up", 0)
        return [sys.executable, *map(str, words)]

    found = [
        Program(EASY, run.c("beats_easy", *rounds)),
        Program(MULTI, run.c("beats_multi", *rounds, "--in-flight", 1)),
        Program(OURS, run.c("held_usher", *held, "--variant", 1)),
        Program(OBSERVED, run.c("held_usher", *held)),
        Program(REQUESTS, python("beats_requests.py")),
        Program(AIOHTTP, python("beats_aiohttp.py")),
    ]
    interleaved(found, run.repetitions)
    by_name = {program.name: program for program in found}
    rows = [
        [
            name,
            spread(program.cpu_us).text(),
            *(ratio(program.cpu_us, by_name[base].cpu_us).text(2) for base in (EASY, MULTI)),
            spread(program.waits).text(2),
        ]
        for name, program in by_name.items()
    ]
    words = "At equal intervals, one in flight. *Sleeps*: how often a thread of the process goes to sleep."
    title = f"Heartbeats on the real clock: {pace:,} a second"
    against = ratio(by_name[OURS].cpu_us, by_name[EASY].cpu_us).median
    goal = Goal(f"real clock, {pace:,} a second: CPU per heartbeat, libusher / {EASY}", against, PACED_GOAL)
    return Section(title, words, ["", "CPU µs per beat", "CPU / easy", "CPU / multi", "sleeps per beat"], rows, [goal])


def measure_journal(run: Run) -> list[Section]:
    """Measures what the journal costs. There are as many sessions as one page of the journal has slots. The library
    calls fdatasync() once a second; the warm-up lasts until the first call has written the file to the disk."""
    turns, warm_up = (2, 2) if run.quick else (800, 600)
    # The journal is in the build folder. The usual folder for temporary files may be in memory; then fdatasync() would
    # write nothing to a disk.
    with Server() as server, tempfile.TemporaryDirectory(dir=run.programs) as folder:
        base = ("--base", server.base(), "--sessions", 64, "--warm-up", warm_up)
        journal = ("--journal", Path(folder) / "journal")
        found = [
            Program(OURS, run.c_for_small_differences("beats_usher", *base)),
            Program(JOURNAL_CLEAR, run.c_for_small_differences("beats_usher", *base, *journal)),
            Program(JOURNAL_KEY, run.c_for_small_differences("beats_usher", *base, *journal, "--variant", 3)),
        ]
        in_turns(found, turns, 10)
    ratios = {program.name: ratio(program.cpu_us, found[0].cpu_us) for program in found}
    rows = [
        [program.name, spread(program.cpu_us).text(), spread(program.wall_us).text(), ratios[program.name].text(2)]
        for program in found
    ]
    words = """\
64 sessions, all due at once; each heartbeat replaces the record of its session in the journal. As with the guardian,
the programs run at the same time and play ten rounds in a turn, and `malloc()` keeps its memory."""
    section = Section("Journal", words, ["", "CPU µs per beat", "wall µs per beat", "CPU / without"], rows)
    section.goals = [
        Goal(f"64 sessions: CPU per heartbeat, {name} / libusher", ratios[name].median, 1.10)
        for name in (JOURNAL_CLEAR, JOURNAL_KEY)
    ]
    return [section]


def measure(run: Run) -> list[Section]:
    """Measures heartbeats over plain HTTP, with one table of results for each load."""
    sections = []
    with Server() as server:
        for load in QUICK if run.quick else LOADS:
            found = contestants(run, server, load)
            interleaved(list(found.values()), run.repetitions)
            section = table(f"Heartbeats: {load.title}", WORDS.get(load.title, ""), found)
            section.goals = goals(load, found)
            sections.append(section)
            if run.pictures:
                section.picture = f"beats-{load.key}.svg"
                figures = {name: spread(program.cpu_us) for name, program in found.items()}
                plots.beats(run.pictures / section.picture, f"CPU per heartbeat, {load.title}", figures)
    with Server(period_s=1) as server:
        sections += [measure_paced(run, server, pace) for pace in PACES]
    return sections


def measure_tls(run: Run) -> list[Section]:
    """Measures heartbeats over TLS, with HTTP/1.1 and HTTP/2."""
    sections = []
    with Server() as server:
        for scheme, name, words in WITH_TLS:
            for load in QUICK[:2] if run.quick else (ONE, SIXTY_FOUR):
                found = contestants(run, server, load, scheme)
                interleaved(list(found.values()), run.repetitions)
                sections.append(table(f"Heartbeats over {name}: {load.title}", words, found))
    return sections
