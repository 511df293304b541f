"""Playbacks. Each of them is one item that plays on a player, with its session and its licences."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _border
from ._answers import Inquiry, as_data, as_license, on_response, read, take
from ._c import abi, ffi, registry
from ._c.enums import CloseMode, KeySystem, LicenseType, SessionState, Status
from ._callbacks import end, report_to
from ._errors import InvalidHandleError, UsherError
from ._loads import Loads
from ._part import Part
from ._question import Causes, Question, Reply, ask
from .license import License

if TYPE_CHECKING:
    from .context import Context
    from .delegates.base import Delegate
    from .player import Player


class PayloadRequest(Question[bytes]):
    """The library must renew a licence, and needs a new challenge from the CDM, 1 byte to 1 MiB.

    Attributes:
        key_system: a str, not a ``KeySystem``, but it compares equal to a member.
    """

    _fails_as = Status.CALLBACK

    key_system: str

    def _complete(self, value: bytes | None) -> None:
        self._send_answer(ffi.lib.usher_complete_payload, ffi.c_bytes(value), 0 if value is None else len(value))


class Playback(Loads, Part):
    """One item on a player, with at most one SSM session and its licences. Player.play() makes it.

    close() closes it; free() frees the handle. The end of a ``with`` block does both, and so does Python when the last
    reference is gone. Threads: any. Methods that wait are not allowed in callbacks.
    """

    _free = ffi.lib.usher_playback_free

    def __init__(self, context: Context, player: Player, tag: object) -> None:
        """Only Player.play() calls it."""
        Loads.__init__(self)
        Part.__init__(self, context, abi.PlaybackHandle())
        #: The player. The playback keeps it, because freeing a player closes its playback.
        self.player = player
        self.tag = tag
        self._causes = Causes()
        self._is_adopted = False
        """Whether `_handle` has a value. Each event reads this attribute, which is faster than reading the handle."""
        self._has_handle = True

    # ---- session -----------------------------------------------------------------------------------------------------

    @property
    def session_state(self) -> SessionState:
        """The state of the playback's session. Raises InvalidHandleError."""
        out = ctypes.c_int32()
        ffi.lib.usher_playback_session_state(self._handle, ctypes.byref(out))
        return SessionState(out.value)

    def wait_session(self, timeout_ms: int = 0) -> None:
        """Waits for the set-up of the session. Returns when the session is active, or if the playback needs no session.

        Do not call it in a callback. With SSP V2, with customer SSM, and with a multi-instance delegate and no
        `content_id`, the session begins with the first licence request; before that request this call raises
        StateError.

        Args:
            timeout_ms: longest wait, milliseconds on the context's clock; 0: the delegate's `setup_timeout_ms`
                (customer SSM: 5000).

        Raises:
            UsherTimeoutError: the set-up has not ended yet.
            StateError: the session begins with the first licence request, and there is none.
            LimitError, RefusedError, HTTPStatusError, TransportError, TLSError, ProtocolError, TooLargeError,
            RedirectError, NoTokenError, ReplacedError, ClosedError: the set-up failed, or the playback was closed.
            InvalidHandleError, WouldDeadlockError.
        """
        timeout, out = ffi.integer(timeout_ms, 32, "timeout_ms"), abi.ResponseHandle()
        status = ffi.lib.usher_playback_wait_session(self._handle, timeout, ctypes.byref(out))
        self._bytes(out, status, "usher_playback_wait_session")

    def wait_closed(self, timeout_ms: int = abi.OFF) -> None:
        """Waits until the playback is closed; does not close it. Do not call it in a callback.

        In threaded mode it also waits until the observers have got PLAYBACK_CLOSED.

        Args:
            timeout_ms: longest wait, milliseconds on the context's clock. Default: no limit.

        Raises:
            UsherTimeoutError, InvalidHandleError, WouldDeadlockError.
        """
        ffi.lib.usher_playback_wait_closed(self._handle, ffi.integer(timeout_ms, 32, "timeout_ms"))

    def set_content_token(self, token: str) -> None:
        """Gives the content token to a playback that was started without one and still waits for it.

        Raises:
            StateError: the playback already has a token, or no longer waits for a token.
            InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        given = ffi.c_string(_border.text(token, "token"), "token")
        _border.passed(lambda: ffi.lib.usher_playback_set_content_token(self._handle, given), {"token": token})

    def suspend(self) -> None:
        """Tells the library that the host goes to sleep, or does not show this item for some time.

        Raises InvalidHandleError.

        Do not call it for background mode and picture-in-picture, which need no change. If the delegate's option
        `suspend` is KEEP, the call changes nothing. If it is PAUSE, the library sends no keep-alives until resume().
        """
        ffi.lib.usher_playback_suspend(self._handle)

    def resume(self) -> None:
        """Ends the effect of suspend(). Raises InvalidHandleError.

        If a keep-alive became due meanwhile, the library sends it at once. Until the server replies, the session is
        doubtful (event SESSION_DOUBTFUL). If the keep-alive fails, HEARTBEAT_ERROR follows.
        """
        ffi.lib.usher_playback_resume(self._handle)

    # ---- licences ----------------------------------------------------------------------------------------------------

    def get_license(
        self,
        key_system: KeySystem | str,
        payload: bytes,
        *,
        type: LicenseType | int = LicenseType.REQUEST,
        asset_id: bytes | str | None = None,
        timeout_ms: int = 0,
    ) -> License:
        """Asks for a licence, waits for it, and returns it. Do not call this method in a callback.

        Args:
            key_system: ``KeySystem`` or its identifier, with or without "urn:uuid:".
            payload: the CDM's message: FairPlay SPC, Widevine challenge, PlayReady SOAP, Clear Key JSON; 1 byte to 1
                MiB.
            asset_id: the `skd:` URL or asset ID (base64 of JSON with "ContentId"), up to 64 kB. Overridden methods of
                the delegate get it, and a multi-instance delegate uses it to find the content token.
            timeout_ms: the limit for the whole request, including the wait for the session, in milliseconds on the
                context's clock; 0 means 20000. OFF: no limit for the whole request, only for each step. While the
                library waits for a slot (`slot_wait_ms` of the SSP delegate), the limit begins again whenever it has
                passed.

        Raises:
            UsherError: the request failed; a subclass gives the reason.
            WouldDeadlockError, InvalidHandleError, InvalidArgumentError.
        """
        request, out = _license_request(key_system, payload, type, asset_id, timeout_ms), abi.ResponseHandle()
        status = ffi.lib.usher_playback_get_license(self._handle, ctypes.byref(request), ctypes.byref(out))
        try:
            given = {"key_system": key_system}
            return as_license(_border.passed(lambda: take(out, status, "usher_playback_get_license"), given))
        except UsherError as error:
            self._causes.chain(error)
            raise

    def request_license(
        self,
        key_system: KeySystem | str,
        payload: bytes,
        *,
        type: LicenseType | int = LicenseType.REQUEST,
        asset_id: bytes | str | None = None,
        timeout_ms: int = 0,
        callback: Callable[[Future[License]], object] | None = None,
    ) -> Future[License]:
        """Asks for a licence and returns at once. The other arguments are those of get_license().

        Args:
            callback: a function that gets the finished future. It runs on the same threads as other callbacks (see
                Context), in order with the other callbacks of the playback.

        Returns:
            A future that gets the licence or the error, exactly once. You cannot cancel it; close the playback instead.

        Raises:
            InvalidHandleError, InvalidArgumentError, ClosedError: no request was made.
        """
        request = _license_request(key_system, payload, type, asset_id, timeout_ms)
        if callback is not None:
            _border.function(callback, "callback")
        inquiry = Inquiry(weakref.ref(self.context), self._causes, as_license, callback)
        entry = registry.add(inquiry)
        ask = ffi.lib.usher_playback_request_license
        _border.passed(
            lambda: ask(self._handle, ctypes.byref(request), on_response, entry, registry.destroy),
            {"key_system": key_system},
        )
        return inquiry.future

    def get_certificate(self, timeout_ms: int = 0) -> bytes:
        """Returns the certificate of the delegate: the bytes that the server sent, which are DER.

        Do not call it in a callback.

        The delegate downloads the certificate once, and then keeps it in memory.

        Args:
            timeout_ms: longest wait, milliseconds on the context's clock; 0 means 10000.

        Raises:
            StateError: the delegate has no certificate URL (customer SSM: no `certificate`).
            UsherError: the library did not get the certificate; a subclass gives the reason.
            InvalidHandleError, WouldDeadlockError, ClosedError.
        """
        timeout, out = ffi.integer(timeout_ms, 32, "timeout_ms"), abi.ResponseHandle()
        status = ffi.lib.usher_playback_get_certificate(self._handle, timeout, ctypes.byref(out))
        return self._bytes(out, status, "usher_playback_get_certificate")

    def request_certificate(self, callback: Callable[[Future[bytes]], object] | None = None) -> Future[bytes]:
        """Asks for the delegate's certificate, and returns a future for it. The future and the callback work as those
        of request_license().

        Raises:
            StateError: the delegate has no certificate URL (customer SSM: no `certificate`).
        """
        inquiry = Inquiry(weakref.ref(self.context), self._causes, as_data, callback)
        entry = registry.add(inquiry)
        ffi.lib.usher_playback_request_certificate(self._handle, on_response, entry, registry.destroy)
        return inquiry.future

    def get_content_id(self, url: str | bytes, timeout_ms: int = 0) -> bytes:
        """Returns the content identifier that the delegate finds in a `skd:` URL or asset ID, for the SPC.

        Do not call it in a callback.

        The built-in rule removes the scheme, cuts the text at "?" or "#", percent-decodes it, and decodes any variant
        of base64. If the text is not base64 of JSON, the text itself is the identifier.

        Args:
            url: 1 byte to 64 kB.
            timeout_ms: longest wait, milliseconds on the context's clock; 0 means 10000.

        Raises:
            CallbackError, UsherTimeoutError: an overridden content_identifier() gave no value, or none in time.
            InvalidArgumentError, InvalidHandleError, WouldDeadlockError, ClosedError.
        """
        timeout, out = ffi.integer(timeout_ms, 32, "timeout_ms"), abi.ResponseHandle()
        text = ffi.as_bytes(url, "url") or b""
        status = ffi.lib.usher_playback_get_content_id(
            self._handle, ffi.c_bytes(text), len(text), timeout, ctypes.byref(out)
        )
        return self._bytes(out, status, "usher_playback_get_content_id")

    def request_content_id(
        self, url: str | bytes, callback: Callable[[Future[bytes]], object] | None = None
    ) -> Future[bytes]:
        """Asks for the content identifier of a URL, and returns a future for it. The future and the callback work as
        those of request_license()."""
        inquiry = Inquiry(weakref.ref(self.context), self._causes, as_data, callback)
        text = ffi.as_bytes(url, "url") or b""
        given = ffi.c_bytes(text), len(text)
        ffi.lib.usher_playback_request_content_id(
            self._handle, *given, on_response, registry.add(inquiry), registry.destroy
        )
        return inquiry.future

    def _bytes(self, out: abi.ResponseHandle, status: int, what: str) -> bytes:
        try:
            return take(out, status, what).data
        except UsherError as error:
            self._causes.chain(error)
            raise

    # ---- closing -----------------------------------------------------------------------------------------------------

    def close(self, mode: CloseMode | int = CloseMode.DEFAULT) -> None:
        """Closes the playback. `mode` says whether the library tears the session down or leaves it.

        Licence requests that still wait fail with ClosedError. The call returns at once; with a sync delegate (option
        `sync_setup_teardown`) it waits until the playback is closed, at most for `teardown_timeout_ms`. PLAYBACK_CLOSED
        is the last event of the playback. A call after free() does nothing. A second call does nothing, with one
        exception: if the first call left the session, a second call with TEARDOWN tears it down, and the library
        reports SESSION_ENDED again.

        Raises:
            InvalidArgumentError: `mode` is not a ``CloseMode``.
            StateError: the host left the session, and the library never got the token of this session.
        """
        wanted = _border.member(mode, CloseMode, "mode")
        if not self._has_handle:
            return
        try:
            end(self.context, ffi.lib.usher_playback_close, self._handle, wanted)
        except InvalidHandleError:
            if self._has_handle:  # another thread freed the playback meanwhile, which closed it
                raise

    def free(self) -> None:
        """Frees the handle. Closes the playback with the default mode if it is open.

        With a sync delegate (option `sync_setup_teardown`) it waits as close() does. A second call does nothing.
        """
        self._give_back()

    def __exit__(self, *exception: object) -> None:
        self.close()
        self.free()

    def _state(self) -> str:
        return ", ".join(filter(None, [_border.shown_tag(self.tag), self._session_words()]))

    def _session_words(self) -> str:
        try:
            return f"session {self.session_state.name}"
        except UsherError as error:  # another thread freed the playback, or this is the child of fork()
            return error.status.name

    def _adopt(self, handle: abi.PlaybackHandle) -> None:
        """Sets the handle, either after play(), or in a callback that runs before play() returns."""
        if not self._handle.value:
            self._handle = abi.PlaybackHandle(handle.value)
            self.context._playbacks[handle.value or 0] = self
            self._is_adopted = True


PayloadCallback = Callable[[PayloadRequest], Reply[bytes]]
"""``lambda request: challenge``. It may also return None (no challenge), a concurrent.futures.Future, or LATER if it
keeps the request to answer it later."""
RenewedCallback = Callable[["Playback", License], object]
"""``renewed(playback, license)``"""


@dataclass(frozen=True, slots=True)
class Item:
    """What must remain of a playback's state after Python has freed the Playback object.

    C gets the id of this object as ``user_data`` and as ``tag``.
    """

    context: weakref.ref[Context]
    reference: Callable[[], Playback | None]
    tag: object
    payload: PayloadCallback | None
    renewed: RenewedCallback | None
    #: The playback's delegate, kept because the library may call its methods until the playback is closed.
    delegates: list[Delegate | None]

    def playback(self, handle: abi.PlaybackHandle) -> Playback | None:
        """Returns the playback; None if Python has freed the object."""
        playback = self.reference()
        if playback is not None:
            playback._adopt(handle)
        return playback


def _license_request(
    key_system: KeySystem | str, payload: bytes, type: LicenseType | int, asset_id: bytes | str | None, timeout_ms: int
) -> abi.LicenseRequest:
    payload = _border.data(payload, "payload")
    name = key_system.value if isinstance(key_system, KeySystem) else key_system
    asset = ffi.as_bytes(asset_id, "asset_id")
    return abi.LicenseRequest(
        struct_size=ctypes.sizeof(abi.LicenseRequest),
        key_system=ffi.c_string(name, "key_system"),
        type=_border.member(type, LicenseType, "type"),
        timeout_ms=ffi.integer(timeout_ms, 32, "timeout_ms"),
        payload=ffi.c_bytes(payload),
        payload_size=len(payload),
        asset_id=ffi.c_bytes(asset),
        asset_id_size=0 if asset is None else len(asset),
    )


def _asked_payload(
    completion: int, handle: abi.PlaybackHandle, key_system: bytes, tag: int, number: int | None
) -> None:
    item = registry.get(number)
    if item is None or item.payload is None:
        return
    request = PayloadRequest(completion, item.playback(handle), item.tag, key_system=ffi.text(key_system))
    ask(request, item.payload, lambda error: report_to(item.context(), "payload", error))


def _pass_renewed_license(handle: abi.PlaybackHandle, pointer: Any, tag: int, number: int | None) -> None:
    item = registry.get(number)
    if item is None or item.renewed is None or pointer.contents.error.status != Status.OK:
        return
    playback = item.playback(handle)
    if playback is None:
        return
    try:
        item.renewed(playback, as_license(read(pointer.contents)))
    except BaseException as error:
        report_to(item.context(), "renewed", error)


on_payload = abi.PayloadFn(_asked_payload)
on_renewed = abi.LicenseFn(_pass_renewed_license)
