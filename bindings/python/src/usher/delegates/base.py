"""Licence delegates: how licences are asked for. Here: what all of them have in common."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._c import abi, ffi, registry
from .._c.enums import Status
from .._callbacks import HostFunction, register, subject
from .._part import Part
from .._question import Question, Reply, ask

if TYPE_CHECKING:
    from ..context import Context


class Delegate(Part):
    """Says how licences are asked for. Not made itself: its subclasses are.

    Freed with close(), at the end of a ``with`` block, or when nobody keeps it. Inside the library it lives on while playbacks or the context use it,
    and so does the object where the library may still call its methods.
    """

    _free = ffi.lib.usher_delegate_free

    def __init__(self, context: Context) -> None:
        """For subclasses."""
        super().__init__(context, abi.DelegateHandle())

    def close(self) -> None:
        """Frees it; playbacks that use it go on. Again: does nothing."""
        super().close()

    @property
    def _result(self) -> object:
        """Where a constructor of the library puts the handle."""
        return ctypes.byref(self._handle)


class TokenRequest(Question[str]):
    """The library asks for a fresh content token: a header value, not empty, no CR, LF or NUL, at most 64 kB."""

    _fails_as = Status.NO_TOKEN

    def _complete(self, value: str | None) -> None:
        self._tell(ffi.lib.usher_complete_token, ffi.c_string(value, "token"))


TokenCallback = Callable[[TokenRequest], Reply[str]]
"""``lambda request: "token"``. May also return None (there is none), a concurrent.futures.Future, or LATER after keeping the request."""


def set_token_callback(delegate: Delegate, callback: TokenCallback | None) -> None:
    """usher_delegate_set_token_callback()."""
    if callback is None:
        ffi.lib.usher_delegate_set_token_callback(delegate._handle, abi.TokenFn(), None, abi.DestroyFn())
        return
    entry = register(delegate.context, "token", callback)
    ffi.lib.usher_delegate_set_token_callback(delegate._handle, _on_token, entry, registry.destroy)


def _asked_token(completion: int, handle: abi.PlaybackHandle, tag: int, number: int | None) -> None:
    source: HostFunction | None = registry.get(number)
    if source is not None:
        ask(TokenRequest(completion, *subject(handle, tag)), source.function, source.failed)


_on_token = abi.TokenFn(_asked_token)
