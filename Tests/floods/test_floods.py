"""A server that sends without end does not delay the sessions at other servers.

Each test first plays one session at the head-end, in real time, and then another session at a server that floods. The
head-end's journal shows how late the heartbeats of the first session arrived. With ``--flood-seconds 10`` (the long
form) the players ask the flooding server for new sessions for 10 seconds, and most tests have eight players.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from floods import FLOODS, Servers

import usher
from usher.testing.headend import HeadEnd

PERIOD_MS = 50
PATIENCE = int(os.environ.get("USHER_TEST_PATIENCE", "1"))
LATE_MS = 400 * PATIENCE
"""How late a heartbeat may arrive at the head-end; the limit is three times as high if several players send requests to
the flooding server. With one player and two idle cores, heartbeats are less than 100 ms late (each test prints the
lateness). The limit is higher, because other programs may use both cores."""
HTTP_TIMEOUT_MS = 1500
MOST_BYTES = 24_000_000
"""How much the memory of the process may grow during a flood. A reply may have 1 MiB; most of the growth is freed
memory that malloc keeps. The test allows 10 kB more for each playback."""


@dataclass
class Scene:
    """A context with a session at the head-end; the library sends a heartbeat for it every PERIOD_MS."""

    context: usher.Context
    headend: HeadEnd
    errors: list[tuple[Any, usher.UsherError]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    playbacks: list[usher.Playback] = field(default_factory=list)

    def look(self, event: usher.Event) -> None:
        with self.changed:
            if event.error is not None:
                self.errors.append((event.tag, event.error))
            self.changed.notify_all()

    def play(self, url: str, token: str, tag: str, **options: Any) -> usher.Playback:
        delegate = usher.SSPDelegate(
            self.context, license_url=url, ssm_url=url, jitter_permille=usher.OFF, period_min_ms=PERIOD_MS, **options
        )
        self.playbacks.append(usher.Player(self.context).play(token, delegate=delegate, tag=tag))
        return self.playbacks[-1]

    def failed(self, tag: str, at_most_s: float) -> usher.UsherError:
        """Waits until a playback gets an error event, and returns this error."""
        found: list[usher.UsherError] = []

        def arrived() -> bool:
            found.extend(error for which, error in self.errors if which == tag)
            return bool(found)

        with self.changed:
            assert self.changed.wait_for(arrived, at_most_s * PATIENCE), f"no error of {tag} within {at_most_s} s"
        return found[0]

    def beats(self) -> list[int]:
        """Returns the times at which the heartbeats of the session arrived at the head-end."""
        return [entry.at_ms for entry in self.headend.journal.entries(route="heartbeat")]

    def lateness(self) -> int:
        """Returns the greatest lateness: the longest time between two heartbeats, minus the period."""
        at = [*self.beats(), self.headend.clock.now_ms()]
        return max(after - before for before, after in itertools.pairwise(at)) - PERIOD_MS


@pytest.fixture
def scene(lib: Any, headend_factory: Callable[..., HeadEnd], servers: Servers) -> Iterator[Scene]:
    headend = headend_factory(clock="system", period_s=PERIOD_MS / 1000, grace=1000)
    context = usher.Context(proxy="", ca_file=servers.ca_file, http2=True, http_timeout_ms=HTTP_TIMEOUT_MS)
    made = Scene(context, headend)
    context.add_observer(made.look)
    good = made.play(headend.ssm_url, headend.content_token(), "good")
    good.wait_session()
    headend.journal.wait_for(3, route="heartbeat")
    yield made
    context.close()


def resident(process: str = "self") -> int:
    """Resident memory in bytes."""
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * 4096


@pytest.mark.parametrize("name", FLOODS)
def test_flood_ofOneServer_delaysNoHeartbeatOfAnother(
    scene: Scene, servers: Servers, flood_seconds: float, name: str, record_property: Callable[[str, object], None]
) -> None:
    """A server floods when the library asks it for a session. The heartbeats arrive at the head-end in time, the
    request to the flooding server ends within its time-out, the memory of the process grows by at most MOST_BYTES, and
    the context closes in time."""
    url, before, most, asked = servers.urls[name], resident(), 0, 0
    ends = time.monotonic() + flood_seconds
    # The server of "tickets" uses one core of this machine for each connection, so this flood is tested with only one
    # player.
    players = 1 if not flood_seconds or FLOODS[name].kind == "tickets" else 8
    while not asked or time.monotonic() < ends:
        asked += 1
        started = time.monotonic()
        for player in range(players):
            scene.play(url, "token", f"bad {asked}.{player}", setup_timeout_ms=HTTP_TIMEOUT_MS)
        error = scene.failed(f"bad {asked}.0", HTTP_TIMEOUT_MS / 1000 + 1)
        took = time.monotonic() - started
        assert took < HTTP_TIMEOUT_MS / 1000 + 0.5 * PATIENCE, f"the time-out of {HTTP_TIMEOUT_MS} ms took {took:.1f} s"
        assert error.operation is usher.Operation.SETUP
        # With several floods, one call of libcurl may take too long. Then the library drops a connection, and the error
        # is TRANSPORT.
        assert error.status is usher.Status.TOO_LARGE or not FLOODS[name].is_too_large or players > 1, error
        most = max(most, resident() - before)
    seen = len(scene.beats())
    scene.headend.journal.wait_for(seen + 2, route="heartbeat")
    late = scene.lateness()
    started = time.monotonic()
    for player in range(3):
        scene.play(url, "token", f"last {player}")
    scene.context.close(timeout_ms=6000)
    closed = time.monotonic() - started
    record_property("late_ms", late)
    told = f"{late} ms late, {most / 1e6:.1f} MB, closed in {closed:.2f} s, asked {asked} times, {error.status.name}"
    print(f"{name}: {told}")
    assert late < LATE_MS * (3 if players > 1 else 1), f"a heartbeat of the other server arrived {late} ms late"
    assert most < MOST_BYTES + 10_000 * len(scene.playbacks), f"the process grew by {most} bytes"
    assert closed < 6.5 * PATIENCE, f"close(6000) took {closed:.1f} s"
    assert not [error for tag, error in scene.errors if tag == "good"]


def test_floodOnManyConnections_delaysNoHeartbeatOfAnother(scene: Scene, servers: Servers) -> None:
    """A server floods sixty connections at the same time. The heartbeats at the head-end arrive in time."""
    for player in range(60):
        scene.play(servers.urls["short chunks"], "token", f"bad {player}", setup_timeout_ms=HTTP_TIMEOUT_MS)
    for player in range(60):
        scene.failed(f"bad {player}", HTTP_TIMEOUT_MS / 1000 + 6)
    scene.headend.journal.wait_for(len(scene.beats()) + 2, route="heartbeat")
    late = scene.lateness()
    print(f"sixty connections: {late} ms late")
    assert late < LATE_MS * 3, f"a heartbeat of the other server arrived {late} ms late"
    assert not [error for tag, error in scene.errors if tag == "good"]
