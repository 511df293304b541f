"""How the GStreamer plug-in gets its settings, and an application's own objects."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosts.conftest import Clip, Row
from hosts.gst import HOST, Room, environment, expected, settings
from hosts.scene import PATIENCE_S

from usher.testing.headend import HeadEnd


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
