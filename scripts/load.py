"""`make load`: the load test of the project itself, on this machine.

It starts Redis and the head-end, each on free ports of loopback, and runs two tests with `usher load`:

1. Screens hold one playback each. No heartbeat may be more than 500 ms late, and no request may fail.
2. Screens on four processes share accounts with a limit of two, while Redis is killed and started again. No account
   may ever hold a third session, and no screen may lose its session. To check this, the script reads the log in which
   Redis writes each change (its append-only file): it has every session that began and ended, in order.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from usher.testing.redis_server import RedisServer

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class HeadEndProcess:
    """The head-end with its worker processes."""

    def __init__(self, redis: RedisServer, workers: int, period_s: float) -> None:
        words = ["--json", "--redis", redis.url, "--workers", str(workers), "--period", str(period_s)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "usher.testing.headend", *words], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if not ready:
            raise SystemExit(f"not ok - the head-end has ended at its start, with {self._process.wait()}")
        self.url = str(json.loads(ready)["tenant_url"])

    def cpu_s(self) -> float:
        """Returns the processor time of all its processes so far."""
        return sum(_cpu_s(pid) for pid in (self._process.pid, *_children(self._process.pid)))

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def run(url: str, *options: object) -> dict[str, Any]:
    """Runs `usher load`. Returns its figures."""
    command = [sys.executable, "-m", "usher.cli", "load", url, "--json", *map(str, options)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not ended.stdout:
        raise SystemExit(f"not ok - usher load has ended without figures, with {ended.returncode}")
    figures: dict[str, Any] = json.loads(ended.stdout)
    return figures


def commands(data: bytes) -> Iterator[list[bytes]]:
    """Yields the commands in an append-only file. Stops at a command that a kill of Redis has left incomplete."""
    at = 0

    def number() -> int:
        nonlocal at
        end = data.index(b"\r\n", at)
        at, text = end + 2, data[at + 1 : end]
        return int(text)

    try:
        while at < len(data):
            words = []
            for _ in range(number()):
                size = number()
                words.append(data[at : at + size])
                at += size + 2
            yield words
    except ValueError:
        return


def most_held(redis: RedisServer) -> tuple[int, int]:
    """Returns the most sessions that any account has held at any time, and how many sessions have begun."""
    held: dict[bytes, set[bytes]] = {}
    most = begun = 0
    for words in commands(redis.changes()):
        name = words[0].upper()
        if name == b"SADD" and b":held:" in words[1]:
            held.setdefault(words[1], set()).update(words[2:])
            most = max(most, len(held[words[1]]))
            begun += 1
        elif name == b"SREM" and b":held:" in words[1]:
            held[words[1]].difference_update(words[2:])
    return most, begun


def hold(options: argparse.Namespace) -> list[str]:
    """Runs test 1, in which each screen holds one playback. Returns what went wrong."""
    ramp = options.screens / options.rate
    seconds = int(ramp + options.period * 1.4) + 3
    with RedisServer() as redis:
        headend = HeadEndProcess(redis, 2, options.period)
        try:
            print(f"usher: load: {options.screens:,} playbacks, {seconds} s", flush=True)
            words = [
                "--screens",
                options.screens,
                "--rate",
                options.rate,
                "--seconds",
                seconds,
                "--period",
                options.period,
            ]
            words += ["--workers", 2, *(["--html", options.html] if options.html else [])]
            figures = run(headend.url, *words)
            spent = headend.cpu_s()
        finally:
            headend.close()
    operations = figures["operations"]
    requests = sum(operations[name]["count"] for name in operations)
    beats = operations.get("heartbeat, ms late", {"count": 0, "p99_ms": 0, "most_ms": 0})
    print(
        f"  {operations['set-up']['count']:,} set-ups, p99 {operations['set-up']['p99_ms']:.0f} ms; {beats['count']:,} "
        f"heartbeats, p99 {beats['p99_ms']:.0f} ms late, the latest {beats['most_ms']:.0f} ms; "
        f"{figures['late']} more than {figures['late_ms']} ms late\n"
        f"  clients: {json.dumps(figures['million'])}\n"
        f"  head-end: {1e6 * spent / requests:.0f} µs of processor time per request; a million playbacks with a period "
        f"of {options.period:g} s: {spent / requests * 1e6 / options.period:.0f} cores",
        flush=True,
    )
    wrong = list(figures["exceeded"])
    common = sorted(figures["errors"], key=lambda error: -int(error["count"]))
    wrong += [f"{error['count']} times {error['operation']}: {error['error']}" for error in common[:5]]
    if operations["set-up"]["count"] != options.screens or beats["count"] == 0:
        wrong.append(f"{operations['set-up']['count']} playbacks and {beats['count']} heartbeats")
    return wrong


def hammer(options: argparse.Namespace) -> list[str]:
    """Runs test 2, in which screens share accounts while Redis is killed. Returns what went wrong."""
    with RedisServer() as redis:
        headend = HeadEndProcess(redis, 2, 5)
        over = threading.Event()
        restarts = [0]

        def restart() -> None:
            while not over.wait(options.restart_every):
                redis.kill()
                time.sleep(0.5)
                redis.start()
                restarts[0] += 1

        breaker = threading.Thread(target=restart)
        try:
            print(
                f"usher: load: {options.accounts:,} accounts of limit 2, Redis restarts, {options.seconds} s",
                flush=True,
            )
            breaker.start()
            screens = options.accounts * 3 // 2
            words = ["--screens", screens, "--rate", screens / 5, "--seconds", options.seconds, "--workers", 4]
            words += ["--accounts", options.accounts, "--limit", 2, "--hold", 2, "--pause", 0.5, "--late", 5000]
            figures = run(headend.url, *words, "--errors-most", 10**9, "--late-most", 10**9)
        finally:
            over.set()
            breaker.join()
            headend.close()
        most, begun = most_held(redis)
    refused = figures["operations"].get("set-up, refused for the limit", {"count": 0})["count"]
    lost = sum(process["lost"] for process in figures["processes"])
    unavailable = sum(error["count"] for error in figures["errors"])
    print(
        f"  {begun:,} sessions, {refused:,} refusals for the limit, {restarts[0]} restarts of Redis, {unavailable:,} "
        f"requests refused meanwhile; the most sessions of an account at any time: {most}; sessions lost: {lost}",
        flush=True,
    )
    wrong = [] if most == 2 else [f"an account held {most} sessions, its limit is 2"]
    wrong += [] if not lost else [f"{lost} sessions were lost"]
    wrong += [] if refused and restarts[0] else ["the test refused nothing, or never restarted Redis"]
    strange = [error["error"] for error in figures["errors"] if "session table in Redis" not in error["error"]]
    return wrong + [f"an unexpected error: {error}" for error in strange[:5]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tests", nargs="*", metavar="hold|hammer", help="the tests to run; default: both")
    parser.add_argument("--screens", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--period", type=float, default=60)
    parser.add_argument("--accounts", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=40, help="how long the second test lasts")
    parser.add_argument("--restart-every", type=float, default=8)
    parser.add_argument("--html", help="write the report of the first test")
    options = parser.parse_args()
    tests = {"hold": hold, "hammer": hammer}
    if unknown := set(options.tests) - set(tests):
        parser.error(f"there is no test {', '.join(sorted(unknown))}; the tests are: {', '.join(tests)}")
    wrong = [words for name in options.tests or tests for words in tests[name](options)]
    for words in wrong:
        print(f"not ok - {words}")
    if not wrong:
        print("ok - every promise of these tests is kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
