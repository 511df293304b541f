"""Runs ``usher`` in tests: in this process, or as a process that gets Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from usher.cli.main import main
from usher.testing.headend import HeadEnd

PROGRAM = [sys.executable, "-m", "usher.cli"]
KID, KEY = bytes(range(16)), bytes(range(16, 32))


@dataclass
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Usher:
    """Runs commands in this process, and checks that no output has a token of the head-end."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.folder = folder
        self._capsys = capsys
        self._secrets: set[str] = set()

    def token_file(self, token: str, end: str = "\n") -> str:
        """Writes a token file, and returns its path. Later outputs must not have the token."""
        self._secrets.add(token)
        path = self.folder / "token.txt"
        path.write_bytes(f"{token}{end}".encode())
        return str(path)

    def __call__(self, *arguments: str) -> Ran:
        try:
            code = main(list(arguments))
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = self._capsys.readouterr()
        for secret in self._secrets:
            assert secret not in said.out + said.err
        assert "Traceback" not in said.err
        return Ran(code, said.out, said.err)


def aim(headend: HeadEnd, usher: Usher, *, key_system: str = "clearkey", api: Any = "v1") -> list[str]:
    """Returns the arguments that describe a reference head-end, with a licence for Clear Key."""
    headend.add_key(KID, KEY)
    more = ["--v2"] if api == "v2" else []
    return [
        headend.ssm_url,
        *("--token-file", usher.token_file(headend.content_token("alice"))),
        *("--license", headend.license_url(key_system, api)),
        *("--key-id", KID.hex()),
        *more,
    ]


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a command as a process of its own."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    made = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield made
    finally:
        if made.poll() is None:
            made.kill()
        made.communicate()


def interrupted(made: subprocess.Popen[str]) -> tuple[int, str]:
    """Waits for the end of a process that has got Ctrl-C. Returns its exit code and what it printed to stderr."""
    _, err = made.communicate(timeout=30)
    return made.returncode, err


def press_ctrl_c(made: subprocess.Popen[str]) -> None:
    made.send_signal(signal.SIGINT)


def settled(text: str) -> str:
    """Returns an output with other texts in place of ports and times, which differ from run to run."""
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", text)
    text = re.sub(r", port \d{4,5}", ", port 8080", text)
    text = re.sub(r"\b\d+(?:\.\d)? ms", "N ms", text)
    return re.sub(r"\b\d+\.\d s\b", "N s", text)
