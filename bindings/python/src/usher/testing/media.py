"""Reads the repository's test contents from their ``media.json``.

``scripts/make-media.sh`` makes a CENC clip and a small preview. ``scripts/make-hls.py`` has made the HLS contents in
``Tests/media/hls``. This module uses only the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FILES = ("clear", "encrypted", "playlist", "video", "audio", "rotating")


@dataclass(frozen=True, slots=True)
class ContentKey:
    """A content key.

    Attributes:
        kid: the key id, 16 bytes.
        key: 16 bytes.
        iv: the constant initialisation vector of cbcs, None with CENC.
        skd: the ``skd:`` URL of the key in playlists, None with CENC.
    """

    kid: bytes
    key: bytes
    iv: bytes | None = None
    skd: str | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """One content.

    Attributes:
        content_id: its id.
        scheme: ``cenc`` or ``cbcs``.
        seconds: its length.
        files: its files by name: ``clear`` and ``encrypted``, or ``playlist``, ``video``, ``audio``, ``rotating``.
        keys: the content keys: for the video, for the audio, and the second key of the rotating playlist.
        frames: the number of pictures in the clear clip; None if the file does not say it.
        frames_sha256: SHA-256 of these pictures, decoded to yuv420p without padding; None if the file does not say it.
    """

    content_id: str
    scheme: str
    seconds: float
    files: Mapping[str, Path]
    keys: tuple[ContentKey, ...]
    frames: int | None = None
    frames_sha256: str | None = None


def read(media_json: Path | str) -> list[Content]:
    """Returns the contents that a ``media.json`` describes.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a ``media.json``.
    """
    path = Path(media_json)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        contents = value["contents"] if "contents" in value else [value, value["preview"]]
        return [_content(path.parent, one) for one in contents]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} does not describe contents: {error!r}") from error


def _content(folder: Path, fields: dict[str, Any]) -> Content:
    keys = fields["keys"] if "keys" in fields else [{"kid": fields["kid"], "key": fields["key"]}]
    return Content(
        content_id=fields["content_id"],
        scheme=fields["scheme"],
        seconds=fields["seconds"],
        files={name: folder / fields[name] for name in _FILES if name in fields},
        keys=tuple(_key(key) for key in keys),
        frames=fields.get("frames"),
        frames_sha256=fields.get("frames_sha256"),
    )


def _key(fields: dict[str, str]) -> ContentKey:
    iv = bytes.fromhex(fields["iv"]) if "iv" in fields else None
    return ContentKey(bytes.fromhex(fields["kid"]), bytes.fromhex(fields["key"]), iv, fields.get("skd"))
