#!/usr/bin/env python3
"""Counts the instructions of a heartbeat with callgrind, for libusher and for plain libcurl (`make profile`).

    benchmarks/hotpath.py --programs build/bench --out benchmarks/PROFILE.md

Function names come from libusher.so.debug beside the library. callgrind counts instructions in user space. The counts
differ by only a few per cent between runs, also on a busy machine, so use them to compare two versions of the library.
strace counts system calls.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import report
from server import Server

SESSIONS = 64
ROUNDS = (10, 60)
"""The numbers of heartbeats per session in two runs. The difference between the runs is the cost of heartbeats alone,
without start and set-up."""
SHOWN = 20
WATCHDOG = "runWatchdogThread"
"""The first function of the watchdog thread. This script does not count the instructions of this thread: the thread
works only while a call of libcurl takes several milliseconds, which is rare except under valgrind."""
SYSCALLS = (
    "sendto",
    "recvfrom",
    "poll",
    "epoll_wait",
    "epoll_ctl",
    "futex",
    "write",
    "pwrite64",
    "fdatasync",
    "read",
    "timerfd_settime",
    "mprotect",
    "brk",
    "madvise",
)


Key = TypeVar("Key")


@dataclass
class Cost:
    """The instructions per heartbeat, for each object file and function."""

    by_object: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    ours: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The instructions of each function of libusher.so, without those of the functions that it calls."""
    called: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """For each function of libusher.so: the instructions of the functions that it calls in other libraries, with
    everything that these functions call."""

    @property
    def total(self) -> float:
        return sum(self.by_object.values())


# ---- callgrind's file ------------------------------------------------------------------------------------------------


def read(file: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str, str]]]:
    """Reads callgrind's output.

    Returns two mappings: for each pair (object, function) the instructions of the function itself; and for each triple
    (caller's function, callee's object, callee's function) the instructions of these calls.
    """
    names: dict[str, dict[str, str]] = {"ob": {}, "fn": {}}
    own: Counter[tuple[str, str]] = Counter()
    calls: Counter[tuple[str, str, str]] = Counter()
    at = {"ob": "", "fn": "", "cob": "", "cfn": ""}
    is_call = False
    for line in file.open(encoding="utf-8", errors="replace"):
        if found := re.match(r"(c?)(ob|fn)=(?:\((\d+)\))?(?: ?(.*))?", line):
            callee, kind, number, name = found.groups()
            if name and number:
                names[kind][number] = name.strip()
            at[callee + kind] = names[kind].get(number, name.strip())
            if kind == "fn" and not callee:
                at["cob"] = at["ob"]
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] in "+-*0123456789" and line.strip():
            cost = int(line.split()[1])
            if is_call:
                if "libusher" in at["ob"]:
                    calls[at["fn"], at["cob"], at["cfn"]] += cost
                is_call, at["cob"] = False, at["ob"]
            else:
                own[at["ob"], at["fn"]] += cost
    return own, calls


def callgrind(command: list[str], folder: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str, str]]]:
    for old in folder.iterdir():
        old.unlink()
    words = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind", "--compress-pos=no"]
    words += ["--separate-threads=yes", *command]
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=900)
    own: Counter[tuple[str, str]] = Counter()
    calls: Counter[tuple[str, str, str]] = Counter()
    for file in folder.iterdir():
        thread_own, thread_calls = read(file)
        if not any(WATCHDOG in name for _, name in thread_own):
            own.update(thread_own)
            calls.update(thread_calls)
    return own, calls


def short(path: str) -> str:
    name = re.sub(r"\.so[.\d]*$", "", Path(path).name)
    return {"ld-linux-x86-64": "loader", "": "kernel's vdso"}.get(name, name)


def cost_of_beat(command: list[str], folder: Path, rounds: tuple[int, int] = ROUNDS) -> Cost:
    few_own, few_calls = callgrind([*command, "--rounds", str(rounds[0])], folder)
    many_own, many_calls = callgrind([*command, "--rounds", str(rounds[1])], folder)
    beats = (rounds[1] - rounds[0]) * SESSIONS
    found = Cost()
    for (where, name), count in many_own.items():
        per_beat = (count - few_own[where, name]) / beats
        found.by_object[short(where)] += per_beat
        if "libusher" in where:
            found.ours[name] += per_beat
    for (caller, where, name), count in many_calls.items():
        if "libusher" not in where:
            found.called[caller, f"{short(where)}: {name}"] += (count - few_calls[caller, where, name]) / beats
    return found


# ---- names and system calls ------------------------------------------------------------------------------------------


def demangled(names: list[str]) -> dict[str, str]:
    """Returns for each Swift name the demangled and shortened name. callgrind may have added a recursion number to a
    name."""
    plain = [re.sub(r"'\d+$", "", name) for name in names]
    words = ["swift", "demangle", "--compact", "--simplified"]
    ended = subprocess.run(words, input="\n".join(plain), capture_output=True, text=True, check=True, timeout=60)
    return dict(zip(names, ended.stdout.splitlines(), strict=True))


def calls_between(command: list[str], option: str, values: tuple[int, int], beats: int) -> dict[str, float]:
    """Returns the number of system calls per heartbeat, by name, from two runs of a program.

    Args:
        option: the option that sets the length of the run.
        values: its values in the two runs. Each unit stands for `beats` heartbeats.
    """

    def counts(value: int) -> Counter[str]:
        words = ["strace", "-f", "-c", "-o", "/dev/stdout", *command, option, str(value)]
        told = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=300
        ).stdout
        return Counter(
            {
                found[2]: int(found[1])
                for found in re.finditer(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+)(?: +\d+)? +(\w+)$", told, re.M)
                if found[2] != "total"
            }
        )

    few, many = counts(values[0]), counts(values[1])
    return {name: max(0, many[name] - few[name]) / ((values[1] - values[0]) * beats) for name in many}


def syscalls(command: list[str]) -> dict[str, float]:
    """Returns the number of system calls per heartbeat, by name."""
    found = calls_between(command, "--rounds", ROUNDS, SESSIONS)
    return {name: found.get(name, 0.0) for name in SYSCALLS}


LIMITS = """\
## Goals that are not met

[RESULTS.md](RESULTS.md) has the measured figures. Each item names a goal, and says why the library does not reach this
goal. [README.md](README.md#changes-that-the-profile-led-to) lists the changes that have reduced the costs. The *bare
loop* is the C program with libcurl multi and epoll.

- **Instructions per heartbeat, at most 1.05 of the bare loop.** The difference is libusher's own code: mostly reference
  counts, then the heap of timers, and copying and wiping secrets. Three changes brought the ratio down: the library
  uses libcurl's handles again for later requests (this lowered the ratio from 1.19 to 1.07), libcurl sends the head and
  the body of a request with one system call, and a step of the session copies no state that it only reads.

- **CPU per heartbeat with 64 in flight, at most 0.90 of the bare loop.** More than nine tenths of the instructions are
  those of libcurl, json-c and libc, in both programs. The library saves two `epoll_ctl()` calls per heartbeat, because
  it tells the kernel only what has changed. This saving is about as large as the cost of the library's own code. Using
  handles again lowered the ratio from 1.08 to 0.96. With 1,000 heartbeats due at once the ratio is far lower: the bare
  loop opens a connection for each request, and the library has only 16 requests in flight to a server that replies at
  once.

- **CPU per heartbeat on the real clock, at most that of plain C.** With 100 heartbeats a second the processor's caches
  are cold at each heartbeat, and the library runs more code than the plain C program. The waits and the system calls
  were once the larger part of the difference. Now they are nearly those of the plain C program.

- **At most 800 bytes per playback beside tokens.** The object of a playback takes 600 bytes, more than half of them for
  the state of its session. Four small objects (the two handles, and the parts of player and playback that other
  threads read), the content token and its list together take 320 bytes. The tables of timers, players, playbacks and
  handles take 200 bytes, including spare places.

- **10,000 playbacks in one Python process at 8 % of a core.** These playbacks send 1,000 heartbeats a second, one by
  one. A plain C program with libcurl easy needs about as much CPU time for as many heartbeats (RESULTS.md, 1,000 a
  second on the real clock). Heartbeats take less only if the library sends several of them together; the option
  `timer_slack_ms` has this effect.
"""


# ---- the page --------------------------------------------------------------------------------------------------------


def cell(text: str) -> str:
    return "`" + text.replace("|", "\\|")[:140] + "`"


def largest(costs: Mapping[Key, float]) -> list[tuple[Key, float]]:
    return sorted(costs.items(), key=lambda item: -item[1])[:SHOWN]


def recorded_section(costs: Mapping[str, Cost]) -> report.Section:
    """Returns the table of what a heartbeat costs if the library writes a recovery record for each new token. The first
    of `costs` is the cost without records."""
    without = next(iter(costs.values())).total
    rows = []
    for name, cost in costs.items():
        counts = (cost.total, cost.by_object["libusher"], cost.by_object["libcrypto"])
        rows.append([name, *(f"{count:,.0f}" for count in counts), f"{cost.total / without:.3f}"])
    words = "Instructions per heartbeat in user space. The kernel needs some more for each write to a journal."
    columns = ["", "all", "libusher", "libcrypto", "with / without"]
    return report.Section("With a guardian or a journal", words, columns, rows)


def tables(ours: Cost, bare: Cost, calls: Mapping[str, Mapping[str, float]]) -> list[report.Section]:
    """Returns the tables without that of recovery records. `calls`: the system calls by name, for each program."""
    objects = [
        name
        for name, count in largest(dict.fromkeys(bare.by_object, 0.0) | ours.by_object)
        if count + bare.by_object[name] >= 1
    ]
    by_object = [[name, f"{ours.by_object[name]:,.0f}", f"{bare.by_object[name]:,.0f}"] for name in objects]
    by_object.append(["all", f"{ours.total:,.0f}", f"{bare.total:,.0f}"])
    ratio = f"libusher / libcurl multi + epoll: {ours.total / bare.total:.2f}"
    words = f"Instructions per heartbeat in user space, if {SESSIONS} heartbeats are due at once. {ratio}."
    sections = [report.Section("By library", words, ["", "libusher", "C, libcurl multi + epoll"], by_object)]
    names = demangled([name for name, _ in largest(ours.ours)] + [caller for (caller, _), _ in largest(ours.called)])
    rows = [[cell(names[name]), f"{count:,.0f}", f"{count / ours.total:.1%}"] for name, count in largest(ours.ours)]
    sections.append(
        report.Section("Functions of libusher itself", "", ["", "instructions per heartbeat", "of all"], rows)
    )
    rows = [
        [cell(callee), cell(names[caller]), f"{count:,.0f}", f"{count / ours.total:.1%}"]
        for (caller, callee), count in largest(ours.called)
    ]
    words = "The figures include the instructions of all functions that the called functions call."
    sections.append(
        report.Section("Calls out of libusher", words, ["called", "by", "instructions per heartbeat", "of all"], rows)
    )
    rows = [
        [name, *(f"{counts[name]:.2f}" for counts in calls.values())]
        for name in SYSCALLS
        if sum(counts[name] for counts in calls.values()) >= 0.01
    ]
    sections.append(report.Section("System calls per heartbeat", "", ["", *calls], rows))
    return sections


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=Path, required=True, help="folder of the C programs")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    told = parser.parse_args()
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        words = ["--base", server.base(), "--sessions", str(SESSIONS), "--warm-up", "1"]
        commands = [[str(told.programs.resolve() / name), *words] for name in ("beats_usher", "beats_multi")]
        ours, bare = (cost_of_beat(command, Path(folder)) for command in commands)
        recorded = {"without": ours}
        with tempfile.TemporaryDirectory() as kept:
            journal = ["--journal", f"{kept}/journal"]
            guardian = ["--variant", "4"]
            for name, more in (
                ("guardian", guardian),
                ("journal in clear", journal),
                ("journal encrypted", [*journal, "--variant", "3"]),
            ):
                recorded[name] = cost_of_beat([*commands[0], *more], Path(folder))
            calls = {
                "libusher": syscalls(commands[0]),
                "with a guardian": syscalls([*commands[0], *guardian]),
                "with a journal": syscalls([*commands[0], *journal]),
                "C, libcurl multi + epoll": syscalls(commands[1]),
            }
    sections = [*tables(ours, bare, calls), recorded_section(recorded)]
    head = [
        "# Profile of a heartbeat",
        "",
        "`make profile` writes this page, with valgrind's callgrind and strace; see [README.md](README.md).",
        "",
        "",
    ]
    told.out.write_text(
        "\n".join(head) + "\n".join([*(section.text() for section in sections), LIMITS]), encoding="utf-8"
    )
    print(told.out.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
