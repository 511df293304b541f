"""Contexts on an event loop, and their streams of events."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from .. import _border
from .. import context as _context
from .. import event as _event
from .._c.enums import EventType, Status
from .._callbacks import CallbackErrorHook
from .._errors import ClosedError, InvalidHandleError, UsherError
from .._events import changed_event
from .._options import ContextOptions
from .._question import LATER, Question
from ..delegates import base as _base
from ._play import Play, resolve
from ._requests import Event, EventCallback

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._delegates import Delegate
    from ._player import Player

_CLOSE_MS = 6000
"""The default time-out of Context.close()."""


def blocking_of(delegate: Delegate | None) -> _base.Delegate | None:
    """Returns the ``usher.Delegate`` underneath a delegate of usher.aio; None for None. Raises TypeError for any other
    object."""
    if delegate is None:
        return None
    from ._delegates import Delegate as Wanted

    return _border.instance(delegate, Wanted, "delegate").blocking


class Context:
    """One independent instance of the library on the running event loop. close() ends it; the end of an ``async with``
    block calls close().

    Callbacks run on the thread of the event loop; a coroutine function runs as a task. ``usher.Context`` says what
    happens to **exceptions in callbacks** and in such tasks. If the callback had to give a value, the library continues
    without a value, and the exception is the ``__cause__`` of the error that follows. When the context has closed, it
    cancels the tasks that still run.

    Attributes:
        blocking: the pumped ``usher.Context`` underneath, for metrics(), and for virtual time: settle(), advance(),
            jump(), pending().
    """

    def __init__(
        self,
        *,
        log: _context.Log | None = None,
        on_callback_error: CallbackErrorHook | None = None,
        **options: Unpack[ContextOptions],
    ) -> None:
        """Makes a context for the event loop that runs in this thread.

        Args:
            log, on_callback_error: as in ``usher.Context``.
            options: ``ContextOptions``, without `callbacks`.

        Raises:
            RuntimeError: no loop runs in this thread.
            InvalidArgumentError, ResourceError, TypeError.
        """
        if "callbacks" in options:
            raise TypeError("callbacks: callbacks of usher.aio always run on the event loop; omit this option")
        self._loop = asyncio.get_running_loop()
        self._open: set[Play] = set()
        self._players: weakref.WeakValueDictionary[int, Player] = weakref.WeakValueDictionary()
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()
        self._observers: list[EventCallback] = []
        self._delegate: Delegate | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[int] | None = None
        self._closed_event: asyncio.Future[None] = self._loop.create_future()
        options["callbacks"] = "pumped"
        self.blocking = _context.Context(log=log, on_callback_error=on_callback_error, **options)
        self.blocking.add_observer(self._on_event)
        self.blocking.pump()  # makes this the pumping thread, on which the library refuses calls that would wait
        self._pump_fd = self.blocking.pump_fd
        self._loop.add_reader(self._pump_fd, self._pump)

    @property
    def closed(self) -> bool:
        """close() was called."""
        return self._closing is not None

    @property
    def last_callback_error(self) -> BaseException | None:
        """The last exception that a callback raised; None if no callback has raised one."""
        return self.blocking.last_callback_error

    def events(self) -> EventStream:
        """Returns a stream of all events from now on: ``async for event in context.events()``.

        It keeps the events that you have not read yet, and ends when the context has closed.
        """
        return EventStream(self)

    def add_observer(self, observer: EventCallback) -> None:
        """Adds an observer: a plain function or a coroutine function, which the context calls with every event from now
        on."""
        self._observers.append(_border.function(observer, "observer"))

    def remove_observer(self, observer: EventCallback) -> None:
        """Removes an observer. Raises ValueError if the function is not an observer."""
        self._observers.remove(observer)

    def set_delegate(self, delegate: Delegate | None) -> None:
        """Sets the delegate for playbacks that are started without a delegate; None clears it. Raises the same errors
        as in ``usher.Context``."""
        self.blocking.set_delegate(blocking_of(delegate))
        self._delegate = delegate

    def __repr__(self) -> str:
        clock = "manual clock" if self.blocking._manual else ""
        playbacks = f"{len(self._open)} {'playback' if len(self._open) == 1 else 'playbacks'}"
        return _border.shown_object(self, clock, "closed" if self.closed else playbacks)

    def suspend(self) -> None:
        """Calls Playback.suspend() for all playbacks of the context. Raises InvalidHandleError."""
        self.blocking.suspend()

    def resume(self) -> None:
        """Calls Playback.resume() for all playbacks of the context. Raises InvalidHandleError."""
        self.blocking.resume()

    def network_changed(self) -> None:
        """Like ``usher.Context.network_changed``. Raises InvalidHandleError."""
        self.blocking.network_changed()

    async def close(self, timeout_ms: int = 0) -> int:
        """Closes all playbacks in parallel, waits until they are closed, frees the context, and ends its streams of
        events.

        If you cancel the call, the close continues in the background; a second call waits until it is complete.

        Args:
            timeout_ms: longest wait, milliseconds of real time; 0: 6000.

        Returns:
            The number of playbacks that did not close in time.
        """
        if self._closing is None:
            self._closing = self._loop.create_task(self._close((timeout_ms or _CLOSE_MS) / 1000))
        return await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    # ---- inside ------------------------------------------------------------------------------------------------------

    async def _close(self, timeout_s: float) -> int:
        still_open = 0
        try:
            with contextlib.suppress(InvalidHandleError):
                self.blocking.begin_close(max(1, int(timeout_s * 1000)))
                # On a manual clock, freeing the context moves the clock until the teardowns have ended.
                waited = [play.closed for play in self._open] if self.blocking._manual else [self._closed_event]
                await self._wait_closed(waited, timeout_s + 1)
            still_open = len(self._open)
        finally:
            self._loop.remove_reader(self._pump_fd)
            try:
                with contextlib.suppress(InvalidHandleError):
                    self.blocking.pump()
                self.blocking.close()
            finally:
                for play in list(self._open):
                    self._ended(play, None)
                for task in self._tasks:
                    task.cancel()
                for stream in list(self._streams):
                    stream.close()
        return still_open

    async def _wait_closed(self, closed: list[asyncio.Future[None]], timeout_s: float | None) -> None:
        """Waits until all playbacks are closed, at most for `timeout_s`. With a manual clock there is no limit."""
        if closed:
            await asyncio.wait(closed, timeout=None if self.blocking._manual else timeout_s)

    def _pump(self) -> None:
        try:
            self.blocking.pump()
        except InvalidHandleError:  # the host closed `blocking`, so the descriptor is invalid
            self._loop.remove_reader(self._pump_fd)

    def _on_event(self, original: _event.Event) -> None:
        if original.type is EventType.CONTEXT_CLOSED and self._closing is not None:
            return resolve(self._closed_event, None)
        play = original.tag if isinstance(original.tag, Play) else None
        player = None if original.player is None else self._players.get(original.player._handle.value or 0)
        playback, tag = (None, None) if play is None else (play.playback(), play.tag)
        event = changed_event(Event, original, playback=playback, player=player, tag=tag)
        if play is not None:
            if original.type in (EventType.SESSION_STARTED, EventType.NO_SESSION):
                play.set_up(None)
            elif original.type is EventType.SETUP_ERROR:
                play.set_up(original.error)
            elif original.type in (EventType.HEARTBEAT_ERROR, EventType.RECOVERED):
                play.failure = original.error
            elif original.type is EventType.PLAYBACK_CLOSED:
                self._ended(play, original.error)
        for stream in list(self._streams):
            stream._add(event)
        for observer in list(self._observers):
            self._call("observer", observer, event)

    def _ended(self, play: Play, error: UsherError | None) -> None:
        self._open.discard(play)
        play.set_up(error or ClosedError("the playback was closed", status=Status.CLOSED))
        resolve(play.closed, None)

    def _call(self, name: str, callback: Callable[..., object], *arguments: object) -> None:
        """Runs a callback that gives no value. If the callback returns a coroutine, a task awaits this coroutine."""
        try:
            outcome = callback(*arguments)
            if inspect.isawaitable(outcome) and self._runs(outcome):
                self._spawn(self._finish(name, outcome))
        except Exception as error:
            self.blocking._callback_failed(name, error)

    def _ask(self, name: str, callback: Callable[[Any], Any], request: Question[Any]) -> Any:
        """Runs a callback that must give a value. If the callback returns a coroutine, a task awaits this coroutine and
        then answers."""
        outcome = callback(request)
        if not inspect.isawaitable(outcome):
            return LATER if request.answered else outcome
        if not self._runs(outcome):
            return None
        self._spawn(self._answer(name, request, outcome))
        return LATER

    def _runs(self, outcome: Awaitable[object]) -> bool:
        """Whether the event loop can still run a coroutine. A program that ends may close the event loop before the
        context."""
        if not self._loop.is_closed():
            return True
        if inspect.iscoroutine(outcome):
            outcome.close()
        return False

    async def _finish(self, name: str, outcome: Awaitable[object]) -> None:
        try:
            await outcome
        except Exception as error:
            self.blocking._callback_failed(name, error)

    async def _answer(self, name: str, request: Question[Any], outcome: Awaitable[Any]) -> None:
        try:
            value = await outcome
            if value is not LATER and not request.answered:
                request._give(value)
        except Exception as error:
            self.blocking._callback_failed(name, error)
            request._give_up(error)
        except BaseException as error:
            request._give_up(error)
            raise

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class EventStream:
    """An asynchronous iterator over the events of a context. It begins with the first event after the call of
    Context.events()."""

    def __init__(self, context: Context) -> None:
        """Only Context.events() calls it."""
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._ended = False
        context._streams.add(self)
        if context.blocking.closed:
            self.close()

    def close(self) -> None:
        """Ends the stream. The host can still read the events that are queued in the stream."""
        if not self._ended:
            self._ended = True
            self._queue.put_nowait(None)

    def _add(self, event: Event) -> None:
        if not self._ended:
            self._queue.put_nowait(event)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self._queue.get()
        if event is None:
            self._queue.put_nowait(None)  # ends every other reader too
            raise StopAsyncIteration
        return event
