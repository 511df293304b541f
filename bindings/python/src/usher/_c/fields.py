"""Converts values of Python to values of C and back, and checks them. Needs no library."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from .. import _border
from .._errors import InvalidArgumentError
from .._options import ENUMERATIONS
from .enums import Status

Structure = TypeVar("Structure", bound=ctypes.Structure)


def text(value: bytes | None) -> str:
    """Returns a C string as str: "" for NULL, and U+FFFD in place of bytes that are not UTF-8."""
    return "" if value is None else value.decode("utf-8", "replace")


def c_string(value: str | os.PathLike[str] | None, name: str) -> bytes | None:
    """Converts a str or a path to a C string; returns None for None. Raises an exception if the text has a NUL, because
    C would ignore the text after the NUL."""
    if value is None:
        return None
    encoded = _utf8(_border.text(value, name), name)
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{name} has a NUL in it", status=Status.INVALID_ARGUMENT)
    return encoded


def header_lines(headers: Mapping[str, str]) -> bytes:
    """Returns headers as "Name: value" lines for C."""
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers: this is {_border.kind_of(headers)}; give a mapping of names to values")
    return c_string(_border.headers(headers, "headers"), "a header") or b""


def c_bytes(value: bytes | None) -> Any:
    """Converts bytes to ``const uint8_t *`` (NULL for None). The result keeps a copy of the bytes alive."""
    if value is None:
        return None
    array = (ctypes.c_uint8 * max(len(value), 1)).from_buffer_copy(value or b"\0")
    return ctypes.cast(array, ctypes.POINTER(ctypes.c_uint8))


def as_bytes(value: bytes | str | None, name: str = "the text") -> bytes | None:
    """Returns bytes unchanged, text encoded as UTF-8, and None for None."""
    if value is None:
        return None
    return _utf8(value, name) if isinstance(value, str) else _border.data(value, name)


def _utf8(text: str, name: str) -> bytes:
    """Returns a text as UTF-8. If the text cannot be encoded, the error of this function does not contain the text,
    which may be a token; a UnicodeEncodeError would contain it."""
    with contextlib.suppress(UnicodeEncodeError):
        return text.encode("utf-8", "surrogateescape")
    raise InvalidArgumentError(f"{name} has a character that is not in UTF-8", status=Status.INVALID_ARGUMENT)


def copied(pointer: Any, size: int) -> bytes | None:
    """Copies ``size`` bytes from ``const uint8_t *``; returns None for NULL."""
    return ctypes.string_at(pointer, size) if pointer else None


def integer(value: int, bits: int, name: str) -> int:
    """Returns a whole number for an unsigned C type; raises an exception for any other value."""
    return _border.number(value, bits, name)


_UNSIGNED = {ctypes.c_uint32: 32, ctypes.c_uint64: 64, ctypes.c_size_t: 8 * ctypes.sizeof(ctypes.c_size_t)}
_BYTES = ctypes.POINTER(ctypes.c_uint8)


def field(name: str, kind: Any, value: Any) -> Any:
    """Returns the value of an option in the type of its field in C. Raises TypeError or InvalidArgumentError."""
    if kind is ctypes.c_char_p:
        if name == "extra_headers":
            value = _border.headers(value, name)
        elif name == "allowed_hosts" and not isinstance(value, str):
            value = _border.hosts(value, name)
        return c_string(value, name)
    if kind is ctypes.c_int32:
        enumeration = ENUMERATIONS.get(name)
        return (
            _border.flag(value, name) if enumeration is None else _border.member(value, enumeration, name, words=True)
        )
    if kind is _BYTES:
        return c_bytes(_border.data(value, name))
    return integer(value, _UNSIGNED[kind], name) if kind in _UNSIGNED else value


def filled(structure: type[Structure], given: Mapping[str, Any]) -> Structure:
    """Makes an option structure from the fields in `given`. A field that is None gets its default value. If a field has
    bytes, this function also sets the field with their size.

    Raises TypeError for an unknown name or a wrong type.
    """
    kinds = {name: kind for name, kind, *_ in structure._fields_}
    values: dict[str, Any] = {"struct_size": ctypes.sizeof(structure)}
    for name, value in given.items():
        kind = kinds.get(name) if name != "struct_size" else None
        if kind is None:
            raise TypeError(f"unexpected keyword argument {name!r}")
        if value is None:
            continue
        values[name] = field(name, kind, value)
        if kind is _BYTES:
            values[f"{name}_size"] = len(_border.data(value, name))
    return structure(**values)


def check(structures: Iterable[type[ctypes.Structure]], given: Mapping[str, Any]) -> None:
    """Checks the types and values of those options in `given` that are fields of one of the `structures`. Does not need
    the library."""
    kinds = {name: kind for structure in structures for name, kind, *_ in structure._fields_}
    for name, value in given.items():
        if value is not None and name in kinds:
            field(name, kinds[name], value)
