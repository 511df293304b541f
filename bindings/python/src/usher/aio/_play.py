"""The state of a playback that must stay after Python has freed the Playback object."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import weakref
from typing import TYPE_CHECKING, TypeVar

from .._errors import UsherError

if TYPE_CHECKING:
    from ._delegates import Delegate
    from ._playback import Playback

T = TypeVar("T")
TEARDOWN_MS = 3000
"""The default of `teardown_timeout_ms`."""


class Play:
    """What must remain of a playback's state after Python has freed the Playback object.

    This object is the `tag` of the ``usher.Playback`` underneath.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tag: object) -> None:
        self.tag = tag
        self.reference: weakref.ref[Playback] | None = None
        self.closed: asyncio.Future[None] = loop.create_future()
        self.waiters: set[asyncio.Future[None]] = set()
        self.has_session = True
        self.is_set_up = False
        self.error: UsherError | None = None
        self.failure: UsherError | None = None
        self.teardown_ms = TEARDOWN_MS
        #: The playback's delegate, kept because the library may call its methods until the playback is closed.
        self.delegate: Delegate | None = None

    def playback(self) -> Playback | None:
        return None if self.reference is None else self.reference()

    def set_up(self, error: UsherError | None) -> None:
        """Stores the result of the set-up and passes it to the coroutines that wait for it."""
        self.is_set_up, self.error, self.failure = True, error, None
        for waiter in list(self.waiters):
            resolve(waiter, None if error is None else again(error))


def again(error: UsherError) -> UsherError:
    """Returns a copy of the error, so that each waiting coroutine raises an exception with a separate traceback."""
    again = copy.copy(error)
    again.__cause__ = error.__cause__
    return again


def resolve(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done() or future.get_loop().is_closed():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def pass_on(done: concurrent.futures.Future[T], answer: asyncio.Future[T]) -> None:
    """Passes the answer to the coroutine that awaits it. Does nothing if this coroutine was cancelled."""
    if done.cancelled() or answer.done() or answer.get_loop().is_closed():
        return
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(error)
