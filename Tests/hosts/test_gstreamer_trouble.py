"""Tests GStreamer's playbin with the plug-in when a server fails or a file is damaged."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import time

import pytest
from hosts.calls import LIMIT_MS
from hosts.conftest import Clip, Row
from hosts.damage import damaged, huge_moov
from hosts.gst import HOST, Player, Room, built_program, environment, expected, settings
from hosts.scene import PATIENCE_S, peak_kb, until
from hosts.screen import Screen

from usher.testing.headend import Fault

TOO_MANY = "Too many devices are playing on this account right now."


@pytest.mark.quick
@pytest.mark.parametrize("period_s", [60.0])
def test_limit_isSaidInWords_andTheNextItemPlays(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """Another screen has the only slot; the viewer reads a message and sees no picture. When the slot is free, the next
    item plays."""
    room.occupy()
    clip = clips["cenc"]
    player = room.play(clip)
    assert player.error().startswith(TOO_MANY)
    assert not player.lines("pictures")
    room.server.kill_account("account-1")
    room.plays_next(player, clip)
    assert player.calls.longest_ms() < LIMIT_MS
    room.until_ended()
    row(
        "trouble",
        HOST,
        "another screen has the only slot",
        "an error message on the bus, no picture; the next item plays",
    )


@pytest.mark.parametrize("period_s", [60.0])
def test_limit_isShownInTheWindow(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """Another screen has the only slot: usher-gst-play shows a message in its window. Then the slot becomes free, the
    viewer opens the item again, and the window shows it."""
    room.occupy()
    clip = clips["cenc"]
    with Screen(room.folder) as screen:
        player = room.play(clip, screen=True, DISPLAY=screen.name)
        player.error()
        until(lambda: 0.002 < screen.share_of(lambda colour: min(colour) > 200) < 0.1, "white words on the screen")
        screen.shot(room.folder / "limit.png")
        room.server.kill_account("account-1")
        player.say(f"open {clip.file.as_uri()} token={room.token(clip.content.content_id)}")
        until(lambda: screen.share_of(lambda colour: max(colour) - min(colour) > 100) > 0.005, "pictures on the screen")
        assert player.quit() == 0, player.text
    room.until_ended()
    row("trouble", f"{HOST}, usher-gst-play", "another screen has the only slot", "shows the words in its window")


@pytest.mark.quick
@pytest.mark.parametrize("period_s", [60.0])
def test_slotWait_playsWhenTheOtherScreenStops(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """Another screen has the only slot, and the item waits for it; the bus has a message about the wait. The item plays
    when the operator has stopped the other screen."""
    room.occupy()
    clip = clips["cenc"]
    player = room.play(clip, usher={"slot_wait": 30_000})
    player.until("session 1 WAITING_FOR_SLOT")
    room.server.kill_account("account-1")
    player.until("end")
    assert player.quit() == 0, player.text
    assert not player.lines("error ")
    assert player.hash("pictures") == expected(clip)
    room.until_ended()
    row("trouble", HOST, "another screen has the only slot, with slot-wait", "waits, then plays every picture")


@pytest.mark.quick
def test_operatorKillsTheSession_playerStopsInWords(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The operator kills the session while the item plays; the player stops, and shows a message."""
    player = room.play(clips["dash-cenc"], fast=False)
    player.until("session 1 KEPT_ALIVE")
    room.server.kill_account("account-1")
    assert player.error()
    assert player.quit() == 1
    assert not player.lines("end")
    assert player.calls.longest_ms() < LIMIT_MS
    assert not room.server.sessions.active()
    row("trouble", HOST, "the operator kills the session", "an error message on the bus, the item stops")


@pytest.mark.quick
def test_licenseForOtherKeys_noPicture(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The licence does not have the key of the item; the viewer reads a message, and sees no picture."""
    other = '{"keys":[{"kty":"oct","kid":"AAAAAAAAAAAAAAAAAAAAAA","k":"AAAAAAAAAAAAAAAAAAAAAA"}],"type":"temporary"}'
    body = other.encode()
    room.server.faults.add("license", Fault.reply(200, body=body, processed=True), always=True)
    player = room.play(clips["dash-cenc"])
    assert player.error() == "The licence does not have the key of this item. It cannot be played."
    assert player.quit() == 1
    assert not player.lines("pictures") and not player.lines("sound")
    room.until_ended()
    row("trouble", HOST, "the licence has other keys", "an error message on the bus, no picture")


KINDS = ("text", "cut", "cut-in-the-middle", "lying-tenc", "other-key-id", "IVs-of-255-bytes", "subsamples-too-long")


@pytest.mark.parametrize("kind", [*KINDS, "moov-of-200-MB"])
def test_damagedFile_isSaidInWords(room: Room, clips: dict[str, Clip], row: Row, kind: str) -> None:
    """The viewer opens a damaged file. The player shows an error message, or plays the undamaged part; then it plays
    the next item."""
    clip = clips["cenc"]
    player = room.play(clip, damaged(kind, clip, room.folder).as_uri())
    if kind == "cut-in-the-middle":
        player.until("end")
        assert player.hash("pictures")[0] < 100
        result = "plays the part that is there"
    else:
        assert player.error()
        assert not player.lines("pictures")
        result = "an error message on the bus, no picture"
    room.plays_next(player, clip)
    room.until_ended()
    row("trouble", HOST, f"a file that is damaged: {kind.replace('-', ' ')}", result)


def test_moov_isHuge_plugInNeedsNoMemory(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """playbin plays a film whose moov box really has 200 MB. GStreamer's demuxer keeps this box in memory, even if the
    film is clear; the plug-in needs no further memory."""
    clip = clips["cenc"]
    clear = dataclasses.replace(clip, file=room.folder / "clear.mp4")
    decrypt = ["ffmpeg", "-v", "error", "-decryption_key", clip.content.keys[0].key.hex(), "-i", str(clip.file)]
    fragments = ["-c", "copy", "-movflags", "frag_keyframe+empty_moov+default_base_moof", str(clear.file)]
    subprocess.run([*decrypt, *fragments], check=True, timeout=PATIENCE_S)
    peaks_kb = []
    for film in (clip, clear):
        player = room.play(clip, huge_moov(film, room.folder).as_uri())
        player.until("end")
        peaks_kb.append(peak_kb(player.process.pid))
        assert player.quit() == 0, player.text
        assert player.hash("pictures") == expected(clip)
    print(f"{HOST}: peaks of {peaks_kb} kB")
    assert peaks_kb[0] - peaks_kb[1] < 20_000, peaks_kb
    room.until_ended()
    result = "exact; the plug-in adds no memory to that of the demuxer, which holds the moov"
    row("content", f"{HOST}, playbin", f"{clip.name}, moov of 200 MB", result)


FAULTS = [Fault.html_page(), Fault.non_json(), Fault.status(503), Fault.drop()]


@pytest.mark.parametrize("route", ["setup", "license"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.label)
def test_badReply_isSaidInWords(room: Room, clips: dict[str, Clip], row: Row, route: str, fault: Fault) -> None:
    """A server sends an unusable reply; the player shows a message, still reacts to commands, and plays the next
    item."""
    clip = clips["cenc"]
    room.server.faults.add(route, fault, always=True)
    player = room.play(clip)
    assert player.error()
    assert not player.lines("pictures")
    room.server.faults.clear()
    room.until_ended() if route == "license" else room.server.kill_account("account-1")
    room.plays_next(player, clip)
    assert player.calls.longest_ms() < LIMIT_MS
    what = {"setup": "the set-up", "license": "the licence request"}[route]
    row(
        "trouble",
        HOST,
        f"{what} gets: {fault.label}",
        "an error message on the bus, no picture; the next item plays",
    )


@pytest.mark.parametrize("route", ["setup", "license"])
def test_muteServer_stopAndZapAtOnce(room: Room, clips: dict[str, Clip], row: Row, route: str) -> None:
    """A server does not reply, and the streaming threads wait for the key. Stop and zap return at once."""
    clip = clips["dash-two-keys"]
    room.server.faults.add(route, Fault.stall())
    player = room.play(clip)
    room.server.wait_held(1)
    player.say("pause")
    player.say("stop")
    player.until("state READY", seconds=2)
    assert player.calls.longest_ms() < LIMIT_MS, player.text
    room.server.release()
    room.plays_next(player, clip)
    room.until_ended()
    what = {"setup": "the set-up", "license": "the licence request"}[route]
    row("trouble", HOST, f"no reply to {what}", "stop returns at once; the next item plays")


@pytest.mark.parametrize("route", ["setup", "license"])
def test_muteServer_isSaidInWords(room: Room, clips: dict[str, Clip], row: Row, route: str) -> None:
    """A server does not reply within license-timeout; the viewer reads a message, and the player plays the next
    item."""
    clip = clips["cenc"]
    room.server.faults.add(route, Fault.stall(), always=True)
    begin = time.monotonic()
    player = room.play(clip, usher={"license_timeout": 1000})
    assert "server cannot be reached" in player.error()
    assert time.monotonic() - begin >= 1
    assert not player.lines("pictures")
    room.server.faults.clear()
    room.server.release()
    room.plays_next(player, clip)
    assert player.calls.longest_ms() < LIMIT_MS
    room.until_ended()
    what = {"setup": "the set-up", "license": "the licence request"}[route]
    result = "an error message on the bus, no picture; the next item plays"
    row("trouble", HOST, f"no reply to {what} within license-timeout", result)


def pushed(room: Room, how: str) -> str:
    """Runs gst_push.c. Returns what it has printed."""
    places = [room.server.license_url("clearkey"), room.server.ssm_url, room.token("dash-cenc")]
    done = subprocess.run(
        [str(built_program("gst_push.c", room.folder)), how, *places],
        env=environment(room.built),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.quick
def test_flushEndsDuringAStop_stopReturnsAtOnce(room: Room) -> None:
    """An application stops the element; at the same time another thread ends a flush and pushes a sample whose licence
    does not come. The element does not wait for the licence."""
    room.server.faults.add("license", Fault.stall(), always=True)
    out = pushed(room, "stop")
    room.server.release()
    assert "push: flushing" in out
    assert int(re.findall(r"stopped in (\d+) ms", out)[0]) < 900, out


@pytest.mark.quick
def test_secondErrorOfAPipeline_isNotTheFirst(room: Room) -> None:
    """An element fails because another screen has the only slot; then another element of the pipeline has a wrong
    setting. Its error message names this setting, and not the reason of the first element."""
    room.occupy()
    first, second = re.findall(r"^error: (.*)$", pushed(room, "twice"), re.MULTILINE)
    assert first.startswith(TOO_MANY)
    assert re.fullmatch(r"The session cannot begin: ssm: .*\.", second), second


@pytest.mark.quick
def test_muteServers_noCallWaits(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """For some time the head-end replies to no set-up, to no licence request and to no teardown. Meanwhile the viewer
    opens other items and stops, and the operator ends a session. No call of libusher holds a thread of the player for
    longer than 50 ms."""
    clip = clips["cbcs"]

    def zap(count: int) -> None:
        player.say(f"open {clip.file.as_uri()} token={room.token(clip.content.content_id)}")
        player.until("state PLAYING", count)

    room.server.faults.add("setup", Fault.stall())
    player = room.play(clip, fast=False)
    room.server.wait_held(1)
    room.server.faults.add("license", Fault.stall())
    zap(2)
    room.server.release()
    room.server.wait_held(1)
    player.say("seek 1")
    zap(3)
    room.server.release()
    player.until("is PLAYING")
    player.until("session 3 LICENSE")
    room.server.kill_account("account-1")
    player.until("error ")
    zap(4)
    player.until("session 4 LICENSE")
    room.server.faults.add("teardown", Fault.stall())
    player.say("stop")
    room.server.wait_held(1)
    room.server.release()
    assert player.quit() == 0, player.text
    longest = player.calls.longest()
    print(f"{HOST}:", ", ".join(f"{name} {ms:.1f} ms" for name, ms in longest.items()))
    assert {"usher_player_play", "usher_playback_request_license", "usher_context_begin_close"} <= set(longest)
    assert player.calls.longest_ms() < LIMIT_MS, longest
    row("trouble", HOST, "no reply for a time to each of its requests", "no call of libusher holds a thread for 50 ms")


def test_slowServer_playsLater(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """Each server replies after two seconds; the item then plays, and each picture is right."""
    clip = clips["dash-cbcs"]
    for route in ("setup", "license"):
        room.server.faults.add(route, Fault.delay(2000))
    begin = time.monotonic()
    player = room.play(clip)
    player.until("end")
    assert time.monotonic() - begin >= 4
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    assert player.calls.longest_ms() < LIMIT_MS
    row("trouble", HOST, "each reply takes two seconds", "plays every picture, four seconds later")


def test_serverDiesWhilePlaying_endsInWords(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The head-end stops while the item plays. When the lease of the session has ended, the player stops and shows a
    message, and then plays the next item, which is clear."""
    clip = clips["dash-cenc"]
    player = room.play(clip, fast=False)
    player.until("session 1 KEPT_ALIVE")
    room.server.stop()
    player.say("seek 0")  # so that the item does not end before the session
    assert player.error()
    assert not player.lines("end")
    player.say(f"open {clip.clear.as_uri()}")
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.lines("pictures")[-1].split()[3] == clip.content.frames_sha256
    assert player.calls.longest_ms() < LIMIT_MS
    row(
        "trouble",
        HOST,
        "the head-end dies",
        "plays until the session must have expired, then an error message on the bus; the next item plays",
    )


def test_noServer_isSaidInWords(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The head-end has ended before the item plays; the viewer reads a message."""
    clip = clips["cenc"]
    room.give_token(clip.content.content_id)
    given = settings(room.server, room.token_file)
    room.server.stop()
    player = Player(room.built, room.calls(), clip.file.as_uri(), given, "--hash", "--fast")
    room.started.append(player)
    assert player.error()
    assert player.quit() == 1
    assert player.calls.longest_ms() < LIMIT_MS
    row("trouble", HOST, "no server", "an error message on the bus, no picture")


@pytest.mark.parametrize("route", ["setup", "license", "teardown"])
def test_quitWithMuteServer_endsInTime_andSaysIt(room: Room, clips: dict[str, Clip], row: Row, route: str) -> None:
    """The viewer quits, and the head-end does not reply; the player ends at most one second after close-timeout, and
    prints one warning."""
    room.server.faults.add(route, Fault.stall(), always=True)
    player = room.play(clips["cenc"], fast=False, usher={"close_timeout": 500})
    if route == "teardown":
        player.until("session 1 LICENSE")
    else:
        room.server.wait_held(1, PATIENCE_S)
    begin = time.monotonic()
    assert player.quit() == 0
    assert time.monotonic() - begin < 0.5 + 1, player.text
    assert player.text.count("usher: the server did not confirm the end of a stream") == 1, player.text
    assert player.calls.longest_ms() < LIMIT_MS
    room.server.release()
    case = {
        "setup": "quit while a set-up has no reply",
        "license": "quit while a licence request has no reply",
        "teardown": "quit, and no reply to the teardown",
    }[route]
    row("trouble", HOST, case, "the player ends at most one second after close-timeout, and prints a warning")
