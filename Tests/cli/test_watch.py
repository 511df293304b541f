"""Tests usher watch: it shows the accounts, sessions and requests of a head-end, and restores the terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from contextlib import suppress

from cli.running import PROGRAM, Usher, interrupted, press_ctrl_c, process

from pytest_usher import HeadEndFactory
from usher.cli.exits import Exit
from usher.cli.wire.client import Client
from usher.testing.headend import Fault, HeadEnd


def ask(headend: HeadEnd, call: str, token: str) -> str:
    headers = (("nv-authorizations", token),)
    reply = Client().send("POST", f"{headend.ssm_url}/v1/sessions/{call}", headers, b"{}")
    return str(reply.member("sessionToken"))


def test_watch_once_showsAccountsSessionsAndRequests(headend_factory: HeadEndFactory, usher: Usher) -> None:
    headend = headend_factory(limit=1, period_s=10)
    token = headend.content_token("alice", "film", device="tv")
    session = ask(headend, "setup", token)
    ask(headend, "setup", token)
    headend.faults.add("teardown", Fault.status(503))
    headend.advance(4_000)
    ran = usher("watch", headend.url, "--once")
    assert ran.code == Exit.OK and session not in ran.out and token not in ran.out
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[0].startswith("usher watch 1 stream per account, keep-alive every 10 s, clock manual, 2 requests")
    assert "alice ■ 1 of 1 1" in lines
    (row,) = [line for line in lines if "alice / tv film 0 4.0 s ago" in line]
    assert row.endswith(" 16.0 s") and row.count("━") == 16
    assert any("setup alice" in line and "400 / 1007" in line for line in lines)
    assert lines[-1] == "faults to come: teardown: status 503"


def test_watch_asJson_printsEachEventAsALine(headend: HeadEnd) -> None:
    with process("watch", headend.url, "--json") as made:
        assert made.stdout is not None
        assert json.loads(made.stdout.readline())["event"] == "snapshot"
        ask(headend, "setup", headend.content_token("alice"))
        while "sessions" not in (change := json.loads(made.stdout.readline())):
            pass
        assert change["event"] == "change" and change["sessions"][0]["account"] == "alice"
        headend.stop()
        assert json.loads(made.stdout.readlines()[-1])["event"] == "stopped"
        assert made.wait(10) == Exit.OK


def test_watch_asJsonForAnAccount_printsOnlyItsRows(headend: HeadEnd, usher: Usher) -> None:
    for name in ("alice", "bob"):
        ask(headend, "setup", headend.content_token(name))
    snapshot = json.loads(usher("watch", headend.url, "--json", "--once", "--account", "bob").out)
    assert [row["name"] for row in snapshot["accounts"]] == ["bob"]
    assert {row["account"] for key in ("sessions", "requests") for row in snapshot[key]} == {"bob"}


def test_watch_onceForAnAccount_showsOnlyItsRows(headend: HeadEnd, usher: Usher) -> None:
    for name in ("alice", "bob"):
        ask(headend, "setup", headend.content_token(name))
    shown = usher("watch", headend.url, "--once", "--account", "bob").out
    assert shown.count("bob") == 3 and "alice" not in shown  # its account, session and request


def test_watch_interrupted_endsWithoutATraceback(headend: HeadEnd) -> None:
    with process("watch", headend.url) as made:
        assert made.stdout is not None and "usher watch" in made.stdout.readline()
        press_ctrl_c(made)
        assert interrupted(made) == (Exit.OK, "")


def shown_on_a_terminal(headend: HeadEnd, kind: str) -> bytes:
    """Runs the command on a terminal of this kind (TERM), and presses Ctrl-C when it shows something. Returns all that
    the terminal got."""
    ours, its = pty.openpty()
    command = [*PROGRAM, "watch", headend.url]
    environment = {**os.environ, "TERM": kind}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, start_new_session=True, env=environment) as made:
        os.close(its)
        shown = b""
        while b"usher watch" not in shown:
            shown += os.read(ours, 65_536)
        made.send_signal(signal.SIGINT)
        with suppress(OSError):  # Linux: the other side of the terminal is closed
            while piece := os.read(ours, 65_536):
                shown += piece
    os.close(ours)
    assert made.returncode == Exit.OK and b"Traceback" not in shown
    return shown


def test_watch_onATerminal_ctrlCRestoresTheScreen(headend: HeadEnd) -> None:
    """On a terminal the command draws on the terminal's alternate screen. After Ctrl-C the terminal shows its normal
    screen and the cursor again."""
    shown = shown_on_a_terminal(headend, "xterm")
    assert shown.rindex(b"\x1b[?1049l") > shown.index(b"\x1b[?1049h") and b"\x1b[?25h" in shown


def test_watch_onADumbTerminal_showsEachChange(headend: HeadEnd) -> None:
    """A terminal that cannot move its cursor gets each change below the last one."""
    assert b"\x1b[?1049h" not in shown_on_a_terminal(headend, "dumb")


def test_watch_ofAnotherServerOrNone_saysSo(headend_factory: HeadEndFactory, usher: Usher) -> None:
    ran = usher("watch", "http://127.0.0.1:9", "--once")
    assert ran.code == Exit.UNREACHABLE and "the head-end does not answer" in ran.err
    assert "give the URL" in usher("watch", "127.0.0.1").err
    guarded = headend_factory(control_token="secret")
    assert "wants its control token" in usher("watch", guarded.url, "--once").err
    assert usher("watch", guarded.url, "--once", "--control-token", "secret").code == Exit.OK
