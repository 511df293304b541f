"""Functions that make-dash.py and make-hls.py share: they read the command line, run ffmpeg and write media.json."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def read_options(description: str | None) -> tuple[Path, str]:
    """Reads the command line. Empties the output folder. Returns the folder and Shaka Packager's file name."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUTDIR", help="folder; replaced if it exists")
    parser.add_argument("--packager", required=True, metavar="PROGRAM", help="Shaka Packager")
    options = parser.parse_args()
    out: Path = options.out.resolve()
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    return out, options.packager


def run(*command: str | Path, cwd: Path | None = None) -> bytes:
    """Runs a program and returns what it prints. If the program fails, prints its errors and ends this process."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: {command[0]} failed:\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def ffmpeg(*arguments: str | Path) -> bytes:
    return run("ffmpeg", "-hide_banner", "-loglevel", "error", "-nostdin", "-y", *arguments)


def encode(file: Path, size: str, seconds: int, *, crf: int, key_frame: int, sound: str | None) -> None:
    """Encodes a clear clip: H.264 with a key frame every `key_frame` pictures, and a tone with the bit rate `sound`,
    for example "24k"; None: no sound."""
    tone = ["-f", "lavfi", "-i", f"sine=frequency=440:duration={seconds}"] if sound else []
    aac = ["-c:a", "aac", "-b:a", sound, "-ac", "1"] if sound else []
    quality = ["-preset", "veryslow", "-crf", str(crf), "-threads", "1", "-pix_fmt", "yuv420p"]
    groups = ["-g", str(key_frame), "-keyint_min", str(key_frame), "-sc_threshold", "0"]
    ffmpeg(
        *("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25:duration={seconds}", *tone),
        *("-c:v", "libx264", *quality, *groups, "-x264-params", "open-gop=0", *aac),
        *("-flags", "+bitexact", "-fflags", "+bitexact", "-movflags", "+faststart", file),
    )


def pictures(file: Path) -> dict[str, Any]:
    """Returns what media.json says about the decoded pictures of a clear clip."""
    raw = ffmpeg("-i", file, "-map", "0:v", "-f", "rawvideo", "-")
    asked = ["-show_entries", "stream=width,height", "-of", "csv=p=0", "-select_streams", "v"]
    width, height = map(int, run("ffprobe", "-v", "error", *asked, file).split(b","))
    return {
        "width": width,
        "height": height,
        "frames": len(raw) // (width * height * 3 // 2),
        "frames_sha256": hashlib.sha256(raw).hexdigest(),
    }


def write(out: Path, packager: str, contents: list[dict[str, Any]]) -> None:
    """Writes media.json, and prints the size of the folder."""
    version = run(packager, "--version").decode().split()[2]
    (out / "media.json").write_text(json.dumps({"packager": version, "contents": contents}, indent=2) + "\n")
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out}: {len(contents)} contents, {size // 1000} kB")
