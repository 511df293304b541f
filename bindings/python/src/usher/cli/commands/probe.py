"""``usher probe``: one playback against a head-end, to see whether it works, and if not, why."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from .. import target
from ..exits import CommandError, Exit

if TYPE_CHECKING:
    from ..output import Output

DESCRIPTION = """\
Plays once against your head-end: the command sets a session up, requests a licence if you give --license, sends
heartbeats, and tears the session down. The library makes these requests, so they are the requests of a real player.
For each step, probe prints how long the step took, and the requests and replies without tokens and keys. If a step
fails, probe says in words what is wrong and what to do next. Without --real-time, probe sends the heartbeats at once,
and does not wait for their period."""

EXAMPLES = """\
examples:
  usher probe https://ssm.example/TENANT1/ssm --token-file token.txt
  usher probe https://ssm.example/TENANT1/ssm --token-file token.txt --license https://drm.example/ckls \\
      --key-id 00112233445566778899aabbccddeeff
  usher probe --ready-file headend.json --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target.add_arguments(
        parser, "the session manager (SSM), such as https://HOST/TENANT/ssm; with --v2 or --ready-file leave it out"
    )
    group = parser.add_argument_group("the playback")
    group.add_argument(
        "--heartbeats", type=int, default=2, metavar="N", help="how many heartbeats to send (%(default)s)"
    )
    group.add_argument("--real-time", action="store_true", help="wait a period before each heartbeat, as players do")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="any other option of usher.SSPOptions or SSPV2Options; VALUE is JSON or text: lenient_numbers=true",
    )
    group.add_argument("--quiet", action="store_true", help="do not show requests and replies")


def run(options: argparse.Namespace, out: Output) -> int:
    aim = target.target(options)
    given = dict(_setting(text) for text in options.settings)
    if options.heartbeats < 0:
        raise CommandError("--heartbeats: give a number from 0")
    try:
        from ... import InvalidArgumentError, library_version
        from ..probe import report
        from ..probe.steps import Probe, Step

        version = library_version()
    except ImportError as error:
        raise CommandError(str(error), Exit.MISSING) from error

    def tell(step: Step) -> None:
        if not out.as_json:
            report.print_step(out.console, probe, step, quiet=options.quiet)

    probe = Probe(aim, heartbeats=options.heartbeats, real_time=options.real_time, options=given, tell=tell)
    if not out.as_json:
        where = probe.redactor.url(aim.ssm or aim.license or "")
        out.console.print(f"usher probe {where}  (libusher {version}, SSP {'V2' if aim.v2 else 'V1'})\n", style="bold")
    try:
        probe.run()
    except (InvalidArgumentError, TypeError) as error:
        if probe.steps:
            raise
        raise CommandError(str(error)) from error
    if out.as_json:
        out.result(report.as_json(probe))
    else:
        report.print_verdict(out.console, probe)
    if not any(step.failed for step in probe.steps):
        return Exit.OK
    return Exit.UNREACHABLE if probe.unreachable else Exit.FOUND


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"--set: {text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
