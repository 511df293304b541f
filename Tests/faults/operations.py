"""The operations during which a fault can happen, and how a playback starts each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from outcome import Outcome, tell_end, tell_error, tell_events
from scene import PERIOD_MS, Scene
from world import World

import usher
from usher import EventType, Operation, Origin
from usher.testing.headend import HeadEnd
from usher.testing.headend.fixtures import Authority


class Act:
    """One operation of the playback under test: ``prepare`` does all steps before the operation, and ``trigger`` starts
    it."""

    origin = Origin.SSM
    operation = Operation.NONE
    settles_ms = 12_000
    """How long the test waits after the fault, so that all events of the fault have arrived."""
    lasting_ms = 12_000

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.answer: Future[Any] | None = None

    def prepare(self) -> None:
        self.scene.play()
        self.scene.stage.settle()

    def trigger(self) -> None:
        raise NotImplementedError

    def again(self) -> str:
        """Repeats the request after the fault. Returns the error as text; the text is empty if the request succeeds."""
        return ""

    def told(self, events: list[usher.Event]) -> str:
        return tell_events(events, self.origin, self.operation)

    def ask(self, request: Future[Any]) -> str:
        """Waits for the answer of a request. Returns its error as text; empty if it succeeds."""
        self.scene.stage.settle()
        error = request.exception(0)
        if error is None:
            return ""
        assert isinstance(error, usher.UsherError), error
        return tell_error(error, self.origin, self.operation)


class SetUp(Act):
    operation = Operation.SETUP

    def prepare(self) -> None:
        pass

    def trigger(self) -> None:
        self.scene.play()

    def again(self) -> str:
        scene = self.scene
        scene.playback.close()  # type: ignore[union-attr]
        scene.stage.settle()
        closed = scene.events()
        scene.play()
        scene.stage.settle()
        return self.told([event for event in scene.events(len(closed)) if event.type is not EventType.SESSION_STARTED])


def tell_certificate(answer: Future[Any], headend: HeadEnd) -> str:
    """Returns the answer to a certificate request as text. (The library reports no events for certificate requests.)"""
    error = answer.exception(0)
    if isinstance(error, usher.UsherError):
        return f"answer {tell_error(error, Origin.CERTIFICATE, Operation.CERTIFICATE)}"
    given = answer.result(0)
    return "certificate" if given == headend._service.fairplay_certificate else f"{len(given)} bytes as they came"


class License(Act):
    origin, operation = Origin.LICENSE, Operation.LICENSE

    def trigger(self) -> None:
        self.answer = self.scene.request_license()

    def told(self, events: list[usher.Event]) -> str:
        """Checks that the answer and the event have the same error. Returns the text of all events,
        without the answer."""
        assert self.answer is not None
        answer = self.ask(self.answer)
        licences = super().told(
            [event for event in events if event.type in (EventType.LICENSE, EventType.LICENSE_ERROR)]
        )
        assert licences == (f"LICENSE_ERROR {answer}" if answer else "LICENSE"), (licences, answer)
        return super().told(events)

    def again(self) -> str:
        return self.ask(self.scene.request_license())


class Heartbeat(Act):
    operation = Operation.HEARTBEAT
    settles_ms = PERIOD_MS // 2 + 12_000
    lasting_ms = 2 * PERIOD_MS - 250

    def trigger(self) -> None:
        self.scene.stage.advance(PERIOD_MS)


class Renewal(Heartbeat):
    origin, operation = Origin.LICENSE, Operation.RENEWAL

    def prepare(self) -> None:
        super().prepare()
        answer = self.scene.request_license()
        self.scene.stage.settle()
        assert answer.result(0).data


class TearDown(Act):
    operation = Operation.TEARDOWN
    lasting_ms = settles_ms = 60_000

    def trigger(self) -> None:
        assert self.scene.playback is not None
        self.scene.playback.close()


class Certificate(Act):
    origin, operation = Origin.CERTIFICATE, Operation.CERTIFICATE

    def trigger(self) -> None:
        assert self.scene.playback is not None
        self.answer = self.scene.playback.request_certificate()

    def told(self, events: list[usher.Event]) -> str:
        assert self.answer is not None
        told = tell_certificate(self.answer, self.scene.headend)
        return ", ".join([told, super().told(events)] if events else [told])

    def again(self) -> str:
        assert self.scene.playback is not None
        return self.ask(self.scene.playback.request_certificate())


ACTS: dict[str, type[Act]] = {
    "setup": SetUp,
    "license": License,
    "heartbeat": Heartbeat,
    "renewal": Renewal,
    "teardown": TearDown,
    "certificate": Certificate,
}


@dataclass(frozen=True)
class Column:
    """One column of the matrix: an operation, and how long the fault affects it.

    Attributes:
        operation: a key of ``ACTS``.
        lasting: True if the fault affects every try for two periods; False if it affects only the first try.
        rotation: which session tokens the head-end accepts.
    """

    name: str
    operation: str
    lasting: bool = False
    rotation: str = "accept_previous"


COLUMNS = (
    Column("setup", "setup"),
    Column("license", "license"),
    Column("heartbeat", "heartbeat"),
    Column("heartbeat strict", "heartbeat", rotation="strict"),
    Column("heartbeat lasting", "heartbeat", lasting=True, rotation="none"),
    Column("renewal", "renewal"),
    Column("renewal strict", "renewal", rotation="strict"),
    Column("renewal lasting", "renewal", lasting=True, rotation="none"),
    Column("teardown", "teardown"),
    Column("teardown lasting", "teardown", lasting=True),
    Column("certificate", "certificate"),
)


@dataclass(frozen=True)
class Fault:
    """One row of the matrix.

    Attributes:
        key: the name of the fault in EXPECTED.
        title: the description of the fault on the page.
        begin: starts the fault; called before the operation.
        end: ends the fault.
        strike: starts a fault that must begin during the operation.
        door: how the requests of the operation reach the head-end, see ``Scene``.
        fails_after_ms: the time after which a try fails.
        spares_others: whether the fault does not affect other playbacks.
        takes_effect: whether the head-end executes the request, so that a new session token may be lost with the reply.
        http2: whether the fault is also played over HTTP/2.
        options: further options of the context.
        check: further checks at the end.
        breaks: the rules of the head-end that the library breaks because of this fault. The test does not check them.
    """

    key: str
    title: str
    begin: Callable[[Scene], None]
    end: Callable[[Scene], None]
    strike: Callable[[Scene], None] = lambda scene: None
    door: str = ""
    proxied: bool = False
    fails_after_ms: int = 0
    spares_others: bool = True
    takes_effect: bool = False
    breaks: tuple[str, ...] = ()
    http2: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Scene], None] = lambda scene: None


def play(scene: Scene, column: Column, fault: Fault) -> Outcome:
    """Causes the fault and returns its outcome.

    The fault ends 250 ms after the first try has failed. In a column with a lasting fault, it ends after the
    operation's ``lasting_ms``.
    """
    act, stage = ACTS[column.operation](scene), scene.stage
    act.prepare()
    before, told_before = scene.arrived(), len(scene.events())
    fault.begin(scene)
    act.trigger()
    stage.settle()
    fault.strike(scene)
    stage.advance(act.lasting_ms if column.lasting else fault.fails_after_ms + 250)
    fault.end(scene)
    stage.advance(act.settles_ms)
    events = scene.events(told_before)
    is_teardown = column.operation == "teardown"
    open_events = [] if is_teardown else [event for event in events if event.type is not EventType.SESSION_STARTED]
    told = act.told(open_events)
    arrived = scene.arrived() - before
    if column.operation == "setup" and EventType.SESSION_STARTED in [event.type for event in events]:
        told = "SESSION_STARTED" + (f", {told}" if told else "")
    count = len(scene.events())
    if column.operation == "setup":
        again = act.again() if told != "SESSION_STARTED" else ""
        ending = [event for event in scene.events(count) if event.type not in (EventType.SESSION_STARTED,)]
        if told == "SESSION_STARTED":
            ending = close(scene)
    elif is_teardown:
        again, ending = "", events
    else:
        again = act.again()
        ending = close(scene)
    torn_down = bool(scene.headend.sessions.in_state("torn_down", "subject"))
    end = tell_end(ending, torn_down, act.origin if is_teardown else Origin.SSM, Operation.TEARDOWN)
    if column.operation == "setup" and told != "SESSION_STARTED":
        close(scene)
    return Outcome(told, arrived, end, scene.held(), again)


def close(scene: Scene) -> list[usher.Event]:
    """Closes the playback under test, and returns the events of the close."""
    count = len(scene.events())
    assert scene.playback is not None
    scene.playback.close()
    scene.stage.advance(5000)
    return [event for event in scene.events(count) if event.type not in (EventType.LICENSE,)]


def play_in_scene(
    authority: Authority, fault: Fault, column: Column, world: World | None = None, http2: bool = False
) -> Outcome:
    """Plays one cell, and returns its outcome. Checks that the fault did not disturb the other playback."""
    with contextlib.closing(
        Scene(authority, column.operation, column.rotation, fault.door, fault.proxied, world, http2, fault.options)
    ) as scene:
        outcome = play(scene, column, fault)
        if fault.spares_others:
            scene.check_other()
        scene.check_rules(fault.breaks)
        fault.check(scene)
        scene.finish()
    return outcome
