"""The tables as Markdown."""

from __future__ import annotations

import datetime
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measure import Goal


@dataclass
class Section:
    """One table, what stands before it, and the goals it decides."""

    title: str
    words: str
    header: list[str]
    rows: list[list[str]]
    goals: list[Goal] = field(default_factory=list)
    picture: str = ""

    def text(self) -> str:
        lines = [f"## {self.title}", ""]
        if self.words:
            lines += [self.words, ""]
        if self.picture:
            lines += [f"![{self.title}](plots/{self.picture})", ""]
        lines += [row(self.header), row(["---"] * len(self.header)), *map(row, self.rows), ""]
        return "\n".join(lines)


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """Processor, cores, memory, system."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    memory = re.search(r"^MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"), re.M)
    kind = cpu.group(1) if cpu else platform.machine()
    size = int(memory.group(1)) / (1 << 20) if memory else 0
    return f"{kind}, {os.cpu_count()} cores, {size:.0f} GiB, Linux {platform.release()}"


def text(sections: Sequence[Section], command: str, loads: Sequence[float], repetitions: int) -> str:
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    lines = ["# Results", "", f"Made by `{command}`; how, says [README.md](README.md).", ""]
    lines += [row(["", ""]), row(["---", "---"]), row(["machine", machine()]), row(["when", when])]
    lines += [row(["load average of the machine meanwhile", f"{min(loads):.1f} to {max(loads):.1f}"])]
    lines += [row(["repetitions", f"{repetitions}, interleaved; medians, in brackets the quartiles; ratios are those of runs side by side"]), ""]
    goals = [goal for section in sections for goal in section.goals]
    lines += ["## Goals", "", row(["", "goal", "measured", ""]), row(["---"] * 4), *(row(goal.cells()) for goal in goals), ""]
    return "\n".join(lines) + "\n" + "\n".join(section.text() for section in sections)
