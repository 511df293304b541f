"""Licences, and the Clear Key JSON of the W3C's Encrypted Media Extensions."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from ._c.enums import LicenseType, RenewType, Status
from ._errors import ProtocolError


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
            ProtocolError: `data` is not a Clear Key licence (W3C EME, "License Format" of Clear Key).
        """
        try:
            keys = json.loads(self.data)["keys"]
            return {_decode(key["kid"]): _decode(key["k"]) for key in keys if key.get("kty") == "oct"}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # `from None`, because the text of the cause may contain parts of the licence
            raise ProtocolError(f"not a Clear Key licence: {type(error).__name__}", status=Status.PROTOCOL) from None


def clear_key_request(kids: Iterable[bytes]) -> bytes:
    """Makes the Clear Key licence request for these key ids, 16 bytes each. It is the `payload` for get_license().

    The request has the same form as the requests of Chromium's EME.
    """
    request = {"kids": [_encode(kid) for kid in kids], "type": "temporary"}
    return json.dumps(request, separators=(",", ":")).encode("ascii")


def _encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def _decode(value: str) -> bytes:
    """Decodes base64url without padding. Raises an exception if the text has any other characters."""
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
