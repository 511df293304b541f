"""Makes files that a player must refuse, and a file that needs much memory if a player reads the whole moov box."""

from __future__ import annotations

from pathlib import Path

from hosts.conftest import Clip

HUGE = 200_000_000
"""The size of the moov box in huge_moov(), in bytes."""


def damaged(kind: str, clip: Clip, folder: Path) -> Path:
    """Writes a file that is damaged in the way that `kind` names. Returns its path."""
    data = bytearray(clip.file.read_bytes())
    moov = data.find(b"moov") - 4
    tenc = data.find(b"tenc") - 4
    file = folder / f"{kind}.mp4"
    if kind == "cut":
        del data[moov + 200 :]
    elif kind == "moov-of-200-MB":
        data[moov : moov + 4] = HUGE.to_bytes(4, "big")
    elif kind == "lying-tenc":
        data[tenc : tenc + 4] = (4_000_000).to_bytes(4, "big")
    elif kind == "other-key-id":
        data[tenc + 16 : tenc + 32] = bytes(range(16))
        pssh = data.find(b"pssh")
        if pssh >= 0:  # its key id comes after version, system id and count
            data[pssh + 28 : pssh + 44] = bytes(range(16))
    elif kind == "cut-in-the-middle":
        del data[len(data) // 2 :]
    elif kind == "IVs-of-255-bytes":
        data[tenc + 15] = 255
    elif kind == "subsamples-too-long":
        senc = data.find(b"senc") + 12  # after version, flags and count; then IV (8), count, clear (2), encrypted (4)
        data[senc + 10 : senc + 16] = b"\xff" * 6
    elif kind == "text":
        data[:] = b"This is no film.\n" * 100
    file.write_bytes(data)
    return file


def with_pssh(clip: Clip, folder: Path) -> Path:
    """Writes a copy of a progressive film with a pssh box (version 1) in moov. Returns its path. The last box of the
    film must be moov."""
    data = clip.file.read_bytes()
    moov = data.find(b"moov") - 4
    size = int.from_bytes(data[moov : moov + 4], "big")
    assert moov + size == len(data) and b"pssh" not in data
    system = bytes.fromhex("1077efecc0b24d02ace33c1e52e2fb4b")  # W3C Clear Key
    body = b"pssh\1\0\0\0" + system + (1).to_bytes(4, "big") + clip.content.keys[0].kid + bytes(4)
    pssh = (4 + len(body)).to_bytes(4, "big") + body
    file = folder / "pssh.mp4"
    file.write_bytes(data[:moov] + (size + len(pssh)).to_bytes(4, "big") + data[moov + 4 :] + pssh)
    return file


def huge_moov(clip: Clip, folder: Path) -> Path:
    """Writes a film whose moov box really has HUGE bytes, nearly all in a box `free` before the other boxes. Returns
    the path of the film. The file is sparse. The positions of the samples stay right: moov is the last box, or the film
    is fragmented."""
    data = clip.file.read_bytes()
    moov = data.find(b"moov") - 4
    size = int.from_bytes(data[moov : moov + 4], "big")
    assert moov + size == len(data) or b"mvex" in data, "the samples would be elsewhere"
    free = HUGE - size
    file = folder / "huge-moov.mp4"
    with file.open("wb") as out:
        out.write(data[:moov] + HUGE.to_bytes(4, "big") + b"moov" + free.to_bytes(4, "big") + b"free")
        out.seek(free - 8, 1)
        out.write(data[moov + 8 :])
    assert file.stat().st_size == len(data) + free
    return file
