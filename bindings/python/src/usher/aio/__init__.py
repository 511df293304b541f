"""The asyncio form: the same objects, awaited, on the event loop's own thread.

    async with usher.aio.Context() as context:
        delegate = usher.aio.SSPDelegate(context, license_url=LICENSES, ssm_url=SSM, token_callback=fetch_token)     # may be a coroutine function
        async with usher.aio.Player(context) as player, await player.play(delegate=delegate) as playback:
            keys = (await playback.get_license(KeySystem.CLEARKEY, clear_key_request([kid]))).clear_keys()
            async for event in context.events():
                ...                               # decode; stop when an event says must_stop

It stands on a pumped context and ``loop.add_reader``: no thread is started but the library's I/O thread, which keeps sessions alive however busy
the loop is. Everything here belongs to the thread of the loop the Context was made in; only the answer() and fail() of a kept request may be called
from any thread. Nothing blocks the loop, with the one exception told at Context.close().

**Time-outs.** get_license() and what closes have their own; for the others use ``asyncio.timeout()`` or ``wait_for()``. On a manual clock what closes
waits without limit, since the test moves time. **Cancelling** a task that awaits ends the waiting, not what was waited for: a licence that comes
later is dropped, a closing goes on. Raises what the blocking form raises.
"""

from __future__ import annotations

from ._context import Context, EventStream
from ._delegates import (
    CommonDelegate,
    CustomerDelegate,
    DefaultDelegate,
    Delegate,
    HTTPDelegate,
    MultiInstanceDelegate,
    SSPDelegate,
    SSPV2Delegate,
)
from ._loader import ResourceLoader, SPCRequest
from ._playback import Playback
from ._player import Player
from ._requests import CustomerRequest, Event, HookCall, PayloadRequest, SessionCall, TokenRequest

__all__ = [
    "CommonDelegate",
    "Context",
    "CustomerDelegate",
    "CustomerRequest",
    "DefaultDelegate",
    "Delegate",
    "Event",
    "EventStream",
    "HTTPDelegate",
    "HookCall",
    "MultiInstanceDelegate",
    "PayloadRequest",
    "Playback",
    "Player",
    "ResourceLoader",
    "SPCRequest",
    "SSPDelegate",
    "SSPV2Delegate",
    "SessionCall",
    "TokenRequest",
]
