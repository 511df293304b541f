"""``usher load``: many screens at once, on the processes and machines of Locust."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exits import CommandError, Exit

if TYPE_CHECKING:
    from ...testing.load.settings import Settings
    from ..output import Output

DESCRIPTION = """\
Plays on many screens at once against a head-end, and measures set-ups, heartbeats and teardowns. Each screen has a
session of libusher; Locust runs the screens, on several processes and machines. At the end the command prints the
figures, and exits with 1 if they exceed a threshold. Run this command only against head-ends that you may load.
"""
EXAMPLES = """\
examples:
  usher-headend --redis redis://127.0.0.1:6379/0 --workers 2 --port 8080
  usher load http://127.0.0.1:8080/TENANT1 --screens 10000 --rate 150 --seconds 180 --html report.html
  usher load https://example.net/T --tokens tokens.txt --screens 500 --hold 30 --setup-p99 400
  usher load URL --screens 100000 --expect-workers 8    on one machine, and on eight others:
  usher load URL --screens 100000 --join MASTER
"""
_LOCUST_LINES = 20
_MASTER_PORT = 5557
"""The TCP port of Locust's master, if processes run on several machines. It is Locust's own default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="URL of the head-end with its tenant, e.g. http://HOST:PORT/TENANT1")
    parser.add_argument("--screens", type=int, default=100, metavar="N", help="how many screens play (%(default)s)")
    parser.add_argument(
        "--rate", type=float, default=50, metavar="N", help="screens that start per second (%(default)g)"
    )
    parser.add_argument("--seconds", type=int, default=60, metavar="S", help="how long the test lasts (%(default)s)")
    parser.add_argument(
        "--hold",
        type=float,
        default=0,
        metavar="S",
        help="how many seconds a screen plays one item; 0: to the end of the test",
    )
    parser.add_argument(
        "--pause", type=float, default=1, metavar="S", help="seconds of pause between two items (%(default)g)"
    )
    parser.add_argument("--license", action="store_true", help="request a Clear Key licence for each item")
    parser.add_argument(
        "--license-url", metavar="URL", help="the licence server; default: that of the reference head-end"
    )
    tokens = parser.add_argument_group("accounts")
    tokens.add_argument(
        "--tokens",
        metavar="FILE",
        help="a file with one content token in each line; by default the command makes tokens of the reference "
        "head-end",
    )
    tokens.add_argument(
        "--accounts",
        type=int,
        default=0,
        metavar="N",
        help="how many accounts share the screens; 0: each screen has its own account",
    )
    tokens.add_argument(
        "--limit", type=int, default=1, metavar="N", help="streams that each account may have (%(default)s)"
    )
    processes = parser.add_argument_group("processes")
    processes.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes on this machine (%(default)s)"
    )
    processes.add_argument(
        "--expect-workers", type=int, metavar="N", help="be the master of N processes that were started with --join"
    )
    processes.add_argument("--join", metavar="HOST", help="be a worker of the master on HOST")
    processes.add_argument(
        "--master-port",
        type=int,
        metavar="N",
        help=f"TCP port of the master ({_MASTER_PORT}; with --workers a free port)",
    )
    limits = parser.add_argument_group("thresholds")
    limits.add_argument(
        "--late",
        type=int,
        default=500,
        metavar="MS",
        help="a heartbeat that is more than MS late counts as late (%(default)s)",
    )
    limits.add_argument(
        "--late-most", type=int, default=0, metavar="N", help="how many late heartbeats are allowed (%(default)s)"
    )
    limits.add_argument(
        "--errors-most", type=int, default=0, metavar="N", help="how many errors are allowed (%(default)s)"
    )
    limits.add_argument(
        "--setup-p99", type=int, default=0, metavar="MS", help="time limit for 99 %% of the set-ups; 0: no limit"
    )
    report = parser.add_argument_group("report")
    report.add_argument("--html", metavar="FILE", help="write a report with plots")
    report.add_argument(
        "--period",
        type=float,
        default=60,
        metavar="S",
        help="the heartbeat period from which the command estimates the cost of a million streams (%(default)g)",
    )


def run(options: argparse.Namespace, out: Output) -> int:
    from ... import library_version
    from ...testing.headend.config import SERVICE_OF
    from ...testing.load import figures, report
    from ...testing.load.settings import Settings, Tokens

    # Do not import locust here: it replaces parts of Python's standard library in this process.
    for package in ("locust", "gevent"):
        if find_spec(package) is None:
            raise CommandError(f"the package {package} is not installed: pip install 'libusher[load]'", Exit.MISSING)
    try:
        library_version()  # Locust would continue without screens if its processes found no library
    except ImportError as error:
        raise CommandError(str(error), Exit.MISSING) from error
    url = options.url.rstrip("/")
    with tempfile.TemporaryDirectory(prefix="usher-load-") as folder:
        result = Path(folder, "figures.json")
        settings = Settings(
            ssm_url=f"{url}/ssm",
            license_url=options.license_url or f"{url}/{SERVICE_OF['clearkey']}/contentlicenseservice/v1/licenses",
            licenses=options.license,
            tokens_file=None if options.tokens is None else os.path.abspath(options.tokens),
            tenant=url.rpartition("/")[2],
            accounts=options.accounts,
            limit=options.limit,
            hold_s=options.hold,
            pause_s=options.pause,
            late_ms=options.late,
            late_most=options.late_most,
            errors_most=options.errors_most,
            setup_p99_ms=options.setup_p99,
            result=str(result),
        )
        try:
            Tokens(settings)
        except (OSError, ValueError) as error:
            raise CommandError(f"--tokens: {error}") from error
        log, ended = _run_locust(options, settings, url)
        if options.join:
            return Exit.OK
        if ended and not result.exists():  # a signal ended the test before the first screen played
            raise KeyboardInterrupt
        if not result.exists():
            raise CommandError("Locust has ended without figures:\n" + "\n".join(log[-_LOCUST_LINES:]), Exit.FOUND)
        value: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    value["exceeded"] = figures.exceeded(value, settings)
    value["million"] = figures.million(value, options.period)
    if options.html:
        try:
            report.add_verdict(Path(options.html), value)
        except (OSError, ValueError) as error:
            raise CommandError(f"--html: {error}", Exit.FOUND) from error
    if out.as_json:
        out.result(value)
    else:
        _print(value, options.period, out)
    return Exit.FOUND if value["exceeded"] else Exit.OK


def _run_locust(options: argparse.Namespace, settings: Settings, url: str) -> tuple[list[str], bool]:
    """Runs Locust until the test has ended. Returns the lines that it wrote, and whether a signal has ended it early.

    SIGTERM and Ctrl-C end the test early: Locust then tears all sessions down and writes the figures.
    """
    command = [sys.executable, "-m", "locust", "--headless", "--only-summary", "--host", url, "-f"]
    command += [str(Path(__file__).parents[2] / "testing" / "load" / "screens.py")]
    if options.join:
        port = str(options.master_port or _MASTER_PORT)
        command += ["--worker", "--master-host", options.join, "--master-port", port]
    else:
        command += ["-u", str(options.screens), "-r", str(options.rate), "-t", f"{options.seconds}s"]
        if options.html:
            command += ["--html", os.path.abspath(options.html)]
        if options.expect_workers:
            command += ["--master", "--expect-workers", str(options.expect_workers)]
            command += ["--master-bind-port", str(options.master_port or _MASTER_PORT)]
        elif options.workers > 1:
            command += ["--processes", str(options.workers)]
            port = str(options.master_port or _free_port())
            command += ["--master-bind-host", "127.0.0.1", "--master-bind-port", port, "--master-port", port]
    lines: list[str] = []
    signals: list[object] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | settings.environment(),
        start_new_session=True,
    ) as process:
        assert process.stdout is not None

        def end(number: int, _: object) -> None:
            signals.append(number)
            process.send_signal(signal.SIGTERM)

        before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            lines += [line.rstrip() for line in process.stdout]
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return lines, bool(signals)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _print(value: dict[str, Any], period_s: float, out: Output) -> None:
    """Prints the figures as tables."""
    from rich.table import Table

    table = Table("operation", *(header for header in ("count", "failed", "p50 ms", "p99 ms", "most ms")))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, figures in value["operations"].items():
        numbers = [figures[key] for key in ("count", "failed", "p50_ms", "p99_ms", "most_ms")]
        table.add_row(name, *(f"{number:,.0f}" for number in numbers))
    out.console.print(table)
    for error in value["errors"]:
        out.console.print(f"{error['count']:,} times {error['operation']}: {error['error']}", style="red")
    lost = sum(process["lost"] for process in value["processes"])
    out.console.print(f"heartbeats more than {value['late_ms']} ms late: {value['late']:,}; sessions lost: {lost:,}")
    if value["million"]:
        cost = value["million"]
        out.console.print(
            f"clients: {cost['cpu_us_per_request']:,} µs of processor time per request, "
            f"{cost['bytes_per_playback']:,} bytes per playback\n"
            f"a million playbacks with a period of {period_s:g} s: {cost['requests_per_s']:,} heartbeats a second, "
            f"{cost['cores']:,} cores and {cost['memory_gb']:,} GB for the clients"
        )
    for words in value["exceeded"]:
        out.console.print(f"exceeded: {words}", style="bold red")
    if not value["exceeded"]:
        out.console.print("all thresholds kept", style="green")
