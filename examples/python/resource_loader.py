"""Plays HLS with `skd:` key URLs: a FairPlay resource loader gets each key from a key server.

Usage:
    pip install libusher av
    python resource_loader.py PLAYLIST KEY_SERVER_URL CERTIFICATE_URL   (a media playlist of fragmented MP4, in a file)

`usher.testing.fairplay` replaces the CDM: it makes and reads test data that the reference head-end understands.
"""

import hashlib
import io
import sys
from pathlib import Path

import av

import usher
from usher.testing import fairplay


class CDM:
    """Makes SPCs and opens CKCs."""

    def __init__(self) -> None:
        self.spc = b""

    def make_spc(self, request: usher.SPCRequest) -> bytes:
        self.spc = fairplay.make_spc(request.content_id, request.certificate or b"")
        return self.spc

    def open_ckc(self, ckc: bytes) -> bytes:
        return fairplay.open_ckc(ckc, self.spc)[1]


def show(segment: bytes, key: bytes, seen) -> int:
    """Decodes an initialisation segment with one media segment behind it; returns the number of pictures."""
    count = 0
    with av.open(io.BytesIO(segment), options={"decryption_key": key.hex()}) as container:
        for frame in container.decode(video=0):
            for plane in frame.planes:
                data = memoryview(plane)
                for row in range(plane.height):  # without the padding at the end of each row
                    seen.update(data[row * plane.line_size : row * plane.line_size + plane.width])
            count += 1
    return count


def main(playlist: Path, key_server: str, certificate_url: str) -> None:
    cdm, init, key, seen, frames = CDM(), b"", b"", hashlib.sha256(), 0
    with usher.Context() as context:
        usher.ResourceLoader(context, spc=cdm.make_spc, license_url=key_server, certificate_url=certificate_url)
        with (
            usher.Player(context) as player,
            player.play() as playback,
        ):  # no delegate, so no session; the loader gets the keys
            for line in playlist.read_text().splitlines():
                if line.startswith("#EXT-X-KEY:"):
                    (protection,) = usher.read_hls_keys(line)
                    key = cdm.open_ckc(playback.get_resource(protection.uri))
                elif line.startswith("#EXT-X-MAP:"):
                    init = (playlist.parent / line.split('"')[1]).read_bytes()
                elif line and not line.startswith("#"):
                    frames += show(init + (playlist.parent / line).read_bytes(), key, seen)
    print(f"{frames} frames, sha256 {seen.hexdigest()}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]) if len(sys.argv) == 4 else __doc__)
