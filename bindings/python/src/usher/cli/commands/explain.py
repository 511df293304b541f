"""``usher explain``: an error code in words."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..exits import CommandError, Exit

if TYPE_CHECKING:
    from ..output import Output

DESCRIPTION = """\
Says in words what an error code of a server means, or a status of the library, and what to do about it. The same number
has different meanings at different servers, so name the server too. `usher probe` prints the server with each error."""

EXAMPLES = """\
examples:
  usher explain 1007
  usher explain 4006 license
  usher explain -2018 license
  usher explain TIMEOUT
"""

ORIGINS = ("ssm", "license", "certificate", "entitlement", "local")
"""The members of ``usher.Origin``, in lower case; the library is imported only in run()."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "code", metavar="CODE", help="a code that a server sent, such as 1007; or a status, such as TIMEOUT"
    )
    parser.add_argument(
        "origin",
        metavar="ORIGIN",
        nargs="?",
        choices=ORIGINS,
        help="what sent the code: ssm (session manager), license (licence server, FairPlay key server, ExpressPlay), "
        "certificate (certificate server), entitlement (entitlement server) or local (the library); by default ssm "
        "for a number, and local for a status",
    )


def run(options: argparse.Namespace, out: Output) -> int:
    try:
        from ..._c.ffi import explain
        from ..._errors import InvalidArgumentError
    except ImportError as error:
        raise CommandError(str(error), Exit.MISSING) from error
    text = str(options.code)
    code: int | str
    try:
        code = int(text)
    except ValueError:
        code = text
    try:
        words = explain(code, options.origin)
    except (InvalidArgumentError, OverflowError) as error:
        raise CommandError(f"{text}: {error}") from error
    origin = options.origin or ("ssm" if isinstance(code, int) else "local")
    if out.as_json:
        out.result(
            {
                "code": code,
                "origin": origin,
                "known": words.known,
                "summary": words.summary,
                "advice": words.advice,
                "source": words.source,
            }
        )
        return Exit.OK
    out.console.print(f"{code} from {origin}", style="bold")
    out.console.print(words.summary)
    out.console.print(words.advice)
    if words.known:
        out.console.print(f"Source: {words.source}", style="dim")
    elif isinstance(code, int):
        out.console.print("The library does not know this code, so the words describe any refusal.", style="dim")
    return Exit.OK
