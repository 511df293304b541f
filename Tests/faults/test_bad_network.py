"""Plays the short scenarios of ``scripts/bad-network`` with few sessions. All of them run at the same time, each in a
process with separate network namespaces. The scenario with lost packets takes longer: only `make faults` plays it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from play_bad_network import play

SHORT = {
    "partition 5 s": 10,
    "restart 4 s": 10,
    "half-open": 10,
    "moved": 10,
    "mute at close": 50,
    "mute and moved at close": 50,
    "mute while zapping": 100,
    "second address": 1,
    "refusing address": 1,
}
"""For each scenario, the number of sessions."""
LONGEST_S = 45
"""The longest time for one of these scenarios. It is shorter than the time limit of the test that waits for the
scenario."""
LEAST_LEFT_MS = 300
"""The library keeps each session that has at least this much of its lease left when the network is mended. If less is
left, a busy machine may be too slow for a connection, a request and a reply. ``LeaseEndTests.swift`` tests the true
limit, on virtual time. The session whose lease ends first has about 450 ms left (``least left``), or less if the
machine mends the network late."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[dict[str, Any]]]]:
    """Plays all scenarios at the same time. Returns the results by scenario."""
    folder = tmp_path_factory.mktemp("bad-network")
    with ThreadPoolExecutor(len(SHORT)) as pool:
        yield {scenario: pool.submit(play, folder, scenario, count, LONGEST_S) for scenario, count in SHORT.items()}


@pytest.mark.whole
@pytest.mark.timeout(150)
def test_sessions_whileTheNetworkLoses30PercentOfThePackets_areKept(
    tmp_path: Path, step: Callable[[str], None]
) -> None:
    """The network loses 30 % of the packets in both directions for 60 s; the library keeps at least 9 of 10 sessions.
    (Heartbeats need several attempts then. If the replies of two attempts in a row are lost, the library has only
    tokens that the head-end no longer accepts.)"""
    step("the scenario of 60 s, which takes about 80 s with its start and its end")
    found = play(tmp_path, "loss 30 % for 60 s", 10, timeout_s=140)
    assert (found["sessions"], found["closed"], found["alive falsely"]) == (10, 10, 0), found
    assert found["lost"] <= 1, found
    assert found["late"] > 0, f"no heartbeat was more than 0.5 s late, so no packet was lost: {found}"


@pytest.mark.parametrize("scenario", ["partition 5 s", "restart 4 s", "half-open", "moved"])
def test_sessions_throughABadNetwork_areKept(played: dict[str, Future[dict[str, Any]]], scenario: str) -> None:
    """The network or the head-end fails for at most one period, a router forgets all connections, or the server moves
    and the host calls network_changed(). In each case the library keeps every session and reports no error
    (protocol.md: When it fails)."""
    found = played[scenario].result()
    lost = [loss for loss in found["losses"] if loss["left_ms"] is None or loss["left_ms"] >= LEAST_LEFT_MS]
    assert (found["sessions"], lost, found["alive falsely"]) == (10, [], 0), found
    assert found["told"] <= found["lost"], found
    assert found["closed"] == 10, found


def test_close_whileTheNameServerIsMute_tearsDownOverKnownAddresses(
    played: dict[str, Future[dict[str, Any]]],
) -> None:
    """The name server no longer answers, and the head-end has closed all connections. The library still tears all
    sessions down: it connects to the addresses that it has looked up before."""
    found = played["mute at close"].result()
    assert (found["held"], found["closed"], found["teardown errors"]) == (0, 50, 0), found
    assert found["new connections"] > 0, found


def test_close_whileNoTeardownCanBeSent_reportsEveryEnd(played: dict[str, Future[dict[str, Any]]]) -> None:
    """The library has no connection to the head-end, and knows no address of it. usher_context_free() returns within 10
    s. Before it returns, each playback gets TEARDOWN_ERROR and PLAYBACK_CLOSED (context.h)."""
    found = played["mute and moved at close"].result()
    assert (found["held"], found["closed"], found["teardown errors"]) == (50, 50, 50), found
    assert found["seconds"] < 10, found


def test_zaps_whileTheNameServerIsMute_useOneThreadForTheName(played: dict[str, Future[dict[str, Any]]]) -> None:
    """A hundred screens zap while the name server does not answer. The library uses one thread to look the name up;
    after usher_context_free() only this thread may be left (threading.md: Threads)."""
    found = played["mute while zapping"].result()
    assert found["threads"] <= 20, f"more than one lookup, the I/O thread and the callback threads: {found}"
    assert found["threads afterwards"] <= 1, found
    assert found["closed"] == 200, found


def test_name_whoseFirstAddressIsSilent_usesTheSecondAtOnce(played: dict[str, Future[dict[str, Any]]]) -> None:
    """If the first address of a name does not answer within 0.2 s, the library tries the second address. libcurl alone
    would try it after half of `connect_timeout_ms`, which is 2.5 s; so even on a busy machine set-up takes less."""
    assert played["second address"].result()["seconds"] < 2.4


def test_heartbeat_whoseHostHasARefusingAddress_usesTheOtherAddress(played: dict[str, Future[dict[str, Any]]]) -> None:
    """The network comes back 0.9 s before the lease ends. One address of the head-end refuses connections, after a
    round trip of 70 ms; the heartbeat reaches the head-end at its other address, and the session is kept."""
    found = played["refusing address"].result()
    assert (found["sessions"], found["losses"]) == (1, []), found
