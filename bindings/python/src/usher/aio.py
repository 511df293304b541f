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

import asyncio
import concurrent.futures
import contextlib
import copy
import dataclasses
import inspect
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from . import context as _context
from . import delegate as _delegate
from . import event as _event
from . import playback as _playback
from . import player as _player
from ._enums import CloseMode, EventType, KeySystem, LicenseType, SessionState, Status
from ._errors import ClosedError, InvalidArgumentError, InvalidHandleError, UsherError, WouldDeadlockError
from ._question import LATER, Question, Reply
from .license import License

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Context", "Event", "EventStream", "PayloadRequest", "Playback", "Player", "SSPDelegate", "TokenRequest"]

T = TypeVar("T")
_CLOSE_MS = 6000
"""As long as usher_context_close() waits by default."""
_TEARDOWN_MS = 3000
"""`teardown_timeout_ms` by default."""


@dataclasses.dataclass(frozen=True)
class Event(_event.Event):
    """As ``usher.Event``; `playback` and `player` are those of this module."""

    playback: Playback | None  # type: ignore[assignment]  # not a kind of the blocking one: its methods are awaited
    player: Player | None  # type: ignore[assignment]


class TokenRequest(_delegate.TokenRequest):
    """As ``usher.TokenRequest``; `playback` is one of this module. Threads: any."""

    @property
    def playback(self) -> Playback | None:  # type: ignore[override]
        """The playback it is for; None when the object is gone."""
        return super().playback  # type: ignore[return-value]


class PayloadRequest(_playback.PayloadRequest):
    """As ``usher.PayloadRequest``; `playback` is one of this module. Threads: any."""

    @property
    def playback(self) -> Playback | None:  # type: ignore[override]
        """The playback it is for; None when the object is gone."""
        return super().playback  # type: ignore[return-value]


TokenCallback = Callable[[TokenRequest], Reply[str] | Awaitable[str | None]]
"""``async def token(request): return "token"``, or a plain function as the blocking form takes it."""
PayloadCallback = Callable[[PayloadRequest], Reply[bytes] | Awaitable[bytes | None]]
"""``async def payload(request): return challenge``, or a plain function as the blocking form takes it."""
RenewedCallback = Callable[["Playback", License], object]
"""``renewed(playback, license)``, plain or a coroutine function."""
EventCallback = Callable[[Event], object]
"""``observer(event)``, plain or a coroutine function."""


class Context:
    """One independent instance of the library on the running event loop. Closed by ``async with`` or close().

    Callbacks run on the loop's thread; one that is a coroutine function becomes a task. **Exceptions in callbacks** and in such tasks go where
    ``usher.Context`` says; where something was asked for the answer is then "there is none", and the exception is the ``__cause__`` of what is
    raised and told for that. A task that still runs when the context has closed is cancelled.

    Attributes:
        blocking: the pumped ``usher.Context`` underneath, for virtual time: settle(), advance(), jump(), pending().
    """

    def __init__(self, **options: Any) -> None:
        """Makes a context; call it where a loop runs.

        Args:
            options: those of ``usher.Context``, without `callbacks`.

        Raises:
            RuntimeError: no loop runs in this thread. InvalidArgumentError, ResourceError, TypeError.
        """
        self._loop = asyncio.get_running_loop()
        self._open: set[_Play] = set()
        self._players: weakref.WeakValueDictionary[int, Player] = weakref.WeakValueDictionary()
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()
        self._observers: list[EventCallback] = []
        self._delegate: SSPDelegate | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[int] | None = None
        self.blocking = _context.Context(callbacks="pumped", **options)
        self.blocking.add_observer(self._told)
        self.blocking.pump()  # from now on calls that would wait are refused on this thread
        self._pump_fd = self.blocking.pump_fd
        self._loop.add_reader(self._pump_fd, self._pump)

    @property
    def closed(self) -> bool:
        """close() was called."""
        return self._closing is not None

    @property
    def last_callback_error(self) -> BaseException | None:
        """The last exception of a callback."""
        return self.blocking.last_callback_error

    def events(self) -> EventStream:
        """Every event from now on: ``async for event in context.events()``. Ends when the context has closed. Unread events are kept."""
        return EventStream(self)

    def add_observer(self, observer: EventCallback) -> None:
        """Adds a callable, plain or a coroutine function, that is told every event from now on."""
        self._observers.append(observer)

    def remove_observer(self, observer: EventCallback) -> None:
        """Removes it. Raises ValueError where it is none."""
        self._observers.remove(observer)

    def set_delegate(self, delegate: SSPDelegate | None) -> None:
        """Sets (or with None clears) the delegate for playbacks that name none. Raises as ``usher.Context.set_delegate``."""
        self.blocking.set_delegate(None if delegate is None else delegate.blocking)
        self._delegate = delegate

    async def close(self, timeout_ms: int = 0) -> int:
        """Closes every playback in parallel, waits until all have told PLAYBACK_CLOSED, then frees the context and ends all event streams.

        Cancelled: goes on in the background. Again: waits for the same end. Where a server leaves teardowns unanswered until the time runs out,
        freeing gives them 6 seconds more, and holds the loop up meanwhile.

        Args:
            timeout_ms: longest wait, milliseconds of real time; 0: 6000.

        Returns:
            The number of playbacks not closed in time.
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
        deadline = self._loop.time() + timeout_s
        still_open = 0
        try:
            with contextlib.suppress(WouldDeadlockError, InvalidHandleError):
                self.blocking.shutdown(1)
            await self._wait_closed([play.closed for play in self._open], timeout_s)
            still_open = len(self._open)
            await self._let_teardowns_end(deadline)
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
        """Waits at most so long; on a manual clock without limit."""
        if closed:
            await asyncio.wait(closed, timeout=None if self.blocking._manual else timeout_s)

    async def _let_teardowns_end(self, deadline: float) -> None:
        """Freeing waits for teardowns that are tried again, so wait here, where the loop goes on. A manual clock is moved by freeing itself."""
        while not self.blocking._manual and self._loop.time() < deadline:
            try:
                pending = self.blocking.pending()
            except (InvalidHandleError, WouldDeadlockError):
                return
            if not pending.transfers and not pending.queued and pending.next_timer_ms is None:
                return
            await asyncio.sleep(0.02)

    def _pump(self) -> None:
        try:
            self.blocking.pump()
        except InvalidHandleError:  # closed underneath: its descriptor is gone
            self._loop.remove_reader(self._pump_fd)

    def _told(self, told: _event.Event) -> None:
        play = told.tag if isinstance(told.tag, _Play) else None
        player = None if told.player is None else self._players.get(told.player._handle.value or 0)
        values = {field.name: getattr(told, field.name) for field in dataclasses.fields(told)}
        event = Event(**{**values, "playback": play and play.playback(), "player": player, "tag": play and play.tag})
        if play is not None:
            if told.type is EventType.SESSION_STARTED:
                play.set_up(None)
            elif told.type is EventType.SETUP_ERROR:
                play.set_up(told.error)
            elif told.type in (EventType.HEARTBEAT_ERROR, EventType.RECOVERED):
                play.failure = told.error
            elif told.type is EventType.PLAYBACK_CLOSED:
                self._ended(play, told.error)
        for stream in list(self._streams):
            stream._tell(event)
        for observer in list(self._observers):
            self._call("observer", observer, event)

    def _ended(self, play: _Play, error: UsherError | None) -> None:
        self._open.discard(play)
        play.set_up(error or ClosedError("the playback was closed", status=Status.CLOSED))
        _resolve(play.closed, None)

    def _call(self, name: str, callback: Callable[..., object], *arguments: object) -> None:
        """Runs a telling callback; a coroutine becomes a task."""
        try:
            outcome = callback(*arguments)
            if inspect.isawaitable(outcome):
                self._spawn(self._finish(name, outcome))
        except Exception as error:
            self.blocking._callback_failed(name, error)

    def _ask(self, name: str, callback: Callable[[Any], Any], request: Question[Any]) -> Any:
        """Runs a producing callback; a coroutine becomes a task that answers."""
        outcome = callback(request)
        if not inspect.isawaitable(outcome):
            return LATER if request.answered else outcome
        self._spawn(self._answer(name, request, outcome))
        return LATER

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
    """The events of a context from the moment this was made; an asynchronous iterator. Made by Context.events()."""

    def __init__(self, context: Context) -> None:
        """For Context.events() only."""
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._ended = False
        context._streams.add(self)
        if context.blocking.closed:
            self.close()

    def close(self) -> None:
        """No more events; those told before can still be read."""
        if not self._ended:
            self._ended = True
            self._queue.put_nowait(None)

    def _tell(self, event: Event) -> None:
        if not self._ended:
            self._queue.put_nowait(event)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self._queue.get()
        if event is None:
            self._queue.put_nowait(None)  # whoever else reads ends too
            raise StopAsyncIteration
        return event


class SSPDelegate:
    """As ``usher.SSPDelegate``; `token_callback` may be a coroutine function. Freed with close() or a ``with`` block: neither waits."""

    def __init__(self, context: Context, *, token_callback: TokenCallback | None = None, **options: Any) -> None:
        """Makes a delegate.

        Args:
            options: those of ``usher.SSPDelegate``, without `sync_setup_teardown`, which would block the loop: await Playback.wait_session() and
                Playback.close() instead.

        Raises:
            InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        if options.get("sync_setup_teardown"):
            raise InvalidArgumentError("sync_setup_teardown would block the event loop: await wait_session()", status=Status.INVALID_ARGUMENT)
        self.context = context
        self._has_sessions = bool(options.get("ssm_url") or options.get("setup_url"))
        self._teardown_ms = options.get("teardown_timeout_ms") or _TEARDOWN_MS
        self.blocking = _delegate.SSPDelegate(context.blocking, **options)
        if token_callback is not None:
            self.set_token_callback(token_callback)

    def set_token_callback(self, callback: TokenCallback | None) -> None:
        """Sets, replaces or (None) clears the token callback; it has `token_timeout_ms` to answer. Raises InvalidHandleError."""
        if callback is None:
            self.blocking.set_token_callback(None)
            return
        told, context = callback, self.context

        def ask(request: _delegate.TokenRequest) -> Any:
            playback, tag = _subject(request)
            ours = TokenRequest(request._completion, playback, tag, request._causes)  # type: ignore[arg-type]
            return context._ask("token", told, ours)

        self.blocking.set_token_callback(ask)

    def close(self) -> None:
        """Frees it; playbacks that use it go on. Again: does nothing."""
        self.blocking.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Player:
    """One screen. It plays one playback at a time; playing the next one is a zap."""

    def __init__(self, context: Context) -> None:
        """Makes a player. Raises InvalidHandleError, ClosedError."""
        self.context = context
        self._blocking = _player.Player(context.blocking)
        self._playback: Playback | None = None
        context._players[self._blocking._handle.value or 0] = self

    async def play(
        self,
        content_token: str | None = None,
        *,
        delegate: SSPDelegate | None = None,
        content_id: bytes | None = None,
        tag: object = None,
        payload: PayloadCallback | None = None,
        renewed: RenewedCallback | None = None,
    ) -> Playback:
        """Starts the next item and returns without waiting: Playback.wait_session() waits for its session. Arguments as ``usher.Player.play``.

        Raises:
            InvalidHandleError, InvalidArgumentError, NoDelegateError, ClosedError.
        """
        context, play = self.context, _Play(self.context._loop, tag)

        def ask(request: _playback.PayloadRequest) -> Any:
            ours = PayloadRequest(request._completion, play.playback(), tag, request.key_system, request._causes)  # type: ignore[arg-type]
            return None if payload is None else context._ask("payload", payload, ours)

        def tell(told: _playback.Playback, license: License) -> None:
            playback = play.playback()
            if playback is not None and renewed is not None:
                context._call("renewed", renewed, playback, license)

        inner = self._blocking.play(
            content_token,
            delegate=None if delegate is None else delegate.blocking,
            content_id=content_id,
            tag=play,
            payload=None if payload is None else ask,
            renewed=None if renewed is None else tell,
        )
        used = delegate or context._delegate
        if used is not None:
            play.has_session, play.teardown_ms = used._has_sessions, used._teardown_ms
        context._open.add(play)
        playback = self._playback = Playback(self, inner, play)
        return playback

    async def stop(self, mode: CloseMode | int = CloseMode.DEFAULT) -> None:
        """Closes what it plays and waits for that as Playback.close(). Nothing playing: does nothing.

        Raises:
            InvalidHandleError, InvalidArgumentError.
        """
        self._blocking.stop(mode)
        if self._playback is not None:
            await self._playback._until_closed()

    async def close(self) -> None:
        """Stops and frees it, and waits for what it played as Playback.close(). Again: does nothing."""
        self._blocking.close()
        playback, self._playback = self._playback, None
        if playback is not None:
            await playback._until_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


class Playback:
    """One play of one item; made by Player.play(). ``async with`` closes and frees it.

    Attributes:
        context, player: where it plays.
        tag: the `tag` given to Player.play().
    """

    def __init__(self, player: Player, blocking: _playback.Playback, play: _Play) -> None:
        """For Player.play() only."""
        self.context = player.context
        self.player = player
        self.tag = play.tag
        self._blocking = blocking
        self._play = play
        play.reference = weakref.ref(self)

    @property
    def session_state(self) -> SessionState:
        """How its session stands. Raises InvalidHandleError."""
        return self._blocking.session_state

    async def wait_session(self) -> None:
        """Waits until set-up has ended: returns when there is a session, or when there is none to set up. Of a session that failed later says why.

        Raises:
            Why set-up failed or the playback ended: LimitError, RefusedError, HTTPStatusError, TransportError, TLSError, ProtocolError,
            TooLargeError, RedirectError, NoTokenError, ReplacedError, ClosedError.
        """
        play = self._play
        if not play.closed.done():
            if not play.has_session:  # no event tells of it
                return
            state = self.session_state
            if state is SessionState.PENDING or not play.is_set_up:
                waiter: asyncio.Future[None] = self.context._loop.create_future()
                play.waiters.add(waiter)
                try:
                    return await waiter
                finally:
                    play.waiters.discard(waiter)
            if state is SessionState.FAILED and play.failure is not None:
                raise _again(play.failure)
        if play.error is not None:
            raise _again(play.error)

    async def get_license(
        self, key_system: KeySystem | str, payload: bytes, *, type: LicenseType | int = LicenseType.REQUEST, timeout_ms: int = 0
    ) -> License:
        """Asks for a licence and waits for it. Arguments and errors as ``usher.Playback.get_license``."""
        answer: asyncio.Future[License] = self.context._loop.create_future()
        self._blocking.request_license(key_system, payload, type=type, timeout_ms=timeout_ms, callback=lambda done: _pass_on(done, answer))
        return await answer

    async def get_certificate(self) -> bytes:
        """Gets the delegate's certificate (DER, as the server sent it): fetched once, then from memory.

        Raises:
            StateError without a certificate URL; the error; InvalidHandleError, ClosedError.
        """
        answer: asyncio.Future[bytes] = self.context._loop.create_future()
        self._blocking.request_certificate(lambda done: _pass_on(done, answer))
        return await answer

    async def close(self, mode: CloseMode | int = CloseMode.DEFAULT) -> None:
        """Closes it and waits until it is closed (the event PLAYBACK_CLOSED), at most the delegate's `teardown_timeout_ms` of real time; returns also
        when that ran out, as a sync delegate does. What is not done by then goes on, as it does when the waiting is cancelled.

        Raises:
            InvalidArgumentError for a mode that is none.
        """
        self._blocking.close(mode)
        await self._until_closed()

    async def _until_closed(self) -> None:
        await self.context._wait_closed([self._play.closed], self._play.teardown_ms / 1000)

    async def wait_closed(self) -> None:
        """Waits until it is closed, however long that takes; does not close it."""
        await asyncio.shield(self._play.closed)

    def free(self) -> None:
        """Gives the handle back; closes it if it is not closed yet, without waiting. Again: does nothing."""
        self._blocking.free()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        try:
            await self.close()
        finally:
            self.free()


class _Play:
    """What is known of a playback, whether or not its object still lives; the `tag` of the playback underneath."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tag: object) -> None:
        self.tag = tag
        self.reference: weakref.ref[Playback] | None = None
        self.closed: asyncio.Future[None] = loop.create_future()
        self.waiters: set[asyncio.Future[None]] = set()
        self.has_session = True
        self.is_set_up = False
        self.error: UsherError | None = None
        self.failure: UsherError | None = None
        self.teardown_ms = _TEARDOWN_MS

    def playback(self) -> Playback | None:
        return None if self.reference is None else self.reference()

    def set_up(self, error: UsherError | None) -> None:
        """Set-up ended."""
        self.is_set_up, self.error, self.failure = True, error, None
        for waiter in list(self.waiters):
            _resolve(waiter, None if error is None else _again(error))


def _subject(request: Question[Any]) -> tuple[Playback | None, object]:
    play = request.tag
    return (play.playback(), play.tag) if isinstance(play, _Play) else (None, None)


def _again(error: UsherError) -> UsherError:
    """A copy: each that waits gets a traceback of its own."""
    again = copy.copy(error)
    again.__cause__ = error.__cause__
    return again


def _resolve(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done() or future.get_loop().is_closed():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _pass_on(done: concurrent.futures.Future[T], answer: asyncio.Future[T]) -> None:
    """The answer to whoever awaits it; to nobody, where that one was cancelled."""
    if answer.done() or answer.get_loop().is_closed():
        return
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(error)
