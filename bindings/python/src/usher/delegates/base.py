"""The base class of all licence delegates: it has the handle and the token callback."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _border
from .._c import abi, ffi, registry
from .._c.enums import Status
from .._callbacks import HostFunction, register, subject
from .._part import Part
from .._question import Question, Reply, ask

if TYPE_CHECKING:
    from ..context import Context


class Delegate(Part):
    """Decides how the library asks for licences. Make an object of one of the subclasses.

    close() or the end of a ``with`` block frees the delegate. Python also frees it when the last reference is gone.
    While playbacks or the context use the delegate, the library keeps its own object for it. The Python object also
    lives as long as the library may call its methods.
    """

    _free = ffi.lib.usher_delegate_free

    _options: ClassVar[Any]
    """The class of its options."""

    _is_sync = False
    """Whether the option `sync_setup_teardown` is set."""

    def __init__(self, context: Context) -> None:
        """For subclasses."""
        super().__init__(context, abi.DelegateHandle())

    def close(self) -> None:
        """Frees the delegate. Playbacks that use it continue. A second call does nothing."""
        super().close()

    def connect_ahead(self, keep_ms: int = 0) -> None:
        """Opens connections to the SSM server and the licence server, so that the first play needs no time for that.

        Takes no slot and needs no token: the library sends ``HEAD /`` without tokens to each server, which may reply
        with any status. A failure has no event: the request that needs the connection opens one itself. Does nothing
        for servers that the library does not know: those of a customer delegate, and a licence server that
        license_url() names.

        Args:
            keep_ms: how long the library keeps the connections ready, milliseconds on the context's clock; it then
                sends such a request again whenever a connection becomes too old. Default: it opens them once.

        Raises:
            InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        ffi.lib.usher_delegate_connect_ahead(self._handle, ffi.integer(keep_ms, 32, "keep_ms"))

    def _fill(self, structure: type[ffi.Structure], options: Mapping[str, Any], own: str = "") -> ffi.Structure:
        """Makes an option structure for the options that are its fields. `own`: names of further arguments of the
        class, separated by blanks."""
        known = [*self._options.__annotations__, *own.split()]
        _border.known(options, known, type(self).__name__)
        fields = {name for name, *_ in structure._fields_}
        return ffi.filled(structure, {name: value for name, value in options.items() if name in fields})

    @property
    def _result(self) -> object:
        """A pointer to the handle, for the C function that makes the delegate."""
        return ctypes.byref(self._handle)


class TokenRequest(Question[str]):
    """The library needs a new content token.

    A token is a header value: not only blanks, no control character except tab, at most 64 kB.
    """

    _fails_as = Status.NO_TOKEN

    def _complete(self, value: str | None) -> None:
        self._send_answer(ffi.lib.usher_complete_token, ffi.c_string(value, "token"))


TokenCallback = Callable[[TokenRequest], Reply[str]]
"""``lambda request: "token"``. It may also return None (no token), a concurrent.futures.Future, or LATER if it keeps
the request to answer it later."""


def set_token_callback(delegate: Delegate, callback: TokenCallback | None) -> None:
    """Sets or replaces the token callback of a delegate; None removes it."""
    if callback is None:
        ffi.lib.usher_delegate_set_token_callback(delegate._handle, abi.TokenFn(), None, abi.DestroyFn())
        return
    entry = register(delegate.context, "token", _border.function(callback, "token_callback"))
    ffi.lib.usher_delegate_set_token_callback(delegate._handle, _on_token, entry, registry.destroy)


def _asked_token(completion: int, handle: abi.PlaybackHandle, tag: int, number: int | None) -> None:
    source: HostFunction | None = registry.get(number)
    if source is not None:
        ask(TokenRequest(completion, *subject(handle, tag)), source.function, source.failed)


_on_token = abi.TokenFn(_asked_token)
