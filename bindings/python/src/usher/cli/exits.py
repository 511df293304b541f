"""The exit codes of ``usher``, and the exception that ends a command with one of them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes. Each code has the attribute ``meaning``: its text in the manual."""

    OK = 0
    FOUND = 1
    USAGE = 2
    UNREACHABLE = 3
    MISSING = 127
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """What the code means, as the manual says it."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.OK: "success: the command found nothing wrong",
    Exit.FOUND: "the command found a fault of the head-end, a difference, or a threshold that was exceeded",
    Exit.USAGE: "wrong arguments, or a file that cannot be read",
    Exit.UNREACHABLE: "no connection to the head-end",
    Exit.MISSING: "a program, the library or a Python package that the command needs is not installed",
    Exit.INTERRUPTED: "interrupted by Ctrl-C; the sessions have been torn down",
}


class CommandError(Exception):
    """Ends a command. ``usher`` prints the text in one line, and exits with the code."""

    def __init__(self, text: str, code: Exit = Exit.USAGE) -> None:
        super().__init__(text)
        self.code = code
