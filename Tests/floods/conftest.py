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

HERE = Path(__file__).resolve().parent
C_FLAGS = ["-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--flood-seconds", type=float, default=0, help="how long to ask each flooding server (0: once)")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    key_updates = tmp_path_factory.mktemp("floods") / "key_updates"
    libraries = ["-lssl", "-lcrypto", "-lpthread"]
    command = ["cc", *C_FLAGS, str(HERE / "key_updates.c"), *libraries, "-o", str(key_updates)]
    subprocess.run(command, check=True, timeout=120)
    with subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), str(key_updates)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the flooding servers did not start"
        told: dict[str, Any] = json.loads(line)
        yield Servers(told["ca_file"], told["urls"], told["slow_urls"])
        process.kill()


@pytest.fixture(scope="session")
def flood_seconds(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--flood-seconds"))
