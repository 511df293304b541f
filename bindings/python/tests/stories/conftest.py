"""The stage of the stories: the library under test (USHER_LIBRARY), the head-end, and one clock for both."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import Any, TypeVar

import pytest

import usher
from usher.testing.headend import HeadEnd

T = TypeVar("T")

KID = bytes.fromhex("00112233445566778899aabbccddeeff")
KEY = bytes.fromhex("ffeeddccbbaa99887766554433221100")
PERIOD_MS = 60_000
REAL_TIMEOUT_S = 10.0
ANY = 2**32 - 1


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "leaves_session: at the end of this story a session remains at the head-end, on purpose")
    config.addinivalue_line("markers", "breaks_rules(*kinds): violations of the protocol that this story brings about on purpose")
    config.addinivalue_line("markers", "callback_errors: callbacks of this story raise on purpose")


@pytest.fixture(scope="session")
def lib() -> Any:
    """The library under test."""
    import os

    try:
        from usher import _ffi
    except ImportError as error:
        if os.environ.get("USHER_LIBRARY"):
            raise
        pytest.skip(f"no library: {error}")
    return _ffi.lib


class EventLog:
    """Every event of a context, in the order told. Any thread may call any method."""

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
        """Forgets them; a kept event keeps its playback and player alive."""
        with self._changed:
            self._events.clear()

    def types(self, tag: object = None) -> list[str]:
        """The names, e.g. ["SESSION_STARTED", "KEPT_ALIVE"]."""
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
        """Waits in real time for the first such event."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.all(kind, tag=tag), REAL_TIMEOUT_S):
                raise TimeoutError(f"no {kind.name} in {self.types()}")
        return self.all(kind, tag=tag)[0]


class Stage:
    """A context on the manual clock, a head-end on its own manual clock, moved by the same steps."""

    def __init__(self, headend: HeadEnd, **options: Any) -> None:
        options.setdefault("clock", "manual")
        options.setdefault("proxy", "")
        self.headend = headend
        self.logs: list[str] = []
        self.callback_failures: list[tuple[str, BaseException]] = []
        self.context = usher.Context(
            log=lambda level, line: self.logs.append(line),
            log_level=usher.LogLevel.DEBUG,
            on_callback_error=lambda name, error: self.callback_failures.append((name, error)),
            **options,
        )
        self.events = EventLog()
        self.context.add_observer(self.events)
        self.held_callbacks = 0
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

    def delegate(self, key_system: str = "clearkey", **options: Any) -> usher.SSPDelegate:
        """A delegate of this head-end. Without jitter unless told otherwise, so that beats come at the very period."""
        options.setdefault("license_url", self.headend.license_url(key_system))  # type: ignore[arg-type]
        options.setdefault("ssm_url", self.headend.ssm_url)
        options.setdefault("jitter_permille", usher.OFF)
        return usher.SSPDelegate(self.context, **options)

    def play(self, token: str | None = None, *, player: usher.Player | None = None, **options: Any) -> usher.Playback:
        """Plays with a fresh content token and a fresh delegate unless told otherwise; returns without settling."""
        if "delegate" not in options:
            names = ("key_system", "sync_setup_teardown", "token_callback", "setup_timeout_ms", "teardown_timeout_ms")
            options["delegate"] = self.delegate(**{name: options.pop(name) for name in names if name in options})
        playback = (player or self.player).play(token if token is not None else self.headend.content_token(), **options)
        self._playbacks.append(playback)  # the garbage collector closes one that nobody keeps
        return playback

    def clear_keys(self, playback: usher.Playback, **options: Any) -> dict[bytes, bytes]:
        return playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]), **options).clear_keys()

    def routes(self, after: int = 0) -> list[str]:
        return self.headend.journal.routes(after=after)

    def sent(self, route: str) -> list[Any]:
        return self.headend.journal.entries(route=route)

    def seqs(self) -> list[tuple[str, int | None]]:
        """(route, number of the session token sent), in order."""
        return [(e.route, e.session_token.seq if e.session_token else None) for e in self.headend.journal]

    # ---- time --------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Waits until nothing is under way but what the head-end holds and callbacks the story holds. Pumps a pumped context."""
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while True:
            allowed = self.headend.held + getattr(self.headend.clock, "waiting", 0)
            try:
                if self.pumps:
                    self.context.settle(allowed, ANY, 20)
                    self.context.pump()
                    self.context.settle(allowed, self.held_callbacks, 0)
                else:
                    self.context.settle(allowed, self.held_callbacks, 20)
                # Exactly as many: one the library gave up is held until the head-end notices that its client is gone.
                if self.context.pending().transfers == self.headend.held + getattr(self.headend.clock, "waiting", 0):
                    return
                threading.Event().wait(0.001)
                if time.monotonic() > deadline:
                    raise AssertionError(f"the head-end holds {self.headend.held} requests, the library has {self.context.pending()}")
            except usher.UsherTimeoutError:
                if time.monotonic() > deadline:
                    raise AssertionError(
                        f"not settled: {self.context.pending()}, {allowed} held; events {self.events.types()}\n{self.headend.journal.dump()}"
                    ) from None

    def advance(self, ms: int) -> None:
        """Moves both clocks on by `ms`, stopping wherever the library has a timer."""
        remaining, stops = ms, 0
        while True:
            self.settle()
            if remaining == 0:
                return
            timer = self.context.pending().next_timer_ms
            step = remaining if timer is None else min(remaining, timer)
            if getattr(self.headend.clock, "waiting", 0):
                step = min(step, 100)
            stops += 1
            assert stops < 10_000, f"time does not move: {self.context.pending()}"
            self.headend.advance(step)
            self.context.advance(step)
            remaining -= step

    def sleep(self, ms: int) -> None:
        """The machine sleeps: both clocks jump, no timer runs on the way."""
        self.settle()
        self.headend.advance(ms)
        self.context.jump(ms)
        self.settle()

    def wait_timer(self, at_most_ms: int) -> None:
        """Waits until the library has a timer due within so many virtual milliseconds (a blocking call in another thread has begun)."""
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while True:
            timer = self.context.pending().next_timer_ms
            if timer is not None and timer <= at_most_ms:
                return
            assert time.monotonic() < deadline, f"no timer within {at_most_ms} ms: {self.context.pending()}"
            threading.Event().wait(0.002)

    # ---- threads -----------------------------------------------------------------------------------------------------

    def call(self, function: Callable[..., T], *arguments: Any, **options: Any) -> Future[T]:
        """Runs a blocking call on a thread of its own."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function(*arguments, **options))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def still_waiting(self, future: Future[Any]) -> bool:
        """The call has not returned, also not within a moment of real time."""
        return not wait([future], 0.05).done

    def close(self) -> None:
        """Closes the context; only the library's clock moves meanwhile, so no session can expire and hide a leak."""
        self.headend.faults.clear()
        self.headend.release()
        if self.context.closed:
            return
        closing = self.call(self.context.close)
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while self.still_waiting(closing):
            assert time.monotonic() < deadline, f"close does not return; events {self.events.types()}\n{self.headend.journal.dump()}"
            self.headend.release()
            with contextlib.suppress(usher.UsherError):
                self.context.advance(500)
        closing.result()


StageFactory = Callable[..., Stage]


@pytest.fixture
def stage_factory(lib: Any, headend_factory: Callable[..., HeadEnd], request: pytest.FixtureRequest) -> Iterator[StageFactory]:
    """Makes stages: ``stage_factory(headend={…settings}, **context_options)``. Afterwards the session tables must be empty and the journals clean."""
    stages: list[Stage] = []

    def make(headend: dict[str, Any] | HeadEnd | None = None, **options: Any) -> Stage:
        server = headend if isinstance(headend, HeadEnd) else headend_factory(**{"period_s": PERIOD_MS // 1000, **(headend or {})})
        stage = Stage(server, **options)
        stages.append(stage)
        return stage

    yield make
    for stage in stages:
        stage.close()
    failed = getattr(request.node, "_story_failed", False)
    if failed:
        return
    broken = request.node.get_closest_marker("breaks_rules")
    for stage in stages:
        left = stage.headend.sessions.active()
        if request.node.get_closest_marker("leaves_session"):
            assert left, "the story says that a session is left, none is: remove the marker"
        else:
            assert not left, f"sessions left at the head-end: {left}\n{stage.headend.journal.dump()}"
        stage.headend.assert_clean(ignore=broken.args if broken else ())
        if not request.node.get_closest_marker("callback_errors"):
            assert not stage.callback_failures, stage.callback_failures
        for line in stage.logs:
            assert "eyJ" not in line, f"a token in the log: {line}"
    from usher import _registry

    deadline = time.monotonic() + REAL_TIMEOUT_S
    while _registry.count() and time.monotonic() < deadline:
        threading.Event().wait(0.002)  # a context freed in a callback ends in the background
    assert _registry.count() == 0, "C's destroy has not run for every user_data"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call" and report.failed:
        item._story_failed = True  # type: ignore[attr-defined]
    return report


@pytest.fixture
def stage(stage_factory: StageFactory) -> Stage:
    """The usual stage: period 60 s, two sessions per account, strict token rotation."""
    return stage_factory()


@pytest.fixture
def context(stage: Stage) -> usher.Context:
    return stage.context
