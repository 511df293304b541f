"""Tests unmodified players with `usher gateway`: they show every picture, and stop at the limit or when the operator
ends the session."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hosts.conftest import Clip, Row
from hosts.gateway import HOST, Start, ask, decoded, vlc
from hosts.mpv import QUIET, image_output, pictures
from hosts.scene import PATIENCE_S, until, until_ended

from usher.testing.headend import HeadEnd

# ---- contents --------------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_gatewayFfmpeg_isExact(server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path, row: Row) -> None:
    """ffmpeg decodes HLS with the gateway's URL, and each picture equals that of the clear clip. The session ends when
    the player has ended."""
    gateway = start(film, idle=1)
    assert decoded(gateway.url()) == decoded(clips["progressive"].clear), gateway.errors
    until_ended(server)
    routes = [route for route in server.journal.routes() if route != "heartbeat"]
    assert routes == ["setup", "license", "teardown"]
    assert ask(gateway.url(0)).status == 404
    assert gateway.url(1) != gateway.url(0)
    server.assert_clean()
    assert gateway.stop() == 0
    row("content", f"{HOST}, ffmpeg", "HLS, AES-128", "exact")


def test_gatewayMpv_isExact(
    server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path, tmp_path: Path, row: Row
) -> None:
    """mpv without a plug-in decodes HLS with the gateway's URL; each picture equals that of the clear clip."""
    gateway = start(film, idle=1)
    for name, target in ((gateway.url(), tmp_path / "pictures"), (str(clips["progressive"].clear), tmp_path / "clear")):
        command = ["mpv", *QUIET, *image_output(target), name]
        subprocess.run(command, check=True, timeout=3 * PATIENCE_S, capture_output=True)
    assert pictures(tmp_path / "pictures")[0] >= 100
    assert pictures(tmp_path / "pictures") == pictures(tmp_path / "clear"), gateway.errors
    until_ended(server)
    row("content", f"{HOST}, mpv", "HLS, AES-128", "exact")


def test_gatewayPlayer_isRun(server: HeadEnd, start: Start, film: Path, tmp_path: Path, row: Row) -> None:
    """The gateway runs a player with its URL; when the player ends, the gateway ends too, and gives the slot back at
    once."""
    command = ["ffmpeg", "-v", "error", "-i", "{clip}", "-frames:v", "1", str(tmp_path / "a.png")]
    gateway = start(film, "--", *command)
    assert gateway.wait() == 0, gateway.errors
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert not server.sessions.active()
    until_ended(server)
    gateway = start(film, "--", "sh", "-c", 'echo "$1"; exit 7', "x")
    assert gateway.wait() == 7
    assert gateway.out.startswith("http://127.0.0.1:")
    row("ends", f"{HOST} with PLAYER", "the player ends", "nothing: the gateway tears the session down at once")


def test_gatewayGStreamer_isExact(
    server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path, tmp_path: Path, row: Row
) -> None:
    """GStreamer without a plug-in decodes HLS with the gateway's URL; each picture equals that of the clear clip."""
    gateway, raw = start(film, idle=1), tmp_path / "raw.yuv"
    source = ["uridecodebin", f"uri={gateway.url()}", "caps=video/x-raw"]
    sink = ["videoconvert", "!", "video/x-raw,format=I420", "!", "filesink", f"location={raw}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GST_")}
    command = ["gst-launch-1.0", "-q", *source, "!", *sink]
    subprocess.run(command, check=True, timeout=3 * PATIENCE_S, capture_output=True, env=environment)
    assert hashlib.sha256(raw.read_bytes()).hexdigest() == decoded(clips["progressive"].clear), gateway.errors
    until_ended(server)
    row("content", f"{HOST}, GStreamer", "HLS, AES-128", "exact")


PICTURES = 150
"""How many pictures the clip `progressive` has; all are different."""


def shown_by_vlc(folder: Path, name: str | Path) -> set[str]:
    """Plays a file or URL with VLC. Returns the hashes of the pictures that VLC shows."""
    done = subprocess.run([*vlc(folder), str(name)], timeout=3 * PATIENCE_S, capture_output=True)
    assert done.returncode == 0, done.stderr
    return {hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.png")}


def test_gatewayVlc_isExact(
    server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path, tmp_path: Path, row: Row
) -> None:
    """VLC decodes HLS with the gateway's URL. VLC may leave out pictures, so the test plays the clear clip until VLC
    has shown every picture of it; each picture of the encrypted clip equals one of these."""
    gateway = start(film, idle=1)
    shown = shown_by_vlc(tmp_path / "pictures", gateway.url())
    assert len(shown) > PICTURES // 2, gateway.errors
    clear: set[str] = set()
    for run in range(5):  # VLC leaves out pictures on a busy machine
        clear |= shown_by_vlc(tmp_path / f"clear-{run}", clips["progressive"].clear)
        if len(clear) == PICTURES:
            break
    assert len(clear) == PICTURES
    assert shown <= clear
    until_ended(server)
    row("content", f"{HOST}, VLC", "HLS, AES-128", "each picture that VLC shows equals a clear one")


# ---- the limit and the operator --------------------------------------------------------------------------------------


def ffmpeg(folder: Path) -> list[str]:
    return ["ffmpeg", "-v", "error", "-re", "-i", "{clip}", "-map", "0:v", f"{folder}/%d.png"]


def mpv(folder: Path) -> list[str]:
    return ["mpv", *QUIET, *(word for word in image_output(folder) if word != "--untimed")]


def gstreamer(folder: Path) -> list[str]:
    sink = ["videoconvert", "!", "pngenc", "!", "identity", "sync=true", "!", "multifilesink"]
    return [
        "gst-launch-1.0",
        "-q",
        "uridecodebin",
        "uri={clip}",
        "caps=video/x-raw",
        "!",
        *sink,
        f"location={folder}/%d.png",
    ]


PLAYERS = {"ffmpeg": ffmpeg, "mpv": mpv, "VLC": vlc, "GStreamer": gstreamer}
"""For each player, a function that returns a command; with this command the player writes each picture that it shows to
a folder."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "VLC" else [pytest.mark.quick]) for name in PLAYERS]
)
def test_gatewayLimit_isObeyed(server: HeadEnd, start: Start, film: Path, tmp_path: Path, row: Row, name: str) -> None:
    """The account has no free slot; a player shows no picture, and the gateway prints why."""
    server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)
    folder = tmp_path / "pictures"
    folder.mkdir()
    gateway = start(film, "--", *PLAYERS[name](folder))
    until(lambda: "1007" in gateway.errors, "the gateway prints why")
    gateway.process.wait(3 * PATIENCE_S)
    assert not list(folder.glob("*.png"))
    assert len(server.sessions.all()) == 1
    row("trouble", f"{HOST}, {name}", "the limit is reached", "the player shows no picture; the gateway prints why")


@pytest.mark.parametrize("name", PLAYERS)
def test_gatewayKill_endsEachPlayer(
    server: HeadEnd, start: Start, film: Path, tmp_path: Path, row: Row, name: str
) -> None:
    """The operator ends the session while a player plays; the gateway ends the player, prints why, and exits with code
    4."""
    folder, text = tmp_path / "pictures", film.read_text()
    folder.mkdir()
    first = text.index("#EXTINF")
    segments = text[first:].replace("#EXT-X-ENDLIST\n", "")
    long_film = film.with_name("long.m3u8")
    long_film.write_text(text[:first] + "#EXT-X-DISCONTINUITY\n".join([segments] * 20) + "#EXT-X-ENDLIST\n")
    gateway = start(long_film, "--", *PLAYERS[name](folder))
    until(lambda: len(list(folder.glob("*.png"))) > 10, "the player shows pictures")
    server.kill_account("account-1")
    assert gateway.wait() == 4, gateway.errors
    assert "usher: " in gateway.errors
    assert len(gateway.errors.split("usher: ")[1]) > 20
    row("trouble", f"{HOST}, {name}", "the operator ends the session", "the gateway ends the player and prints why")
