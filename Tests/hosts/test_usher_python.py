"""The program usher in C starts the Python package for the commands of the package, and says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hosts.scene import PATIENCE_S


def usher(built: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [built / "usher" / "usher", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **environment},
    )


@pytest.mark.quick
def test_programInC_runsACommandOfThePackage(built: Path) -> None:
    ran = usher(built, "explain", "1007", "--json", USHER_PYTHON=sys.executable)
    assert (ran.returncode, ran.stderr) == (0, "") and '"code": 1007' in ran.stdout
    assert usher(built, "probe", USHER_PYTHON=sys.executable).returncode == 2


@pytest.mark.quick
def test_programInC_withoutThePackage_saysWhatToInstall(built: Path, tmp_path: Path) -> None:
    (tmp_path / "usher.py").write_text("")  # a module, so that there is no package usher.cli
    ran = usher(built, "probe", USHER_PYTHON=sys.executable, PYTHONPATH=str(tmp_path))
    assert ran.returncode == 127 and "pip install 'libusher[cli]'" in ran.stderr and ran.stderr.count("\n") == 1
    ran = usher(built, "check", USHER_PYTHON="/nonexistent/python")
    assert ran.returncode == 127
    assert ran.stderr.startswith("usher check: this command needs Python, and /nonexistent/python cannot be run")


@pytest.mark.quick
def test_packageAndProgramInC_areOneCommand(built: Path) -> None:
    program = str(built / "usher" / "usher")
    ran = subprocess.run(
        [sys.executable, "-m", "usher.cli", "trace", "--help"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "USHER_PROGRAM": program},
    )
    assert ran.returncode == 0 and ran.stdout.startswith("usage: usher trace view")


@pytest.mark.quick
def test_completion_hasTheOptionsOfTheProgramInC(built: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "usher.cli", "completion", "bash"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "USHER_PROGRAM": str(built / "usher" / "usher")},
    )
    assert ran.returncode == 0 and "--slot-wait" in ran.stdout and "--allow-origin" in ran.stdout
