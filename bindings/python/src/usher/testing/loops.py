"""Waits until an event loop has handled what the kernel has for it."""

from __future__ import annotations

import asyncio

_TURNS = 20
"""More turns than a loop needs from the end of a connection until the last task of this connection has ended."""
_TIMEOUT_S = 10.0


def catch_up(loop: asyncio.AbstractEventLoop) -> None:
    """Waits until the loop has handled all data, and all ends of connections, that arrived before the call. Call this
    on another thread than the loop's."""
    asyncio.run_coroutine_threadsafe(_take_turns(), loop).result(_TIMEOUT_S)


async def _take_turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
