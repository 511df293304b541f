"""A host is killed (SIGKILL) at every step of set-up, licence, heartbeat, zap, teardown and the end of its context. A
second later, or when the next context with its journal has begun, the server must hold no session whose token the host
had received.

The checked build has numbered points for this (KillPoint.swift): the host kills itself there. With the shipped build,
the test kills the host after a random time. `make kills` kills a host at every point, and
1,200 hosts at random times with each build; `make test` does a part of this.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from killing import LIMIT_S, SYSTEMS, Killing, library

import usher

WAYS = list(SYSTEMS)
WORKERS = 3
IS_CHECKED = "checked" in library().parts[-2] if "USHER_LIBRARY" in os.environ else False


@dataclass
class Result:
    """What the tests found after they had killed some hosts."""

    hosts: int = 0
    gave_back: int = 0
    """How many hosts died while they held a session that the guardian, or the next context with the journal, then tore
    down."""
    unreceived: int = 0
    """How many sessions stay at the server, because the host died before it had the token."""
    waited_s: list[float] = field(default_factory=list)
    limit_s: float = LIMIT_S
    """How long a slot may stay taken."""

    def add(self, gave_back: bool, unreceived: int, waited_s: float) -> None:
        self.hosts += 1
        self.gave_back += gave_back
        self.unreceived += unreceived
        self.waited_s.append(waited_s)

    def text(self) -> str:
        slowest = max(self.waited_s, default=0)
        median = statistics.median(self.waited_s) if self.waited_s else 0
        return (
            f"{self.hosts} hosts killed; {self.gave_back} had a session, and its slot was free {median:.3f} s later "
            f"(median; at most {slowest:.3f} s); {self.unreceived} had not received the token"
        )


def judge(killing: Killing, account: str, received: int, result: Result) -> None:
    """Waits until the account holds no session except one whose token the host had not received. `received`: how many
    sessions of this account the host had."""
    begun = time.monotonic()
    held = killing.held(account)
    while True:
        sessions = killing.headend.sessions.all(account)
        # Only the newest session can be one whose token the host did not have.
        allowed = {sessions[-1].id} if len(sessions) > received else set()
        left = {session.id for session in killing.headend.sessions.active(account)}
        if left <= allowed:
            break
        assert time.monotonic() - begun < result.limit_s, f"{account} still holds {left}: {killing.headend.journal}"
        time.sleep(0.002)
    result.add(held > len(left), len(left), time.monotonic() - begun)


def in_parallel(killing: Killing, work: Callable[[int], None], numbers: list[int]) -> None:
    """Kills hosts, several at the same time. Meanwhile another host lives, and keeps its session."""
    with killing.playing() as lives, ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(work, number) for number in numbers]:
            done.result()
        assert killing.held(lives.account) == 1, "somebody tore down the session of a living host"


# ---- at numbered points (checked build) ------------------------------------------------------------------------------


def run_at(killing: Killing, way: str, point: int, account: str, **options: object) -> tuple[int, str]:
    """Runs a host that kills itself at a point. Returns its exit code and its standard error."""
    environment = {**os.environ, "USHER_KILL_AT": str(point), "SWIFT_BACKTRACE": "enable=no"}
    command = killing.command(way, account, beats=2, **options)
    ended = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S
    )
    return ended.returncode, ended.stderr


def points_of(errors: str) -> list[str]:
    return re.findall(r"^point \d+ (.*)$", errors, re.M)


@dataclass
class Keeper:
    """Who gives the slot back after the death of a host: its guardian, the next context with its journal, or both."""

    name: str
    names: set[str]
    """Points that a host must pass."""

    def options(self, journal: Path) -> dict[str, object]:
        guardian = {} if "guardian" in self.name else {"guardian": 0}
        return {**guardian, "journal_file": journal} if "journal" in self.name else guardian

    @contextmanager
    def at_work(self, journal: Path) -> Iterator[None]:
        if self.name != "journal":
            yield
            return
        with usher.Context(journal_file=str(journal), journal_in_clear=True, proxy="") as context:
            context.add_observer(lambda event: None)  # from now on, the context gives slots back
            yield


POINTS = {"first record", "record", "sending", "body"}
IN_AREA = {"half a record", "half an update", "half cleared", "area ended"}
IN_JOURNAL = {
    f"journal, {name}"
    for name in ("page reserved", "page taken", "before the record", "after the record", "cleared in part", "ended")
}
KEEPERS = [
    Keeper("guardian", POINTS | IN_AREA),
    Keeper("journal", POINTS | IN_JOURNAL),
    Keeper("guardian and journal", POINTS | IN_AREA | IN_JOURNAL),
]


@pytest.mark.skipif(not IS_CHECKED, reason="only the checked build has the points")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keeper", KEEPERS, ids=[keeper.name for keeper in KEEPERS])
def test_hostKilledAtEachPoint_holdsNothingThatItHadReceived(
    killing: Killing,
    keeper: Keeper,
    way: str,
    kill_share: int,
    free_within_s: float,
    step: Callable[[str], None],
    tmp_path: Path,
) -> None:
    def journal(name: str) -> Path:
        return tmp_path / name

    code, errors = run_at(killing, way, 0, "lives", **keeper.options(journal("lives")))
    names = points_of(errors)
    assert code == 0 and len(names) > 60, errors
    assert not killing.held("lives")
    assert keeper.names <= set(names)
    numbers = list(range(1, len(names) + 1))
    # The points at which the code writes, updates or clears a record are always part of the selection, because there a
    # death is most likely to do harm.
    chosen = [n for n in numbers if n % kill_share == 0 or re.search("record|update|clear|journal", names[n - 1])]
    result = Result(limit_s=free_within_s)

    def kill(point: int) -> None:
        account = f"dies-{point}"
        code, errors = run_at(killing, way, point, account, **keeper.options(journal(account)))
        assert code in (-9, 0), errors  # 0: this time the host passed fewer points
        # The order of the points differs a little from run to run, so the host itself counts the tokens that it had.
        recorded = re.findall(r"^killed at .*; sessions: (\d+)$", errors, re.M)
        with keeper.at_work(journal(account)):
            judge(killing, account, int(recorded[0]) if recorded else 2, result)

    for begin in range(0, len(chosen), 60):
        part = chosen[begin : begin + 60]
        step(f"{way}: points {part[0]} to {part[-1]} of {len(names)}")
        in_parallel(killing, kill, part)
    print(f"{keeper.name}, {way}, {len(names)} points, of which {len(chosen)}: {result.text()}")
    assert result.gave_back > len(chosen) // 4
    assert result.unreceived <= len(chosen) // 4


@pytest.mark.skipif(not IS_CHECKED, reason="only the checked build has the points")
def test_hostKilledWhileItRecovers_leavesTheRestToTheNextContext(
    killing: Killing, kill_share: int, free_within_s: float, step: Callable[[str], None], tmp_path: Path
) -> None:
    """The first host dies with a session. The second host reads the journal, gives this session back, and plays. It
    dies too: at one of the points up to ten after it has freed the page of the first host. The next context gives back
    what the two hosts have left."""

    def die(account: str, point: int) -> tuple[int, list[str]]:
        """Runs a host that dies at this point. Returns how many tokens it had, and the points that it passed."""
        code, errors = run_at(killing, "v1", point, account, guardian=0, journal_file=tmp_path / account)
        assert code == (-9 if point else 0), errors
        return int((re.findall(r"^killed at .*; sessions: (\d+)$", errors, re.M) or [0])[0]), points_of(errors)

    _, names = die("lives", 0)
    # The order of the points differs a little from run to run, so the first host dies some points after its record.
    first_death = names.index("first record") + 12
    assert die("recovers", first_death)[0] == 1
    _, names = die("recovers", 0)
    end = max(n for n, name in enumerate(names, 1) if name == "journal, page freed") + 10
    assert "journal, removed in part" in names[:end]
    chosen = [n for n in range(1, end + 1) if n % kill_share == 0 or "journal" in names[n - 1]]
    result = Result(limit_s=free_within_s)

    def kill(point: int) -> None:
        account = f"recovers-{point}"
        received = die(account, first_death)[0] + die(account, point)[0]
        with KEEPERS[1].at_work(tmp_path / account):
            judge(killing, account, received, result)

    step(f"{len(chosen)} points of {end}")
    in_parallel(killing, kill, chosen)
    print(f"while a host recovers, {end} points, of which {len(chosen)}: {result.text()}")
    assert result.gave_back > 0


# ---- at random times -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keeper", KEEPERS, ids=[keeper.name for keeper in KEEPERS])
def test_hostKilledAtARandomTime_holdsNothingThatItHadReceived(
    killing: Killing,
    keeper: Keeper,
    way: str,
    kill_times: int,
    free_within_s: float,
    step: Callable[[str], None],
    tmp_path: Path,
) -> None:
    """The host writes a line when a session has started. Sessions without this line may stay: the host may not have had
    the token."""
    seed = int(os.environ.get("USHER_KILL_SEED", time.time_ns() % 1_000_000))
    print(f"USHER_KILL_SEED={seed}")
    dice = random.Random(seed)
    result = Result(limit_s=free_within_s)
    host = killing.start(way, beats=30, **keeper.options(tmp_path / "lives"))
    host.wait_line("ready")
    begun = time.monotonic()
    host.rest()
    whole_s = time.monotonic() - begun
    assert host.process.returncode == 0
    times = [dice.uniform(0, whole_s) for _ in range(kill_times)]

    def kill(index: int) -> None:
        account, journal = f"dies-{index}", tmp_path / f"dies-{index}"
        victim = killing.start(way, account=account, beats=30, **keeper.options(journal))
        victim.wait_line("ready")
        time.sleep(times[index])
        victim.process.kill()
        victim.rest()
        started = sum(line.startswith("started") for line in victim.lines)
        with keeper.at_work(journal):
            judge(killing, account, started, result)

    for begin in range(0, kill_times, 40):
        step(f"{way}: host {begin} to {begin + 39} of {kill_times}")
        in_parallel(killing, kill, list(range(begin, min(begin + 40, kill_times))))
    print(f"{keeper.name}, {way}, at random times: {result.text()}")
    assert result.gave_back > 0
