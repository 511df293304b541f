"""Compares the decryption of the GStreamer plug-in (hosts/gstreamer/cenc.c) with the rules of ISO/IEC 23001-7."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

ROOT = Path(__file__).resolve().parents[2]
KEY = bytes.fromhex("00112233445566778899aabbccddeeff")
CENC, CBCS = 1, 2

pytestmark = pytest.mark.quick

Decrypt = Callable[..., bytes | str]


@pytest.fixture(scope="module")
def decrypt(tmp_path_factory: pytest.TempPathFactory) -> Decrypt:
    """Returns a function that decrypts a sample with the plug-in's code, under AddressSanitizer. The function returns
    the bytes, or why they cannot be decrypted."""
    program = tmp_path_factory.mktemp("cenc") / "samples"
    sources = [ROOT / "Tests" / "hosts" / "cenc_samples.c", ROOT / "hosts" / "gstreamer" / "cenc.c"]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
    command = ["cc", *flags, "-I", ROOT / "hosts" / "gstreamer", *sources, "-lcrypto", "-o", program]
    subprocess.run([str(word) for word in command], check=True, timeout=120)

    def run(
        scheme: int,
        iv: bytes,
        data: bytes,
        subsamples: list[tuple[int, int]] | None = None,
        crypt: int = 0,
        skip: int = 0,
    ) -> bytes | str:
        packed = b"".join(struct.pack(">HI", *each) for each in subsamples or []).hex() or "-"
        line = f"{scheme} {KEY.hex()} {iv.hex() or '-'} {crypt} {skip} {packed} {data.hex() or '-'}\n"
        done = subprocess.run([str(program)], input=line, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        text = done.stdout.strip()
        return text if text.startswith("wrong") else bytes.fromhex(text)

    return run


def parts(data: bytes, subsamples: list[tuple[int, int]] | None) -> list[tuple[bytes, bytes]]:
    """Returns the parts of a sample, as pairs of clear bytes and the encrypted bytes after them."""
    found, at = [], 0
    for clear, encrypted in subsamples or [(0, len(data))]:
        found.append((data[at : at + clear], data[at + clear : at + clear + encrypted]))
        at += clear + encrypted
    return found


def ctr(iv: bytes, data: bytes, subsamples: list[tuple[int, int]] | None) -> bytes:
    """Returns the sample encrypted with cenc, block by block. The counter is in the lower 64 bits of the counter block,
    without a carry into the upper 64 bits."""
    size = sum(len(encrypted) for _, encrypted in parts(data, subsamples))
    block, stream = iv.ljust(16, b"\0"), b""
    upper, lower = block[:8], int.from_bytes(block[8:], "big")
    for number in range(-(-size // 16)):
        counter = upper + ((lower + number) % 2**64).to_bytes(8, "big")
        stream += Cipher(algorithms.AES(KEY), modes.ECB()).encryptor().update(counter)
    out, at = b"", 0
    for clear, encrypted in parts(data, subsamples):
        out += clear + bytes(a ^ b for a, b in zip(encrypted, stream[at : at + len(encrypted)], strict=True))
        at += len(encrypted)
    return out


def cbc(iv: bytes, data: bytes, subsamples: list[tuple[int, int]] | None, crypt: int, skip: int) -> bytes:
    """Returns the sample encrypted with cbcs: the encryption of each part begins with the IV; a rest of less than a
    block is clear."""
    out = b""
    for clear, encrypted in parts(data, subsamples):
        cipher = Cipher(algorithms.AES(KEY), modes.CBC(iv.ljust(16, b"\0"))).encryptor()
        out += clear
        for number in range(0, len(encrypted), 16):
            block = encrypted[number : number + 16]
            hidden = len(block) == 16 and (skip == 0 or (number // 16) % (crypt + skip) < crypt)
            out += cipher.update(block) if hidden else block
    return out


DATA = random.Random(1).randbytes(5000)
SUBSAMPLES = [(5, 1003), (0, 16), (100, 0), (65, 2031), (1, 15), (64, 1700)]


@pytest.mark.parametrize("subsamples", [None, SUBSAMPLES], ids=["whole", "subsamples"])
@pytest.mark.parametrize(
    "iv", ["0102030405060708", "0102030405060708ffffffffffffffff", "0102030405060708fffffffffffffff0", "00" * 16]
)
def test_cenc_isDecrypted(decrypt: Decrypt, iv: str, subsamples: list[tuple[int, int]] | None) -> None:
    """The code decrypts AES-CTR with an IV of 8 or 16 bytes, also when the counter of a sample overflows."""
    hidden = ctr(bytes.fromhex(iv), DATA, subsamples)
    assert hidden != DATA
    assert decrypt(CENC, bytes.fromhex(iv), hidden, subsamples) == DATA


@pytest.mark.parametrize("subsamples", [None, SUBSAMPLES], ids=["whole", "subsamples"])
@pytest.mark.parametrize(("crypt", "skip"), [(1, 9), (5, 5), (0, 0), (10, 0), (3, 1)])
@pytest.mark.parametrize("iv", ["0102030405060708", "0102030405060708090a0b0c0d0e0f10"])
def test_cbcs_isDecrypted(
    decrypt: Decrypt, iv: str, crypt: int, skip: int, subsamples: list[tuple[int, int]] | None
) -> None:
    """The code decrypts AES-CBC with each pattern, with a constant IV of 8 or 16 bytes."""
    hidden = cbc(bytes.fromhex(iv), DATA, subsamples, crypt, skip)
    assert hidden != DATA
    assert decrypt(CBCS, bytes.fromhex(iv), hidden, subsamples, crypt, skip) == DATA


@pytest.mark.parametrize(
    ("scheme", "iv", "subsamples", "words"),
    [
        (3, "00" * 16, None, "wrong: the encryption scheme is neither cenc nor cbcs"),
        (CENC, "", None, "wrong: the initialisation vector has neither 8 nor 16 bytes"),
        (CENC, "00" * 12, None, "wrong: the initialisation vector has neither 8 nor 16 bytes"),
        (CENC, "00" * 8, [(0, 5001)], "wrong: the subsamples are longer than the sample"),
        (CBCS, "00" * 8, [(65535, 2**32 - 1)] * 9, "wrong: the subsamples are longer than the sample"),
        (CENC, "00" * 8, [(10, 100)], "wrong: the subsamples are shorter than the sample"),
    ],
)
def test_malformedSample_isRefused(
    decrypt: Decrypt, scheme: int, iv: str, subsamples: list[tuple[int, int]] | None, words: str
) -> None:
    """The description of a sample does not fit the sample. The code refuses the sample, returns the reason, and changes
    no byte."""
    assert decrypt(scheme, bytes.fromhex(iv), DATA, subsamples) == words


def test_emptySample_isDecrypted(decrypt: Decrypt) -> None:
    """A sample without bytes remains empty."""
    assert decrypt(CENC, bytes(8), b"") == b""
    assert decrypt(CBCS, bytes(8), b"", crypt=1, skip=9) == b""
