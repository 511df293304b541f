"""SSP delegates: licences from an SSP licence server, with sessions of a session manager (SSM)."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypedDict

from .._c import abi, ffi
from .._c.enums import AppendVersion, HeartbeatMissing, HeartbeatStart, KeepAlive, Resetup, Suspend, WireFormat
from .base import TokenCallback
from .hooks import Hooked, HTTPDelegate, hooks_of

if TYPE_CHECKING:
    from typing_extensions import Required, Unpack

    from ..context import Context


class SSPOptions(TypedDict, total=False):
    """Options of SSP delegates; see usher_ssp_options. 0 and None mean the default; OFF means "none".

    license_url: URL of the licence server. Required.
    certificate_url: URL of the FairPlay application certificate.
    ssm_url: URL of the session manager, with or without "/" and "/v1" at the end. Default: playbacks have no session.
    sync_setup_teardown: play() waits for the set-up, at most `setup_timeout_ms`; close() and free() of playbacks, and
        stop() and close() of players, wait for the teardown, at most `teardown_timeout_ms`.
    extra_headers: "Name: value" lines separated by newlines.
    setup_body: JSON object sent as the body of set-up; "" for an empty body.
    slot_wait_ms: how long the library repeats a set-up that the server refuses because the account has too many
        sessions, milliseconds. Default: the library does not repeat it.
    """

    license_url: Required[str]
    certificate_url: str | None
    ssm_url: str | None
    sync_setup_teardown: bool
    ssm_append_version: AppendVersion | int
    ssm_api_version: str | None
    setup_url: str | None
    heartbeat_url: str | None
    teardown_url: str | None
    renewal_url: str | None
    token_header: str | None
    extra_headers: str | None
    setup_body: str | None
    keep_alive_body: str | None
    setup_timeout_ms: int
    teardown_timeout_ms: int
    token_timeout_ms: int
    payload_timeout_ms: int
    heartbeat_missing: HeartbeatMissing | int
    heartbeat_start: HeartbeatStart | int
    lenient_numbers: bool
    period_min_ms: int
    period_max_ms: int
    period_updates: bool
    jitter_permille: int
    retry_permille: int
    keep_alive_failures_max: int
    keep_alive: KeepAlive | int
    resetup_on_extra_license: Resetup | int
    wire_format: WireFormat | int
    teardown_retries: int
    token_wait_ms: int
    hook_timeout_ms: int
    suspend: Suspend | int
    keep_alive_timeout_ms: int
    slot_wait_ms: int


class SSPV2Options(SSPOptions, total=False):
    """Options of SSP V2 delegates; see usher_ssp_v2_options.

    SSP V2 delegates ignore `setup_url`, `setup_body` and `heartbeat_start`.

    teardown_on_close: whether close() tears the session down. Default: no; the session expires at the head-end.
    leave_on_zap: whether a zap leaves the session of the old item, so that it expires at the head-end. Default: no; a
        zap tears this session down, and the next item waits for the teardown.
    token_field, period_field, enforced_field: JSON paths ("a.b") in the licence reply.
    token_reply_header: the reply header with the session token, if the body has none.
    period_default_ms: the period if the reply has none, milliseconds. Default 60000; OFF: the library then sends no
        keep-alives.
    """

    teardown_on_close: bool
    leave_on_zap: bool
    token_field: str | None
    period_field: str | None
    enforced_field: str | None
    token_reply_header: str | None
    period_default_ms: int


class _SSPDelegate(HTTPDelegate):
    def _open(self, context: Context, options: Any, hooks: Hooked | None, token_callback: TokenCallback | None) -> None:
        HTTPDelegate.__init__(self, context)
        self._is_sync = bool(options.get("sync_setup_teardown"))
        self._make(options)
        self._has_handle = True
        self._set_hooks(hooks)
        if token_callback is not None:
            self.set_token_callback(token_callback)

    def _make(self, options: Any) -> None:
        given = ffi.filled(abi.SSPOptions, options)
        ffi.lib.usher_ssp_delegate_new(self.context._handle, ctypes.byref(given), self._result)


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

    def __init__(
        self, context: Context, *, token_callback: TokenCallback | None = None, **options: Unpack[SSPV2Options]
    ) -> None:
        """Makes a delegate. Arguments and errors are those of ``SSPDelegate``; the options are ``SSPV2Options``."""
        self._open(context, options, hooks_of(context, self), token_callback)

    def _make(self, options: Any) -> None:
        own = {name for name, *_ in abi.SSPV2Options._fields_} - {"struct_size", "ssp"}
        ssp = ffi.filled(abi.SSPOptions, {name: value for name, value in options.items() if name not in own})
        given = ffi.filled(abi.SSPV2Options, {name: value for name, value in options.items() if name in own})
        given.ssp = ctypes.pointer(ssp)
        ffi.lib.usher_ssp_v2_delegate_new(self.context._handle, ctypes.byref(given), self._result)
