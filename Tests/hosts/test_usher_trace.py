"""Tests the statements of docs/traces.md: `usher trace`, and the traces that `usher run`, `usher gateway` and the
plug-in for mpv write."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hosts.chromium import Chromium
from hosts.conftest import Clip
from hosts.gateway import Start, ask, key_url
from hosts.gst import Room
from hosts.mpv import Mpv, options
from hosts.runs import Runs
from hosts.scene import PATIENCE_S, until, until_ended

from usher.testing.headend import HeadEnd

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
    the owner of the file may read it. `usher trace view` and `usher trace chrome` read it."""
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


@pytest.mark.quick
def test_usherGateway_writesATrace_withoutKeysAndTokens(
    server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path, built: Path, tmp_path: Path
) -> None:
    """`usher gateway --trace FILE` gives a player its key. The file has the requests of the journal, and neither token
    nor key nor the secret part of the URL; only the owner of the file may read it. `usher trace view` reads it."""
    file = tmp_path / "gateway.jsonl"
    gateway = start(film, trace=file)
    url = key_url(gateway.url())
    key = clips["progressive"].content.keys[0].key
    assert ask(url).body == key
    until(lambda: "heartbeat" in server.journal.routes(), "a heartbeat")
    assert gateway.stop() == 0
    until_ended(server)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    names = {"setup": "set-up", "license": "licence", "heartbeat": "heartbeat", "teardown": "teardown"}
    sent = [line["operation"] for line in lines if line["kind"] == "request"]
    assert sent == [names[route] for route in server.journal.routes()]
    assert Counter(line["kind"] for line in lines)["reply"] == len(sent) >= 4
    secrets = [part.raw for entry in server.journal for part in entry.parts]
    secrets += [(tmp_path / "token").read_text().strip(), key.hex(), urlsplit(url).path.split("/")[1]]
    assert len(secrets) > 6 and all(secrets)
    assert not [secret for secret in secrets if secret in file.read_text()]
    assert file.stat().st_mode & 0o777 == 0o600
    (read,) = shown(trace(built, "view", file).stdout)
    assert read["lines"] == lines


@pytest.mark.quick
def test_usherGateway_cannotWriteTheTrace_saysWhy(server: HeadEnd, start: Start, film: Path) -> None:
    """The folder of the trace does not exist: `usher gateway` names the option and the reason, and does not start."""
    gateway = start(film, trace="/nowhere/t")
    assert gateway.wait() == 3
    assert "usher: --trace: /nowhere/t: No such file or directory\n" in gateway.errors
    assert not gateway.out
    assert not server.journal


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


def bars(chromium: Chromium) -> dict[str, list[tuple[float, float]]]:
    """Returns the bars of the page in the browser by their class: the begin and the end of each bar, from left to
    right."""
    bar = "one => { const box = one.getBoundingClientRect(); return [one.getAttribute('class'), box.left, box.right] }"
    shown = chromium.evaluate(f"Array.from(document.querySelectorAll('svg rect'), {bar})")
    found: dict[str, list[tuple[float, float]]] = {}
    for name, left, right in sorted(shown, key=lambda bar: bar[1]):
        found.setdefault(name, []).append((left, right))
    return found


def test_zap_inABrowser_isTwoSessions(
    server: HeadEnd, chromium: Chromium, clips: dict[str, Clip], built: Path, tmp_path: Path
) -> None:
    """mpv zaps once and quits. The page of its trace has a bar for each request of the journal, and two sessions, one
    after the other."""
    first, second, file = clips["progressive"], clips["cbcs"], tmp_path / "zap.jsonl"
    (tmp_path / "token").write_text(server.content_token(content_id=first.content.content_id) + "\n")
    (tmp_path / "second").write_text(server.content_token(content_id=second.content.content_id) + "\n")
    ours = options(server, tmp_path / "token", trace=file)
    player = Mpv(tmp_path, f"--script={built / 'mpv' / 'usher.so'}", ours, "--vo=null", first.file)
    try:
        player.until_plays(first.file)
        until(lambda: "heartbeat" in server.journal.routes(), "a heartbeat")
        new = f"script-opts-append=usher-token-file={tmp_path / 'second'}"
        player.command("loadfile", str(second.file), "replace", new)
        player.until_plays(second.file)
        player.command("quit")
        assert player.wait() == 0
    finally:
        player.close()
    until_ended(server)
    page = tmp_path / "page.html"
    page.write_text(trace(built, "view", file).stdout)
    chromium.open_page(page)
    found = bars(chromium)
    routes = server.journal.routes()
    assert set(found) == {"session", "request", "keep"}
    assert len(found["keep"]) == routes.count("heartbeat")
    assert len(found["request"]) == len(routes) - routes.count("heartbeat") == 6
    assert len(found["session"]) == 2
    assert found["session"][0][1] <= found["session"][1][0] + 1
    chromium.screenshot(tmp_path / "zap.png", 1280, 720)


def test_twoScreens_inABrowser_shareASlot(
    runs: Runs, chromium: Chromium, clips: dict[str, Clip], built: Path, tmp_path: Path
) -> None:
    """Two screens play at a limit of one stream; the second screen waits for the slot. The page of both traces shows
    the refused set-ups, and that the session of the second screen begins when the session of the first screen has
    ended."""
    clip, files = clips["progressive"], [tmp_path / "kitchen.jsonl", tmp_path / "tablet.jsonl"]
    end = tmp_path / "end"
    script = 'echo ready; while [ ! -e "$0" ]; do sleep 0.05; done'
    first = runs.start(clip.file, clip.content.content_id, "sh", "-c", script, end, "{clip}", trace=files[0])
    until(lambda: "ready" in runs.text(first), "the first screen plays")
    second = runs.start(clip.file, clip.content.content_id, "true", "{clip}", trace=files[1], slot_wait=30)
    until(lambda: "1007" in runs.text(second), "the second screen waits")
    end.touch()
    assert (first.wait(PATIENCE_S), second.wait(PATIENCE_S)) == (0, 0), runs.text(second)
    runs.until_ended()
    page = tmp_path / "page.html"
    page.write_text(trace(built, "view", *files).stdout)
    chromium.open_page(page)
    found = bars(chromium)
    refused = [entry for entry in runs.server.journal.entries(route="setup") if entry.status != 200]
    assert len(found["bad"]) == len(refused) >= 1
    assert sum(len(found.get(name, [])) for name in ("request", "keep", "bad")) == len(runs.server.journal.entries())
    (of_first, of_second) = found["session"]
    assert of_first[1] <= of_second[0] + 1
    assert of_first[0] < found["bad"][0][0] < of_first[1]
    assert chromium.evaluate("document.querySelectorAll('#charts > svg').length") == 2
    chromium.screenshot(tmp_path / "screens.png", 1280, 720)


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
    assert page.count("</script>") == 2  # one ends the data, the other ends the program
    assert shown(page)[0]["lines"][-1]["message"] == hostile


@pytest.mark.quick
def test_chrome_joinsRequestAndReply(built: Path, tmp_path: Path) -> None:
    """Two traces begin half a second apart. `usher trace chrome` writes both on one time axis, in microseconds, and
    each request and each session begins and ends once."""
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
