"""Tests ``usher load``: screens of Locust that play with libusher."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_usher import HeadEndFactory
from usher.cli.main import main
from usher.testing.headend import Fault, HeadEnd

SCRIPT = Path(__file__).parents[3] / "scripts" / "load.py"
KID, KEY = bytes(16), bytes.fromhex("00112233445566778899aabbccddeeff")


def load(capsys: pytest.CaptureFixture[str], headend: HeadEnd, *options: object) -> tuple[int, dict[str, Any]]:
    """Runs the command. Returns its exit code and its figures."""
    code = main(["load", headend.tenant_url, "--json", *map(str, options)])
    printed = capsys.readouterr()
    assert printed.out, printed.err
    return code, json.loads(printed.out)


def test_load_onTwoProcesses_playsAndTearsEverythingDown(
    headend_factory: HeadEndFactory, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Twelve screens play on two processes, with licences, until the test ends. The figures have every operation; at
    the end the head-end holds no session, and the report is there."""
    he = headend_factory(clock="system", period_s=1.0, grace=20.0, token_rotation="accept_previous")
    he.add_key(KID, KEY)
    report = tmp_path / "report.html"
    options = ("--screens", 12, "--rate", 12, "--seconds", 4, "--workers", 2, "--license", "--html", report)
    code, figures = load(capsys, he, *options, "--late", 10_000, "--master-port", 15_557)
    assert (code, figures["exceeded"], figures["errors"]) == (0, [], [])
    operations = figures["operations"]
    assert operations["set-up"]["count"] == 12 == operations["licence"]["count"] == he.journal.count("license")
    beats = operations["heartbeat, ms late"]["count"]
    assert 0 < beats <= he.journal.count("heartbeat")
    assert he.sessions.active() == [] and he.journal.count("teardown") == 12
    assert len({session.account for session in he.sessions.all()}) == 12
    assert sum(process["held"] for process in figures["processes"]) == 12 and len(figures["processes"]) == 2
    assert figures["million"]["requests_per_s"] == round(1_000_000 / 60)
    assert "<html" in report.read_text(encoding="utf-8")


def test_load_sharedAccountsWhileRedisRestarts_neverExceedTheLimit() -> None:
    """A small run of `make load`: four processes share 40 accounts with two streams each, at two processes of the
    head-end, and Redis is killed twice or more. No account has ever had a third session, and no screen loses its
    session."""
    words = ["hammer", "--accounts", "40", "--seconds", "8", "--restart-every", "2"]
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, timeout=45, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the most sessions of an account at any time: 2; sessions lost: 0" in ended.stdout


def test_load_againstAHeadEndThatFails_exits1AndSaysWhy(
    headend_factory: HeadEndFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    he = headend_factory(clock="system")
    he.faults.add("setup", Fault.error(1006), always=True)
    code, figures = load(capsys, he, "--screens", 2, "--rate", 2, "--seconds", 3)
    assert code == 1
    assert any("errors, at most 0 are allowed" in words for words in figures["exceeded"]), figures
    assert [(error["operation"], "by fault script" in error["error"]) for error in figures["errors"]] == [
        ("set-up", True)
    ]


@pytest.mark.parametrize("content", [None, " \n"])
def test_load_withoutTokens_exits2(content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokens.txt"
    if content is not None:
        file.write_text(content)
    assert main(["load", "http://127.0.0.1:9/T", "--tokens", str(file)]) == 2
    assert "--tokens: " in capsys.readouterr().err
