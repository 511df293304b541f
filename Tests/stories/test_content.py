"""Tests the functions that read data from content: pssh and tenc boxes, HLS keys, DASH ContentProtection, content
identifiers."""

from __future__ import annotations

import base64
import json
import random
import struct
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

import usher
from stage.fps import MEDIA
from usher.testing import fairplay, media

pytestmark = pytest.mark.usefixtures("lib")

WIDEVINE = uuid.UUID(usher.KeySystem.WIDEVINE.value).bytes
FAIRPLAY = uuid.UUID(usher.KeySystem.FAIRPLAY.value).bytes
CLEARKEY = uuid.UUID(usher.KeySystem.CLEARKEY.value).bytes
KIDS = (bytes(range(16)), bytes(range(16, 32)))
CONTENT, PREVIEW = media.read(MEDIA)
RULE = usher.ContentIDRule


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def pssh(system: bytes, data: bytes = b"", kids: tuple[bytes, ...] = ()) -> bytes:
    listed = struct.pack(">I", len(kids)) + b"".join(kids) if kids else b""
    return box(b"pssh", bytes([1 if kids else 0, 0, 0, 0]), system, listed, struct.pack(">I", len(data)), data)


def widevine_data(content: bytes, *kids: bytes) -> bytes:
    """Makes Widevine's pssh data: field 2 is a key id, field 4 the content id."""
    return b"".join(b"\x12\x10" + kid for kid in kids) + b"\x22" + bytes([len(content)]) + content


# ---- pssh ------------------------------------------------------------------------------------------------------------


def test_pssh_ofVersion1_listsItsKeys() -> None:
    raw = pssh(CLEARKEY, kids=KIDS)
    assert usher.read_pssh(raw) == (
        usher.Protection(key_system=usher.KeySystem.CLEARKEY, system_id=CLEARKEY, key_ids=KIDS, init_data=raw),
    )


def test_pssh_ofWidevine_isLookedInto() -> None:
    raw = pssh(WIDEVINE, widevine_data(b"movie-1", *KIDS))
    (found,) = usher.read_pssh(raw)
    assert (found.key_system, found.key_ids, found.content_id, found.init_data) == (
        usher.KeySystem.WIDEVINE,
        KIDS,
        b"movie-1",
        raw,
    )


def test_pssh_ofAnUnknownSystem_isToldByItsId() -> None:
    system = bytes(range(100, 116))
    (found,) = usher.read_pssh(pssh(system, b"data"))
    assert (found.key_system, found.system_id, found.key_ids, found.content_id) == (None, system, (), None)


@pytest.mark.parametrize("wrap", [bytes, base64.b64encode, base64.urlsafe_b64encode], ids=["box", "base64", "urlsafe"])
def test_pssh_severalAfterEachOther_areToldInOrder(wrap: Any) -> None:
    boxes = [pssh(WIDEVINE, widevine_data(b"a", KIDS[0])), pssh(CLEARKEY, kids=KIDS), pssh(FAIRPLAY)]
    found = usher.read_pssh(wrap(b"".join(boxes)))
    assert [one.init_data for one in found] == boxes


@pytest.mark.parametrize(
    "raw", [b"", b"\x00", b"pssh", b"\x00\x00\x00\x20pssh", pssh(WIDEVINE, b"x" * 50)[:-1], b"$" * 100, bytes(1 << 20)]
)
def test_pssh_thatIsNone_isNothing(raw: bytes) -> None:
    assert usher.read_pssh(raw) == ()


# ---- tenc ------------------------------------------------------------------------------------------------------------


def test_tenc_ofTheMediaOfTheRepository_tellsSchemePatternAndIv() -> None:
    init = (MEDIA.parent / "clip" / "video" / "init.mp4").read_bytes()
    picture = CONTENT.keys[0]
    assert usher.read_tenc(init) == (
        usher.Protection(key_ids=(picture.kid,), iv=picture.iv, scheme="cbcs", crypt_blocks=1, skip_blocks=9),
    )
    (sound,) = usher.read_tenc((MEDIA.parent / "clip" / "audio" / "init.mp4").read_bytes())
    assert (sound.key_ids, sound.scheme, sound.iv) == ((CONTENT.keys[1].kid,), "cbcs", CONTENT.keys[1].iv)


def test_tenc_bare_isRead() -> None:
    cenc = box(b"tenc", bytes(4), b"\x00\x00\x01\x08", KIDS[0])
    assert usher.read_tenc(cenc) == (usher.Protection(key_ids=KIDS[:1]),)
    clear = box(b"tenc", bytes(4), b"\x00\x00\x00\x00", KIDS[0])
    assert usher.read_tenc(clear) == (usher.Protection(),)


@pytest.mark.parametrize("raw", [b"", b"moov", box(b"moov", box(b"trak")), box(b"tenc", bytes(10))])
def test_tenc_thatIsNone_isNothing(raw: bytes) -> None:
    assert usher.read_tenc(raw) == ()


# ---- HLS -------------------------------------------------------------------------------------------------------------


def test_hls_rotatingPlaylist_namesItsKeysInOrder() -> None:
    found = usher.read_hls_keys(CONTENT.files["rotating"].read_bytes())
    wanted = [CONTENT.keys[0], CONTENT.keys[2]]
    assert [one.uri for one in found] == [key.skd for key in wanted]
    assert [one.key_ids for one in found] == [(key.kid,) for key in wanted], "the JSON in the URL names the key id"
    assert {(one.key_system, one.scheme, one.is_session) for one in found} == {
        (usher.KeySystem.FAIRPLAY, "cbcs", False)
    }
    for one, key in zip(found, wanted, strict=True):
        assert key.iv is not None
        assert one.content_id == fairplay.identifier(CONTENT.content_id, key.kid, key.iv)
        assert one.content_id == usher.content_id(one.uri or "")


def test_hls_sessionKey_andMethods_areTold() -> None:
    playlist = """#EXTM3U
#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://movie",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"
#EXT-X-KEY:METHOD=AES-128,URI="https://keys.example.com/1,2",IV=0x000102030405060708090A0B0C0D0E0F
#EXT-X-KEY:METHOD=NONE
#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,%s",KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed",KEYID=0x%s
"""
    raw = pssh(WIDEVINE, widevine_data(b"movie-1", KIDS[1]))
    session, aes, none, widevine = usher.read_hls_keys(playlist % (base64.b64encode(raw).decode(), KIDS[0].hex()))
    assert (session.is_session, session.uri, session.content_id, session.scheme) == (
        True,
        "skd://movie",
        b"movie",
        "cbcs",
    )
    assert (aes.uri, aes.iv, aes.scheme, aes.key_system) == (
        "https://keys.example.com/1,2",
        bytes(range(16)),
        "aes1",
        None,
    )
    assert none == usher.Protection()
    assert (widevine.key_ids, widevine.content_id, widevine.init_data) == (KIDS, b"movie-1", raw)


def test_hls_oneLine_isRead() -> None:
    (found,) = usher.read_hls_keys(
        '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://m",KEYFORMAT="com.apple.streamingkeydelivery"'
    )
    assert found.uri == "skd://m"


@pytest.mark.parametrize("file", ["playlist", "video", "audio", "rotating"])
def test_rewrite_changesTheUris_andNoOtherByte(file: str) -> None:
    before = CONTENT.files[file].read_bytes()
    after = usher.rewrite_hls_keys(before, "http://127.0.0.1:8000/key/")
    wanted = before
    for number, uri in enumerate(dict.fromkeys(way.uri or "" for way in usher.read_hls_keys(before))):
        wanted = wanted.replace(uri.encode(), f"http://127.0.0.1:8000/key/{number}".encode())
    assert after == wanted


def test_rewrite_sameUri_hasTheSameNumber_otherSchemesAreLeft() -> None:
    lines = [
        f'#EXT-X-KEY:METHOD=SAMPLE-AES,URI="{uri}"'
        for uri in ("skd://a", "https://b", "skd://c", "skd://a", "other:d", "SKD://a")
    ]
    playlist = "#EXTM3U\r\n" + "\r\n".join(lines) + "\r\n\xa0"
    found = [way.uri for way in usher.read_hls_keys(usher.rewrite_hls_keys(playlist, "k/"))]
    assert found == ["k/0", "https://b", "k/1", "k/0", "other:d", "k/2"]
    found = [way.uri for way in usher.read_hls_keys(usher.rewrite_hls_keys(playlist, "k/", scheme="other"))]
    assert found[4] == "k/0"
    assert found[:4] == ["skd://a", "https://b", "skd://c", "skd://a"]


@pytest.mark.parametrize("prefix", ['a"b', "a\nb", "a b", "\x7f", "a\0b", ""])
def test_rewrite_toAPrefixThatCannotStandThere_isRefused(prefix: str) -> None:
    playlist = '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://a"'
    if prefix == "":
        assert usher.rewrite_hls_keys(playlist, prefix).endswith(b'URI="0"')
        return
    with pytest.raises(usher.InvalidArgumentError):
        usher.rewrite_hls_keys(playlist, prefix)


def keys(count: int) -> str:
    return "#EXTM3U\n" + "".join(f'#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd:{number:x}"\n' for number in range(count))


def seconds(playlist: str) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        usher.rewrite_hls_keys(playlist, "k/")
        best = min(best, time.process_time() - began)
    return best


def test_rewrite_ofManyKeys_takesTimeInProportion() -> None:
    assert len(usher.read_hls_keys(usher.rewrite_hls_keys(keys(16_000), "k/"))) == 16_000
    assert seconds(keys(16_000)) < 40 * seconds(keys(1_600)), "less than 40 times the time"


# ---- DASH ------------------------------------------------------------------------------------------------------------


def test_dash_manifest_isRead() -> None:
    raw = pssh(WIDEVINE, widevine_data(b"movie-1", KIDS[0]))
    manifest = f"""<?xml version="1.0"?>
<MPD xmlns:cenc="urn:mpeg:cenc:2013" xmlns:dashif="https://dashif.org/CPS"><Period><AdaptationSet>
  <ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cbcs"
   cenc:default_KID="{uuid.UUID(bytes=KIDS[0])}"/>
  <ContentProtection schemeIdUri="urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED">
    <cenc:pssh>{base64.b64encode(raw).decode()}</cenc:pssh>
    <dashif:Laurl>https://wv.example.com/?a=1&amp;b=2</dashif:Laurl>
  </ContentProtection>
</AdaptationSet></Period></MPD>"""
    common, widevine = usher.read_dash_protection(manifest)
    assert (common.key_system, common.key_ids, common.scheme) == (None, KIDS[:1], "cbcs")
    assert (widevine.key_system, widevine.init_data, widevine.content_id) == (usher.KeySystem.WIDEVINE, raw, b"movie-1")
    assert widevine.uri == "https://wv.example.com/?a=1&b=2"


# ---- content identifiers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [CONTENT, PREVIEW], ids=lambda content: content.content_id)
def test_contentId_ofAPackagersUrl_isItsJson(content: media.Content) -> None:
    for key in content.keys:
        assert key.skd is not None
        named = usher.content_id(key.skd)
        assert json.loads(named) == {
            "ContentId": content.content_id,
            "KeyId": str(uuid.UUID(bytes=key.kid)),
            "IV": base64.b64encode(key.iv or b"").decode(),
        }
        assert usher.content_id(key.skd, RULE.SSP) == content.content_id.encode()
        assert usher.content_id(key.skd.removeprefix("skd://")) == named, "the scheme does not matter"


def test_contentId_ofNothing_isRefused() -> None:
    for url in ("", "skd://", "skd://?x"):
        with pytest.raises(usher.InvalidArgumentError):
            usher.content_id(url)
    for rule in (-1, 7, 99):
        with pytest.raises(usher.InvalidArgumentError):
            usher.content_id("skd://a", rule)


def test_contentId_ofTheLargestUrl_isWhole() -> None:
    assert usher.content_id("skd://" + "a" * 65_530) == b"a" * 65_530
    with pytest.raises(usher.InvalidArgumentError):
        usher.content_id("skd://" + "a" * 65_531)


# ---- damaged and oversized input -------------------------------------------------------------------------------------

READERS = [usher.read_pssh, usher.read_tenc, usher.read_hls_keys, usher.read_dash_protection]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_readers_ofMoreThanAMebibyte_refuse(reader: Any) -> None:
    assert reader(bytes(1 << 20)) == ()
    with pytest.raises(usher.InvalidArgumentError):
        reader(bytes((1 << 20) + 1))
    assert reader(b"") == ()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_readers_ofDamagedMedia_findWhatIsWholeAndDoNotTrap(reader: Any) -> None:
    dice = random.Random(7)
    files = [path for path in sorted(Path(MEDIA).parent.rglob("*")) if path.suffix in (".m3u8", ".mp4")]
    for path in files:
        whole = path.read_bytes()[:65_536]
        for _ in range(60):
            damaged = bytearray(whole[: dice.randrange(1, len(whole) + 1)])
            for _ in range(dice.randrange(8)):
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
            assert isinstance(reader(bytes(damaged)), tuple)


def test_countInC_isToldAlsoWithoutACallbacksHelp() -> None:
    import ctypes

    from usher._c import abi, ffi

    count, raw = ctypes.c_size_t(99), pssh(CLEARKEY, kids=KIDS) * 3
    ffi.lib.usher_read_pssh(
        ffi.c_bytes(raw), len(raw), abi.ProtectionFn(lambda pointer, user: None), None, ctypes.byref(count)
    )
    assert count.value == 3
    with pytest.raises(usher.InvalidArgumentError):
        ffi.lib.usher_read_pssh(ffi.c_bytes(raw), len(raw), abi.ProtectionFn(), None, ctypes.byref(count))
    assert count.value == 0


def test_bufferInC_tooSmall_saysHowLargeItMustBe() -> None:
    import ctypes

    from usher._c import ffi

    size, buffer = ctypes.c_size_t(3), (ctypes.c_uint8 * 8)(*b"........")
    with pytest.raises(usher.TooLargeError):
        ffi.lib.usher_content_id(ffi.c_bytes(b"skd://movie"), 11, 0, buffer, ctypes.byref(size))
    assert (size.value, bytes(buffer)) == (5, b"........"), "a buffer that is too small stays unchanged"
    size.value = 8
    ffi.lib.usher_content_id(ffi.c_bytes(b"skd://movie"), 11, 0, buffer, ctypes.byref(size))
    assert (size.value, bytes(buffer)) == (5, b"movie...")
    with pytest.raises(usher.InvalidArgumentError):
        ffi.lib.usher_content_id(ffi.c_bytes(b"skd://movie"), 11, 0, buffer, None)
