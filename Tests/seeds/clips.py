"""The clips that the ports play: the first segment of each FairPlay content of Tests/media/hls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import av
from seeds.av_player import pictures

from usher.testing import media

MEDIA = Path(__file__).resolve().parents[1] / "media" / "hls" / "media.json"


@dataclass(frozen=True)
class Clip:
    """One clip: its pictures are encrypted with FairPlay's scheme, cbcs.

    Attributes:
        content_id: its content.
        file: the clip.
        clear: the same pictures, not encrypted.
        skd: the URL of its key, as the playlist has it.
        pictures: the line that a port prints when it has decoded all pictures: the number and the hash of the pictures.
    """

    content_id: str
    file: Path
    clear: Path
    skd: str
    pictures: str


def make_clips(folder: Path) -> list[Clip]:
    """Writes the clips to `folder`, and returns them."""
    return [_clip(content, folder / f"{number}.mp4") for number, content in enumerate(media.read(MEDIA))]


def _clip(content: media.Content, file: Path) -> Clip:
    playlist = content.files["video"]
    lines = playlist.read_text().splitlines()
    (start,) = [line.split('URI="')[1].split('"')[0] for line in lines if line.startswith("#EXT-X-MAP:")]
    first = next(line for line in lines if line and not line.startswith("#"))
    file.write_bytes((playlist.parent / start).read_bytes() + (playlist.parent / first).read_bytes())
    clear = file.with_suffix(".clear.mp4")
    _decrypt(file, clear, content.keys[0].key)
    skd = content.keys[0].skd
    assert skd is not None
    return Clip(content.content_id, file, clear, skd, pictures(str(clear)))


def _decrypt(file: Path, clear: Path, key: bytes) -> None:
    """Writes a file with the same packets, but without encryption."""
    with av.open(str(file), options={"decryption_key": key.hex()}) as source, av.open(str(clear), "w") as target:
        pictures = source.streams.video[0]
        stream = target.add_stream_from_template(pictures)
        stream.codec_context.codec_tag = "avc1"  # the template has the tag of encrypted pictures
        for packet in source.demux(pictures):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
