"""The error classes, one for each status. Where a built-in exception has the same meaning, the class is a subclass of
it: ``except TimeoutError`` also catches a UsherTimeoutError."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._c.enums import Operation, Origin, Status, TLSFault


@dataclass(frozen=True)
class Explanation:
    """The meaning of an error in words, for viewers and support desks.

    ``summary`` is one sentence for viewers, ``advice`` says what to do. ``known`` is True if the server's code is in
    the library's table; otherwise both texts describe only the kind of the error. ``source`` names the table, e.g.
    "SSM error codes".
    """

    summary: str
    advice: str
    known: bool
    source: str = ""


@dataclass(frozen=True)
class LegacyCodes:
    """The numbers that the React Native player, the Android player and the Apple SDK use for an error. Hosts that
    migrate from them need these numbers.

    Attributes:
        react_native: 6001 set-up, 6002 teardown, 6003 heartbeat, 6004 too many sessions, 50xx licences; 0: no number
            fits.
        android_what: -1352 set-up, -1353 heartbeat, -1354 teardown; 0: no number fits.
        android_extra: the ``errorCode`` of the SSM; 0 if there is none.
        apple_internal: 3010 set-up, 3020 teardown, 3030 heartbeat, 3050 any other request; 0: no number fits. If the
            status is CALLBACK, the number is 3040 instead of 3030 or 3050.
        apple_code: the HTTP status, -1 without an HTTP reply.
    """

    react_native: int
    android_what: int
    android_extra: int
    apple_internal: int
    apple_code: int


class UsherError(Exception):
    """An error of the library or of a server. Functions raise it, and futures and events (``Event.error``) contain it.

    Attributes:
        status: ``Status``: the library's code for the reason.
        origin: ``Origin``: the server that replied; ``Origin.LOCAL`` for the library itself.
        operation: ``Operation``: the operation that failed.
        http_status: the HTTP status; -1 if there was no HTTP reply.
        service_code: the ``errorCode`` of the server; 0 if it sent none. The same number has different meanings at
            different origins.
        message: the message of the server, or one line of the library. It never contains a token or key.
        must_stop: the player must stop this playback.
        orphan_possible: the head-end may hold a session whose token the library did not get. This session ends when it
            expires.
        already_reported: a licence request failed because its session failed, and the event SETUP_ERROR or
            HEARTBEAT_ERROR has already reported this failure. Do not show it on the screen a second time.
        retry_after: how long the server asks you to wait before you try again, in seconds; 0: it did not say.
        tls_fault: ``TLSFault``: why there was no secure connection.
    """

    def __init__(
        self,
        message: str = "",
        *,
        status: Status = Status.OK,
        origin: Origin = Origin.LOCAL,
        operation: Operation = Operation.NONE,
        http_status: int = -1,
        service_code: int = 0,
        must_stop: bool = False,
        orphan_possible: bool = False,
        already_reported: bool = False,
        retry_after: float = 0,
        tls_fault: TLSFault = TLSFault.NONE,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.origin = origin
        self.operation = operation
        self.http_status = http_status
        self.service_code = service_code
        self.must_stop = must_stop
        self.orphan_possible = orphan_possible
        self.already_reported = already_reported
        self.retry_after = retry_after
        self.tls_fault = tls_fault

    def __str__(self) -> str:
        parts = [self.message or self.status.name]
        if self.operation is not Operation.NONE:
            parts.append(f"{self.operation.name.lower()} at {self.origin.name.lower()}")
        if self.http_status > 0:
            parts.append(f"HTTP {self.http_status}")
        if self.service_code:
            parts.append(f"code {self.service_code}")
        return ", ".join(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,), self.__dict__

    def explain(self) -> Explanation:
        """Explains the error in words. If the library's table for the origin has the service code, the words are about
        this code; otherwise they are about the kind of the error. Threads: any."""
        from ._c.ffi import explained_error

        return explained_error(
            self.origin,
            self.status,
            self.service_code,
            operation=self.operation,
            http_status=self.http_status,
            tls_fault=self.tls_fault,
        )

    @property
    def legacy_codes(self) -> LegacyCodes:
        """The numbers that the operator's SDKs use for this error. Threads: any."""
        from ._c.ffi import legacy_codes

        return legacy_codes(self)


class InvalidArgumentError(UsherError, ValueError):
    """An argument is missing, malformed or out of range."""


class InvalidHandleError(UsherError, ValueError):
    """The object was freed, or its context was freed."""


class ClosedError(UsherError, RuntimeError):
    """The context, player or playback was closed before the operation was complete."""


class ReplacedError(ClosedError):
    """The host started another item on the same player before the operation was complete."""


class NoDelegateError(UsherError, LookupError):
    """Neither the playback nor the context has a licence delegate."""


class UsherTimeoutError(UsherError, TimeoutError):
    """The time limit has passed. The operation may still continue."""


class WouldDeadlockError(UsherError, RuntimeError):
    """A function that waits was called inside a callback or on the thread that pumps, where it could wait for ever."""


class ForkedError(UsherError, RuntimeError):
    """The host called the library in a child process of fork()."""


class ResourceError(UsherError, OSError):
    """The operating system refused memory, a thread or a file descriptor."""


class CallbackError(UsherError, RuntimeError):
    """A callback of the host raised an exception or gave no value."""


class InvalidCompletionError(UsherError, ValueError):
    """The question of the library already has an answer, or its deadline has passed."""


class StateError(UsherError, RuntimeError):
    """The call is not possible in the present state."""


class TransportError(UsherError, ConnectionError):
    """There was no HTTP reply: the connection was refused or reset, the host is unreachable, its name was not resolved,
    or the proxy failed."""


class TLSError(TransportError):
    """There was no HTTP reply: the TLS handshake failed, or the library did not accept the certificate."""


class HTTPStatusError(UsherError, OSError):
    """The server replied with an HTTP error status and no service code."""


class RefusedError(UsherError, PermissionError):
    """The server refused the request and sent an error code; see ``service_code``."""


class LimitError(RefusedError):
    """The account already plays the allowed number of streams (code 1007 from the SSM)."""


class ProtocolError(UsherError, ValueError):
    """The library cannot read the reply: it is not JSON, or a field is missing or has the wrong type."""


class TooLargeError(UsherError, OverflowError):
    """The reply is larger than ``max_response_bytes``."""


class NoTokenError(UsherError, LookupError):
    """There is no content token: the host gave no token, and the token callback returned no token in time."""


class RedirectError(UsherError, ConnectionError):
    """The server replied with a redirect, and the library does not follow redirects: a token goes only to the
    configured URL."""


class SessionError(UsherError, RuntimeError):
    """The session has ended (it was killed, it expired, or its set-up failed), so the library did not send the licence
    request."""


class RenewalMissedError(SessionError):
    """The host did not renew the licence in time."""


class DeclinedError(UsherError):
    """A hook declined to send the request, or no resource loader handles the URL."""


class FullError(UsherError):
    """The token map is full, and playbacks use all its tokens."""


class NotAllowedError(UsherError, PermissionError):
    """A URL in the content or from an entitlement server has a host that is not in `allowed_hosts`."""


BY_STATUS: dict[Status, type[UsherError]] = {
    Status.INVALID_ARGUMENT: InvalidArgumentError,
    Status.INVALID_HANDLE: InvalidHandleError,
    Status.CLOSED: ClosedError,
    Status.REPLACED: ReplacedError,
    Status.NO_DELEGATE: NoDelegateError,
    Status.TIMEOUT: UsherTimeoutError,
    Status.WOULD_DEADLOCK: WouldDeadlockError,
    Status.FORKED: ForkedError,
    Status.SYSTEM: ResourceError,
    Status.CALLBACK: CallbackError,
    Status.INVALID_COMPLETION: InvalidCompletionError,
    Status.STATE: StateError,
    Status.TRANSPORT: TransportError,
    Status.TLS: TLSError,
    Status.HTTP: HTTPStatusError,
    Status.REFUSED: RefusedError,
    Status.LIMIT: LimitError,
    Status.PROTOCOL: ProtocolError,
    Status.TOO_LARGE: TooLargeError,
    Status.NO_TOKEN: NoTokenError,
    Status.REDIRECT: RedirectError,
    Status.SESSION: SessionError,
    Status.RENEWAL_MISSED: RenewalMissedError,
    Status.DECLINED: DeclinedError,
    Status.FULL: FullError,
    Status.NOT_ALLOWED: NotAllowedError,
}
"""For every status except OK, the class of its error."""


def error_class(status: int) -> type[UsherError]:
    """Returns the class for a status; UsherError for a status that these bindings do not know."""
    return BY_STATUS.get(Status(status), UsherError)
