"""Tests mpv with its plug-in and the reference head-end."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts.calls import LIMIT_MS, Calls
from hosts.conftest import Clip, Row
from hosts.damage import damaged, huge_moov
from hosts.mpv import Mpv, image_output, options, pictures
from hosts.scene import PATIENCE_S, Scene, peak_kb, until
from hosts.terminal import Terminal

from usher.testing.headend import Fault, HeadEnd, Session, SessionState

HOST = "mpv"

Start = Callable[..., Mpv]


class Theatre(Scene[Mpv]):
    """A scene whose players are mpv's."""

    def __init__(self, server: HeadEnd, folder: Path, plugin: Path) -> None:
        super().__init__(server, folder)
        self.plugin = plugin
        self.give_token("any")

    def zap(self, player: Mpv, file: Path, content_id: str) -> None:
        """Plays another item, with a token file that only this item uses."""
        token_file = self.folder / f"token-{len(list(self.folder.glob('token-*')))}"
        token_file.write_text(self.server.content_token(content_id=content_id) + "\n")
        player.command("loadfile", str(file), "replace", f"script-opts-append=usher-token-file={token_file}")

    def play(
        self,
        *arguments: str | Path,
        usher: dict[str, Any] | None = None,
        vo: str | None = "null",
        **process: Any,
    ) -> Mpv:
        """Starts mpv with the plug-in, and returns the player. `usher` has further options of the plug-in; the value
        None leaves an option out."""
        ours = options(self.server, self.token_file, **(usher or {}))
        output = [f"--vo={vo}"] if vo else []
        player = Mpv(self.folder, f"--script={self.plugin}", ours, *output, *arguments, **process)
        self.started.append(player)
        return player

    def sessions(self, state: SessionState | None = None) -> list[Session]:
        found = self.server.sessions.all()
        return [session for session in found if state is None or session.state is state]


@pytest.fixture
def plugin(built: Path) -> Path:
    return built / "mpv" / "usher.so"


@pytest.fixture
def theatre(head_end: Callable[..., HeadEnd], tmp_path: Path, plugin: Path, period_s: float) -> Iterator[Theatre]:
    made = Theatre(head_end(period_s=period_s), tmp_path, plugin)
    yield made
    for player in made.started:
        player.close()


# ---- contents --------------------------------------------------------------------------------------------------------

REFERENCE: dict[Path, tuple[int, str]] = {}


def clear_pictures(clip: Clip, folder: Path) -> tuple[int, str]:
    """Returns what mpv without the plug-in shows of the clear clip."""
    if clip.clear not in REFERENCE:
        target = folder / "clear"
        player = Mpv(folder, *image_output(target), clip.clear)
        assert player.wait() == 0, player.text
        REFERENCE[clip.clear] = pictures(target)
    return REFERENCE[clip.clear]


CONTENTS = ["progressive", "preview", "cenc", "cbcs", "dash-cenc", "dash-cbcs"]


@pytest.mark.parametrize(
    ("name", "by_http"),
    [
        pytest.param(name, by_http, marks=[pytest.mark.quick] if (name, by_http) == ("dash-cbcs", False) else [])
        for name in CONTENTS
        for by_http in (False, True)
    ],
)
def test_content_isExact(
    theatre: Theatre, clips: dict[str, Clip], row: Row, web: Callable[[Path], str], name: str, by_http: bool
) -> None:
    """mpv plays an encrypted clip with one session, one licence and one teardown; all pictures equal the clear ones."""
    clip = clips[name]
    theatre.give_token(clip.content.content_id)
    target = theatre.folder / "pictures"
    player = theatre.play(*image_output(target), web(clip.file) if by_http else clip.file, vo=None)
    assert player.wait() == 0, player.text
    count, found = pictures(target)
    assert count >= 100 and (count, found) == clear_pictures(clip, theatre.folder), player.text
    theatre.until_ended()
    routes = theatre.server.journal.routes()
    assert [route for route in routes if route != "heartbeat"] == ["setup", "license", "teardown"], routes
    theatre.server.assert_clean()
    row("content", HOST, f"{clip.name}{', by HTTP' if by_http else ''}", "exact")


@pytest.mark.quick
def test_trace_hasTheRequests(theatre: Theatre, clips: dict[str, Clip]) -> None:
    """mpv plays with the option usher-trace. The file has the requests of the journal, and no token."""
    clip, file = clips["progressive"], theatre.folder / "mpv.jsonl"
    token = theatre.give_token(clip.content.content_id)
    player = theatre.play(clip.file, usher={"trace": file})
    player.until_plays(clip.file)
    player.command("quit")
    theatre.until_ended()
    until(lambda: player.process.poll() is not None, "mpv ends")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    sent = [line["operation"] for line in lines if line["kind"] == "request" and line["operation"] != "heartbeat"]
    assert sent == ["set-up", "licence", "teardown"]
    assert token.read_text().strip() not in file.read_text()


def test_content_isClear(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """mpv plays a clear clip when the plug-in is active; the plug-in sends no request."""
    clip = clips["progressive"]
    target = theatre.folder / "pictures"
    player = theatre.play(*image_output(target), clip.clear, vo=None)
    assert player.wait() == 0, player.text
    assert pictures(target) == clear_pictures(clip, theatre.folder)
    assert not theatre.server.journal.entries()
    row("content", HOST, "progressive MP4, clear", "exact, without a session")


@pytest.mark.parametrize(
    ("name", "words", "result"),
    [
        ("dash-two-keys", "several keys", "refused with the reason: Debian's libavformat takes one key"),
        ("dash-rotating", "names no key", "refused with the reason: the manifest names no key"),
    ],
)
def test_content_isRefused(
    theatre: Theatre, clips: dict[str, Clip], row: Row, name: str, words: str, result: str
) -> None:
    """The viewer opens content that mpv cannot decrypt; the plug-in refuses it, says why, and requests no session, and
    mpv shows no picture."""
    target = theatre.folder / "pictures"
    player = theatre.play(*image_output(target), clips[name].file, usher={"slate": 0}, vo=None)
    assert player.wait() == 2, player.text
    assert words in player.text
    assert pictures(target)[0] == 0
    assert not theatre.server.journal.entries()
    row("content", HOST, clips[name].name, result)


MEDIA = Path(__file__).resolve().parents[1] / "media"

HLS = ["dash/cenc/main.m3u8", "dash/cbcs/main.m3u8", "dash/cbcs/video.m3u8", "hls/clip/master.m3u8"]


@pytest.mark.parametrize("by_http", [False, True])
@pytest.mark.parametrize("name", HLS)
def test_hls_isRefused(theatre: Theatre, row: Row, web: Callable[[Path], str], name: str, by_http: bool) -> None:
    """The viewer opens HLS with encrypted samples, which libavformat cannot decrypt; the plug-in refuses it, and mpv
    shows no picture."""
    target = theatre.folder / "pictures"
    file = web(MEDIA / name) if by_http else MEDIA / name
    player = theatre.play(*image_output(target), file, usher={"slate": 0}, vo=None)
    assert player.wait() == 2, player.text
    assert "cannot decrypt HLS" in player.text
    assert pictures(target)[0] == 0
    row(
        "content",
        HOST,
        "HLS with encrypted samples, cenc and cbcs",
        "refused with the reason: libavformat cannot decrypt it",
    )


@pytest.mark.parametrize("key", [False, True], ids=["clear", "AES-128"])
def test_hls_plays(theatre: Theatre, clips: dict[str, Clip], row: Row, key: bool) -> None:
    """The viewer opens HLS that is clear, or whose segments are encrypted as a whole (METHOD=AES-128). The plug-in does
    nothing, and mpv plays the HLS."""
    folder, target = theatre.folder, theatre.folder / "pictures"
    (folder / "key.ts").write_bytes(bytes(range(16)))
    (folder / "info").write_text(f"{folder}/key.ts\n{folder}/key.ts\n")
    encryption = ["-hls_key_info_file", str(folder / "info")] if key else []
    command = ["ffmpeg", "-v", "error", "-i", str(clips["progressive"].clear), "-c", "copy", "-hls_list_size", "0"]
    subprocess.run([*command, *encryption, str(folder / "list.m3u8")], check=True, timeout=PATIENCE_S)
    player = theatre.play(*image_output(target), folder / "list.m3u8", vo=None)
    assert player.wait() == 0, player.text
    assert pictures(target)[0] >= 149
    assert not theatre.server.journal.entries()


def test_content_hasUsersKey(theatre: Theatre, clips: dict[str, Clip]) -> None:
    """The viewer gives mpv the key with mpv's own option; the plug-in does nothing."""
    clip = clips["preview"]
    target = theatre.folder / "pictures"
    key = f"--demuxer-lavf-o=decryption_key={clip.content.keys[0].key.hex()}"
    player = theatre.play(*image_output(target), key, clip.file, vo=None)
    assert player.wait() == 0, player.text
    assert pictures(target) == clear_pictures(clip, theatre.folder)
    assert not theatre.server.journal.entries()


# ---- when something is wrong -----------------------------------------------------------------------------------------


def osd(player: Mpv) -> str:
    """Returns the message on the screen; "" while mpv does not show a refusal."""
    words = player.get("osd-msg1") or ""
    slate = str(player.get("stream-open-filename") or "").startswith("av://")
    return words.removeprefix("$>") if slate and (player.get("time-pos") is not None) else ""


@pytest.mark.quick
@pytest.mark.parametrize("period_s", [20.0])
def test_limit_isSaidInWords(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """The account has no free slot; mpv shows why it does not play the item, and then plays the next item."""
    theatre.occupy()
    player = theatre.play("--idle", clips["progressive"].file, clips["preview"].clear, usher={"slate": 2})
    words = until(lambda: osd(player), "words on the screen")
    assert re.search("too many|maximum|limit", words, re.IGNORECASE), words
    assert "1007" in words
    player.until_plays(clips["preview"].clear)
    assert len(theatre.server.sessions.all()) == 1
    row("trouble", HOST, "the limit is reached", "says so on the screen, then plays the next item")


@pytest.mark.quick
def test_slotWait_isSaidInWords_thenTheItemPlays(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """The account has no free slot, and the option usher-slot-wait is set; mpv says that it waits, and plays the item
    when another device has freed its slot."""
    clip = clips["progressive"]
    theatre.occupy()
    theatre.give_token(clip.content.content_id)
    player = theatre.play("--loop-file=inf", clip.file, usher={"slot-wait": 30})
    until(lambda: "Waiting for at most 30 s until another device stops." in player.text, "words about the wait")
    assert "usher: Too many devices are playing on this account right now." in player.text
    theatre.server.kill_device("other")
    player.until_plays(clip.file)
    assert player.text.count("usher: ") == 1, player.text
    row("trouble", HOST, "the limit is reached, with usher-slot-wait", "says so, plays when another device has stopped")


@pytest.mark.quick
@pytest.mark.parametrize("period_s", [2.0])
def test_kill_endsTheItem(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """The operator kills the session of an item; mpv stops the item within two periods, says why, and plays the next
    item."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    player = theatre.play("--loop-file=inf", clip.file, clips["preview"].clear, usher={"slate": 1})
    player.until_plays(clip.file)
    theatre.server.kill_account("account-1")
    begin = time.monotonic()
    words = until(lambda: osd(player), "words on the screen")
    assert time.monotonic() - begin < 2 * 2
    assert len(words) > 20, words
    player.command("set", "loop-file", "no")
    player.until_plays(clips["preview"].clear)
    assert theatre.until_ended(SessionState.KILLED)
    row("trouble", HOST, "the operator ends the session", "stops within two periods, says why, plays the next item")


def answer_ms(player: Mpv, calls: int) -> list[float]:
    """Sends mpv this number of simple commands. Returns how long mpv took to answer each, in ms, shortest first."""
    times = []
    for _ in range(calls):
        begin = time.monotonic()
        player.get("pause")
        times.append((time.monotonic() - begin) * 1000)
        time.sleep(0.005)
    return sorted(times)


@pytest.mark.parametrize("route", ["setup", "license"])
def test_mute_obeysCommands(theatre: Theatre, clips: dict[str, Clip], row: Row, route: str) -> None:
    """The head-end does not reply. Meanwhile mpv answers commands at once, and plays another item when the viewer
    opens one."""
    theatre.server.faults.add(route, Fault.stall())
    theatre.give_token(clips["progressive"].content.content_id)
    player = theatre.play("--idle", clips["progressive"].file, clips["preview"].clear)
    theatre.server.wait_held(1, PATIENCE_S)
    times = answer_ms(player, 100)
    assert times[len(times) // 2] < 50, times
    begin = time.monotonic()
    player.command("playlist-next")
    player.until_plays(clips["preview"].clear)
    assert time.monotonic() - begin < 3
    row(
        "trouble",
        HOST,
        f"no reply to the {'set-up' if route == 'setup' else 'licence request'}",
        "obeys the viewer at once",
    )


@pytest.mark.quick
def test_muteServers_noCallWaits(
    theatre: Theatre, clips: dict[str, Clip], row: Row, timing: Callable[[Path], Path]
) -> None:
    """For some time the head-end replies to no set-up, to no licence request and to no teardown. Meanwhile the viewer
    opens other items and quits, and the operator ends a session. No call of libusher holds the plug-in's thread for
    longer than 50 ms."""
    calls = Calls(timing(theatre.plugin), theatre.folder / "calls")
    clip, other = clips["preview"], clips["cenc"]
    variables, usher = calls.variables, {"quit-timeout": 1, "slate": 1}
    theatre.give_token(clip.content.content_id)
    theatre.server.faults.add("setup", Fault.stall())
    player = theatre.play("--loop-file=inf", "--idle", clip.file, usher=usher, variables=variables)
    theatre.server.wait_held(1, PATIENCE_S)
    theatre.server.faults.add("license", Fault.stall())
    theatre.zap(player, other.file, other.content.content_id)
    theatre.server.release()
    theatre.server.wait_held(1, PATIENCE_S)
    theatre.zap(player, clip.file, clip.content.content_id)
    theatre.server.release()
    player.until_plays(clip.file)
    theatre.server.kill_account("account-1")
    until(lambda: osd(player), "words on the screen")
    theatre.zap(player, other.file, other.content.content_id)
    player.until_plays(other.file)
    theatre.server.faults.add("teardown", Fault.stall(), always=True)
    player.command("quit")
    assert player.wait() == 0, player.text
    theatre.server.release()
    longest = calls.longest()
    print(f"{HOST}:", ", ".join(f"{name} {ms:.1f} ms" for name, ms in longest.items()))
    assert {"usher_player_play", "usher_playback_request_license", "usher_context_begin_close"} <= set(longest)
    assert calls.longest_ms() < LIMIT_MS, longest
    row("trouble", HOST, "no reply for a time to each of its requests", "no call of libusher holds a thread for 50 ms")


QUITS = "quits at most one second after usher-quit-timeout, prints a warning"


@pytest.mark.parametrize("route", ["setup", "license"])
def test_mute_quits(theatre: Theatre, clips: dict[str, Clip], row: Row, route: str) -> None:
    """The viewer quits while the head-end does not reply; mpv ends at most one second after usher-quit-timeout, and
    prints one warning."""
    theatre.server.faults.add(route, Fault.stall(), always=True)
    theatre.give_token(clips["progressive"].content.content_id)
    player = theatre.play(clips["progressive"].file, usher={"quit-timeout": 1})
    theatre.server.wait_held(1, PATIENCE_S)
    begin = time.monotonic()
    player.command("quit")
    assert player.wait() == 0, player.text
    assert time.monotonic() - begin < 1 + 1
    assert player.text.count("did not confirm the end of a stream") == 1, player.text
    assert "some time: done" not in player.text
    row("trouble", HOST, "quit while a set-up or a licence request has no reply", QUITS)


def test_muteFile_obeysCommands(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """The viewer chooses another item while the plug-in waits for a web server that does not reply; mpv plays the item
    at once."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        player = theatre.play("--idle", f"http://127.0.0.1:{mute.getsockname()[1]}/a.mp4", clips["preview"].clear)
        mute.settimeout(PATIENCE_S)
        connection, _ = mute.accept()
        begin = time.monotonic()
        player.command("playlist-next")
        player.until_plays(clips["preview"].clear)
        assert time.monotonic() - begin < 3
        connection.close()
    row("trouble", HOST, "no reply from the web server of the content", "obeys the viewer at once")


def test_mute_isSaidInWords(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """The head-end does not reply; when the plug-in's time limit has passed, mpv says that the server is silent."""
    theatre.server.faults.add("setup", Fault.stall(), always=True)
    player = theatre.play("--idle", clips["progressive"].file, usher={"timeout": 1})
    words = until(lambda: osd(player), "words on the screen")
    assert len(words) > 20, words
    row("trouble", HOST, "no reply within usher-timeout", "says so on the screen")


CANNOT_PLAY = "says on the screen that it cannot play, then plays the next item"


@pytest.mark.parametrize("fault", [Fault.html_page(), Fault.non_json(), Fault.status(503), Fault.drop()])
def test_garbage_isSaidInWords(theatre: Theatre, clips: dict[str, Clip], row: Row, fault: Fault) -> None:
    """The head-end sends an unusable reply to the set-up; mpv says why it does not play, and plays the next item."""
    theatre.server.faults.add("setup", fault, always=True)
    player = theatre.play("--idle", clips["progressive"].file, clips["preview"].clear, usher={"slate": 1})
    words = until(lambda: osd(player), "words on the screen")
    assert len(words) > 20, words
    player.until_plays(clips["preview"].clear)
    row("trouble", HOST, f"the set-up gets: {fault.label}", CANNOT_PLAY)


@pytest.mark.parametrize("fault", [Fault.html_page(), Fault.empty_body(), Fault.status(403), Fault.reply(200, body={})])
def test_garbage_isNoLicense(theatre: Theatre, clips: dict[str, Clip], row: Row, fault: Fault) -> None:
    """The reply to the licence request has no keys; mpv says why it does not play, the slot is free again, and mpv
    plays the next item."""
    theatre.server.faults.add("license", fault, always=True)
    theatre.give_token(clips["progressive"].content.content_id)
    player = theatre.play("--idle", clips["progressive"].file, clips["preview"].clear, usher={"slate": 1})
    words = until(lambda: osd(player), "words on the screen")
    assert len(words) > 20, words
    theatre.until_ended()
    player.until_plays(clips["preview"].clear)
    row("trouble", HOST, f"the licence request gets: {fault.label}", CANNOT_PLAY)


def test_slow_playsLater(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """The head-end takes two seconds for each reply; mpv answers commands at once, and plays the item later."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    theatre.server.faults.add("setup", Fault.delay(2000))
    theatre.server.faults.add("license", Fault.delay(2000))
    begin = time.monotonic()
    player = theatre.play("--idle", "--loop-file=inf", clip.file)
    times = answer_ms(player, 100)
    assert times[len(times) // 2] < 50, times
    player.until_plays(clip.file)
    assert time.monotonic() - begin >= 4
    row("trouble", HOST, "each reply takes two seconds", "obeys the viewer at once, plays four seconds later")


def test_death_endsTheItem(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """The head-end stops while an item plays. When the lease of the session has ended, mpv stops the item, says why,
    and plays the next item, which is clear."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    following = clips["preview"].clear
    player = theatre.play("--idle", "--loop-file=inf", clip.file, following, usher={"slate": 1})
    player.until_plays(clip.file)
    theatre.server.stop()
    words = until(lambda: osd(player), "words on the screen")
    assert len(words) > 20, words
    player.command("set", "loop-file", "no")
    player.until_plays(following)
    result = "plays until the session must have expired, says why, plays the next item"
    row("trouble", HOST, "the head-end dies", result)


@pytest.mark.parametrize("limit_s", [1, 3])
def test_quit_isBounded(theatre: Theatre, clips: dict[str, Clip], row: Row, limit_s: int) -> None:
    """The head-end does not answer the teardown; mpv ends at most one second after usher-quit-timeout, and prints a
    warning."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    player = theatre.play("--loop-file=inf", clip.file, usher={"quit-timeout": limit_s})
    player.until_plays(clip.file)
    theatre.server.faults.add("teardown", Fault.stall(), always=True)
    begin = time.monotonic()
    player.command("quit")
    assert player.wait() == 0
    assert time.monotonic() - begin < limit_s + 1
    assert player.text.count("did not confirm the end of a stream") == 1, player.text
    row("trouble", HOST, "quit, and no reply to the teardown", QUITS)


def test_license_isForOtherKeys(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """The licence does not have the key of the file; the plug-in says so, and mpv shows no picture."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    other = {"keys": [{"kty": "oct", "kid": "AAAAAAAAAAAAAAAAAAAAAA", "k": "AAAAAAAAAAAAAAAAAAAAAA"}]}
    theatre.server.faults.add("license", Fault.reply(200, body=other, processed=True), always=True)
    target = theatre.folder / "pictures"
    player = theatre.play(*image_output(target), clip.file, usher={"slate": 0}, vo=None)
    assert player.wait() == 2, player.text
    assert "licence is for other content" in player.text
    assert pictures(target)[0] == 0
    theatre.until_ended()
    row("trouble", HOST, "a licence for other keys", "says so, shows no picture, gives the slot back")


def test_options_areNamedOnce(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """Options are wrong, and mpv plays several items; the plug-in reports each wrong option once."""
    wrong = {"licence": "x", "timeout": "soon", "slate": 0}
    player = theatre.play(*[clips["preview"].clear] * 3, "--untimed", usher=wrong)
    assert player.wait() == 0
    assert player.text.count("there is no option usher-licence") == 1, player.text
    assert player.text.count("usher-timeout must be a number of seconds") == 1, player.text
    row("trouble", HOST, "an option is misspelt or malformed", "names the option once")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"license": None}, "usher-license"),
        ({"license": "foo"}, "usher-license"),
        ({"ssm": "http://example.com/ssm"}, "usher-ssm"),
        ({"token-file": "/nonexistent"}, "usher-token-file"),
        ({"token-file": None}, "usher-token-file"),
        ({"ca-file": "/nonexistent"}, "usher-ca-file"),
        ({"headers": "no header"}, "usher-headers"),
        ({"token-header": "no header"}, "usher-token-header"),
    ],
)
def test_options_areMissingOrWrong(
    theatre: Theatre, clips: dict[str, Clip], row: Row, change: dict[str, Any], named: str
) -> None:
    """A required option is missing or wrong, and mpv opens two items; the plug-in names this option once, and mpv shows
    no picture."""
    target = theatre.folder / "pictures"
    item = clips["preview"].file
    player = theatre.play(*image_output(target), item, item, usher={"slate": 0, **change}, vo=None)
    assert player.wait() == 2, player.text
    assert player.text.count(named) == 1, player.text
    assert pictures(target)[0] == 0
    row("trouble", HOST, f"{named} is missing or wrong", "names the option once, shows no picture")


@pytest.mark.parametrize("kind", ["cut", "moov-of-200-MB", "lying-tenc", "other-key-id", "text"])
def test_file_isDamaged(theatre: Theatre, clips: dict[str, Clip], row: Row, kind: str) -> None:
    """The viewer opens a damaged file; mpv shows no picture and says why, and no session remains."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    target = theatre.folder / "pictures"
    file = damaged(kind, clip, theatre.folder)
    player = theatre.play(*image_output(target), file, usher={"slate": 0}, vo=None)
    assert player.wait() == 2, player.text
    # If the file is text, the plug-in does nothing, and mpv itself says that it does not know the format.
    assert ("Failed to recognize file format" if kind == "text" else "usher: ") in player.text, player.text
    assert pictures(target)[0] == 0
    until(lambda: not theatre.server.sessions.active(), "no session is left")
    result = "mpv itself says so, shows no picture" if kind == "text" else "says so, shows no picture"
    row("trouble", HOST, f"a file that is damaged: {kind.replace('-', ' ')}", result)


def test_moov_isHuge_memoryIsBounded(theatre: Theatre, clips: dict[str, Clip], row: Row) -> None:
    """mpv with the plug-in plays a film whose moov box really has 200 MB, and needs no memory for the box."""
    clip = clips["progressive"]

    def peak_with(file: Path) -> int:
        theatre.give_token(clip.content.content_id)
        target = theatre.folder / f"pictures-{file.stem}"
        player = theatre.play(*image_output(target), "--idle", file, vo=None)
        until(lambda: any(target.glob("*.png")) and player.get("idle-active"), "mpv plays the film")
        peak = peak_kb(player.process.pid)
        assert pictures(target) == clear_pictures(clip, theatre.folder), player.text
        theatre.until_ended()
        return peak

    peaks_kb = [peak_with(file) for file in (clip.file, huge_moov(clip, theatre.folder))]
    print(f"{HOST}: peaks of {peaks_kb} kB")
    assert peaks_kb[1] - peaks_kb[0] < 20_000, peaks_kb
    row("content", HOST, "progressive MP4, cenc, moov of 200 MB", "exact; needs no memory for the moov")


# ---- zaps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zaps", [pytest.param(10, marks=pytest.mark.quick), 200])
def test_zaps_playEachItem(theatre: Theatre, clips: dict[str, Clip], row: Row, zaps: int) -> None:
    """The viewer zaps at random times, with a limit of one stream. mpv plays each item that the viewer keeps long
    enough; the head-end refuses no set-up, only the current session has heartbeats, and no session remains."""
    random.seed(zaps)
    names = ["progressive", "cenc", "cbcs", "dash-cenc", "dash-cbcs", "preview", "clear"]
    files = {name: clips[name].file for name in names[:-1]} | {"clear": clips["progressive"].clear}
    player = theatre.play("--idle", "--loop-file=inf")
    waited = 0
    for _ in range(zaps):
        name = random.choice(names)
        theatre.zap(player, files[name], clips[name].content.content_id if name in clips else "clear")
        if random.random() < 0.5:
            player.until_plays(files[name])
            waited += 1
        else:
            time.sleep(random.choice([0, 0.005, 0.03, 0.15]))
    player.command("stop")
    until(lambda: not theatre.server.sessions.active(), "no session is left")
    assert "usher: " not in player.text, player.text
    player.command("quit")
    assert player.wait() == 0
    refused = [entry for entry in theatre.server.journal.entries(route="setup") if entry.status != 200]
    assert not refused, theatre.server.journal.dump()
    assert waited > zaps // 5
    newest = None
    for entry in theatre.server.journal:
        newest = entry.session if entry.route == "setup" else newest
        assert entry.session == newest, theatre.server.journal.dump()
    assert {session.state for session in theatre.server.sessions.all()} <= {SessionState.TORN_DOWN}
    theatre.server.assert_clean()
    if zaps == 200:
        row("ends", HOST, "200 random zaps at a limit of one", "one session at a time, none refused, none left")


# ---- ends ------------------------------------------------------------------------------------------------------------

ENDS: list[tuple[str, tuple[str, ...], Callable[[Mpv], Any]]] = [
    ("end of file", ("--length=1",), lambda player: None),
    ("stop", ("--idle",), lambda player: player.command("stop")),
    ("quit", (), lambda player: player.command("quit")),
    ("SIGTERM", (), lambda player: player.signal(signal.SIGTERM)),
    ("SIGINT", (), lambda player: player.signal(signal.SIGINT)),
    ("SIGHUP", (), lambda player: player.signal(signal.SIGHUP)),
    ("SIGTERM with --no-terminal", ("--no-terminal",), lambda player: player.signal(signal.SIGTERM)),
    ("SIGINT with --no-terminal", ("--no-terminal",), lambda player: player.signal(signal.SIGINT)),
    ("SIGHUP with --no-terminal", ("--no-terminal",), lambda player: player.signal(signal.SIGHUP)),
]


@pytest.mark.parametrize(
    ("name", "arguments", "end"),
    [
        pytest.param(*end, marks=[pytest.mark.quick] if end[0] == "SIGHUP with --no-terminal" else [], id=end[0])
        for end in ENDS
    ],
)
def test_end_tearsDown(
    theatre: Theatre, clips: dict[str, Clip], row: Row, name: str, arguments: tuple[str, ...], end: Callable[[Mpv], Any]
) -> None:
    """Playback ends in any way that mpv or the plug-in notices; the plug-in tears the session down at once."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    player = theatre.play(*arguments, clip.file)
    player.until_plays(clip.file)
    begin = time.monotonic()
    end(player)
    theatre.until_ended()
    assert time.monotonic() - begin < 3
    if name != "stop":
        assert player.wait() == (4 if name.startswith("SIG") else 0), player.text
    theatre.server.assert_clean()
    row("ends", HOST, name, "nothing: the plug-in tears the session down at once")


@pytest.mark.parametrize("name", ["Ctrl-C", "the terminal closes", "SIGTERM"])
def test_terminalEnd_tearsDown(theatre: Theatre, clips: dict[str, Clip], row: Row, name: str) -> None:
    """Ctrl-C or the end of the terminal ends mpv, or SIGTERM ends an mpv that has a terminal; the plug-in tears the
    session down at once."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    with Terminal() as terminal:
        player = theatre.play(clip.file, terminal=terminal.inner)
        player.until_plays(clip.file)
        begin = time.monotonic()
        if name == "Ctrl-C":
            os.write(terminal.outer, b"\x03")
        elif name == "SIGTERM":
            player.signal(signal.SIGTERM)
        else:
            terminal.close()
        theatre.until_ended()
        assert time.monotonic() - begin < 3
        assert player.wait() == 4, player.text
    row("ends", HOST, f"{name}, in a terminal", "nothing: the plug-in tears the session down at once")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_crash_slotIsFree(theatre: Theatre, clips: dict[str, Clip], row: Row, number: signal.Signals) -> None:
    """mpv crashes; its guardian tears the session down."""
    clip = clips["progressive"]
    theatre.give_token(clip.content.content_id)
    player = theatre.play(clip.file)
    player.until_plays(clip.file)
    player.signal(number)
    player.wait()
    theatre.until_ended()
    row("ends", HOST, number.name, "nothing: the guardian tears the session down")


def test_secrets_areNotPrinted(theatre: Theatre, clips: dict[str, Clip]) -> None:
    """The plug-in plays an item; neither the output nor the command line of mpv contains the token or the key."""
    clip = clips["preview"]
    theatre.give_token(clip.content.content_id)
    player = theatre.play(clip.file)
    player.until_plays(clip.file)
    line = Path(f"/proc/{player.process.pid}/cmdline").read_bytes().decode()
    assert player.wait() == 0
    for secret in (theatre.token_file.read_text().strip(), clip.content.keys[0].key.hex()):
        assert secret not in player.text
        assert secret not in line
