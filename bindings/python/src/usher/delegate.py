"""Licence delegates: how licences are asked for. Here: the SSP delegate with SSM v1."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import _abi, _ffi, _registry
from ._enums import AppendVersion, HeartbeatMissing, HeartbeatStart, KeepAlive, Resetup, Status, WireFormat
from ._question import Question, Reply, ask
from .context import Context, report_to

if TYPE_CHECKING:
    from typing_extensions import Self


class TokenRequest(Question[str]):
    """The library asks for a fresh content token: a header value, not empty, no CR, LF or NUL, at most 64 kB."""

    _fails_as = Status.NO_TOKEN

    def _complete(self, value: str | None) -> None:
        _ffi.lib.usher_complete_token(self._completion, _ffi.c_string(value, "token"))


TokenCallback = Callable[[TokenRequest], Reply[str]]
"""``lambda request: "token"``. May also return None (there is none), a concurrent.futures.Future, or LATER after keeping the request."""


class SSPDelegate:
    """Asks an SSP licence server for licences, with an SSM v1 session per playback where `ssm_url` is given.

    Freed with close() or at the end of a ``with`` block; it lives on inside the library while playbacks or the context use it.
    """

    def __init__(
        self,
        context: Context,
        *,
        license_url: str,
        certificate_url: str | None = None,
        ssm_url: str | None = None,
        token_callback: TokenCallback | None = None,
        sync_setup_teardown: bool = False,
        ssm_append_version: AppendVersion | int = AppendVersion.AUTO,
        ssm_api_version: str | None = None,
        setup_url: str | None = None,
        heartbeat_url: str | None = None,
        teardown_url: str | None = None,
        renewal_url: str | None = None,
        token_header: str | None = None,
        extra_headers: str | None = None,
        setup_body: str | None = None,
        keep_alive_body: str | None = None,
        setup_timeout_ms: int = 0,
        teardown_timeout_ms: int = 0,
        token_timeout_ms: int = 0,
        payload_timeout_ms: int = 0,
        heartbeat_missing: HeartbeatMissing | int = HeartbeatMissing.ERROR,
        heartbeat_start: HeartbeatStart | int = HeartbeatStart.SETUP,
        lenient_numbers: bool = False,
        period_min_ms: int = 0,
        period_max_ms: int = 0,
        period_updates: bool = False,
        jitter_permille: int = 0,
        retry_permille: int = 0,
        keep_alive_failures_max: int = 0,
        keep_alive: KeepAlive | int = KeepAlive.AUTO,
        resetup_on_extra_license: Resetup | int = Resetup.CALLBACK_ONLY,
        wire_format: WireFormat | int = WireFormat.AUTO,
        teardown_retries: int = 0,
        keep_alive_timeout_ms: int = 0,
    ) -> None:
        """Makes a delegate. 0 and None mean the default that usher_ssp_options names beside each option; ``usher.OFF`` means "none".

        Args:
            context: its playbacks belong to the same context.
            license_url: licence server.
            certificate_url: server of the FairPlay application certificate.
            ssm_url: Secure Session Manager, with or without trailing "/" and "/v1".
            token_callback: see set_token_callback().
            sync_setup_teardown: play() waits for set-up and Playback.close() for teardown, at most `setup_timeout_ms` / `teardown_timeout_ms`.
            extra_headers: "Name: value" lines separated by newlines.
            setup_body: JSON object sent as the body of set-up; "" for an empty body.

        Raises:
            InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        self.context = context
        self._handle = _abi.DelegateHandle()
        self._lock = threading.Lock()
        self._freed = True
        options = _abi.SSPOptions(
            struct_size=ctypes.sizeof(_abi.SSPOptions),
            license_url=_ffi.c_string(license_url, "license_url"),
            certificate_url=_ffi.c_string(certificate_url, "certificate_url"),
            ssm_url=_ffi.c_string(ssm_url, "ssm_url"),
            sync_setup_teardown=int(sync_setup_teardown),
            ssm_append_version=ssm_append_version,
            ssm_api_version=_ffi.c_string(ssm_api_version, "ssm_api_version"),
            setup_url=_ffi.c_string(setup_url, "setup_url"),
            heartbeat_url=_ffi.c_string(heartbeat_url, "heartbeat_url"),
            teardown_url=_ffi.c_string(teardown_url, "teardown_url"),
            renewal_url=_ffi.c_string(renewal_url, "renewal_url"),
            token_header=_ffi.c_string(token_header, "token_header"),
            extra_headers=_ffi.c_string(extra_headers, "extra_headers"),
            setup_body=_ffi.c_string(setup_body, "setup_body"),
            keep_alive_body=_ffi.c_string(keep_alive_body, "keep_alive_body"),
            setup_timeout_ms=_ffi.integer(setup_timeout_ms, 32, "setup_timeout_ms"),
            teardown_timeout_ms=_ffi.integer(teardown_timeout_ms, 32, "teardown_timeout_ms"),
            token_timeout_ms=_ffi.integer(token_timeout_ms, 32, "token_timeout_ms"),
            payload_timeout_ms=_ffi.integer(payload_timeout_ms, 32, "payload_timeout_ms"),
            heartbeat_missing=heartbeat_missing,
            heartbeat_start=heartbeat_start,
            lenient_numbers=int(lenient_numbers),
            period_min_ms=_ffi.integer(period_min_ms, 32, "period_min_ms"),
            period_max_ms=_ffi.integer(period_max_ms, 32, "period_max_ms"),
            period_updates=int(period_updates),
            jitter_permille=_ffi.integer(jitter_permille, 32, "jitter_permille"),
            retry_permille=_ffi.integer(retry_permille, 32, "retry_permille"),
            keep_alive_failures_max=_ffi.integer(keep_alive_failures_max, 32, "keep_alive_failures_max"),
            keep_alive=keep_alive,
            resetup_on_extra_license=resetup_on_extra_license,
            wire_format=wire_format,
            teardown_retries=_ffi.integer(teardown_retries, 32, "teardown_retries"),
            keep_alive_timeout_ms=_ffi.integer(keep_alive_timeout_ms, 32, "keep_alive_timeout_ms"),
        )
        _ffi.lib.usher_ssp_delegate_new(context._handle, ctypes.byref(options), ctypes.byref(self._handle))
        self._freed = False
        if token_callback is not None:
            self.set_token_callback(token_callback)

    def set_token_callback(self, callback: TokenCallback | None) -> None:
        """Sets, replaces or (None) clears the token callback: asked for a fresh content token when a further licence request comes, or where
        Player.play() gave none.

        The callback runs on a library thread and has `token_timeout_ms` to answer: ``lambda request: "token"``. Returning None means that there is
        none (the licence fails with NoTokenError). To answer later, return a ``concurrent.futures.Future``, or keep the request, return
        ``usher.LATER``, and call ``request.answer(token)`` or ``request.fail()`` from any thread. An exception counts as None, and becomes the
        ``__cause__`` of that NoTokenError; see Context.

        Raises:
            InvalidHandleError.
        """
        if callback is None:
            _ffi.lib.usher_delegate_set_token_callback(self._handle, _abi.TokenFn(), None, _abi.DestroyFn())
            return
        entry = _registry.add(_TokenSource(weakref.ref(self.context), callback))
        _ffi.lib.usher_delegate_set_token_callback(self._handle, _on_token, entry, _registry.destroy)

    def close(self) -> None:
        """Frees it; playbacks that use it go on. Again: does nothing."""
        with self._lock:
            if self._freed:
                return
            self._freed = True
        if not self.context.closed:
            _ffi.lib.usher_delegate_free(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_freed", True) and not self.context.closed:
            self._freed = True
            _ffi.free_quietly(_ffi.lib.usher_delegate_free, self._handle)


@dataclass(frozen=True)
class _TokenSource:
    """What C's user_data means for a token callback."""

    context: weakref.ref[Context]
    callback: TokenCallback


def _asked_token(completion: int, handle: _abi.PlaybackHandle, tag: int, number: int | None) -> None:
    source = _registry.get(number)
    if source is None:
        return
    item = _registry.get(tag)
    request = TokenRequest(completion, None if item is None else item.playback(handle), None if item is None else item.tag)
    ask(request, source.callback, lambda error: report_to(source.context(), "token", error))


_on_token = _abi.TokenFn(_asked_token)
