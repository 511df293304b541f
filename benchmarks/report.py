"""Stores the results of each part as JSON, and writes the results of all parts as Markdown."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from measure import ROOT, Goal


@dataclass
class Section:
    """One table, the text before it, and the goals that its figures must meet."""

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
        return "\n".join([*lines, *table(self.header, self.rows), ""])


@dataclass
class Part:
    """The results of one part of the benchmarks. `make bench` can run each part alone."""

    name: str
    when: str
    machine: str
    revision: str
    repetitions: int
    load: tuple[float, float]
    """The load average of the machine before and after the run."""
    sections: list[Section]

    def store(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.json").write_text(
            json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def stored(folder: Path, name: str) -> Part | None:
    file = folder / f"{name}.json"
    if not file.exists():
        return None
    told = json.loads(file.read_text(encoding="utf-8"))
    told["sections"] = [
        Section(**{**section, "goals": [Goal(**goal) for goal in section["goals"]]}) for section in told["sections"]
    ]
    return Part(**told)


def measured(name: str, sections: list[Section], repetitions: int, load_before: float) -> Part:
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return Part(name, when, machine(), revision(), repetitions, (load_before, os.getloadavg()[0]), sections)


def machine() -> str:
    """Returns a description of the machine: processor, cores, memory, system, libcurl."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    memory = re.search(r"^MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"), re.M)
    kind = cpu.group(1) if cpu else platform.machine()
    size = int(memory.group(1)) / (1 << 20) if memory else 0
    return f"{kind}, {os.cpu_count()} cores, {size:.0f} GiB, Linux {platform.release().split('-')[0]}, {versions()}"


def versions() -> str:
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(encoding="utf-8"), re.M)).get(
        "PRETTY_NAME", ""
    )
    curl = subprocess.run(
        ["pkg-config", "--modversion", "libcurl"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return f"{system}, libcurl {curl}, Python {platform.python_version()}"


def revision() -> str:
    """Returns the commit of the checkout, with "+" if the library's sources have uncommitted changes."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
        ).stdout.strip()

    return (git("rev-parse", "--short=8", "HEAD") or "unknown") + (
        "+" if git("status", "--porcelain", "Sources", "include") else ""
    )


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [row(header), row(["---"] * len(header)), *map(row, rows)]


def goals(parts: Sequence[Part]) -> str:
    """The table of all goals."""
    rows = [goal.cells() for part in parts for section in part.sections for goal in section.goals]
    return "\n".join(table(["", "goal", "measured", ""], rows))


def text(parts: Sequence[Part]) -> str:
    words = (
        "`make bench` writes this page; [README.md](README.md) describes the measurement. Figures are medians with the",
        "quartiles in brackets; each ratio compares two runs of the same round.",
    )
    lines = ["# Results", "", *words, ""]
    lines += [f"Machine: {'; '.join(sorted({part.machine for part in parts}))}.", ""]
    made = [
        [
            part.name,
            part.when,
            part.revision,
            str(part.repetitions),
            f"{part.load[0]:.1f} – {part.load[1]:.1f}",  # noqa: RUF001
        ]
        for part in parts
    ]
    header = ["part", "when", "revision", "repetitions", "load average, before – after"]  # noqa: RUF001
    lines += [*table(header, made), ""]
    lines += ["## Goals", "", goals(parts), ""]
    return "\n".join(lines) + "\n" + "\n".join(section.text() for part in parts for section in part.sections)
