"""Tests how the GStreamer plug-in gets its settings, and how it uses a context or a playback of the application."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from hosts.conftest import Clip, Row
from hosts.gst import HOST, Room, built_program, environment, expected, settings
from hosts.scene import PATIENCE_S

from usher.testing.headend import Fault, HeadEnd


@pytest.mark.quick
@pytest.mark.parametrize(
    ("usher", "words"),
    [
        ({"license": None}, "The option license is not set: the URL of the licence server."),
        ({"token_file": None}, "Neither the option token nor token-file is set: a session needs the operator's token."),
        ({"token_file": "/no/such/file"}, "token-file: .*/no/such/file.*No such file or directory."),
        ({"license_url": "http://127.0.0.1/"}, "GstContext usher.session: there is no field license-url."),
        ({"ssp_version": 3}, "GstContext usher.session: ssp-version must be a number from 1 to 2."),
        ({"license": "foo"}, "The session cannot begin: license: .*"),
        ({"ssm": "foo"}, "The session cannot begin: ssm: .*"),
        ({"token_header": "a b"}, "The session cannot begin: token-header: .*"),
        ({"headers": "a b"}, "The session cannot begin: headers: .*"),
        ({"token_file": None, "token": "a\nb"}, "The session cannot begin: token: .*"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_wrongSetting_isNamedOnce(room: Room, clips: dict[str, Clip], usher: dict[str, Any], words: str) -> None:
    """The plug-in posts one error message when a setting is wrong; the message names the setting. The clip has two
    encrypted streams, and both need the session."""
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


@pytest.mark.quick
def test_missingCaFile_isReadWhenItIsThere(room: Room, clips: dict[str, Clip]) -> None:
    """The CA file is missing, so the plug-in cannot make its context; its message names the setting. When the file
    exists, the same player with the same settings plays."""
    clip = clips["cenc"]
    file = room.folder / "ca.pem"
    player = room.play(clip, usher={"ca_file": file})
    assert player.error().startswith("The session cannot begin: ca-file: "), player.text
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", file)
    player.say(f"open {clip.file.as_uri()}")
    player.until("end")
    assert player.quit() == 0, player.text
    assert player.hash("pictures") == expected(clip)
    room.until_ended()


# ---- an application's own objects ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program gst_app.c."""
    return built_program("gst_app.c", tmp_path_factory.mktemp("app"))


def start(app: Path, room: Room, clip: Clip, shared: str, screens: int = 1) -> subprocess.Popen[str]:
    """Starts gst_app with an item on each of its screens. Returns the process."""
    tokens = [room.token(clip.content.content_id) for _ in range(screens)]
    places = [clip.file.as_uri(), room.server.license_url("clearkey"), room.server.ssm_url, *tokens]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([str(app), shared, *places], env=environment(room.built), **pipes)


def end(process: subprocess.Popen[str]) -> str:
    """Waits for the end of gst_app. Returns what it has printed."""
    try:
        out, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return out


def until_line(stream: IO[str], wanted: str) -> None:
    """Reads lines of gst_app until one is `wanted`. gst_app itself waits for 10 s at most."""
    lines: list[str] = []
    while wanted not in lines:
        line = stream.readline()
        assert line, lines
        lines.append(line.rstrip())


@pytest.mark.parametrize("shared", ["context", "playback"])
def test_application_sharesItsObjects(app: Path, room: Room, clips: dict[str, Clip], row: Row, shared: str) -> None:
    """An application answers GST_MESSAGE_NEED_CONTEXT with its own usher context or playback. The plug-in uses it, and
    closes only the sessions that it has made itself."""
    clip = clips["dash-two-keys"]
    out = end(start(app, room, clip, shared))
    assert f"eos, {clip.content.frames} pictures\nsha256 {clip.content.frames_sha256}\n" in out, out
    owner = "active" if shared == "playback" else "not active"
    assert f"the application's session is {owner}" in out
    assert "app SESSION_STARTED" in out and "app PLAYBACK_CLOSED" in out
    assert room.count("setup") == 1 and room.count("teardown") == 1
    room.until_ended()
    room.server.assert_clean()
    row("content", f"{HOST}, an application's own usher {shared}", clip.name, "exact")


@pytest.mark.quick
def test_twoPipelinesInOneContext_eachHearsOfItsOwnItem(
    app: Path, head_end: Callable[..., HeadEnd], room: Room, clips: dict[str, Clip]
) -> None:
    """Two pipelines share the application's context; the bus of each has the messages of its own item only."""
    room.server = head_end(limit=2)
    out = end(start(app, room, clips["cbcs"], "context", screens=2))
    for event in ("SESSION_STARTED", "LICENSE"):
        items = [re.findall(rf"^bus {screen} {event} of item (\d+)$", out, re.MULTILINE) for screen in (1, 2)]
        assert sorted(map(len, items)) == [1, 1] and items[0] != items[1], out
    room.until_ended()


@pytest.mark.quick
def test_applicationHasClosedItsPlayback_endsInWords(app: Path, room: Room, clips: dict[str, Clip]) -> None:
    """The application has closed its playback when the plug-in requests a licence; the bus has an error message."""
    out = end(start(app, room, clips["cbcs"], "closed"))
    assert "error, 0 pictures\nerror gst-resource-error-quark/15: " in out, out


@pytest.mark.quick
def test_applicationClosesItsPlayback_whileAStreamWaits_endsInWords(
    app: Path, room: Room, clips: dict[str, Clip]
) -> None:
    """The application closes its playback while the licence server does not reply; the bus has an error message about
    the session, not about the keys."""
    room.server.faults.add("license", Fault.stall())
    process = start(app, room, clips["cbcs"], "playback")
    room.server.wait_held(1)
    assert process.stdin and process.stdout
    process.stdin.write("close\n")
    process.stdin.flush()
    until_line(process.stdout, "error, 0 pictures")
    room.server.release()
    # Between the two lines the thread of the application's observer may print its events.
    out = next((line for line in process.stdout if not line.startswith("app ")), "nothing")
    end(process)
    assert out.startswith("error gst-resource-error-quark/15: "), out


# ---- protocols -------------------------------------------------------------------------------------------------------


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
    head_end: Callable[..., HeadEnd], room: Room, clips: dict[str, Clip]
) -> None:
    """The operator enforces renewals; the plug-in makes the payloads, and the item plays to its end."""
    room.server = head_end(enforced=frozenset({"clearkey"}))
    clip = clips["dash-two-keys"]
    player = room.play(clip, fast=False)
    player.until("end")
    assert player.quit() == 0, player.text
    assert not player.lines("error"), player.text
    assert room.count("license-renewal") >= 3
    room.until_ended()
    room.server.assert_clean()


# ---- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "shown"), [("token_file", False), ("token", True)])
def test_debugLog_hasNoTokenFromTheTokenFile(room: Room, clips: dict[str, Clip], how: str, shown: bool) -> None:
    """GStreamer writes its debug log. The log has no key, and no token if the player has given a token file; a token in
    the GstContext is in the log, as the README says."""
    clip = clips["cenc"]
    token = room.token(clip.content.content_id)
    usher = {"token": token, "token_file": None} if how == "token" else {}
    player = room.play(clip, usher=usher, GST_DEBUG="*:5")
    player.until("end")
    assert player.quit() == 0
    secret = token if how == "token" else room.token_file.read_text().strip()
    log = "\n".join(player.errors)
    assert len(log) > 100_000
    assert clip.content.keys[0].key.hex() not in log
    assert (secret in log) == shown
