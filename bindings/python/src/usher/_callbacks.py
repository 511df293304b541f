"""Keeps the host's functions that C calls by their ``user_data``, and reports the exceptions that they raise."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._c import abi, registry
from ._errors import InvalidHandleError

if TYPE_CHECKING:
    from .context import Context
    from .playback import Playback

CallbackErrorHook = Callable[[str, BaseException], object]


@dataclass(frozen=True)
class HostFunction:
    """A function of the host that the library calls. C's ``user_data`` is the number of this object.

    Attributes:
        name: the function's name in reports of its exceptions.
    """

    context: weakref.ref[Context]
    name: str
    function: Callable[..., Any]

    def failed(self, error: BaseException) -> None:
        """Reports an exception that the function raised."""
        report_to(self.context(), self.name, error)


def register(context: Context, name: str, function: Callable[..., Any]) -> int:
    """Keeps a function of the host until C calls ``destroy`` for it; returns the number to give C as ``user_data``."""
    return registry.add(HostFunction(weakref.ref(context), name, function))


def subject(handle: abi.PlaybackHandle, tag: int) -> tuple[Playback | None, object]:
    """Returns the playback of a callback, or None if Python has freed it; and the `tag` given to Player.play()."""
    item = registry.get(tag)
    return (None, None) if item is None else (item.playback(handle), item.tag)


def report(hook: CallbackErrorHook | None, name: str, error: BaseException) -> None:
    """Passes an exception of a callback to the hook.

    Passes it to ``threading.excepthook`` if there is no hook, or if the hook raises.
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
    """Like report(), with the hook of a context; `context` is None if Python has freed the context."""
    if context is None:
        report(None, name, error)
    else:
        context._callback_failed(name, error)


def end(context: Context, function: Callable[..., object], *arguments: object) -> None:
    """Calls a library function that closes or frees something of the context.

    Does nothing if the context is closed, and ignores the stale handle if another thread closes it meanwhile.
    """
    if context.closed:
        return
    try:
        function(*arguments)
    except InvalidHandleError:
        if not context.closed:
            raise
