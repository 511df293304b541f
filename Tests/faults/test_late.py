"""The process of a host, or only its I/O thread, does not run for some seconds; the library loses no session.

Each test plays many sessions in a separate process, in real time. The head-end holds back the replies to all heartbeats
and to a licence request. While the process or thread does not run, the head-end sends these replies. The replies wait
in the sockets, and meanwhile the time-out of every request passes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import usher
from stage import KEY, KID
from usher.testing.headend import Fault, HeadEnd

HERE = Path(__file__).resolve().parent
COUNT = 80
"""The number of sessions. It is larger than the number of sockets that one call of epoll_wait reports."""
PERIOD_S = 3.0
TIMEOUT_MS = 2000
"""The time-out of a heartbeat."""
LICENSE_MS = 5000
"""The time limit of the licence request. The host sends this request one period before the heartbeats."""
SPARE_MS = 300
"""When the process stops, each request in flight has at least this time left until its time-out."""
ATTEMPTS = 5
PATIENCE = int(os.environ.get("USHER_TEST_PATIENCE", "1"))


class Host:
    """late_host.py as a child process."""

    def __init__(self, headend: HeadEnd, preload: Path | None = None) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(usher.__file__).parents[1]), str(HERE.parent)]),
        }
        if preload is not None:
            environment["LD_PRELOAD"] = str(preload)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "late_host.py")],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._write(
            json.dumps(
                {
                    "license_url": headend.license_url("clearkey"),
                    "ssm_url": headend.ssm_url,
                    "tokens": [headend.content_token(f"account-{n}") for n in range(COUNT)],
                    "context": {"requests_per_origin_max": 2 * COUNT},
                    "delegate": {"keep_alive_timeout_ms": TIMEOUT_MS},
                }
            )
        )

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def tell(self, command: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        self._write(command)
        reply = self.process.stdout.readline()
        assert reply, f"the host ended: {command}"
        found: dict[str, Any] = json.loads(reply)
        return found

    def stop_for(self, seconds: float, headend: HeadEnd) -> None:
        """Stops the process for this time. Meanwhile the head-end sends the replies that it held back."""
        self.process.send_signal(signal.SIGSTOP)
        headend.release()
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def play(step: Callable[[str], None], preload: Path | None = None, grace: float = 4) -> Iterator[tuple[HeadEnd, Host]]:
    """Starts a head-end and a host. Yields them when the first heartbeat of every session and one licence request are
    in flight. If a request is then close to its time-out, as on a busy machine, starts again with new ones."""
    seen: list[dict[str, int]] = []
    for attempt in range(1, ATTEMPTS + 1):
        step(f"attempt {attempt} of {ATTEMPTS}: {COUNT} heartbeats in flight at the same time, none near its time-out")
        with HeadEnd(clock="system", period_s=PERIOD_S, grace=grace, control=False) as headend:
            headend.add_key(KID, KEY)
            host = Host(headend, preload)
            try:
                assert host.tell("play") == {"started": True}
                headend.faults.add("heartbeat", Fault.stall("after"), times=COUNT)
                headend.faults.add("license", Fault.stall("after"), times=1)
                host.tell(f"license {LICENSE_MS}")
                seen.append(ages_of_held(headend))
                if seen[-1]["heartbeat"] < TIMEOUT_MS - SPARE_MS and seen[-1]["license"] < LICENSE_MS - SPARE_MS:
                    yield headend, host
                    return
            finally:
                host.close()
    pytest.fail(f"the machine is too slow: the oldest requests in flight were this old, in ms: {seen}")


def ages_of_held(headend: HeadEnd) -> dict[str, int]:
    """Waits until the head-end has all requests, or until a heartbeat times out. Returns the age of the oldest request
    of each route, in ms."""
    end = time.monotonic() + 20 * PATIENCE
    while time.monotonic() < end:
        arrived: dict[str, int] = {}
        for entry in headend.journal:
            arrived.setdefault(entry.route, entry.at_ms)
        ages = {route: headend.clock.now_ms() - at for route, at in arrived.items()}
        if headend.held == COUNT + 1 or ages.get("heartbeat", 0) >= TIMEOUT_MS:
            return ages
        time.sleep(0.02)
    pytest.fail(f"the head-end holds {headend.held} requests, not {COUNT + 1}\n{headend.journal.dump()}")


def wait_for_heartbeats(headend: HeadEnd, count: int) -> None:
    end = time.monotonic() + 30 * PATIENCE
    while time.monotonic() < end:
        if sum(entry.route == "heartbeat" for entry in headend.journal) >= count:
            return
        time.sleep(0.05)
    pytest.fail(f"fewer than {count} heartbeats: {len(headend.journal)} requests in all")


def assert_all_kept(headend: HeadEnd, host: Host, step: Callable[[str], None]) -> None:
    """Checks that every session continued with the token in the reply that had waited in the socket."""
    step("the next heartbeats, and the end of all sessions")
    wait_for_heartbeats(headend, 2 * COUNT)
    headend.assert_clean(ignore=("late-beat",))
    told = host.tell("end")
    assert told["license"] == ["OK"]
    assert (told["errors"], told["must_stop"]) == ([], 0)
    assert told["events"]["SESSION_STARTED"] == COUNT
    host.process.wait(20)
    assert not headend.sessions.active()


@pytest.mark.parametrize("seconds", [3.0, pytest.param(1.0, marks=pytest.mark.whole)])
def test_process_stoppedWhileHeartbeatsAreInFlight_losesNoSession(step: Callable[[str], None], seconds: float) -> None:
    """The test stops the host process for some seconds while 80 heartbeats are in flight. When the process runs again,
    the library continues every session, and the licence arrives."""
    with play(step) as (headend, host):
        host.stop_for(seconds, headend)
        assert_all_kept(headend, host, step)


def test_ioThread_lateWithoutASignal_losesNoSession(tmp_path: Path, step: Callable[[str], None]) -> None:
    """Only the I/O thread does not run for three seconds; no signal stops the process. Then the next calls of
    epoll_wait fail with EINTR; the library continues every session, and the licence arrives."""
    shim = tmp_path / "late.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", shim, HERE / "late.c", "-ldl"]
    subprocess.run(command, timeout=60, check=True)
    with play(step, shim) as (headend, host):
        host.tell("late 3000")
        headend.release("heartbeat")
        headend.release("license")
        assert_all_kept(headend, host, step)


@pytest.mark.whole
def test_process_stoppedForLongerThanTheLease_reportsEverySession(step: Callable[[str], None]) -> None:
    """The test stops the host process until every lease has ended. The library reports each session as lost, exactly
    once."""
    with play(step, grace=1.5) as (headend, host):
        host.stop_for(6.0, headend)
        assert host.tell(f"lost {COUNT}") == {"lost": True}
        assert not headend.sessions.active()
        told = host.tell("end")
        assert told["events"]["HEARTBEAT_ERROR"] == told["must_stop"] == COUNT
