"""The package for asyncio: the same objects as in ``usher``, with methods that a program awaits on the thread of the
event loop.

    async with usher.aio.Context() as context:
        # fetch_token may be a coroutine function.
        delegate = usher.aio.SSPDelegate(context, license_url=LICENSES, ssm_url=SSM, token_callback=fetch_token)
        async with usher.aio.Player(context) as player, await player.play(delegate=delegate) as playback:
            keys = (await playback.get_license(KeySystem.CLEARKEY, clear_key_request([kid]))).clear_keys()
            async for event in context.events():
                ...                               # decode; stop when an event says must_stop

This package uses a pumped context and ``loop.add_reader``, so it needs no callback threads. The library's I/O thread
keeps sessions alive even if the event loop is busy. Use all objects on the thread of the event loop in which you made
the Context. There is one exception: any thread may call answer() and fail() of a request. No call blocks the event
loop, except in one case: see Context.close().

**Time-outs.** get_license() and the close methods take a time-out; for other calls use ``asyncio.timeout()`` or
``wait_for()``. On a manual clock the close methods wait without limit, because the test moves time. If you **cancel** a
task, only its wait ends: the library drops a licence that arrives later, and a close continues. The methods raise the
same errors as those of ``usher``.
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
from ._requests import CustomerRequest, Event, HookCall, Notice, PayloadRequest, SessionCall, TokenRequest

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
    "Notice",
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
