"""``usher record``: records what a player and a head-end send, as a cassette."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from ..exits import CommandError, Exit

if TYPE_CHECKING:
    from ..output import Output

DESCRIPTION = """\
Records the requests of a player and the replies of its head-end in a file, which is called a cassette. With --to the
command is a proxy in front of the head-end, and records until Ctrl-C. With --trace it makes the cassette from a trace
of the library. A cassette has no token, key or other secret: names stand for the tokens, and of each reply the cassette
has only the status, the codes and the period."""

EXAMPLES = """\
examples:
  usher record play.cassette --to https://headend.example/TENANT1/ssm --port 8080
  usher record play.cassette --trace living-room.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="the cassette to write")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--to", metavar="URL", help="a URL of the head-end, to which the proxy passes the requests")
    source.add_argument("--trace", metavar="FILE", type=Path, help="a trace of the library (docs/traces.md)")
    parser.add_argument("--port", metavar="N", type=int, default=0, help="the proxy's port on 127.0.0.1 (a free one)")
    parser.add_argument("--ca-file", metavar="PATH", help="the certificate authority of the head-end")
    parser.add_argument(
        "--token-header", metavar="NAME", default="nv-authorizations", help="the header with the tokens (%(default)s)"
    )


def run(options: argparse.Namespace, out: Output) -> int:
    try:
        from ...testing.cassette import CassetteError, write
        from ...testing.cassette.recorder import Recorder
        from ...testing.cassette.trace import from_trace
    except ImportError as error:
        raise CommandError(f"{error}: pip install 'libusher[headend]'", Exit.MISSING) from error
    try:
        if options.trace is not None:
            cassette = from_trace(options.trace)
        else:
            ending = {signal.SIGINT, signal.SIGTERM}
            before = signal.pthread_sigmask(signal.SIG_BLOCK, ending)
            try:
                with Recorder(
                    options.to, token_header=options.token_header, port=options.port, ca_file=options.ca_file
                ) as recorder:
                    out.errors.print(f"recording at {recorder.url(options.to)} until Ctrl-C", soft_wrap=True)
                    signal.sigwait(ending)
                    cassette = recorder.cassette()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        write(cassette, options.file)
    except (CassetteError, OSError, ValueError) as error:
        raise CommandError(str(error)) from error
    if out.as_json:
        out.result({"file": str(options.file), "exchanges": len(cassette.exchanges), "source": cassette.source})
    else:
        count = len(cassette.exchanges)
        out.console.print(f"{options.file}: {count} exchange{'' if count == 1 else 's'}", soft_wrap=True)
    return Exit.OK
