"""The base class of delegates, players, playbacks and loaders, which are the objects of a context that have a
handle."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ._c import ffi
from ._callbacks import end

if TYPE_CHECKING:
    from typing_extensions import Self

    from .context import Context


class Part(ffi.Owner):
    """An object with a handle, which it frees exactly once: in close(), at the end of a ``with`` block, or when its
    last reference is gone."""

    _free: ClassVar[Any]
    """The library function that frees the handle."""

    def __init__(self, context: Context, handle: Any) -> None:
        self.context = context
        self._handle = handle
        self._lock = threading.Lock()
        self._has_handle = False
        """True from the time when the library has made the object until its handle is freed."""

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
            ffi.free_quietly(self._free, self._handle)
