"""Runs mpv with the plug-in, without a screen."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from hosts.scene import PATIENCE_S, until

from usher.testing.headend import HeadEnd

QUIET = ("--no-config", "--no-audio", "--sub-auto=no", "--audio-file-auto=no", "--load-scripts=no")


class Mpv:
    """A process of mpv, which a test controls by JSON IPC.

    Attributes:
        process: the process.
        log: the file with what mpv printed.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str | Path,
        terminal: int | None = None,
        variables: dict[str, str] | None = None,
    ) -> None:
        """Starts mpv. `terminal`: the descriptor of a pseudo terminal that becomes the controlling terminal of mpv;
        None: mpv has no terminal. `variables`: further environment variables."""
        self._name = f"mpv-{len(list(folder.glob('mpv-*.log')))}"
        self._socket_path = folder / f"{self._name}.sock"
        self.log = folder / f"{self._name}.log"
        # If the tests run with nohup, they ignore SIGHUP, and mpv would ignore it too. So give mpv the default action.
        command = [
            "env",
            "--default-signal=HUP",
            "mpv",
            *QUIET,
            f"--input-ipc-server={self._socket_path}",
            *map(str, arguments),
        ]
        env = {**os.environ, **(variables or {})}
        with self.log.open("wb") as out:
            if terminal is None:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
            else:  # setsid makes standard input the controlling terminal
                command = ["setsid", "--ctty", *command]
                self.process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=out, env=env)
        self._socket: socket.socket | None = None
        self._lines: Any = None
        self._number = 0
        self.events: list[dict[str, Any]] = []

    @property
    def text(self) -> str:
        """What mpv has printed."""
        return self.log.read_text(errors="replace")

    def _connect(self) -> socket.socket:
        if self._socket is None:
            until(lambda: self._socket_path.exists() or self.process.poll() is not None, "mpv opens its socket")
            assert self.process.poll() is None, f"mpv has ended: {self.text}"
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(PATIENCE_S)
            until(self._try_to_connect, "mpv accepts a connection")
            self._lines = self._socket.makefile("r", encoding="utf-8", errors="replace")
        return self._socket

    def _try_to_connect(self) -> bool:
        assert self._socket is not None
        try:
            self._socket.connect(str(self._socket_path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        return True

    def command(self, *words: Any) -> Any:
        """Sends a command and returns mpv's answer: `data`, or None if mpv reports an error."""
        connection = self._connect()
        self._number += 1
        connection.sendall(json.dumps({"command": words, "request_id": self._number}).encode() + b"\n")
        while True:
            line = self._lines.readline()
            if not line:
                raise AssertionError(f"mpv has closed its socket: {self.text}")
            message = json.loads(line)
            if message.get("request_id") == self._number and "error" in message:
                return message.get("data") if message["error"] == "success" else None
            self.events.append(message)

    def get(self, name: str) -> Any:
        """Returns a property; None if it has no value now."""
        return self.command("get_property", name)

    def until_plays(self, file: Path | str, seconds: float = PATIENCE_S) -> None:
        """Waits until mpv shows pictures of this file."""

        def playing() -> bool:
            return self.get("stream-open-filename") == str(file) and (self.get("time-pos") or 0) > 0

        try:
            until(playing, f"mpv plays {file}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text}") from error

    def wait(self, seconds: float = PATIENCE_S) -> int:
        """Waits until mpv has ended. Returns its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"mpv has not ended within {seconds} s: {self.text}") from None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        if self._socket is not None:
            self._lines.close()
            self._socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def options(server: HeadEnd, token_file: Path, **further: Any) -> str:
    """Returns the argument --script-opts for a head-end. In the names of `further` options, '_' stands for '-'; the
    value None leaves an option out."""
    values = {"license": server.license_url("clearkey"), "ssm": server.ssm_url, "token-file": token_file}
    values.update({name.replace("_", "-"): value for name, value in further.items()})
    return "--script-opts=" + ",".join(f"usher-{name}={value}" for name, value in values.items() if value is not None)


def pictures(folder: Path) -> tuple[int, str]:
    """Returns the number and the hash of the pictures that `--vo=image` wrote to a folder."""
    files = sorted(folder.glob("*.png"))
    together = hashlib.sha256()
    for file in files:
        together.update(file.read_bytes())
    return len(files), together.hexdigest()


def image_output(folder: Path) -> list[str]:
    """Returns the arguments with which mpv writes each picture to a folder, as fast as it can."""
    png = "--vo-image-format=png", "--vo-image-png-compression=1", "--vo-image-png-filter=0"
    return ["--vo=image", *png, f"--vo-image-outdir={folder}", "--untimed", "--osd-level=0"]
