"""Functions that read how content is protected, and which keys it needs. They need no context and start no thread. Only
read_mp4() does I/O.

for way in usher.read_hls_keys(playlist):
    if way.key_system is usher.KeySystem.FAIRPLAY:
        key = playback.get_resource(way.uri)
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from ._c import abi, ffi
from ._c.enums import ContentIDRule, KeySystem, Part
from ._errors import UsherError


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
        track_id: the number of the track in the file (read_mp4()); 0: none.
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
    track_id: int = 0


@dataclass(frozen=True)
class FileProtection:
    """How an MP4 file is protected.

    Attributes:
        key_ids: the key ids of all tracks; if these have none, those of the pssh boxes. Empty if the file is not
            encrypted.
        scheme: the scheme of the first encrypted track, e.g. "cenc" or "cbcs".
        init_data: all pssh boxes one after another, as init data for a CDM.
        content_id: the content identifier of the first pssh box that has one.
        tracks: the encrypted tracks. The first key id of a track is its default key id; the others come from further
            sample entries and from sample groups (``seig``).
        pssh: the pssh boxes, without duplicates.
    """

    key_ids: tuple[bytes, ...] = ()
    scheme: str | None = None
    init_data: bytes | None = None
    content_id: bytes | None = None
    tracks: tuple[Protection, ...] = ()
    pssh: tuple[Protection, ...] = ()


def read_mp4(source: str | os.PathLike[str] | BinaryIO | Callable[[int, int], bytes]) -> FileProtection:
    """Reads how an MP4 file is protected. It reads only a few kB, even if the file is large.

    Args:
        source: a path; or a binary file object that can seek; or a function that gets an offset and a size, and returns
            at most this number of bytes from this offset. The function must return at least one byte, except at or
            beyond the end of the file.

    Raises:
        ProtocolError: this is no MP4 file, or a box is malformed. The message has the path of the box.
        TooLargeError: the file has too many boxes.
        OSError: the function cannot open the path. If `source` raises an exception, this function raises it again.
    """
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            return _read_mp4(_reader(file))
    return _read_mp4(source if callable(source) else _reader(source))


def _reader(file: BinaryIO) -> Callable[[int, int], bytes]:
    def read(offset: int, size: int) -> bytes:
        file.seek(offset)
        return file.read(size)

    return read


def _read_mp4(read: Callable[[int, int], bytes]) -> FileProtection:
    found: dict[int, list[Protection]] = {part: [] for part in Part}
    failures: list[BaseException] = []

    def on_read(offset: int, buffer: Any, size: int, _: int | None) -> int:
        try:
            piece = read(offset, size)
            ctypes.memmove(buffer, bytes(piece), min(len(piece), size))
            return len(piece)
        except BaseException as error:  # raised below, because no exception may pass through C
            failures.append(error)
            return -1

    def on_part(pointer: Any, _: int | None) -> None:
        try:
            found[pointer.contents.part].append(_protection(pointer.contents))
        except BaseException as error:
            failures.append(error)

    try:
        ffi.explained(ffi.lib.usher_read_mp4, abi.ReadFn(on_read), abi.ProtectionFn(on_part), None)
    except UsherError:
        if not failures:
            raise
    if failures:
        raise failures[0]
    (whole,) = found[Part.FILE]
    return FileProtection(
        key_ids=whole.key_ids,
        scheme=whole.scheme,
        init_data=whole.init_data,
        content_id=whole.content_id,
        tracks=tuple(found[Part.TRACK]),
        pssh=tuple(found[Part.PSSH]),
    )


def read_pssh(data: bytes) -> tuple[Protection, ...]:
    """Reads one or more pssh boxes, or base64 of them, and the Widevine and PlayReady data in them. Returns one
    Protection for each box.

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

    Arguments and errors are those of read_hls_keys().
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
    return ffi.filled_buffer(
        lambda buffer, size: ffi.lib.usher_content_id(ffi.c_bytes(text), len(text), rule, buffer, size)
    )


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
    return ffi.filled_buffer(
        lambda buffer, size: ffi.lib.usher_rewrite_hls_keys(ffi.c_bytes(text), len(text), name, prefix, buffer, size)
    )


def _read(function: Any, given: bytes | str) -> tuple[Protection, ...]:
    data = ffi.as_bytes(given) or b""
    found: list[Protection] = []
    failures: list[BaseException] = []

    def add(pointer: Any, _: int | None) -> None:
        try:
            found.append(_protection(pointer.contents))
        except BaseException as error:  # raised below, because no exception may pass through C
            failures.append(error)

    # The library calls `add` only on this thread and only before `function` returns, so `add` needs no entry in the
    # registry.
    function(ffi.c_bytes(data), len(data), abi.ProtectionFn(add), None, None)
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
        track_id=raw.track_id,
    )


_KEY_SYSTEMS = {system.value: system for system in KeySystem}
