"""Runs one scenario of bad_network.py in a process with separate network namespaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from in_world import run_in_world


def play(folder: Path, scenario: str, sessions: int, timeout_s: float = 110) -> dict[str, Any]:
    """Plays the scenario and returns its results. `folder`: where to put the compiled library of clocks.c.

    Raises:
        RuntimeError: the program failed, or network namespaces are not permitted here.
    """
    found: dict[str, Any] = json.loads(
        run_in_world(folder, "bad_network.py", scenario, str(sessions), timeout_s=timeout_s)
    )
    return found
