"""Waits until an event loop has handled all data that its sockets have received."""

from __future__ import annotations

import asyncio

_TURNS = 20
"""For how many turns of the event loop catch_up() waits. All tasks of a connection that has ended need fewer turns."""
_TIMEOUT_S = 10.0


def catch_up(loop: asyncio.AbstractEventLoop) -> None:
    """Waits until the event loop has handled all data and all closed connections that arrived before the call. Do not
    call this on the thread of the event loop."""
    asyncio.run_coroutine_threadsafe(_take_turns(), loop).result(_TIMEOUT_S)


async def _take_turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
