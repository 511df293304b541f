"""Measures the time from play to licence over a network with a round trip of 50 ms, with TLS 1.3.

This module runs itself in new network namespaces, with `Tests/faults/world.py`. The link between the two sides delays
each packet in user space, because not every kernel has the queueing discipline `netem`.
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path

from measure import PYTHON, ROOT, Goal, Program, Run, interleaved, spread, told_by
from report import Section
from server import Server

DELAY_S = 0.025
"""How long each packet takes in each direction."""
PEERS = ("C, libcurl easy", "Python requests", "Python aiohttp")
COLD_V1, COLD_V2, ZAP_V1, ZAP_V2 = 3, 5, 1, 4
AT_ONCE = ("--at-once", 1, "--ahead", 1)
Row = tuple[str, int, tuple[object, ...], int, float | None]
ROWS: tuple[Row, ...] = (
    ("V1: cold start: play → licence", COLD_V1, (), 4, 1.03),
    ("V1: cold start, connected ahead", COLD_V1, ("--ahead", 1), 2, 1.03),
    ("V1: zap → licence", ZAP_V1, (), 3, None),
    ("V1: zap → licence, zap_without_waiting", ZAP_V1, AT_ONCE, 2, 1.025),
    ("V1: the same, token callback of 50 ms", ZAP_V1, (*AT_ONCE, "--prepare", 1), 3, None),
    ("V1: the same, next item prepared", ZAP_V1, (*AT_ONCE, "--prepare", 2), 2, 1.025),
    ("V2: cold start: play → licence", COLD_V2, (), 3, 1.03),
    ("V2: cold start, connected ahead", COLD_V2, ("--ahead", 1), 1, 1.03),
    ("V2: zap → licence", ZAP_V2, (), 2, None),
    ("V2: zap → licence, zap_without_waiting", ZAP_V2, AT_ONCE, 1, 1.05),
    ("V2: the same, token callback of 50 ms", ZAP_V2, (*AT_ONCE, "--prepare", 1), 2, None),
    ("V2: the same, next item prepared", ZAP_V2, (*AT_ONCE, "--prepare", 2), 1, 1.05),
)
"""For each row: its name, the variant of the programs, the options of setup_usher, the round trips that its requests
need, and the goal, as a multiple of these round trips. A token callback of 50 ms counts as one round trip."""
WORDS = """\
The client and the server are in two network namespaces. The benchmark itself carries the packets between them, and
delays each one by 25 ms. HTTP/1.1 over TLS 1.3. Time from the host's call to the licence, in ms, and in brackets as a
multiple of the round trip, which is the time that a TCP connection needs: {rtt:.1f} ms. *Needed*: the round trips that
the requests need one after another: TCP 1, TLS 1, and each request 1. With *connected ahead*, the host called
`usher_delegate_connect_ahead()` before. A new connection includes a new context or handle. The other programs send the
same requests one after another: for a zap with V1 teardown, set-up and licence, with V2 only the licence request, as if
the old session were left to expire. By default libusher tears this session down first. In some rows libusher gets the
content token from a callback of the host that takes 50 ms; if the host has prepared the next item with
`usher_player_prepare()`, the library has the token before the zap."""


def rows_of(run: Run) -> tuple[Row, ...]:
    return ROWS[1::6] if run.quick else ROWS


def programs(run: Run, words: tuple[object, ...]) -> dict[str, list[Program]]:
    """Returns the programs of each row: libusher, and the programs with which it is compared. Rows of the same variant
    share these other programs, so that each of them runs only once."""
    peers: dict[int, list[Program]] = {}
    found = {}
    for name, variant, more, _, _ in rows_of(run):
        options = (*words, "--variant", variant)
        if variant not in peers:
            scripts = [
                [sys.executable, *map(str, (PYTHON / f"setup_{kind}.py", *options))] for kind in ("requests", "aiohttp")
            ]
            commands = [run.c("setup_easy", *options), *scripts]
            peers[variant] = [Program(peer, command) for peer, command in zip(PEERS, commands, strict=True)]
        found[name] = [Program("libusher", run.c("setup_usher", *options, *more)), *peers[variant]]
    return found


def round_trip_ms(address: tuple[str, int]) -> float:
    """Returns the median time of opening a TCP connection, which takes one round trip."""

    def once() -> float:
        start = time.monotonic()
        socket.create_connection(address, timeout=5).close()
        return (time.monotonic() - start) * 1000

    return statistics.median(once() for _ in range(15))


def measure_here(run: Run) -> list[Section]:
    """Measures in this process, which must be in new network and mount namespaces. Returns the table of the results."""
    sys.path.insert(0, str(ROOT / "Tests" / "faults"))
    from world import SlowLink, World
    from world import run as command

    world = World()
    far = SlowLink.FAR[0]
    SlowLink(world, DELAY_S)
    world.far.run(lambda: command("ip", "link", "set", "lo", "up"))
    server = world.far.run(lambda: Server(host=far))
    with server:
        base = server.base(scheme="https")
        host, _, port = base.split("/")[2].partition(":")
        rtt = round_trip_ms((host, int(port)))
        words = ("--base", base, "--ca", server.ca, "--rounds", 1 if run.quick else 3, "--warm-up", 1)
        found = programs(run, words)
        each = {id(program): program for row in found.values() for program in row}
        interleaved(list(each.values()), run.repetitions)
    rows, goals = [], []
    for name, _, more, needed, most in rows_of(run):
        ours, *others = ([us / 1000 for us in program.wall_us] for program in found[name])
        cells = [f"{spread(ms).median:.1f} ({spread(ms).median / rtt:.2f})" for ms in (ours, *others)]
        # The other programs have no callback for tokens.
        rows.append([name, str(needed), *(cells if "--prepare" not in more else [cells[0], "", "", ""])])
        if most is not None:
            measured = spread(ours).median / rtt / needed
            goals.append(Goal(f"{name}: time, libusher / {needed} × round trip", measured, most))  # noqa: RUF001
    header = ["", "needed", "libusher", *PEERS]
    return [Section("Play to licence over a network", WORDS.format(rtt=rtt), header, rows, goals)]


def measure(run: Run) -> list[Section]:
    sys.path.insert(0, str(ROOT / "Tests" / "faults"))
    from world import enter

    words = [str(run.programs), str(run.library), str(run.repetitions), str(int(run.quick))]
    told = told_by([*enter(), sys.executable, str(Path(__file__).resolve()), *words], timeout_s=1800)
    return [
        Section(**{**section, "goals": [Goal(**goal) for goal in section["goals"]]}) for section in told["sections"]
    ]


def main() -> None:
    programs_folder, library, repetitions, is_quick = sys.argv[1:]
    run = Run(Path(programs_folder), Path(library), int(repetitions), is_quick == "1", (), None)
    print(json.dumps({"sections": [asdict(section) for section in measure_here(run)]}))


if __name__ == "__main__":
    main()
