"""The command line of ``usher``: chooses the sub-command, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence

from . import native
from .exits import CommandError, Exit
from .output import Output
from .registry import COMMANDS, Command


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs to the width of the terminal, keeps the lines of examples and tables, and gives the texts of
    options more room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)
        self._action_max_length = 14  # otherwise argparse forgets how far it indents the names of commands

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = text.rstrip("\n").split("\n\n")
        return "\n\n".join(
            block if "\n " in block else textwrap.fill(" ".join(block.split()), width) for block in blocks
        )


ABOUT = "Tools for testers of concurrent-stream sessions and DRM licences."


def exit_codes() -> str:
    """Returns the table of the exit codes, for the help."""
    return "exit codes:\n" + "".join(f"  {int(code):<4} {code.meaning}\n" for code in Exit)


def fill(parser: argparse.ArgumentParser, command: Command) -> None:
    """Adds the arguments of a command to its parser."""
    module = command.module()
    parser.description = module.DESCRIPTION
    parser.epilog = f"{module.EXAMPLES}\n{exit_codes()}" if module.EXAMPLES else exit_codes()
    parser.formatter_class = _Formatter
    module.add_arguments(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print JSON instead of text")
    group.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="colours: on a terminal unless NO_COLOR is set (auto), always or never (%(default)s)",
    )


def parser(chosen: Sequence[str] | None = None, *, with_native: bool = False) -> argparse.ArgumentParser:
    """Returns the parser of the command line.

    Args:
        with_native: whether the parser has the options of the commands that the C program implements; only shell
            completion needs them.
        chosen: the commands whose modules are imported, so that their parsers have arguments. None: all.
    """
    made = argparse.ArgumentParser(
        prog="usher",
        description=ABOUT,
        epilog=exit_codes(),
        formatter_class=_Formatter,
    )
    made.add_argument("--version", action="store_true", help="print the versions of the command and of the library")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for command in COMMANDS:
        its = commands.add_parser(command.name, help=command.summary, add_help=not command.native)
        if not command.native and (chosen is None or command.name in chosen):
            fill(its, command)
        if command.native and with_native:
            for option, value, text in native.options(command.name):
                takes = {"action": "store_true"} if value is None else {"metavar": value}
                its.add_argument(option, help=text.replace("%", "%%"), **takes)  # type: ignore[arg-type]
    return made


def versions() -> str:
    """Returns the versions of the package, of the library and of the C program, one a line."""
    from .. import __version__, library_version

    try:
        from .._c.ffi import find_library

        library = f"library {library_version()} ({find_library()})"
    except ImportError as error:
        library = f"no library: {error}"
    program = native.find()
    return f"usher {__version__}\n{library}\n{program if program is not None else 'no program'} for run, gateway, trace"


def run(argv: Sequence[str]) -> int:
    """Runs a command line, and returns the exit code. Raises CommandError."""
    named = argv[0] if argv else ""
    command = next((each for each in COMMANDS if each.name == named), None)
    if command is not None and command.native:
        native.execute(command.name, argv[1:])
    if command is None and named and not named.startswith("-"):
        from .._border import meant as meant_by  # slow, and only this case needs it

        meant = meant_by(named, [each.name for each in COMMANDS])
        raise CommandError(f"there is no command {named}{meant or '; `usher --help` lists the commands'}", Exit.USAGE)
    made = parser([named])
    options = made.parse_args(argv)
    if options.version:
        print(versions())
        return Exit.OK
    if command is None:
        made.print_help(sys.stderr)
        return Exit.USAGE
    return command.module().run(options, Output(as_json=options.json, color=options.color))


def main(argv: Sequence[str] | None = None) -> int:
    """The program ``usher``. Returns its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    name = " ".join(["usher", *(word for word in arguments[:1] if word in {each.name for each in COMMANDS})])
    try:
        code = run(arguments)
        sys.stdout.flush()
        return int(code)
    except CommandError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return int(error.code)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.OK)
