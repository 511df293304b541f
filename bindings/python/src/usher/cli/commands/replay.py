"""``usher replay``: plays a cassette back, as a server for a player or as a player for a head-end."""

from __future__ import annotations

import argparse
import json
import signal
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..exits import CommandError, Exit
from ..interrupts import Interrupts

if TYPE_CHECKING:
    from ...testing.cassette import Cassette
    from ..output import Output

DESCRIPTION = """\
Plays a cassette back, and prints what differs from the cassette. Without --against the command acts as a server: it
gives the recorded replies to the requests of a player, and ends at Ctrl-C, or when it has sent all replies. With
--against the command acts as a player: it sends the recorded requests to a head-end."""

EXAMPLES = """\
examples:
  usher replay play.cassette --port 8080
  usher replay play.cassette --order lenient
  usher replay play.cassette --against https://headend.example/TENANT1/ssm --token-file token.txt
  usher replay play.cassette --against http://127.0.0.1:8000/TENANT1/ssm --token-file token.txt \\
    --control http://127.0.0.1:8000/_control
"""
_POLL_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="the cassette")
    parser.add_argument(
        "--tolerance",
        metavar="MS",
        type=int,
        default=1000,
        help="by how much times may differ: as a server, the times between the keep-alives of a session; as a player, "
        "the times until the replies (%(default)s); -1: do not compare times",
    )
    server = parser.add_argument_group("as a server")
    server.add_argument("--port", metavar="N", type=int, default=0, help="the port on 127.0.0.1 (a free one)")
    server.add_argument(
        "--order",
        choices=["strict", "lenient"],
        default="strict",
        help="strict: the requests come in the order of the cassette (default); lenient: in any order",
    )
    player = parser.add_argument_group("as a player")
    player.add_argument("--against", metavar="URL", help="the SSM URL of the head-end to which the requests go")
    player.add_argument("--token-file", metavar="PATH", type=Path, help="a file with the content token")
    player.add_argument(
        "--speed", metavar="X", type=float, default=1.0, help="how much faster than recorded; 0: without waiting"
    )
    player.add_argument(
        "--control",
        metavar="URL",
        help="the control endpoints of a usher-headend with a manual clock; the command moves this clock instead of "
        "waiting",
    )
    player.add_argument("--ca-file", metavar="PATH", help="the certificate authority of the head-end")
    parser.add_argument(
        "--token-header", metavar="NAME", default="nv-authorizations", help="the header with the tokens (%(default)s)"
    )


def run(options: argparse.Namespace, out: Output) -> int:
    try:
        from ...testing.cassette import CassetteError, read
    except ImportError as error:
        raise CommandError(f"{error}: pip install 'libusher[headend]'", Exit.MISSING) from error
    try:
        cassette = read(options.file)
    except (CassetteError, OSError) as error:
        raise CommandError(str(error)) from error
    try:
        found = _send(options, cassette) if options.against is not None else _serve(options, cassette, out)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if out.as_json:
        out.result({"exchanges": len(cassette.exchanges), "differences": found})
    else:
        for line in found:
            out.console.print(line, soft_wrap=True)
        count = f"{len(found)} difference{'' if len(found) == 1 else 's'}" if found else "no difference"
        out.console.print(count, style="bold")
    return Exit.FOUND if found else Exit.OK


def _tolerance_ms(options: argparse.Namespace) -> int | None:
    return None if options.tolerance < 0 else int(options.tolerance)


def _serve(options: argparse.Namespace, cassette: Cassette, out: Output) -> list[str]:
    from ...testing.cassette.server import ReplayServer

    ending = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        with ReplayServer(
            cassette,
            order=options.order,
            token_header=options.token_header,
            port=options.port,
            tolerance_ms=_tolerance_ms(options),
        ) as server:
            out.errors.print(
                f"replaying at {server.url}/ssm until Ctrl-C, or until all replies are sent", soft_wrap=True
            )
            while not server.is_over and signal.sigtimedwait(ending, _POLL_S) is None:
                pass
            return server.differences()
    except OSError as error:
        raise CommandError(str(error)) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _send(options: argparse.Namespace, cassette: Cassette) -> list[str]:
    from ...testing.cassette.client import replay

    if options.token_file is None:
        raise CommandError("--against needs --token-file: a cassette has no tokens")
    if options.speed < 0:
        raise CommandError(f"--speed: {options.speed:g} is negative")
    try:
        token = options.token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--token-file: {error}") from error
    if not token or "\n" in token:
        raise CommandError(f"--token-file: {options.token_file} does not have one line with a token")
    try:
        with Interrupts() as interrupts:
            found = replay(
                cassette,
                options.against,
                lambda name: token,
                wait=_waiting(options, interrupts),
                token_header=options.token_header,
                ca_file=options.ca_file,
                tolerance_ms=_tolerance_ms(options),
            )
            interrupts.check()
            return found
    except OSError as error:
        raise CommandError(f"no connection to the head-end: {error}", Exit.UNREACHABLE) from error


def _waiting(options: argparse.Namespace, interrupts: Interrupts) -> Callable[[int], None]:
    """Returns a function that waits. After Ctrl-C it raises KeyboardInterrupt: between two requests, so that the
    command has the newest token of each session, and can tear the session down."""

    def advance(ms: int) -> None:
        interrupts.check()
        if ms:
            body = json.dumps({"ms": ms}).encode()
            request = urllib.request.Request(f"{options.control.rstrip('/')}/advance", data=body, method="POST")
            urllib.request.urlopen(request, timeout=30).close()

    if options.control is not None:
        return advance
    if options.speed == 0:
        return lambda ms: interrupts.check()
    return lambda ms: interrupts.sleep(ms / 1000 / options.speed)
