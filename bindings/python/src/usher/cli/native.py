"""The sub-commands that are programs in C: run, gateway, trace (hosts/usher).

The C program has the same name, ``usher``, and works without Python. Installed together they are one command: this
``usher`` starts the C program for the commands of the C program, and the C program starts ``python3 -m usher.cli`` for
the commands in Python. Each starts the other only for a command that the other implements, so no endless chain of
starts is possible.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from .exits import CommandError, Exit

OVERRIDE = "USHER_PROGRAM"
"""The environment variable that names the C program."""
_ALSO = ("/usr/local/bin", "/usr/bin")
_ELF = b"\x7fELF"


def candidates() -> Iterator[Path]:
    """Yields the files that may be the C program, in the order in which they are tried."""
    for folder in [*os.environ.get("PATH", os.defpath).split(os.pathsep), *_ALSO]:
        yield Path(folder or ".", "usher")


def find() -> Path | None:
    """Returns the path of the C program; None if it is not installed.

    A script with the same name, such as the one that started this process, is not the C program.
    """
    named = os.environ.get(OVERRIDE)
    if named:
        return Path(named)
    for path in candidates():
        try:
            with path.open("rb") as file:
                if file.read(len(_ELF)) == _ELF and os.access(path, os.X_OK):
                    return path
        except OSError:
            continue
    return None


def options(name: str) -> list[tuple[str, str | None, str]]:
    """Returns the options of a command of the C program: each with the name of its value, if it has one, and its text.
    Returns an empty list if the program is not installed or cannot run."""
    program = find()
    if program is None:
        return []
    try:
        said = subprocess.run([program, name, "--help"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):  # completion without these options is better than none
        return []
    found = re.findall(r"^  (--[a-z-]+)(?: ([A-Z]+))?\s{2,}(\S.*)$", said, re.M)
    return [(option, value or None, text) for option, value, text in found]


def execute(name: str, arguments: Sequence[str]) -> NoReturn:
    """Replaces this process by the C program.

    Raises:
        CommandError: the program is not installed, or the system cannot run it.
    """
    program = find()
    if program is None:
        raise CommandError(
            f"`usher {name}` is a program in C that is not installed here: install the package usher-tools, or build "
            f"it from the sources (hosts/README.md); {OVERRIDE} names it if it is not on the PATH",
            Exit.MISSING,
        )
    try:
        os.execv(program, ["usher", name, *arguments])
    except OSError as error:
        raise CommandError(f"`usher {name}`: cannot run {program}: {error.strerror}", Exit.MISSING) from error
