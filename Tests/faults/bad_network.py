"""A program that plays sessions over a bad network, in the network namespaces of world.py, and prints its results as
one line of JSON.

To start it, run the command of ``world.enter()`` followed by ``python bad_network.py SCENARIO SESSIONS``. The
period is 5 s, and the lease is 10 s. Each account may have only one session, so the library cannot open a new session
in place of one that the head-end still holds.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from world import FAR, NAME, SILENT, SlowLink, World, run  # noqa: E402

import usher  # noqa: E402
from usher.testing.headend import HeadEnd  # noqa: E402

PERIOD_S = 5.0
MEND_S = 0.02
"""About how long `Link.mend` takes, in seconds."""
E = usher.EventType


class Link:
    """Makes the link drop or refuse packets. Each rule is on the side that receives the packets, because TCP on the
    sending side would notice a packet that its own side drops."""

    def __init__(self, world: World, port: int) -> None:
        self.world = world
        self.port = str(port)

    def _rule(self, *rule: str) -> None:
        run("iptables", "-w", "-A", "INPUT", "-i", "near", *rule)
        self.world.far.run(lambda: run("iptables", "-w", "-A", "INPUT", "-i", "far", *rule))

    def cut(self) -> None:
        self._rule("-j", "DROP")

    def lose(self, share: float) -> None:
        self._rule("-m", "statistic", "--mode", "random", "--probability", str(share), "-j", "DROP")

    def refuse(self) -> None:
        """Makes the far side refuse connections, as if no program listened there."""
        rule = ("-p", "tcp", "--dport", self.port, "-j", "REJECT", "--reject-with", "tcp-reset")
        self.world.far.run(lambda: run("iptables", "-w", "-A", "INPUT", *rule))

    def forget_connections(self) -> None:
        """Drops all packets of the connections that are open now. A router that has lost its table of connections does
        the same."""
        for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
            near, far, state = line.split()[1:4]
            if state == "01" and int(far.split(":")[1], 16) == int(self.port):
                rule = ("-p", "tcp", "--sport", str(int(near.split(":")[1], 16)), "-j", "DROP")
                self.world.far.run(lambda rule=rule: run("iptables", "-w", "-A", "INPUT", *rule))

    def mend(self) -> None:
        run("iptables", "-w", "-F")
        self.world.far.run(lambda: run("iptables", "-w", "-F"))


@dataclass
class Show:
    """The objects that a scenario uses and changes."""

    world: World
    link: Link
    context: usher.Context
    headend: HeadEnd
    mended_ms: int = 0
    """The time on the head-end's clock when the scenario mended the network; 0 if the scenario does not mend it."""
    least_left_ms: int | None = None
    """The time from `mended_ms` until the first lease of a session ends; None if the scenario does not mend the
    network."""

    def mend(self) -> None:
        self.link.mend()
        self.mended_ms = self.headend.now_ms
        left = [session.expires_ms - self.mended_ms for session in self.headend.sessions.active()]
        self.least_left_ms = min(left, default=None)


def partition(seconds: float) -> Callable[[Show], None]:
    def act(show: Show) -> None:
        end = time.monotonic() + seconds
        show.link.cut()
        time.sleep(max(0, end - time.monotonic() - MEND_S))
        show.mend()

    return act


def restart(seconds: float) -> Callable[[Show], None]:
    def act(show: Show) -> None:
        show.link.refuse()
        time.sleep(seconds - MEND_S)
        show.mend()

    return act


def loss(share: float, seconds: float) -> Callable[[Show], None]:
    def act(show: Show) -> None:
        show.link.lose(share)
        time.sleep(seconds)
        show.mend()

    return act


def half_open(show: Show) -> None:
    show.link.forget_connections()
    time.sleep(PERIOD_S)


def moved(show: Show) -> None:
    """The server moves to another address, its old address becomes silent, and the host calls network_changed()."""
    new = "10.77.0.4"
    show.world.far.run(lambda: run("ip", "address", "add", f"{new}/24", "dev", "far"))
    run("ip", "neighbour", "replace", new, "lladdr", "02:00:00:00:00:02", "dev", "near", "nud", "permanent")
    show.world.name_server.addresses = [new]
    show.world.far.run(lambda: run("iptables", "-w", "-A", "INPUT", "-d", FAR, "-j", "DROP"))
    show.context.network_changed()
    time.sleep(PERIOD_S)


def client_moved(show: Show) -> None:
    """This machine gets another address, and the host calls network_changed()."""
    new = "10.77.0.5"
    show.world.far_neighbour(new)
    show.world.move(new)
    show.context.network_changed()
    time.sleep(PERIOD_S)


SCENARIOS: dict[str, Callable[[Show], None]] = {
    "partition 5 s": partition(5),
    "partition 20 s": partition(20),
    "restart 4 s": restart(4),
    "half-open": half_open,
    "moved": moved,
    "client moved": client_moved,
    "loss 30 % for 60 s": loss(0.3, 60),
    "loss 30 % for 600 s": loss(0.3, 600),
}


class Stage:
    """A head-end on the far side, and a context that reaches it by its name."""

    def __init__(self, world: World, period_s: float = PERIOD_S) -> None:
        self.world = world
        world.name_server.addresses = [FAR]
        self.headend = world.far.run(lambda: HeadEnd(host="0.0.0.0", limit=1, period_s=period_s, grace=2.0).start())
        self.port = int(self.headend.url.rsplit(":", 1)[1])
        self.told: Counter[usher.EventType] = Counter()
        self.causes: Counter[str] = Counter()
        self.late = 0
        self.context = usher.Context(proxy="", allow_insecure_http=True)
        self.context.add_observer(self._look)
        self.playbacks: list[usher.Playback] = []

    def _look(self, event: usher.Event) -> None:
        self.told[event.type] += 1
        self.late += event.type is E.KEPT_ALIVE and event.lateness_ms > 500
        if event.type is E.HEARTBEAT_ERROR and event.error is not None:
            self.causes[f"{event.error.status.name} {event.error.service_code}"] += 1

    def play(self, count: int, pause_s: float = 0.0) -> None:
        """Starts `count` playbacks, each with a separate player and a separate account."""
        ours = {"license_url": self.headend.license_url("clearkey"), "ssm_url": self.headend.ssm_url}
        named = {key: f"http://{NAME}:{self.port}/" + url.split("/", 3)[3] for key, url in ours.items()}
        self.delegate = usher.SSPDelegate(self.context, **named)
        for index in range(count):
            token = self.headend.content_token(account=f"account-{index}")
            self.playbacks.append(usher.Player(self.context).play(token, delegate=self.delegate))
            time.sleep(pause_s)

    def end_connections(self, within_s: float = 15.0) -> None:
        """Makes the head-end, which runs in this process, close all its connections."""
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    continue
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.family == socket.AF_INET and connection.getsockname()[1] == self.port:
                    connection.getpeername()  # fails for the listening socket
                    connection.shutdown(socket.SHUT_RDWR)
        end = time.monotonic() + within_s
        while self.headend.connections:
            if time.monotonic() > end:
                raise TimeoutError(f"the head-end has {self.headend.connections} connections after {within_s} s")
            time.sleep(0.01)

    def wait_for(self, kind: usher.EventType, count: int, within_s: float = 15.0) -> None:
        end = time.monotonic() + within_s
        while self.told[kind] < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.told[kind]} of {count} {kind.name} within {within_s} s")
            time.sleep(0.01)


def losses(stage: Stage, mended_ms: int) -> list[dict[str, Any]]:
    """Returns the sessions that the library or the head-end has lost. `left_ms` is the part of the lease that was left
    when the network worked again; it is negative if the lease had already ended. `arrived` has the last four
    heartbeats that reached the head-end, each with its time in ms before the end of the lease."""
    found = []
    for index, playback in enumerate(stage.playbacks):
        session = stage.headend.sessions.all(f"account-{index}")[-1]
        if session.active and playback.session_state is usher.SessionState.ACTIVE:
            continue
        arrived = [
            f"-{session.expires_ms - entry.at_ms}: token {entry.session_token and entry.session_token.seq},"
            f" {entry.status} {entry.error_code or ''}, issued {entry.issued}"
            for entry in stage.headend.journal.entries(route="heartbeat", session=session.id)[-4:]
        ]
        left = session.expires_ms - mended_ms if mended_ms else None
        found.append({"session": index, "left_ms": left, "arrived": arrived})
    return found


def play(world: World, scenario: str, count: int) -> dict[str, Any]:
    """Starts `count` sessions, whose heartbeats are due at different times of a period, and plays the scenario. Returns
    what the program prints."""
    stage = Stage(world)
    stage.play(count, pause_s=PERIOD_S / count)
    time.sleep(1)
    show = Show(world, Link(world, stage.port), stage.context, stage.headend)
    SCENARIOS[scenario](show)
    time.sleep(PERIOD_S + 1)
    states = [playback.session_state for playback in stage.playbacks]
    lost = losses(stage, show.mended_ms)
    held, seen = len(stage.headend.sessions.active()), Counter(stage.told)
    active = sum(state is usher.SessionState.ACTIVE for state in states)
    stage.context.close()
    return {
        "sessions": seen[E.SESSION_STARTED],
        "lost": len(lost),
        "told": seen[E.HEARTBEAT_ERROR],
        "recovered": seen[E.RECOVERED],
        "alive falsely": max(0, active - held),
        "answered": seen[E.KEPT_ALIVE],
        "late": stage.late,
        "arrived": stage.headend.journal.count("heartbeat"),
        "closed": stage.told[E.PLAYBACK_CLOSED],
        "least left": show.least_left_ms,
        "causes": dict(stage.causes),
        "losses": lost,
    }


def close_while_mute(world: World, count: int, *, flushed: bool) -> dict[str, Any]:
    """The name server stops answering, then the head-end closes all connections, and then the host closes the context:
    each teardown needs a new connection. With `flushed`, the head-end closes no connection. Instead the host calls
    network_changed(), so that the library has no connection and no address left. Returns what the program prints."""
    stage = Stage(world)
    stage.play(count)
    stage.wait_for(E.SESSION_STARTED, count)
    world.name_server.is_mute = True
    world.wall_clock(120)
    if flushed:
        stage.context.network_changed()
    else:
        stage.end_connections()
    made = stage.headend.connections_made
    before = time.monotonic()
    stage.context.close()
    took = time.monotonic() - before
    return {
        "held": len(stage.headend.sessions.active()),
        "closed": stage.told[E.PLAYBACK_CLOSED],
        "teardown errors": stage.told[E.TEARDOWN_ERROR],
        "new connections": stage.headend.connections_made - made,
        "seconds": took,
    }


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def zap_while_mute(world: World, count: int) -> dict[str, Any]:
    """The name server does not answer, and `count` screens zap twice. Returns what the program prints."""
    stage = Stage(world)
    world.name_server.is_mute = True
    before = threads()
    for _ in range(2):
        stage.play(count)
        time.sleep(1)
    during = threads() - before
    stage.context.close()
    return {
        "threads": during,
        "threads afterwards": threads() - before,
        "closed": stage.told[E.PLAYBACK_CLOSED],
        "asked": world.name_server.asked,
    }


def second_address(world: World, count: int) -> dict[str, Any]:
    """The host name has two addresses, and no machine has the first one. Returns how long the set-up took."""
    stage = Stage(world)
    world.name_server.addresses = [SILENT, FAR]
    before = time.monotonic()
    stage.play(1)
    stage.wait_for(E.SESSION_STARTED, 1)
    took = time.monotonic() - before
    stage.context.close()
    return {"seconds": took}


def refusing_address(world: World, count: int) -> dict[str, Any]:
    """The host name has two addresses, on a link with a round trip of 70 ms. The first address refuses each connection.
    The link loses all packets until 0.9 s before the lease ends. Returns what the program prints."""
    stage = Stage(world, period_s=2.0)
    link = SlowLink(world, 0.035)
    refusing, accepting = link.FAR
    rule = ("-p", "tcp", "-d", refusing, "-j", "REJECT", "--reject-with", "tcp-reset")
    world.far.run(lambda: run("iptables", "-w", "-A", "INPUT", *rule))
    world.name_server.addresses = [refusing, accepting]
    stage.play(count)
    stage.wait_for(E.SESSION_STARTED, count)
    link.is_cut = True
    lease_end_ms = min(session.expires_ms for session in stage.headend.sessions.active())
    time.sleep((lease_end_ms - stage.headend.now_ms) / 1000 - 0.9)
    link.is_cut = False
    mended_ms = stage.headend.now_ms
    time.sleep(max(0.0, (lease_end_ms - stage.headend.now_ms) / 1000) + 0.2)
    lost = losses(stage, mended_ms)
    stage.context.close()
    return {"sessions": stage.told[E.SESSION_STARTED], "left_ms": lease_end_ms - mended_ms, "losses": lost}


OTHERS: dict[str, Callable[[World, int], dict[str, Any]]] = {
    "mute at close": partial(close_while_mute, flushed=False),
    "mute and moved at close": partial(close_while_mute, flushed=True),
    "mute while zapping": zap_while_mute,
    "second address": second_address,
    "refusing address": refusing_address,
}
"""The scenarios that test other requests than heartbeats."""


def main(scenario: str, count: int) -> None:
    world = World()
    found = OTHERS[scenario](world, count) if scenario in OTHERS else play(world, scenario, count)
    print(json.dumps({"scenario": scenario, **found}), flush=True)
    # End the process without waiting for its threads: a lookup without an answer would delay a normal end.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
