"""GStreamer's playbin with the plug-in, against the reference head-end."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts.conftest import Clip, Row
from hosts.gst import Player, environment, settings
from hosts.scene import PATIENCE_S, Scene

from usher.testing.headend import Fault, HeadEnd, SessionState

HOST = "GStreamer"


class Room(Scene[Player]):
    """A scene whose players are GStreamer's."""

    def __init__(self, server: HeadEnd, folder: Path, built: Path) -> None:
        super().__init__(server, folder)
        self.built = built

    def play(
        self,
        clip: Clip | None,
        uri: str | None = None,
        *arguments: str,
        fast: bool = True,
        usher: dict[str, Any] | None = None,
        **process: Any,
    ) -> Player:
        """Starts the player; `usher` has further settings of the plug-in, None leaves one out."""
        given = settings(self.server, self.give_token(clip.content.content_id if clip else "none"), **(usher or {}))
        where = uri or (clip.file.as_uri() if clip else "")
        flags = ("--hash", "--fast") if fast else ("--hash",)
        player = Player(self.built, where, given, *flags, *arguments, **process)
        self.started.append(player)
        return player

    def count(self, route: str) -> int:
        return len(self.server.journal.entries(route=route))


@pytest.fixture
def room(head_end: Callable[..., HeadEnd], tmp_path: Path, built: Path, period_s: float) -> Iterator[Room]:
    made = Room(head_end(period_s=period_s), tmp_path, built)
    yield made
    for player in made.started:
        player.close()


def expected(clip: Clip) -> tuple[int | None, str | None]:
    return clip.content.frames, clip.content.frames_sha256


# ---- contents --------------------------------------------------------------------------------------------------------

DASH = ("dash-cenc", "dash-cbcs", "dash-two-keys", "dash-rotating")
QUICK = ("cbcs", "dash-two-keys")
LONGER = ("cenc", "dash-cenc", "dash-cbcs", "dash-rotating")


def sound_of(room: Room, clip: Clip) -> tuple[int, str]:
    """Returns the hash of the clip's sound after ffmpeg has decrypted it."""
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
    takes each EXT-X-KEY line for AES-128."""
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
    """GStreamer's demuxer gives no encryption data of a progressive file; the viewer sees words, and no picture."""
    clip = clips["progressive"]
    player = room.play(clip)
    assert player.error() == "The item is encrypted in a way that this player cannot decrypt."
    assert player.quit() == 1
    assert not player.lines("pictures")
    room.until_ended()
    row("content", f"{HOST}, playbin", clip.name, "refused in words: GStreamer reads encryption data in fragments only")


def test_clearItem_playsWithoutSession(room: Room, clips: dict[str, Clip]) -> None:
    """playbin plays a clear item; the plug-in sends no request."""
    clip = clips["dash-cenc"]
    player = room.play(clip, clip.clear.as_uri())
    player.until("end")
    assert player.quit() == 0
    assert player.hash("pictures") == expected(clip)
    assert not room.server.journal.routes()


# ---- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize(
    ("usher", "words"),
    [
        ({"license": None}, "The option license is not set: the URL of the licence server."),
        ({"token_file": None}, "Neither the option token nor token-file is set: a session needs the operator's token."),
        ({"token_file": "/no/such/file"}, "token-file: .*/no/such/file.*No such file or directory."),
        ({"license_url": "http://127.0.0.1/"}, "GstContext usher.session: there is no field license-url."),
        ({"ssp_version": 3}, "GstContext usher.session: ssp-version must be a number from 1 to 2."),
        ({"ssm": "foo"}, "The session cannot begin: .*ssm_url.*"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_wrongSetting_isNamedOnce(room: Room, clips: dict[str, Clip], usher: dict[str, Any], words: str) -> None:
    """A setting is wrong; one error message names it, although two streams need the session."""
    player = room.play(clips["dash-cenc"], usher=usher)
    assert re.fullmatch(words, player.error()), player.text
    assert player.quit() == 1
    assert len(player.lines("error ")) == 1
    assert not room.server.journal.routes()


@pytest.mark.quick
def test_optionsFile_configuresEveryPlayer(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """gst-launch-1.0 plays with playbin under a session; an environment variable names the file with the options."""
    clip = clips["dash-cenc"]
    given = settings(room.server, room.give_token(clip.content.content_id))
    options = room.folder / "options"
    options.write_text("# options\n" + "".join(f"{name} = {value}\n" for name, value in given.items()))
    command = ["gst-launch-1.0", "-q", "playbin", f"uri={clip.file.as_uri()}", "video-sink=fakesink"]
    done = subprocess.run(
        [*command, "audio-sink=fakesink"],
        env=environment(room.built, USHER_GSTREAMER_OPTIONS=str(options)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    room.until_ended()
    room.server.assert_clean()
    row("ends", f"{HOST}, gst-launch-1.0", "end of the file", "nothing: torn down before the process ended")


def test_optionsFileWithUnknownName_namesIt(room: Room, clips: dict[str, Clip]) -> None:
    """The options file has an unknown name; the error message has the file and the name."""
    options = room.folder / "options"
    options.write_text("lisence = http://127.0.0.1/\n")
    player = room.play(clips["cenc"], usher={"license": None}, USHER_GSTREAMER_OPTIONS=str(options))
    assert player.error() == f"{options}: there is no option lisence."
    assert player.quit() == 1


def test_ownPipeline_isConfiguredByProperties(room: Room, clips: dict[str, Clip]) -> None:
    """A pipeline without playbin gives the settings to the element as properties."""
    clip = clips["cbcs"]
    given = settings(room.server, room.give_token(clip.content.content_id))
    out = room.folder / "clear.h264"
    command = ["gst-launch-1.0", "-q", "filesrc", f"location={clip.file}", "!", "qtdemux", "!", "usherdecrypt"]
    command += [f"{name}={value}" for name, value in given.items()]
    command += ["!", "h264parse", "!", "video/x-h264,stream-format=byte-stream", "!", "filesink", f"location={out}"]
    done = subprocess.run(command, env=environment(room.built), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    room.until_ended()
    played = room.play(None, out.as_uri())
    played.until("end")
    assert played.hash("pictures")[0] == clip.content.frames


@pytest.mark.quick
def test_inspect_documentsTheElement(room: Room) -> None:
    """gst-inspect-1.0 describes each property of the element."""
    done = subprocess.run(
        ["gst-inspect-1.0", "usherdecrypt"],
        env=environment(room.built),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    for name in ("license", "ssm", "token", "token-file", "headers", "ca-file", "screen", "close-timeout"):
        assert re.search(rf"^  {name} +: \w+", done.stdout, re.M), name
    assert "Generic/Decryptor" in done.stdout


def built_app(room: Room) -> Path:
    """Builds gst_app.c."""
    program = room.folder / "gst_app"
    library = Path(os.environ["USHER_LIBRARY"]).resolve()
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "gstreamer-1.0"], check=True, capture_output=True, text=True
    ).stdout.split()
    here = Path(__file__).parent
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", str(here / "gst_app.c"), "-o", str(program)]
    command += ["-I", str(here.parents[1] / "include"), str(library), f"-Wl,-rpath,{library.parent}", *flags]
    subprocess.run(command, check=True, timeout=120)
    return program


@pytest.mark.parametrize("shared", ["context", "playback"])
def test_application_sharesItsObjects(room: Room, clips: dict[str, Clip], row: Row, shared: str) -> None:
    """An application answers GST_MESSAGE_NEED_CONTEXT with its own usher context or playback. The plug-in uses it, and
    closes only the sessions that it has made itself."""
    clip = clips["dash-two-keys"]
    places = [
        clip.file.as_uri(),
        room.server.license_url("clearkey"),
        room.server.ssm_url,
        room.token(clip.content.content_id),
    ]
    done = subprocess.run(
        [str(built_app(room)), shared, *places],
        env=environment(room.built),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert f"eos, {clip.content.frames} pictures" in done.stdout, done.stdout + done.stderr
    owner = "active" if shared == "playback" else "not active"
    assert f"the application's session is {owner}" in done.stdout
    assert "app SESSION_STARTED" in done.stdout and "app PLAYBACK_CLOSED" in done.stdout
    assert room.count("setup") == 1 and room.count("teardown") == 1
    room.until_ended()
    room.server.assert_clean()
    row("content", f"{HOST}, an application's own usher {shared}", clip.name, "every picture arrives")


def test_sspV2_playsUnderASession(head_end: Callable[..., HeadEnd], room: Room, clips: dict[str, Clip]) -> None:
    """The setting ssp-version is 2; the licence request sets the session up."""
    clip = clips["cenc"]
    player = room.play(
        clip, usher={"ssp_version": 2, "license": room.server.license_url("clearkey", api="v2")}, fast=False
    )
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    routes = room.server.journal.routes()
    assert (routes[0], routes[-1], "setup" in routes) == ("license", "teardown", False)
    room.until_ended()


def test_enforcedRenewals_keepTheItemPlaying(
    head_end: Callable[..., HeadEnd], tmp_path: Path, built: Path, clips: dict[str, Clip]
) -> None:
    """The operator enforces renewals; the plug-in makes the payloads, and the item plays to its end."""
    room = Room(head_end(enforced=frozenset({"clearkey"})), tmp_path, built)
    clip = clips["dash-two-keys"]
    player = room.play(clip, fast=False)
    player.until("end")
    assert player.quit() == 0, player.text
    assert not player.lines("error"), player.text
    assert room.count("license-renewal") >= 3
    room.until_ended()
    room.server.assert_clean()


# ---- trouble ---------------------------------------------------------------------------------------------------------

LIMIT = "Too many devices are playing on this account right now."


@pytest.mark.quick
@pytest.mark.parametrize("period_s", [60.0])
def test_limit_isSaidInWords_andTheNextItemPlays(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """Another screen has the only slot: the viewer sees words and no picture. The slot becomes free: the next item
    plays."""
    room.occupy()
    clip = clips["cenc"]
    player = room.play(clip)
    assert player.error().startswith(LIMIT)
    assert not player.lines("pictures")
    room.server.kill_account("account-1")
    player.say(f"open {clip.file.as_uri()} token={room.token(clip.content.content_id)}")
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    assert player.longest_ms() < 50
    room.until_ended()
    row("trouble", HOST, "another screen has the only slot", "words on the bus, no picture; the next item plays")


@pytest.mark.quick
def test_operatorKillsTheSession_playerStopsInWords(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The operator kills the session while the item plays; the player stops with words."""
    player = room.play(clips["dash-cenc"], fast=False)
    player.until("session 1 KEPT_ALIVE")
    room.server.kill_account("account-1")
    assert player.error()
    assert player.quit() == 1
    assert not player.lines("end")
    assert player.longest_ms() < 50
    assert not room.server.sessions.active()
    row("trouble", HOST, "the operator kills the session", "words on the bus, the item stops")


@pytest.mark.quick
def test_licenseForOtherKeys_noPicture(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The licence has another key than that of the item; the viewer sees words, and no picture."""
    other = '{"keys":[{"kty":"oct","kid":"AAAAAAAAAAAAAAAAAAAAAA","k":"AAAAAAAAAAAAAAAAAAAAAA"}],"type":"temporary"}'
    body = other.encode()
    room.server.faults.add("license", Fault.reply(200, body=body, processed=True), always=True)
    player = room.play(clips["dash-cenc"])
    assert player.error() == "The licence does not have the key of this item. It cannot be played."
    assert player.quit() == 1
    assert not player.lines("pictures") and not player.lines("sound")
    room.until_ended()
    row("trouble", HOST, "the licence has other keys", "words on the bus, no picture")


def damaged(clip: Clip, how: str, folder: Path) -> Path:
    """Writes a damaged copy of a clip."""
    data = bytearray(clip.file.read_bytes())
    if how == "text":
        data = bytearray(b"This is no film.\n" * 1000)
    elif how == "cut in moov":
        del data[600:]
    elif how == "cut":
        del data[len(data) // 2 :]
    elif how == "other key id":
        at = data.index(b"tenc")
        data[at + 12 : at + 28] = bytes(16)
        at = data.index(b"pssh")
        data[at + 24 + 4 : at + 24 + 20] = bytes(16)
    elif how == "IVs of 255 bytes":
        data[data.index(b"tenc") + 11] = 255
    elif how == "subsamples too long":
        at = data.index(b"senc") + 12  # version and flags, count of samples, then IV (8), count, clear, encrypted
        data[at + 8 + 2 : at + 8 + 8] = b"\xff" * 6
    file = folder / "damaged.mp4"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize(
    "how", ["text", "cut in moov", "cut", "other key id", "IVs of 255 bytes", "subsamples too long"]
)
def test_damagedFile_isSaidInWords(room: Room, clips: dict[str, Clip], row: Row, how: str) -> None:
    """A file is no film, is cut, or its boxes lie; the viewer sees words or the part that is there, and the next item
    plays."""
    clip = clips["cenc"]
    player = room.play(clip, damaged(clip, how, room.folder).as_uri())
    if how == "cut":
        player.until("end")
        assert player.hash("pictures")[0] < 100
        result = "plays the part that is there"
    else:
        assert player.error()
        assert not player.lines("pictures")
        result = "words on the bus, no picture"
    player.say(f"open {clip.file.as_uri()} token={room.token(clip.content.content_id)}")
    player.until("end", 2 if how == "cut" else 1)
    assert player.quit() == 0, player.text
    assert player.lines("pictures")[-1].split()[3] == clip.content.frames_sha256
    room.until_ended()
    row("trouble", HOST, f"a file that is damaged: {how}", result)


FAULTS = {
    "garbage": Fault.html_page(),
    "text": Fault.non_json(),
    "error 503": Fault.status(503),
    "dropped connection": Fault.drop(),
}


@pytest.mark.parametrize("route", ["setup", "license"])
@pytest.mark.parametrize("fault", FAULTS)
def test_badReply_isSaidInWords(room: Room, clips: dict[str, Clip], route: str, fault: str) -> None:
    """A server replies with something else; the player shows words, stays responsive, and plays the next item."""
    clip = clips["cenc"]
    room.server.faults.add(route, FAULTS[fault], always=True)
    player = room.play(clip)
    assert player.error()
    room.server.faults.clear()
    room.until_ended() if route == "license" else room.server.kill_account("account-1")
    player.say(f"open {clip.file.as_uri()} token={room.token(clip.content.content_id)}")
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    assert player.longest_ms() < 50


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
    assert player.longest_ms() < 50, player.text
    room.server.release()
    player.say(f"open {clip.file.as_uri()} token={room.token(clip.content.content_id)}")
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    room.until_ended()
    what = {"setup": "the set-up", "license": "the licence request"}[route]
    row("trouble", HOST, f"no reply to {what}", "stop returns at once; the next item plays")


def test_slowServer_playsLater(room: Room, clips: dict[str, Clip]) -> None:
    """The servers reply after two seconds; the item then plays exactly."""
    clip = clips["dash-cbcs"]
    for route in ("setup", "license"):
        room.server.faults.add(route, Fault.delay(1000))
    player = room.play(clip)
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)


def test_noServer_isSaidInWords(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The head-end has ended before the item plays; the viewer sees words."""
    clip = clips["cenc"]
    room.give_token(clip.content.content_id)
    given = settings(room.server, room.token_file)
    room.server.stop()
    player = Player(room.built, clip.file.as_uri(), given, "--hash", "--fast")
    room.started.append(player)
    assert player.error()
    assert player.quit() == 1
    assert player.longest_ms() < 50
    row("trouble", HOST, "no server", "words on the bus, no picture")


def test_quitWithMuteServer_endsInTime_andSaysIt(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The head-end does not answer the teardown; the player ends within its limit and one second, and says it."""
    player = room.play(clips["cenc"], fast=False, usher={"close_timeout": 500})
    player.until("session 1 LICENSE")
    room.server.faults.add("teardown", Fault.stall(), always=True)
    begin = time.monotonic()
    assert player.quit() == 0
    assert time.monotonic() - begin < 4 + 0.5 + 1, player.text
    assert player.lines("The server has not answered in time")
    assert player.longest_ms() < 50
    room.server.release()
    row("trouble", HOST, "quit, and no reply to the teardown", "the player ends within its limit, and says it")


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
    """The viewer zaps at random times, with a limit of one session: no set-up is refused, the last item plays, and no
    session is left. GStreamer 1.22 itself may abort in playsink if an item is stopped while it begins; then another
    account starts again."""
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
    assert player.longest_ms() < 50, player.text
    refused = [entry for entry in room.server.journal.entries(route="setup") if entry.status != 200]
    assert not refused, room.server.journal.dump()
    room.until_ended()
    row("trouble", HOST, "30 zaps at a limit of one", "none refused, no session left")


def test_twoScreensInOnePipeline_haveASessionEach(
    head_end: Callable[..., HeadEnd], tmp_path: Path, built: Path, clips: dict[str, Clip]
) -> None:
    """Two items play at the same time in one pipeline, with different screen names; each has its own session."""
    room = Room(head_end(limit=2), tmp_path, built)
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


def test_exitWithoutStop_tearsDown(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """gst-launch-1.0 gets SIGINT while the item plays; the plug-in tears the session down before the process ends."""
    clip = clips["dash-cenc"]
    given = settings(room.server, room.give_token(clip.content.content_id))
    options = room.folder / "options"
    options.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    command = ["gst-launch-1.0", "-q", "playbin", f"uri={clip.file.as_uri()}", "video-sink=fakesink sync=true"]
    process = subprocess.Popen(
        [*command, "audio-sink=fakesink sync=true"],
        env=environment(room.built, USHER_GSTREAMER_OPTIONS=str(options)),
    )
    room.server.journal.wait_for(1, route="license", answered=True, timeout=PATIENCE_S)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) in (0, 1)
    room.until_ended()
    row("ends", f"{HOST}, gst-launch-1.0", "SIGINT", "nothing: torn down before the process ended")


def test_exitWithMuteServer_endsInTime(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The head-end does not answer the teardown; gst-launch-1.0 ends within close-timeout and one second."""
    clip = clips["cbcs"]
    room.server.faults.add("teardown", Fault.stall(), always=True)
    given = settings(room.server, room.give_token(clip.content.content_id), close_timeout=500)
    command = ["gst-launch-1.0", "-q", "filesrc", f"location={clip.file}", "!", "qtdemux", "!", "usherdecrypt"]
    command += [f"{name}={value}" for name, value in given.items()] + ["!", "fakesink"]
    process = subprocess.Popen(command, env=environment(room.built))
    room.server.wait_held(1, timeout=PATIENCE_S)
    begin = time.monotonic()
    assert process.wait(PATIENCE_S) == 0
    assert time.monotonic() - begin < 0.5 + 1
    room.server.release()
    row("ends", f"{HOST}, gst-launch-1.0", "no reply to the teardown", "the session, until it expires; ends in time")


def test_crash_sessionExpires(room: Room, clips: dict[str, Clip], row: Row) -> None:
    """The player's process is killed; the head-end holds the session until it expires."""
    player = room.play(clips["cenc"], fast=False)
    player.until("session 1 LICENSE")
    player.process.send_signal(signal.SIGKILL)
    player.wait()
    room.until_ended(SessionState.EXPIRED)
    row("ends", HOST, "SIGKILL", "the session, until it expires: two periods after the last heartbeat")


# ---- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cbcs", "dash-rotating"])
def test_leaksTracer_findsNothing(room: Room, clips: dict[str, Clip], name: str) -> None:
    """The item plays, with a seek and a zap; at the end GStreamer's leaks tracer finds no object."""
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
