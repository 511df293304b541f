"""A test hangs; the program that runs the tests (Tests/c/run, Tests/cpp/run or scripts/test.py) prints the name of the
test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from parts import MOST_HUNG, Part, count_xml, running_pytest, running_swift_tests  # noqa: E402

HANG_S = 3.0
"""The time after which a Python test counts as hanging here; in `make test` it is 60 s."""
CLAIMS = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) {
  printf("ok - the first\nok - the second\n");
  fflush(stdout);
  while (HANGS) pause();
  return 0;
}
"""
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, {runner!r})
from runner import Program, main
here = Path(__file__).parent
programs = [Program(here / name, linked=False, flags=["-DHANGS=" + hangs]) for name, hangs in {programs!r}]
sys.exit(main("", programs))
"""
TESTS = """
import ctypes, time
def test_good(): pass
def test_waits_inPython(): time.sleep(600)
def test_needsTwoSteps(step):
    for number in (1, 2):
        step(f"part {number} of two")
        time.sleep(0.7)
def test_waits_inC(step):
    step("a mutex that this thread has locked")
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    for _ in range(2): libc.pthread_mutex_lock(mutex)
def test_after(): pass
"""


def test_hostsThatHang_areNamedWithTheirLastClaim(tmp_path: Path) -> None:
    """Hosts in C and C++ make two claims and then hang; the runner ends each of them and names it with its last claim.
    After three such hosts the runner starts no further one."""
    programs = [
        ("hangs.c", "1"),
        ("works.c", "0"),
        ("hangs_too.cpp", "1"),
        ("hangs_again.c", "1"),
        ("late.c", "0"),
    ]
    for name, _ in programs:
        (tmp_path / name).write_text(CLAIMS)
    run = tmp_path / "run"
    run.write_text(RUN.format(runner=str(ROOT / "Tests" / "c"), programs=programs))
    command = [
        sys.executable,
        str(run),
        "no-library.so",
        "--python",
        sys.executable,
        "--hang-seconds",
        "1",
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=45)
    told = found.stdout.splitlines()
    for name in ("hangs", "hangs_too", "hangs_again"):
        assert f"failed: {name}: no new claim for 1 s; the last claim that passed: the second" in told, found
    assert f"failed: late: not run, because {MOST_HUNG} programs before it hung" in told, found
    assert told[-1] == "12 passed, 4 failed" and found.returncode == 1, found


def pytest_part(folder: Path, hang_s: float) -> Part:
    """Returns a part like those of scripts/test.py, with a time limit of 1 s for each test."""
    file = folder / "test_planted.py"
    file.write_text(TESTS)
    options = [
        "-v",
        "-p",
        "no:cacheprovider",
        "-p",
        "steps",
        "--timeout",
        "1",
        "-c",
        os.devnull,
        "--rootdir",
        folder,
    ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *map(str, options),
        f"--junitxml={folder / 'planted.xml'}",
        str(file),
    ]
    path = {"PYTHONPATH": str(ROOT / "Tests")}
    return Part(
        "planted",
        "",
        command,
        count_xml,
        40,
        folder,
        path,
        logs=folder,
        running=running_pytest,
        hang_s=hang_s,
    )


def test_pythonTestThatHangs_isNamed(tmp_path: Path) -> None:
    """One Python test waits for ever: pytest-timeout ends it, and the next test runs. Another test begins two steps and
    takes longer than the limit of one step: it passes. A third test hangs in a call of C, which pytest-timeout cannot
    end: the part ends, and names this test and its step."""
    part = pytest_part(tmp_path, HANG_S)
    began = time.monotonic()
    count = part.run()
    log = part.log.read_text()
    assert time.monotonic() - began < 30
    for name, outcome in {
        "test_good": "PASSED",
        "test_waits_inPython": "FAILED",
    }.items():
        assert f"test_planted.py::{name} {outcome}" in log, log
    assert "waits for: part 2 of two\nPASSED" in log, log
    assert count.failures == [
        "planted: no test ended for 3 s; running: test_planted.py::test_waits_inC, "
        "which waits for: a mutex that this thread has locked"
    ], log


@pytest.mark.parametrize(
    ("printed", "running"),
    [
        (
            "◇ Test one() started.\\n◇ Test two() started.\\n✔ Test one() passed after 1 s\\n",
            "running: two()",
        ),
        ("one\\ntwo\\n", "still running after 2 s; the last line of its output: two"),
    ],
    ids=["swift", "other"],
)
def test_commandThatHangs_isNamedWithWhatItPrinted(tmp_path: Path, printed: str, running: str) -> None:
    """A command prints something and then hangs; the failure names the Swift test that runs, or the last line."""
    command = ["sh", "-c", f"printf '{printed}'; exec sleep 600"]
    part = Part(
        "planted",
        "",
        command,
        count_xml,
        2,
        logs=tmp_path,
        running=running_swift_tests,
        hang_s=0.5,
    )
    assert running in part.run().failures[0]
