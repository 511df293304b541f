"""A screen for players with a window."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from hosts.scene import PATIENCE_S

WIDTH, HEIGHT = 1280, 720


class Screen:
    """An X server without hardware (Xvfb).

    Attributes:
        name: the name of the display, for the environment variable DISPLAY.
    """

    def __init__(self, folder: Path) -> None:
        self._log = (folder / "xvfb.log").open("wb")

    def __enter__(self) -> Screen:
        read, write = os.pipe()
        words = ["-displayfd", str(write), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp", "-noreset"]
        self._process = subprocess.Popen(["Xvfb", *words], pass_fds=[write], stdout=self._log, stderr=self._log)
        os.close(write)
        with os.fdopen(read) as number:
            self.name = ":" + number.readline().strip()
        assert self.name != ":", "Xvfb does not start"
        return self

    def shot(self, file: Path) -> None:
        """Writes what the screen shows as a PNG file."""
        self._grab(["-y", str(file)])

    def share_of(self, is_wanted: Callable[[bytes], bool]) -> float:
        """Returns which share of the screen has wanted colours (3 bytes: red, green, blue)."""
        data = self._grab(["-vf", "scale=320:180:flags=neighbor", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"])
        colours = [data[at : at + 3] for at in range(0, len(data), 3)]
        return sum(map(is_wanted, colours)) / len(colours)

    def _grab(self, output: list[str]) -> bytes:
        """Takes a picture of the screen with ffmpeg. Returns what ffmpeg writes to stdout."""
        source = ["-f", "x11grab", "-draw_mouse", "0", "-video_size", f"{WIDTH}x{HEIGHT}", "-i", self.name]
        command = ["ffmpeg", "-v", "error", *source, "-frames:v", "1", *output]
        return subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True).stdout

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_S)
        self._log.close()
