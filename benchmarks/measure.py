"""Running programs in turn, and what their figures come to: medians, quartiles, ratios of runs that were neighbours."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Program:
    """One contestant: its command prints a line of JSON with `operations`, `cpu_ns`, `wall_ns`."""

    name: str
    command: list[str]
    cpu_us: list[float] = field(default_factory=list)
    """Per operation, one for each repetition."""
    wall_us: list[float] = field(default_factory=list)

    def run(self, timeout_s: float = 120) -> dict[str, float]:
        ended = subprocess.run(self.command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False)
        if ended.returncode:
            raise RuntimeError(f"{' '.join(self.command)}: exit code {ended.returncode}: {ended.stderr.strip()}")
        told: dict[str, float] = json.loads(ended.stdout)
        return told


def interleaved(programs: Sequence[Program], repetitions: int) -> None:
    """a, b, c, a, b, c ...: what else the machine does meets all of them."""
    for _ in range(repetitions):
        for program in programs:
            told = program.run()
            program.cpu_us.append(told["cpu_ns"] / told["operations"] / 1000)
            program.wall_us.append(told["wall_ns"] / told["operations"] / 1000)


@dataclass(frozen=True)
class Spread:
    """A median between its quartiles."""

    median: float
    low: float
    high: float

    def text(self, digits: int = 1) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


def spread(values: Sequence[float]) -> Spread:
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def ratio(ours: Sequence[float], base: Sequence[float]) -> Spread:
    """Of each repetition, since its runs stood side by side; then the median of those."""
    return spread([mine / theirs for mine, theirs in zip(ours, base, strict=True)])


@dataclass(frozen=True)
class Goal:
    """A bound, and what was measured against it."""

    words: str
    measured: float
    most: float
    unit: str = "x"

    @property
    def is_met(self) -> bool:
        return self.measured <= self.most

    def text(self) -> str:
        return f"| {self.words} | ≤ {self.most:g} {self.unit} | {self.measured:.2f} {self.unit} | {'met' if self.is_met else '**missed**'} |"
