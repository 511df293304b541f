"""The base class of delegates, players, playbacks and loaders, which are the objects of a context that have a
handle."""

from __future__ import annotations

import _thread
import contextlib
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from . import _border
from ._c import ffi
from ._callbacks import end
from .context import Context

if TYPE_CHECKING:
    from typing_extensions import Self


class Part(ffi.Owner):
    """An object with a handle, which it frees exactly once: in close(), at the end of a ``with`` block, or when its
    last reference is gone."""

    _free: ClassVar[Any]
    """The library function that frees the handle."""

    _free_waits = False
    """Whether ``_free`` may wait for a server."""

    def __init__(self, context: Context, handle: Any) -> None:
        self.context = _border.instance(context, Context, "context")
        self._handle = handle
        self._lock = threading.Lock()
        self._has_handle = False
        """True from the time when the library has made the object until its handle is freed."""

    @property
    def _is_closed(self) -> bool:
        """Whether the object or its context was closed, so that calls for it raise InvalidHandleError."""
        return not self._has_handle or self.context.closed

    def __repr__(self) -> str:
        return _border.shown_object(self, "closed" if self._is_closed else self._state())

    def _state(self) -> str:
        """The state in words, for repr()."""
        return "open"

    def close(self) -> None:
        """Frees the object. A second call does nothing."""
        self._give_back()

    def _give_back(self) -> None:
        with self._lock:
            if not self._has_handle:
                return
            self._has_handle = False
        end(self.context, self._free, self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():
            return
        if getattr(self, "_has_handle", False) and self._handle.value and not self.context.closed:
            self._has_handle = False
            if not self._free_waits:
                ffi.free_quietly(self._free, self._handle)
                return
            # Python may run a finalizer on any thread and at any time, so the finalizer must not wait: another thread
            # frees the handle. If Python cannot start a thread, the handle is freed with the context.
            with contextlib.suppress(RuntimeError):
                _thread.start_new_thread(ffi.free_quietly, (self._free, self._handle))
