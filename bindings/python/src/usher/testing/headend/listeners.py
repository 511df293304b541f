"""Listeners: functions that an object calls at each change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Functions that an object calls at each change, on the thread that makes the change.

    This thread holds the lock of the object, so a listener must return quickly and must not call the object. Any thread
    may call any method of this class.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: tuple[Callable[[T], None], ...] = ()

    def add(self, call: Callable[[T], None]) -> None:
        """Adds a listener."""
        with self._lock:
            self._calls = (*self._calls, call)

    def remove(self, call: Callable[[T], None]) -> None:
        """Removes a listener. Does nothing if the listener is unknown."""
        with self._lock:
            self._calls = tuple(known for known in self._calls if known != call)

    def tell(self, what: T) -> None:
        """Calls all listeners."""
        for call in self._calls:
            call(what)
