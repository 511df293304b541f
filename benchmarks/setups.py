"""Measures the time of set-up to licence, zap and close in a host, compared with the sum of their round trips."""

from __future__ import annotations

from measure import Goal, Program, Run, interleaved, ratio, spread
from report import Section
from server import Server

STEPS = {
    0: "set-up → licence",
    1: "zap: teardown → set-up → licence",
    2: "close: teardown",
    3: "set-up → licence, new connection",
}
JUDGED, MOST = (0, 1, 2), 1.05
WORDS = """\
Wall time from the host's call to its answer. Column *round trips*: the time of a plain C program that sends the same
requests one after another with libcurl's easy interface to the same server. If the server answers at once, the time
that libusher needs to pass a request from one thread to another is noticeable; plain C does not need it. In these rows
compare the difference in µs, not the ratio."""


def measure(run: Run) -> list[Section]:
    rows, goals = [], []
    cases = [("http", "", "at once", 300), ("http", "/all-5", "after 5 ms", 20), ("http", "/all-50", "after 50 ms", 4)]
    cases.append(("https", "/all-5", "after 5 ms, TLS", 20))
    with Server() as server:
        for scheme, path, delay, rounds in cases[:2] if run.quick else cases:
            for variant, what in STEPS.items():
                words = (
                    "--base",
                    server.base(path, scheme),
                    "--ca",
                    server.ca,
                    "--variant",
                    variant,
                    "--rounds",
                    2 if run.quick else rounds,
                )
                peer, ours = (
                    Program("easy", run.c("setup_easy", *words)),
                    Program("usher", run.c("setup_usher", *words)),
                )
                interleaved([peer, ours], run.repetitions)
                against = ratio(ours.wall_us, peer.wall_us)
                more = spread([mine - theirs for mine, theirs in zip(ours.wall_us, peer.wall_us, strict=True)])
                cells = [
                    what,
                    delay,
                    spread(peer.wall_us).text(0),
                    spread(ours.wall_us).text(0),
                    more.text(0),
                    against.text(3),
                ]
                rows.append([*cells, ratio(ours.cpu_us, peer.cpu_us).text(2)])
                if scheme == "http" and variant in JUDGED:
                    goals.append(
                        Goal(f"{what}, answers {delay}: wall, libusher / its round trips", against.median, MOST)
                    )
    header = ["", "server answers", "round trips, µs", "libusher, µs", "more, µs", "ratio", "CPU ratio"]
    return [Section("Set-up to licence, zap, close", WORDS, header, rows, goals)]
