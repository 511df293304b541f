"""Plays a thousand playbacks with faults of all kinds at the same time. A few other playbacks have no faults, and their
heartbeats must stay on time."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from known import FAULTS
from operations import ACTS, Act, Column, Fault, tell_certificate
from outcome import tell_end, tell_events
from scene import PERIOD_MS, ROUTES, Trap, thing_held

import usher
from stage import KID, Stage
from usher import Operation, Origin
from usher.testing import headend
from usher.testing.doors import Door
from usher.testing.headend import Entry, HeadEnd
from usher.testing.headend.fixtures import Authority

BESIDE = 20
KINDS = tuple(
    fault
    for fault in FAULTS
    if fault.spares_others and not fault.proxied and not fault.options and fault.door != "closing"
)
"""The faults for a crowd: those that do not affect the whole head-end or the whole network."""


class Script:
    """Adds faults of one kind to the head-end. They affect only the playbacks that test this kind (`is_mine`)."""

    def __init__(self, server: HeadEnd, is_mine: Callable[[Entry], bool]) -> None:
        self._server = server
        self._is_mine = is_mine

    def add(self, route: str, fault: headend.Fault, **_: Any) -> None:
        self._server.faults.add(route, fault, always=True, where=self._is_mine)

    def clear(self, route: str) -> None:
        """Removes the faults of all kinds from this route."""
        self._server.faults.clear(route)


@dataclass
class Corner:
    """The operation, the head-end's faults, the door and the traps of the playbacks that have one kind of fault. This
    object has those members of `Scene` that the functions of a fault use."""

    operation: str
    faults: Script
    door: Door | None
    authority: Authority
    traps: dict[str, Trap]
    account: None = None

    @property
    def route(self) -> str:
        return ROUTES[self.operation]

    @property
    def headend(self) -> Corner:
        return self


class Crowd:
    """`count` playbacks; playback number n has the fault number n modulo the number of kinds.

    Args: column: the operation that all playbacks start at the same time. kinds: the faults.
    """

    def __init__(self, authority: Authority, column: Column, count: int, kinds: tuple[Fault, ...] = KINDS) -> None:
        self.column, self.count, self.kinds, self._closing = column, count, kinds, contextlib.ExitStack()
        self.headend = HeadEnd(
            clock="manual",
            token_rotation=column.rotation,  # type: ignore[arg-type]
            period_s=PERIOD_MS // 1000,
            grace=60.0,
            enforced=frozenset({"clearkey"} if column.operation == "renewal" else ()),
            token_form="mixed",
            control=False,
        ).start()
        self._closing.callback(self.headend.stop)
        traps = {"host": Trap("127.0.0.2"), "http": Trap("127.0.0.1")}
        for trap in traps.values():
            self._closing.callback(trap.close)
        self.traps = traps
        self.corners = [self._corner(number, fault, authority) for number, fault in enumerate(kinds)]
        self.stage = Stage(self.headend, ca_file=str(authority.ca_file), connect_timeout_ms=120_000)
        self._closing.callback(self.stage.close)
        self.stage.step_ms = 1000
        for corner in self.corners:
            if corner.door is not None:
                self.stage.also_held.append(thing_held(corner.door))
                self.stage.also_catch_up.append(corner.door.catch_up)
        self.beside = [self._play_beside(number) for number in range(BESIDE)]
        self.delegates = [self._delegate(number) for number in range(count)]
        self.players = [usher.Player(self.stage.context) for _ in range(count)]
        self.playbacks: list[usher.Playback] = []

    def close(self) -> None:
        self._closing.close()

    def _corner(self, number: int, fault: Fault, authority: Authority) -> Corner:
        door = None
        if fault.door:
            door = self._closing.enter_context(
                Door(self.headend.url, tls=authority.server_context() if fault.door == "tls" else None)
            )

        def is_mine(entry: Entry) -> bool:
            name = (entry.query_value("crowd") if entry.route == "certificate" else entry.account) or ""
            return name[:1] == "a" and int(name[1:]) % len(self.kinds) == number

        return Corner(self.column.operation, Script(self.headend, is_mine), door, authority, self.traps)

    def _address(self, number: int, operation: str, address: str) -> str:
        door = self.corners[number % len(self.kinds)].door
        of_license = {"renewal": "license"}.get(self.column.operation, self.column.operation)
        return door.url(address) if door is not None and operation == of_license else address

    def _delegate(self, number: int) -> usher.SSPDelegate:
        server = self.headend
        names = ("setup", "heartbeat", "teardown")
        ssm = {f"{name}_url": self._address(number, name, f"{server.ssm_url}/v1/sessions/{name}") for name in names}
        return usher.SSPDelegate(
            self.stage.context,
            license_url=self._address(number, "license", server.license_url("clearkey")),
            certificate_url=self._address(
                number, "certificate", f"{server.certificate_url('fairplay')}?crowd=a{number}"
            ),
            ssm_url=server.ssm_url,
            jitter_permille=usher.OFF,
            **ssm,
        )

    def _play_beside(self, number: int) -> usher.Playback:
        """Starts a playback without a fault, and returns it. The heartbeats of two such playbacks are at least three
        seconds apart."""
        stage = self.stage
        player = usher.Player(stage.context)
        playback = player.play(
            self.headend.content_token(f"beside{number}"), delegate=stage.delegate(), tag=f"beside{number}"
        )
        stage.advance(PERIOD_MS // BESIDE)
        return playback

    # ---- the story ---------------------------------------------------------------------------------------------------

    def play_all(self) -> None:
        for number in range(self.count):
            token = self.headend.content_token(f"a{number}")
            self.playbacks.append(
                self.players[number].play(
                    token,
                    delegate=self.delegates[number],
                    tag=number,
                    payload=lambda request: usher.clear_key_request([KID]),
                )
            )

    def request_licenses(self) -> None:
        for playback in self.playbacks:
            playback.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]))

    def prepare(self) -> None:
        operation = self.column.operation
        if operation == "setup":
            return
        self.play_all()
        self.stage.settle()
        if operation == "renewal":
            self.request_licenses()
            self.stage.settle()

    def trigger(self) -> list[Any]:
        """Starts the operation at the same time in all playbacks. If the operation is a certificate request, returns
        the future of each playback, otherwise an empty list."""
        operation = self.column.operation
        if operation == "setup":
            self.play_all()
        elif operation == "license":
            self.request_licenses()
        elif operation == "teardown":
            for playback in self.playbacks:
                playback.close()
        elif operation == "certificate":
            return [playback.request_certificate() for playback in self.playbacks]
        else:
            self.stage.advance(PERIOD_MS)
        return []

    def play(self) -> list[str]:
        """Returns the short outcome of each playback: its events, and then the result of its close."""
        act = ACTS[self.column.operation]
        self.prepare()
        self.stage.events.clear()
        for fault, corner in zip(self.kinds, self.corners, strict=True):
            fault.begin(corner)  # type: ignore[arg-type]
        answers = self.trigger()
        self.stage.advance(act.lasting_ms)
        for fault, corner in zip(self.kinds, self.corners, strict=True):
            fault.end(corner)  # type: ignore[arg-type]
        self.stage.advance(act.settles_ms)
        told = [self._told(number, act, answers) for number in range(self.count)]
        counts = [len(self.stage.events.all(tag=number)) for number in range(self.count)]
        for playback in self.playbacks:
            playback.close()
        self.stage.advance(5000)
        return [
            f"{told[number]}; {self._end(number, counts[number])}".removeprefix("; ") for number in range(self.count)
        ]

    def _told(self, number: int, act: type[Act], answers: list[Any]) -> str:
        if answers:
            return tell_certificate(answers[number], self.headend)
        if self.column.operation == "teardown":
            return ""
        return tell_events(self.stage.events.all(tag=number), act.origin, act.operation)

    def _end(self, number: int, count: int) -> str:
        events = self.stage.events.all(tag=number)
        if self.column.operation != "teardown":
            events = events[count:]
        torn_down = bool(self.headend.sessions.in_state("torn_down", f"a{number}"))
        return tell_end(events, torn_down, Origin.SSM, Operation.TEARDOWN)

    def held(self, number: int) -> int:
        return len(self.headend.sessions.active(f"a{number}"))

    # ---- the other playbacks -----------------------------------------------------------------------------------------

    def lateness_ms(self) -> list[int]:
        """Returns how late each heartbeat of the playbacks without a fault arrived. Fails if a heartbeat is missing."""
        late = []
        for number in range(BESIDE):
            entries = self.headend.journal.entries(account=f"beside{number}")
            start, beats = entries[0].at_ms, [entry.at_ms for entry in entries if entry.route == "heartbeat"]
            due = (self.headend.now_ms - start) // PERIOD_MS
            assert len(beats) == due, f"beside{number}: {len(beats)} beats came, {due} were due"
            late += [at - start - PERIOD_MS * (index + 1) for index, at in enumerate(beats)]
            assert not [event for event in self.stage.events.all(tag=f"beside{number}") if event.error is not None]
        return late


def short(cell: str) -> tuple[str, int]:
    """Returns the parts of a cell's expected outcome that must be the same in a crowd: the events, and the number of
    sessions that the head-end holds."""
    parts = cell.split("; ")
    arrived = next(index for index, part in enumerate(parts) if re.match(r"\d+ arrived", part))
    held = re.search(r"(\d+) held", parts[arrived])
    return "; ".join(parts[:arrived]), int(held[1]) if held else 0
