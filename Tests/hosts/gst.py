"""Runs GStreamer's players with the plug-in, without a screen."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hosts.calls import Calls
from hosts.scene import PATIENCE_S, Scene

from usher.testing.headend import HeadEnd

if TYPE_CHECKING:
    from hosts.conftest import Clip

HOST = "GStreamer"
"""The name of the players in the rows of docs/hosts.md."""

DEFAULT_SIGNALS = ("env", "--default-signal=HUP,INT")
"""With this prefix, a command does not ignore these signals, even if the tests run with nohup or in the background of a
script."""


def settings(server: HeadEnd, token: Path, /, **further: Any) -> dict[str, str]:
    """Returns the settings of the plug-in for a head-end. In the names of `further` settings, '_' stands for '-'; the
    value None removes a setting."""
    values: dict[str, Any] = {
        "license": server.license_url("clearkey"),
        "ssm": server.ssm_url,
        "token-file": token,
    }
    values.update({name.replace("_", "-"): value for name, value in further.items()})
    return {name: str(value) for name, value in values.items() if value is not None}


def environment(built: Path, **further: str) -> dict[str, str]:
    """Returns the environment of a program that finds the plug-in."""
    ours = {
        "GST_PLUGIN_PATH": str(built / "gstreamer"),
        "GST_REGISTRY": str(built / "gstreamer" / "registry.bin"),
        "GST_DEBUG": "usherdecrypt:5",
        "GST_DEBUG_NO_COLOR": "1",
    }
    return {**os.environ, **ours, **further}


def built_program(name: str, folder: Path) -> Path:
    """Builds a program of this folder, which uses GStreamer and libusher, and returns it."""
    program = folder / name.removesuffix(".c")
    library = Path(os.environ["USHER_LIBRARY"]).resolve()
    ask = ["pkg-config", "--cflags", "--libs", "gstreamer-1.0", "gstreamer-video-1.0"]
    flags = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.split()
    here = Path(__file__).parent
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", str(here / name), "-o", str(program)]
    command += ["-I", str(here.parents[1] / "include"), str(library), f"-Wl,-rpath,{library.parent}", *flags]
    subprocess.run(command, check=True, timeout=120)
    return program


class Player:
    """A process of usher-gst-play, which a test controls by lines of text.

    Attributes:
        process: the process.
        calls: the measured calls of libusher.
    """

    def __init__(
        self,
        built: Path,
        calls: Calls,
        uri: str,
        given: dict[str, str],
        *arguments: str,
        prefix: tuple[str, ...] = (),
        **variables: str,
    ) -> None:
        sets = [f"--set={name}={value}" for name, value in given.items()]
        program = str(built / "gstreamer" / "usher-gst-play")
        self.process = subprocess.Popen(
            [*DEFAULT_SIGNALS, *prefix, program, *arguments, *sets, uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(built, **calls.variables, **variables),
        )
        self.calls = calls
        self._changed = threading.Condition()
        self._lines: list[str] = []
        self._ended = 0
        self.errors: list[str] = []
        for stream, into in ((self.process.stdout, self._lines), (self.process.stderr, self.errors)):
            threading.Thread(target=self._read, args=(stream, into), daemon=True).start()

    def _read(self, stream: Any, into: list[str]) -> None:
        for line in stream:
            with self._changed:
                into.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended += 1
            self._changed.notify_all()

    @property
    def text(self) -> str:
        """What the player has printed."""
        return "\n".join([*self.lines(), "--", *self.errors])

    def lines(self, beginning: str = "") -> list[str]:
        with self._changed:
            return [line for line in self._lines if line.startswith(beginning)]

    def until(self, beginning: str, count: int = 1, seconds: float = PATIENCE_S) -> str:
        """Waits for the `count`-th line that begins with `beginning`, and returns it."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                found = [line for line in self._lines if line.startswith(beginning)]
                if len(found) >= count:
                    return found[count - 1]
                left = end - time.monotonic()
                if left <= 0 or self._ended == 2:
                    break
                self._changed.wait(left)
        raise AssertionError(f"no line {beginning!r} ({count}):\n{self.text}")

    def say(self, line: str) -> None:
        """Gives the player a command."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(f"the player has ended with {self.wait()}:\n{self.text}") from None

    def quit(self, seconds: float = PATIENCE_S) -> int:
        """Ends the player, and returns its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait(seconds)

    def wait(self, seconds: float = PATIENCE_S) -> int:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the player has not ended within {seconds} s:\n{self.text}") from None
        with self._changed:
            self._changed.wait_for(lambda: self._ended == 2, PATIENCE_S)
        return code

    def hash(self, what: str) -> tuple[int, str]:
        """Returns the number and the hash of the pictures, or of the buffers of sound. The player prints them at the
        end of an item."""
        self.until(what)
        return self.hashes(what)[0]

    def hashes(self, what: str) -> list[tuple[int, str]]:
        """Returns what hash() returns, for each item that has ended."""
        fields = [line.split() for line in self.lines(what)]
        return [(int(count), value) for _, count, _, value in fields]

    def error(self) -> str:
        """Waits until the player prints an error. Returns the text that the viewer sees."""
        return self.until("error ").split(": ", 1)[1]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Room(Scene[Player]):
    """A scene whose players are GStreamer's."""

    def __init__(self, server: HeadEnd, folder: Path, built: Path, timing: Path) -> None:
        super().__init__(server, folder)
        self.built, self.timing = built, timing

    def calls(self) -> Calls:
        """Returns the object that measures how long the next player's calls of libusher take."""
        return Calls(self.timing, self.folder / f"calls-{len(self.started)}")

    def play(
        self,
        clip: Clip | None,
        uri: str | None = None,
        *arguments: str,
        fast: bool = True,
        screen: bool = False,
        usher: dict[str, Any] | None = None,
        **process: Any,
    ) -> Player:
        """Starts the player, and returns it. `usher` has further settings of the plug-in; the value None leaves a
        setting out. `screen`: the player shows a window, and hashes nothing."""
        given = settings(self.server, self.give_token(clip.content.content_id if clip else "none"), **(usher or {}))
        where = uri or (clip.file.as_uri() if clip else "")
        flags = () if screen else ("--hash", "--fast") if fast else ("--hash",)
        player = Player(self.built, self.calls(), where, given, *flags, *arguments, **process)
        self.started.append(player)
        return player

    def plays_next(self, player: Player, clip: Clip) -> None:
        """Opens a clip in a player that played another item. Checks that every picture is right, and that the player
        ends without an error."""
        ends, hashes = len(player.lines("end")), len(player.lines("pictures"))
        player.say(f"open {clip.file.as_uri()} token={self.token(clip.content.content_id)}")
        player.until("end", ends + 1)
        assert player.quit() == 0, player.text
        assert player.hashes("pictures")[hashes:] == [expected(clip)]

    def count(self, route: str) -> int:
        return len(self.server.journal.entries(route=route))


def expected(clip: Clip) -> tuple[int | None, str | None]:
    """Returns the number and the hash of the pictures of a clip."""
    return clip.content.frames, clip.content.frames_sha256
