"""A pumped context in gevent's loop: a greenlet runs the callbacks, and other greenlets wait for them."""

from __future__ import annotations

from typing import Any

import gevent  # type: ignore[import-untyped]
from gevent.event import Event as Flag  # type: ignore[import-untyped]
from gevent.socket import wait_read  # type: ignore[import-untyped]

import usher

_EVERY_S = 0.02
"""The loop collects the callbacks that become due within this time, so that it wakes up less often."""
_SLACK_MS = 50
_CLOSE_MS = 60_000


class Pump:
    """One context for all playbacks of this process.

    Args:
        options: further options of the context.

    Attributes:
        context: the context.
    """

    def __init__(self, **options: Any) -> None:
        self.context = usher.Context(callbacks="pumped", timer_slack_ms=_SLACK_MS, **options)
        self._closed = Flag()
        self.context.add_observer(self._on_event)
        self._pumping = gevent.spawn(self._run)

    def _run(self) -> None:
        """Pumps when callbacks are due. Runs as a greenlet, not as a callback of the loop: observers may block."""
        descriptor = self.context.pump_fd
        while True:
            wait_read(descriptor)
            gevent.sleep(_EVERY_S)
            self.context.pump()

    def _on_event(self, event: usher.Event) -> None:
        if event.type is usher.EventType.CONTEXT_CLOSED:
            self._closed.set()

    def close(self) -> int:
        """Closes all playbacks and frees the context. Other greenlets run meanwhile. Returns how many sessions are
        still held when all playbacks are closed, or when the time limit of a minute has passed."""
        self.context.begin_close(_CLOSE_MS)
        self._closed.wait(_CLOSE_MS / 1000 + 5)
        left = self.context.metrics().sessions_held
        self._pumping.kill()
        self.context.close()
        return left
