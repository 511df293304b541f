"""The stage of the asyncio stories: an event loop, a context on it, the head-end, and one clock for both."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import usher
from stage import KEY, KID
from stage import REAL_TIMEOUT_S as SHORT_TIMEOUT_S
from usher._c import registry
from usher.testing.headend import HeadEnd

REAL_TIMEOUT_S = 2 * SHORT_TIMEOUT_S


class AioStage:
    """An asyncio context on the manual clock, and a head-end whose clock moves by the same steps."""

    def __init__(self, headend: HeadEnd, **options: Any) -> None:
        self.headend = headend
        self.failures: list[tuple[str, BaseException]] = []
        options.setdefault("clock", "manual")
        self.context = usher.aio.Context(
            proxy="", on_callback_error=lambda name, error: self.failures.append((name, error)), **options
        )
        self.player = usher.aio.Player(self.context)
        self.events: list[usher.aio.Event] = []
        self.context.add_observer(self.events.append)
        headend.add_key(KID, KEY)

    def delegate(self, **options: Any) -> usher.aio.SSPDelegate:
        options.setdefault("license_url", self.headend.license_url("clearkey"))
        options.setdefault("ssm_url", self.headend.ssm_url)
        return usher.aio.SSPDelegate(self.context, jitter_permille=usher.OFF, **options)

    async def play(self, player: usher.aio.Player | None = None, **options: Any) -> usher.aio.Playback:
        delegate = options.pop("delegate", None) or self.delegate()
        return await (player or self.player).play(self.headend.content_token(), delegate=delegate, **options)

    def types(self) -> list[str]:
        return [event.type.name for event in self.events]

    def routes(self) -> list[str]:
        return self.headend.journal.routes()

    async def settle(self) -> None:
        """Waits until the event loop and the library are idle, except for the requests that the head-end holds back."""
        deadline, quiet = time.monotonic() + REAL_TIMEOUT_S, 0
        while quiet < 4:
            await asyncio.sleep(0)
            try:
                self.context.blocking.settle(self.headend.held, 0, 0)
                quiet += 1
            except usher.UsherTimeoutError:
                quiet = 0
                await asyncio.sleep(0.001)
            assert time.monotonic() < deadline, (
                f"not settled: {self.context.blocking.pending()}\n{self.headend.journal.dump()}"
            )

    async def advance(self, ms: int) -> None:
        remaining = ms
        while True:
            await self.settle()
            if not remaining:
                return
            timer = self.context.blocking.pending().next_timer_ms
            step = remaining if timer is None else min(remaining, timer)
            self.headend.advance(step)
            self.context.blocking.advance(step)
            remaining -= step

    async def held(self) -> None:
        """Waits until the head-end holds back a request. Meanwhile the event loop runs."""
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while not self.headend.held:
            assert time.monotonic() < deadline, self.headend.journal.dump()
            await asyncio.sleep(0.001)


Story = Callable[[AioStage], Coroutine[Any, Any, None]]


def story(
    function: Story | None = None,
    *,
    headend: dict[str, Any] | None = None,
    failures: bool = False,
    leaves_session: bool = False,
    breaks_rules: tuple[str, ...] = (),
    uses_threads: bool = False,
) -> Any:
    """Runs an async test on a new event loop. At the end of the test, the head-end must hold no session, the library
    must hold no user_data, and no thread of the library may exist."""
    if function is None:
        return functools.partial(
            story,
            headend=headend,
            failures=failures,
            leaves_session=leaves_session,
            breaks_rules=breaks_rules,
            uses_threads=uses_threads,
        )

    def run(lib: Any, headend_factory: Callable[..., HeadEnd]) -> None:
        server = headend_factory(**{"period_s": 60, **(headend or {})})
        complaints: list[dict[str, Any]] = []

        async def play() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda loop, complaint: complaints.append(complaint))
            stage = AioStage(server)
            threads = set(threading.enumerate())
            try:
                await asyncio.wait_for(function(stage), REAL_TIMEOUT_S)
                assert uses_threads or set(threading.enumerate()) <= threads, "asyncio needs no further Python thread"
            finally:
                server.faults.clear()
                server.release()
                await asyncio.wait_for(stage.context.close(), REAL_TIMEOUT_S)
            assert failures or not stage.failures, stage.failures

        asyncio.run(play())
        assert not complaints, complaints
        assert bool(server.sessions.active()) is leaves_session, server.journal.dump()
        server.assert_clean(ignore=breaks_rules)
        assert registry.count() == 0, "C's destroy has not run for every user_data"

    run.__name__ = function.__name__
    run.__doc__ = function.__doc__
    return run
