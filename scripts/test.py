#!/usr/bin/env python3
"""Runs the tests, part by part, and counts them. `make test` makes ready what they need, then calls this.

    scripts/test.py            every part
    scripts/test.py PART ...   those parts (see --list), e.g. `scripts/test.py python-shipped`

A part that passed is one line; of one that failed, the failures and the end of its output are shown. The whole output is in build/test/PART.log.
The last line is the sum: "N passed, N failed". Exit 0: nothing failed. Standard library only.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "test"
PYTHON = str(ROOT / ".venv" / "bin" / "python")
BINDINGS = ROOT / "bindings" / "python"
SHIPPED = BUILD / "shipped" / "libusher.so"
CHECKED = BUILD / "checked" / "libusher.so"
EMBEDDED = ROOT / ".build-embedded"
SHOWN_LINES = 60


@dataclass
class Count:
    """What a part's tests came to; `failures` are the names."""

    passed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)


# ---- counting --------------------------------------------------------------------------------------------------------


def count_lines(part: Part, output: str) -> Count:
    """The gates' "ok - ..." and "not ok - ..."."""
    return Count(passed=len(re.findall(r"^ok - ", output, re.M)), failures=re.findall(r"^not ok - (.*)$", output, re.M))


def count_checklist(part: Part, output: str) -> Count:
    """The demo's checklist, after its last heading."""
    _, _, checklist = output.rpartition("What was seen")
    return Count(passed=len(re.findall(r"^ +✓ ", checklist, re.M)), failures=re.findall(r"^ +✗ (.*)$", checklist, re.M))


def count_sum(part: Part, output: str) -> Count:
    """The last "N passed, N failed" of a runner of its own; the names where it tells them."""
    sums = re.findall(r"^(\d+) passed, (\d+) failed", output, re.M)
    if not sums:
        return Count()
    passed, failed = int(sums[-1][0]), int(sums[-1][1])
    names = re.findall(r"^ *not ok - (.*)$", output, re.M)[:failed]
    return Count(passed, failures=names + ["(not named)"] * (failed - len(names)))


def count_exit(part: Part, output: str) -> Count:
    """A checker that says all by its exit code: a failure is added by `Part.run`."""
    return Count(passed=1)


def count_xml(part: Part, output: str) -> Count:
    """JUnit's XML, of pytest or `swift test`. A test that failed and whose clean-up failed too is one test."""
    outcomes: dict[str, str] = {}
    for file in part.xml_files():
        for case in ElementTree.parse(file).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            kinds = {child.tag for child in case}
            outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            if outcomes.get(name) != "failed":
                outcomes[name] = outcome
    told = list(outcomes.values())
    return Count(told.count("passed"), told.count("skipped"), [name for name, outcome in outcomes.items() if outcome == "failed"])


# ---- parts -----------------------------------------------------------------------------------------------------------


@dataclass
class Part:
    """One command whose tests are counted."""

    name: str
    title: str
    command: list[str]
    count: Callable[[Part, str], Count] = count_lines
    timeout_s: float = 120
    folder: Path = ROOT
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"

    def xml_files(self) -> list[Path]:
        """`swift test` adds a suffix for each of its two testing libraries."""
        return sorted(LOGS.glob(f"{self.name}*.xml"))

    def run(self) -> Count:
        for stale in self.xml_files():
            stale.unlink()
        ending = run_logged(self.command, self.log, self.timeout_s, self.folder, {**base_environment(), **self.environment})
        output = self.log.read_text(encoding="utf-8", errors="replace")
        try:
            count = self.count(self, output)
        except ElementTree.ParseError as error:
            count = Count(failures=[f"{self.name}: its XML cannot be read: {error}"])
        if self.count is count_exit and ending:
            count.passed = 0
        if ending and not count.failures:
            count.failures.append(f"{self.name}: {ending}")
        if not ending and not count.failures and count.passed == 0:
            count.failures.append(f"{self.name}: no test ran")
        return count


def base_environment() -> dict[str, str]:
    """All of it happens on loopback, a crash ends, and a sub-make is no part of ours."""
    environment = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return {**environment, "SWIFT_BACKTRACE": "enable=no", "PYTHONUTF8": "1", "NO_COLOR": "1", "TERM": "dumb"}


def run_logged(command: list[str], log: Path, timeout_s: float, folder: Path, environment: dict[str, str]) -> str:
    """Runs it, its output in `log`; answers how it ended, "" when well. On a time-out all it started is ended."""
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True
            )
        except OSError as error:
            return str(error)
        try:
            code = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            end_group(child.pid)
            child.wait()
            return f"not ended within {timeout_s:.0f} s"
        except BaseException:  # interrupted: leave nothing behind
            end_group(child.pid)
            raise
    return "" if code == 0 else f"ended by signal {-code}" if code < 0 else f"exit code {code}"


def end_group(leader: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(leader, number)
        except ProcessLookupError:
            return
        time.sleep(1)


def pytest(name: str, *arguments: str) -> list[str]:
    return [PYTHON, "-m", "pytest", "-q", "--timeout", "60", "-p", "no:cacheprovider", f"--junitxml={LOGS / name}.xml", *arguments]


def gate(script: str, *arguments: str | Path) -> list[str]:
    return [str(ROOT / "Tests" / "abi" / script), *map(str, arguments)]


def bindings(name: str, title: str, library: Path | None, *arguments: str) -> Part:
    environment = {"USHER_LIBRARY": str(library)} if library else {}
    return Part(name, title, pytest(name, *arguments), count_xml, 300, BINDINGS, environment)


def hosts() -> list[Part]:
    """The C and C++ hosts, where there are some: each folder has a runner of its own."""
    found = []
    for folder, title in (("c", "C hosts"), ("cpp", "C++ hosts")):
        runner = ROOT / "Tests" / folder / "run"
        if runner.exists():
            for kind, library in (("shipped", SHIPPED), ("checked", CHECKED)):
                command = [PYTHON, str(runner), str(library), "--python", PYTHON, "--show"]
                found.append(Part(f"{folder}-{kind}", f"{title}, {kind} library", command, count_sum, 300))
    return found


def all_parts() -> list[Part]:
    without_headend = ("tests", "--ignore", "tests/headend", "--ignore", "tests/faults")
    scripts = [str(file) for folder in ("scripts", "Tests", "benchmarks") for file in sorted((ROOT / folder).rglob("*.py"))]
    found = {"MYPYPATH": ":".join(str(ROOT / folder) for folder in ("scripts", "benchmarks", "benchmarks/python"))}
    check_wheel = str(ROOT / "scripts" / "check-wheel")
    return [
        Part("swift", "Swift: core and engine", ["swift", "test", "--xunit-output", str(LOGS / "swift.xml")], count_xml, 600),
        Part("model", "the state machines through every order of events", [str(ROOT / "scripts" / "model"), "check"], timeout_s=600),
        Part("headers", "headers alone: C99, C++11; usher.hpp: C++17, C++20", gate("headers.sh")),
        Part("exports-shipped", "headers against exports, shipped library", gate("exports.sh", SHIPPED)),
        Part("exports-checked", "headers against exports, checked library", gate("exports.sh", CHECKED)),
        Part("names-shipped", "names of statuses and events, shipped library", gate("names.sh", SHIPPED)),
        Part("names-checked", "names of statuses and events, checked library", gate("names.sh", CHECKED)),
        Part("shipped", "shipped library: size, needs, hardening", gate("shipped.sh", SHIPPED)),
        Part("dlopen-shipped", "dlopen by a stranger, shipped library", gate("dlopen.sh", SHIPPED)),
        Part("dlopen-checked", "dlopen by a stranger, checked library", gate("dlopen.sh", CHECKED)),
        Part("api-shipped", "the table of functions, shipped library", gate("api.sh", SHIPPED)),
        Part("api-checked", "the table of functions, checked library", gate("api.sh", CHECKED)),
        Part("cmake", "CMake: build, and what it says when something is missing", gate("cmake.sh", EMBEDDED), timeout_s=600),
        Part("install", "installed, and found by hosts", [str(ROOT / "Tests" / "install" / "run"), str(EMBEDDED)], timeout_s=600),
        *hosts(),
        bindings("headend", "Python: the head-end", None, "tests/headend"),
        bindings("python-shipped", "Python: stories, shipped library", SHIPPED, *without_headend),
        bindings("python-checked", "Python: stories, checked library", CHECKED, *without_headend),
        bindings("faults", "Python: faults on every operation, the quick part", SHIPPED, "tests/faults", "-m", "not whole"),
        Part("mypy", "Python: types (mypy --strict)", [PYTHON, "-m", "mypy", "src/usher", *scripts], count_exit, folder=BINDINGS, environment=found),
        Part(
            "ruff", "Python: lint (ruff)", [PYTHON, "-m", "ruff", "check", "--config", "pyproject.toml", ".", *scripts], count_exit, folder=BINDINGS
        ),
        Part("manual", "the manual: headers documented, docs as the library says", [PYTHON, str(ROOT / "scripts" / "check-docs"), str(SHIPPED)]),
        Part("wheel", "the Python wheel in a clean environment", [PYTHON, check_wheel, "--python", PYTHON, "--library", str(SHIPPED)]),
        Part("docs", "README and docs say what is there", [PYTHON, str(ROOT / "Tests" / "docs" / "check.py")]),
        Part("examples", "examples against a head-end", [PYTHON, str(ROOT / "Tests" / "examples" / "run.py")], timeout_s=240),
        Part("bench", "benchmarks build and run", ["make", "--no-print-directory", "bench", "QUICK=1"], timeout_s=600),
        Part("demo", "make demo", ["make", "--no-print-directory", "demo"], count_checklist, 600),
        Part(
            "conformance",
            "docs/conformance.md: the tests it names ran and passed",
            [PYTHON, str(ROOT / "Tests" / "docs" / "conformance.py"), str(LOGS)],
        ),
    ]


# ---- telling ---------------------------------------------------------------------------------------------------------


def tell_failures(part: Part, count: Count) -> None:
    for name in count.failures:
        print(f"      not ok: {name}")
    lines = part.log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    print(f"      --- the end of {part.log.relative_to(ROOT)} ---")
    for line in lines[-SHOWN_LINES:]:
        print(f"      {line}")
    print("      ---", flush=True)


def summary(ran: list[tuple[Part, Count, float]]) -> Count:
    total = Count()
    print("\nSummary")
    for part, count, seconds in ran:
        total.passed += count.passed
        total.skipped += count.skipped
        total.failures += [f"{part.name}: {name}" for name in count.failures]
        print(f"   {part.name:16} {count.passed:5} passed {len(count.failures):4} failed {count.skipped:4} skipped {seconds:7.1f} s")
    print(f"   {'all':16} {total.passed:5} passed {len(total.failures):4} failed {total.skipped:4} skipped {sum(s for _, _, s in ran):7.1f} s")
    if total.failures:
        print("\nFailed")
        for name in total.failures:
            print(f"   {name}")
    return total


def main(argv: list[str] | None = None) -> int:
    parts = all_parts()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all of them")
    parser.add_argument("--list", action="store_true", help="name the parts")
    arguments = parser.parse_args(argv)
    if arguments.list:
        for part in parts:
            print(f"{part.name:16} {part.title}")
        return 0
    unknown = set(arguments.parts) - {part.name for part in parts}
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))} (see --list)")
    chosen = [part for part in parts if not arguments.parts or part.name in arguments.parts]
    LOGS.mkdir(parents=True, exist_ok=True)
    ran = []
    for number, part in enumerate(chosen, 1):
        print(f"[{number:2}/{len(chosen)}] {part.title} ... ", end="", flush=True)
        started = time.monotonic()
        count = part.run()
        seconds = time.monotonic() - started
        told = f"{count.passed} passed" + (f", {count.skipped} skipped" if count.skipped else "")
        print(f"FAILED: {len(count.failures)} failed, {told}, {seconds:.1f} s" if count.failures else f"ok: {told}, {seconds:.1f} s", flush=True)
        if count.failures:
            tell_failures(part, count)
        ran.append((part, count, seconds))
    total = summary(ran)
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"\n{total.passed} passed, {len(total.failures)} failed{skipped}")
    return 1 if total.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
