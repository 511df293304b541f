"""The loading requests of a playback. Each of them asks for the key for a URL in the content."""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ._answers import Inquiry, Response, on_response, take
from ._c import abi, ffi, registry
from ._c.enums import Status
from ._errors import UsherError
from ._question import Causes

if TYPE_CHECKING:
    from .context import Context


class Resource(bytes):
    """The bytes of a resource, such as a CKC. repr() and str() hide them, since asyncio prints the results of tasks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"

    __str__ = __repr__


def as_resource(response: Response) -> bytes:
    """Returns the bytes of a response."""
    return Resource(response.data)


class LoadingRequest(Future[bytes]):
    """A loading request (AVAssetResourceLoadingRequest): a future for the key that the CDM needs (a CKC).

    The future gets the key or the error, exactly once. Threads: any.

    Attributes:
        url: the URL to load.
    """

    def __init__(self, url: bytes, playback: abi.PlaybackHandle) -> None:
        """Only Playback.load_resource() calls it."""
        super().__init__()
        self.url = url
        self._playback = playback
        self._number = ctypes.c_uint64()

    def cancel(self) -> bool:
        """Cancels the request: the library sends nothing more for it, and drops a key that it has received.

        Returns False if the request was finished before.
        """
        if not super().cancel():
            return False
        with contextlib.suppress(UsherError):  # the request has just finished, or its playback was freed
            ffi.lib.usher_playback_cancel_load(self._playback, self._number)
        return True


class LoadCauses(Causes):
    """The exceptions that callbacks raised during the loading requests of one URL (see ``Causes``). Each URL has its
    own object, because requests for several keys run at the same time."""

    def __init__(self, playback: Causes) -> None:
        """`playback`: the ``Causes`` of the playback, for the errors in its events."""
        super().__init__()
        self._of_playback = playback

    def swap(self, status: Status, cause: BaseException | None) -> BaseException | None:
        self._of_playback.swap(status, cause)
        return super().swap(status, cause)


class Loads:
    """The methods of a playback that use resource loaders."""

    context: Context
    _handle: abi.PlaybackHandle
    _causes: Causes

    def __init__(self) -> None:
        self._load_causes: weakref.WeakValueDictionary[bytes, Causes] = weakref.WeakValueDictionary()

    def get_resource(self, url: str | bytes, timeout_ms: int = 0) -> bytes:
        """Loads the resource of a URL with the ``ResourceLoader`` of its scheme, and waits for it. Do not call it in a
        callback.

        Args:
            url: 1 byte to 64 kB; text is encoded as UTF-8.
            timeout_ms: the limit for the whole request, in milliseconds on the context's clock; 0 means 20000. OFF: no
                limit for the whole request, only for each step.

        Returns:
            The bytes: for a `skd:` URL the CKC.

        Raises:
            DeclinedError: there is no loader for the scheme.
            NotAllowedError: the URL, or the entitlement server, names a host that is not in `allowed_hosts`.
            RefusedError: the entitlement server or the key server refused; message and ``service_code`` are from this
                server.
            CallbackError: the SPC callback gave no SPC.
            InvalidArgumentError: the URL is malformed or names no content.
            UsherError: another error of the servers.
            InvalidHandleError, WouldDeadlockError, ClosedError.
        """
        text, timeout, out = (
            ffi.as_bytes(url, "url") or b"",
            ffi.integer(timeout_ms, 32, "timeout_ms"),
            abi.ResponseHandle(),
        )
        causes = self._causes_of(text)
        status = ffi.lib.usher_playback_get_resource(
            self._handle, ffi.c_bytes(text), len(text), timeout, ctypes.byref(out)
        )
        try:
            return as_resource(take(out, status, "usher_playback_get_resource"))
        except UsherError as error:
            causes.chain(error)
            raise

    def load_resource(
        self, url: str | bytes, *, timeout_ms: int = 0, callback: Callable[[Future[bytes]], object] | None = None
    ) -> LoadingRequest:
        """Starts to load the resource of a URL and returns at once. `url` and `timeout_ms` are those of get_resource().

        Args:
            callback: a function that gets the finished future, also if the request was cancelled. It runs on the same
                threads as other callbacks (see Context), in order with the other callbacks of the playback.

        Returns:
            A future that gets the bytes or the error, exactly once. Its cancel() cancels the request.

        Raises:
            DeclinedError, InvalidArgumentError, InvalidHandleError, ClosedError: no request was made.
        """
        text, timeout = ffi.as_bytes(url, "url") or b"", ffi.integer(timeout_ms, 32, "timeout_ms")
        future = LoadingRequest(text, self._handle)
        inquiry = Inquiry(weakref.ref(self.context), self._causes_of(text), as_resource, callback, future, "resource")
        ffi.lib.usher_playback_load_resource(
            self._handle,
            ffi.c_bytes(text),
            len(text),
            timeout,
            on_response,
            registry.add(inquiry),
            registry.destroy,
            ctypes.byref(future._number),
        )
        return future

    def _causes_of(self, url: bytes) -> Causes:
        return self._load_causes.setdefault(url, LoadCauses(self._causes))
