"""``usher completion``: scripts for the shells."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..exits import CommandError, Exit

if TYPE_CHECKING:
    from ..output import Output

DESCRIPTION = """\
Prints a script that makes the shell complete the commands and options of usher."""

EXAMPLES = """\
examples:
  usher completion bash >~/.local/share/bash-completion/completions/usher
  usher completion zsh >"${fpath[1]}/_usher"
  usher completion fish >~/.config/fish/completions/usher.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell")


def run(options: argparse.Namespace, out: Output) -> int:
    try:
        import shtab
    except ImportError as error:
        raise CommandError("the package shtab is not installed: pip install 'libusher[cli]'", Exit.MISSING) from error
    from ..main import parser

    script = shtab.complete(parser(with_native=True), shell=options.shell)
    if out.as_json:
        out.result({"shell": options.shell, "script": script})
    else:
        print(script)
    return Exit.OK
