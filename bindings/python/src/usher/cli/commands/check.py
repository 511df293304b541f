"""``usher check``: checks whether a head-end keeps the statements of the protocol page about head-ends."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .. import spc, target
from ..check.engine import Check
from ..check.player import Player, clear_key_payload
from ..check.statements import statements
from ..exits import CommandError, Exit
from ..wire.client import Client

if TYPE_CHECKING:
    from ..output import Output

DESCRIPTION = """\
Checks whether a head-end does what the protocol (docs/protocol.md) states about servers, for example whether it keeps
the limit of streams. The command plays stories, that is, sequences of valid and invalid requests, and judges each
reply. If a statement does not hold, check leaves out requests of the story as long as the fault remains, and prints the
shortest story.

Use an account that nobody else uses during the check: the command takes all slots of this account, and frees them at
the end. Without URL, check tests servers that give licences or FairPlay keys without sessions."""

EXAMPLES = """\
examples:
  usher check https://ssm.example/TENANT1/ssm --token-file token.txt --limit 2
  usher check https://ssm.example/TENANT1/ssm --token-file token.txt --patience 90 --junit check.xml
  usher check --ready-file headend.json --only limit --only limit-together
  usher check --key-server https://keys.example/fps --key-system fairplay --payload spc.bin --request-format json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target.add_arguments(
        parser,
        "the session manager (SSM), such as https://HOST/TENANT/ssm; leave it out with --v2 or --ready-file, or to ask "
        "a licence server or key server that has no sessions",
    )
    keys = parser.add_argument_group("FairPlay key servers; they need --key-system fairplay, and an SPC as --payload")
    keys.add_argument("--key-server", metavar="URL", help="a key server, which gets an SPC and replies with a CKC")
    spc.add_arguments(keys)
    keys.add_argument(
        "--response-path",
        metavar="PATH",
        help="the place of the CKC in a JSON reply, such as data.ckc; by default check searches for the CKC",
    )
    keys.add_argument(
        "--entitlement",
        metavar="URL",
        help="an entitlement server; check then sends the SPC to ExpressPlay, to the URL in the reply of this server",
    )
    keys.add_argument(
        "--content-id", metavar="ID", help="the identifier of the content in the requests to these servers"
    )
    group = parser.add_argument_group("the check")
    group.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="how many streams the account may play; by default check measures the limit",
    )
    group.add_argument(
        "--patience",
        type=float,
        default=0.0,
        metavar="S",
        help="how many seconds check may wait; statements about time need eight periods, so check skips them if S is "
        "less (%(default)g)",
    )
    group.add_argument(
        "--only", action="append", default=[], metavar="TAG", help="report only this statement; repeat for more"
    )
    group.add_argument(
        "--stories", type=int, default=5, metavar="N", help="how many stories in a random order (%(default)s)"
    )
    group.add_argument(
        "--seed", type=int, metavar="N", help="repeat the random stories of the run that printed this seed"
    )
    group.add_argument("--junit", type=Path, metavar="FILE", help="write a report in JUnit XML")
    group.add_argument("--quiet", action="store_true", help="do not show requests and replies")
    group.add_argument("--list", action="store_true", help="print the statements with their tags, and end")


def run(options: argparse.Namespace, out: Output) -> int:
    if options.limit is not None and options.limit < 1:
        raise CommandError("--limit: give a number from 1")
    known = [statement.tag for statement in statements(2)]
    for tag in options.only:
        if tag not in known:
            raise CommandError(f"--only: there is no statement {tag}; `usher check --list` prints them")
    if options.list:
        return _list(out)
    from ..check import report

    aim = target.target(options, needs_sessions=False)
    payload = aim.payload if aim.payload is not None else clear_key_payload(aim.key_ids)
    player = Player(aim, payload, _advance(aim.control) if aim.control is not None else None)
    seed = random.randrange(10_000) if options.seed is None else options.seed
    patience_s = float("inf") if aim.control is not None else options.patience
    limit = options.limit if options.limit is not None else aim.limit

    def tell(line: str) -> None:
        if not out.as_json and out.errors.is_terminal:
            status.update(line)

    check = Check(aim, player, limit=limit, random_stories=options.stories, seed=seed, patience_s=patience_s, tell=tell)
    with out.errors.status("") as status:
        found = check.run()
    if options.only:
        found.verdicts = [verdict for verdict in found.verdicts if verdict.statement.tag in options.only]
    if options.junit is not None:
        _write(options.junit, report.as_junit(found, player.redactor))
    if out.as_json:
        out.result(report.as_json(found, player.redactor))
    else:
        where = player.redactor.url(
            aim.ssm or aim.license or aim.key_server or aim.entitlement or aim.certificate or ""
        )
        out.console.print(f"usher check {where}\n", style="bold")
        report.print_table(out.console, found)
        report.print_findings(out.console, found, player.redactor, quiet=options.quiet)
        report.print_verdict(out.console, found)
    if found.unreachable:
        return Exit.UNREACHABLE
    return Exit.FOUND if found.of("failed") else Exit.OK


def _list(out: Output) -> int:
    found = statements(2)
    if out.as_json:
        out.result([{"tag": each.tag, "statement": each.text, "section": each.section} for each in found])
    else:
        for each in found:
            out.console.print(f"{each.tag:<18} {each.text}")
    return Exit.OK


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--junit: {path}: {error.strerror}") from error


def _advance(control: str) -> Callable[[float], None]:
    """Returns a function that moves the manual clock of a reference head-end, instead of waiting."""

    def advance(seconds: float) -> None:
        body = json.dumps({"ms": round(seconds * 1000)}).encode()
        reply = Client().send("POST", f"{control}/advance", (("Content-Type", "application/json"),), body)
        if not reply.succeeded:
            raise CommandError("the head-end does not move its clock: is it still running?", Exit.UNREACHABLE)

    return advance
