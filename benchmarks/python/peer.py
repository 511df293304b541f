"""Parts that the Python programs share. Their options, and the line with the results, are those of the C programs."""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass

CHALLENGE = '{"kids":["ABEiM0RVZneImaq7zN3u_w"],"type":"temporary"}'


def headers(tokens: str) -> dict[str, str]:
    """Returns the headers of a request with these tokens."""
    return {
        "nv-authorizations": tokens,
        "Content-Type": "application/json; charset=utf-8",
        "Accept": "application/json",
    }


@dataclass
class Options:
    base: str
    ca: str | None
    sessions: int
    in_flight: int
    rounds: int
    warm_up: int
    pace: int
    variant: int

    @property
    def is_cold(self) -> bool:
        """Whether each play needs new connections."""
        return self.variant in (3, 5)


def read() -> Options:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--ca")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--in-flight", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--pace", type=int, default=0, help="beats per second; 0: as fast as possible")
    parser.add_argument("--variant", type=int, default=0, help="see setup_easy.c")
    told = parser.parse_args()
    return Options(
        told.base,
        told.ca,
        told.sessions,
        told.in_flight or told.sessions,
        told.rounds,
        told.warm_up,
        told.pace,
        told.variant,
    )


class Stopwatch:
    """Measures the CPU time of this process with all its threads, the real time, and how many times a thread has gone
    to sleep. If running() has added to the sum, print() prints this sum, otherwise the figures since start()."""

    def __init__(self) -> None:
        self._sum: tuple[int, ...] | None = None
        self.start()

    def start(self) -> None:
        self._began = self._now()

    @staticmethod
    def _now() -> tuple[int, ...]:
        waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        return time.process_time_ns(), time.monotonic_ns(), waits

    def _passed(self) -> tuple[int, ...]:
        return tuple(now - then for now, then in zip(self._now(), self._began, strict=True))

    @contextlib.contextmanager
    def running(self, counts: bool) -> Iterator[None]:
        """Measures what runs inside, and adds it to the sum if `counts` is set."""
        self.start()
        yield
        if counts:
            before = self._sum or (0, 0, 0)
            self._sum = tuple(a + b for a, b in zip(before, self._passed(), strict=True))

    def print(self, operations: int) -> None:
        cpu, wall, waits = self._sum or self._passed()
        print(json.dumps({"operations": operations, "cpu_ns": cpu, "wall_ns": wall, "waits": waits}))
