"""Parts of a test run: each part runs a command and counts its tests. scripts/test.py and scripts/sanitize.py use this
module."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PYTHON = str(ROOT / ".venv" / "bin" / "python")
BINDINGS = ROOT / "bindings" / "python"
SHOWN_LINES = 60
ERROR_MOST = 300
"""How many characters of a test's error the summary shows."""
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
CORES = 1.1 * (os.cpu_count() or 1)
"""The number of cores for all parts that run at the same time. It is a little more than the machine has, because no
part uses its cores all the time."""


class Interrupt:
    """Handles Ctrl-C. The handler only sets a flag: an exception in the middle of concurrent.futures would leave a lock
    locked, and the run would never end. When the flag is set, the threads end their commands, and no further part
    starts. The second Ctrl-C restores the default action, so the third one ends the program at once."""

    def __init__(self) -> None:
        self.came = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.came:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.came = True

    def check(self) -> None:
        if self.came:
            raise KeyboardInterrupt


interrupt = Interrupt()


def hosts_limit_s(usual_s: float, patience: int = 1) -> float:
    """Returns a time limit for Tests/c/run and Tests/cpp/run that leaves them the time to name the hosts that hang."""
    return usual_s + MOST_HUNG * (HOST_LIMIT_S * patience + STACKS_S)


@dataclass
class Count:
    """The results of a part's tests; `failures` has one line for each test that failed: its name and, if the results
    have it, the first line of its error."""

    passed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)
    cpu_s: float = 0
    """The processor time of the command and of all processes that it waited for."""


# ---- counting --------------------------------------------------------------------------------------------------------


def count_lines(part: Part, output: str) -> Count:
    """Counts lines "ok - ..." and "not ok - ..."."""
    return Count(passed=len(re.findall(r"^ok - ", output, re.M)), failures=re.findall(r"^not ok - (.*)$", output, re.M))


def count_checklist(part: Part, output: str) -> Count:
    """Counts the lines of the demo's checklist, which follows its last heading. Two further mistakes count as failures:
    a line of the demo is wider than a terminal of 100 columns, or the demo does not offer its live page before the
    first act."""
    _, _, checklist = output.rpartition("What was seen")
    failures = re.findall(r"^ +✗ (.*)$", checklist, re.M)
    failures += [f"wider than 100 columns: {line}" for line in output.splitlines() if len(line) > 100]
    if not re.search(r"http://\S+ .*live page", output.partition("Act 1.")[0]):
        failures.append("the demo does not offer its live page")
    return Count(passed=len(re.findall(r"^ +✓ ", checklist, re.M)), failures=failures)


def count_sum(part: Part, output: str) -> Count:
    """Reads the last "N passed, N failed" that a runner prints, and the names of failures if it prints them."""
    sums = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", output, re.M)
    if not sums:
        return Count()
    passed, failed = int(sums[-1][0]), int(sums[-1][1])
    names = (re.findall(r"^failed: (.*)$", output, re.M) or re.findall(r"^ *not ok - (.*)$", output, re.M))[:failed]
    return Count(passed, int(sums[-1][2] or 0), names + ["(not named)"] * (failed - len(names)))


def count_exit(part: Part, output: str) -> Count:
    """Returns one passed test, for a checker that reports only by its exit code. If the checker failed, `Part.run`
    replaces this result by one failed test."""
    return Count(passed=1)


def count_xml(part: Part, output: str) -> Count:
    """Reads the JUnit XML of pytest or `swift test`. If a test and its clean-up fail, that is one failure."""
    skipped: dict[str, bool] = {}
    failures: dict[str, str] = {}
    for file in part.xml_files():
        for case in ElementTree.parse(file).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            errors = [child.get("message") or "" for child in case if child.tag in ("failure", "error")]
            if errors:
                failures.setdefault(name, first_line(errors[0]))
            skipped.setdefault(name, case.find("skipped") is not None)
    passed = [name for name, is_skipped in skipped.items() if not is_skipped and name not in failures]
    return Count(
        len(passed),
        len(skipped) - len(passed) - len(failures),
        [f"{name}: {error}" if error else name for name, error in failures.items()],
    )


def first_line(error: str) -> str:
    """Returns the first line of an error, at most ERROR_MOST characters of it."""
    return next(iter(error.strip().splitlines()), "")[:ERROR_MOST]


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
    """The parts that must pass before this part runs."""
    cores: float = 1
    """How many processor cores the part uses while it runs: the last column of the summary. Parts run at the same time
    if the machine has the cores for all of them."""
    alone: bool = False
    """Whether no other part may run at the same time, for example because this part reads the results of all others."""
    running: Callable[[str], list[str]] | None = None
    """A function that gets the output so far, and returns the names of the tests that have started and not ended. If
    these names stay the same for `hang_s`, the tests hang: the part ends, and its failure names them."""
    hang_s: float = HANG_S

    @property
    def log(self) -> Path:
        return self.logs / f"{self.name}.log"

    def xml_files(self) -> list[Path]:
        """Returns the result files of the part. `swift test` writes two files, one for each of its testing
        libraries."""
        return sorted([*self.logs.glob(f"{self.name}.xml"), *self.logs.glob(f"{self.name}-swift-testing.xml")])

    def run(self) -> Count:
        for stale in self.xml_files():
            stale.unlink()
        environment = {**base_environment(), **self.environment}
        ending, cpu_s = run_logged(
            self.command, self.log, self.timeout_s, self.folder, environment, self.running, self.hang_s
        )
        output = self.log.read_text(encoding="utf-8", errors="replace")
        try:
            count = self.count(self, output)
        except ElementTree.ParseError as error:
            count = Count(failures=[f"{self.name}: its XML cannot be read: {error}"])
        count.cpu_s = cpu_s
        if self.count is count_exit and ending:
            count.passed = 0
        if ending and not count.failures:
            count.failures.append(f"{self.name}: {ending}")
        if not ending and not count.failures and count.passed == 0:
            count.failures.append(f"{self.name}: no test ran")
        return count


def base_environment() -> dict[str, str]:
    """Returns the environment of the tests: no proxy, because all connections are on loopback; no debugger after a
    crash; no settings of an outer make."""
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


def has_ended(child: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Waits until the command has ended, at most `timeout_s`. Returns whether it has ended. The caller must still
    collect the exit status; until it does so, cpu_s_of() can read the times of the process. Raises KeyboardInterrupt if
    the user interrupts the run."""
    end = time.monotonic() + timeout_s
    while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        if time.monotonic() >= end:
            return False
        interrupt.check()
        time.sleep(0.05)
    return True


def cpu_s_of(child: subprocess.Popen[bytes]) -> float:
    """Returns the processor time of a command that has ended, and of all processes that it waited for."""
    fields = Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # utime, stime, cutime, cstime


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
        if has_ended(child, min(1 if running else timeout_s, end - time.monotonic())):
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
) -> tuple[str, float]:
    """Runs the command with its output in `log`. Returns how it ended, which is "" on success, and its processor time.

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
            return str(error), 0
        try:
            failure = wait_unless_hung(child, log, timeout_s, running, hang_s)
            if failure:
                end_group(child.pid)
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            cpu_s = cpu_s_of(child)
            code = child.wait()
        except BaseException:  # the user interrupted the run: end the command's processes
            end_group(child.pid)
            raise
    ending = "" if code == 0 else f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    return failure or ending, cpu_s


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


def times(seconds: float, cpu_s: float) -> str:
    return f"{seconds:7.1f} s {cpu_s:7.1f} s CPU {cpu_s / max(seconds, 0.01):5.2f} cores"


def summary(ran: list[tuple[Part, Count, float]], whole_s: float) -> Count:
    total = Count()
    print("\nSummary")
    for part, count, seconds in ran:
        total.passed += count.passed
        total.skipped += count.skipped
        total.cpu_s += count.cpu_s
        total.failures += [f"{part.name}: {name}" for name in count.failures]
        counts = f"{count.passed:5} passed {len(count.failures):4} failed {count.skipped:4} skipped"
        print(f"   {part.name:24} {counts} {times(seconds, count.cpu_s)}")
    counts = f"{total.passed:5} passed {len(total.failures):4} failed {total.skipped:4} skipped"
    print(f"   {'all':24} {counts} {times(whole_s, total.cpu_s)}")
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


def check_needs(parts: list[Part]) -> None:
    """Raises ValueError if a part comes before one that it needs."""
    for index, part in enumerate(parts):
        if late := set(part.needs) - {other.name for other in parts[:index]}:
            raise ValueError(f"{part.name} needs {', '.join(sorted(late))}, which must come before it")


class Schedule:
    """Runs parts, several at the same time, and prints their results in the order of the parts.

    A part starts when the parts that it needs have ended and enough cores are free. If several parts may start, the
    first of them does. So a part that mostly waits runs beside parts that compute. A part that must be alone starts
    when all parts before it have ended; until it has ended, no part after it starts.
    """

    def __init__(self, parts: list[Part], cores: float, pool: ThreadPoolExecutor) -> None:
        self.parts = parts
        self.cores = cores
        self.pool = pool
        self.futures: dict[str, Future[tuple[Count, float]]] = {}

    def run(self) -> list[tuple[Part, Count, float]]:
        ran: list[tuple[Part, Count, float]] = []
        for number, part in enumerate(self.parts, 1):
            print(f"[{number:2}/{len(self.parts)}] {part.title} ... ", end="", flush=True)
            count, seconds = self.result_of(part)
            told = f"{count.passed} passed" + (f", {count.skipped} skipped" if count.skipped else "")
            failures = f"FAILED: {len(count.failures)} failed" if count.failures else "ok"
            print(f"{failures}{',' if count.failures else ':'} {told}, {seconds:.1f} s", flush=True)
            if count.failures:
                tell_failures(part, count)
            ran.append((part, count, seconds))
        return ran

    def result_of(self, part: Part) -> tuple[Count, float]:
        """Waits for the end of the part, and returns its result and its duration. Meanwhile starts this part and
        others, as soon as they may start. Raises KeyboardInterrupt if the user interrupts the run: the threads have
        ended their commands, or are about to."""
        while True:
            interrupt.check()
            # Make this list before the checks below. If a part ends during these checks, it is still in the list, so
            # wait() returns at once, and the next round sees that the part has ended.
            unfinished = [future for future in self.futures.values() if not future.done()]
            for other in self.parts:
                if other.name not in self.futures and self.may_start(other):
                    self.futures[other.name] = self.pool.submit(self.timed, other)
                    unfinished.append(self.futures[other.name])
            if part.name in self.futures and self.futures[part.name].done():
                return self.futures[part.name].result()
            wait(unfinished, return_when=FIRST_COMPLETED)

    def may_start(self, part: Part) -> bool:
        earlier = self.parts[: self.parts.index(part)]
        must_end = earlier if part.alone else [other for other in earlier if other.alone or other.name in part.needs]
        if not all(map(self.has_ended, must_end)):
            return False
        busy = sum(other.cores for other in self.parts if other.name in self.futures and not self.has_ended(other))
        return not busy or busy + part.cores <= self.cores + 0.01

    def has_ended(self, part: Part) -> bool:
        return part.name in self.futures and self.futures[part.name].done()

    def timed(self, part: Part) -> tuple[Count, float]:
        started = time.monotonic()
        part.logs.mkdir(parents=True, exist_ok=True)
        missing = [name for name in part.needs if name in self.futures and self.futures[name].result()[0].failures]
        if not missing:
            return part.run(), time.monotonic() - started
        part.log.write_text("")
        return Count(failures=[f"{part.name}: needs {', '.join(missing)}, which failed"]), 0


def run_parts(description: str, parts: list[Part], argv: list[str] | None = None, cores: float = CORES) -> int:
    """Runs the parts that the command line names (all parts if it names none). With --list, only prints their names.

    Parts run at the same time only if together they need no more than `cores`. The last line that this function prints
    has the totals: "N passed, N failed". Returns 1 if a test failed.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all of them")
    parser.add_argument("--list", action="store_true", help="print the names of the parts")
    arguments = parser.parse_args(argv)
    if arguments.list:
        for part in parts:
            print(f"{part.name:24} {part.title}")
        return 0
    check_needs(parts)
    unknown = set(arguments.parts) - {part.name for part in parts}
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))} (see --list)")
    # A shell starts a command in the background with SIGINT ignored. With a handler, neither this program nor the
    # tests of Ctrl-C, which are its children, ignore it.
    signal.signal(signal.SIGINT, interrupt.handle)
    chosen = chosen_of(parts, arguments.parts)
    began = time.monotonic()
    with ThreadPoolExecutor(len(chosen)) as pool:
        try:
            ran = Schedule(chosen, cores, pool).run()
        except BaseException:
            interrupt.came = True  # the threads end their commands
            raise
    total = summary(ran, time.monotonic() - began)
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"\n{total.passed} passed, {len(total.failures)} failed{skipped}")
    return 1 if total.failures else 0
