"""Tests the program ``usher-headend`` and its control endpoints."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from headend_client import Client, InBackground

from pytest_usher import HeadEndFactory
from usher.testing.headend import Fault, Fps, HeadEnd
from usher.testing.headend.cli import main
from usher.testing.redis_server import RedisServer

PROGRAM = [sys.executable, "-u", "-m", "usher.testing.headend"]


@contextmanager
def running(*options: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the program. If it still runs at the end of the test, kills it."""
    process = subprocess.Popen([*PROGRAM, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def started(process: subprocess.Popen[str]) -> str:
    """Returns the summary that the program prints at its start, up to the last content token."""
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first.startswith("usher-headend listening on "), first + (process.stderr.read() if process.stderr else "")
    return first


def ask(method: str, url: str, token: str | None = None, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {} if token is None else {"nv-authorizations": token}
    request = urllib.request.Request(
        url, method=method, headers=headers, data=data if data is not None else b"" if method != "GET" else None
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


def test_cli_aWholeStory(tmp_path: Path) -> None:
    ready_file, keys = tmp_path / "ready.json", tmp_path / "keys"
    keys.write_text(f"# movie\n{'01' * 16}:{'02' * 16}\n\n")
    options = [
        "--ready-file",
        str(ready_file),
        "--clock",
        "manual",
        "--rotation",
        "strict",
        "--limit",
        "1",
        "--period",
        "10",
    ]
    options += ["--key", f"{'ab' * 16}:{'cd' * 16}", "--key-file", str(keys), "--enforced", "clearkey", "fairplay"]
    options += ["--media", str(Path(__file__).parents[4] / "Tests" / "media" / "hls" / "media.json")]
    with running(*options, "--account", "alice", "--account", "bob") as process:
        started(process)
        ready = json.loads(ready_file.read_text())
        assert ready["pid"] == process.pid and set(ready["tokens"]) == {"alice", "bob"}
        assert urllib.request.urlopen(ready["page_url"], timeout=5).read().startswith(b"<!DOCTYPE html>")
        assert (ready["keys"], ready["enforced"], ready["ca_file"]) == (6, ["clearkey", "fairplay"], None)
        setup, control = f"{ready['ssm_url']}/v1/sessions/setup", ready["control_url"]
        made = ask("POST", setup, ready["tokens"]["alice"])
        assert made["heartbeat"] == 10
        assert ask("POST", setup, ready["tokens"]["alice"])["errorCode"] == 1007
        granted = ask(
            "POST",
            ready["license_urls"]["clearkey"],
            f"{ready['tokens']['alice']},{made['sessionToken']}",
            {"kids": ["q6urq6urq6urq6urq6urqw"], "type": "temporary"},
        )
        assert granted["keys"][0]["k"] == "zc3Nzc3Nzc3Nzc3Nzc3NzQ"
        assert ask("POST", f"{control}/advance", body={"ms": 20_000})["now_ms"]
        assert ask("GET", f"{control}/sessions?state=expired")["sessions"][0]["account"] == "alice"
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None and process.stderr is not None
        rest, errors = process.stdout.read(), process.stderr.read()
        assert (process.wait(timeout=10), errors) == (0, "")
    assert not ready_file.exists()
    assert ["page", ready["page_url"]] in [line.split() for line in rest.splitlines()]
    assert "1 stream per account, keep-alive every 10 s" in rest
    assert "content token of alice" in rest and ready["tokens"]["bob"] in rest
    summary = [line.split() for line in rest.splitlines()]
    assert ["expired", "1"] in summary and ["still", "held", "0"] in summary
    assert ["setup", "2"] in summary and ["license", "1"] in summary and ["all", "3"] in summary
    assert "\x1b" not in rest


def test_cli_anySetting_canBeSet(tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    options = [
        "--set",
        "v2.token_field=session.token",
        "--set",
        "v2.period_field=null",
        "--set",
        "heartbeat_key=heartBeat",
    ]
    options += [
        "--set",
        "session_token_lifetime_s=60",
        "--set",
        "grace=3",
        "--set",
        "strict_header=false",
        "--set",
        'auth_headers=["x-token"]',
    ]
    options += ["--set", "missing_token_status=401"]
    with running("--ready-file", str(ready_file), "--key", f"{'ab' * 16}:{'cd' * 16}", *options) as process:
        started(process)
        ready = json.loads(ready_file.read_text())
        assert ready["grace"] == 3
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{ready['ssm_url']}/v1/sessions/setup", b"", timeout=5)
        headers = {"x-token": f"%20{ready['tokens']['account-1']}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            ready["license_urls_v2"]["clearkey"], b'{"kids": ["q6urq6urq6urq6urq6urqw"]}', headers
        )
        with urllib.request.urlopen(request, timeout=5) as reply:
            granted = json.loads(reply.read())
        assert set(granted) == {"keys", "type", "session", "sessionDrmEnforced"}
        _, claims, _ = granted["session"]["token"].split(".")
        session = ask("GET", f"{ready['control_url']}/sessions")["sessions"][0]
        assert session["created_by"] == "license"
        assert json.loads(base64.urlsafe_b64decode(claims + "=="))["exp"] == session["created_ms"] // 1000 + 60


def test_cli_tls_writesItsAuthority(tmp_path: Path) -> None:
    with running("--tls", "--ready-file", str(tmp_path / "ready")) as process:
        assert "https://127.0.0.1:" in started(process)
        ready = json.loads((tmp_path / "ready").read_text())
        assert "BEGIN CERTIFICATE" in Path(ready["ca_file"]).read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0
    assert list(tmp_path.iterdir()) == [] and not Path(ready["ca_file"]).exists()


def test_cli_colours_onlyOnATerminal() -> None:
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen(PROGRAM, stdout=theirs, env=environment)
    os.close(theirs)
    try:
        assert os.read(ours, 4096).startswith(b"\x1b[1musher-headend")
    finally:
        process.terminate()
        os.close(ours)
        process.wait(timeout=10)


def test_cli_offLoopback_warnsThatPlayersNeedNoLogin() -> None:
    with running("--host", "0.0.0.0", "--key", f"{'ab' * 16}:{'cd' * 16}") as process:
        url = started(process).split()[3]
        process.terminate()
        assert process.stdout is not None and process.stderr is not None
        out, errors = process.stdout.read(), process.stderr.read()
    assert errors == (
        f"usher-headend: warning: other machines can connect to {url}; its services for players have no login, and "
        "without --tls everybody on the network can read their requests; listen on this address only in a lab\n"
    )
    assert "control token" in out and re.search(r"^  keys +1 content key$", out, re.M)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--period", "0"], "period_s: 0.0 is not a positive"),
        (["--key-file", "/nonexistent/keys"], "No such file"),
        (["--ready-file", "/nonexistent/ready"], "No such file"),
        (["--limit", "-1"], "limit: -1"),
        (["--set", "limit"], "'limit' is not NAME=VALUE"),
        (["--set", "limit=2.5"], "limit: 2.5 does not fit; wanted: int"),
        (["--set", "strict_header=1"], "strict_header: 1 does not fit; wanted: bool"),
        (["--set", "tenant=7"], "tenant: 7 does not fit; wanted: str"),
        (["--set", "enforced=fairplay"], "enforced: 'fairplay' is not a JSON array"),
        (["--set", 'enforced=["tv"]'], "enforced: unknown key system tv"),
        (["--set", "ssm_required=maybe"], "ssm_required: unknown value 'maybe'"),
        (["--set", "v2.tokenfield=a"], "v2.tokenfield: unknown setting; known are token_field"),
        (["--set", "v2={}"], "v2: {} does not fit; it has settings of its own"),
        (["--set", "v2.token_field=7"], "v2.token_field: 7 does not fit; wanted: NoneType, str"),
        (["--set", "missing_token_status=x"], "missing_token_status: 'x' does not fit; wanted: NoneType, int"),
        (["--set", "limit.more=1"], "limit.more: limit has no settings of its own"),
        (["--set", "keys=[]"], "keys: unknown setting"),
    ],
)
def test_cli_badSettings_exit2WithOneLine(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    said = capsys.readouterr().err
    assert said.startswith("usher-headend: ") and message in said and said.count("\n") == 1


def test_cli_takenPort_exits2(headend: HeadEnd, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", str(headend.port)]) == 2
    assert "address already in use" in capsys.readouterr().err


def test_cli_badKeys_areNamed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--key", "12:34"])
    assert "a key is KID:KEY" in capsys.readouterr().err
    (tmp_path / "keys").write_text("# fine\nnonsense\n")
    assert main(["--key-file", str(tmp_path / "keys")]) == 2
    assert "line 2: a key is KID:KEY" in capsys.readouterr().err


def test_cli_help_readsWell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "POST /_control/faults" in said and "--rotation {strict,accept-previous,none}" in said


def test_control_journal_filtersWaitsAndPrints(headend: HeadEnd, client: Client) -> None:
    client.setup(headend.content_token("alice"))
    client.setup(headend.content_token("bob"), body=b"\xff")
    found = client.control("GET", "journal?account=bob").json
    (entry,) = found["entries"]
    assert (found["reached"], found["routes"], entry["number"], entry["status"]) == (True, ["setup"], 2, 200)
    assert (entry["body_base64"], entry["outcome"], entry["issued"], entry["delivered"]) == (
        "/w==",
        "answered",
        1,
        True,
    )
    assert entry["authorization"][0]["kind"] == "content"
    part = headend.journal[1].parts[0]
    assert ["nv-authorizations", part.short] in entry["headers"] and part.raw not in json.dumps(found)
    waiting = InBackground(client.control, "GET", "journal?route=heartbeat&min=1&timeout_ms=5000")
    client.heartbeat(None)
    assert waiting.result().json["routes"] == ["heartbeat"]
    late = client.control("GET", "journal?route=teardown&min=1&timeout_ms=10&answered=true").json
    assert (late["reached"], late["entries"]) == (False, [])
    assert client.control("GET", "journal?after=2").json["routes"] == ["heartbeat"]
    assert client.control("GET", "journal?text=true").body.decode() == headend.journal.dump() + "\n"
    bobs = client.control("GET", "journal?text=true&account=bob").body.decode()
    assert bobs == headend.journal.dump(headend.journal.entries(account="bob")) + "\n" and "alice" not in bobs
    assert headend.journal.routes() == ["setup", "setup", "heartbeat"]


def test_control_journal_hasWholeTokensOnlyIfAsked(headend_factory: HeadEndFactory) -> None:
    for asked in (False, True):
        headend = headend_factory(journal_tokens=asked, fps=Fps(authorization="Bearer of-the-key-server"))
        client, token, rights = Client(headend), headend.content_token("alice"), headend.rights_token("content-1")
        session = client.setup(token).token
        headend.faults.add("heartbeat", Fault.error(1003, message=f"{session} is unknown"))
        client.heartbeat(session)
        client.send("POST", f"{headend.rights_url}?ExpressPlayToken={rights}")
        client.send("POST", headend.fps_url, headers={"Authorization": "Bearer of-the-key-server"})
        said = json.dumps(client.control("GET", "journal").json)
        for secret in (token, session, rights, "of-the-key-server"):
            assert (secret in said) == asked, f"{secret} in {said}"


def test_control_state_andSessions(headend: HeadEnd, client: Client) -> None:
    client.setup(headend.content_token("alice", device="tv"))
    state = client.control("GET", "state").json
    assert (state["clock"], state["active"], state["held"], state["requests"]) == ("manual", 1, 0, {"setup": 1})
    assert state["now_ms"] == headend.now_ms
    table = client.control("GET", "sessions?account=alice").json
    assert table["active"] == 1
    session = headend.sessions.only()
    assert table["sessions"][0]["id"] == session.id and table["sessions"][0]["state"] == "active"
    assert client.control("GET", "sessions?account=bob").json == {"active": 0, "sessions": []}


def test_control_faults_areQueuedReleasedAndCleared(headend: HeadEnd, client: Client) -> None:
    queued = {"route": "setup", "fault": [{"kind": "status", "status": 503}, {"kind": "stall"}], "times": 1}
    assert client.control("POST", "faults", queued).json == {"pending": 2}
    assert client.setup().status == 503
    asking = InBackground(client.setup)
    headend.wait_held(1)
    assert client.control("POST", "release", {"route": "setup", "count": 5}).json == {"released": 1}
    assert asking.result().status == 200
    client.control(
        "POST", "faults", {"route": "teardown", "fault": {"kind": "drop"}, "always": True, "account": "alice"}
    )
    assert client.control("POST", "faults", {"clear": True}).json == {"pending": 0}


def test_control_tokens_keysAndKills(headend: HeadEnd, client: Client) -> None:
    token = client.control("POST", "token", {"account": "alice", "max_sessions": 1, "kids": ["00" * 16]}).json["token"]
    session = client.setup(token).token
    assert client.control("POST", "key", {"kid": "00" * 16, "key": "11" * 16}).json == {"keys": 1}
    assert client.license("clearkey", f"{token},{session}", {"kids": ["AAAAAAAAAAAAAAAAAAAAAA"]}).status == 200
    for kind, parts in (("content-with-key", 2), ("device", 1), ("operator", 1)):
        assert len(client.control("POST", "token", {"kind": kind}).json["token"].split(",")) == parts
    assert client.control("POST", "kill", {"account": "alice"}).json == {"killed": 1}
    assert client.control("POST", "kill", {"device": "tv"}).json == {"killed": 0}
    client.teardown(session)
    client.heartbeat(session)
    assert client.control("GET", "violations").json["violations"][0]["kind"] == "after-teardown"
    assert client.control("GET", "violations?ignore=after-teardown").json == {"violations": []}


def test_control_mistakes_areNamed(headend: HeadEnd, headend_factory: HeadEndFactory, client: Client) -> None:
    for method, name, body, message in (
        ("POST", "advance", {}, "body has no ms"),
        ("POST", "advance", {"ms": -1}, "back in time"),
        ("POST", "advance", {"ms": 0, "minutes": 1}, "unknown member minutes"),
        ("POST", "faults", {"route": "setup", "fault": {"kind": "drop"}, "tims": 3}, "did you mean times?"),
        ("POST", "faults", {"route": "setup", "fault": {"kind": "explode"}}, "unknown fault kind 'explode'"),
        ("POST", "faults", {"route": "nowhere", "fault": {"kind": "drop"}}, "unknown route"),
        ("POST", "token", {"kind": "gold"}, "unknown token kind"),
        ("POST", "key", {"kid": "zz", "key": ""}, "hexadecimal"),
        ("GET", "journal?rout=x", None, "unknown query rout"),
        ("GET", "sessions?state=zzz", None, "there is no state 'zzz'; there are active"),
        ("GET", "journal?route=x", None, "unknown route 'x'"),
    ):
        reply = client.control(method, name, body)
        assert reply.status == 400 and message in reply.json["error"], reply.json
    assert headend.faults.pending == 0, "a wrong request has no effect"
    assert client.send("POST", f"{headend.control_url}/advance", body=b"[]").status == 400
    assert client.control("GET", "nowhere").status == 404
    assert (client.control("GET", "advance").status, client.control("GET", "advance").headers["Allow"]) == (405, "POST")
    assert "not manual" in Client(headend_factory(clock="system")).control("POST", "advance", {"ms": 1}).json["error"]
    assert Client(headend_factory(control=False)).control("GET", "state").status == 404


def test_program_withWorkers_sharesPortAndSessions(redis_server: RedisServer) -> None:
    """Three processes listen on one port. Each connection may go to another process, and all count the same sessions;
    at SIGTERM all end."""
    with running("--workers", "3", "--redis", redis_server.url, "--tenant", "CLI", "--limit", "2", "--json") as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        setup, token = f"{ready['ssm_url']}/v1/sessions/setup", ready["tokens"]["account-1"]
        codes = [ask("POST", setup, token).get("errorCode") for _ in range(12)]
        assert codes == [None, None, *[1007] * 10]
        handled = sum(ask("GET", f"{ready['control_url']}/state")["requests"].values())
        assert handled < 12, "one process has handled every request"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(ready["url"], timeout=5)


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--workers", "2"], "--redis"), (["--workers", "0"], "at least 1"), (["--redis", "http://x"], "redis")],
)
def test_program_withWrongWorkers_saysWhatIsMissing(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options) == 2
    assert words in capsys.readouterr().err
