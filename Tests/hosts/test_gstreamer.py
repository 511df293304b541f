"""Tests GStreamer's players with the plug-in and the reference head-end: what plays, and how playback ends."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts.calls import LIMIT_MS
from hosts.conftest import Clip, Row
from hosts.damage import with_pssh
from hosts.gst import DEFAULT_SIGNALS, HOST, Player, Room, environment, expected, settings
from hosts.scene import PATIENCE_S

from usher.testing.headend import Fault, HeadEnd, SessionState

# ---- contents --------------------------------------------------------------------------------------------------------

DASH = ("dash-cenc", "dash-cbcs", "dash-two-keys", "dash-rotating")
QUICK = ("cbcs", "dash-two-keys")
LONGER = ("cenc", "dash-cenc", "dash-cbcs", "dash-rotating")


def sound_of(room: Room, clip: Clip) -> tuple[int, str]:
    """Plays the sound of the clip, which ffmpeg has decrypted before. Returns the number of buffers and the hash of
    the decoded sound, as the player prints them."""
    clear = room.folder / "sound.mp4"
    options = ["-decryption_key", clip.content.keys[-1].key.hex(), "-i", str(clip.file.parent / "audio.mp4")]
    fragments = ["-movflags", "frag_keyframe+empty_moov+default_base_moof", "-c", "copy", str(clear)]
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *options, *fragments], check=True, timeout=60)
    player = room.play(None, clear.as_uri())
    player.until("end")
    assert player.quit() == 0, player.text
    return player.hash("sound")


@pytest.mark.parametrize("name", [*LONGER, *(pytest.param(name, marks=pytest.mark.quick) for name in QUICK)])
def test_content_inPlaybin_isExact(room: Room, clips: dict[str, Clip], row: Row, name: str) -> None:
    """playbin plays an encrypted item under a session; each picture equals that of the clear clip."""
    clip = clips[name]
    player = room.play(clip)
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    room.until_ended()
    routes = [route for route in room.server.journal.routes() if route != "heartbeat"]
    assert routes == ["setup", *["license"] * (len(routes) - 2), "teardown"]
    assert len(routes) - 2 <= len(clip.content.keys)
    room.server.assert_clean()
    if name.startswith("dash-c"):
        assert player.hash("sound")[1] == sound_of(room, clip)[1]
    row("content", f"{HOST}, playbin", clip.name, "exact")


@pytest.mark.parametrize("name", DASH)
def test_hls_inPlaybin_isExact(room: Room, clips: dict[str, Clip], row: Row, tmp_path: Path, name: str) -> None:
    """playbin plays an HLS playlist of encrypted fragmented MP4 whose EXT-X-KEY lines were removed, because GStreamer
    treats each EXT-X-KEY line as AES-128."""
    clip = clips[name]
    folder = tmp_path / "hls"
    folder.mkdir()
    for file in clip.file.parent.iterdir():
        if file.suffix == ".m3u8":
            lines = [line for line in file.read_text().splitlines() if not line.startswith("#EXT-X-KEY")]
            (folder / file.name).write_text("\n".join(lines) + "\n")
        else:
            (folder / file.name).symlink_to(file)
    player = room.play(clip, (folder / "main.m3u8").as_uri())
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    room.until_ended()
    row("content", f"{HOST}, playbin", clip.name.replace("DASH", "HLS without EXT-X-KEY lines"), "exact")


@pytest.mark.parametrize("name", ["cenc", "cbcs", "dash-rotating"])
def test_content_inPlaybin3_isExact(
    room: Room, clips: dict[str, Clip], row: Row, web: Callable[[Path], str], name: str
) -> None:
    """playbin3 plays files, and DASH from an HTTP server."""
    clip = clips[name]
    player = room.play(clip, web(clip.file) if clip.file.suffix == ".mpd" else None, "--playbin=playbin3")
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    room.until_ended()
    row("content", f"{HOST}, playbin3", clip.name, "exact")


@pytest.mark.quick
def test_progressiveFile_isRefusedInWords(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The file is progressive, and GStreamer's demuxer reads no encryption data of such files; the viewer reads why the
    file does not play, and sees no picture."""
    clip = clips["progressive"]
    player = room.play(clip)
    assert player.error() == "The item is encrypted in a way that this player cannot decrypt."
    assert player.quit() == 1
    assert not player.lines("pictures")
    room.until_ended()
    row(
        "content",
        f"{HOST}, playbin",
        clip.name,
        "refused with the reason: GStreamer reads encryption data in fragments only",
    )


@pytest.mark.parametrize("has_pssh", [False, True])
def test_progressiveByHttp_isRefusedOrDamaged(
    room: Room, clips: dict[str, Clip], row: Row, web: Callable[[Path], str], tmp_path: Path, has_pssh: bool
) -> None:
    """A progressive file comes by HTTP. Without a pssh box playbin refuses it. With a pssh box the plug-in takes the
    encrypted samples for clear ones: the pictures are damaged, and playbin reports no error."""
    clip = clips["preview"]
    (tmp_path / "files").mkdir()
    player = room.play(clip, web(with_pssh(clip, tmp_path / "files") if has_pssh else clip.file))
    case = f"{clip.name}, by HTTP, {'with' if has_pssh else 'without'} a pssh box"
    if has_pssh:
        player.until("end")
        assert player.quit() == 0, player.text
        clear = room.play(None, clip.clear.as_uri())
        clear.until("end")
        assert clear.quit() == 0, clear.text
        assert player.lines("pictures") != clear.lines("pictures")
        assert not player.lines("error")
        row("content", f"{HOST}, playbin", case, "damaged pictures, no error")
    else:
        assert player.error() == "The item is encrypted in a way that this player cannot decrypt."
        assert not player.lines("pictures")
        row("content", f"{HOST}, playbin", case, "refused with the reason")


def test_clearItem_playsWithoutSession(room: Room, clips: dict[str, Clip]) -> None:
    """playbin plays a clear item; the plug-in sends no request."""
    clip = clips["dash-cenc"]
    player = room.play(clip, clip.clear.as_uri())
    player.until("end")
    assert player.quit() == 0
    assert player.hash("pictures") == expected(clip)
    assert not room.server.journal.routes()


# ---- playing ---------------------------------------------------------------------------------------------------------


def test_pauseAndSeek_keepSessionAndKeys(room: Room, clips: dict[str, Clip]) -> None:
    """The viewer pauses and seeks; the item continues with the same session and one licence per key."""
    clip = clips["dash-two-keys"]
    player = room.play(clip, fast=False)
    player.until("is PLAYING")
    for second in (4, 1, 3, 0):
        player.say("pause")
        player.say(f"seek {second}")
        player.say("play")
    player.say("seek 5")
    player.until("end")
    assert player.quit() == 0, player.text
    assert not player.lines("error"), player.text
    assert room.count("setup") == 1
    assert room.count("license") <= 2
    room.until_ended()
    room.server.assert_clean()


def test_seekWhileWaitingForTheKey_isSafe(room: Room, clips: dict[str, Clip]) -> None:
    """The viewer seeks while the streams wait for their key; when the licence arrives, the item plays to its end."""
    room.server.faults.add("license", Fault.stall())
    player = room.play(clips["cenc"])
    room.server.wait_held(1)
    player.say("seek 2")
    player.say("seek 0")
    room.server.release()
    player.until("end")
    assert player.quit() == 0, player.text
    assert not player.lines("error"), player.text
    assert room.count("license") == 1


def test_randomZaps_atLimitOne_areNeverRefused(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The viewer zaps at random times, with a limit of one session. The head-end refuses no set-up, the last item
    plays, and no session is left. GStreamer 1.22 itself may abort in playsink if the player stops an item that is just
    beginning; then the test starts again with another account."""
    dice = random.Random(16)
    names = ["cenc", "cbcs", "dash-cenc", "dash-two-keys"]

    def zap(account: str) -> Player:
        player = room.play(clips["cenc"], fast=False, usher={"token": room.server.content_token(account, "dash-cenc")})
        for number in range(30):
            clip = clips[dice.choice(names)]
            threading.Event().wait(dice.choice([0, 0, 0.02, 0.1, 0.3]))
            token = room.server.content_token(account, clip.content.content_id)
            player.say(f"open {clip.file.as_uri()} token={token}")
            player.until("state NULL", number + 2)
        player.until("end")
        assert player.quit() == 0, player.text
        return player

    for account in ("a", "b", "c", "d"):
        try:
            player = zap(account)
            break
        except AssertionError as error:
            if "gst_play_sink_do_reconfigure: assertion failed" not in str(error):
                raise
    assert not player.lines("error"), player.text
    assert player.calls.longest_ms() < LIMIT_MS, player.text
    refused = [entry for entry in room.server.journal.entries(route="setup") if entry.status != 200]
    assert not refused, room.server.journal.dump()
    room.until_ended()
    row("trouble", HOST, "30 zaps at a limit of one", "none refused, no session left")


def test_twoScreensInOnePipeline_haveASessionEach(
    head_end: Callable[..., HeadEnd], tmp_path: Path, room: Room, clips: dict[str, Clip]
) -> None:
    """Two items play at the same time in one pipeline, with different screen names; each has its own session."""
    room.server = head_end(limit=2)
    command = ["gst-launch-1.0", "-q"]
    for name in ("cenc", "cbcs"):
        given = settings(
            room.server, tmp_path, token_file=None, token=room.token(clips[name].content.content_id), screen=name
        )
        command += ["filesrc", f"location={clips[name].file}", "!", "qtdemux", "!", "usherdecrypt"]
        command += [f"{key}={value}" for key, value in given.items()]
        command += ["!", "h264parse", "!", "avdec_h264", "!", "fakesink", "sync=true"]
    done = subprocess.run(command, env=environment(room.built), capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    routes = [route for route in room.server.journal.routes() if route in ("setup", "teardown")]
    assert routes == ["setup", "setup", "teardown", "teardown"]
    contents = sorted(session.content_ids for session in room.server.sessions.all())
    assert contents == [("dash-cbcs",), ("dash-cenc",)], contents
    room.until_ended()
    room.server.assert_clean()


# ---- ends ------------------------------------------------------------------------------------------------------------

EXPIRES = "the session, until it expires: two periods after the last heartbeat"


def launch(room: Room, clip: Clip, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Starts gst-launch-1.0 as a user does, waits until it has the licence, and returns its process. `variables`:
    further environment variables."""
    given = settings(room.server, room.give_token(clip.content.content_id))
    options = room.folder / "options"
    options.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    command = ["gst-launch-1.0", "-q", *words, "playbin", f"uri={clip.file.as_uri()}", "video-sink=fakesink sync=true"]
    process = subprocess.Popen(
        [*DEFAULT_SIGNALS, *command, "audio-sink=fakesink sync=true"],
        env=environment(room.built, USHER_GSTREAMER_OPTIONS=str(options), **variables),
        stderr=subprocess.PIPE,
        text=True,
    )
    room.server.journal.wait_for(1, route="license", answered=True, timeout=PATIENCE_S)
    return process


def test_launchEndsBySignal_tearsDown(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """gst-launch-1.0 gets SIGINT while the item plays; the plug-in tears the session down before the process ends."""
    process = launch(room, clips["dash-cenc"])
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 1)
    room.until_ended()
    row("ends", f"{HOST}, gst-launch-1.0", "SIGINT", "nothing: torn down before the process ended")


def test_launchGetsHangUp_playsOn(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """gst-launch-1.0 handles SIGHUP, which does not end it: the item plays to its end."""
    process = launch(room, clips["dash-cenc"])
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert room.count("heartbeat") >= 3  # the item is 6 s long
    room.until_ended()
    row("ends", f"{HOST}, gst-launch-1.0", "SIGHUP", "the session: the player plays to the end of the file")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGSEGV with --no-fault"])
def test_launchDiesBySignal_sessionExpires(room: Room, clips: dict[str, Clip], row: Row, name: str) -> None:
    """gst-launch-1.0 gets a signal that it does not handle, so no code of the plug-in runs; the head-end holds the
    session until it expires."""
    number, _, words = name.partition(" with ")
    process = launch(room, clips["dash-cenc"], *words.split())
    process.send_signal(signal.Signals[number])
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.Signals[number]
    assert room.server.sessions.active()
    room.until_ended(SessionState.EXPIRED)
    row("ends", f"{HOST}, gst-launch-1.0", name, EXPIRES)


def test_launchCrashes_waitsForADebugger(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """gst-launch-1.0 gets SIGSEGV, which it handles: the process waits for a debugger, and its other threads continue.
    So libusher keeps the session alive until the process ends. A real gdb would stop the process for some seconds."""
    gdb = room.folder / "gdb"
    gdb.write_text("#!/bin/sh\nexit 1\n")
    gdb.chmod(0o755)
    process = launch(room, clips["dash-cenc"], PATH=f"{room.folder}{os.pathsep}{os.environ['PATH']}")
    process.send_signal(signal.SIGSEGV)
    room.server.journal.wait_for(3, route="heartbeat", timeout=PATIENCE_S)
    assert process.poll() is None
    process.kill()
    errors = process.communicate(timeout=PATIENCE_S)[1]
    assert "Caught SIGSEGV" in errors and "Spinning" in errors, errors
    room.until_ended(SessionState.EXPIRED)
    row(
        "ends",
        f"{HOST}, gst-launch-1.0",
        "SIGSEGV",
        "the session, as long as the process waits for a debugger; then until it expires",
    )


@pytest.mark.parametrize(
    "name", ["end of the file", "stop", "quit", "SIGINT", "SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.quick)]
)
def test_end_tearsDown(room: Room, clips: dict[str, Clip], row: Row, name: str) -> None:
    """usher-gst-play tears the session down at once when playback ends in any way that the player notices."""
    player = room.play(clips["dash-cenc"], fast=name == "end of the file")
    player.until("session 1 LICENSE")
    if name == "end of the file":
        player.until("end")
    if name.startswith("SIG"):
        player.process.send_signal(signal.Signals[name])
        assert player.wait() == -signal.Signals[name], player.text
    elif name == "stop":
        player.say("stop")
        player.until("session 1 PLAYBACK_CLOSED")
    else:
        assert player.quit() == 0, player.text
    assert not room.server.sessions.active(), room.server.journal.dump()
    room.until_ended()
    room.server.assert_clean()
    row("ends", f"{HOST}, usher-gst-play", name, "nothing: torn down at once")


def test_exitWithMuteServer_endsInTime(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The head-end does not answer the teardown; gst-launch-1.0 ends at most one second after close-timeout, and prints
    a warning."""
    clip = clips["cbcs"]
    room.server.faults.add("teardown", Fault.stall(), always=True)
    given = settings(room.server, room.give_token(clip.content.content_id), close_timeout=500)
    command = ["gst-launch-1.0", "-q", "filesrc", f"location={clip.file}", "!", "qtdemux", "!", "usherdecrypt"]
    command += [f"{name}={value}" for name, value in given.items()] + ["!", "fakesink"]
    quiet = environment(room.built, GST_DEBUG="0")
    process = subprocess.Popen(command, env=quiet, stderr=subprocess.PIPE, text=True)
    room.server.wait_held(1, timeout=PATIENCE_S)
    begin = time.monotonic()
    errors = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, errors
    assert time.monotonic() - begin < 0.5 + 1
    assert errors.count("usher: the server did not confirm the end of a stream") == 1, errors
    room.server.release()
    row(
        "ends",
        f"{HOST}, gst-launch-1.0",
        "no reply to the teardown",
        "the session, until it expires; the process ends at most one second after close-timeout, and prints a warning",
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_crash_sessionExpires(room: Room, clips: dict[str, Clip], row: Row, number: signal.Signals) -> None:
    """usher-gst-play crashes or is killed; the head-end holds the session until it expires."""
    player = room.play(clips["cenc"], fast=False)
    player.until("session 1 LICENSE")
    player.process.send_signal(number)
    assert player.wait() == -number
    room.until_ended(SessionState.EXPIRED)
    row("ends", f"{HOST}, usher-gst-play", number.name, EXPIRES)


# ---- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cbcs", "dash-rotating"])
def test_leaksTracer_findsNothing(room: Room, clips: dict[str, Clip], name: str) -> None:
    """The item plays, with a seek and a zap; at the end GStreamer's leaks tracer finds no object that still exists."""
    clip = clips[name]
    player = room.play(clip, GST_TRACERS="leaks", GST_DEBUG="GST_TRACER:7")
    player.until("end")
    player.say("seek 1")
    player.until("end", 2)
    player.say(f"open {clip.file.as_uri()} token={room.token(clip.content.content_id)}")
    player.until("end", 3)
    assert player.quit() == 0, player.text
    found = [line for line in player.errors if "object-alive, " in line and "new format" not in line]
    assert not found, found


@pytest.mark.parametrize("period_s", [60.0])  # under valgrind, heartbeats of a shorter period would be late
def test_valgrind_findsNothing(room: Room, clips: dict[str, Clip]) -> None:
    """valgrind finds no invalid access and no lost memory in the plug-in's code."""
    clip = clips["cenc"]
    log = room.folder / "valgrind"
    tool = ("valgrind", "--leak-check=full", "--show-leak-kinds=definite", f"--log-file={log}", "--num-callers=30")
    player = room.play(clip, prefix=tool, G_SLICE="always-malloc")
    player.until("end", seconds=10 * PATIENCE_S)
    assert player.quit(10 * PATIENCE_S) == 0, player.text
    blocks = re.split(r"\n==\d+== \n", log.read_text())
    ours = [block for block in blocks if "libgstusher" in block]
    assert not ours, "\n\n".join(ours)
