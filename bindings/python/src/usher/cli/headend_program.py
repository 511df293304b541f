"""The program ``usher-headend``. If packages that the head-end needs are missing, the program says so in one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .exits import CommandError, Exit


def program() -> Any:
    """Imports the module of the head-end's command line, and returns it.

    Raises:
        CommandError: a package that the head-end needs is not installed.
    """
    try:
        return import_module("usher.testing.headend.cli")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "usher":
            raise
        raise CommandError(
            f"the package {error.name} is not installed: pip install 'libusher[headend]'", Exit.MISSING
        ) from error


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the head-end until SIGTERM or SIGINT. Returns the exit code."""
    try:
        return int(program().main(argv))
    except CommandError as error:
        print(f"usher-headend: {error}", file=sys.stderr)
        return int(error.code)
