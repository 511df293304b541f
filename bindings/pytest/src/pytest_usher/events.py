"""The events of a context, as a test reads them."""

from __future__ import annotations

import os
import threading

import usher

REAL_TIMEOUT_S = 10.0 * int(os.environ.get("USHER_TEST_PATIENCE", "1"))
"""The longest wait in real time. Under sanitizers and valgrind programs are slow; there USHER_TEST_PATIENCE multiplies
this time."""


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
        """Waits in real time for the first event of this type, and returns it."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.all(kind, tag=tag), REAL_TIMEOUT_S):
                raise TimeoutError(f"no {kind.name} in {self.types()}")
        return self.all(kind, tag=tag)[0]
