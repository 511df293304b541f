"""Functions that read how content is protected, and which keys it needs. They need no context, start no thread and do
no I/O.

for way in usher.read_hls_keys(playlist):
    if way.key_system is usher.KeySystem.FAIRPLAY:
        key = playback.get_resource(way.uri)
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._c import abi, ffi
from ._c.enums import ContentIDRule, KeySystem
from ._errors import TooLargeError


@dataclass(frozen=True)
class Protection:
    """One way in which content is protected. An attribute is None if the content does not give the value.

    Attributes:
        key_system: the key system; also None if it is unknown.
        system_id: the id of the key system, 16 bytes.
        key_ids: key ids of 16 bytes each, in the byte order of the UUID's text.
        content_id: the content identifier.
        init_data: init data for the CDM: the pssh box.
        uri: the URI of the key (HLS) or the URL of the licence server (DASH, PlayReady). repr() does not show it,
            because it may contain a token or a key (``data:``).
        iv: initialisation vector, 8 or 16 bytes.
        scheme: encryption scheme as a four-letter code: "cenc", "cbcs", …, "aes1" for whole segments.
        crypt_blocks, skip_blocks: numbers of encrypted and clear blocks of a pattern (tenc); 0: no pattern.
        is_session: the protection is for the whole presentation (HLS EXT-X-SESSION-KEY).
    """

    key_system: KeySystem | None = None
    system_id: bytes | None = None
    key_ids: tuple[bytes, ...] = ()
    content_id: bytes | None = None
    init_data: bytes | None = None
    uri: str | None = field(default=None, repr=False)
    iv: bytes | None = None
    scheme: str | None = None
    crypt_blocks: int = 0
    skip_blocks: int = 0
    is_session: bool = False


def read_pssh(data: bytes) -> tuple[Protection, ...]:
    """Reads one or more pssh boxes, or base64 of them, and the Widevine and PlayReady data in them.

    Args:
        data: up to 1 MiB.

    Raises:
        InvalidArgumentError.
    """
    return _read(ffi.lib.usher_read_pssh, data)


def read_tenc(data: bytes) -> tuple[Protection, ...]:
    """Reads tenc boxes: separate ones, or those inside an init segment (moov). Arguments and errors are those of
    read_pssh()."""
    return _read(ffi.lib.usher_read_tenc, data)


def read_hls_keys(playlist: bytes | str) -> tuple[Protection, ...]:
    """Reads one EXT-X-KEY or EXT-X-SESSION-KEY line, or all such lines of a playlist.

    For a line with METHOD=NONE, key system and URI are None.

    Args:
        playlist: up to 1 MiB.

    Raises:
        InvalidArgumentError.
    """
    return _read(ffi.lib.usher_read_hls_keys, playlist)


def read_dash_protection(manifest: bytes | str) -> tuple[Protection, ...]:
    """Reads the ContentProtection elements of a DASH manifest, or one such element.

    Arguments and errors as read_hls_keys().
    """
    return _read(ffi.lib.usher_read_dash_protection, manifest)


def content_id(url: str | bytes, rule: ContentIDRule | int = ContentIDRule.DECODED_JSON) -> bytes:
    """Returns the content identifier in a `skd:` URL or asset ID.

    Args:
        url: 1 byte to 64 kB.

    Raises:
        InvalidArgumentError: there is no content identifier in it.
    """
    text = ffi.as_bytes(url) or b""
    return _copied(lambda buffer, size: ffi.lib.usher_content_id(ffi.c_bytes(text), len(text), rule, buffer, size))


def rewrite_hls_keys(playlist: bytes | str, uri_prefix: str, scheme: str | None = None) -> bytes:
    """Replaces the key URIs of one scheme in a playlist, for a demuxer that refuses URIs of that scheme.

    The function replaces each such URI by `uri_prefix` and the number of the URI in the playlist, from 0; equal URIs
    get the same number. All other bytes stay the same.

    Args:
        playlist: 1 byte to 1 MiB.
        uri_prefix: e.g. "http://127.0.0.1:8000/key/"; no '"' or control characters.
        scheme: default "skd".

    Raises:
        InvalidArgumentError.
    """
    text, prefix, name = (
        ffi.as_bytes(playlist) or b"",
        ffi.c_string(uri_prefix, "uri_prefix"),
        ffi.c_string(scheme, "scheme"),
    )
    return _copied(
        lambda buffer, size: ffi.lib.usher_rewrite_hls_keys(ffi.c_bytes(text), len(text), name, prefix, buffer, size)
    )


def _read(function: Any, given: bytes | str) -> tuple[Protection, ...]:
    data = ffi.as_bytes(given) or b""
    found: list[Protection] = []
    failures: list[BaseException] = []

    def told(pointer: Any, _: int | None) -> None:
        try:
            found.append(_protection(pointer.contents))
        except BaseException as error:  # raised below, because no exception may pass through C
            failures.append(error)

    # C calls this function on the same thread before the C function returns, so the callback needs no entry in the
    # registry.
    function(ffi.c_bytes(data), len(data), abi.ProtectionFn(told), None, None)
    if failures:
        raise failures[0]
    return tuple(found)


def _protection(raw: Any) -> Protection:
    uri = ffi.copied(raw.uri, raw.uri_size)
    ids = ffi.copied(raw.key_ids, 16 * raw.key_id_count) or b""
    return Protection(
        key_system=_KEY_SYSTEMS.get(ffi.text(raw.key_system)),
        system_id=ffi.copied(raw.system_id, 16),
        key_ids=tuple(ids[at : at + 16] for at in range(0, len(ids), 16)),
        content_id=ffi.copied(raw.content_id, raw.content_id_size),
        init_data=ffi.copied(raw.init_data, raw.init_data_size),
        uri=None if uri is None else uri.decode("utf-8", "surrogateescape"),
        iv=ffi.copied(raw.iv, raw.iv_size),
        scheme=None if raw.scheme is None else ffi.text(raw.scheme),
        crypt_blocks=raw.crypt_blocks,
        skip_blocks=raw.skip_blocks,
        is_session=bool(raw.is_session),
    )


_KEY_SYSTEMS = {system.value: system for system in KeySystem}


def _copied(ask: Callable[[Any, Any], object]) -> bytes:
    """Calls a C function twice: the first call returns the size of the result, and the second call returns the
    result."""
    size = ctypes.c_size_t(0)
    with contextlib.suppress(TooLargeError):
        ask(None, ctypes.byref(size))
    buffer = (ctypes.c_uint8 * max(size.value, 1))()
    ask(buffer, ctypes.byref(size))
    return bytes(buffer[: size.value])
