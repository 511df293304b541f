"""Finds and loads libusher.so, checks its version, and declares its functions.

Importing this module loads the library.

It tries these files in this order: the file that the environment variable ``USHER_LIBRARY`` names; ``libusher.so*`` in
the package, if the package was installed from a wheel; the system's ``libusher.so.0``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn

from .. import _border
from .._errors import Explanation, LegacyCodes, TooLargeError, UsherError, error_class
from . import abi
from .enums import Operation, Origin, Status, TLSFault
from .fields import Structure as Structure
from .fields import as_bytes as as_bytes
from .fields import c_bytes as c_bytes
from .fields import c_string as c_string
from .fields import copied as copied
from .fields import filled as filled
from .fields import header_lines as header_lines
from .fields import integer as integer
from .fields import text as text

SONAME = "libusher.so.0"

UNCHECKED = frozenset(
    {
        "usher_context_close",
        "usher_hook_builtin",
        "usher_playback_get_certificate",
        "usher_playback_get_content_id",
        "usher_playback_get_license",
        "usher_playback_get_resource",
        "usher_playback_wait_session",
    }
)
"""The functions for which `errcheck` does not raise an exception: the caller reads the status itself, because it also
needs the result."""


def find_library() -> str:
    """Returns the path or name of the library to load."""
    override = os.environ.get("USHER_LIBRARY")
    if override:
        return override
    bundled = sorted(Path(__file__).resolve().parents[1].glob("libusher.so*"))
    return str(bundled[0]) if bundled else SONAME


def _check(result: int, function: Any, arguments: tuple[Any, ...]) -> int:
    """The ``errcheck`` function for ctypes. Returns USHER_OK; raises an exception for every other status."""
    if result != Status.OK:
        raise from_status(result, function.__name__)
    return result


def _load() -> ctypes.CDLL:
    path = find_library()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        advice = "USHER_LIBRARY names another"
        if any(name in str(error) for name in ("libcurl", "libjson-c")):
            advice = "libcurl 4 and json-c 5 must be installed (Debian: libcurl4 libjson-c5; Fedora: libcurl json-c)"
        raise ImportError(f"cannot load the usher library from {path}: {error}; {advice}") from error
    for name, (result, arguments) in abi.PROTOTYPES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}: not a libusher, or one older than these bindings") from None
        function.restype = result
        function.argtypes = list(arguments)
        if result is ctypes.c_int32 and name not in UNCHECKED:
            function.errcheck = _check
    _check_version(path, library.usher_version().decode("ascii", "replace"))
    return library


def _check_version(path: str, text: str) -> None:
    """Raises an exception if the library has another major version, or is older than these bindings.

    The library may be newer than the bindings, because within a major version names and fields are only added.
    """
    try:
        version = tuple(int(part) for part in text.split("."))
    except ValueError:
        version = ()
    if len(version) != 3 or version[0] != abi.VERSION[0] or version[:2] < abi.VERSION[:2]:
        wanted = ".".join(map(str, abi.VERSION))
        raise ImportError(f"{path} is libusher {text}; these bindings need {wanted} or a later minor version")


_refusal = threading.local()


def _refused(status: int, line: bytes, user_data: int | None) -> None:
    _refusal.last = status, text(line)


on_refusal = abi.RefusalFn(_refused)
"""The callback that the library calls when it refuses a call. It keeps the text of the refusal until `from_status`
takes this text on the same thread."""


def from_status(status: int, what: str = "") -> UsherError:
    """Makes the exception for a status without further details. `what` is the name of the function that returned the
    status."""
    refused, line = getattr(_refusal, "last", (Status.OK, ""))
    _refusal.last = Status.OK, ""
    if refused == status:
        if status == Status.INVALID_ARGUMENT:  # the line begins with the name of the argument
            what = ""
        else:
            name, _, reason = line.partition(": ")
            line = f"{name}: {_border.mended(reason)}" if reason else _border.mended(line)
    elif status == Status.INVALID_HANDLE and what:
        line, what = _border.closed(what), ""
    else:
        line = _border.mended(text(lib.usher_status_message(status)))
    return error_class(status)(f"{_border.caller(what)}: {line}" if what else line, status=Status(status))


def explained(function: Any, *arguments: Any) -> None:
    """Calls a function whose last two parameters are a buffer for a message and its size. If the function fails, raises
    an exception with this message."""
    message = ctypes.create_string_buffer(512)
    try:
        function(*arguments, message, len(message))
    except UsherError as error:
        words = message.value.decode("utf-8", "replace")
        if not words:
            raise
        raise error_class(error.status)(words, status=error.status) from None


def filled_buffer(ask: Callable[[Any, Any], object]) -> bytes:
    """Calls a C function twice: the first call returns the size of the result, and the second call returns the
    result."""
    size = ctypes.c_size_t(0)
    with contextlib.suppress(TooLargeError):
        ask(None, ctypes.byref(size))
    buffer = (ctypes.c_uint8 * max(size.value, 1))()
    ask(buffer, ctypes.byref(size))
    return bytes(buffer[: size.value])


def from_detail(detail: Any) -> UsherError | None:
    """Makes the exception for a ``usher_error`` structure; returns None if its status is USHER_OK."""
    if detail.status == Status.OK:
        return None
    return error_class(detail.status)(
        text(detail.message),
        status=Status(detail.status),
        origin=Origin(detail.origin),
        operation=Operation(detail.operation),
        http_status=detail.http_status,
        service_code=detail.service_code,
        must_stop=bool(detail.must_stop),
        orphan_possible=bool(detail.orphan_possible),
        already_reported=bool(detail.already_reported),
        retry_after=detail.retry_after_ms / 1000,
        tls_fault=TLSFault(detail.tls_fault),
    )


def explain(
    code: int | str | Status,
    origin: Origin | Literal["local", "ssm", "license", "certificate", "entitlement"] | None = None,
    *,
    status: Status | int | None = None,
    operation: Operation | int = Operation.NONE,
    http_status: int = -1,
    tls_fault: TLSFault | int = TLSFault.NONE,
) -> Explanation:
    """Explains a code of a server, or a status of the library, in words: ``explain(1007, "ssm")``,
    ``explain("TIMEOUT")``. Threads: any.

    Args:
        code: the ``service_code`` of an error; or a ``Status`` or its name, for an error without a service code.
        origin: the server that sent the code. Default: Origin.SSM for a code, Origin.LOCAL for a status.
        status: the status of the error, if `code` is a code. Default: LIMIT for code 1007 of the SSM, otherwise
            REFUSED.

    Raises:
        InvalidArgumentError: there is no such status or origin.
    """
    has_code = isinstance(code, int) and not isinstance(code, Status | bool)
    if origin is None:
        origin = Origin.SSM if has_code else Origin.LOCAL
    asked = _border.member(origin, Origin, "origin", words=True)
    if not has_code:
        name = code.removeprefix("USHER_E_").lower() if isinstance(code, str) else code
        return explained_error(asked, _border.member(name, Status, "code", words=True), 0, operation=operation)
    if status is None:
        status = Status.LIMIT if (asked, code) == (Origin.SSM, 1007) else Status.REFUSED
    return explained_error(asked, status, int(code), operation=operation, http_status=http_status, tls_fault=tls_fault)


def explained_error(
    origin: Origin,
    status: Status | int,
    service_code: int,
    *,
    operation: Operation | int = Operation.NONE,
    http_status: int = -1,
    tls_fault: TLSFault | int = TLSFault.NONE,
) -> Explanation:
    """Returns an explanation of an error in words; see usher_error_explain()."""
    detail = abi.Error(status, origin, operation, http_status, service_code, b"", tls_fault=tls_fault)
    out = abi.Explanation()
    lib.usher_error_explain(ctypes.byref(detail), ctypes.byref(out))
    return Explanation(text(out.summary), text(out.advice), bool(out.known), text(out.source))


def legacy_codes(error: UsherError) -> LegacyCodes:
    """Returns the numbers that the React Native player, the Android player and the Apple SDK use for an error; see
    usher_error_legacy_codes()."""
    out = abi.LegacyCodes()
    detail = abi.Error(
        error.status,
        error.origin,
        error.operation,
        error.http_status,
        error.service_code,
        b"",
        error.must_stop,
        error.orphan_possible,
        error.already_reported,
    )
    lib.usher_error_legacy_codes(ctypes.byref(detail), ctypes.byref(out))
    return LegacyCodes(out.react_native, out.android_what, out.android_extra, out.apple_internal, out.apple_code)


class Owner:
    """An object that has a handle. It cannot be copied or pickled, because each handle must be freed exactly once."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} has a handle that is freed once: it cannot be copied or pickled")


def free_quietly(function: Any, handle: Any) -> None:
    """Frees a handle in a finalizer. Ignores errors, because no caller could catch them."""
    with contextlib.suppress(UsherError):
        function(handle)


lib = _load()
