"""Reads the library's replies to requests of the host: licences, certificates and other bytes."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ._c import abi, ffi, registry
from ._c.enums import LicenseType, RenewType, Status
from ._callbacks import report_to
from ._errors import UsherError
from ._question import Causes
from .license import License

if TYPE_CHECKING:
    from .context import Context

Result = TypeVar("Result")


class Promise(Future[Result]):
    """The future for a request that the host cannot cancel."""

    def cancel(self) -> bool:
        return False


class Inquiry(Generic[Result]):
    """One request of the host, and the future that gets the answer. C knows this object by an id, which it passes as
    ``user_data``."""

    def __init__(
        self,
        context: weakref.ref[Context],
        causes: Causes,
        read: Callable[[Response], Result],
        callback: Callable[[Future[Result]], object] | None,
        future: Future[Result] | None = None,
        name: str = "license",
    ) -> None:
        """`name` is the name of the callback in the reports of its exceptions."""
        self.context = context
        self.causes = causes
        self.read = read
        self.callback = callback
        self.future = future or Promise[Result]()
        self.name = name

    def answered(self, info: Any) -> None:
        """Handles the answer of the library. The library calls this method once."""
        if self.future.set_running_or_notify_cancel():
            try:
                self.future.set_result(self.read(read(info)))
            except UsherError as error:
                self.future.set_exception(self.causes.chain(error))
            except BaseException as error:
                self.future.set_exception(error)
        if self.callback is not None:
            try:
                self.callback(self.future)
            except BaseException as error:
                report_to(self.context(), self.name, error)


@dataclass(frozen=True)
class Response:
    """A copy of a reply that has no error."""

    data: bytes = field(repr=False)
    period_ms: int
    renew_type: RenewType
    type: LicenseType


def read(info: Any) -> Response:
    """Returns a copy of a reply. If the reply contains an error, raises this error."""
    error = ffi.from_detail(info.error)
    if error is not None:
        raise error
    data = ctypes.string_at(info.data, info.data_size) if info.data_size else b""
    return Response(data, info.period_ms, RenewType(info.renew_type), LicenseType(info.type))


def as_license(response: Response) -> License:
    return License(response.data, response.period_ms, response.renew_type, response.type)


def as_data(response: Response) -> bytes:
    return response.data


def take(handle: abi.ResponseHandle, status: int, what: str) -> Response:
    """Returns a copy of the reply that a response handle refers to, and frees the handle. Raises an exception if the
    handle is NULL, if the reply contains an error, or if `status` is not OK. `what`: the C function that returned
    `status`."""
    if not handle.value:
        raise ffi.from_status(status, what)
    try:
        info = abi.ResponseInfo(struct_size=ctypes.sizeof(abi.ResponseInfo))
        ffi.lib.usher_response_get(handle, ctypes.byref(info))
        response = read(info)
    finally:
        ffi.lib.usher_response_free(handle)
    if status != Status.OK:
        raise ffi.from_status(status, what)
    return response


def _pass_response(handle: abi.PlaybackHandle, pointer: Any, tag: int, number: int | None) -> None:
    inquiry = registry.get(number)
    if inquiry is not None:
        inquiry.answered(pointer.contents)


on_response = abi.LicenseFn(_pass_response)
