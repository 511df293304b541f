"""``usher headend``: runs the reference head-end, as the program ``usher-headend`` does."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..headend_program import program

if TYPE_CHECKING:
    from ..output import Output

_cli = program()
DESCRIPTION = _cli.ABOUT
EXAMPLES = _cli.EXAMPLES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _cli.add_arguments(parser)


def run(options: argparse.Namespace, out: Output) -> int:
    return int(_cli.serve(options, as_json=out.as_json))
