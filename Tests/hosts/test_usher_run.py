"""Tests `usher run`, which runs any player under a session."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosts.conftest import Clip, Row
from hosts.damage import damaged, huge_moov
from hosts.mpv import QUIET, image_output, pictures
from hosts.runs import Runs
from hosts.scene import PATIENCE_S, until
from hosts.terminal import Terminal

from usher.testing.headend import Fault

HOST = "usher run"

RAW = ["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p"]
"""With these options ffmpeg writes each decoded picture once, whatever its time stamp."""


def decoded(file: Path) -> str:
    """Returns the hash of the pictures that ffmpeg decodes from a clear file."""
    command = ["ffmpeg", "-v", "error", "-i", str(file), "-map", "0:v", *RAW, "-"]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True)
    return hashlib.sha256(done.stdout).hexdigest()


CONTENTS = ["progressive", "cenc", "cbcs", "dash-cenc", "dash-cbcs"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.quick] if name == "cbcs" else []) for name in CONTENTS]
)
def test_ffmpeg_isExact(runs: Runs, clips: dict[str, Clip], row: Row, name: str) -> None:
    """ffmpeg decodes an encrypted clip under a session of `usher run`; all pictures equal the clear ones."""
    clip, raw = clips[name], runs.folder / "raw.yuv"
    words = ["-v", "error", "-i", "{clip}", "-map", "0:v", *RAW, raw]
    process = runs.start(clip.file, clip.content.content_id, "ffmpeg", *words)
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    assert hashlib.sha256(raw.read_bytes()).hexdigest() == decoded(clip.clear), runs.text(process)
    runs.until_ended()
    assert [route for route in runs.server.journal.routes() if route != "heartbeat"] == ["setup", "license", "teardown"]
    runs.server.assert_clean()
    row("content", f"{HOST}, ffmpeg", clip.name, "exact")
    row("ends", HOST, "end of file", "nothing: the player ends, then the session is torn down")


@pytest.mark.quick
def test_remoteManifest_namesALocalFile_isNotRead(
    runs: Runs, clips: dict[str, Clip], web: Callable[[Path], str]
) -> None:
    """ffmpeg plays a manifest from a web server, and the manifest names a local file as its media; ffmpeg does not read
    this file, just as without `usher run`."""
    clip = clips["dash-cenc"]
    video, folder = clip.file.parent / "video.mp4", runs.folder / "web"
    folder.mkdir()
    (folder / "video.mp4").symlink_to(video)
    for name in ("video.mp4", video.as_uri()):
        manifest, raw = folder / "manifest.mpd", runs.folder / f"{len(runs.started)}.yuv"
        media = f'<SegmentList duration="6"><SegmentURL media="{name}"/></SegmentList>'
        manifest.write_text(re.sub(r"<BaseURL>.*?</SegmentBase>", media, clip.file.read_text(), flags=re.DOTALL))
        remote = name == "video.mp4"
        words = ["-v", "error", "-i", "{clip}", "-map", "0:v", *RAW, raw]
        process = runs.start(web(manifest), clip.content.content_id, "ffmpeg", *words)
        assert (process.wait(PATIENCE_S) == 0) == remote, runs.text(process)
        assert raw.exists() == remote, runs.text(process)


@pytest.mark.parametrize("name", CONTENTS)
def test_mpv_isExact(runs: Runs, clips: dict[str, Clip], row: Row, name: str) -> None:
    """mpv without a plug-in plays an encrypted clip under a session of `usher run`; each picture equals that of the
    clear clip."""
    clip, target, clear = clips[name], runs.folder / "pictures", runs.folder / "clear"
    process = runs.start(clip.file, clip.content.content_id, "mpv", *QUIET, *image_output(target))
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    reference = ["mpv", *QUIET, *image_output(clear), str(clip.clear)]
    subprocess.run(reference, check=True, timeout=PATIENCE_S, capture_output=True)
    assert pictures(target)[0] >= 100
    assert pictures(target) == pictures(clear), runs.text(process)
    runs.until_ended()
    row("content", f"{HOST}, mpv", clip.name, "exact")


def test_other_getsKeysFile(runs: Runs, clips: dict[str, Clip]) -> None:
    """A player that `usher run` does not know gets the clip and a file with the keys of all its tracks."""
    clip = clips["dash-two-keys"]
    process = runs.start(
        clip.file, clip.content.content_id, "sh", "-c", 'echo "$1"; cat "$2"', "x", "{clip}", "{keys-file}"
    )
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    lines = runs.text(process).split()
    assert lines[0] == str(clip.file)
    assert sorted(lines[1:]) == sorted(f"{key.kid.hex()}:{key.key.hex()}" for key in clip.content.keys)


@pytest.mark.parametrize("player", [["mpv", *QUIET, "--vo=null"], ["ffmpeg", "-re", "-i", "{clip}", "-f", "null", "-"]])
def test_arguments_showNoKey(runs: Runs, clips: dict[str, Clip], player: list[str]) -> None:
    """Neither arguments nor environment of `usher run` and of the player have the key or the token."""
    clip = clips["progressive"]
    process = runs.start(clip.file, clip.content.content_id, *player)
    child = runs.child(process)
    until(lambda: player[0].encode() in Path(f"/proc/{child}/cmdline").read_bytes(), "the player has been executed")
    key, token = clip.content.keys[0].key.hex(), runs.token_file.read_text().strip()
    for pid in (process.pid, child):
        for file in ("cmdline", "environ"):
            seen = Path(f"/proc/{pid}/{file}").read_bytes().decode(errors="replace")
            assert key not in seen
            assert token not in seen
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    assert key not in runs.text(process)


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGKILL, marks=pytest.mark.quick), signal.SIGSEGV, signal.SIGTERM]
)
def test_playerDies_slotIsFree(runs: Runs, clips: dict[str, Clip], row: Row, number: signal.Signals) -> None:
    """A signal ends the player; the slot is free within a second, and the exit code of `usher run` names the signal."""
    clip = clips["progressive"]
    process = runs.start(clip.file, clip.content.content_id, "ffmpeg", "-re", "-i", "{clip}", "-f", "null", "-")
    child = runs.child(process)
    assert runs.server.sessions.active()
    begin = time.monotonic()
    os.kill(child, number)
    code = process.wait(PATIENCE_S)
    assert time.monotonic() - begin < 2
    assert code == 128 + number or (number == signal.SIGTERM and code == 255)  # ffmpeg handles SIGTERM itself
    runs.until_ended()
    row("ends", HOST, f"{number.name} to the player", "nothing: `usher run` tears the session down at once")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_isForwarded(runs: Runs, clips: dict[str, Clip], row: Row, number: signal.Signals) -> None:
    """`usher run` forwards a signal to the player, waits for the player's end, and tears the session down."""
    clip = clips["progressive"]
    script = f"trap 'echo got {number.name}; exit 7' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", script, "{clip}")
    until(lambda: "ready" in runs.text(process), "the player is ready")
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 7
    assert f"got {number.name}" in runs.text(process)
    runs.until_ended()
    row("ends", HOST, f"{number.name} to usher run", "nothing: the player ends, then the session is torn down")


def test_ctrlC_comesOnce(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """The viewer presses Ctrl-C; the player gets SIGINT once, from the terminal, because `usher run` does not forward
    it."""
    clip, count = clips["progressive"], runs.folder / "count"
    script = f"trap 'echo x >>{count}' INT; echo ready >{count}.ready; while [ ! -e {count}.end ]; do sleep 0.05; done"
    with Terminal() as terminal:
        process = runs.start(clip.file, clip.content.content_id, "sh", "-c", script, "{clip}", terminal=terminal.inner)
        until(lambda: Path(f"{count}.ready").exists(), "the player is ready")
        os.write(terminal.outer, b"\x03")
        until(count.exists, "the player gets SIGINT")
        time.sleep(0.3)  # a second SIGINT would come at once
        Path(f"{count}.end").touch()
        process.wait(PATIENCE_S)
    assert count.read_text() == "x\n"
    runs.until_ended()
    row("ends", HOST, "Ctrl-C in a terminal", "nothing: the player ends, then the session is torn down")


def test_death_endsThePlayer(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """The head-end stops; when the lease of the session has ended, `usher run` ends the player and says why."""
    clip = clips["progressive"]
    script = "echo ready; while :; do sleep 0.05; done"
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", script, "{clip}", quit_timeout=1)
    until(lambda: "ready" in runs.text(process), "the player is ready")
    runs.server.stop()
    assert process.wait(PATIENCE_S) == 4
    assert len(runs.text(process).split("usher: ")[1]) > 20, runs.text(process)
    row("trouble", HOST, "the head-end dies", "ends the player when the session must have expired; exit code 4")


@pytest.mark.parametrize("limit_s", [1, 2])
def test_teardown_isBounded(runs: Runs, clips: dict[str, Clip], row: Row, limit_s: int) -> None:
    """The head-end does not answer the teardown; `usher run` ends at most one second after --quit-timeout."""
    clip = clips["progressive"]
    runs.server.faults.add("teardown", Fault.stall(), always=True)
    process = runs.start(clip.file, clip.content.content_id, "true", "{clip}", quit_timeout=limit_s)
    runs.server.wait_held(1, PATIENCE_S)
    begin = time.monotonic()
    assert process.wait(PATIENCE_S) == 0
    assert time.monotonic() - begin < limit_s + 1
    assert "did not confirm the end of the stream" in runs.text(process)
    row("trouble", HOST, "no reply to the teardown", "ends at --quit-timeout, prints a warning")


@pytest.mark.quick
def test_usherRunDies_playerEnds_andTheSlotIsFree(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """`usher run` is killed; the player gets SIGTERM, and the guardian tears the session down."""
    clip = clips["progressive"]
    script = "trap 'echo ended; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", script, "{clip}")
    until(lambda: "ready" in runs.text(process), "the player is ready")
    process.kill()
    until(lambda: "ended" in runs.text(process), "the player ends")
    runs.until_ended()
    row("ends", HOST, "SIGKILL to usher run", "nothing: the guardian tears the session down; the player ends")


@pytest.mark.parametrize("obeys", [True, False])
def test_kill_endsThePlayer(runs: Runs, clips: dict[str, Clip], row: Row, obeys: bool) -> None:
    """The operator kills the session; `usher run` ends the player and says why. If SIGTERM does not end the player,
    SIGKILL follows."""
    clip = clips["progressive"]
    script = f"trap '{'exit 0' if obeys else ''}' TERM; echo ready; while :; do sleep 0.05; done"
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", script, "{clip}", kill_after=1)
    until(lambda: "ready" in runs.text(process), "the player is ready")
    runs.server.kill_account("account-1")
    assert process.wait(PATIENCE_S) == 4
    assert len(runs.text(process).split("usher: ")[1]) > 20, runs.text(process)
    row("trouble", HOST, "the operator ends the session", "ends the player and says why; exit code 4")


def test_limit_isSaidInWords(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """The account has no free slot; `usher run` says so, and starts no player."""
    clip = clips["progressive"]
    runs.server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", "echo started", "{clip}")
    assert process.wait(PATIENCE_S) == 3
    assert "1007" in runs.text(process)
    assert "started" not in runs.text(process)
    row("trouble", HOST, "the limit is reached", "says so, starts no player; exit code 3")


@pytest.mark.quick
def test_slotWait_isSaidInWords_thenThePlayerStarts(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """`usher run --slot-wait` says that the account has no free slot, and starts the player when another device has
    freed its slot."""
    clip = clips["progressive"]
    runs.occupy()
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", "echo started", "{clip}", slot_wait=30)
    until(lambda: "Waiting for at most 30 s" in runs.text(process), "words about the limit and the wait")
    assert "started" not in runs.text(process)
    runs.server.kill_device("other")
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    assert runs.text(process).count("1007") == 1, runs.text(process)
    assert "started" in runs.text(process)
    runs.until_ended()
    row("trouble", HOST, "the limit is reached, with --slot-wait", "says so, starts the player when a slot is free")


@pytest.mark.parametrize("route", ["setup", "license"])
def test_mute_isBounded(runs: Runs, clips: dict[str, Clip], row: Row, route: str) -> None:
    """The head-end does not reply; when --timeout has passed, `usher run` says so. If SIGTERM comes earlier than this,
    `usher run` ends at most one second after --quit-timeout, and prints one warning."""
    clip = clips["progressive"]
    runs.server.faults.add(route, Fault.stall(), always=True)
    player = ["sh", "-c", "echo started", "{clip}"]
    late = runs.start(clip.file, clip.content.content_id, *player, timeout=1, quit_timeout=1)
    assert late.wait(PATIENCE_S) == 3
    assert "server cannot be reached" in runs.text(late), runs.text(late)
    runs.server.kill_account("account-1")
    process = runs.start(clip.file, clip.content.content_id, *player, quit_timeout=1)
    runs.server.wait_held(1, PATIENCE_S)
    process.terminate()
    begin = time.monotonic()
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert time.monotonic() - begin < 1 + 1
    text = runs.text(process)
    assert text.count("did not confirm the end of the stream") == 1, text
    assert "some time: done" not in text
    assert "started" not in runs.text(late) + text
    name = {"setup": "the set-up", "license": "the licence request"}[route]
    result = "says so at --timeout; a signal ends it at most one second after --quit-timeout, with a warning"
    row("trouble", HOST, f"no reply to {name}", result)


def test_muteFile_endsBySignal(runs: Runs, clips: dict[str, Clip]) -> None:
    """`usher run` waits for a web server that does not send the clip; SIGTERM ends it at once."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        mute.settimeout(PATIENCE_S)
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/a.mp4"
        process = runs.start(url, "any", "sh", "-c", "echo started", "{clip}")
        connection, _ = mute.accept()
        process.terminate()
        begin = time.monotonic()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM, runs.text(process)
        assert time.monotonic() - begin < 2
        assert "started" not in runs.text(process)
        connection.close()


def test_clip_cannotBeRead(runs: Runs) -> None:
    """`usher run` says why it cannot read the clip, and starts no player."""
    process = runs.start("/nonexistent.mp4", "any", "sh", "-c", "echo started", "{clip}")
    assert process.wait(PATIENCE_S) == 3
    assert "/nonexistent.mp4: No such file" in runs.text(process)
    assert "started" not in runs.text(process)


def test_license_isForOtherKeys(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """The licence does not have the key of the clip; `usher run` starts no player, and gives the slot back."""
    clip = clips["progressive"]
    other = {"keys": [{"kty": "oct", "kid": "AAAAAAAAAAAAAAAAAAAAAA", "k": "AAAAAAAAAAAAAAAAAAAAAA"}]}
    runs.server.faults.add("license", Fault.reply(200, body=other, processed=True), always=True)
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", "echo started", "{clip}")
    assert process.wait(PATIENCE_S) == 3
    assert "licence is for other content" in runs.text(process)
    assert "started" not in runs.text(process)
    runs.until_ended()
    row("trouble", HOST, "a licence for other keys", "says so, starts no player; exit code 3")


@pytest.mark.parametrize("kind", ["cut", "moov-of-200-MB", "lying-tenc", "other-key-id"])
def test_file_isDamaged(runs: Runs, clips: dict[str, Clip], row: Row, kind: str) -> None:
    """`usher run` says why it does not play a damaged file, and starts no player; no session remains."""
    clip = clips["progressive"]
    file = damaged(kind, clip, runs.folder)
    process = runs.start(file, clip.content.content_id, "sh", "-c", "echo started", "{clip}")
    assert process.wait(PATIENCE_S) == 3
    assert len(runs.text(process).split("usher: ")[1]) > 20, runs.text(process)
    assert "started" not in runs.text(process)
    until(lambda: not runs.server.sessions.active(), "no session is left")
    words = "says so, starts no player; exit code 3"
    row("trouble", HOST, f"a file that is damaged: {kind.replace('-', ' ')}", words)


def test_file_isText(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """`usher run` says that a text file is no encrypted film, and starts the player without a session; the player says
    why it does not play."""
    file = damaged("text", clips["progressive"], runs.folder)
    process = runs.start(file, "any", "ffmpeg", "-v", "error", "-i", "{clip}", "-f", "null", "-")
    assert process.wait(PATIENCE_S) == 1
    assert "it plays without a session" in runs.text(process)
    assert "Invalid data found" in runs.text(process)
    assert not runs.server.journal.entries()
    row("trouble", HOST, "a file that is damaged: text", "starts the player without a session; the player says why")


def test_moov_isHuge_memoryIsBounded(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """`usher run` needs no more memory for a film whose moov box has 200 MB than for the same film with a small moov
    box; ffmpeg decodes each picture of both films correctly."""
    clip, raw = clips["progressive"], runs.folder / "raw.yuv"
    peaks_kb = []
    for file in (clip.file, huge_moov(clip, runs.folder)):
        script = 'grep VmHWM /proc/$PPID/status; exec ffmpeg -v error -y "$@"'
        words = ["sh", "-c", script, "x", "-i", "{clip}", "-map", "0:v", *RAW, raw]
        process = runs.start(file, clip.content.content_id, *words, player="ffmpeg")
        assert process.wait(PATIENCE_S) == 0, runs.text(process)
        assert hashlib.sha256(raw.read_bytes()).hexdigest() == decoded(clip.clear), runs.text(process)
        found = re.search(r"VmHWM:\s*(\d+) kB", runs.text(process))
        assert found, runs.text(process)
        peaks_kb.append(int(found[1]))
    assert peaks_kb[1] - peaks_kb[0] < 2048, peaks_kb
    row("content", f"{HOST}, ffmpeg", "progressive MP4, cenc, moov of 200 MB", "exact; needs no memory for the moov")


GARBAGE = [
    *[("setup", fault) for fault in (Fault.html_page(), Fault.non_json(), Fault.status(503), Fault.drop())],
    *[
        ("license", fault)
        for fault in (Fault.html_page(), Fault.empty_body(), Fault.status(403), Fault.reply(200, body={}))
    ],
]


@pytest.mark.parametrize(("route", "fault"), GARBAGE, ids=[f"{route}-{fault.label}" for route, fault in GARBAGE])
def test_garbage_isSaidInWords(runs: Runs, clips: dict[str, Clip], row: Row, route: str, fault: Fault) -> None:
    """The head-end sends an unusable reply; `usher run` says why it does not play, starts no player, and leaves no
    session."""
    clip = clips["progressive"]
    runs.server.faults.add(route, fault, always=True)
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", "echo started", "{clip}")
    assert process.wait(PATIENCE_S) == 3, runs.text(process)
    assert len(runs.text(process).split("usher: ")[1]) > 20, runs.text(process)
    assert "started" not in runs.text(process)
    until(lambda: not runs.server.sessions.active(), "no session is left")
    name = {"setup": "the set-up", "license": "the licence request"}[route]
    row("trouble", HOST, f"{name} gets: {fault.label}", "says so, starts no player; exit code 3")


def test_slow_playsLater(runs: Runs, clips: dict[str, Clip], row: Row) -> None:
    """The head-end takes two seconds for each of two replies; `usher run` starts the player when both have come."""
    clip = clips["progressive"]
    runs.server.faults.add("setup", Fault.delay(2000))
    runs.server.faults.add("license", Fault.delay(2000))
    begin = time.monotonic()
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", "echo started", "{clip}")
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    assert time.monotonic() - begin >= 4
    assert "started" in runs.text(process)
    runs.until_ended()
    row("trouble", HOST, "each reply takes two seconds", "starts the player four seconds later")


@pytest.mark.parametrize(
    ("player", "options", "code", "named"),
    [
        (["nonexistent-player", "{clip}", "{keys-file}"], {}, 127, "nonexistent-player: No such file"),
        (["ffmpeg", "-f", "null", "-"], {}, 2, "write {clip} for the name of the clip"),
        (["vlc"], {}, 2, "{keys-file}"),
        (["mpv"], {"license": None}, 2, "--license is missing"),
        (["mpv"], {"token_file": "/nonexistent"}, 3, "/nonexistent: No such file"),
        (["mpv"], {"license": "foo"}, 3, "an option is wrong: --license: "),
        (["mpv"], {"ssm": "foo"}, 3, "an option is wrong: --ssm: "),
        (["mpv"], {"ca_file": "/nonexistent"}, 3, "an option is wrong: --ca-file: "),
        (["mpv"], {"header": "no header"}, 3, "an option is wrong: --header: "),
        (["mpv"], {"token_header": "no header"}, 3, "an option is wrong: --token-header: "),
        (["mpv"], {"timeout": "soon"}, 2, "number of seconds"),
        (["mpv"], {"licence": "x"}, 2, "licence"),
    ],
)
def test_arguments_areWrong(
    runs: Runs, clips: dict[str, Clip], player: list[str], options: dict[str, Any], code: int, named: str
) -> None:
    """An argument is wrong; one message of `usher run` names the argument and the reason, and no session remains."""
    clip = clips["progressive"]
    process = runs.start(clip.file, clip.content.content_id, *player, **options)
    assert process.wait(PATIENCE_S) == code, runs.text(process)
    assert runs.text(process).count(named) == 1, runs.text(process)
    until(lambda: not runs.server.sessions.active(), "no session is left")


def test_clear_playsWithoutSession(runs: Runs, clips: dict[str, Clip]) -> None:
    """`usher run` plays a clear clip without a session, and says so."""
    process = runs.start(clips["progressive"].clear, "any", "ffmpeg", "-v", "error", "-i", "{clip}", "-f", "null", "-")
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    assert "without a session" in runs.text(process)
    assert not runs.server.journal.entries()


@pytest.mark.quick
def test_pipe_asClip_reachesThePlayerWhole(runs: Runs, tmp_path: Path) -> None:
    """The clip is a named pipe. `usher run` reads nothing from it, so the player gets every byte."""
    pipe, bytes_of_clip = tmp_path / "pipe", os.urandom(300_000)
    os.mkfifo(pipe)
    process = runs.start(pipe, "content-1", "sh", "-c", 'sha256sum <"$0"', "{clip}")
    writer = threading.Thread(target=pipe.write_bytes, args=(bytes_of_clip,))
    writer.start()
    assert process.wait(PATIENCE_S) == 0, runs.text(process)
    writer.join(PATIENCE_S)
    assert hashlib.sha256(bytes_of_clip).hexdigest() in runs.text(process)


@pytest.mark.quick
def test_inheritedChild_endsBeforeThePlayerStarts_isIgnored(runs: Runs) -> None:
    """A child that the shell started before it became `usher run` ends while `usher run` waits for the web server of
    the clip. `usher run` continues to wait, and says that the server does not send the clip."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/clip.mp4"
        process = runs.start(url, "content-1", "true", "{clip}", shell='sleep 0.3 & exec "$@"')
        connection, _ = server.accept()
        with connection:
            time.sleep(1)  # the inherited child ends meanwhile
    assert process.wait(PATIENCE_S) == 3, runs.text(process)
    assert "clip.mp4" in runs.text(process)


@pytest.mark.quick
def test_childrenAreIgnored_playerEndsAllTheSame(runs: Runs, clips: dict[str, Clip]) -> None:
    """`usher run` ends with its player also if the program that started it ignores SIGCHLD."""
    clip = clips["progressive"]
    command = ["sh", "-c", "sleep 0.2; exit 7", "{clip}"]
    process = runs.start(clip.file, clip.content.content_id, *command, shell='exec env --ignore-signal=CHLD "$@"')
    assert process.wait(PATIENCE_S) == 7, runs.text(process)
    runs.until_ended()


def test_sessionLost_beforeTheLicenceComes_startsNoPlayer(runs: Runs, clips: dict[str, Clip]) -> None:
    """No heartbeat gets a reply until the session has expired, and the licence arrives only after that; `usher run`
    starts no player, and says why."""
    clip, started = clips["cbcs"], runs.folder / "started"
    runs.server.faults.add("license", Fault.stall("after"), times=1)
    runs.server.faults.add("heartbeat", Fault.stall(), always=True)
    script = 'touch "$0"'
    process = runs.start(clip.file, clip.content.content_id, "sh", "-c", script, started, "{clip}", "{keys-file}")
    until(lambda: runs.server.journal.entries(route="heartbeat"), "heartbeats begin")
    until(lambda: not runs.server.sessions.active(), "the session expires")
    sent = -1
    while sent < (sent := len(runs.server.journal.entries(route="heartbeat"))):
        time.sleep(1.5)  # longer than any pause between two retries, with this period
    runs.server.release("license")
    assert process.wait(PATIENCE_S) == 3, runs.text(process)
    assert not started.exists()
