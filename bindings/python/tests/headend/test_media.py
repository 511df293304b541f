"""Tests the contents in the repository: their keys decrypt them, and with the URLs in their playlists a player gets
these keys."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
from pathlib import Path

import av
import pytest
from headend_client import Client

from usher.testing import fairplay, media
from usher.testing.headend import HeadEnd
from usher.testing.headend.cli import main

ROOT = Path(__file__).resolve().parents[4]
HLS = ROOT / "Tests" / "media" / "hls" / "media.json"
CLIP, PREVIEW = media.read(HLS)


def segments(playlist: Path) -> list[tuple[str, bytes]]:
    """For each segment of a media playlist, returns the ``skd:`` URL of its key, and its bytes with the initialisation
    segment before them."""
    found, init, url = [], b"", ""
    for line in playlist.read_text().splitlines():
        if line.startswith("#EXT-X-MAP:"):
            init = (playlist.parent / line.split('URI="')[1].split('"')[0]).read_bytes()
        elif line.startswith("#EXT-X-KEY:"):
            assert (
                line.startswith("#EXT-X-KEY:METHOD=SAMPLE-AES,")
                and 'KEYFORMAT="com.apple.streamingkeydelivery"' in line
            )
            url = line.split('URI="')[1].split('"')[0]
        elif line and not line.startswith("#"):
            found.append((url, init + (playlist.parent / line).read_bytes()))
    return found


def pictures(pieces: list[tuple[bytes, bytes | None]]) -> tuple[int, str]:
    """Decodes pieces of a clip, each with its key. Returns the number and the hash of the pictures."""
    digest, count = hashlib.sha256(), 0
    for piece, key in pieces:
        with av.open(io.BytesIO(piece), options={} if key is None else {"decryption_key": key.hex()}) as container:
            for frame in container.decode(video=0):
                digest.update(packed(frame))
                count += 1
    return count, digest.hexdigest()


def packed(frame: av.VideoFrame) -> bytes:
    """Returns the planes of a frame without the padding of their rows."""
    rows = []
    for plane in frame.planes:
        data = bytes(plane)
        rows += [data[row * plane.line_size : row * plane.line_size + plane.width] for row in range(plane.height)]
    return b"".join(rows)


def ask_key(client: Client, url: str) -> bytes:
    """Gets the key of an ``skd:`` URL from the key server, and returns it."""
    identifier = fairplay.read_identifier(url.removeprefix("skd://").encode())
    assert identifier.content_id is not None and identifier.kid is not None and identifier.iv is not None
    spc = fairplay.make_spc(fairplay.identifier(identifier.content_id, identifier.kid, identifier.iv))
    reply = client.send("POST", client.he.fps_url, body=spc, headers={"Content-Type": "application/octet-stream"})
    return fairplay.open_ckc(reply.body, spc)[1]


@pytest.mark.parametrize(("content", "name"), [(CLIP, "video"), (CLIP, "rotating"), (PREVIEW, "video")])
def test_hls_keysFromTheKeyServer_decryptTheVeryPictures(
    headend: HeadEnd, client: Client, content: media.Content, name: str
) -> None:
    assert [one.content_id for one in headend.add_media(HLS)] == ["hls-clip", "preview-a?b=~1"]
    pieces: list[tuple[bytes, bytes | None]] = [
        (piece, ask_key(client, url)) for url, piece in segments(content.files[name])
    ]
    assert pictures(pieces) == (content.frames, content.frames_sha256)
    assert len({key for _, key in pieces}) == (2 if name == "rotating" else 1)


def test_hls_anotherKey_decryptsOtherPictures_ifAny() -> None:
    pieces: list[tuple[bytes, bytes | None]] = [
        (piece, PREVIEW.keys[0].key) for _, piece in segments(CLIP.files["video"])
    ]
    try:
        shown = pictures(pieces)
    except av.FFmpegError:
        return
    assert shown != (CLIP.frames, CLIP.frames_sha256)


def test_hls_isEncryptedFromTheFirstPicture() -> None:
    for content in (CLIP, PREVIEW):
        for name in ("video", "audio"):
            for _, piece in segments(content.files[name]) if name in content.files else []:
                entries = piece[
                    piece.index(b"stsd") + 8 : piece.index(b"stsd") + 12
                ]  # a clear lead would have a separate entry
                assert (entries, piece.count(b"encv" if name == "video" else b"enca")) == (b"\0\0\0\1", 1)
                assert b"schm\0\0\0\0cbcs" in piece and (b"saiz" in piece) == (name == "video")


def test_hls_sound_hasAKeyOfItsOwn(headend: HeadEnd, client: Client) -> None:
    headend.add_media(HLS)
    found = segments(CLIP.files["audio"])
    keys = {ask_key(client, url) for url, _ in found}
    assert keys == {CLIP.keys[1].key}
    whole = found[0][1] + b"".join(piece[piece.index(b"styp") - 4 :] for _, piece in found[1:])
    with av.open(io.BytesIO(whole), options={"decryption_key": CLIP.keys[1].key.hex()}) as container:
        samples = sum(frame.samples for frame in container.decode(audio=0))
        assert samples / container.streams.audio[0].rate == pytest.approx(CLIP.seconds, abs=0.1)


def test_hls_masterPlaylist_namesTheOthers() -> None:
    text = CLIP.files["playlist"].read_text()
    assert re.search(r'TYPE=AUDIO,URI="audio.m3u8"', text) and text.rstrip().endswith("video.m3u8")


def test_hls_keysAndVectors_areThoseInTheFiles() -> None:
    told = {key.kid: key for content in (CLIP, PREVIEW) for key in content.keys}
    assert len(told) == 4
    playlists = [CLIP.files["rotating"], CLIP.files["audio"], PREVIEW.files["video"]]
    seen: set[bytes] = set()
    for url, piece in [found for playlist in playlists for found in segments(playlist)]:
        tenc = piece[piece.index(b"tenc") + 4 :]
        kid, size = tenc[8:24], tenc[24]
        assert tenc[25 : 25 + size] == told[kid].iv
        assert url == told[kid].skd
        assert fairplay.read_identifier(url.removeprefix("skd://").encode()).kid == kid
        seen.add(kid)
    assert seen == set(told)


def test_hls_previewUrl_holdsWhatUrlParsersTripOver() -> None:
    url = PREVIEW.keys[0].skd
    assert url is not None and {"/", "+", "="} <= set(url.removeprefix("skd://")) and url != url.lower()


def test_hls_isSmall() -> None:
    assert sum(file.stat().st_size for file in HLS.parent.rglob("*") if file.is_file()) < 500_000


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg, which makes the clip, is not installed")
def test_media_clipAndPreview_areTwoContents(tmp_path: Path, headend: HeadEnd) -> None:
    subprocess.run(
        [str(ROOT / "scripts" / "make-media.sh"), str(tmp_path), "--seconds", "1.5"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    clip, preview = headend.add_media(tmp_path / "media.json")
    assert (clip.content_id, preview.content_id) == ("clip", "preview") and clip.keys != preview.keys
    for content in (clip, preview):
        encrypted = content.files["encrypted"].read_bytes()
        assert content.keys[0].kid in encrypted
        wanted = pictures([(content.files["clear"].read_bytes(), None)])
        assert pictures([(encrypted, content.keys[0].key)]) == wanted and wanted[0] > 30
        assert headend.keys.kids(content.content_id) == (content.keys[0].kid,)


@pytest.mark.parametrize("text", ["{}", "[]", "nonsense", '{"contents": [{"content_id": "x"}]}'])
def test_media_json_thatIsNone_isNamed(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "media.json").write_text(text)
    with pytest.raises(ValueError, match="does not describe contents"):
        media.read(tmp_path / "media.json")
    assert main(["--media", str(tmp_path / "media.json")]) == 2
    assert "does not describe contents" in capsys.readouterr().err
