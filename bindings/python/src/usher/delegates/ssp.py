"""SSP delegates: licences from an SSP licence server, with sessions of a session manager (SSM)."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _border
from .._c import abi, ffi
from .._options import SSPOptions, SSPV2Options
from .base import TokenCallback
from .hooks import Hooked, HTTPDelegate, hooks_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..context import Context


class _SSPDelegate(HTTPDelegate):
    _options: ClassVar[Any] = SSPOptions

    def _open(self, context: Context, options: Any, hooks: Hooked | None, token_callback: TokenCallback | None) -> None:
        HTTPDelegate.__init__(self, context)
        self._is_sync = bool(options.get("sync_setup_teardown"))
        self._make(options)
        self._has_handle = True
        self._set_hooks(hooks)
        if token_callback is not None:
            self.set_token_callback(token_callback)

    def _make(self, options: Any) -> None:
        given = self._fill(abi.SSPOptions, options, "token_callback")
        new = ffi.lib.usher_ssp_delegate_new
        _border.passed(lambda: new(self.context._handle, ctypes.byref(given), self._result), options)


class SSPDelegate(_SSPDelegate):
    """Licences from an SSP licence server, with an SSM v1 session for each playback if `ssm_url` is given.

    The SDK's name is OTVSSPLicenseDelegate.
    """

    def __init__(
        self, context: Context, *, token_callback: TokenCallback | None = None, **options: Unpack[SSPOptions]
    ) -> None:
        """Makes a delegate.

        Args:
            context: its playbacks belong to the same context.
            token_callback: see set_token_callback().
            options: ``SSPOptions``.

        Raises:
            InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        self._open(context, options, hooks_of(context, self), token_callback)


class SSPV2Delegate(_SSPDelegate):
    """SSP V2 (OTVSSPLicenseDelegateV2): the first licence request of a playback sets up the playback's session.

    If the server refuses this request because of too many sessions, the library reports the event SETUP_ERROR. If the
    reply has no session token, the playback continues without a session (event NO_SESSION).
    """

    _options = SSPV2Options

    def __init__(
        self, context: Context, *, token_callback: TokenCallback | None = None, **options: Unpack[SSPV2Options]
    ) -> None:
        """Makes a delegate. Arguments and errors are those of ``SSPDelegate``; the options are ``SSPV2Options``."""
        self._open(context, options, hooks_of(context, self), token_callback)

    def _make(self, options: Any) -> None:
        given = self._fill(abi.SSPV2Options, options, "token_callback")
        given.ssp = ctypes.pointer(self._fill(abi.SSPOptions, options, "token_callback"))
        new = ffi.lib.usher_ssp_v2_delegate_new
        _border.passed(lambda: new(self.context._handle, ctypes.byref(given), self._result), options)
