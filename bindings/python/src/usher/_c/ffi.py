"""Finds and loads libusher.so, checks that it fits, and declares its functions.

Importing this module loads the library.

Order: the file named by the environment variable ``USHER_LIBRARY``, then ``libusher.so*`` in the package (in a wheel),
then the system's ``libusher.so.0``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from .._errors import Explanation, InvalidArgumentError, LegacyCodes, UsherError, error_class
from . import abi
from .enums import Operation, Origin, Status

Structure = TypeVar("Structure", bound=ctypes.Structure)

SONAME = "libusher.so.0"

UNCHECKED = frozenset(
    {
        "usher_context_close",
        "usher_hook_builtin",
        "usher_playback_get_certificate",
        "usher_playback_get_content_id",
        "usher_playback_get_license",
        "usher_playback_get_resource",
    }
)
"""Functions whose callers read the status themselves, because a result comes with it."""


def find_library() -> str:
    """The path or name of the library to load."""
    override = os.environ.get("USHER_LIBRARY")
    if override:
        return override
    bundled = sorted(Path(__file__).resolve().parents[1].glob("libusher.so*"))
    return str(bundled[0]) if bundled else SONAME


def _check(result: int, function: Any, arguments: tuple[Any, ...]) -> int:
    """ctypes ``errcheck``: raises for everything but USHER_OK."""
    if result != Status.OK:
        raise from_status(result, function.__name__)
    return result


def _load() -> ctypes.CDLL:
    path = find_library()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"cannot load the usher library from {path}: {error}; USHER_LIBRARY names another") from error
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
    """Within a major version names and fields are only added: the library may be newer, not older."""
    try:
        version = tuple(int(part) for part in text.split("."))
    except ValueError:
        version = ()
    if len(version) != 3 or version[0] != abi.VERSION[0] or version[:2] < abi.VERSION[:2]:
        wanted = ".".join(map(str, abi.VERSION))
        raise ImportError(f"{path} is libusher {text}; these bindings need {wanted} or a later minor version")


def from_status(status: int, what: str = "") -> UsherError:
    """The exception for a bare status; `what` names the function that answered it."""
    line = text(lib.usher_status_message(status))
    return error_class(status)(f"{what}: {line}" if what else line, status=Status(status))


def from_detail(detail: Any) -> UsherError | None:
    """The exception for a ``usher_error`` structure; None when nothing is wrong."""
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
    )


def explain(origin: Origin, status: Status, service_code: int) -> Explanation:
    """Explains an error in words; see usher_error_explain()."""
    out = abi.Explanation()
    lib.usher_error_explain(origin, status, service_code, ctypes.byref(out))
    return Explanation(text(out.summary), text(out.advice), bool(out.known), text(out.source))


def legacy_codes(error: UsherError) -> LegacyCodes:
    """An error in the numbers of other players; see usher_error_legacy_codes()."""
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
    )
    lib.usher_error_legacy_codes(ctypes.byref(detail), ctypes.byref(out))
    return LegacyCodes(out.react_native, out.android_what, out.android_extra, out.apple_internal, out.apple_code)


def text(value: bytes | None) -> str:
    """A C string as str; what is not UTF-8 becomes U+FFFD."""
    return "" if value is None else value.decode("utf-8", "replace")


def c_string(value: str | os.PathLike[str] | None, name: str) -> bytes | None:
    """A str as a C string. A NUL inside would be cut off silently there, so it is refused here."""
    if value is None:
        return None
    encoded = os.fspath(value).encode("utf-8", "surrogateescape")
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{name} has a NUL in it", status=Status.INVALID_ARGUMENT)
    return encoded


def c_bytes(value: bytes | None) -> Any:
    """Bytes as ``const uint8_t *`` (NULL for None). The result keeps a reference to a copy for as long as it lives."""
    if value is None:
        return None
    array = (ctypes.c_uint8 * max(len(value), 1)).from_buffer_copy(value or b"\0")
    return ctypes.cast(array, ctypes.POINTER(ctypes.c_uint8))


def as_bytes(value: bytes | str | None) -> bytes | None:
    """Bytes as they are, text as UTF-8."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def copied(pointer: Any, size: int) -> bytes | None:
    """A copy of ``const uint8_t *`` and its length; None for NULL."""
    return ctypes.string_at(pointer, size) if pointer else None


def integer(value: int, bits: int, name: str) -> int:
    """ctypes wraps numbers that do not fit; this refuses them."""
    number = int(value)
    if not 0 <= number < 1 << bits:
        raise InvalidArgumentError(f"{name} is {number}, not in 0..2**{bits}-1", status=Status.INVALID_ARGUMENT)
    return number


_UNSIGNED = {ctypes.c_uint32: 32, ctypes.c_uint64: 64, ctypes.c_size_t: 8 * ctypes.sizeof(ctypes.c_size_t)}


def filled(structure: type[Structure], given: Mapping[str, Any]) -> Structure:
    """An option structure with the fields given; None leaves a field at its default.

    Raises TypeError for a name that is no option.
    """
    kinds = {name: kind for name, kind, *_ in structure._fields_}
    values: dict[str, Any] = {"struct_size": ctypes.sizeof(structure)}
    for name, value in given.items():
        kind = kinds.get(name) if name != "struct_size" else None
        if kind is None:
            raise TypeError(f"unexpected keyword argument {name!r}")
        if value is None:
            continue
        if kind is ctypes.c_char_p:
            value = c_string(value, name)
        elif kind is ctypes.c_int32:
            value = integer(value, 31, name)
        elif kind in _UNSIGNED:
            value = integer(value, _UNSIGNED[kind], name)
        values[name] = value
    return structure(**values)


class Owner:
    """Has a handle, which is freed once: what has one is neither copied nor pickled."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is of this process and freed once: it cannot be copied or pickled")


def free_quietly(function: Any, handle: Any) -> None:
    """Frees from a finalizer, where nobody could catch: a stale handle is fine there."""
    with contextlib.suppress(UsherError):
        function(handle)


lib = _load()
