"""Tests W3C Clear Key from the key ids of a file to its keys: usher_read_mp4(), usher_clearkey_request() and
usher_clearkey_keys()."""

from __future__ import annotations

import base64
import ctypes
import io
import json
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import usher
from stage import Stage
from stage.fps import MEDIA
from usher._c import abi, ffi
from usher.testing import media

pytestmark = pytest.mark.usefixtures("lib")

CONTENT, PREVIEW = media.read(MEDIA)
KID, KEY = bytes.fromhex("0fedcba9876543210123456789abcdef"), bytes.fromhex("00112233445566778899aabbccddeeff")
KIDS = (b"\xfb\xff\xfe" + bytes(13), bytes(range(16)))


def unpadded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def license_of(*keys: dict[str, Any]) -> usher.License:
    return usher.License(json.dumps({"keys": list(keys), "type": "temporary"}).encode())


def pair(kid: bytes, key: bytes) -> dict[str, Any]:
    return {"kty": "oct", "kid": unpadded(kid), "k": unpadded(key)}


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def encrypted_track(tenc: bytes) -> bytes:
    sinf = box(b"sinf", box(b"schm", bytes(4), b"cenc", bytes(4)), box(b"schi", tenc))
    stsd = box(b"stsd", bytes(8), box(b"encv", bytes(78), sinf))
    return box(b"trak", box(b"mdia", box(b"minf", box(b"stbl", stsd))))


def tenc(kid: bytes, iv_size: int = 8) -> bytes:
    return box(b"tenc", bytes([0, 0, 0, 0, 0, 0, 1, iv_size]), kid)


# ---- licences --------------------------------------------------------------------------------------------------------


def test_request_isWhatChromiumSends() -> None:
    """The library makes the Clear Key request for two key ids; the request has the same bytes as that of Chromium."""
    assert usher.clear_key_request([b"\xff" * 16]) == b'{"kids":["_____________________w"],"type":"temporary"}'
    assert json.loads(usher.clear_key_request(KIDS))["kids"] == [unpadded(kid) for kid in KIDS]


@pytest.mark.parametrize("kids", [[], [bytes(15)], [bytes(16)] * 1025])
def test_request_forOtherKeyIDs_isRefused(kids: list[bytes]) -> None:
    """The host passes no key id, one that is too short, or too many key ids; the call raises InvalidArgumentError."""
    with pytest.raises(usher.InvalidArgumentError):
        usher.clear_key_request(kids)


def test_keys_ofALicence_areBytesById() -> None:
    """The library reads a licence with keys of several types; it returns the keys of the type "oct"."""
    given = license_of(pair(KIDS[0], KEY), {"kty": "RSA", "kid": "AA"}, {**pair(KIDS[1], KIDS[0]), "alg": "A128KW"})
    assert given.clear_keys() == {KIDS[0]: KEY, KIDS[1]: KIDS[0]}
    many = {bytes([number]) * 16: bytes([number + 1]) * 16 for number in range(200)}
    assert license_of(*(pair(kid, key) for kid, key in many.items())).clear_keys() == many


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<html>", "the licence is not JSON"),
        (b"[]", 'the licence has no array "keys"'),
        (b'{"keys": []}', "the licence has no keys"),
        (b'{"keys": [1]}', "keys[0]: not an object"),
        (b'{"keys": [{"kty": "oct", "kid": "A.A", "k": "AA"}]}', "keys[0].kid: not base64url"),
        (license_of(pair(KID, KEY), pair(KID, KEY[1:])).data, "keys[1].k: 15 bytes, but key ids and keys have 16"),
    ],
)
def test_licence_thatIsMalformed_isRefusedInWords(data: bytes, words: str) -> None:
    """The library reads a malformed licence; the error says what is wrong and shows no part of the licence."""
    with pytest.raises(usher.ProtocolError) as caught:
        usher.License(data).clear_keys()
    assert caught.value.message == words and unpadded(KEY) not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_keys_forAHostWithLittleRoom_areNotWritten() -> None:
    """The host has room for one of two keys, or the second key is malformed; the host's array then contains no key."""
    good = license_of(pair(KIDS[0], KEY), pair(KIDS[1], KEY)).data
    bad = license_of(pair(KIDS[0], KEY), pair(KIDS[1], b"")).data
    for data, room, status, needed in ((good, 1, -26, 2), (good, 0, -26, 2), (bad, 2, -25, 0), (good, 2, 0, 2)):
        keys, count = (abi.ClearkeyKey * 2)(), ctypes.c_size_t(room)
        ctypes.memset(keys, 0xEE, ctypes.sizeof(keys))
        message = ctypes.create_string_buffer(b"x" * 15, 16)
        given = (ffi.c_bytes(data), len(data), keys, ctypes.byref(count), message, len(message))
        try:
            ffi.lib.usher_clearkey_keys(*given)
            found = 0
        except usher.UsherError as error:
            found = int(error.status)
        assert (found, count.value) == (status, needed)
        if status:
            assert KEY not in bytes(keys) and message.value and len(message.value) <= 15, "the message is cut"
        else:
            assert bytes(keys[1].key) == KEY and message.value == b""


def test_keys_refusedArgument_leavesNoOldKeys() -> None:
    """When usher_clearkey_keys() refuses the licence argument, it wipes the array and sets the count to 0; so a host
    that ignores the status reads no keys of an earlier licence."""
    data = license_of(pair(KIDS[0], KEY)).data
    long = data + b" " * ((1 << 20) + 1 - len(data))
    for given, size in ((data, 0), (None, 1), (long, len(long))):
        keys, count = (abi.ClearkeyKey * 2)(), ctypes.c_size_t(2)
        ctypes.memset(keys, 0xEE, ctypes.sizeof(keys))
        with pytest.raises(usher.InvalidArgumentError):
            ffi.lib.usher_clearkey_keys(ffi.c_bytes(given), size, keys, ctypes.byref(count), None, 0)
        assert (count.value, bytes(keys)) == (0, bytes(64))


def test_keys_forTooManyKeys_changesNothing() -> None:
    """usher_clearkey_keys() refuses a count above 1,048,576, and changes neither the count nor the array."""
    keys, count = (abi.ClearkeyKey * 1)(), ctypes.c_size_t((1 << 20) + 1)
    ctypes.memset(keys, 0xEE, ctypes.sizeof(keys))
    data = license_of(pair(KIDS[0], KEY)).data
    with pytest.raises(usher.InvalidArgumentError):
        ffi.lib.usher_clearkey_keys(ffi.c_bytes(data), len(data), keys, ctypes.byref(count), None, 0)
    assert (count.value, bytes(keys)) == ((1 << 20) + 1, b"\xee" * 32)


def test_file_toKeys_needsNoOtherCode(stage: Stage) -> None:
    """The host plays a file that it has never seen: key ids, request, licence and key all come from the library."""
    kid = bytes.fromhex("00112233445566778899aabbccddeeff")
    found = usher.read_mp4(io.BytesIO(box(b"ftyp", bytes(8)) + box(b"moov", encrypted_track(tenc(kid)))))
    playback = stage.play()
    licence = playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request(found.key_ids))
    assert licence.clear_keys() == {kid: bytes.fromhex("ffeeddccbbaa99887766554433221100")}


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Returns a function that makes a short clip with ffmpeg: ``clip("name", option, …)``."""
    if not shutil.which("ffmpeg"):
        pytest.skip("ffmpeg is not installed")
    folder = tmp_path_factory.mktemp("clips")
    encryption = ["-encryption_scheme", "cenc-aes-ctr", "-encryption_key", KEY.hex(), "-encryption_kid", KID.hex()]

    def make(name: str, *options: str, encrypted: bool = True) -> Path:
        path = folder / name
        sources = ["-f", "lavfi", "-i", "testsrc=s=64x64:d=1", "-f", "lavfi", "-i", "sine=d=1"]
        codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-threads", "1", "-c:a", "aac"]
        more = [*codecs, *options, *(encryption if encrypted else ())]
        command = ["ffmpeg", "-loglevel", "error", "-nostdin", "-y", *sources, *more, str(path)]
        subprocess.run(command, check=True, timeout=60)
        return path

    return make


@pytest.mark.parametrize(
    "options",
    [(), ("-movflags", "+faststart"), ("-movflags", "+frag_keyframe+empty_moov"), ("-f", "mov")],
    ids=["moov-last", "moov-first", "fragmented", "quicktime"],
)
def test_clip_ofFFmpeg_isRead(clip: Callable[..., Path], options: tuple[str, ...], request: Any) -> None:
    """The library reads a clip that ffmpeg has encrypted, with moov at the end, moov first, in fragments or as
    QuickTime; it finds both tracks, their scheme and key id."""
    path = clip(f"{request.node.callspec.id}.mp4", *options)
    found = usher.read_mp4(path)
    assert (found.key_ids, found.scheme, found.pssh, found.init_data) == ((KID,), "cenc", (), None)
    assert [(track.track_id, track.key_ids, track.scheme) for track in found.tracks] == [
        (1, (KID,), "cenc"),
        (2, (KID,), "cenc"),
    ]
    with path.open("rb") as file:
        assert usher.read_mp4(file) == found
    data = path.read_bytes()
    assert usher.read_mp4(lambda offset, size: data[offset : offset + min(size, 5)]) == found, "in small pieces"


def test_clip_withoutEncryption_hasNoKeyIDs(clip: Callable[..., Path]) -> None:
    """The library reads a clip that is not encrypted; it reports no error and returns no key ids."""
    assert usher.read_mp4(clip("clear.mp4", encrypted=False)) == usher.FileProtection()


def test_fragmentedCBCS_ofShakaPackager_isRead() -> None:
    """The library reads fragmented files with cbcs. Each file has an initialisation segment and one media segment."""
    for content in (CONTENT, PREVIEW):
        for name, key in zip(("video", "audio"), content.keys, strict=False):
            if name not in content.files:
                continue
            folder = content.files[name].parent / name
            data = b"".join(path.read_bytes() for path in [folder / "init.mp4", *sorted(folder.glob("*.m4s"))[:1]])
            found = usher.read_mp4(io.BytesIO(data))
            assert (found.key_ids, found.scheme) == ((key.kid,), "cbcs"), folder
            assert found.tracks[0].iv == key.iv


def test_huge_file_takesFewReads() -> None:
    """The library reads a file of 6 TB whose moov box has 200 MB; it makes at most 20 reads, of 80 kB in all."""
    track = encrypted_track(tenc(KID))
    moov = 8 + 200_000_000 + len(track)
    start = 16 + (6 << 40)
    pieces = {
        0: struct.pack(">I4sQ", 1, b"mdat", start),
        start: struct.pack(">I4sI4s", moov, b"moov", 200_000_000, b"udta"),
        start + 8 + 200_000_000: track,
    }
    reads: list[int] = []

    def read(offset: int, size: int) -> bytes:
        reads.append(size)
        for at, piece in pieces.items():
            if at <= offset < at + len(piece):
                return piece[offset - at :][:size]
        return bytes(size) if offset < start + moov else b""

    assert usher.read_mp4(read).key_ids == (KID,)
    assert len(reads) <= 20 and sum(reads) <= 20 * 4096


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file has no moov box; it is no MP4 file, or its end is missing"),
        (b"\x1aE\xdf\xa3" + bytes(100), "this is no MP4 file"),
        (
            box(b"moov", encrypted_track(b""), encrypted_track(tenc(KID, 7))),
            "moov/trak[1]/mdia/minf/stbl/stsd/encv/sinf: no tenc box",
        ),
        (
            box(b"moov", encrypted_track(tenc(KID)), encrypted_track(tenc(KID, 7))),
            "moov/trak[2]/mdia/minf/stbl/stsd/encv/sinf/schi/tenc: an IV must have 8 or 16 bytes",
        ),
        (box(b"moov", encrypted_track(tenc(KID)))[:40], "moov/trak[1]/mdia/minf/stbl: the file ends inside this box"),
    ],
)
def test_file_thatIsMalformed_isRefusedInWords(data: bytes, words: str) -> None:
    """The library reads a file that is malformed, cut or of another kind; the error has the path of the box."""
    with pytest.raises(usher.ProtocolError) as caught:
        usher.read_mp4(io.BytesIO(data))
    assert caught.value.message == words


def test_reader_thatRaises_isHeard() -> None:
    """If the host's read function raises an exception, the host gets this exception. If the function returns too many
    bytes, the host gets CallbackError."""

    def broken(offset: int, size: int) -> bytes:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        usher.read_mp4(broken)
    with pytest.raises(usher.CallbackError, match="the file could not be read at byte 0"):
        usher.read_mp4(lambda offset, size: bytes(size + 1))
    with pytest.raises(FileNotFoundError):
        usher.read_mp4("/no/such/file.mp4")
