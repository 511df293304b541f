"""Test SPCs and CKCs, which the reference head-end understands, for tests without a FairPlay CDM.

Only Apple's CDM makes real SPCs and opens real CKCs, and this CDM does not run on Linux. In tests the SPCs and CKCs of
this module replace the real ones. They protect nothing, but a CKC contains the real content key. The SPC has a hash of
the certificate, and the CKC has a hash of the SPC. With these hashes a test can check that certificate and SPC arrived
unchanged. All numbers are big-endian; unused fields are zeros.

    SPC  offset  size  what                              CKC  offset  size  what
              0     4  version, 1                                  0     4  "CKC1"
              4     4  "USPC"                                      4    32  SHA-256 of the whole SPC
              8    32  SHA-256 of the certificate                 36    16  key id
             40    16  nonce, random                              52    16  key XOR the first 16 bytes
             56    16  device id                                            of the nonce's SHA-256
             72     …  content identifier

This module uses only the standard library, so tests of players may use it without the head-end.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import uuid
from dataclasses import dataclass

VERSION = b"\x00\x00\x00\x01"
SPC_MAGIC = b"USPC"
CKC_MAGIC = b"CKC1"
_HEAD_BYTES = 72
_CKC_BYTES = 68
_NOTHING = bytes(16)


@dataclass(frozen=True, slots=True)
class Spc:
    """The contents of an SPC.

    Attributes:
        identifier: the content identifier.
        nonce: 16 bytes. Their SHA-256 begins with the 16 bytes that encrypt the content key in the CKC.
        certificate_sha256: SHA-256 of the application certificate; None if the SPC was made without a certificate.
        device: the device id, None if the SPC has none.
    """

    identifier: bytes
    nonce: bytes
    certificate_sha256: bytes | None
    device: bytes | None


def make_spc(
    identifier: bytes | str, certificate: bytes = b"", *, device: bytes = b"", nonce: bytes | None = None
) -> bytes:
    """Makes the SPC for a content identifier.

    Args:
        identifier: bytes, or text sent as UTF-8.
        certificate: the application certificate, DER.
        device: at most 16 bytes.
        nonce: 16 bytes, random if None.
    """
    if isinstance(identifier, str):
        identifier = identifier.encode()
    nonce = secrets.token_bytes(16) if nonce is None else nonce
    if len(nonce) != 16 or len(device) > 16:
        raise ValueError(f"a nonce is 16 bytes and a device id at most 16, not {len(nonce)} and {len(device)}")
    digest = hashlib.sha256(certificate).digest() if certificate else bytes(32)
    return VERSION + SPC_MAGIC + digest + nonce + device.ljust(16, b"\0") + identifier


def is_spc(data: bytes) -> bool:
    """Whether the bytes are an SPC of this module. Such an SPC has ``USPC`` after its version; a real SPC does not."""
    return data[:8] == VERSION + SPC_MAGIC


def read_spc(spc: bytes) -> Spc:
    """Returns the contents of an SPC.

    Raises:
        ValueError: not an SPC of this module, or it has no content identifier.
    """
    if not is_spc(spc):
        raise ValueError(f"not an SPC of ours: it begins with {spc[:8].hex(' ')}")
    if len(spc) <= _HEAD_BYTES:
        raise ValueError(f"an SPC of {len(spc)} bytes has no content identifier")
    digest, device = spc[8:40], spc[56:72]
    return Spc(
        identifier=spc[_HEAD_BYTES:],
        nonce=spc[40:56],
        certificate_sha256=digest if any(digest) else None,
        device=device.rstrip(b"\0") if device != _NOTHING else None,
    )


def make_ckc(spc: bytes, kid: bytes, key: bytes) -> bytes:
    """Makes the CKC that is the reply to an SPC and contains the key.

    Raises:
        ValueError: not an SPC of this module, or key id or key is not 16 bytes.
    """
    if len(kid) != 16 or len(key) != 16:
        raise ValueError(f"key id and key are 16 bytes each, not {len(kid)} and {len(key)}")
    return CKC_MAGIC + hashlib.sha256(spc).digest() + kid + _wrapped(key, read_spc(spc).nonce)


def open_ckc(ckc: bytes, spc: bytes) -> tuple[bytes, bytes]:
    """Returns the key id and the key in a CKC.

    Raises:
        ValueError: the CKC is damaged, or was made for another SPC.
    """
    if len(ckc) != _CKC_BYTES or not ckc.startswith(CKC_MAGIC):
        raise ValueError(f"not a CKC of ours: {len(ckc)} bytes that begin with {ckc[:8].hex(' ')}")
    if ckc[4:36] != hashlib.sha256(spc).digest():
        raise ValueError("the CKC answers another SPC")
    return ckc[36:52], _wrapped(ckc[52:], read_spc(spc).nonce)


def _wrapped(key: bytes, nonce: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(key, hashlib.sha256(nonce).digest(), strict=False))


@dataclass(frozen=True, slots=True)
class Asset:
    """The parts of a content identifier.

    Attributes:
        content_id: the id of the content; None if the identifier has only a key id.
        kid: the key id; None if the identifier has only a content id.
        iv: the initialisation vector; None if the identifier has none.
    """

    content_id: str | None
    kid: bytes | None = None
    iv: bytes | None = None


def identifier(content_id: str, kid: bytes, iv: bytes) -> bytes:
    """Returns a content identifier as JSON: ``ContentId``, ``KeyId``, ``IV`` (source: asset identifiers)."""
    value = {"ContentId": content_id, "KeyId": str(uuid.UUID(bytes=kid)), "IV": base64.b64encode(iv).decode("ascii")}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def asset_id(content_id: str, kid: bytes, iv: bytes) -> str:
    """Returns the asset id of a content key: the JSON of ``identifier()`` in base64."""
    return base64.b64encode(identifier(content_id, kid, iv)).decode("ascii")


def skd_url(content_id: str, kid: bytes, iv: bytes) -> str:
    """Returns the ``skd:`` URL of a content key, in the form that playlists have."""
    return f"skd://{asset_id(content_id, kid, iv)}"


def read_identifier(data: bytes) -> Asset:
    """Returns the parts of a content identifier, which is JSON as from ``identifier()``, or base64 of such JSON. A text
    that is no JSON object is the content id itself.

    Raises:
        ValueError: the bytes are not UTF-8; the text is empty; or it is a JSON object that has neither a content id nor
            a key id, or a malformed value.
    """
    text = data.decode("utf-8")
    for candidate in (text, _unbase64(text)):
        found = None if candidate is None else _json_asset(candidate)
        if found is not None:
            return found
    if not text.strip():
        raise ValueError("the content identifier is empty")
    return Asset(text)


def _json_asset(text: str) -> Asset | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    named = {name.lower(): item for name, item in value.items()}
    content_id, kid, iv = (named.get(name) for name in ("contentid", "keyid", "iv"))
    if not isinstance(content_id, str) and not isinstance(kid, str):
        raise ValueError("the content identifier names neither ContentId nor KeyId")
    return Asset(
        content_id if isinstance(content_id, str) else None,
        uuid.UUID(kid).bytes if isinstance(kid, str) else None,
        base64.b64decode(iv) if isinstance(iv, str) else None,
    )


def _unbase64(text: str) -> str | None:
    plain = text.strip().replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode("utf-8")
    except ValueError:
        return None
