"""Keeps the host's functions that the library calls, each under the number that C gets as ``user_data``. Reports the
exceptions that these functions raise."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._c import abi, registry
from ._errors import InvalidHandleError

if TYPE_CHECKING:
    from .context import Context
    from .playback import Playback

CallbackErrorHook = Callable[[str, BaseException], object]


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function of the host that the library calls. C knows this object by an id, which it passes as ``user_data``.

    Attributes:
        name: the function's name in reports of its exceptions.
    """

    context: weakref.ref[Context]
    name: str
    function: Callable[..., Any]

    def failed(self, error: BaseException) -> None:
        """Reports an exception that the function raised."""
        report_to(self.context(), self.name, error)


class _Unseen(threading.local):
    """The KeyboardInterrupt or SystemExit that Python raised in a callback before the callback's own ``try``, and that
    ctypes would only print. Each thread has its own values."""

    depth = 0
    """How many calls of kept_interrupts() are active on this thread."""
    interrupt: BaseException | None = None


_unseen = _Unseen()
_hook_lock = threading.Lock()
_hook_users = 0
_hook_before: Callable[[Any], object] = sys.unraisablehook


def _on_unraisable(unraisable: Any) -> None:
    error = unraisable.exc_value
    if _unseen.depth and isinstance(error, (KeyboardInterrupt, SystemExit)):
        _unseen.interrupt = error
    else:
        _hook_before(unraisable)


@contextlib.contextmanager
def kept_interrupts(keep: Callable[[BaseException], None]) -> Iterator[None]:
    """A context manager. If Python raises an interrupt in a callback before the callback's own ``try``, this interrupt
    goes to `keep`.

    A signal handler may run at the first instruction of a callback. No ``try`` of the callback catches the exception of
    this handler, and ctypes passes the exception to ``sys.unraisablehook``, which prints it. So this function replaces
    ``sys.unraisablehook`` during the ``with`` block.
    """
    global _hook_users, _hook_before
    with _hook_lock:
        if _hook_users == 0:
            _hook_before = sys.unraisablehook
            sys.unraisablehook = _on_unraisable
        _hook_users += 1
    _unseen.depth += 1
    try:
        yield
    finally:
        _unseen.depth -= 1
        with _hook_lock:
            _hook_users -= 1
            if _hook_users == 0 and sys.unraisablehook is _on_unraisable:
                sys.unraisablehook = _hook_before
        interrupt, _unseen.interrupt = _unseen.interrupt, None
        if interrupt is not None:
            keep(interrupt)


def register(context: Context, name: str, function: Callable[..., Any]) -> int:
    """Keeps a function of the host until C calls ``destroy`` for it. Returns the number to pass to C as
    ``user_data``."""
    return registry.add(HostFunction(weakref.ref(context), name, function))


def subject(handle: abi.PlaybackHandle, tag: int) -> tuple[Playback | None, object]:
    """Returns two values: the playback of a callback, or None if Python has freed it; and the `tag` that the host gave
    to Player.play()."""
    item = registry.get(tag)
    return (None, None) if item is None else (item.playback(handle), item.tag)


def report(hook: CallbackErrorHook | None, name: str, error: BaseException) -> None:
    """Passes an exception of a callback to the hook `on_callback_error`.

    If there is no hook, passes the exception to ``threading.excepthook``. If the hook itself raises an exception,
    passes the hook's exception to ``threading.excepthook`` instead.
    """
    if hook is not None:
        try:
            hook(name, error)
            return
        except BaseException as second:
            error = second
    with contextlib.suppress(BaseException):
        threading.excepthook(
            threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
        )


def report_to(context: Context | None, name: str, error: BaseException) -> None:
    """Passes an exception of a callback to its context: the context stores it, and then calls report() with its own
    hook, or, in pumped mode, keeps a KeyboardInterrupt or SystemExit for pump(). If `context` is None (Python has freed
    the context), calls report() without a hook."""
    if context is None:
        report(None, name, error)
    else:
        context._callback_failed(name, error)


def end(context: Context, function: Callable[..., object], *arguments: object) -> None:
    """Calls a library function that closes or frees an object of the context.

    Does nothing if the context is closed. If another thread closes the context meanwhile, ignores the
    InvalidHandleError.
    """
    if context.closed:
        return
    try:
        function(*arguments)
    except InvalidHandleError:
        if not context.closed:
            raise
