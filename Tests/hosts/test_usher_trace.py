"""`usher trace`, and the traces that `usher run` and the plug-in for mpv write. Statements of docs/traces.md."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hosts.conftest import Clip
from hosts.gst import Room
from hosts.runs import Runs
from hosts.scene import PATIENCE_S

SESSION = [
    '{"t_ms":10,"kind":"context","unix_ms":1700000000010}',
    '{"t_ms":20,"kind":"play","playback":1,"player":1,"tag":7}',
    '{"t_ms":20,"kind":"request","request":1,"playback":1,"operation":"set-up","origin":"https://ssm.example"}',
    '{"t_ms":30,"kind":"reply","request":1,"http_status":200,"bytes":40}',
    '{"t_ms":30,"kind":"event","event":"SESSION_STARTED","playback":1,"period_ms":60000}',
    '{"t_ms":90,"kind":"request","request":2,"playback":1,"operation":"teardown","origin":"https://ssm.example"}',
    '{"t_ms":95,"kind":"reply","request":2,"http_status":200,"bytes":2}',
    '{"t_ms":95,"kind":"event","event":"SESSION_ENDED","playback":1}',
]


def trace(built: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [built / "usher" / "usher", "trace", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE_S)


def shown(page: str) -> list[dict[str, Any]]:
    """Returns the traces in a page of `usher trace view`."""
    (text,) = re.findall(r'<script type="application/json" id="traces">(.*)</script>', page)
    traces: list[dict[str, Any]] = json.loads(text)
    return traces


@pytest.mark.quick
def test_usherRun_writesATrace_withoutKeysAndTokens(runs: Runs, clips: dict[str, Clip], built: Path) -> None:
    """`usher run --trace FILE` plays a clip. The file has the requests of the journal, and neither token nor key; only
    its owner may read it. `usher trace view` and `usher trace chrome` read it."""
    clip, file = clips["progressive"], runs.folder / "screen.jsonl"
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", "sleep 2.5", "{clip}", trace=file)
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    names = {"setup": "set-up", "license": "licence", "heartbeat": "heartbeat", "teardown": "teardown"}
    sent = [line["operation"] for line in lines if line["kind"] == "request"]
    assert sent == [names[route] for route in runs.server.journal.routes()]
    assert Counter(line["kind"] for line in lines)["reply"] == len(sent) >= 4
    secrets = [part.raw for entry in runs.server.journal for part in entry.parts]
    secrets += [key.key.hex() for key in clip.content.keys]
    assert len(secrets) > 4
    assert not [secret for secret in secrets if secret in file.read_text()]
    assert file.stat().st_mode & 0o777 == 0o600
    (read,) = shown(trace(built, "view", file).stdout)
    assert read["lines"] == lines
    assert len(json.loads(trace(built, "chrome", file).stdout)["traceEvents"]) > len(sent)


def test_gstreamerLog_hasATrace(room: Room, clips: dict[str, Clip], built: Path) -> None:
    """GStreamer writes a log of the category usherdecrypt at level TRACE. `usher trace` finds the trace in this log."""
    clip, log = clips["cenc"], room.folder / "screen.log"
    player = room.play(clip, GST_DEBUG="usherdecrypt:TRACE", GST_DEBUG_NO_COLOR="1", GST_DEBUG_FILE=str(log))
    player.until("end")
    assert player.quit() == 0, player.text
    (read,) = shown(trace(built, "view", log).stdout)
    assert read["start_unix_ms"] > 0
    sent = [line["operation"] for line in read["lines"] if line["kind"] == "request"]
    assert [sent[0], sent[1], sent[-1]] == ["set-up", "licence", "teardown"]


def test_page_inABrowser_showsEachPlayback(built: Path, tmp_path: Path) -> None:
    """Chromium opens the page of two traces without a network: it shows a row for each playback, and each line."""
    for name in ("kitchen", "tablet"):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(SESSION) + "\n")
    page = tmp_path / "page.html"
    page.write_text(trace(built, "view", tmp_path / "kitchen.jsonl", tmp_path / "tablet.jsonl").stdout)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    assert "2 traces, 2 playbacks, 14 lines, 0.075 s; 0 s is 2023-11-14T22:13:20.000Z" in dom
    assert dom.count("playback 1</text>") == 2
    assert dom.count('class="session"') == 2
    assert dom.count("<td>set-up: reply</td><td>HTTP 200, after 10 ms, 40 bytes</td>") == 2


@pytest.mark.quick
def test_usherRun_cannotWriteTheTrace_saysWhy(runs: Runs, clips: dict[str, Clip]) -> None:
    """The folder of the trace does not exist: `usher run` names the option and the reason, and starts no player."""
    clip = clips["progressive"]
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", "echo played", "{clip}", trace="/nowhere/t")
    assert process.wait(PATIENCE_S) == 3
    assert runs.text(process) == "usher: --trace: /nowhere/t: No such file or directory\n"
    assert not runs.server.journal


@pytest.mark.quick
def test_view_ofAHostileMessage_isOneScript(built: Path, tmp_path: Path) -> None:
    """A server's message in a trace ends a script element, and begins another one. The page shows it as text."""
    hostile = "</script><script>alert(1)</script><!--"
    event = {"t_ms": 99, "kind": "event", "event": "SETUP_ERROR", "playback": 1, "status": "X", "message": hostile}
    file = tmp_path / "screen.jsonl"
    file.write_text("\n".join([*SESSION, json.dumps(event)]) + "\n")
    page = trace(built, "view", file).stdout
    assert hostile not in page
    assert page.count("</script>") == 2  # of the data, and of the program
    assert shown(page)[0]["lines"][-1]["message"] == hostile


@pytest.mark.quick
def test_chrome_joinsRequestAndReply(built: Path, tmp_path: Path) -> None:
    """Two traces of one minute. In the trace format of Chrome, each request and each session begins and ends once, on
    one time axis in microseconds."""
    second = [line.replace("1700000000010", "1700000000510") for line in SESSION]
    for name, lines in (("a", SESSION), ("b", second)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    events = json.loads(trace(built, "chrome", tmp_path / "a", tmp_path / "b").stdout)["traceEvents"]
    bars: dict[tuple[int, str, str], list[tuple[str, int]]] = {}
    for event in events:
        if event["ph"] in "be":
            bars.setdefault((event["pid"], event["cat"], event["name"]), []).append((event["ph"], event["ts"]))
    for process, shift in ((1, 0), (2, 500_000)):
        assert bars.pop((process, "request", "set-up")) == [("b", 20_000 + shift), ("e", 30_000 + shift)]
        assert bars.pop((process, "request", "teardown")) == [("b", 90_000 + shift), ("e", 95_000 + shift)]
        assert bars.pop((process, "session", "session")) == [("b", 30_000 + shift), ("e", 95_000 + shift)]
    assert not bars


@pytest.mark.quick
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        ("", "has no trace: the context's log level must be USHER_LOG_TRACE"),
        ("playback 7: SESSION_STARTED\n{}\n[]\n{broken\n\x00\xff\n", "has no trace"),
    ],
)
def test_trace_thatCannotBeRead_isNamed(built: Path, tmp_path: Path, content: str | None, words: str) -> None:
    """`usher trace` names a file that is missing or that has no trace, and prints no page."""
    file = tmp_path / "screen.jsonl"
    if content is not None:
        file.write_text(content)
    for form in ("view", "chrome"):
        done = trace(built, form, file)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith(f"usher: {file}: ")
        assert words in done.stderr


@pytest.mark.quick
@pytest.mark.parametrize("arguments", [[], ["view"], ["list", "file"]])
def test_arguments_areWrong(built: Path, arguments: list[str]) -> None:
    """`usher trace` without a format or a file, or with an unknown format, prints how to use it."""
    done = trace(built, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: usher trace view" in done.stderr
