"""A program that stops or moves a host while its items play, in the network namespaces of world.py, and prints what the
host was told as one line of JSON.

To start it, run the command of ``world.enter()`` followed by ``python moves.py KEY``; KEY is a key of ``CASES``. The
head-end runs in this process, on the far side of the network, in real time; the host is a child process on the near
side. If the library waited for an old connection, it would wait until the time-out of the heartbeat, which is longer
than the lease; the host would be told of an error.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from bad_network import Link  # noqa: E402
from world import FAR, NAME, NameServer, World, run  # noqa: E402

import usher  # noqa: E402
from usher.testing.headend import Fault, HeadEnd  # noqa: E402

COUNT = 4
PERIOD_S = 3.0
STOP_S = 3 * PERIOD_S
TIMEOUT_MS = 9000
"""The time-out of a heartbeat: longer than the lease that the library assumes (two periods)."""
PATIENCE_S = 40.0
GONE_AFTER_S = 1.0
"""How long after the death of a host the head-end may still hold its sessions."""
ELSEWHERE = "10.77.0.5"
ROUTED = "10.79.0.2"
SECOND_NAME_SERVER = "127.0.0.54"
OTHER_SIDE = "10.80.0.1"
THIRD_SIDE = "10.80.0.2"


def die_with_parent() -> None:
    """Makes the kernel kill the calling child when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class HostProcess:
    """network_host.py as a child process, and a thread that reads its events.

    Args:
        config: the first line of its input.
        take: called with each event.
    """

    def __init__(self, config: Mapping[str, Any], take: Callable[[dict[str, Any]], None]) -> None:
        self._take = take
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "network_host.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        self.has_played = threading.Event()
        self.has_ended = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()
        self.tell(json.dumps(config))

    def _read(self, lines: IO[str] | None) -> None:
        for line in lines or ():
            event = json.loads(line)
            if event["type"] == "PLAYING":
                self.has_played.set()
            elif event["type"] == "ENDED":
                self.has_ended.set()
            else:
                self._take(event)

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def stop_for(self, seconds: float) -> None:
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kills the process. Returns when `take` has got every event that the process had written."""
        self.process.kill()
        self.process.wait()
        self._reader.join(10)


def named(headend: HeadEnd) -> dict[str, str]:
    """Returns the URLs of a head-end on the far side, with its host name instead of its address."""
    port = headend.url.rsplit(":", 1)[1]
    ours = {"license_url": headend.license_url("clearkey"), "ssm_url": headend.ssm_url}
    return {key: f"http://{NAME}:{port}/" + url.split("/", 3)[3] for key, url in ours.items()}


class Scene:
    """The network, the head-end and a host whose items play."""

    def __init__(self, address: str = FAR, *, has_guardian: bool = False) -> None:
        self.world = World()
        self.world.name_server.addresses = [address]
        if address == ROUTED:
            self.world.far.run(lambda: run("ip", "address", "add", f"{ROUTED}/32", "dev", "far"))
            self.route(is_there=True)
        self.headend = self.world.far.run(
            lambda: HeadEnd(host="0.0.0.0", limit=1, period_s=PERIOD_S, grace=8.0, control=False).start()
        )
        self.link = Link(self.world, int(self.headend.url.rsplit(":", 1)[1]))
        self.told: list[dict[str, Any]] = []
        self.before = 0
        self.folder = Path(tempfile.mkdtemp())
        self.program = self.folder / "usher-guardian"
        """A copy of the guardian's program, if the host has a guardian."""
        if has_guardian:
            shutil.copy(Path(os.environ["USHER_LIBRARY"]).resolve().parent / "usher-guardian", self.program)
        config = {
            **named(self.headend),
            "tokens": [self.headend.content_token(account=f"account-{index}") for index in range(COUNT)],
            "context": {"guardian": int(usher.Guardian.REQUIRED), "guardian_path": str(self.program)}
            if has_guardian
            else {},
            "delegate": {"keep_alive_timeout_ms": TIMEOUT_MS, "jitter_permille": 0xFFFF_FFFF},
            "spread_s": 0.0,
        }
        self.host = HostProcess(config, self.told.append)
        # After their first heartbeats, the connections are kept.
        self.wait_for("KEPT_ALIVE")

    def route(self, *, is_there: bool) -> None:
        """Adds or removes the default route of the near side."""
        run("ip", "route", "add" if is_there else "del", "default", "via", FAR)

    def told_since(self) -> dict[int, list[dict[str, Any]]]:
        """Returns the events of each playback since the trouble began."""
        found: dict[int, list[dict[str, Any]]] = {index: [] for index in range(COUNT)}
        for event in self.told[self.before :]:
            found[event["index"]].append(event)
        return found

    def wait_for(self, kind: str) -> None:
        """Waits until every playback has had an event of this kind since the trouble began."""
        self._wait(lambda: all(kind in [e["type"] for e in events] for events in self.told_since().values()), kind)

    def wait_held(self) -> None:
        """Waits until the head-end holds back a heartbeat of each playback."""
        self._wait(lambda: self.headend.held == COUNT, "held heartbeats")

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(f"no {what} within {PATIENCE_S} s: {self.told}\n{self.headend.journal.dump()}")
            time.sleep(0.02)

    def hold_heartbeats(self) -> None:
        """Makes the head-end hold back its reply to the next heartbeat of each playback. Waits until it holds all."""
        self.headend.faults.add("heartbeat", Fault.stall("after"), times=COUNT)
        self.wait_held()

    def begin(self) -> None:
        """Call this method when the trouble begins: told_since() then returns the events after this call."""
        self.before = len(self.told)

    def wait_guardian(self, moved_from: str) -> None:
        """Waits until the host has moved from this network namespace, and a guardian process is in the new one."""

        def has_moved() -> bool:
            here = network_of(self.host.process.pid)
            return here not in ("", moved_from) and here in [network_of(process) for process in guardians()]

        self._wait(has_moved, "guardian in the namespace")

    def wait_guardian_alone(self, networks: set[str]) -> None:
        """Waits until only one guardian is left in these network namespaces, and is in that of the host."""

        def is_alone() -> bool:
            found = [network for process in guardians() if (network := network_of(process)) in networks]
            return found == [network_of(self.host.process.pid)]

        self._wait(is_alone, "single guardian")

    def kill(self) -> str:
        """Kills the host. Returns how many sessions the head-end still holds some time later, in the words of
        docs/faults.md."""
        self.host.kill()
        time.sleep(GONE_AFTER_S)
        return f"{len(self.headend.sessions.active())} of {COUNT} held {GONE_AFTER_S:g} s after the death"

    def outcome(self) -> str:
        """Waits until every session is alive again. Returns the events until then, in the words of docs/faults.md."""
        self.wait_for("KEPT_ALIVE")
        lines = set()
        for events in self.told_since().values():
            types = [f"{e['type']} {e['status']}" if e["status"] else e["type"] for e in events]
            is_back = "RECOVERED" if "RECOVERED" in types else "KEPT_ALIVE"
            lines.add(", ".join(types[: types.index(is_back) + 1]))
        held = len(self.headend.sessions.active())
        return " or ".join(sorted(lines)) + f"; {held} of {COUNT} kept"


def network_of(process: int) -> str:
    """Returns the network namespace of a thread, or of the main thread of a process; "" if it has ended, or belongs to
    somebody else."""
    try:
        return os.readlink(f"/proc/{process}/ns/net")
    except OSError:
        return ""


def check_watched(process: int) -> None:
    """Checks that the epoll instances of a process watch only files that the process still has open. If the process
    closes a file of which a child has a copy, epoll still watches this file, and reports it under its old number, which
    may belong to another file by then."""
    folder = Path(f"/proc/{process}")
    for descriptor in (folder / "fd").iterdir():
        if os.readlink(descriptor) == "anon_inode:[eventpoll]":
            told = (folder / "fdinfo" / descriptor.name).read_text()
            for number, inode in re.findall(r"^tfd: +(\d+) .* ino:([0-9a-f]+)", told, re.M):
                found = os.stat(folder / "fd" / number).st_ino
                assert found == int(inode, 16), f"the file {number} was closed, and epoll still watches it:\n{told}"


def guardians() -> list[int]:
    """Returns the processes that run the guardian."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text().strip() == "usher-guardian":
                found.append(int(folder.name))
    return found


def stopped(scene: Scene) -> None:
    """A router forgets all connections, and a signal stops the process of the host for `STOP_S` seconds."""
    scene.link.forget_connections()
    scene.begin()
    scene.host.stop_for(STOP_S)


def slept(scene: Scene) -> None:
    scene.link.forget_connections()
    scene.begin()
    scene.host.tell(f"slept {STOP_S * 1000:.0f}")


def address_changed(scene: Scene) -> None:
    scene.world.far_neighbour(ELSEWHERE)
    scene.begin()
    scene.world.move(ELSEWHERE)
    scene.host.tell("moved")


def address_changed_in_flight(scene: Scene) -> None:
    scene.world.far_neighbour(ELSEWHERE)
    scene.hold_heartbeats()
    address_changed(scene)


def namespace_entered(scene: Scene, address: str = OTHER_SIDE, *, keeps_link: bool = True) -> None:
    """The host moves to another network namespace, where it has this address. `keeps_link`: whether the link of its old
    namespace stays up."""
    side = scene.world.new_side(address)
    scene.begin()
    if not keeps_link:
        scene.world.link(up=False)
    scene.host.tell(f"enter /proc/{os.getpid()}/task/{side.thread_id}/ns/net")


def namespace_changed(scene: Scene) -> None:
    """The host moves to another network namespace, and the link of its old namespace goes down."""
    namespace_entered(scene, keeps_link=False)


def namespace_and_guardian_changed(scene: Scene) -> None:
    """The host moves as in namespace_changed(). Returns when the new guardian and the new connections work."""
    old = network_of(scene.host.process.pid)
    namespace_changed(scene)
    scene.wait_for("KEPT_ALIVE")
    scene.wait_guardian(old)


def namespace_entered_just_now(scene: Scene) -> None:
    """Returns when the process of the new guardian has begun to start; the old guardian is still there."""
    old = network_of(scene.host.process.pid)
    namespace_entered(scene)
    scene.wait_guardian(old)


def namespaces_entered(scene: Scene) -> None:
    """The host moves to another network namespace, and when a new guardian has begun to start there, to a third one."""
    namespace_entered_just_now(scene)
    here = network_of(scene.host.process.pid)
    namespace_entered(scene, THIRD_SIDE)
    scene.wait_guardian(here)


def namespaces_entered_at_once(scene: Scene) -> None:
    """The host moves seven times while the next guardian takes its time to start. Meanwhile it makes children by
    fork(), which have copies of its channels to the guardians. Returns when all heartbeats have been answered, and only
    one guardian is left."""
    program = scene.folder / "later" / scene.program.name
    program.parent.mkdir()
    scene.program.rename(program)
    scene.program.write_text(f"#!/bin/sh\nsleep 0.3; exec {program}\n", encoding="ascii")
    scene.program.chmod(0o755)
    scene.begin()
    sides = [scene.world.new_side(address) for address in (OTHER_SIDE, THIRD_SIDE)]
    for number in range(7):
        scene.host.tell(f"enter /proc/{os.getpid()}/task/{sides[number % 2].thread_id}/ns/net")
    for _ in range(40):
        scene.host.tell("fork")
        time.sleep(0.05)
    scene.wait_for("KEPT_ALIVE")
    scene.wait_guardian_alone({network_of(task) for task in (os.getpid(), *(side.thread_id for side in sides))})
    check_watched(scene.host.process.pid)
    assert not scene.headend.journal.entries(route="teardown"), scene.headend.journal.dump()


def namespace_entered_without_program(scene: Scene) -> None:
    """The guardian's program is gone when the host moves, for example because of an upgrade."""
    scene.program.unlink()
    namespace_entered(scene)
    scene.wait_for("KEPT_ALIVE")


def namespace_entered_with_wrong_program(scene: Scene) -> None:
    """Another program has replaced the guardian's program; it ends at once with an error."""
    scene.program.unlink()
    shutil.copy("/bin/false", scene.program)
    namespace_entered(scene)
    scene.wait_for("KEPT_ALIVE")
    time.sleep(0.2)  # the library looks after 50 ms whether the new guardian runs


def namespace_changed_in_flight(scene: Scene) -> None:
    scene.hold_heartbeats()
    namespace_changed(scene)


def route_lost(scene: Scene) -> None:
    """The near side has no default route until a heartbeat of each session has failed."""
    scene.begin()
    scene.route(is_there=False)
    time.sleep(1.2 * PERIOD_S)
    scene.route(is_there=True)
    scene.host.tell("moved")


def server_moved(scene: Scene) -> None:
    """The server gets another address, and no longer answers at its old one; the host calls network_changed()."""
    scene.world.far.run(lambda: run("ip", "address", "add", f"{ELSEWHERE}/24", "dev", "far"))
    run("ip", "neighbour", "replace", ELSEWHERE, "lladdr", "02:00:00:00:00:02", "dev", "near", "nud", "permanent")
    scene.world.name_server.addresses = [ELSEWHERE]
    scene.begin()
    scene.world.far.run(lambda: run("iptables", "-w", "-A", "INPUT", "-d", FAR, "-j", "DROP"))
    scene.host.tell("moved")


def server_moved_in_flight(scene: Scene) -> None:
    """The server no longer answers at its old address. The library sends the heartbeats there, and only then the host
    calls network_changed()."""
    silent = ("iptables", "-w", "-A", "INPUT", "-d", FAR, "-j", "DROP")
    scene.world.far.run(lambda: run(*silent))
    time.sleep(1.2 * PERIOD_S)
    server_moved(scene)


def name_server_changed(scene: Scene) -> None:
    """The old name server no longer answers, the system uses a new one, and a router forgets all connections."""
    NameServer(SECOND_NAME_SERVER).addresses = [FAR]
    scene.begin()
    scene.world.name_server.is_mute = True
    scene.world.use_names_of(SECOND_NAME_SERVER)
    scene.link.forget_connections()
    scene.host.tell("moved")


@dataclass(frozen=True)
class Case:
    """One row of the page.

    Attributes:
        title: what happens, in the words of docs/faults.md.
        act: the function that makes it happen.
        expected: the outcome that the test requires.
        address: the address of the head-end.
        is_killed: whether the host has a guardian, and the test kills the host afterwards; the outcome then says what
            the head-end still holds.
    """

    title: str
    act: Callable[[Scene], None]
    expected: str
    address: str = FAR
    is_killed: bool = False


KEPT = f"KEPT_ALIVE; {COUNT} of {COUNT} kept"
NONE_HELD = f"0 of {COUNT} held {GONE_AFTER_S:g} s after the death"
DOUBTFUL = f"SESSION_DOUBTFUL, {KEPT}"
CASES: Mapping[str, Case] = {
    "stopped": Case(
        "the host is stopped for three periods (SIGSTOP); meanwhile a router forgets its connections",
        stopped,
        DOUBTFUL,
    ),
    "slept": Case("the machine sleeps for three periods; meanwhile a router forgets its connections", slept, DOUBTFUL),
    "address": Case("the address of the machine changes, between two heartbeats", address_changed, KEPT),
    "address, in flight": Case(
        "the address of the machine changes, while heartbeats are in flight", address_changed_in_flight, KEPT
    ),
    "namespace": Case(
        "the host moves to another network namespace (setns), between two heartbeats", namespace_changed, KEPT
    ),
    "namespace, in flight": Case(
        "the host moves to another network namespace (setns), while heartbeats are in flight",
        namespace_changed_in_flight,
        KEPT,
    ),
    "namespace, killed": Case(
        "a host with a guardian moves to another network namespace (setns); when the new guardian runs, the host is"
        " killed (SIGKILL)",
        namespace_and_guardian_changed,
        NONE_HELD,
        is_killed=True,
    ),
    "namespace, killed at once": Case(
        "the same, but the host is killed while the new guardian starts",
        namespace_entered_just_now,
        NONE_HELD,
        is_killed=True,
    ),
    "namespaces, killed": Case(
        "the same, but the host moves to a third network namespace before it is killed",
        namespaces_entered,
        NONE_HELD,
        is_killed=True,
    ),
    "namespaces, at once": Case(
        "the same, but the host moves seven times while the next guardian starts, and makes children by fork()",
        namespaces_entered_at_once,
        NONE_HELD,
        is_killed=True,
    ),
    "namespace, no new guardian": Case(
        "the same, but the guardian's program is gone, so that no new guardian starts",
        namespace_entered_without_program,
        NONE_HELD,
        is_killed=True,
    ),
    "namespace, new guardian fails": Case(
        "the same, but another program is in the place of the guardian's, so that the new guardian fails",
        namespace_entered_with_wrong_program,
        NONE_HELD,
        is_killed=True,
    ),
    "route": Case("the default route is gone while a heartbeat is due, then it is back", route_lost, KEPT, ROUTED),
    "server moved": Case(
        "the name server gives a new address of the head-end; the old one is silent", server_moved, KEPT
    ),
    "server moved, in flight": Case(
        "the name server gives a new address of the head-end; heartbeats are in flight to the old one, which is silent",
        server_moved_in_flight,
        KEPT,
    ),
    "name server": Case(
        "the machine gets another name server, the old one is silent; all connections are dead",
        name_server_changed,
        KEPT,
    ),
}


def main(key: str) -> None:
    die_with_parent()
    case = CASES[key]
    scene = Scene(case.address, has_guardian=case.is_killed)
    case.act(scene)
    if case.is_killed:
        found = scene.kill()
    else:
        found = scene.outcome()
        scene.host.tell("end")
        scene.host.has_ended.wait(PATIENCE_S)
    left = len(scene.headend.sessions.active())
    shutil.rmtree(scene.folder)
    print(json.dumps({"outcome": found, "left": left}), flush=True)
    os._exit(0)  # the threads of the far side and of the name servers never end


if __name__ == "__main__":
    main(sys.argv[1])
