"""Contexts and their observers. Each context is an independent instance of the library."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _border
from ._c import abi, ffi, registry
from ._c.enums import Callbacks, Clock, LogLevel, Status
from ._callbacks import CallbackErrorHook, end, kept_interrupts, register, report
from ._errors import ClosedError, InvalidArgumentError, UsherError, WouldDeadlockError
from ._events import on_event
from ._options import ContextOptions as ContextOptions
from .event import Event
from .metrics import Metrics, metrics_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .delegates.base import Delegate
    from .loader import ResourceLoader
    from .playback import Playback
    from .player import Player

Log = Callable[[LogLevel, str], object]
EventCallback = Callable[[Event], object]

_live: weakref.WeakSet[Context] = weakref.WeakSet()
"""The contexts that the library has not freed yet."""
_live_lock = threading.RLock()
"""A lock that is held while a context is made, so that no thread makes a context after _close_all() has begun."""
_is_exiting = False
_inherited = 0
"""How many callbacks of the parent process the registry had when this process was forked; 0 in the parent."""
_EXIT_S = 10.0
"""How long the exit of the interpreter waits for contexts that other threads are closing, in seconds. A close takes
less time than this."""


@dataclass(frozen=True)
class Pending:
    """The work that a context has at this moment.

    Attributes:
        transfers: number of requests that were sent and have no reply yet.
        callbacks: number of callbacks that are queued or running.
        queued: number of requests that wait for a free connection to their origin.
        next_timer_ms: milliseconds until the next timer is due; None if there is no timer.
        now_ms: time on the context's clock, milliseconds.
    """

    transfers: int
    callbacks: int
    queued: int
    next_timer_ms: int | None
    now_ms: int


class Context(ffi.Owner):
    """One independent instance of the library: its I/O thread, connections, timers and observers.

    close() ends it; leaving a ``with`` block calls close(). If you delete the last reference without a call of close(),
    Python frees the context and warns with a ResourceWarning.

    You may call every method from any thread, also inside callbacks, unless the method says otherwise.

    **Callback threads.** With ``callbacks="threaded"`` callbacks run on threads of the library: in order for one
    playback, in parallel for different playbacks. With ``callbacks="pumped"`` callbacks run only inside pump(), in
    order, on the thread that calls it; close() runs those that are still queued. ``pump_fd`` is readable while
    callbacks are queued. The library keeps sessions alive even if you rarely call pump(). These calls raise
    WouldDeadlockError inside callbacks, and on the thread that most recently called pump(): wait_session(),
    wait_closed(), get_license(), get_certificate(), shutdown(), and play() with a delegate whose option
    `sync_setup_teardown` is set. Use request_license(), request_certificate() and events there, or ``usher.aio``.
    wait_closed() on another thread may return before pump() reports PLAYBACK_CLOSED.

    **Exceptions in callbacks** never reach the library. The context stores the last exception in
    ``last_callback_error``, and calls ``on_callback_error(name, error)`` (default: ``threading.excepthook``, which
    prints the exception). If the callback had to give a value, the library continues without a value: the request fails
    with NoTokenError, CallbackError or, for headers, DeclinedError. The error in calls, futures and events has your
    exception as its ``__cause__``. In pumped mode, pump() and close() raise KeyboardInterrupt and SystemExit again.
    """

    def __init__(
        self,
        *,
        log: Log | None = None,
        on_callback_error: CallbackErrorHook | None = None,
        **options: Unpack[ContextOptions],
    ) -> None:
        """Makes a context and starts its threads.

        Args:
            log: a function that gets each log line, without newline and without secrets, up to `log_level`
                (default INFO).
            on_callback_error: a function that gets exceptions of callbacks; see the class.
            options: ``ContextOptions``, such as ``clock="manual"`` for tests: time passes only in advance() and jump().

        Raises:
            InvalidArgumentError: an option is out of range or malformed, or a certificate file cannot be read.
            TypeError: an option has a wrong type, or there is no option with this name.
            TLSError: certificate, key and pass phrase do not belong together, or a file contains no certificate or key.
            StateError: `wipe_freed_memory` is set, but the process has already used libcurl or OpenSSL (``import ssl``
                uses OpenSSL); or `journal_key` is set, but libcurl does not use OpenSSL.
            ResourceError: the operating system refused memory, a thread or a file descriptor.
            ClosedError: the interpreter exits.
        """
        given: dict[str, Any] = dict(options)
        names = [*ContextOptions.__annotations__, "log", "on_callback_error"]
        _border.known(given, names, type(self).__name__)
        for name, function in (("log", log), ("on_callback_error", on_callback_error)):
            if function is not None:
                _border.function(function, name)
        self.on_callback_error = on_callback_error
        self.last_callback_error: BaseException | None = None
        self._players: weakref.WeakValueDictionary[int, Player] = weakref.WeakValueDictionary()
        self._playbacks: weakref.WeakValueDictionary[int, Playback] = weakref.WeakValueDictionary()
        self._delegate: Delegate | None = None
        self._loaders: dict[str, ResourceLoader] = {}
        self._lock = threading.Lock()
        self._delegate_lock = threading.RLock()
        self._closing: tuple[float, int] | None = None
        """When the last begin_close() or shutdown() began (``time.monotonic()``), and its time limit in milliseconds.
        None: the host called neither."""
        self._has_handle = False
        self._handle = abi.ContextHandle()
        self._interrupt: BaseException | None = None
        structure = ffi.filled(abi.ContextOptions, given)
        self._pumped = structure.callbacks == Callbacks.PUMPED
        self._manual = structure.clock == Clock.MANUAL
        with _live_lock:
            if _is_exiting:
                raise ClosedError("the interpreter exits: no context can be made")
            structure.refusal = ffi.on_refusal
            if log is not None:
                structure.log = _on_log
                structure.log_user_data = register(self, "log", log)
                structure.log_destroy = registry.destroy
            new = ffi.lib.usher_context_new
            _border.passed(lambda: new(ctypes.byref(structure), ctypes.byref(self._handle)), given)
            self._has_handle = True
            _live.add(self)

    # ---- observers and delegate --------------------------------------------------------------------------------------

    def add_observer(self, observer: EventCallback) -> Observer:
        """Adds an observer, a function that gets every event from now on: in order for one playback, in parallel for
        different playbacks.

        The docstring of the class says on which threads it runs. The context keeps the function until Observer.remove()
        or close().

        Raises:
            InvalidHandleError, ClosedError.
        """
        number = ctypes.c_uint64()
        entry = register(self, "observer", _border.function(observer, "observer"))
        ffi.lib.usher_context_add_observer(self._handle, on_event, entry, registry.destroy, ctypes.byref(number))
        return Observer(self, number.value)

    def set_delegate(self, delegate: Delegate | None) -> None:
        """Sets the delegate for playbacks that are started without one; None clears it.

        Playbacks that have started keep their delegate.

        Raises:
            InvalidHandleError, InvalidArgumentError for a delegate of another context.
        """
        if delegate is not None:
            from .delegates.base import Delegate

            _border.open_part(_border.instance(delegate, Delegate, "delegate"), self, "delegate")
        with (
            self._delegate_lock
        ):  # so that `_delegate` is the delegate that the library has, even if two threads set one
            ffi.lib.usher_context_set_delegate(self._handle, None if delegate is None else delegate._handle)
            before, self._delegate = self._delegate, delegate
        del before  # outside the lock, because freeing the delegate may run host code that calls this method

    # ---- the host and its network ------------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Calls Playback.suspend() for all playbacks of the context. Raises InvalidHandleError."""
        ffi.lib.usher_context_suspend(self._handle)

    def resume(self) -> None:
        """Calls Playback.resume() for all playbacks of the context. Raises InvalidHandleError."""
        ffi.lib.usher_context_resume(self._handle)

    def network_changed(self) -> None:
        """Tells the library that the network is back or has changed. Raises InvalidHandleError.

        From then on the library uses only new connections, and it retries failed keep-alives at once. Without this call
        it would retry them at the next time of its schedule.
        """
        ffi.lib.usher_context_network_changed(self._handle)

    # ---- pumped mode -------------------------------------------------------------------------------------------------

    def pump(self) -> int:
        """Runs the queued callbacks on the calling thread. Never blocks.

        If the library queues further callbacks meanwhile, these wait for the next call. Any thread may call pump(), but
        only one thread at a time; usually this is the thread of the host's event loop.

        Returns:
            The number of callbacks that ran.

        Raises:
            StateError: in threaded mode, or while another thread is in pump().
            WouldDeadlockError: inside a callback.
            InvalidHandleError: after close().
            KeyboardInterrupt, SystemExit: a callback raised it.
        """
        ran = ctypes.c_uint32()
        with kept_interrupts(self._keep_interrupt):
            ffi.lib.usher_context_pump(self._handle, ctypes.byref(ran))
        self._raise_interrupt()
        return ran.value

    @property
    def pump_fd(self) -> int:
        """The file descriptor that is readable while callbacks are queued.

        Watch it with select, poll or a reader of your event loop; do not read, write or close it. It is valid until
        close(), so remove it from your loop before you call close().

        Raises:
            StateError: in threaded mode.
            InvalidHandleError: after close().
        """
        out = ctypes.c_int()
        ffi.lib.usher_context_pump_fd(self._handle, ctypes.byref(out))
        return out.value

    # ---- closing -----------------------------------------------------------------------------------------------------

    def shutdown(self, timeout_ms: int = 0) -> int:
        """Closes all playbacks in parallel, and waits until they are closed. After this call no playback can start.

        If the time limit has passed, you may call it again to continue to wait.

        Args:
            timeout_ms: longest wait, milliseconds on the context's clock; 0 means 6000.

        Returns:
            The number of playbacks that are not closed yet: 0, unless the time limit has passed.

        Raises:
            InvalidHandleError.
            WouldDeadlockError: inside a callback, or on the thread that called pump() last. The playbacks still close.
        """
        still_open = ctypes.c_uint32()
        timeout = ffi.integer(timeout_ms, 32, "timeout_ms")
        began = time.monotonic()
        status = ffi.lib.usher_context_close(self._handle, timeout, ctypes.byref(still_open))
        self._closing = (began, timeout or 6000)
        if status not in (Status.OK, Status.TIMEOUT):
            raise ffi.from_status(status, "usher_context_close")
        return still_open.value

    def begin_close(self, timeout_ms: int = 0) -> None:
        """Begins to close all playbacks, as shutdown() does, and returns at once.

        The event CONTEXT_CLOSED follows when all playbacks are closed, or when the time limit of this call has passed:
        then its `error` is a UsherTimeoutError. Afterwards close() does not wait for servers, unless a later call has
        set another time limit.

        Args:
            timeout_ms: the time limit, milliseconds on the context's clock; 0 means 6000.
        """
        timeout = ffi.integer(timeout_ms, 32, "timeout_ms")
        ffi.lib.usher_context_begin_close(self._handle, timeout)
        self._closing = (time.monotonic(), timeout or 6000)

    def _left_ms(self) -> int:
        """Returns how many milliseconds are left of the time limit of the last begin_close() or shutdown(), at least 1;
        0 if the host called neither."""
        if self._closing is None:
            return 0
        began, limit = self._closing
        return max(1, limit - int(1000 * (time.monotonic() - began)))

    def close(self, timeout_ms: int | None = None) -> int:
        """Calls shutdown(), then frees the context with its players, playbacks, delegates and loaders.

        After that these objects raise InvalidHandleError. When close() returns, no callback of the context runs or will
        run. In pumped mode close() first runs the callbacks that are still queued. Inside a callback close() returns at
        once, and the library frees the context in the background (in pumped mode: before pump() returns). A second call
        does nothing.

        Args:
            timeout_ms: longest wait for servers, milliseconds on the context's clock; 0 means 6000. None: what is left
                of the time limit of the last shutdown() or begin_close(), or 6000 if the host called neither. If the
                host called one of them and the clock is manual, None means that close() does not wait: freeing the
                context moves the clock.

        Returns:
            The number of playbacks that did not close in time.
        """
        with self._lock:
            if not self._has_handle:
                return 0
            self._has_handle = False
        still_open = 0
        try:
            with contextlib.suppress(WouldDeadlockError):
                if timeout_ms is not None or self._closing is None or not self._manual:
                    still_open = self.shutdown(self._left_ms() if timeout_ms is None else timeout_ms)
        finally:
            try:
                with kept_interrupts(self._keep_interrupt):
                    ffi.lib.usher_context_free(self._handle)
            finally:
                _live.discard(self)
        self._raise_interrupt()
        return still_open

    @property
    def closed(self) -> bool:
        """close() was called."""
        return not self._has_handle

    def __repr__(self) -> str:
        facts = ["manual clock" if self._manual else "", "pumped" if self._pumped else ""]
        count = len(self._playbacks)
        playbacks = f"{count} {'playback' if count == 1 else 'playbacks'}"
        return _border.shown_object(self, *facts, "closed" if self.closed else playbacks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_has_handle", False) and not is_finalizing():
            self._has_handle = False
            warnings.warn(f"a context was not closed: {self!r}", ResourceWarning, stacklevel=2, source=self)
            ffi.free_quietly(ffi.lib.usher_context_free, self._handle)

    # ---- virtual time, for tests -------------------------------------------------------------------------------------

    def advance(self, ms: int, settle_ms: int = 0) -> None:
        """Moves a manual clock forward by `ms` milliseconds and runs each timer at its time. Do not call it in a
        callback.

        Args:
            settle_ms: how long to wait at each timer for requests and callbacks, in milliseconds of real time; 0: no
                wait.

        Raises:
            UsherTimeoutError: requests or callbacks were still running when the wait at a timer was over. The clock has
            still moved.
            StateError: the context uses the system clock.
        """
        ffi.lib.usher_context_advance(self._handle, ffi.integer(ms, 64, "ms"), ffi.integer(settle_ms, 32, "settle_ms"))

    def jump(self, ms: int) -> None:
        """Moves a manual clock forward by `ms` milliseconds in one step, as if the machine had slept.

        Do not call it in a callback.

        Raises:
            StateError: the context uses the system clock.
        """
        ffi.lib.usher_context_jump(self._handle, ffi.integer(ms, 64, "ms"))

    def settle(self, transfers: int = 0, callbacks: int = 0, timeout_ms: int = 5000) -> None:
        """Waits until at most ``transfers`` requests and at most ``callbacks`` callbacks are running.

        Do not call it in a callback.

        Args:
            timeout_ms: longest wait, milliseconds of real time.

        Raises:
            UsherTimeoutError: more requests or callbacks are still running.
        """
        ffi.lib.usher_context_settle(
            self._handle,
            ffi.integer(transfers, 32, "transfers"),
            ffi.integer(callbacks, 32, "callbacks"),
            ffi.integer(timeout_ms, 32, "timeout_ms"),
        )

    def pending(self) -> Pending:
        """Returns the work that the context has at this moment. Do not call it in a callback."""
        out = abi.Pending(struct_size=ctypes.sizeof(abi.Pending))
        ffi.lib.usher_context_pending(self._handle, ctypes.byref(out))
        timer = None if out.next_timer_ms == 2**64 - 1 else out.next_timer_ms
        return Pending(out.transfers, out.callbacks, out.queued, timer, out.now_ms)

    def metrics(self) -> Metrics:
        """Returns counters and present values of the context, all of the same instant. Do not call it in a callback."""
        return metrics_of(self._handle)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _callback_failed(self, name: str, error: BaseException) -> None:
        self.last_callback_error = error
        if self._pumped and not isinstance(error, Exception):
            self._keep_interrupt(error)
            return
        report(self.on_callback_error, name, error)

    def _keep_interrupt(self, error: BaseException) -> None:
        """Keeps an exception for the host's thread: pump() or close() raises this exception when C has returned."""
        self._interrupt = error

    def _raise_interrupt(self) -> None:
        """Raises the exception that _keep_interrupt() stored; does nothing if there is none."""
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    def _close_at_exit(self) -> None:
        """Closes the context before the interpreter shuts down, because after that no callback may run.

        If the context has a manual clock, moves the clock forward, because otherwise the deadlines of the close would
        never pass.
        """
        if self._manual:
            callbacks = 2**32 - 1 if self._pumped else 0  # in pumped mode close() runs them, so do not wait
            with contextlib.suppress(UsherError):
                for player in list(self._players.values()):
                    player._free_playback()
                self.settle(callbacks=callbacks, timeout_ms=1000)
            with contextlib.suppress(UsherError):
                self.jump(60_000)
                self.settle(callbacks=callbacks, timeout_ms=1000)
        with contextlib.suppress(UsherError):
            self.close()


class Observer(ffi.Owner):
    """An observer of a context or of a player.

    remove(), or the end of a ``with`` block, ends the observer. If Python frees this object, the observer continues.
    """

    def __init__(self, context: Context, number: int) -> None:
        self.context = context
        self._number = number
        self._removed = False

    def remove(self) -> None:
        """Removes the observer. It may still get events that the library has already queued.

        A second call, or a call after the context or the player was closed, does nothing.
        """
        if not self._removed and not self.context.closed:
            self._removed = True
            with contextlib.suppress(InvalidArgumentError):  # the end of a player has removed its observers
                end(self.context, ffi.lib.usher_context_remove_observer, self.context._handle, self._number)

    close = remove

    def __repr__(self) -> str:
        return _border.shown_object(self, "removed" if self._removed or self.context.closed else "active")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def _pass_log_line(level: int, line: bytes, number: int | None) -> None:
    listener = registry.get(number)
    if listener is None:
        return
    try:
        listener.function(LogLevel(level), _LINE_OF.sub(_with_host_tag, ffi.text(line)))
    except BaseException as error:
        listener.failed(error)


_LINE_OF = re.compile(r"^(playback \d+) \(tag (\d+)\)")


def _with_host_tag(line: re.Match[str]) -> str:
    """Returns a log line with the host's tag in place of the number that these bindings gave C as the tag. If the
    host's tag is neither a str nor an int, or is no longer known, the returned line has no tag."""
    tag = getattr(registry.get(int(line[2])), "tag", None)
    return f"{line[1]} (tag {tag})" if isinstance(tag, str | int) else line[1]


_on_log = abi.LogFn(_pass_log_line)


@atexit.register
def _close_all() -> None:
    """Closes all contexts, and waits for the contexts that other threads are closing. After that no callback may
    run."""
    global _is_exiting
    with _live_lock:
        _is_exiting = True
        contexts = list(_live)
    for context in contexts:
        context._close_at_exit()
    end = time.monotonic() + _EXIT_S
    while (len(_live) or registry.count() > _inherited) and time.monotonic() < end:
        time.sleep(0.005)


def _forked() -> None:
    """Runs in a child of fork(): forgets the parent's contexts. The library calls no function there that the parent has
    registered, so `_inherited` stores how many such functions _close_all() must not wait for."""
    global _live_lock, _inherited
    _live_lock = threading.RLock()
    _live.clear()
    _inherited = registry.count()


os.register_at_fork(after_in_child=_forked)
