"""The clips that the ports play: the FairPlay contents of Tests/media/hls, each as one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from usher.testing import media

MEDIA = Path(__file__).resolve().parents[1] / "media" / "hls" / "media.json"


@dataclass(frozen=True)
class Clip:
    """One clip: its pictures are encrypted with FairPlay's scheme, cbcs.

    Attributes:
        content_id: its content.
        file: the clip.
        skd: the URL of its key, as the playlist has it.
        pictures: what a port says that has decoded all pictures with the right key.
    """

    content_id: str
    file: Path
    skd: str
    pictures: str


def make_clips(folder: Path) -> list[Clip]:
    """Joins the segments of each content to one file in `folder`."""
    return [_clip(content, folder / f"{number}.mp4") for number, content in enumerate(media.read(MEDIA))]


def _clip(content: media.Content, file: Path) -> Clip:
    playlist = content.files["video"]
    lines = playlist.read_text().splitlines()
    names = [line.split('URI="')[1].split('"')[0] for line in lines if line.startswith("#EXT-X-MAP:")]
    names += [line for line in lines if line and not line.startswith("#")]
    file.write_bytes(b"".join((playlist.parent / name).read_bytes() for name in names))
    skd = content.keys[0].skd
    assert skd is not None
    return Clip(content.content_id, file, skd, f"{content.frames} frames, sha256 {content.frames_sha256}")
