"""The clocks of the head-end: real time, and a clock that a test moves."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from typing import Protocol

from .listeners import Listeners


class Clock(Protocol):
    """A clock. It returns the time in milliseconds since the Unix epoch, and can wait until a given time."""

    def now_ms(self) -> int:
        """The time now."""

    async def wait_until(self, deadline_ms: int) -> None:
        """Waits until ``now_ms()`` has reached the deadline."""


class SystemClock:
    """Real time: the wall-clock time at the creation of the clock, plus the time that has passed since then on the
    monotonic clock. So this clock never moves back."""

    def __init__(self) -> None:
        self._epoch_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        """Returns the present time in ms since the Unix epoch."""
        return (self._epoch_ns + time.monotonic_ns()) // 1_000_000

    async def wait_until(self, deadline_ms: int) -> None:
        """Sleeps until the deadline."""
        while (left := deadline_ms - self.now_ms()) > 0:
            await asyncio.sleep(left / 1000)


class ManualClock:
    """A clock that moves only when a test calls ``advance``. Any thread may call any method.

    Args:
        start_ms: the first value of ``now_ms()``.

    Attributes:
        listeners: functions that ``advance`` calls with the new time.
    """

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms
        self.listeners: Listeners[int] = Listeners()
        self._lock = threading.Condition()
        self._order = itertools.count()
        self._waiters: list[tuple[int, int, asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        """The time now, in ms."""
        with self._lock:
            return self._now_ms

    @property
    def waiting(self) -> int:
        """How many delayed requests and replies wait until the clock reaches their time."""
        with self._lock:
            return len(self._waiters)

    def wait_waiting(self, count: int = 1, timeout: float = 5.0) -> None:
        """Waits until exactly ``count`` delayed requests and replies wait for a later time of this clock.

        Raises:
            TimeoutError: after ``timeout`` real seconds.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: len(self._waiters) == count, timeout):
                raise TimeoutError(f"{len(self._waiters)} replies wait after {timeout} s, expected {count}")

    def advance(self, ms: int) -> int:
        """Moves the clock forward. The delayed requests and replies whose time has come then continue, the earliest
        first.

        Args:
            ms: how far, not negative.

        Returns:
            The new time in ms.
        """
        if ms < 0:
            raise ValueError(f"advance: {ms} ms would go back in time")
        with self._lock:
            self._now_ms += ms
            now = self._now_ms
            due = []
            while self._waiters and self._waiters[0][0] <= now:
                due.append(heapq.heappop(self._waiters))
            for _, _, loop, future in due:
                loop.call_soon_threadsafe(_wake, future)
            self._lock.notify_all()
            self.listeners.tell(now)
            return now

    async def wait_until(self, deadline_ms: int) -> None:
        """Waits until ``advance`` has reached the deadline."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if deadline_ms <= self._now_ms:
                return
            future: asyncio.Future[None] = loop.create_future()
            waiter = (deadline_ms, next(self._order), loop, future)
            heapq.heappush(self._waiters, waiter)
            self._lock.notify_all()
        try:
            await future
        finally:
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                    heapq.heapify(self._waiters)
                    self._lock.notify_all()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
