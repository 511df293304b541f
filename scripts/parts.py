"""Parts of a test run: each runs a command and counts its tests. scripts/test.py and scripts/sanitize.py use it."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PYTHON = str(ROOT / ".venv" / "bin" / "python")
BINDINGS = ROOT / "bindings" / "python"
SHOWN_LINES = 60
HANG_S = 60
"""A test that makes no progress for this time hangs. Under sanitizers and valgrind the time is longer (`patience`)."""
HOST_LIMIT_S = 240
"""The longest time for one C or C++ host, even if it makes progress. Under sanitizers and valgrind the time is longer
(`patience`)."""
MOST_HUNG = 3
"""After this number of C or C++ hosts that hang, the runner does not start further ones."""
STACKS_S = 30
"""The longest time for reading the stacks of a host that hangs."""
STEP = "    waits for: "
"""The fixture `step` of Tests/steps.py begins its lines with this text."""


def hosts_limit_s(usual_s: float, patience: int = 1) -> float:
    """Returns a time limit for Tests/c/run and Tests/cpp/run that leaves them the time to name the hosts that hang."""
    return usual_s + MOST_HUNG * (HOST_LIMIT_S * patience + STACKS_S)


@dataclass
class Count:
    """The results of a part's tests; `failures` has the names of the tests that failed."""

    passed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)


# ---- counting --------------------------------------------------------------------------------------------------------


def count_lines(part: Part, output: str) -> Count:
    """Counts lines "ok - ..." and "not ok - ..."."""
    return Count(passed=len(re.findall(r"^ok - ", output, re.M)), failures=re.findall(r"^not ok - (.*)$", output, re.M))


def count_checklist(part: Part, output: str) -> Count:
    """Counts the lines of the demo's checklist, which follows its last heading."""
    _, _, checklist = output.rpartition("What was seen")
    return Count(passed=len(re.findall(r"^ +✓ ", checklist, re.M)), failures=re.findall(r"^ +✗ (.*)$", checklist, re.M))


def count_sum(part: Part, output: str) -> Count:
    """Reads the last "N passed, N failed" that a runner prints, and the names of failures if it prints them."""
    sums = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", output, re.M)
    if not sums:
        return Count()
    passed, failed = int(sums[-1][0]), int(sums[-1][1])
    names = (re.findall(r"^failed: (.*)$", output, re.M) or re.findall(r"^ *not ok - (.*)$", output, re.M))[:failed]
    return Count(passed, int(sums[-1][2] or 0), names + ["(not named)"] * (failed - len(names)))


def count_exit(part: Part, output: str) -> Count:
    """Counts one passed test, for a checker that reports only by its exit code. If the checker failed, `Part.run`
    counts a failed test instead."""
    return Count(passed=1)


def count_xml(part: Part, output: str) -> Count:
    """Reads the JUnit XML of pytest or `swift test`. If a test and its clean-up fail, that is one failure."""
    outcomes: dict[str, str] = {}
    for file in part.xml_files():
        for case in ElementTree.parse(file).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            kinds = {child.tag for child in case}
            outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            if outcomes.get(name) != "failed":
                outcomes[name] = outcome
    told = list(outcomes.values())
    return Count(
        told.count("passed"), told.count("skipped"), [name for name, outcome in outcomes.items() if outcome == "failed"]
    )


def count_swift(part: Part, output: str) -> Count:
    """Counts like count_xml(). Each warning of the compiler in this run, or in the last builds of the libraries, is a
    failure. The compiler repeats a warning only when it compiles the file again, so a clean clone shows all of them."""
    count = count_xml(part, output)
    texts = [output, *(log.read_text(encoding="utf-8", errors="replace") for log in BUILD.glob("*/build.log"))]
    warnings = {line for text in texts for line in re.findall(r"^/.*\.(?:swift|h):\d+.* warning: .*", text, re.M)}
    count.failures.extend(f"{part.name}: {line.removeprefix(f'{ROOT}/')}" for line in sorted(warnings))
    return count


# ---- parts -----------------------------------------------------------------------------------------------------------


@dataclass
class Part:
    """One command, with a function that counts the tests in its output."""

    name: str
    title: str
    command: list[str]
    count: Callable[[Part, str], Count] = count_lines
    timeout_s: float = 120
    folder: Path = ROOT
    environment: dict[str, str] = field(default_factory=dict)
    logs: Path = BUILD / "test"
    needs: tuple[str, ...] = ()
    """The parts that must pass before this one runs."""
    together: str = ""
    """Neighbouring parts with the same text here run at the same time; "": the part runs alone."""
    running: Callable[[str], list[str]] | None = None
    """Returns the names of the tests that have started and not ended, from the output so far. If the list stays the
    same for `hang_s`, these tests hang: the part ends, and its failure names them."""
    hang_s: float = HANG_S

    @property
    def log(self) -> Path:
        return self.logs / f"{self.name}.log"

    def xml_files(self) -> list[Path]:
        """`swift test` writes two files, one for each of its testing libraries."""
        return sorted([*self.logs.glob(f"{self.name}.xml"), *self.logs.glob(f"{self.name}-swift-testing.xml")])

    def run(self) -> Count:
        for stale in self.xml_files():
            stale.unlink()
        environment = {**base_environment(), **self.environment}
        ending = run_logged(self.command, self.log, self.timeout_s, self.folder, environment, self.running, self.hang_s)
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
    """The environment of the tests: no proxy, because all connections are on loopback; no debugger after a crash; no
    settings of an outer make."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith("_proxy") and name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return {**environment, "SWIFT_BACKTRACE": "enable=no", "PYTHONUTF8": "1", "NO_COLOR": "1", "TERM": "dumb"}


def running_swift_tests(output: str) -> list[str]:
    """Returns the tests of swift-testing that have started and not ended."""
    started = re.findall(r"^◇ Test (?!run |case )(.*) started\.$", output, re.M)
    ended = re.findall(
        r"^[✔✘] Test (?!run |case )(.*?)(?: with \d+ test cases?)? (?:passed|failed) after ", output, re.M
    )
    return sorted(set(started) - set(ended))


def running_pytest(output: str) -> list[str]:
    """Returns the last test that `pytest -v` has named, with the step that it printed last (see the fixture `step`).
    The list is empty while pytest collects the tests."""
    tests = re.split(r"^(?=\S+\.py::)", output, flags=re.M)[1:]
    if not tests:
        return []
    outcome = r"\b(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*\[ *\d+%\]"
    name = re.sub(rf"{outcome}|Timeout \(.*", "", tests[-1].splitlines()[0]).strip()  # faulthandler says "Timeout"
    steps = re.findall(rf"^{STEP}(.*)$", tests[-1], re.M)
    if re.search(outcome, tests[-1]):
        return [f"the clean-up after {name}"]
    return [f"{name}, which waits for: {steps[-1]}" if steps else name]


def last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return f"; the last line of its output: {lines[-1][:200]}" if lines else "; it printed nothing"


def wait_unless_hung(
    child: subprocess.Popen[bytes],
    log: Path,
    timeout_s: float,
    running: Callable[[str], list[str]] | None,
    hang_s: float,
) -> str:
    """Waits for the end of the command. Returns "" if the command has ended, otherwise the reason why it has not."""
    end = time.monotonic() + timeout_s
    before: list[str] = []
    since = time.monotonic()
    while time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(min(1 if running else timeout_s, max(0, end - time.monotonic())))
            return ""
        now = running(log.read_text(encoding="utf-8", errors="replace")) if running else []
        if now != before or not now:
            before, since = now, time.monotonic()
        elif time.monotonic() - since >= hang_s:
            return f"no test ended for {hang_s:.0f} s; running: {', '.join(now)}"
    output = log.read_text(encoding="utf-8", errors="replace")
    return f"still running after {timeout_s:.0f} s" + (f": {', '.join(before)}" if before else last_line(output))


def run_logged(
    command: list[str],
    log: Path,
    timeout_s: float,
    folder: Path,
    environment: dict[str, str],
    running: Callable[[str], list[str]] | None = None,
    hang_s: float = HANG_S,
) -> str:
    """Runs the command with its output in `log`. Returns "" on success, otherwise how it ended.

    After the time-out, or if tests hang, it ends the command with every process that the command started.
    """
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            return str(error)
        try:
            failure = wait_unless_hung(child, log, timeout_s, running, hang_s)
            if failure:
                end_group(child.pid)
                child.wait()
                return failure
            code = child.wait()
        except BaseException:  # the user interrupted the run: end the command's processes
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


# ---- output ----------------------------------------------------------------------------------------------------------


def tell_failures(part: Part, count: Count) -> None:
    for name in count.failures:
        print(f"      not ok: {name}")
    lines = part.log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    print(f"      --- last lines of {part.log.relative_to(ROOT)} ---")
    for line in lines[-SHOWN_LINES:]:
        print(f"      {line}")
    print("      ---", flush=True)


def summary(ran: list[tuple[Part, Count, float]], whole_s: float) -> Count:
    total = Count()
    print("\nSummary")
    for part, count, seconds in ran:
        total.passed += count.passed
        total.skipped += count.skipped
        total.failures += [f"{part.name}: {name}" for name in count.failures]
        counts = f"{count.passed:5} passed {len(count.failures):4} failed {count.skipped:4} skipped"
        print(f"   {part.name:24} {counts} {seconds:7.1f} s")
    counts = f"{total.passed:5} passed {len(total.failures):4} failed {total.skipped:4} skipped"
    print(f"   {'all':24} {counts} {whole_s:7.1f} s")
    if total.failures:
        print("\nFailed")
        for name in total.failures:
            print(f"   {name}")
    return total


# ---- the command line ------------------------------------------------------------------------------------------------


def chosen_of(parts: list[Part], wanted: list[str]) -> list[Part]:
    """Returns the named parts and the parts that they need, in order; all parts if none is named."""
    needed = set(wanted) | {name for part in parts if part.name in wanted for name in part.needs}
    return [part for part in parts if not wanted or part.name in needed]


def run_part(part: Part, failed: set[str]) -> Count:
    missing = [name for name in part.needs if name in failed]
    if not missing:
        return part.run()
    part.log.write_text("")
    return Count(failures=[f"{part.name}: needs {', '.join(missing)}, which failed"])


def run_group(
    group: list[tuple[int, Part]], whole: int, failed: set[str], pool: ThreadPoolExecutor
) -> list[tuple[Part, Count, float]]:
    """Runs parts at the same time, and prints their results in the order of the parts."""

    def timed(part: Part) -> tuple[Part, Count, float]:
        part.logs.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        return part, run_part(part, failed), time.monotonic() - started

    results = [pool.submit(timed, part) for _, part in group]
    ran = []
    for (number, part), result in zip(group, results, strict=True):
        print(f"[{number:2}/{whole}] {part.title} ... ", end="", flush=True)
        _, count, seconds = result.result()
        told = f"{count.passed} passed" + (f", {count.skipped} skipped" if count.skipped else "")
        print(
            f"FAILED: {len(count.failures)} failed, {told}, {seconds:.1f} s"
            if count.failures
            else f"ok: {told}, {seconds:.1f} s",
            flush=True,
        )
        if count.failures:
            tell_failures(part, count)
        ran.append((part, count, seconds))
    failed.update(part.name for part, count, _ in ran if count.failures)
    return ran


def run_parts(description: str, parts: list[Part], argv: list[str] | None = None) -> int:
    """Runs the parts that the command line names (all parts if it names none), or prints their names for --list.

    The last line gives the totals: "N passed, N failed". Returns 1 if a test failed.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all of them")
    parser.add_argument("--list", action="store_true", help="print the names of the parts")
    arguments = parser.parse_args(argv)
    if arguments.list:
        for part in parts:
            print(f"{part.name:24} {part.title}")
        return 0
    unknown = set(arguments.parts) - {part.name for part in parts}
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))} (see --list)")
    chosen = chosen_of(parts, arguments.parts)
    ran: list[tuple[Part, Count, float]] = []
    failed: set[str] = set()
    began = time.monotonic()
    numbered = list(enumerate(chosen, 1))
    groups = groupby(numbered, lambda item: item[1].together or str(item[0]))
    with ThreadPoolExecutor() as pool:
        for _, group in groups:
            ran += run_group(list(group), len(chosen), failed, pool)
    total = summary(ran, time.monotonic() - began)
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"\n{total.passed} passed, {len(total.failures)} failed{skipped}")
    return 1 if total.failures else 0
