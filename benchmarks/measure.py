"""Runs programs in turn, and summarises their figures: medians, quartiles, and ratios between runs of the same
round."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTHON = Path(__file__).resolve().parent / "python"
"""The folder of the Python programs."""


@dataclass(frozen=True)
class Run:
    """The settings of a benchmark run."""

    programs: Path
    """Folder of the C programs."""
    library: Path
    """The libusher.so with which the C programs are linked."""
    repetitions: int
    quick: bool
    """Whether the run only checks that everything works; if so, its figures are not valid."""
    bounds: tuple[int, ...]
    """The values of `requests_per_origin_max` to compare; 0 means the library's default."""
    pictures: Path | None
    """The folder in which to write the plots; None: write no plots."""

    def c(self, name: str, *options: object) -> list[str]:
        return [str(self.programs / name), *map(str, options)]

    def c_for_small_differences(self, name: str, *options: object) -> list[str]:
        """Returns the command of `c`, with a setting that makes malloc() of glibc keep its memory. Use this method for
        programs whose figures differ by little. Without the setting, malloc() gives memory back to the system
        after some bursts of requests, in one run more often than in another. This costs up to 5 % of a heartbeat."""
        return ["env", f"MALLOC_TRIM_THRESHOLD_={2**30}", *self.c(name, *options)]


def told_by(command: Sequence[str], timeout_s: float = 120) -> dict[str, Any]:
    """Runs the program. Returns the last line of its output, which is JSON."""
    paths = {"PYTHONPATH": str(ROOT / "bindings" / "python" / "src")}
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=os.environ | paths,
        check=False,
    )
    if ended.returncode or ended.stderr:
        raise RuntimeError(f"{' '.join(command)}: exit code {ended.returncode}: {ended.stderr.strip()}")
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@dataclass
class Program:
    """One program in the comparison; it prints `operations`, `cpu_ns`, `wall_ns` and `waits`."""

    name: str
    command: list[str]
    cpu_us: list[float] = field(default_factory=list)
    """The CPU time in microseconds per operation, one value for each round. `wall_us` has the real time in the same
    form."""
    wall_us: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """How many times a thread of the program went to sleep, per operation, one value for each round."""

    def run(self) -> None:
        self.add(told_by(self.command))

    def add(self, told: dict[str, Any]) -> None:
        self.cpu_us.append(told["cpu_ns"] / told["operations"] / 1000)
        self.wall_us.append(told["wall_ns"] / told["operations"] / 1000)
        self.waits.append(told["waits"] / told["operations"])


def interleaved(programs: Sequence[Program], repetitions: int) -> None:
    """Runs the programs as a, b, c, b, c, a ..., so that other work on the machine affects all of them, and none always
    runs first."""
    for repetition in range(repetitions):
        first = repetition % len(programs)
        for program in [*programs[first:], *programs[:first]]:
            program.run()


def in_turns(programs: Sequence[Program], turns: int, rounds: int) -> None:
    """Starts all programs with `--turns`, and lets one at a time play a turn of `rounds` rounds: a, b, c, b, c, a ....
    A turn takes some hundredths of a second. So other work on the machine affects all programs, and differences of one
    per cent can be seen. A program answers its first turn only after it has started and warmed up."""
    more = ["--turns", str(rounds), "--rounds", str(turns * rounds)]
    with contextlib.ExitStack() as ending:
        running = []
        for program in programs:
            process = ending.enter_context(
                subprocess.Popen(
                    [*program.command, *more],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    bufsize=1,
                )
            )
            ending.callback(process.kill)
            running.append((program, process))
        for number in range(turns):
            first = number % len(running)
            for program, process in [*running[first:], *running[:first]]:
                assert process.stdin and process.stdout and process.stderr
                process.stdin.write(".")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"{' '.join(program.command)}: {process.stderr.read().strip()}")
                program.add(json.loads(line))
        for program, process in running:
            if process.wait(60):
                raise RuntimeError(f"{' '.join(program.command)}: exit code {process.returncode}")


@dataclass(frozen=True)
class Spread:
    """A median and its quartiles."""

    median: float
    low: float
    high: float

    def text(self, digits: int = 1) -> str:
        if self.low == self.high:
            return f"{self.median:,.{digits}f}"
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f}–{self.high:,.{digits}f})"  # noqa: RUF001


def spread(values: Sequence[float]) -> Spread:
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def ratio(ours: Sequence[float], base: Sequence[float]) -> Spread:
    """Returns the median and quartiles of the ratio ours / base. Each ratio compares two runs of the same round."""
    return spread([mine / theirs for mine, theirs in zip(ours, base, strict=True)])


@dataclass(frozen=True)
class Goal:
    """A goal for a measured value: at most `bound`, or at least `bound` if `at_least` is set."""

    words: str
    measured: float
    bound: float
    unit: str = "×"  # noqa: RUF001
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def cells(self) -> list[str]:
        digits = 2 if self.measured < 100 else 0
        sign = "≥" if self.at_least else "≤"
        return [
            self.words,
            f"{sign} {self.bound:,g} {self.unit}",
            f"{self.measured:,.{digits}f} {self.unit}",
            "met" if self.is_met else "**missed**",
        ]
