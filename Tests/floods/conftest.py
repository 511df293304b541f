"""Fixtures and options of the flood tests: the process of the flooding servers, and how long each flood lasts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from floods import Servers


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--flood-seconds", type=float, default=0, help="how long to ask each flooding server (0: once)")


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    program = Path(__file__).with_name("server.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the flooding servers did not start"
        told: dict[str, Any] = json.loads(line)
        yield Servers(told["ca_file"], told["urls"])
        process.kill()


@pytest.fixture(scope="session")
def flood_seconds(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--flood-seconds"))
