"""Customer SSM: the operator's own session management. The library calls the host, which sends all requests itself."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from .. import _border
from .._c import abi, ffi, registry
from .._c.enums import LicenseType, Operation, Origin, RenewType, Status
from .._callbacks import report_to, subject
from .._errors import (
    HTTPStatusError,
    InvalidCompletionError,
    LimitError,
    ProtocolError,
    RedirectError,
    RefusedError,
    SessionError,
    TLSError,
    TooLargeError,
    TransportError,
    UsherTimeoutError,
)
from .._options import CustomerOptions
from .._question import Question, Reply, ask
from ..context import Context
from .base import Delegate

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class LicenseResponse:
    """The licence from the host's servers (OTVSSMLicenseResponse), or the reason why these servers gave no licence.

    Attributes:
        license: the licence for the CDM, up to 1 MiB. None: there is no licence, and `http_status`, `service_code` and
            `message` give the reason. repr() does not show the licence.
        heartbeat_s: the period of heartbeats or renewals in seconds, 0 to 1e9; 0: no period. A later answer may change
            the period.
        renew_type: what the library does each period. ENFORCED (the default) or DEFAULT: it calls license() for a
            renewal. HEARTBEAT: it calls heartbeat(). NONE: it does nothing. The first answer decides this. CDM is not
            valid here.
        http_status: HTTP status of the server, for the error; 0: none. If the answer to a renewal has no licence, the
            library retries the renewal in two cases: the status is 429 or 5xx, or the answer has neither HTTP status
            nor service code. Otherwise the session fails at once.
        service_code: the server's code, for the error; 0: none. 1007 in the answer that should open the session means
            too many sessions: SETUP_ERROR with a LimitError and the origin SSM. Every other code makes a RefusedError.
        message: one line for the error, at most 1000 bytes.
        origin: the server that failed, LICENSE or SSM; the explanation of `service_code` depends on it. LOCAL (the
            default): you do not know the server. The error then has the origin LICENSE (for Widevine renewals: SSM), or
            LOCAL if `http_status` and `service_code` are both 0.
    """

    license: bytes | None = field(default=None, repr=False)
    heartbeat_s: float = 0
    renew_type: RenewType = RenewType.ENFORCED
    http_status: int = 0
    service_code: int = 0
    message: str = ""
    origin: Origin = Origin.LOCAL


class CustomerRequest(Question[LicenseResponse]):
    """The library needs a licence from the host.

    The callback returns a LicenseResponse. If it returns LATER instead, the host calls answer() or fail() later, from
    any thread.

    Attributes:
        tag: the `tag` given to Player.play().
        key_system: a str, not a ``KeySystem``; it compares equal to a member: ``key_system == KeySystem.FAIRPLAY``.
        payload: the CDM's message: SPC, challenge.
        type: REQUEST or RENEWAL.
        asset_id: the asset ID of the licence request; None: not given, or the library itself makes the renewal.
    """

    _fails_as = Status.CALLBACK

    key_system: str
    payload: bytes
    type: LicenseType
    asset_id: bytes | None

    def _complete(self, value: LicenseResponse | None) -> None:
        if value is None:
            self._send_answer(ffi.lib.usher_complete_license, None)
            return
        license = abi.CustomerLicense(
            struct_size=ctypes.sizeof(abi.CustomerLicense),
            license=ffi.c_bytes(value.license),
            license_size=0 if value.license is None else len(value.license),
            heartbeat_s=value.heartbeat_s,
            renew_type=value.renew_type,
            http_status=value.http_status,
            service_code=value.service_code,
            message=ffi.c_string(value.message or None, "message"),
            origin=value.origin,
        )
        self._send_answer(ffi.lib.usher_complete_license, ctypes.byref(license))


class SessionCall(Question[Status]):
    """The library needs a heartbeat or teardown from the host.

    The heartbeat or teardown is done when the callback returns. If the callback returns LATER, it is done when the host
    calls answer() or fail().

    Attributes:
        tag: the `tag` given to Player.play().
        operation: HEARTBEAT or TEARDOWN.
    """

    _fails_as = Status.CALLBACK

    operation: Operation

    def answer(self, value: Status = Status.OK) -> None:
        """Gives the result.

        Args:
            value: the status of the call. OK: the call succeeded. For a heartbeat, SESSION, REFUSED and LIMIT mean that
                the server has ended the session: HEARTBEAT_ERROR follows at once with this status, and playback must
                stop. Any other status means that the heartbeat failed: the library retries it as long as the option
                `retry_permille` allows. For a teardown, SESSION means that the server no longer has the session: the
                teardown is done. Any other status but OK causes TEARDOWN_ERROR; a teardown is not retried. If your
                status is SESSION, REFUSED, LIMIT, TRANSPORT, TLS, TIMEOUT, HTTP, PROTOCOL, TOO_LARGE or REDIRECT, the
                errors of events have this status and the origin SSM. Otherwise they have the status CALLBACK and the
                origin LOCAL.

        Raises:
            InvalidCompletionError: the call already has an answer, or its deadline has passed.
            InvalidArgumentError: `value` is not a status. The call still needs its answer.
        """
        super().answer(value)

    def fail(self, cause: BaseException | None = None) -> None:
        """Reports a failure.

        If `cause` is an error that a server caused, such as a SessionError or a TransportError, the library gets the
        status of this class as the answer; see answer(). Otherwise the library gets CALLBACK, and retries a heartbeat.

        Raises:
            InvalidCompletionError: like answer().
        """
        self._fails_as = next((status for kind, status in _ENDS.items() if isinstance(cause, kind)), Status.CALLBACK)
        super().fail(cause)

    def _give(self, value: Status | None) -> None:
        with contextlib.suppress(InvalidCompletionError):
            self.answer(Status.OK if value is None else value)

    def _complete(self, value: Status | None) -> None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"not a Status: {type(value).__name__}")
        self._send_answer(ffi.lib.usher_complete_call, self._fails_as if value is None else value)


_ENDS: dict[type[BaseException], Status] = {
    LimitError: Status.LIMIT,
    RefusedError: Status.REFUSED,
    SessionError: Status.SESSION,
    TLSError: Status.TLS,
    TransportError: Status.TRANSPORT,
    UsherTimeoutError: Status.TIMEOUT,
    HTTPStatusError: Status.HTTP,
    ProtocolError: Status.PROTOCOL,
    TooLargeError: Status.TOO_LARGE,
    RedirectError: Status.REDIRECT,
}

LicenseCallback = Callable[[CustomerRequest], Reply[LicenseResponse]]
"""``lambda request: LicenseResponse(…)``. It may also return None (no licence), a concurrent.futures.Future, or LATER
if it keeps the request to answer it later. If the LicenseResponse that it returns is not valid, the request fails as
after an exception."""
SessionCallback = Union[Callable[[SessionCall], Reply[Status]], Callable[[], Reply[Status]]]  # noqa: UP007
"""``callback()`` or ``callback(call)``. When the function returns, the heartbeat or teardown is done. The function may
also return a Status, a concurrent.futures.Future, or LATER if it keeps the call to answer it later."""


class CustomerDelegate(Delegate):
    """Customer SSM (OTVCustomerSSMDelegate): the library calls the host instead of sending requests.

    Pass functions, override the methods in a subclass, or call set_callback(). The functions run on callback threads
    (in pumped mode inside pump()); for each playback the calls come one after another. The first licence opens the
    playback's session; the event SESSION_STARTED has the period of this session.

    An exception counts as a failure and becomes the ``__cause__`` of the errors that follow; see Context. This is also
    true for a heartbeat() without parameters. (C's ``simple_heartbeat`` fails only if it takes too long.)

    The callbacks and observers of one playback run one at a time. If a callback takes longer than its time limit, the
    observers get the events of the time-out only after this callback has returned.
    """

    _options = CustomerOptions

    def __init__(
        self,
        context: Context,
        *,
        license: LicenseCallback | None = None,
        heartbeat: SessionCallback | None = None,
        teardown: SessionCallback | None = None,
        certificate: bytes | None = None,
        **options: Unpack[CustomerOptions],
    ) -> None:
        """Makes a delegate.

        Args:
            context: its playbacks belong to the same context.
            license, heartbeat, teardown: functions that the library calls instead of the methods with these names.
            certificate: the application certificate, up to 1 MiB, which Playback.get_certificate() returns. Default:
                none; get_certificate() then raises StateError.
            options: ``CustomerOptions``.

        Raises:
            InvalidArgumentError: there is a heartbeat or teardown callback, but no licence callback.
            InvalidHandleError, ClosedError.
        """
        callbacks = Callbacks(
            context, self, CustomerDelegate, {"license": license, "heartbeat": heartbeat, "teardown": teardown}
        )
        self._open(context, callbacks, certificate, options)

    def _open(self, context: Context, callbacks: Callbacks, certificate: bytes | None, options: Any) -> None:
        super().__init__(context)
        given = self._fill(abi.CustomerOptions, options, "license heartbeat teardown certificate")
        certificate = None if certificate is None else _border.data(certificate, "certificate")
        given.certificate = ffi.c_bytes(certificate)
        given.certificate_size = 0 if certificate is None else len(certificate)
        callbacks.fill(given)
        given.user_data = registry.add(callbacks)
        given.destroy = registry.destroy
        new = ffi.lib.usher_customer_delegate_new
        _border.passed(lambda: new(context._handle, ctypes.byref(given), self._result), options)
        self._has_handle = True

    def set_callback(self, callback: object) -> None:
        """Sets or replaces the object whose methods the library calls (setCallback); None removes the callbacks.

        Args:
            callback: an object with the method license(request). Like this class it may also have heartbeat() or
                heartbeat(call), and teardown(call). The library keeps the object as long as it may call these methods.

        Raises:
            InvalidArgumentError: it has no method license().
            InvalidHandleError.
        """
        given = {name: getattr(callback, name, None) for name in ("license", "heartbeat", "teardown")}
        self._set_callbacks(None if callback is None else Callbacks(self.context, None, CustomerDelegate, given))

    def _set_callbacks(self, callbacks: Callbacks | None) -> None:
        if callbacks is None:
            ffi.lib.usher_delegate_set_customer_callbacks(self._handle, None, None, abi.DestroyFn())
            return
        given = abi.CustomerCallbacks(struct_size=ctypes.sizeof(abi.CustomerCallbacks))
        callbacks.fill(given)
        entry = registry.add(callbacks)
        ffi.lib.usher_delegate_set_customer_callbacks(self._handle, ctypes.byref(given), entry, registry.destroy)

    def license(self, request: CustomerRequest) -> Reply[LicenseResponse]:
        """Gets a licence from the host's servers. Override this method; it must answer, at once or later, within
        `license_timeout_ms`.

        Returns a LicenseResponse, None (no licence), a concurrent.futures.Future for one of them, or LATER.

        The host opens its session before it returns the first licence. If it opens a session and then returns no
        licence, or returns too late, it must end this session itself: the library does not call teardown() then.

        If the method returns a LicenseResponse that is not valid (for example with a negative period), the request
        fails as after an exception. If the host passes such a LicenseResponse to ``request.answer()``, this call raises
        InvalidArgumentError, and the host can answer again.

        Without a payload callback a renewal has the payload of the host's last request for this playback.
        """
        raise NotImplementedError

    def heartbeat(self, call: SessionCall) -> Reply[Status]:
        """Sends a heartbeat. Override this method; it must answer within `heartbeat_timeout_ms`.

        None or Status.OK means success, and an exception means failure. The method may also return another Status, a
        concurrent.futures.Future, or LATER if it keeps `call` to answer it later.

        The method may also have no parameter: ``heartbeat()``. Then it must not return LATER, since it has no `call` to
        answer. A function that you pass to the constructor may have either form, and so may a method of the object that
        you pass to set_callback().

        If you do not override it, the library calls nothing when a heartbeat is due, and reports no KEPT_ALIVE.
        """
        raise NotImplementedError

    def teardown(self, call: SessionCall) -> Reply[Status]:
        """Ends the session. Override this method; it must answer within `teardown_timeout_ms`.

        The library calls this method once, when a playback that had a licence closes, even if heartbeat() has answered
        SESSION. It does not call the method if the playback closes with CloseMode.LEAVE. The parameter is optional, as
        for heartbeat().

        If you do not override it, the session stays active at the host's servers: SESSION_ENDED has `left` True, and
        the next item of the player does not wait.
        """
        raise NotImplementedError


Run = Callable[[str, Question[Any], Callable[..., Any]], Any]


class Callbacks:
    """The callbacks of one customer SSM delegate. C gets the id of this object as ``user_data``.

    They are functions, or methods of `target`. The host, playbacks and the context keep the object `target` alive.
    """

    def __init__(
        self, context: Context, target: Any, base: type, given: dict[str, Any], run: Run | None = None
    ) -> None:
        self.context = weakref.ref(_border.instance(context, Context, "context"))
        self._run = run
        self._target = None if target is None else weakref.ref(target)
        self._given = {
            name: _border.function(function, name) for name, function in given.items() if function is not None
        }
        self._overridden = {
            name for name in given if target is not None and getattr(type(target), name) is not getattr(base, name)
        }

    def fill(self, structure: Any) -> None:
        """Sets the functions of a structure with the callbacks of customer SSM."""
        for name, function in _FUNCTIONS.items():
            if name in self._given or name in self._overridden:
                setattr(structure, name, function)

    def ask(self, name: str, question: Question[Any]) -> None:
        ask(
            question,
            lambda question: self._answer(name, question),
            lambda error: report_to(self.context(), name, error),
        )

    def _answer(self, name: str, question: Question[Any]) -> Any:
        function = self._given.get(name)
        if function is None:
            target = None if self._target is None else self._target()
            if target is None:
                raise RuntimeError("the delegate object no longer exists")
            function = getattr(target, name)
        if not _takes_question(function):
            plain, function = function, lambda _: plain()
        return function(question) if self._run is None else self._run(name, question, function)


def _takes_question(function: Callable[..., Any]) -> bool:
    """Whether a function takes an argument. A heartbeat or teardown callback may have no argument."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function of C may have no signature
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _asked_license(pointer: Any, number: int | None) -> None:
    callbacks = registry.get(number)
    if callbacks is None:
        return
    raw = pointer.contents
    request = CustomerRequest(
        raw.completion,
        *subject(raw.playback, raw.tag),
        key_system=ffi.text(raw.key_system),
        payload=ffi.copied(raw.payload, raw.payload_size) or b"",
        type=LicenseType(raw.type),
        asset_id=ffi.copied(raw.asset_id, raw.asset_id_size),
    )
    callbacks.ask("license", request)


def _asked_heartbeat(completion: int, handle: abi.PlaybackHandle, tag: int, number: int | None) -> None:
    callbacks = registry.get(number)
    if callbacks is not None:
        callbacks.ask("heartbeat", SessionCall(completion, *subject(handle, tag), operation=Operation.HEARTBEAT))


def _asked_teardown(completion: int, handle: abi.PlaybackHandle, tag: int, number: int | None) -> None:
    callbacks = registry.get(number)
    if callbacks is not None:
        callbacks.ask("teardown", SessionCall(completion, *subject(handle, tag), operation=Operation.TEARDOWN))


_on_license = abi.CustomerLicenseFn(_asked_license)
_on_heartbeat = abi.CustomerCallFn(_asked_heartbeat)
_on_teardown = abi.CustomerCallFn(_asked_teardown)
_FUNCTIONS: dict[str, Any] = {"license": _on_license, "heartbeat": _on_heartbeat, "teardown": _on_teardown}
