#!/usr/bin/env python3
"""Runs the tests, part by part, and counts them. `make test` builds the libraries and programs, then runs this.

    scripts/test.py            every part
    scripts/test.py PART ...   these parts (see --list), e.g. `scripts/test.py python-shipped`

Prints one line for each part. If a part failed, also prints the failures and the last lines of its output.
build/test/PART.log has the whole output. The last line is the sum: "N passed, N failed". Exit 0: nothing failed.
Standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path

from parts import (
    BINDINGS,
    BUILD,
    PYTHON,
    ROOT,
    Part,
    count_checklist,
    count_exit,
    count_sum,
    count_swift,
    count_xml,
    hosts_limit_s,
    run_parts,
    running_pytest,
    running_swift_tests,
)

LOGS = BUILD / "test"
SHIPPED = BUILD / "shipped" / "libusher.so"
CHECKED = BUILD / "checked" / "libusher.so"
EMBEDDED = ROOT / ".build-embedded"
TEST_LIMIT_S = 50
"""The time limit of one Python test, or of one step of it (see the fixture `step`). It is less than `HANG_S`."""
MUTANTS = ("mutants", "row-mutants")
PYTEST_FOLDERS = (
    "Tests/cli",
    "Tests/stage",
    "Tests/stories",
    "Tests/security",
    "Tests/seeds",
    "Tests/faults",
    "Tests/floods",
    "Tests/guardian",
    "Tests/hosts",
    "Tests/runners",
    "Tests/abi",
)
"""Folders whose Python files pytest runs. The other Python files under Tests are programs, which mypy checks."""
FOLDERS_OF_PROGRAMS = ("scripts", "benchmarks", "benchmarks/python", "Tests/faults")
"""Folders from which Python programs import modules."""


def pytest(name: str, *arguments: str) -> list[str]:
    return [
        PYTHON,
        "-m",
        "pytest",
        "-v",  # names each test before it begins: running_pytest() reads the names
        "--timeout",
        str(TEST_LIMIT_S),
        "-o",
        f"faulthandler_timeout={TEST_LIMIT_S + 2}",  # pytest-timeout cannot end a call of the library that hangs
        "-p",
        "no:cacheprovider",
        f"--junitxml={LOGS / name}.xml",
        *arguments,
    ]


def gate(script: str, *arguments: str | Path) -> list[str]:
    return [str(ROOT / "Tests" / "abi" / script), *map(str, arguments)]


def python_tests(name: str, title: str, library: Path | None, *arguments: str, cores: float = 1) -> Part:
    environment = {"USHER_LIBRARY": str(library)} if library else {}
    command = pytest(name, *arguments)
    return Part(name, title, command, count_xml, 600, ROOT, environment, cores=cores, running=running_pytest)


def hosts() -> list[Part]:
    """Returns the parts for the C and the C++ hosts; each folder has a program `run` that runs its hosts."""
    found = []
    for folder, title, cores in (("c", "C hosts", 0.25), ("cpp", "C++ hosts", 0.75)):
        runner = ROOT / "Tests" / folder / "run"
        if runner.exists():
            for kind, library in (("shipped", SHIPPED), ("checked", CHECKED)):
                command = [PYTHON, str(runner), str(library), "--python", PYTHON, "--show"]
                title_of_kind = f"{title}, {kind} library"
                limit_s = hosts_limit_s(usual_s=300)
                found.append(Part(f"{folder}-{kind}", title_of_kind, command, count_sum, limit_s, cores=cores))
    return found


def all_parts() -> list[Part]:
    package = ("bindings/python/tests", "--ignore", "bindings/python/tests/headend")
    files = [file for folder in ("scripts", "Tests", "benchmarks") for file in sorted((ROOT / folder).rglob("*.py"))]
    programs = [str(file) for file in files if not any(file.is_relative_to(ROOT / tests) for tests in PYTEST_FOLDERS)]
    found = {"MYPYPATH": ":".join(str(ROOT / folder) for folder in FOLDERS_OF_PROGRAMS)}
    check_wheel = str(ROOT / "scripts" / "check-wheel")
    return [
        Part(
            "generate",
            "the files generated from the headers are up to date",
            [PYTHON, str(ROOT / "scripts" / "generate"), "--check"],
            cores=0.5,
        ),
        Part(
            "swift",
            "Swift: core and engine",
            ["swift", "test", "--xunit-output", str(LOGS / "swift.xml")],
            count_swift,
            600,
            cores=1.5,
            running=running_swift_tests,
        ),
        Part(
            "model",
            "every order of events, through the state machines",
            [str(ROOT / "scripts" / "model"), "check"],
            timeout_s=900,
        ),
        Part(
            "simulate",
            "random stories, through the engine: a small run",
            [str(ROOT / "scripts" / "simulate"), "check"],
            timeout_s=900,
            cores=1.2,
        ),
        Part(
            "fuzz",
            "fuzzers: the stored inputs, and some new ones",
            [PYTHON, str(ROOT / "Tests" / "fuzz" / "run"), "--check"],
            timeout_s=900,
            cores=1.3,
        ),
        Part("exports-shipped", "headers against exports, shipped library", gate("exports.sh", SHIPPED)),
        Part("exports-checked", "headers against exports, checked library", gate("exports.sh", CHECKED)),
        Part("names-shipped", "names of statuses and events, shipped library", gate("names.sh", SHIPPED)),
        Part("names-checked", "names of statuses and events, checked library", gate("names.sh", CHECKED)),
        Part("shipped", "shipped library: size, dependencies, hardening", gate("shipped.sh", SHIPPED)),
        Part(
            "dlopen-shipped",
            "dlopen by a host that does not link libusher, shipped library",
            gate("dlopen.sh", SHIPPED),
        ),
        Part(
            "dlopen-checked",
            "dlopen by a host that does not link libusher, checked library",
            gate("dlopen.sh", CHECKED),
        ),
        Part("api-shipped", "the table of functions, shipped library", gate("api.sh", SHIPPED)),
        Part("api-checked", "the table of functions, checked library", gate("api.sh", CHECKED)),
        python_tests("abi", "the binary interface against the recorded releases", SHIPPED, "Tests/abi"),
        Part(
            "headers",
            "each header compiles alone: C99, C++11; usher.hpp: C++17, C++20",
            gate("headers.sh"),
            timeout_s=600,
        ),
        Part(
            "cmake",
            "CMake: build, and errors when something is missing",
            gate("cmake.sh", EMBEDDED),
            timeout_s=600,
        ),
        Part(
            "install",
            "installation: hosts find and use it",
            [str(ROOT / "Tests" / "install" / "run"), str(EMBEDDED)],
            timeout_s=600,
        ),
        Part(
            "debs",
            "the Debian packages: lintian, and their contents",
            [str(ROOT / "Tests" / "packages" / "debs"), str(SHIPPED)],
            timeout_s=900,
            cores=0.7,
        ),
        *hosts(),
        python_tests("headend", "the head-end", None, "bindings/python/tests/headend", cores=0.85),
        python_tests("cli", "the command usher", SHIPPED, "Tests/cli", cores=0.4),
        python_tests("runners", "the programs that run the tests", SHIPPED, "Tests/runners", cores=0.25),
        python_tests("python-shipped", "the Python package, shipped library", SHIPPED, *package),
        python_tests("python-checked", "the Python package, checked library", CHECKED, *package),
        python_tests(
            "plugin", "the pytest plugin, and its example suite", SHIPPED, "bindings/pytest/tests", "examples/pytest"
        ),
        python_tests("stories-shipped", "stories, shipped library", SHIPPED, "Tests/stories", cores=0.7),
        python_tests("stories-checked", "stories, checked library", CHECKED, "Tests/stories", cores=0.75),
        python_tests("security-shipped", "secrets stay secret, shipped library", SHIPPED, "Tests/security", cores=0.75),
        python_tests("security-checked", "secrets stay secret, checked library", CHECKED, "Tests/security", cores=0.75),
        python_tests(
            "seeds-shipped",
            "hosts that follow the seeds line by line, shipped library",
            SHIPPED,
            "Tests/seeds",
        ),
        python_tests("hosts", "players with plug-ins, a selection", SHIPPED, "Tests/hosts", "-m", "quick", cores=0.4),
        python_tests("guardian-shipped", "hosts that die, with a guardian", SHIPPED, "Tests/guardian", cores=0.8),
        python_tests(
            "guardian-checked",
            "hosts killed at chosen points, checked library",
            CHECKED,
            "Tests/guardian/test_kills.py",
            "-k",
            "EachPoint or WhileItRecovers",
            cores=1.2,
        ),
        # This part measures how late heartbeats are, so only parts that mostly wait may run at the same time.
        python_tests("floods", "servers that send without end", SHIPPED, "Tests/floods", cores=1.9),
        python_tests(
            "faults",
            "faults on every operation, a selection",
            SHIPPED,
            "Tests/faults",
            "-m",
            "not whole",
            cores=0.5,
        ),
        Part(
            "examples",
            "examples against a head-end",
            [PYTHON, str(ROOT / "Tests" / "examples" / "run.py")],
            timeout_s=240,
            cores=0.15,
        ),
        Part(
            "bench",
            "benchmarks build and run",
            ["make", "--no-print-directory", "bench", "QUICK=1"],
            timeout_s=600,
            cores=0.6,
        ),
        Part(
            "mypy",
            "Python: types (mypy --strict)",
            [PYTHON, "-m", "mypy", "src/usher", "../pytest/src/pytest_usher", *programs],
            count_exit,
            folder=BINDINGS,
            environment=found,
        ),
        Part(
            "lint",
            "formatting, line lengths and lint",
            [PYTHON, str(ROOT / "scripts" / "format"), "--check"],
        ),
        Part(
            "manual",
            "the manual: headers documented, docs agree with the library",
            [PYTHON, str(ROOT / "scripts" / "check-docs"), str(SHIPPED)],
        ),
        Part(
            "wheel",
            "the Python wheel in a clean environment",
            [PYTHON, check_wheel, "--python", PYTHON, "--library", str(SHIPPED)],
            cores=0.7,
        ),
        Part(
            "docs",
            "README and docs: quotes, links and names are right",
            [PYTHON, str(ROOT / "Tests" / "docs" / "check.py")],
        ),
        Part(
            "tutorial",
            "the commands of the tutorial play under a session",
            [PYTHON, str(ROOT / "Tests" / "docs" / "tutorial.py")],
            timeout_s=400,
            cores=0.3,
        ),
        Part(
            "guides",
            "docs/guides: programs and commands do what the pages say",
            [PYTHON, str(ROOT / "Tests" / "docs" / "guides.py")],
            timeout_s=500,
            cores=0.7,
        ),
        Part(
            "sequences",
            "the pictures of docs/concepts: their scenes give the same messages",
            [PYTHON, str(ROOT / "scripts" / "draw-sequence"), "--check"],
            environment={"USHER_LIBRARY": str(SHIPPED)},
            cores=0.5,
        ),
        Part(
            "site",
            "make docs: the documentation site, without a warning",
            ["make", "--no-print-directory", "docs"],
            count_exit,
            timeout_s=900,
        ),
        Part("demo", "make demo", ["make", "--no-print-directory", "demo"], count_checklist, 600, cores=0.3),
        *(
            Part(
                name,
                f"{name}: the sources have the text that each mutant changes",
                [PYTHON, str(ROOT / "scripts" / name), "--list"],
                count_exit,
            )
            for name in MUTANTS
        ),
        Part(
            "conformance",
            "docs/conformance.md: every test it names ran and passed",
            [PYTHON, str(ROOT / "Tests" / "docs" / "conformance.py"), str(LOGS)],
            alone=True,  # reads the results of all parts before it
        ),
    ]


if __name__ == "__main__":
    try:
        sys.exit(run_parts(__doc__ or "", all_parts()))
    except KeyboardInterrupt:
        sys.exit(130)
