"""The stage: a context of the library and a head-end, with one clock for both."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, wait
from functools import cached_property
from typing import Any, TypeVar

import pytest

import usher
from usher.testing.headend import HeadEnd

from .events import REAL_TIMEOUT_S, EventLog
from .expect import Expectations
from .foreign import ForeignHeadEnd

T = TypeVar("T")

KID = bytes.fromhex("00112233445566778899aabbccddeeff")
KEY = bytes.fromhex("ffeeddccbbaa99887766554433221100")
ANY = 2**32 - 1
_SECRET_LENGTH = 8
"""The stage searches the log lines and events for each text of a token header that has at least this length. A shorter
text can occur there by chance."""


class Stage:
    """A context and a head-end. With the reference head-end, each is on a manual clock, and the stage moves both clocks
    by the same steps. With another head-end, both are on real time.

    Args:
        headend: the head-end; the stage gives it the key of the key id ``KID``.
        options: options of the context.

    Attributes:
        headend: the head-end.
        context: the context; its log level is TRACE.
        events: the events of the context.
        logs: the log lines of the context, except those of the trace.
        trace: the lines of the context's trace.
        callback_failures: the exceptions of callbacks, each with the name of the callback.
    """

    def __init__(self, headend: HeadEnd | ForeignHeadEnd, **options: Any) -> None:
        self._is_foreign = isinstance(headend, ForeignHeadEnd)
        options.setdefault("clock", "system" if self._is_foreign else "manual")
        options.setdefault("proxy", None if self._is_foreign else "")
        if headend.ca_file is not None:
            options.setdefault("ca_file", headend.ca_file)
        self.headend: Any = headend
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
        """Functions for the requests that the head-end does not count, for example those at a second server. Each
        function returns how many of these requests the test leaves without a reply on purpose."""
        self.also_catch_up: list[Callable[[], None]] = []
        """Functions that wait until a server in front of the head-end has noticed all closed connections."""
        self.step_ms = 100
        """The longest step of ``advance()`` while a delayed reply waits for the head-end's clock, in virtual ms."""
        self.pumps = options.get("callbacks") == "pumped"
        self._player: usher.Player | None = None
        self._screens: dict[str, usher.Player] = {}
        self._playbacks: list[usher.Playback] = []
        if not self._is_foreign:
            self.headend.add_key(KID, KEY)

    # ---- shorthands --------------------------------------------------------------------------------------------------

    @property
    def player(self) -> usher.Player:
        if self._player is None:
            self._player = usher.Player(self.context)
        return self._player

    def screen(self, name: str) -> usher.Player:
        """Returns the player of a screen; makes it at the first call. Each screen plays one item at a time."""
        if name not in self._screens:
            self._screens[name] = usher.Player(self.context)
        return self._screens[name]

    def delegate(
        self, key_system: str = "clearkey", *, kind: type[usher.SSPDelegate] = usher.SSPDelegate, **options: Any
    ) -> usher.SSPDelegate:
        """Makes a delegate of class `kind` for this head-end, by default without jitter: one heartbeat at the end of
        each period."""
        options.setdefault("license_url", self.headend.license_url(key_system))
        if self._is_foreign and self.headend.headers:
            options.setdefault("extra_headers", "\r\n".join(self.headend.headers))
        options.setdefault("ssm_url", self.headend.ssm_url)
        options.setdefault("jitter_permille", usher.OFF)
        return kind(self.context, **options)

    def play(
        self,
        token: str | None = None,
        *,
        screen: str | None = None,
        account: str | None = None,
        player: usher.Player | None = None,
        **options: Any,
    ) -> usher.Playback:
        """Starts a playback, by default with a new content token and a new delegate. Returns the playback, and does not
        wait for its requests.

        Args:
            token: the content token. Default: a new one of the account.
            screen: the name of the screen that plays; see ``screen()``. Default: the screen of ``player``.
            account: the account of the content token. Default: ``account-1``.
            player: the player. Default: one that all such playbacks of the stage share.
            options: options of ``usher.Player.play``; without ``delegate`` also ``key_system``, ``token_callback``,
                ``sync_setup_teardown``, ``setup_timeout_ms`` and ``teardown_timeout_ms`` of the new delegate.
        """
        if screen is not None:
            player = self.screen(screen)
        if "delegate" not in options:
            names = ("key_system", "sync_setup_teardown", "token_callback", "setup_timeout_ms", "teardown_timeout_ms")
            options["delegate"] = self.delegate(**{name: options.pop(name) for name in names if name in options})
        if token is None:
            token = self.headend.content_token() if account is None else self.headend.content_token(account)
        playback = (player or self.player).play(token, **options)
        self._playbacks.append(playback)  # without a reference, the garbage collector would close the playback
        return playback

    def clear_keys(self, playback: usher.Playback, **options: Any) -> dict[bytes, bytes]:
        return playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]), **options).clear_keys()

    @cached_property
    def expect(self) -> Expectations:
        """Checks of the head-end's journal and session table, whose failures name what is wrong."""
        return Expectations(self.headend)

    def routes(self, after: int = 0) -> list[str]:
        found: list[str] = self.headend.journal.routes(after=after)
        return found

    def sent(self, route: str) -> list[Any]:
        found: list[Any] = self.headend.journal.entries(route=route)
        return found

    def seqs(self) -> list[tuple[str, int | None]]:
        """Returns for each request, in order, its route and the sequence number of its session token; None if the
        request has no session token."""
        return [(e.route, e.session_token.seq if e.session_token else None) for e in self.headend.journal]

    @property
    def held(self) -> int:
        """Returns how many requests the story leaves without a reply on purpose."""
        if self._is_foreign:
            return 0
        waiting: int = getattr(self.headend.clock, "waiting", 0)
        held: int = self.headend.held
        return held + waiting + sum(count() for count in self.also_held)

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
                        f"not settled: {self.context.pending()}, {allowed} held; {self._what_happened()}"
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
        self._needs_manual_clock()
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
        self._needs_manual_clock()
        self.settle()
        self.headend.advance(ms)
        self.context.jump(ms)
        self.settle()

    def _needs_manual_clock(self) -> None:
        if self._is_foreign:
            pytest.skip(f"needs virtual time; {self.headend.ssm_url} is another head-end, so time is real")

    def wait_timer(self, at_most_ms: int) -> None:
        """Waits until the library has a timer that is due within this many virtual ms. The timer shows that
        a blocking call has begun to wait."""
        self.until(lambda: (timer := self.context.pending().next_timer_ms) is not None and timer <= at_most_ms)

    def until(self, holds: Callable[[], object]) -> None:
        """Waits until `holds()` returns True. Another thread must make this happen."""
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while not holds():
            assert time.monotonic() < deadline, f"{self.context.pending()}; {self._what_happened()}"
            threading.Event().wait(0.002)

    def _what_happened(self) -> str:
        journal = "" if self._is_foreign else f"\n{self.headend.journal.dump()}"
        return f"events {self.events.types()}{journal}"

    # ---- threads -----------------------------------------------------------------------------------------------------

    def call(self, function: Callable[..., T], *arguments: Any, **options: Any) -> Future[T]:
        """Runs a blocking call on a new thread. Returns a future for the result of the call."""
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

    # ---- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the context. Only the library's clock moves during the close, so that no session can expire and hide a
        leak. While replies still arrive, the clock does not move: a slow machine needs long for many teardowns."""
        if self._is_foreign:
            self.context.close()
            return
        self.headend.faults.clear()
        self.headend.release()
        if self.context.closed:
            return
        closing = self.call(self.context.close)
        before, unchanged = (0, 0, 0), 0
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while self.still_waiting(closing):
            assert time.monotonic() < deadline, f"close does not return; {self._what_happened()}"
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

    def check_end(
        self, *, leaves_session: bool = False, ignore: Collection[str] = (), callback_errors: bool = False
    ) -> None:
        """Checks a closed stage: the head-end holds no session and saw no violation, no callback raised an exception,
        and no log line and no event has a token.

        Args:
            leaves_session: the test leaves a session on purpose; then the head-end must hold one.
            ignore: kinds of violations that the test causes on purpose.
            callback_errors: callbacks of the test raise on purpose.
        """
        if not self._is_foreign:
            left = self.headend.sessions.active()
            if leaves_session:
                assert left, "the head-end holds no session any more: remove the marker for a session that is left"
            else:
                assert not left, f"sessions left at the head-end: {left}\n{self.headend.journal.dump()}"
            self.headend.assert_clean(ignore=ignore)
            sent = {part.raw for entry in self.headend.journal for part in entry.parts}
            self._check_told(token for token in sent if len(token) >= _SECRET_LENGTH)
        if not callback_errors:
            assert not self.callback_failures, self.callback_failures

    def _check_told(self, tokens: Iterable[str]) -> None:
        secrets = list(tokens)
        told = [*self.logs, *self.trace, *(f"{event!r} {event.error}" for event in self.events.all())]
        for line in told:
            assert not [token for token in secrets if token in line], f"a token in what was told: {line}"


StageFactory = Callable[..., Stage]
