"""Runs the commands of a page that start a head-end in the background, and asks this head-end for its state. Standard
library only."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def asked(port: int, what: str) -> dict[str, Any]:
    """Returns what the head-end's control endpoint says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_control/{what}", timeout=10) as reply:
        answer: dict[str, Any] = json.load(reply)
        return answer


def held_sessions(port: int) -> int:
    return sum(one["state"] == "active" for one in asked(port, "sessions")["sessions"])


def run(script: str, output_file: Path, at_most_s: float) -> tuple[int, int]:
    """Runs the commands in the folder of the repository; bash ends at once if a command fails. Returns the exit code
    (-1: not ended in time), and the process group, in which the head-end still runs.

    The Python programs in these commands must buffer their output: without a buffer Python writes a line and its line
    end separately, and another thread may write between the two.
    """
    with output_file.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-euc", script],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return shell.wait(at_most_s), shell.pid
    except subprocess.TimeoutExpired:
        return -1, shell.pid
