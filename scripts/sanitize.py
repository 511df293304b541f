#!/usr/bin/env python3
"""Runs the tests under ThreadSanitizer, AddressSanitizer and valgrind (`make sanitize`).

    scripts/sanitize.py            every part
    scripts/sanitize.py PART ...   these parts (see --list) and the builds they need, e.g. thread-swift valgrind-c

thread-*            the checked build under ThreadSanitizer
address-*           the checked build under AddressSanitizer with leak detection
*-shipped-*         the same for the shipped build
valgrind-*          the shipped build, unchanged, under valgrind
*-detects           the tool must report the faults of Tests/sanitizers/planted.c

Every report is a failure, with two exceptions. Tests/sanitizers/*.supp lists reports that do not count, and says why.
Leaks of the Python interpreter do not count; under valgrind, no error of the interpreter counts (see reports.py).
build/sanitize/PART.log has the whole output and the reports. The last line is the sum: "N passed, N failed". Standard
library only.
"""

from __future__ import annotations

import json
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from parts import (
    BUILD,
    HANG_S,
    PYTHON,
    ROOT,
    Count,
    Part,
    count_exit,
    count_lines,
    count_sum,
    count_xml,
    hosts_limit_s,
    run_parts,
    running_pytest,
)
from reports import reports_of

LOGS = BUILD / "sanitize"
TESTS = ROOT / "Tests"
STRESS_S = 60
LATE_ANSWERS = 1_000_000
"""How many playbacks Tests/c/late_answers.c closes in the part `address-shipped-late-answers`. Each of these playbacks
has an open question, which the host answers during or after the close."""
LEFT_OUT = ["Tests/stories/test_examples.py", "Tests/stories/test_every_function.py"]
STORIES = ["Tests/stories", *(f"--ignore={file}" for file in LEFT_OUT)]
"""All stories with two exceptions: test_examples.py, whose programs are separate processes and call ffmpeg; and
test_every_function.py, which needs all stories."""
VALGRIND_STORIES = ["Tests/stories/test_races.py", "Tests/stories/test_sync.py"]
"""The stories with the most concurrent work. No other stories run under valgrind, where Python is about forty times
slower."""


# ---- the toolchain's run-time libraries ------------------------------------------------------------------------------


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


class Toolchain:
    """The clang of the Swift toolchain, and its sanitizers."""

    def __init__(self) -> None:
        swift = shutil.which("swift")
        if not swift:
            sys.exit("usher: 'swift' is not on the PATH: Swift 6.x is needed (https://www.swift.org/install/linux/)")
        self.tools = Path(swift).resolve().parent
        self.swift_libraries = json.loads(output_of("swift", "-print-target-info"))["paths"]["runtimeLibraryPaths"][0]

    def runtime(self, sanitizer: str) -> Path:
        """Returns the path of a sanitizer's run-time library, e.g. libclang_rt.tsan-x86_64.so."""
        name = f"libclang_rt.{sanitizer}-{platform.machine()}.so"
        found = Path(output_of(str(self.tools / "clang"), f"-print-file-name={name}").strip())
        if not found.is_absolute():
            sys.exit(f"usher: this Swift toolchain has no {name}")
        return found


def readable(text: str) -> str:
    """Demangles Swift's symbol names."""
    return (
        subprocess.run(
            ["swift", "demangle", "--compact"], input=text, capture_output=True, text=True, timeout=60
        ).stdout
        or text
    )


# ---- parts -----------------------------------------------------------------------------------------------------------


@dataclass
class Sanitized(Part):
    """A part whose tests run under a sanitizer or valgrind.

    Each failed test and each report of that tool counts as a failure (for Python see `is_python`).
    """

    is_python: bool = False
    """True: only reports about libusher count, because Python has leaks and, under valgrind, errors."""

    def run(self) -> Count:
        for stale in self.report_files():
            stale.unlink()
        count = super().run()
        reports = [report for report in reports_of(self.report_files()) if report.is_ours or not self.is_python]
        if reports:
            text = readable("\n\n".join(report.text for report in reports))
            with self.log.open("a", encoding="utf-8") as log:
                log.write(f"\n\n{len(reports)} reports:\n\n{text}\n")
            count.failures += readable("\n".join(report.title for report in reports)).splitlines()
        return count

    def report_files(self) -> list[Path]:
        return sorted(self.logs.glob(f"{self.name}.report.*"))


class Tool:
    """A sanitizer, or valgrind, with one build of the library."""

    finds: tuple[str, ...] = ("after-free", "leak")
    """The faults of Tests/sanitizers/planted.c that this tool must report."""

    def __init__(self, name: str, title: str, build: str, patience: int) -> None:
        """`build`: which build, as the argument of scripts/build-library; `patience`: a factor for every time-out."""
        self.name, self.title, self.build, self.patience = name, title, build, patience
        self.library = BUILD / build / "libusher.so"
        self.needs = (f"build-{build}",)

    def environment(self, report: Path, in_python: bool) -> dict[str, str]:
        return {}

    def for_hosts(self, report: Path) -> list[str]:
        """Returns additional arguments for Tests/c/run."""
        return []

    def under(self, report: Path, in_python: bool = False) -> list[str]:
        """Returns the command that runs another command under the tool."""
        return []

    def report(self, name: str) -> Path:
        """Returns the prefix of the report files; the sanitizer appends a dot and the process id."""
        return LOGS / f"{name}.report"

    def hosts(
        self, kind: str, title: str, folder: str, *arguments: str, timeout_s: float = 0, rounds: int | None = None
    ) -> Part:
        """Returns the part that runs the programs of Tests/FOLDER; `rounds` sets USHER_TEST_ROUNDS."""
        timeout_s = timeout_s or hosts_limit_s(usual_s=600, patience=self.patience)
        name = f"{self.name}-{kind}"
        report = self.report(name)
        command = [
            PYTHON,
            str(TESTS / folder / "run"),
            str(self.library),
            "--python",
            PYTHON,
            "--patience",
            str(self.patience),
        ]
        command += [*self.for_hosts(report), *arguments]
        environment = self.environment(report, in_python=False)
        if rounds is not None:
            environment["USHER_TEST_ROUNDS"] = str(rounds)
        return Sanitized(
            name, f"{self.title}: {title}", command, count_sum, timeout_s, ROOT, environment, LOGS, self.needs
        )

    def stories(self, *stories: str, timeout_s: float = 900) -> Part:
        name = f"{self.name}-pytest"
        report = self.report(name)
        command = [
            *self.under(report, in_python=True),
            PYTHON,
            "-m",
            "pytest",
            "-v",
            "--timeout",
            str((HANG_S - 10) * self.patience),
            "-p",
            "no:cacheprovider",
        ]
        command += [f"--junitxml={LOGS / name}.xml", *(stories or STORIES)]
        own = {"USHER_LIBRARY": str(self.library), "USHER_TEST_PATIENCE": str(self.patience), "PYTHONMALLOC": "malloc"}
        environment = {**self.environment(report, in_python=True), **own}
        title = f"{self.title}: Python stories{', some' if stories else ''}"
        return Sanitized(
            name,
            title,
            command,
            count_xml,
            timeout_s,
            ROOT,
            environment,
            LOGS,
            self.needs,
            running=running_pytest,
            hang_s=HANG_S * self.patience,
            is_python=True,
        )

    def guardian(self) -> Part:
        """Returns the part that runs usher-guardian under the tool. The hosts use the ordinary shipped library."""
        name = f"{self.name}-guardian"
        report = self.report(name)
        LOGS.mkdir(parents=True, exist_ok=True)
        wrapper = LOGS / f"{name}.wrapper"
        words = [f"{key}={value}" for key, value in self.environment(report, in_python=False).items()]
        command = [*words, *self.under(report), str(self.library.parent / "usher-guardian")]
        # The library starts a program with few variables of the environment, so the wrapper sets them.
        wrapper.write_text(f"#!/bin/sh\nexec /usr/bin/env {shlex.join(command)}\n", encoding="utf-8")
        wrapper.chmod(0o755)
        tests = [
            PYTHON,
            "-m",
            "pytest",
            "-v",
            "--timeout",
            str((HANG_S - 10) * self.patience),
            "-p",
            "no:cacheprovider",
        ]
        tests += [f"--junitxml={LOGS / name}.xml", "Tests/guardian", "-m", "not exact"]
        environment = {
            "USHER_LIBRARY": str(BUILD / "shipped" / "libusher.so"),
            "USHER_TEST_GUARDIAN": str(wrapper),
            "USHER_TEST_PATIENCE": str(self.patience),
        }
        title = f"{self.title}: the guardian"
        needs = (*self.needs, "build-shipped")
        return Sanitized(
            name,
            title,
            tests,
            count_xml,
            1800,
            ROOT,
            environment,
            LOGS,
            needs,
            running=running_pytest,
            hang_s=HANG_S * self.patience,
        )

    def detects(self, *ways: str) -> Part:
        """Returns the part that runs the planted faults. The reports go to another folder and are not failures."""
        name = f"{self.name}-detects"
        report = LOGS / "planted" / name
        command = [
            PYTHON,
            str(TESTS / "sanitizers" / "run"),
            str(self.library),
            *self.for_hosts(report),
            "--report",
            str(report),
            *ways,
        ]
        environment = self.environment(report, in_python=False)
        return Part(
            name,
            f"{self.title}: planted faults are reported",
            command,
            count_lines,
            120,
            ROOT,
            environment,
            LOGS,
            self.needs,
        )

    def all_of(self) -> list[Part]:
        return [
            self.detects(*self.finds),
            self.hosts("c", "C hosts", "c", "--skip", "stress"),
            self.hosts("cpp", "C++ hosts", "cpp"),
            self.hosts(
                "stress",
                f"every function from eight threads, {STRESS_S} s",
                "c",
                "--only",
                "stress",
                "--seconds",
                str(STRESS_S),
                "--show",
            ),
        ]


class Sanitizer(Tool):
    """ThreadSanitizer or AddressSanitizer, compiled into library and hosts.

    Python is not compiled with them, so Python must load the sanitizer's run-time library first.
    """

    def __init__(self, name: str, title: str, build: str, patience: int, toolchain: Toolchain) -> None:
        super().__init__(name, title, build, patience)
        self.toolchain = toolchain
        self.is_thread = build.endswith("-thread")
        if self.is_thread:
            self.finds = ("race",)
        runtime = toolchain.runtime("tsan" if self.is_thread else "asan")
        swift = toolchain.swift_libraries
        self.flags = (
            f"-fsanitize={'thread' if self.is_thread else 'address'} -shared-libsan -Wl,-rpath,{runtime.parent}"
        )
        self.preload = [str(runtime)]
        if self.is_thread:
            # ThreadSanitizer needs libdispatch. Swift's own library must be loaded before ThreadSanitizer starts.
            # Otherwise ThreadSanitizer does not see how Swift synchronises threads that initialise a global variable.
            needed = ["dispatch", "BlocksRuntime", *([] if build.startswith("shipped") else ["swiftCore"])]
            self.flags += f" -Wl,--no-as-needed -L{swift} -Wl,-rpath,{swift} {' '.join(f'-l{name}' for name in needed)}"
            self.preload += [f"{swift}/lib{name}.so" for name in needed]

    def environment(self, report: Path, in_python: bool) -> dict[str, str]:
        options = f"log_path={report}:external_symbolizer_path={self.toolchain.tools / 'llvm-symbolizer'}"
        found = {"LD_PRELOAD": " ".join(self.preload)} if in_python else {}
        if self.is_thread:
            return {**found, "TSAN_OPTIONS": f"{options}:exitcode=66:second_deadlock_stack=1:die_after_fork=0"}
        # With Python, an error ends the process by a signal. A leak does not change the exit code, because Python
        # itself always leaks some memory.
        ending = "exitcode=0:abort_on_error=1" if in_python else "exitcode=67"
        return {
            **found,
            "ASAN_OPTIONS": f"{options}:{ending}:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
        }

    def for_hosts(self, report: Path) -> list[str]:
        return [
            "--cc",
            str(self.toolchain.tools / "clang"),
            "--cxx",
            str(self.toolchain.tools / "clang++"),
            f"--flags={self.flags}",
        ]

    def swift(self) -> Part:
        """Returns the part that runs `swift test`, in the SwiftPM folder in which the library was built."""
        name, kind = f"{self.name}-swift", "thread" if self.is_thread else "address"
        scratch = ROOT / f".build-{self.build}"
        command = [
            "swift",
            "test",
            "--disable-xctest",
            "--scratch-path",
            str(scratch),
            "-c",
            "release",
            "-Xswiftc",
            "-enable-testing",
        ]
        command += ["--sanitize", kind, "--xunit-output", str(LOGS / f"{name}.xml")]
        environment = {**self.environment(self.report(name), in_python=False), "USHER_SANITIZED": "1"}
        return Sanitized(
            name, f"{self.title}: Swift, core and engine", command, count_xml, 1200, ROOT, environment, LOGS, self.needs
        )

    def all_of(self) -> list[Part]:
        swift = [self.swift()] if self.build.startswith("checked") else []
        guardian = [self.guardian()] if self.build == "checked-address" else []
        return [*swift, *super().all_of(), self.stories(), *guardian]


class Valgrind(Tool):
    """valgrind, with the shipped build."""

    def under(self, report: Path, in_python: bool = False) -> list[str]:
        leaks = [
            "--leak-check=full",
            "--errors-for-leak-kinds=definite,possible",
            "--show-leak-kinds=definite,possible",
        ]
        options = [
            "-q",
            *([] if in_python else ["--error-exitcode=99"]),
            *leaks,
            "--num-callers=30",
            "--fair-sched=yes",
            "--trace-children=yes",
        ]
        return ["valgrind", *options, f"--log-file={report}.%p"]

    def for_hosts(self, report: Path) -> list[str]:
        return ["--under", " ".join(self.under(report))]

    def all_of(self) -> list[Part]:
        return [
            self.detects(*self.finds),
            self.hosts("c", "C hosts", "c", "--seconds", "20"),
            self.hosts("cpp", "C++ hosts", "cpp"),
            self.stories(*VALGRIND_STORIES),
            self.guardian(),
        ]


def build(kind: str) -> Part:
    command = ["make", "--no-print-directory", f"build/{kind}/libusher.so"]
    return Part(f"build-{kind}", f"build of the library: {kind}", command, count_exit, 1800, logs=LOGS)


def all_parts() -> list[Part]:
    toolchain = Toolchain()
    thread = Sanitizer("thread", "ThreadSanitizer", "checked-thread", 5, toolchain)
    address = Sanitizer("address", "AddressSanitizer", "checked-address", 3, toolchain)
    thread_shipped = Sanitizer("thread-shipped", "ThreadSanitizer, shipped build", "shipped-thread", 5, toolchain)
    address_shipped = Sanitizer("address-shipped", "AddressSanitizer, shipped build", "shipped-address", 3, toolchain)
    valgrind = Valgrind("valgrind", "valgrind, shipped build", "shipped", 10)
    late_answers = address_shipped.hosts(
        "late-answers",
        f"{LATE_ANSWERS:,} playbacks closed while the host answers",
        "c",
        "--only",
        "late_answers",
        "--patience",
        "30",  # a program counts as hanging after 30 times 60 s without a new claim
        "--show",
        timeout_s=3700,
        rounds=LATE_ANSWERS,
    )
    tools: list[Tool] = [thread, thread_shipped, address, address_shipped, valgrind]
    return [*(build(tool.build) for tool in tools), *(part for tool in tools for part in tool.all_of()), late_answers]


if __name__ == "__main__":
    try:
        sys.exit(run_parts(__doc__ or "", all_parts(), cores=1))
    except KeyboardInterrupt:
        sys.exit(130)
