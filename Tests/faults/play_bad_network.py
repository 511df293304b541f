"""Runs one scenario of bad_network.py in a process with separate network namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from world import enter

import usher

HERE = Path(__file__).resolve().parent


def play(folder: Path, scenario: str, sessions: int, timeout_s: float = 110) -> dict[str, Any]:
    """Plays the scenario and returns its results. `folder`: where to put the compiled library of wallclock.c.

    Raises:
        RuntimeError: the program failed, or network namespaces are not permitted here.
    """
    wall_clock = folder / f"wallclock-{os.getpid()}-{len(scenario)}-{scenario[:4].strip()}.so"
    warnings = ("-Wall", "-Wextra", "-Werror")
    compiler = ["cc", "-shared", "-fPIC", "-O1", *warnings, "-o", str(wall_clock), str(HERE / "wallclock.c")]
    subprocess.run(compiler, timeout=60, check=True)
    environment = {**os.environ, "LD_PRELOAD": str(wall_clock), "PYTHONPATH": str(Path(usher.__file__).parents[1])}
    command = [*enter(), sys.executable, str(HERE / "bad_network.py"), scenario, str(sessions)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
