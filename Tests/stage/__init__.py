"""The stage of the stories: the library under test (USHER_LIBRARY), the head-end, and one clock for both."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

import usher
from usher.testing.headend import HeadEnd

T = TypeVar("T")

KID = bytes.fromhex("00112233445566778899aabbccddeeff")
KEY = bytes.fromhex("ffeeddccbbaa99887766554433221100")
CHALLENGE = usher.clear_key_request([KID])
HEADER = "nv-authorizations"
PERIOD_MS = 60_000
REAL_TIMEOUT_S = 10.0 * int(os.environ.get("USHER_TEST_PATIENCE", "1"))
"""The longest wait in real time. Under sanitizers and valgrind programs are slow; there USHER_TEST_PATIENCE multiplies
this time."""
ANY = 2**32 - 1


class EventLog:
    """Records every event of a context in the order of the observer calls. Any thread may call any method."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[usher.Event] = []

    def __call__(self, event: usher.Event) -> None:
        with self._changed:
            self._events.append(event)
            self._changed.notify_all()

    def all(self, *types: usher.EventType, tag: object = None) -> list[usher.Event]:
        with self._changed:
            return [e for e in self._events if (not types or e.type in types) and (tag is None or e.tag == tag)]

    def clear(self) -> None:
        """Deletes all recorded events, because a recorded event keeps its playback and player alive."""
        with self._changed:
            self._events.clear()

    def types(self, tag: object = None) -> list[str]:
        """Returns the names of the event types, e.g. ["SESSION_STARTED", "KEPT_ALIVE"]."""
        return [event.type.name for event in self.all(tag=tag)]

    def only(self, kind: usher.EventType, tag: object = None) -> usher.Event:
        found = self.all(kind, tag=tag)
        assert len(found) == 1, f"{len(found)} of {kind.name} in {self.types()}"
        return found[0]

    def error(self, kind: usher.EventType, tag: object = None) -> usher.UsherError:
        error = self.only(kind, tag).error
        assert error is not None
        return error

    def wait(self, kind: usher.EventType, tag: object = None) -> usher.Event:
        """Waits in real time for the first event of this type."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.all(kind, tag=tag), REAL_TIMEOUT_S):
                raise TimeoutError(f"no {kind.name} in {self.types()}")
        return self.all(kind, tag=tag)[0]


class Stage:
    """A context and a head-end, each on a manual clock; the stage moves both clocks by the same steps."""

    def __init__(self, headend: HeadEnd, **options: Any) -> None:
        options.setdefault("clock", "manual")
        options.setdefault("proxy", "")
        self.headend = headend
        self.logs: list[str] = []
        self.trace: list[str] = []
        self.callback_failures: list[tuple[str, BaseException]] = []
        self.context = usher.Context(
            log=lambda level, line: (self.trace if level == usher.LogLevel.TRACE else self.logs).append(line),
            log_level=usher.LogLevel.TRACE,
            on_callback_error=lambda name, error: self.callback_failures.append((name, error)),
            **options,
        )
        self.events = EventLog()
        self.context.add_observer(self.events)
        self.held_callbacks = 0
        self.also_held: list[Callable[[], int]] = []
        """Functions that each return how many more requests the story leaves without a reply on purpose, for example at
        a second server."""
        self.also_catch_up: list[Callable[[], None]] = []
        """Functions that wait until a server in front of the head-end has noticed all closed connections."""
        self.step_ms = 100
        """While the head-end delays replies until a time of its clock, the stage moves the clocks in steps of this
        length, in virtual ms."""
        self.pumps = options.get("callbacks") == "pumped"
        self._player: usher.Player | None = None
        self._playbacks: list[usher.Playback] = []
        headend.add_key(KID, KEY)

    # ---- shorthands --------------------------------------------------------------------------------------------------

    @property
    def player(self) -> usher.Player:
        if self._player is None:
            self._player = usher.Player(self.context)
        return self._player

    def delegate(
        self, key_system: str = "clearkey", *, kind: type[usher.SSPDelegate] = usher.SSPDelegate, **options: Any
    ) -> usher.SSPDelegate:
        """Makes a delegate of class `kind` for this head-end, by default without jitter: one heartbeat at the end of
        each period."""
        options.setdefault("license_url", self.headend.license_url(key_system))  # type: ignore[arg-type]
        options.setdefault("ssm_url", self.headend.ssm_url)
        options.setdefault("jitter_permille", usher.OFF)
        return kind(self.context, **options)

    def play(self, token: str | None = None, *, player: usher.Player | None = None, **options: Any) -> usher.Playback:
        """Starts a playback, by default with a new content token and a new delegate. Does not wait for its requests."""
        if "delegate" not in options:
            names = ("key_system", "sync_setup_teardown", "token_callback", "setup_timeout_ms", "teardown_timeout_ms")
            options["delegate"] = self.delegate(**{name: options.pop(name) for name in names if name in options})
        playback = (player or self.player).play(token if token is not None else self.headend.content_token(), **options)
        self._playbacks.append(playback)  # without a reference, the garbage collector would close the playback
        return playback

    def clear_keys(self, playback: usher.Playback, **options: Any) -> dict[bytes, bytes]:
        return playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]), **options).clear_keys()

    def routes(self, after: int = 0) -> list[str]:
        return self.headend.journal.routes(after=after)

    def sent(self, route: str) -> list[Any]:
        return self.headend.journal.entries(route=route)

    def seqs(self) -> list[tuple[str, int | None]]:
        """Returns for each request, in order, its route and the sequence number of its session token."""
        return [(e.route, e.session_token.seq if e.session_token else None) for e in self.headend.journal]

    @property
    def held(self) -> int:
        """Returns how many requests the story leaves without a reply on purpose."""
        return self.headend.held + getattr(self.headend.clock, "waiting", 0) + sum(count() for count in self.also_held)

    # ---- time --------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Waits until no work is left except requests that the head-end holds back and callbacks that block. Pumps a
        pumped context."""
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while True:
            held = self.held
            allowed = held + (
                self.context.pending().queued if held else 0
            )  # held requests may take every permit of their origin, so that other requests stay queued
            try:
                if self.pumps:
                    self.context.settle(allowed, ANY, 20)
                    self.context.pump()
                    self.context.settle(allowed, self.held_callbacks, 0)
                else:
                    self.context.settle(allowed, self.held_callbacks, 20)
                if self._all_held():
                    return
                threading.Event().wait(0.001)
                if time.monotonic() > deadline:
                    raise AssertionError(f"{self.held} requests are held, the library has {self.context.pending()}")
            except usher.UsherTimeoutError:
                if time.monotonic() > deadline:
                    raise AssertionError(
                        f"not settled: {self.context.pending()}, {allowed} held; events {self.events.types()}\n"
                        f"{self.headend.journal.dump()}"
                    ) from None

    def _all_held(self) -> bool:
        """Whether all requests that are in flight now are those that the story leaves without a reply on purpose.

        If the library cancels a request, the head-end counts this request in `held` until the head-end notices the
        closed connection. If the library meanwhile sends another request, `held` can equal `transfers` by chance. So
        the method compares the two numbers again after the head-end has noticed all closed connections."""
        if self.context.pending().transfers != self.held:
            return False
        if self.held == 0:
            return True
        for catch_up in (*self.also_catch_up, self.headend.catch_up):
            catch_up()
        return self.context.pending().transfers == self.held

    def advance(self, ms: int) -> None:
        """Moves both clocks forward by `ms`, and stops at each timer of the library."""
        remaining, stops = ms, 0
        while True:
            self.settle()
            if remaining == 0:
                return
            timer = self.context.pending().next_timer_ms
            step = remaining if timer is None else min(remaining, timer)
            if getattr(self.headend.clock, "waiting", 0):
                step = min(step, self.step_ms)
            stops += 1
            assert stops < 10_000, f"time does not move: {self.context.pending()}"
            self.headend.advance(step)
            self.context.advance(step)
            remaining -= step

    def sleep(self, ms: int) -> None:
        """Imitates a machine that sleeps: both clocks jump forward, and no timer fires during the jump."""
        self.settle()
        self.headend.advance(ms)
        self.context.jump(ms)
        self.settle()

    def wait_timer(self, at_most_ms: int) -> None:
        """Waits until the library has a timer that is due within this many virtual ms. The timer shows that
        a blocking call has begun to wait."""
        self.until(lambda: (timer := self.context.pending().next_timer_ms) is not None and timer <= at_most_ms)

    def until(self, holds: Callable[[], object]) -> None:
        """Waits until `holds()` returns True. Another thread must make this happen."""
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while not holds():
            assert time.monotonic() < deadline, (
                f"{self.context.pending()}; {self.events.types()}\n{self.headend.journal.dump()}"
            )
            threading.Event().wait(0.002)

    # ---- threads -----------------------------------------------------------------------------------------------------

    def call(self, function: Callable[..., T], *arguments: Any, **options: Any) -> Future[T]:
        """Runs a blocking call on a new thread."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function(*arguments, **options))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def still_waiting(self, future: Future[Any]) -> bool:
        """Whether the call still waits after 50 ms of real time."""
        return not wait([future], 0.05).done

    def close(self) -> None:
        """Closes the context. Only the library's clock moves during the close, so that no session can expire and hide a
        leak. While replies still arrive, the clock does not move: a slow machine needs long for many teardowns."""
        self.headend.faults.clear()
        self.headend.release()
        if self.context.closed:
            return
        closing = self.call(self.context.close)
        before, unchanged = (0, 0, 0), 0
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while self.still_waiting(closing):
            assert time.monotonic() < deadline, (
                f"close does not return; events {self.events.types()}\n{self.headend.journal.dump()}"
            )
            self.headend.release()
            with contextlib.suppress(usher.UsherError):
                pending = self.context.pending()
                now = (pending.transfers, pending.queued, self.headend.journal.count())
                unchanged = unchanged + 1 if now == before else 0
                if unchanged == 0:
                    deadline = time.monotonic() + REAL_TIMEOUT_S
                before = now
                if pending.transfers == 0 or unchanged >= 4:
                    self.context.advance(500)
        closing.result()

    def until_closed(self) -> None:
        """Waits until the head-end has no connection any more; the context must be closed."""
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while left := self.headend.connections:
            assert time.monotonic() < deadline, f"{left} connections are left at the head-end"
            self.headend.catch_up()


StageFactory = Callable[..., Stage]
