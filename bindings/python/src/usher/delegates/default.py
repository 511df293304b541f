"""The default delegate and the common delegate, which get licences without sessions."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypedDict

from .._c import abi, ffi, registry
from .._c.enums import WireFormat
from .hooks import Hooked, HTTPDelegate, hooks_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..context import Context


class DefaultOptions(TypedDict, total=False):
    """Options of default and common delegates; see usher_default_options. 0 and None mean the default.

    license_url: URL of the licence server. Required, except for a common delegate that overrides license_url().
    certificate_url: URL of the application certificate.
    extra_headers: "Name: value" lines separated by newlines, for every request.
    token_header: name of the header that carries a playback's content token. Default "nv-authorizations".
    wire_format: the form of Widevine requests.
    hook_timeout_ms: how long an overridden method may take, milliseconds. Default 5000.
    """

    license_url: str | None
    certificate_url: str | None
    extra_headers: str | None
    token_header: str | None
    wire_format: WireFormat | int
    hook_timeout_ms: int


class CommonDelegate(HTTPDelegate):
    """Licences without sessions and without tokens (OTVCommonLicenseDelegate).

    A subclass may override the methods for certificate, URLs and headers. As in the SDKs, DefaultDelegate and
    MultiInstanceDelegate are subclasses.
    """

    def __init__(self, context: Context, **options: Unpack[DefaultOptions]) -> None:
        """Makes a delegate.

        Its playbacks belong to the same context. Raises InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        self._open_common(context, options, Hooked(context, self, HTTPDelegate))

    def _open_common(self, context: Context, options: Any, hooks: Hooked) -> None:
        HTTPDelegate.__init__(self, context)
        given = ffi.filled(abi.DefaultOptions, options)
        entry = registry.add(hooks)
        ffi.lib.usher_common_delegate_new(
            context._handle, ctypes.byref(given), ctypes.byref(hooks.structure), entry, registry.destroy, self._result
        )
        self._has_handle = True


class DefaultDelegate(CommonDelegate):
    """Licences without sessions: a certificate URL, a licence URL and the headers of set_http_header().

    This delegate is for one stream at a time, and needs no token (OTVDefaultLicenseDelegate). A subclass may override
    steps, too.
    """

    def __init__(self, context: Context, **options: Unpack[DefaultOptions]) -> None:
        """Makes a delegate.

        Its playbacks belong to the same context. Raises InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        self._open(context, options, hooks_of(context, self))

    def _open(self, context: Context, options: Any, hooks: Hooked | None) -> None:
        HTTPDelegate.__init__(self, context)
        given = ffi.filled(abi.DefaultOptions, options)
        ffi.lib.usher_default_delegate_new(context._handle, ctypes.byref(given), self._result)
        self._has_handle = True
        self._set_hooks(hooks)
