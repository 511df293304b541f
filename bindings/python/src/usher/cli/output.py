"""What a command prints: text for people, with colours on a terminal, or JSON."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .exits import CommandError, Exit

if TYPE_CHECKING:
    from rich.console import Console

PIPED_COLUMNS = 110
"""The width of output that goes into a file or a pipe, unless COLUMNS sets another."""


def indented(text: str, columns: int, by: str = "  ") -> str:
    """Returns a text in lines of at most `columns` columns. Each line begins with `by`."""
    return textwrap.fill(
        text, columns, initial_indent=by, subsequent_indent=by, break_long_words=False, break_on_hyphens=False
    )


class Output:
    """Where a command writes.

    Args:
        as_json: the command prints JSON and no text.
        color: ``auto`` (colours on a terminal, unless NO_COLOR is set), ``always`` or ``never``.
    """

    def __init__(self, *, as_json: bool = False, color: str = "auto") -> None:
        self.as_json = as_json
        self._color = color

    @cached_property
    def console(self) -> Console:
        """The console for text. It writes to stdout.

        Raises:
            CommandError: the package rich is not installed.
        """
        return self._console(stderr=False)

    @cached_property
    def errors(self) -> Console:
        """The console for progress and warnings. It writes to stderr, so that stdout has only the result."""
        return self._console(stderr=True)

    def _console(self, *, stderr: bool) -> Console:
        try:
            from rich.console import Console
        except ImportError as error:
            raise CommandError(
                "the package rich is not installed: pip install 'libusher[cli]'", Exit.MISSING
            ) from error
        stream = sys.stderr if stderr else sys.stdout
        on_terminal = stream.isatty()
        plain = self._color == "never" or (self._color == "auto" and not on_terminal)
        return Console(
            stderr=stderr,
            highlight=False,
            emoji=False,
            markup=False,
            no_color=True if plain or (self._color == "auto" and "NO_COLOR" in os.environ) else None,
            force_terminal=True if self._color == "always" else (False if plain else None),
            width=None if on_terminal or "COLUMNS" in os.environ else PIPED_COLUMNS,
        )

    def result(self, value: Any) -> None:
        """Prints a value as indented JSON, for commands that end with one result."""
        print(json.dumps(value, indent=2, ensure_ascii=False))

    def line(self, value: Any) -> None:
        """Prints a value as one line of JSON and flushes stdout, for commands that print values while they run."""
        print(json.dumps(value, separators=(",", ":"), ensure_ascii=False), flush=True)
