"""Contexts: one independent instance of the library each, and their observers."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ._c import abi, ffi, registry
from ._c.enums import Callbacks, Clock, EventType, LogLevel, Status
from ._callbacks import CallbackErrorHook, end, register, report, subject
from ._errors import UsherError, WouldDeadlockError
from .event import Event

if TYPE_CHECKING:
    from typing_extensions import Self

    from .delegates.base import Delegate
    from .loader import ResourceLoader
    from .player import Player

Log = Callable[[LogLevel, str], object]
EventCallback = Callable[[Event], object]

_CLOCKS = {"system": Clock.SYSTEM, "manual": Clock.MANUAL}
_CALLBACKS = {"threaded": Callbacks.THREADED, "pumped": Callbacks.PUMPED}
_live: weakref.WeakSet[Context] = weakref.WeakSet()


@dataclass(frozen=True)
class Pending:
    """What a context has under way.

    Attributes:
        transfers: requests sent and not answered.
        callbacks: callbacks queued or running.
        queued: requests waiting for a place at their origin.
        next_timer_ms: until the next timer, milliseconds; None without one.
        now_ms: the context's clock, milliseconds.
    """

    transfers: int
    callbacks: int
    queued: int
    next_timer_ms: int | None
    now_ms: int


class Context(ffi.Owner):
    """One independent instance of the library: its I/O thread, connections, timers and observers.

    Ended by close() or by leaving a ``with`` block. One that nobody keeps, with nothing left in it, is freed too, with a ResourceWarning.

    Every method may be called from any thread, and inside callbacks unless it says otherwise.

    **Threads of callbacks.** ``callbacks="threaded"``: they run on the library's own threads, those of one playback in order, those of
    different playbacks in parallel. ``callbacks="pumped"``: they run only inside pump() (and what is still due inside close()), on the thread
    that calls it, all in order; ``pump_fd`` is readable while some are due. Sessions are kept alive however seldom pump() is called. The thread
    that pumped last may not wait for what could need it: there wait_session(), wait_closed(), get_license(), get_certificate(), shutdown() and
    play() with a sync delegate raise WouldDeadlockError, as inside any callback; use request_license(), request_certificate() and events, or
    ``usher.aio``. Another thread's wait_closed() does not wait for a pump: PLAYBACK_CLOSED may be told later.

    **Exceptions in callbacks** never reach the library. One is kept in ``last_callback_error`` and handed to ``on_callback_error(name, error)``
    (default: ``threading.excepthook``, which prints it). A callback that was asked for something has then answered "there is none", so what it was
    asked for fails with NoTokenError, CallbackError or (headers) DeclinedError; that error, raised by a call, in a future or in an event, has the
    exception as its ``__cause__``, as ``raise ... from`` gives it. In pumped mode KeyboardInterrupt and SystemExit are raised again by pump() or
    close().
    """

    def __init__(
        self,
        *,
        clock: Literal["system", "manual"] | Clock = "system",
        callbacks: Literal["threaded", "pumped"] | Callbacks = "threaded",
        log: Log | None = None,
        log_level: LogLevel | int = 0,
        callback_threads_max: int = 0,
        connect_timeout_ms: int = 0,
        http_timeout_ms: int = 0,
        max_response_bytes: int = 0,
        requests_per_origin_max: int = 0,
        allow_insecure_http: bool = False,
        ca_file: str | os.PathLike[str] | None = None,
        pinned_public_key: str | None = None,
        client_certificate_file: str | os.PathLike[str] | None = None,
        client_key_file: str | os.PathLike[str] | None = None,
        proxy: str | None = None,
        user_agent: str | None = None,
        on_callback_error: CallbackErrorHook | None = None,
    ) -> None:
        """Makes a context and starts its I/O thread. 0 and None mean the default that usher_context_options names.

        Args:
            clock: "manual" for tests: time passes only in advance() and jump().
            callbacks: on whose threads callbacks run: see the class.
            log: told lines without newline or secrets, up to `log_level` (default INFO).
            ca_file: PEM file of the certificate authorities to trust. Default: the system's.
            proxy: URL; "" for none. Default: as the environment says.
            on_callback_error: see the class.

        Raises:
            InvalidArgumentError, ResourceError.
        """
        self.on_callback_error = on_callback_error
        self.last_callback_error: BaseException | None = None
        self._players: weakref.WeakValueDictionary[int, Player] = weakref.WeakValueDictionary()
        self._delegate: Delegate | None = None
        self._loaders: dict[str, ResourceLoader] = {}
        self._lock = threading.Lock()
        self._delegate_lock = threading.RLock()
        self._has_handle = False
        self._handle = abi.ContextHandle()
        self._pumped = (
            _CALLBACKS[callbacks] if isinstance(callbacks, str) else Callbacks(callbacks)
        ) is Callbacks.PUMPED
        self._interrupt: BaseException | None = None
        self._manual = (_CLOCKS[clock] if isinstance(clock, str) else Clock(clock)) is Clock.MANUAL
        options = abi.ContextOptions(
            struct_size=ctypes.sizeof(abi.ContextOptions),
            clock=Clock.MANUAL if self._manual else Clock.SYSTEM,
            log_level=log_level,
            callback_threads_max=ffi.integer(callback_threads_max, 32, "callback_threads_max"),
            connect_timeout_ms=ffi.integer(connect_timeout_ms, 32, "connect_timeout_ms"),
            http_timeout_ms=ffi.integer(http_timeout_ms, 32, "http_timeout_ms"),
            max_response_bytes=ffi.integer(max_response_bytes, 32, "max_response_bytes"),
            requests_per_origin_max=ffi.integer(requests_per_origin_max, 32, "requests_per_origin_max"),
            allow_insecure_http=int(allow_insecure_http),
            ca_file=ffi.c_string(ca_file, "ca_file"),
            pinned_public_key=ffi.c_string(pinned_public_key, "pinned_public_key"),
            client_certificate_file=ffi.c_string(client_certificate_file, "client_certificate_file"),
            client_key_file=ffi.c_string(client_key_file, "client_key_file"),
            proxy=ffi.c_string(proxy, "proxy"),
            user_agent=ffi.c_string(user_agent, "user_agent"),
            callbacks=Callbacks.PUMPED if self._pumped else Callbacks.THREADED,
        )
        if log is not None:
            options.log = _on_log
            options.log_user_data = register(self, "log", log)
            options.log_destroy = registry.destroy
        ffi.lib.usher_context_new(ctypes.byref(options), ctypes.byref(self._handle))
        self._has_handle = True
        _live.add(self)

    # ---- observers and delegate --------------------------------------------------------------------------------------

    def add_observer(self, observer: EventCallback) -> Observer:
        """Adds a callable that is told every event from now on, on the library's threads: in order for one playback, in parallel for different ones.

        Raises:
            InvalidHandleError, ClosedError.
        """
        number = ctypes.c_uint64()
        entry = register(self, "observer", observer)
        ffi.lib.usher_context_add_observer(self._handle, _on_event, entry, registry.destroy, ctypes.byref(number))
        return Observer(self, number.value)

    def set_delegate(self, delegate: Delegate | None) -> None:
        """Sets (or with None clears) the delegate for playbacks that name none. Playbacks already started keep theirs.

        Raises:
            InvalidHandleError, InvalidArgumentError for a delegate of another context.
        """
        with (
            self._delegate_lock
        ):  # what the library has and what is kept alive here are the same, whoever else sets one
            ffi.lib.usher_context_set_delegate(self._handle, None if delegate is None else delegate._handle)
            before, self._delegate = self._delegate, delegate
        del before  # whatever dies with it may call back into this

    # ---- the host and its network ------------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Playback.suspend() for all its playbacks. Raises InvalidHandleError."""
        ffi.lib.usher_context_suspend(self._handle)

    def resume(self) -> None:
        """Playback.resume() for all its playbacks. Raises InvalidHandleError."""
        ffi.lib.usher_context_resume(self._handle)

    def network_changed(self) -> None:
        """Says that the network is back, or another one: connections made before are not used again, and keep-alives that failed are tried at once.
        Without it they are tried at their next time. Raises InvalidHandleError.
        """
        ffi.lib.usher_context_network_changed(self._handle)

    # ---- pumped mode -------------------------------------------------------------------------------------------------

    def pump(self) -> int:
        """Runs the callbacks that are due, on the calling thread; those that become due meanwhile wait for the next time. Never blocks.

        Any thread may pump, one at a time; usually the one with the host's loop.

        Returns:
            How many ran.

        Raises:
            StateError in threaded mode, or while another thread pumps; WouldDeadlockError inside a callback; InvalidHandleError after close().
            KeyboardInterrupt or SystemExit where a callback raised it.
        """
        ran = ctypes.c_uint32()
        ffi.lib.usher_context_pump(self._handle, ctypes.byref(ran))
        self._raise_interrupt()
        return ran.value

    @property
    def pump_fd(self) -> int:
        """The file descriptor that is readable while callbacks are due: watch it (select, poll, a loop's reader), do not read, write or close it.
        It lives until close(): take it out of the loop before.

        Raises:
            StateError in threaded mode; InvalidHandleError after close().
        """
        out = ctypes.c_int()
        ffi.lib.usher_context_pump_fd(self._handle, ctypes.byref(out))
        return out.value

    # ---- the end -----------------------------------------------------------------------------------------------------

    def shutdown(self, timeout_ms: int = 0) -> int:
        """Closes every playback in parallel and waits until all are closed; nothing new starts afterwards. May be called again, to wait again.

        Args:
            timeout_ms: longest wait, milliseconds on the context's clock; 0: 6000.

        Returns:
            The number of playbacks still not closed: 0 unless the time ran out.

        Raises:
            InvalidHandleError; WouldDeadlockError inside a callback or on the thread that pumped last (closing begins all the same).
        """
        still_open = ctypes.c_uint32()
        timeout = ffi.integer(timeout_ms, 32, "timeout_ms")
        status = ffi.lib.usher_context_close(self._handle, timeout, ctypes.byref(still_open))
        if status not in (Status.OK, Status.TIMEOUT):
            raise ffi.from_status(status, "usher_context_close")
        return still_open.value

    def close(self, timeout_ms: int = 0) -> int:
        """shutdown(), then frees the context and all in it; its players, playbacks and delegates raise InvalidHandleError afterwards.

        After return none of its callbacks runs or will run. Inside a callback it returns at once and the rest happens in the background (pumped mode:
        before that pump() returns). In pumped mode the callbacks still due run inside close(). Closing again does nothing. Leaving a ``with`` block
        closes.

        Returns:
            The number of playbacks that were not closed in time.
        """
        with self._lock:
            if not self._has_handle:
                return 0
            self._has_handle = False
        _live.discard(self)
        still_open = 0
        try:
            with contextlib.suppress(WouldDeadlockError):
                still_open = self.shutdown(timeout_ms)
        finally:
            ffi.lib.usher_context_free(self._handle)
        self._raise_interrupt()
        return still_open

    @property
    def closed(self) -> bool:
        """close() was called."""
        return not self._has_handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_has_handle", False):
            self._has_handle = False
            warnings.warn(f"a context was not closed: {self!r}", ResourceWarning, stacklevel=2, source=self)
            ffi.free_quietly(ffi.lib.usher_context_free, self._handle)

    # ---- virtual time, for tests -------------------------------------------------------------------------------------

    def advance(self, ms: int, settle_ms: int = 0) -> None:
        """Moves a manual clock on by `ms`, stopping at every timer on the way in order. Not in callbacks.

        Args:
            ms: milliseconds.
            settle_ms: longest wait at each stop, milliseconds of real time, for what is under way; 0: does not wait.

        Raises:
            UsherTimeoutError: at some stop something was still under way (time was moved all the same); StateError on the system clock.
        """
        ffi.lib.usher_context_advance(self._handle, ffi.integer(ms, 64, "ms"), ffi.integer(settle_ms, 32, "settle_ms"))

    def jump(self, ms: int) -> None:
        """Moves a manual clock on by `ms` milliseconds at one blow, as when the machine slept. Not in callbacks. Raises StateError."""
        ffi.lib.usher_context_jump(self._handle, ffi.integer(ms, 64, "ms"))

    def settle(self, transfers: int = 0, callbacks: int = 0, timeout_ms: int = 5000) -> None:
        """Waits until no more than so many requests and callbacks are under way. Not in callbacks.

        Args:
            timeout_ms: longest wait, milliseconds of real time.

        Raises:
            UsherTimeoutError.
        """
        ffi.lib.usher_context_settle(
            self._handle,
            ffi.integer(transfers, 32, "transfers"),
            ffi.integer(callbacks, 32, "callbacks"),
            ffi.integer(timeout_ms, 32, "timeout_ms"),
        )

    def pending(self) -> Pending:
        """Says what is under way. Not in callbacks."""
        out = abi.Pending(struct_size=ctypes.sizeof(abi.Pending))
        ffi.lib.usher_context_pending(self._handle, ctypes.byref(out))
        timer = None if out.next_timer_ms == 2**64 - 1 else out.next_timer_ms
        return Pending(out.transfers, out.callbacks, out.queued, timer, out.now_ms)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _callback_failed(self, name: str, error: BaseException) -> None:
        self.last_callback_error = error
        if self._pumped and not isinstance(error, Exception):
            self._interrupt = error  # meant for the thread, which is the host's: raised again once C has returned
            return
        report(self.on_callback_error, name, error)

    def _raise_interrupt(self) -> None:
        """Raises what _callback_failed() kept for the host's thread."""
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    def _close_at_exit(self) -> None:
        """No callback may arrive once the interpreter is being taken down. On a manual clock nobody moves the caps, so move them here."""
        if self._manual:
            callbacks = 2**32 - 1 if self._pumped else 0  # those of pumped mode run in close()
            with contextlib.suppress(UsherError):
                for player in list(self._players.values()):
                    player._let_go()
                self.settle(callbacks=callbacks, timeout_ms=1000)
            with contextlib.suppress(UsherError):
                self.jump(60_000)
                self.settle(callbacks=callbacks, timeout_ms=1000)
        with contextlib.suppress(UsherError):
            self.close()


class Observer(ffi.Owner):
    """An observer of a context. remove() (or leaving a ``with`` block) ends it; dropping the object does not."""

    def __init__(self, context: Context, number: int) -> None:
        self.context = context
        self._number = number
        self._removed = False

    def remove(self) -> None:
        """Removes it. Events already on their way may still reach it. Again, or after the context was closed: does nothing."""
        if not self._removed and not self.context.closed:
            self._removed = True
            end(self.context, ffi.lib.usher_context_remove_observer, self.context._handle, self._number)

    close = remove

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def _told_line(level: int, line: bytes, number: int | None) -> None:
    listener = registry.get(number)
    if listener is None:
        return
    try:
        listener.function(LogLevel(level), ffi.text(line))
    except BaseException as error:
        listener.failed(error)


def _told_event(pointer: Any, number: int | None) -> None:
    listener = registry.get(number)
    if listener is None:
        return
    try:
        listener.function(_event(listener.context(), pointer.contents))
    except BaseException as error:
        listener.failed(error)


def _event(context: Context | None, raw: Any) -> Event:
    playback, tag = subject(raw.playback, raw.tag)
    error = ffi.from_detail(raw.error)
    if error is not None and playback is not None:
        playback._causes.chain(error)
    return Event(
        type=EventType(raw.type),
        left=bool(raw.left),
        sequence=raw.sequence,
        time_ms=raw.time_ms,
        playback=playback,
        player=None if context is None else context._players.get(raw.player.value or 0),
        tag=tag,
        period_ms=raw.period_ms,
        lateness_ms=raw.lateness_ms,
        error=error,
        orphan_possible=bool(raw.error.orphan_possible),
    )


_on_log = abi.LogFn(_told_line)
_on_event = abi.EventFn(_told_event)


@atexit.register
def _close_all() -> None:
    for context in list(_live):
        context._close_at_exit()
