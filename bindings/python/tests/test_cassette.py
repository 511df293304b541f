"""Tests cassettes: recording with the real library and head-end, redaction, replay on both sides, and bad files."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_usher import HeadEndFactory, Stage, StageFactory
from usher.cli.main import main
from usher.testing.cassette import Cassette, CassetteError, Exchange, read, write
from usher.testing.cassette.client import replay
from usher.testing.cassette.naming import TokenNames, exchange
from usher.testing.cassette.recorder import Recorder
from usher.testing.cassette.server import ReplayServer, token_for
from usher.testing.cassette.trace import from_trace
from usher.testing.headend import HeadEnd

HOUR_MS = 3_600_000
PERIOD_MS = 60_000


def played(stage: Stage, ssm_url: str, ms: int = HOUR_MS) -> None:
    """Plays for this time with the library, and stops."""
    playback = stage.play(delegate=stage.delegate(ssm_url=ssm_url))
    stage.advance(ms)
    playback.close()
    stage.settle()


def recorded(stage: Stage, ms: int = 3 * PERIOD_MS) -> Cassette:
    """Plays through a recording proxy, and returns the cassette. The proxy measures real time, so this function
    replaces the times of the exchanges by virtual times."""
    with Recorder(stage.headend.ssm_url) as recorder:
        played(stage, recorder.url(stage.headend.ssm_url), ms)
        found = recorder.cassette()
    times = [entry.at_ms - stage.headend.journal[0].at_ms for entry in stage.headend.journal]
    pairs = zip(found.exchanges, times, strict=True)
    return Cassette(tuple(Exchange(**{**vars(one), "at_ms": at_ms}) for one, at_ms in pairs))


@pytest.fixture
def cassette(stage: Stage) -> Cassette:
    """A play with three heartbeats."""
    return recorded(stage)


def send(url: str, operation: str, tokens: str) -> tuple[int, Any]:
    """Sends a request as a player would; returns the status and the JSON of the reply."""
    parts = urlsplit(f"{url}/v1/sessions/{operation}")
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    connection.request("POST", parts.path, headers={"nv-authorizations": tokens})
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, json.loads(body) if body else None


# ---- recording -------------------------------------------------------------------------------------------------------


def test_proxy_aPlayOfTheLibrary_namesOperationsAndTokens(cassette: Cassette) -> None:
    found = [(one.operation, one.tokens, one.status, one.session_token) for one in cassette.exchanges]
    assert found == [
        ("set-up", ("C1",), 200, "S1#1"),
        ("heartbeat", ("S1#1",), 200, "S1#2"),
        ("heartbeat", ("S1#2",), 200, "S1#3"),
        ("heartbeat", ("S1#3",), 200, "S1#4"),
        ("teardown", ("S1#4",), 200, None),
    ]
    assert cassette.exchanges[0].members["heartbeat"] == 60


@pytest.mark.usher_headend(token_form="letters")
def test_proxy_file_hasNoTokenAndNoAccount(stage: Stage, tmp_path: Path) -> None:
    write(recorded(stage), tmp_path / "play.cassette")
    text = (tmp_path / "play.cassette").read_text(encoding="ascii")
    sent = {part.raw for entry in stage.headend.journal for part in entry.parts}
    assert len(sent) == 5 and not [token for token in sent if token in text]
    assert "account-1" not in text and "TENANT1" not in text


def test_proxy_refusalAndLostReply_areRecorded(stage_factory: StageFactory) -> None:
    stage = stage_factory({"limit": 0})
    with Recorder(stage.headend.ssm_url) as recorder:
        ssm_url = recorder.url(stage.headend.ssm_url)
        assert send(ssm_url, "setup", stage.headend.content_token())[0] == 400
        stage.headend.faults.add("setup", "EMPTY_RESPONSE")
        with pytest.raises((http.client.HTTPException, OSError)):
            send(ssm_url, "setup", "any")
        first, second = recorder.cassette().exchanges
    assert (first.status, first.code, first.tokens) == (400, 1007, ("C1",))
    assert (second.status, second.tokens) == (None, ("C2",))


secrets = st.text(st.characters(codec="utf-8", exclude_characters="\r\n,"), min_size=6, max_size=40).filter(
    lambda text: text.strip() == text and not set(text) <= set('0123456789{}[]":,._#CS\\ ')
)
values = st.deferred(lambda: st.one_of(secrets, st.integers(), st.booleans(), st.none(), st.lists(values, max_size=2)))
KNOWN = ("heartbeat", "errorCode", "code", "sessionDrmEnforced", "sessionToken", "message", "license")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(secret=secrets, members=st.dictionaries(st.sampled_from(KNOWN) | secrets, values, max_size=5), data=st.data())
def test_exchange_anySecretAnywhere_isNotWritten(
    tmp_path_factory: pytest.TempPathFactory, secret: str, members: dict[str, Any], data: st.DataObject
) -> None:
    for name in data.draw(st.lists(st.sampled_from([*KNOWN, secret]), max_size=3)):
        members[name] = data.draw(st.sampled_from([secret, [secret], {secret: secret}]))
    names = TokenNames()
    body = data.draw(st.sampled_from([json.dumps(members).encode(), secret.encode(), b"\xff" + secret.encode()]))
    made = exchange(
        names,
        at_ms=0,
        operation="set-up",
        tokens=names.sent("set-up", f"{secret},{secret}2"),
        took_ms=0,
        status=200,
        body=body,
        retry_after=secret,
    )
    file = tmp_path_factory.getbasetemp() / "one.cassette"
    write(Cassette((made,)), file)
    text = file.read_text(encoding="ascii")
    words = {json.dumps(secret)[1:-1], secret}
    always = json.dumps({"cassette": 1, "source": "proxy", "end": 1, **vars(Exchange(0, "set-up"))}, default=dict)
    assert not [word for word in words if word in text and word not in always]
    assert read(file).exchanges == (made,)


def test_trace_ofTheLibrary_makesTheSameCassette(stage: Stage, cassette: Cassette, tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("\n".join(stage.trace), encoding="utf-8")
    traced = from_trace(tmp_path / "trace")

    def told(of: Cassette) -> list[Any]:
        return [(one.at_ms, one.operation, one.tokens, one.status, one.members) for one in of.exchanges]

    assert traced.source == "trace" and told(traced) == told(cassette)


# ---- replay ----------------------------------------------------------------------------------------------------------


def test_server_theLibraryPlaysAnHour_noDifference(stage: Stage, stage_factory: StageFactory) -> None:
    cassette = recorded(stage, HOUR_MS)
    assert len(cassette.exchanges) == 62
    with ReplayServer(cassette) as server:
        played(stage_factory({}), f"{server.url}/ssm")
        assert server.differences() == [] and server.is_over and server.requests == 62


def test_server_times_onlyKeepAlivesOutsideTheToleranceAreNamed(cassette: Cassette) -> None:
    """The second heartbeat comes 10 s early, the third one 2 s late, and the viewer stops a minute later: with a
    tolerance of 5 s only the second heartbeat is a difference."""
    now = 0.0
    with ReplayServer(cassette, tolerance_ms=5000, now_ms=lambda: now) as server:
        url, token = f"{server.url}/ssm", "C"
        for operation, at_s in (("setup", 7), ("heartbeat", 67), ("heartbeat", 117), ("heartbeat", 179)):
            now = at_s * 1000.0
            token = send(url, operation, token)[1]["sessionToken"]
        now += 60_000
        send(url, "teardown", token)
        assert server.differences() == [
            "request 3: the heartbeat came 50.0 s after the session's request before it; exchange 3 of the cassette "
            "has 60.0 s"
        ]


def test_server_timesOfTheLibrary_onVirtualTime_noDifference(stage: Stage, stage_factory: StageFactory) -> None:
    cassette, other = recorded(stage, HOUR_MS), stage_factory()
    with ReplayServer(cassette, tolerance_ms=1, now_ms=other.headend.clock.now_ms) as server:
        played(other, f"{server.url}/ssm")
        assert server.differences() == []


def test_client_timesOfReplies_outsideTheToleranceAreNamed(cassette: Cassette, headend: HeadEnd) -> None:
    """In the cassette the second reply took ten minutes, but the head-end replies at once. The client reports this
    difference."""
    slow = [
        Exchange(**{**vars(one), "took_ms": 600_000 if one.at_ms == PERIOD_MS else 0}) for one in cassette.exchanges
    ]
    headend.restart(keep_table=False)
    found = replay(
        Cassette(tuple(slow)),
        headend.ssm_url,
        lambda name: headend.content_token(),
        wait=lambda ms: None,
        tolerance_ms=300_000,
    )
    (line,) = found
    assert line.startswith("exchange 2 (heartbeat): the reply took ") and line.endswith("; the cassette has 600,000 ms")


def test_server_strict_oldTokenAndWrongOrder_areNamed(cassette: Cassette) -> None:
    with ReplayServer(cassette) as server:
        url = f"{server.url}/ssm"
        assert send(url, "setup", "my own")[1] == {"heartbeat": 60, "sessionToken": token_for("S1#1")}
        send(url, "heartbeat", token_for("S1#1"))
        send(url, "heartbeat", token_for("S1#1"))
        assert send(url, "teardown", token_for("S1#3"))[0] == 409
        assert server.differences() == [
            "request 3: the player sent a heartbeat with S1#1; exchange 3 of the cassette has S1#2",
            "request 4: the player sent a teardown; the cassette has a heartbeat (exchange 4)",
            "these requests of the cassette never came: 4 (heartbeat), 5 (teardown)",
        ]


def test_server_afterTheEnd_saysThatThereIsNoMore() -> None:
    with ReplayServer(Cassette((Exchange(0, "set-up", ("C1",), status=503, retry_after_s=7),))) as server:
        assert send(f"{server.url}/ssm", "setup", "t")[0] == 503
        send(f"{server.url}/ssm", "setup", "t")
        assert server.differences() == ["request 2: the player sent a set-up; the cassette has no more requests"]


def test_server_lenient_sessionsInAnotherOrder_noDifference() -> None:
    def beat(session: int) -> Exchange:
        return Exchange(
            0, "heartbeat", (f"S{session}#1",), status=200, body="json", members={"sessionToken": f"S{session}#2"}
        )

    def setup(session: int) -> Exchange:
        members = {"sessionToken": f"S{session}#1", "heartbeat": 60}
        return Exchange(0, "set-up", (f"C{session}",), status=200, body="json", members=members)

    two = Cassette((setup(1), setup(2), beat(1), beat(2)))
    with ReplayServer(two, order="lenient") as server:
        url = f"{server.url}/ssm"
        tokens = [send(url, "setup", name)[1]["sessionToken"] for name in ("a", "b")]
        assert send(url, "heartbeat", tokens[1])[1] == {"sessionToken": token_for("S2#2")}
        assert send(url, "heartbeat", tokens[0])[1] == {"sessionToken": token_for("S1#2")}
        assert server.differences() == []


def test_client_sameHeadEnd_anHourOfVirtualTime_noDifference(stage: Stage, headend_factory: HeadEndFactory) -> None:
    cassette, other = recorded(stage, HOUR_MS), headend_factory()
    assert replay(cassette, other.ssm_url, lambda name: other.content_token(), wait=other.advance) == []
    assert other.journal.counts() == {"setup": 1, "heartbeat": 60, "teardown": 1}
    other.assert_clean()
    assert other.sessions.active() == []


def test_client_otherHeadEnd_saysWhereItDiffers(cassette: Cassette, headend_factory: HeadEndFactory) -> None:
    other = headend_factory(period_s=30)
    other.faults.add("heartbeat", {"kind": "none"}, {"kind": "error", "code": 1006})

    def differing(headend: HeadEnd) -> list[str]:
        return replay(cassette, headend.ssm_url, lambda name: headend.content_token(), wait=lambda ms: None)

    assert differing(other) == [
        "exchange 1 (set-up): heartbeat is 30; the cassette has 60",
        "exchange 3 (heartbeat): the server replied 400 with code 1006; the cassette has 200",
        "exchange 4 (heartbeat) was not sent: the server gave no such token",
        "exchange 5 (teardown) was not sent: the server gave no such token",
    ]
    assert other.sessions.active() == [], "the replay gives every session back"
    assert differing(headend_factory(limit=0))[0] == (
        "exchange 1 (set-up): the server replied 400 with code 1007; the cassette has 200"
    )


# ---- bad files and the commands --------------------------------------------------------------------------------------


def test_read_cutAtAnyByte_isRefused(cassette: Cassette, tmp_path: Path) -> None:
    short = Cassette(cassette.exchanges[:2])
    write(short, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    assert read(tmp_path / "whole") == short
    for size in range(len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(CassetteError, match=r"is cut|is no cassette"):
            read(tmp_path / "cut")


GOOD = '{"at_ms":0,"operation":"set-up","tokens":["C1"],"took_ms":0,"status":200,"body":"empty","size":0,'
GOOD += '"members":{},"retry_after_s":null}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no cassette: its first line does not name a version"),
        ("\x00\x01", "is no cassette: its first line is not JSON"),
        ('{"cassette":2,"source":"proxy"}\n{"end":0}', "is of version 2; this usher reads version 1: install a newer"),
        ('{"cassette":1,"source":"disc"}\n{"end":0}', "line 1: the source 'disc' is unknown"),
        ('{"cassette":1,"source":"proxy"}\n' + GOOD + '\n{"end":2}', "has 1 exchanges, and its last line says 2"),
        ('{"cassette":1,"source":"proxy"}\n{"a":1}\n{"end":1}', "line 2: its members are not those of an exchange"),
        ('{"cassette":1,"source":"proxy"}\n[]\n{"end":1}', "line 2: not a JSON object"),
        (
            '{"cassette":1,"source":"proxy"}\n' + GOOD.replace("C1", "eyJhbGciOi") + '\n{"end":1}',
            "line 2: tokens: a value is no name of a token",
        ),
        (
            '{"cassette":1,"source":"proxy"}\n' + GOOD.replace('"members":{}', '"members":{"x":1}') + '\n{"end":1}',
            "line 2: members: a member is not of the known ones",
        ),
        (
            '{"cassette":1,"source":"proxy"}\n' + GOOD.replace(":200", ':"200"') + '\n{"end":1}',
            "line 2: status: not a whole number",
        ),
    ],
)
def test_read_wrongFile_isRefusedInWords(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "file").write_text(text, encoding="utf-8")
    with pytest.raises(CassetteError) as caught:
        read(tmp_path / "file")
    assert words in str(caught.value)


def test_command_recordFromATraceAndReplay_exitCodesTellDifferences(
    stage: Stage,
    cassette: Cassette,
    headend_factory: HeadEndFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace, file, token = (tmp_path / name for name in ("trace", "play.cassette", "token"))
    trace.write_text("\n".join(stage.trace), encoding="utf-8")
    assert main(["record", str(file), "--trace", str(trace)]) == 0
    other = headend_factory()
    token.write_text(f"{other.content_token()}\n", encoding="utf-8")  # editors end a file with a line end
    against = ["replay", str(file), "--against", other.ssm_url, "--token-file", str(token)]
    against += ["--tolerance", "60000"]  # this machine may be slow
    assert main([*against, "--control", other.control_url]) == 0
    assert "no difference" in capsys.readouterr().out
    other.faults.add("heartbeat", {"kind": "error", "code": 1006})
    assert main([*against, "--speed", "0", "--json"]) == 1
    assert "400 with code 1006" in json.loads(capsys.readouterr().out)["differences"][0]


def test_command_cutCassette_isAUsageErrorInOneLine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cut").write_text('{"cassette":1,"source":"proxy"}\n', encoding="utf-8")
    assert main(["replay", str(tmp_path / "cut")]) == 2
    captured = capsys.readouterr()
    assert "is cut" in captured.err and "Traceback" not in captured.err


def test_command_recordUntilCtrlC_thenReplayServer_saysWhatIsMissing(headend: HeadEnd, tmp_path: Path) -> None:
    file = tmp_path / "play.cassette"

    def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "usher.cli", *arguments]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert running.stderr is not None
        return running, running.stderr.readline().split()[2]

    recorder, url = started("record", str(file), "--to", headend.ssm_url)
    token = send(url, "setup", headend.content_token())[1]["sessionToken"]
    send(url, "teardown", token)
    recorder.send_signal(signal.SIGINT)
    assert recorder.communicate(timeout=30) == (f"{file}: 2 exchanges\n", "") and recorder.returncode == 0
    server, url = started("replay", str(file))
    send(url, "setup", "any")
    server.send_signal(signal.SIGINT)
    assert server.communicate(timeout=30)[0].splitlines() == [
        "these requests of the cassette never came: 2 (teardown)",
        "1 difference",
    ]
    assert server.returncode == 1


@pytest.mark.parametrize("route", ["setup", "heartbeat", "teardown"])
def test_command_replayInterrupted_leavesNoSession(
    route: str, cassette: Cassette, headend: HeadEnd, tmp_path: Path
) -> None:
    """Ctrl-C comes after a request, before its reply. The command waits for the reply, and tears the session down."""
    file, token = tmp_path / "play.cassette", tmp_path / "token"
    write(cassette, file)
    token.write_text(headend.content_token(), encoding="utf-8")
    headend.faults.add(route, {"kind": "stall", "when": "after"})
    before = headend.journal.count("teardown")
    command = [sys.executable, "-m", "usher.cli", "replay", str(file), "--against", headend.ssm_url]
    command += ["--token-file", str(token), "--speed", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as made:
        headend.wait_held(1, 60)
        made.send_signal(signal.SIGINT)
        headend.release()
        assert made.communicate(timeout=60) == ("", "usher replay: interrupted\n")
    assert made.returncode == 130
    assert headend.sessions.active() == [] and headend.journal.count("teardown") == before + 1


def test_command_replayAgainstNoServer_exits3(
    cassette: Cassette, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, token = tmp_path / "play.cassette", tmp_path / "token"
    write(cassette, file)
    token.write_text("any\n", encoding="utf-8")
    assert main(["replay", str(file), "--against", "http://127.0.0.1:9/ssm", "--token-file", str(token)]) == 3
    said = capsys.readouterr().err
    assert said.startswith("usher replay: no connection to the head-end: ") and said.count("\n") == 1
