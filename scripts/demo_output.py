"""What `make demo` prints: lines of at most 100 columns, and a progress line while it waits. Standard library only."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO

WIDTH = 100
"""The number of columns that no printed line exceeds, unless a single word is longer."""
QUIET_S = 0.8
"""After this time without output, a progress line is printed."""
REDRAW_S = 0.2
"""How often the progress line is rewritten on a terminal."""
BAR = "   │ "
"""The start of each line that quotes a program."""

_ESCAPE = re.compile(r"\033\[[0-9;]*m")


def columns(text: str) -> int:
    """Returns the number of columns that a text needs. Escape sequences of colours need none."""
    return len(_ESCAPE.sub("", text))


def _cut(line: str, most: int) -> int:
    """Returns where to cut a line that is too long: at the last space before column `most`, or otherwise after the
    first word. The spaces at the start of the line do not count."""
    found: int | None = None
    used, begun = 0, False
    for match in re.finditer(r"\033\[[0-9;]*m|.", line):
        if match[0].startswith("\033"):
            continue
        if match[0] != " ":
            begun = True
        elif begun and (found is None or used <= most):
            found = match.start()
        used += 1
        if used > most and found is not None:
            break
    return len(line) if found is None else found


def folded(line: str, width: int = WIDTH) -> Iterator[str]:
    """Yields the lines of a text that may be too long for one line. The lines after the first are indented like the
    first, and colours continue on them."""
    plain = _ESCAPE.sub("", line)
    indent = " " * (len(plain) - len(plain.lstrip(" ")))
    while columns(line) > width:
        end = _cut(line, width)
        first, rest = line[:end], line[end:].lstrip(" ")
        if not rest:
            break
        colours = _ESCAPE.findall(first)
        colour = colours[-1] if colours and colours[-1] != "\033[0m" else ""
        yield first + ("\033[0m" if colour else "")
        line = indent + colour + rest
    yield line


class Output:
    """Prints lines, and the progress while the demo prints no other line. On a terminal, the progress is one line,
    which this class rewrites. Otherwise this class prints a new line whenever it has printed nothing for `QUIET_S`."""

    def __init__(self, stream: TextIO, *, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._terminal = stream.isatty()
        self.coloured = self._terminal and not os.environ.get("NO_COLOR")
        self._printed_s = now()
        self._shown = False

    def painted(self, code: int, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.coloured else text

    def bold(self, text: str) -> str:
        return self.painted(1, text)

    def dim(self, text: str) -> str:
        return self.painted(2, text)

    def good(self, text: str) -> str:
        return self.painted(32, text)

    def bad(self, text: str) -> str:
        return self.painted(31, text)

    def say(self, text: str = "") -> None:
        """Prints a text; lines that are too long are folded."""
        self._remove_progress()
        for line in text.split("\n"):
            for part in folded(line):
                self._stream.write(part + "\n")
        self._stream.flush()
        self._printed_s = self._now()

    def quote(self, text: str) -> None:
        """Prints what a program printed, with a bar at the left."""
        self._remove_progress()
        for line in text.strip("\n").splitlines():
            for part in folded(line, WIDTH - len(BAR)):
                self._stream.write(f"{self.dim(BAR.rstrip(' '))} {part}".rstrip(" ") + "\n")
        self._stream.flush()
        self._printed_s = self._now()

    def act(self, title: str, text: str) -> None:
        self.say(f"\n{self.bold(title)}\n{text}\n")

    def progress(self, text: Callable[[], str]) -> None:
        """If a progress line is due, calls `text` and prints the progress. Call this method often while you wait."""
        if self._now() - self._printed_s < (REDRAW_S if self._shown else QUIET_S):
            return
        line = next(folded(f"   … {text()}", WIDTH - 1))
        if self._terminal:
            self._stream.write(f"\r\033[K{self.dim(line)}")
            self._shown = True
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._printed_s = self._now()

    def _remove_progress(self) -> None:
        if self._shown:
            self._stream.write("\r\033[K")
            self._shown = False


OUT = Output(sys.stdout)
"""The output of this process."""
