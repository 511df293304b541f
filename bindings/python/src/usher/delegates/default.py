"""The default delegate and the common delegate, which get licences without sessions."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _border
from .._c import abi, ffi, registry
from .._options import DefaultOptions
from .hooks import Hooked, HTTPDelegate, hooks_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..context import Context


class CommonDelegate(HTTPDelegate):
    """Licences without sessions and without tokens (OTVCommonLicenseDelegate).

    A subclass of this class may override the methods of HTTPDelegate, which make the certificate, URLs, headers and
    other values. As in the SDKs, DefaultDelegate and MultiInstanceDelegate are subclasses of this class.
    """

    _options: ClassVar[Any] = DefaultOptions

    def __init__(self, context: Context, **options: Unpack[DefaultOptions]) -> None:
        """Makes a delegate.

        Its playbacks belong to the same context. Raises InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        self._open_common(context, options, Hooked(context, self, HTTPDelegate))

    def _open_common(self, context: Context, options: Any, hooks: Hooked) -> None:
        HTTPDelegate.__init__(self, context)
        given = self._fill(abi.DefaultOptions, options)
        entry, structure = registry.add(hooks), ctypes.byref(hooks.structure)
        new, handle = ffi.lib.usher_common_delegate_new, context._handle
        _border.passed(
            lambda: new(handle, ctypes.byref(given), structure, entry, registry.destroy, self._result), options
        )
        self._has_handle = True


class DefaultDelegate(CommonDelegate):
    """Licences without sessions: a certificate URL, a licence URL and the headers of set_http_header().

    This delegate is for one stream at a time, and needs no token (OTVDefaultLicenseDelegate). As with CommonDelegate,
    a subclass may override the steps of a licence request: the methods of HTTPDelegate, such as license_url().
    """

    def __init__(self, context: Context, **options: Unpack[DefaultOptions]) -> None:
        """Makes a delegate.

        Its playbacks belong to the same context. Raises InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        self._open(context, options, hooks_of(context, self))

    def _open(self, context: Context, options: Any, hooks: Hooked | None) -> None:
        HTTPDelegate.__init__(self, context)
        given, new = self._fill(abi.DefaultOptions, options), ffi.lib.usher_default_delegate_new
        _border.passed(lambda: new(context._handle, ctypes.byref(given), self._result), options)
        self._has_handle = True
        self._set_hooks(hooks)
