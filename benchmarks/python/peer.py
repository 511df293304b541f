"""Parts that the Python programs share: the same command line and line of results as in the C programs."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass


@dataclass
class Options:
    base: str
    ca: str | None
    sessions: int
    in_flight: int
    rounds: int
    warm_up: int
    pace: int


def read() -> Options:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--ca")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--in-flight", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--pace", type=int, default=0, help="beats per second; 0: as fast as possible")
    told = parser.parse_args()
    return Options(
        told.base, told.ca, told.sessions, told.in_flight or told.sessions, told.rounds, told.warm_up, told.pace
    )


class Stopwatch:
    """Returns the CPU time of this process with all its threads, and the real time."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.cpu, self.wall = time.process_time_ns(), time.monotonic_ns()

    def print(self, operations: int) -> None:
        cpu, wall = time.process_time_ns() - self.cpu, time.monotonic_ns() - self.wall
        print(json.dumps({"operations": operations, "cpu_ns": cpu, "wall_ns": wall}))
