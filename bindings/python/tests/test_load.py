"""Tests ``usher load``: Locust, a load tool, runs many screens, which play with libusher."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
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
    code, figures = load(capsys, he, *options, "--late", 10_000)
    assert (code, figures["exceeded"], figures["errors"]) == (0, [], [])
    operations = figures["operations"]
    assert operations["set-up"]["count"] == 12 == operations["licence"]["count"] == he.journal.count("license")
    beats = operations["heartbeat, ms late"]["count"]
    assert 0 < beats <= he.journal.count("heartbeat")
    assert he.sessions.active() == [] and he.journal.count("teardown") == 12
    assert len({session.account for session in he.sessions.all()}) == 12
    assert sum(process["held"] for process in figures["processes"]) == 12 and len(figures["processes"]) == 2
    assert figures["million"]["requests_per_s"] == round(1_000_000 / 60)
    page = report.read_text(encoding="utf-8")
    assert page.rindex("<body>") < page.index("usher load: All thresholds kept") < page.index("<td>set-up</td>")


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


def test_load_aSecondProcessJoinsTheMaster_playsAllScreens(
    headend_factory: HeadEndFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The master expects one worker and plays nothing itself. The worker is a command of its own, as on another
    machine; it ends with the master."""
    he = headend_factory(clock="system")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    both = ("--screens", 4, "--rate", 4, "--seconds", 4, "--master-port", port)
    command = [sys.executable, "-m", "usher.cli", "load", he.tenant_url, *map(str, both), "--join", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        code, figures = load(capsys, he, *both, "--expect-workers", 1)
        assert worker.communicate(timeout=60) == ("", "")
    assert (worker.returncode, code, figures["errors"]) == (0, 0, [])
    assert figures["operations"]["set-up"]["count"] == 4 == he.journal.count("setup")
    assert len(figures["processes"]) == 1 and figures["processes"][0]["held"] == 4
    assert he.sessions.active() == []


def test_load_interrupted_leavesNoSession(headend_factory: HeadEndFactory) -> None:
    """Ctrl-C comes while six screens play. They tear their sessions down, and the command prints the figures."""
    he = headend_factory(clock="system", period_s=1.0, grace=60.0, token_rotation="accept_previous")
    command = [sys.executable, "-m", "usher.cli", "load", he.tenant_url, "--screens", "6", "--rate", "6", "--json"]
    command += ["--late", "60000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as made:
        he.journal.wait_for(12, 60, route="heartbeat")
        made.send_signal(signal.SIGINT)
        printed, said = made.communicate(timeout=60)
    assert (made.returncode, said) == (0, ""), printed
    assert json.loads(printed)["operations"]["set-up"]["count"] == 6
    assert json.loads(printed)["million"]["bytes_per_playback"] >= 0, "one process alone measures its cost too"
    assert he.sessions.active() == [] and he.journal.count("teardown") == 6


def test_load_interruptedBeforeTheFirstScreen_saysSo(tmp_path: Path) -> None:
    """The child process that runs Locust never starts a screen; Ctrl-C ends the command."""
    (tmp_path / "locust.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(600)\n", encoding="utf-8")
    command = [sys.executable, "-m", "usher.cli", "load", "http://127.0.0.1:9/T"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as made:
        children = Path(f"/proc/{made.pid}/task/{made.pid}/children")
        deadline = time.monotonic() + 60
        while not children.read_text(encoding="ascii").strip() and time.monotonic() < deadline:
            time.sleep(0.05)
        made.send_signal(signal.SIGINT)
        _, said = made.communicate(timeout=60)
    assert (made.returncode, said) == (130, "usher load: interrupted\n")


def test_load_withoutTheLibrary_exits127AtOnce() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "usher.cli", "load", "http://127.0.0.1:9/T"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "USHER_LIBRARY": "/nonexistent/libusher.so"},
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (127, "", 1)
    assert ended.stderr.startswith("usher load: cannot load the usher library from /nonexistent/libusher.so")


def test_load_unreachableHeadEnd_exits1AndSaysWhy(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    code = main(["load", f"http://127.0.0.1:{port}/T", "--screens", "2", "--rate", "2", "--seconds", "3", "--json"])
    figures = json.loads(capsys.readouterr().out)
    assert code == 1 and figures["errors"], figures
    assert all(error["operation"] == "set-up" for error in figures["errors"])


@pytest.mark.parametrize("content", [None, " \n"])
def test_load_withoutTokens_exits2(content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokens.txt"
    if content is not None:
        file.write_text(content)
    assert main(["load", "http://127.0.0.1:9/T", "--tokens", str(file)]) == 2
    assert "--tokens: " in capsys.readouterr().err
