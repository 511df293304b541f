"""Holds back the requests that have a stall fault."""

from __future__ import annotations

import asyncio
import threading

from ..listeners import Listeners
from ..oracle.journal import Entry


class Gate:
    """Holds requests until a test releases them. Call ``hold`` on the server's event loop; any thread may call the
    other methods.

    Attributes:
        listeners: functions that the gate calls with the number of held requests when this number changes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: dict[int, tuple[Entry, asyncio.AbstractEventLoop, asyncio.Future[None]]] = {}
        self.listeners: Listeners[int] = Listeners()

    async def hold(self, entry: Entry) -> None:
        """Holds a request, and returns when a test releases it. If the client disconnects, the server cancels this
        call."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._changed:
            self._held[entry.number] = (entry, loop, future)
            self._notify()
        try:
            await future
        finally:
            with self._changed:
                self._held.pop(entry.number, None)
                self._notify()

    @property
    def held(self) -> int:
        """How many requests are held now."""
        with self._changed:
            return len(self._held)

    def entries(self) -> list[Entry]:
        """Returns the held requests, in the order of arrival."""
        with self._changed:
            return [entry for entry, _, _ in self._held.values()]

    def release(self, route: str | None = None, count: int | None = None) -> int:
        """Releases held requests, the oldest first. Returns how many it has released.

        Args:
            route: only requests of this route.
            count: at most this many.
        """
        with self._changed:
            chosen = [number for number, (entry, _, _) in self._held.items() if route in (None, entry.route)][:count]
            for number in chosen:
                _, loop, future = self._held.pop(number)
                loop.call_soon_threadsafe(_resolve, future)
            self._notify()
            return len(chosen)

    def wait_held(self, count: int = 1, timeout: float = 5.0) -> None:
        """Waits until exactly ``count`` requests are held; ``count`` may be 0.

        Raises:
            TimeoutError: after ``timeout`` real seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._held) == count, timeout):
                raise TimeoutError(f"{len(self._held)} requests are held after {timeout} s, expected {count}")

    def _notify(self) -> None:
        self._changed.notify_all()
        self.listeners.tell(len(self._held))


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
