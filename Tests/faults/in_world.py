"""Runs a program in new network and mount namespaces (world.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from world import enter

import usher

HERE = Path(__file__).resolve().parent
_compiling = threading.Lock()


def clocks(folder: Path) -> Path:
    """Returns the library of clocks.c, which this function compiles into `folder` if it is not there yet."""
    library = folder / "clocks.so"
    warnings = ("-Wall", "-Wextra", "-Werror")
    compiler = ["cc", "-shared", "-fPIC", "-O1", *warnings, "-o", str(library), str(HERE / "clocks.c")]
    with _compiling:
        if not library.exists():
            subprocess.run(compiler, timeout=60, check=True)
    return library


def run_in_world(folder: Path, program: str, *arguments: str, timeout_s: float) -> str:
    """Runs a Python program of this folder, and returns what it prints. `folder`: where to put the library of clocks.c,
    which is preloaded.

    Raises:
        RuntimeError: the program failed, or network namespaces are not permitted here.
    """
    environment = {
        **os.environ,
        "LD_PRELOAD": str(clocks(folder)),
        "PYTHONPATH": str(Path(usher.__file__).parents[1]),
    }
    command = [*enter(), sys.executable, str(HERE / program), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout
