"""The commands of docs/hosts/ play a picture under a session, with the installed plug-ins and programs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts.chromium import Chromium
from hosts.conftest import Clip
from hosts.scene import PATIENCE_S, until

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def prefix(built: Path, tmp_path: Path) -> Path:
    """A folder with the installed plug-ins and programs, and with libusher."""
    folder = tmp_path / "prefix"
    command = ["cmake", "--install", str(built), "--prefix", str(folder)]
    subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True)
    shutil.copy(os.environ["USHER_LIBRARY"], folder / "lib" / "libusher.so.0")
    return folder


@pytest.mark.quick
def test_installation_isFoundByGStreamer(prefix: Path, tmp_path: Path) -> None:
    """GStreamer loads the installed plug-in, and the plug-in finds the installed libusher."""
    (plugin,) = (prefix / "lib").rglob("libgstusher.so")
    environment = {
        **os.environ,
        "GST_PLUGIN_PATH": str(plugin.parent),
        "GST_REGISTRY": str(tmp_path / "registry"),
    }
    command = ["gst-inspect-1.0", "usherdecrypt"]
    done = subprocess.run(command, env=environment, timeout=PATIENCE_S, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(plugin) in done.stdout


def test_installation_isFoundByMpv(prefix: Path, clips: dict[str, Clip]) -> None:
    """mpv finds the plug-in in the installed folder, and the plug-in finds the installed libusher."""
    words = ["mpv", "--vo=null", "--no-audio", "--script-opts=usher-slate=0", str(clips["preview"].file)]
    environment = {**os.environ, "MPV_HOME": str(prefix / "etc" / "mpv")}
    done = subprocess.run(words, env=environment, timeout=PATIENCE_S, capture_output=True, text=True)
    assert "Set usher-license" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 2
    program = [str(prefix / "bin" / "usher"), "--version"]
    assert subprocess.run(program, check=True, timeout=PATIENCE_S, capture_output=True).stdout.startswith(b"usher ")


@pytest.mark.quick
def test_mpvReadme_countsTheLines() -> None:
    """The README of the plug-in for mpv says how many lines of the C files name libusher, and how long session.c is.
    The command in the README prints one number for each file; the sum of these numbers is the number in the README."""
    readme = (ROOT / "hosts" / "mpv" / "README.md").read_text()
    said = re.search(r"(\d+) lines of the plug-in's C files name libusher", readme)
    length = re.search(r"`session.c`\]\(../common/session.c\) has (\d+) lines that are not blank", readme)
    command = re.search(r"```sh\n(grep .*)\n```", readme)
    assert said and length and command
    words = ["sh", "-c", command[1]]
    done = subprocess.run(words, cwd=ROOT, timeout=PATIENCE_S, capture_output=True, text=True)
    counts = {name: int(number) for name, number in (line.split(":") for line in done.stdout.splitlines())}
    folders = (ROOT / "hosts" / "common", ROOT / "hosts" / "mpv")
    assert counts.keys() == {str(file.relative_to(ROOT)) for folder in folders for file in folder.glob("*.c")}
    assert sum(counts.values()) == int(said[1])
    session = (ROOT / "hosts" / "common" / "session.c").read_text()
    assert len([line for line in session.splitlines() if line.strip()]) == int(length[1])


def program(folder: Path, name: str, command: str) -> None:
    """Writes a shell script that runs a player without a screen, with further arguments at its end."""
    file = folder / name
    file.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    file.chmod(0o755)


@pytest.fixture
def headless(tmp_path: Path) -> Path:
    """A folder with programs that have the names of players. They run these players without a screen, and save pictures
    in the folder `pictures`."""
    folder, pictures = tmp_path / "players", tmp_path / "pictures"
    folder.mkdir()
    pictures.mkdir()
    mpv, vlc, gst = (shutil.which(name) for name in ("mpv", "vlc", "gst-launch-1.0"))
    program(
        folder,
        "mpv",
        f"{mpv} --vo=image --vo-image-format=png --vo-image-outdir={pictures} --no-audio --frames=5 --no-terminal",
    )
    as_user = "unshare --user --map-user=1000 --map-group=1000 " if os.geteuid() == 0 else ""  # VLC refuses root
    scene = f"--video-filter=scene --scene-format=png --scene-ratio=25 --scene-path={pictures}"
    quiet = "-I dummy --no-audio --vout=dummy --play-and-exit"
    program(folder, "vlc", f"env HOME={tmp_path} {as_user}{vlc} {quiet} {scene}")
    sink = f'"video-sink=videoconvert ! pngenc ! multifilesink location={pictures}/%d.png" audio-sink=fakesink'
    (folder / "gst-launch-1.0").write_text(f'#!/bin/sh\nexec {gst} "$@" {sink}\n')
    (folder / "gst-launch-1.0").chmod(0o755)
    options = "--headless --disable-gpu --no-first-run --autoplay-policy=no-user-gesture-required"
    root = "--no-sandbox" if os.geteuid() == 0 else ""
    pipe = f"--remote-debugging-pipe 3<{folder / 'to'} 4>{folder / 'from'}"
    program(folder, "chromium", f"{shutil.which('chromium')} {options} {root} {pipe}")
    os.mkfifo(folder / "to")
    os.mkfifo(folder / "from")
    return folder


def watch(chromium: Chromium, headless: Path, pictures: Path) -> None:
    """Waits until the page of a newcomer has played the clip, and closes the browser."""
    chromium.adopt(*(os.open(headless / name, os.O_RDWR) for name in ("from", "to")))
    until(lambda: "pictures" in chromium.words(), "the page plays the clip")
    chromium.screenshot(pictures / "chromium.png")
    chromium.quit()


@contextlib.contextmanager
def shell(script: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Runs a script in the folder of the repository. At the end, ends the script and the processes that it started."""
    process = subprocess.Popen(
        ["bash", "-ec", script],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE_S)


@pytest.mark.parametrize("host", ["mpv", "ffmpeg", "vlc", "gstreamer", "chromium"])
def test_commandsOfAHostsPage_showTheFirstPicture(
    host: str, prefix: Path, headless: Path, chromium: Chromium, tmp_path: Path
) -> None:
    """A newcomer plays an encrypted clip under a session with the commands of docs/hosts/, as they stand there, and
    with the installed plug-ins and programs."""
    page = (ROOT / "docs" / "hosts" / f"{host}.md").read_text()
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.S)
    assert len([line for line in commands.splitlines() if not line.startswith((" ", "U="))]) <= 5
    port = str(free_port())
    headend = str(Path(sys.executable).with_name("usher-headend"))
    script = commands.replace("8090", port).replace("/tmp/usher", str(tmp_path)).replace("/usr/local", str(prefix))
    script = script.replace(".venv/bin/usher-headend", headend)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(headless), str(prefix / "bin"), os.environ["PATH"]]),
        "MPV_HOME": str(prefix / "etc" / "mpv"),
        "GST_REGISTRY": str(tmp_path / "registry"),
    }
    with shell(script + "\necho played; wait", environment) as process:
        assert process.stdout is not None
        printed = ""
        if host == "chromium":
            watch(chromium, headless, tmp_path / "pictures")
        for line in process.stdout:
            printed += line
            if line.strip() == "played":
                break
        assert process.poll() is None, printed
        url = f"http://127.0.0.1:{port}/_control/sessions"

        def ended() -> bool:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
                sessions = json.load(reply)["sessions"]
            return [session["state"] for session in sessions] == ["torn_down"]

        until(ended, f"the head-end has had one session, which was torn down: {printed}")
    found = [file for file in tmp_path.rglob("*.png") if file.stat().st_size > 1000]
    assert found, printed
