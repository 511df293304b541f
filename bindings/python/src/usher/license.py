"""Licences, and the Clear Key JSON of the W3C's Encrypted Media Extensions."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field

from . import _border
from ._c import abi, ffi
from ._c.enums import LicenseType, RenewType
from ._errors import TooLargeError


@dataclass(frozen=True)
class License:
    """The answer to a licence request.

    Attributes:
        data: bytes for the CDM: CKC, Widevine licence, PlayReady SOAP reply or Clear Key JSON. repr() does not show it.
        period_ms: keep-alive period of the session in milliseconds; 0: no keep-alives.
        renew_type: how the library keeps the session alive.
        type: REQUEST or RENEWAL, like the request.
    """

    data: bytes = field(repr=False)
    period_ms: int = 0
    renew_type: RenewType = RenewType.NONE
    type: LicenseType = LicenseType.REQUEST

    def clear_keys(self) -> dict[bytes, bytes]:
        """Returns the keys of a Clear Key licence by key id; key ids and keys have 16 bytes each. Leaves out entries
        whose ``kty`` is not "oct".

        Raises:
            ProtocolError: `data` is not a Clear Key licence (W3C EME, "License Format" of Clear Key), or has no keys.
                The message says what is wrong, without any part of the licence.
            InvalidArgumentError: `data` is empty or longer than 1 MiB.
        """
        count = ctypes.c_size_t(0)
        given = (ffi.c_bytes(self.data), len(self.data))
        with contextlib.suppress(TooLargeError):
            ffi.explained(ffi.lib.usher_clearkey_keys, *given, None, ctypes.byref(count))
        keys = (abi.ClearkeyKey * count.value)()
        ffi.explained(ffi.lib.usher_clearkey_keys, *given, keys, ctypes.byref(count))
        found = {bytes(pair.key_id): bytes(pair.key) for pair in keys}
        ctypes.memset(keys, 0, ctypes.sizeof(keys))
        return found


def _key_id(kid: object, name: str) -> bytes:
    if isinstance(kid, str):
        raise TypeError(f"{name}: this is a str, not bytes; convert 32 hex digits with bytes.fromhex()")
    found = _border.data(kid, name)
    if len(found) != 16:
        raise _border.refused(f"{name}: {len(found)} bytes; a key id has 16")
    return found


def clear_key_request(kids: Iterable[bytes]) -> bytes:
    """Makes the Clear Key licence request for these key ids, 16 bytes each. Pass the result as `payload` to
    get_license().

    Args:
        kids: 1 to 1024 key ids.

    Raises:
        InvalidArgumentError.
    """
    ids = [_key_id(kid, f"kids[{at}]") for at, kid in enumerate(_border.several(kids, "kids"))]
    if not 1 <= len(ids) <= 1024:
        raise _border.refused(f"kids: there are {len(ids)}; give 1 to 1024 key ids")
    joined = ffi.c_bytes(b"".join(ids))
    return ffi.filled_buffer(lambda buffer, size: ffi.lib.usher_clearkey_request(joined, len(ids), buffer, size))
