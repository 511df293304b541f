"""The sub-commands of ``usher``.

To add one, write ``commands/NAME.py`` and add a line to ``COMMANDS`` and to the table ``python_commands`` in
hosts/usher/main.c; then run scripts/man-page. The module has the members of ``Module``. Import what is slow or optional
(rich, the library, aiohttp) inside ``run``: ``usher --help`` and shell completion import only what they show.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from .exits import CommandError, Exit

if TYPE_CHECKING:
    from .output import Output


class Module(Protocol):
    """What the module of a sub-command has."""

    DESCRIPTION: str
    """What the command does, in whole sentences: the first part of ``usher NAME --help``, and of the manual page."""
    EXAMPLES: str
    """Lines with calls of the command; they follow the options in the help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options and arguments. ``--json`` and ``--color`` are there already."""

    def run(self, options: argparse.Namespace, out: Output) -> int:
        """Runs the command. Returns its exit code, or raises CommandError."""


@dataclass(frozen=True)
class Command:
    """A sub-command.

    Attributes:
        name: its name on the command line, and that of its module in ``commands``.
        summary: one line for ``usher --help``.
        extra: the extra of the distribution with the packages that it needs; None: it needs no package.
        native: a program in C does the work; see ``native``.
    """

    name: str
    summary: str
    extra: str | None = "cli"
    native: bool = False

    def module(self) -> Module:
        """Imports the module of the command, and returns it. Raises CommandError if a package that the command needs is
        not installed."""
        try:
            return cast(Module, import_module(f".commands.{self.name}", __package__))
        except ModuleNotFoundError as error:
            if self.extra is None or (error.name or "usher").startswith("usher"):
                raise
            words = f"the package {error.name} is not installed: pip install 'libusher[{self.extra}]'"
            raise CommandError(words, Exit.MISSING) from error


COMMANDS = (
    Command("probe", "plays once against a head-end, and says what is wrong"),
    Command("check", "asks a head-end every statement of the protocol"),
    Command("watch", "shows the sessions of a reference head-end, live"),
    Command("explain", "says in words what an error code means"),
    Command("headend", "runs the reference head-end, a server for tests", extra="headend"),
    Command("load", "plays on many screens at once, and measures", extra="load"),
    Command("record", "records a player and its head-end, without secrets"),
    Command("replay", "plays a recording back, and says where they differ"),
    Command("completion", "prints the completion script for bash, zsh or fish"),
    Command("run", "plays an encrypted clip with any player, under a session", native=True),
    Command("gateway", "serves keys under a session to unmodified players", native=True),
    Command("trace", "shows what libusher sent and received, as a timeline", native=True),
)
