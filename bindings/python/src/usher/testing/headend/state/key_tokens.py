"""Content key tokens: an encrypted JWE with content keys, sent beside the content token (source: content key token).

A key token has the compact form of JWE, with ``dir`` and ``A128CBC-HS256`` (RFC 7516, RFC 7518). If it is damaged, or
cut at a comma, the head-end cannot decrypt it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import uuid
from collections.abc import Mapping

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from ..codes import Problem, Refusal
from .tokens import b64url, unb64url

_TAG_BYTES = 16


def seal(keys: Mapping[bytes, bytes], secret: bytes, key_id: str) -> str:
    """Makes a key token from content keys by key id; ``key_id`` is the name of the 32-byte secret that encrypts it."""
    names = {"kcIds": [str(uuid.UUID(bytes=kid)) for kid in keys]}
    header = b64url(json.dumps({"typ": "JWT", "alg": "dir", "enc": "A128CBC-HS256", "kid": key_id, **names}).encode())
    kcs = [{"id": str(uuid.UUID(bytes=kid)), "k": b64url(key)} for kid, key in keys.items()]
    padder = PKCS7(128).padder()
    plain = padder.update(json.dumps({"typ": "ContentKey", "ver": "1.0", "kcs": kcs}).encode()) + padder.finalize()
    iv = secrets.token_bytes(16)
    encryptor = Cipher(algorithms.AES(secret[16:]), modes.CBC(iv)).encryptor()
    sealed = encryptor.update(plain) + encryptor.finalize()
    return ".".join([header, "", b64url(iv), b64url(sealed), b64url(_tag(header, iv, sealed, secret))])


def unseal(token: str, secret: bytes) -> dict[bytes, bytes]:
    """Decrypts a key token and returns its content keys.

    Raises:
        Refusal: the token is damaged, or was encrypted with another secret.
    """
    try:
        header, nothing, *rest = token.split(".")
        iv, sealed, tag = (unb64url(part) for part in rest)
        if nothing or not hmac.compare_digest(tag, _tag(header, iv, sealed, secret)):
            raise ValueError("the tag does not verify")
        decryptor = Cipher(algorithms.AES(secret[16:]), modes.CBC(iv)).decryptor()
        unpadder = PKCS7(128).unpadder()
        plain = unpadder.update(decryptor.update(sealed) + decryptor.finalize()) + unpadder.finalize()
        return {uuid.UUID(kc["id"]).bytes: unb64url(kc["k"]) for kc in json.loads(plain)["kcs"]}
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(Problem.KEY_TOKEN, f"content key token cannot be decrypted: {error}") from error


def name_of(token: str) -> str:
    """Returns the name with which a content token refers to its key token."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _tag(header: str, iv: bytes, sealed: bytes, secret: bytes) -> bytes:
    aad = header.encode("ascii")
    mac = hmac.new(secret[:16], aad + iv + sealed + (len(aad) * 8).to_bytes(8, "big"), hashlib.sha256)
    return mac.digest()[:_TAG_BYTES]
