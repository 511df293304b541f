"""The commands in the READMEs of hosts/ play a picture under a session."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
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
    """GStreamer loads the installed plug-in, which finds libusher beside its folder."""
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
    """mpv finds the plug-in in the installed folder, and the plug-in finds libusher beside it."""
    words = ["mpv", "--vo=null", "--no-audio", "--script-opts=usher-slate=0", str(clips["preview"].file)]
    environment = {**os.environ, "MPV_HOME": str(prefix / "etc" / "mpv")}
    done = subprocess.run(words, env=environment, timeout=PATIENCE_S, capture_output=True, text=True)
    assert "Set usher-license" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 2
    program = [str(prefix / "bin" / "usher"), "--version"]
    assert subprocess.run(program, check=True, timeout=PATIENCE_S, capture_output=True).stdout.startswith(b"usher ")


@pytest.mark.parametrize(
    ("host", "number", "options"),
    [
        ("mpv", 0, "--vo=null --no-audio --frames=5 --no-terminal"),
        ("usher", 0, ""),
        ("usher", 1, ""),
        ("gstreamer", 0, ""),
    ],
)
def test_commands_play(host: str, number: int, options: str, built: Path, tmp_path: Path) -> None:
    """A newcomer plays an encrypted clip under a session with the commands of a README, as they stand there. `number`
    counts the blocks of commands in the README."""
    readme = (ROOT / "hosts" / host / "README.md").read_text()
    commands = re.findall(r"```sh\n(.*?)```", readme, re.S)[number]
    assert len([line for line in commands.splitlines() if not line.startswith((" ", "U="))]) <= 5
    port = str(free_port())
    script = commands.replace("8090", port).replace("/tmp/usher", str(tmp_path)).replace("\nmpv ", f"\nmpv {options} ")
    script = script.replace("playbin ", "playbin video-sink=fakesink audio-sink=fakesink ")
    scripts = tmp_path / "mpv" / "scripts"  # the installation puts the same link into /etc/mpv/scripts
    scripts.mkdir(parents=True)
    (scripts / "usher.so").symlink_to(built / "mpv" / "usher.so")
    path = os.pathsep.join([str(built / "usher"), str(Path(sys.executable).parent), os.environ["PATH"]])
    shell = subprocess.Popen(
        ["bash", "-ec", script + "\necho played; wait"],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": path,
            "MPV_HOME": str(tmp_path / "mpv"),
            "GST_PLUGIN_PATH": str(built / "gstreamer"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert shell.stdout is not None
        printed = ""
        for line in shell.stdout:
            printed += line
            if line.strip() == "played":
                break
        assert shell.poll() is None, printed
        url = f"http://127.0.0.1:{port}/_control/sessions"

        def ended() -> bool:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
                sessions = json.load(reply)["sessions"]
            return [session["state"] for session in sessions] == ["torn_down"]

        until(ended, "the head-end has had one session, which was torn down")
        if host == "usher":
            assert (tmp_path / "picture.png").stat().st_size > 1000
    finally:
        os.killpg(shell.pid, signal.SIGTERM)
        shell.wait(PATIENCE_S)
