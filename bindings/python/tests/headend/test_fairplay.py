"""Tests the functions that make and open test SPCs and test CKCs: those in Python, and the C code in
docs/headend.md."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from usher.testing import fairplay

KID, KEY, IV = bytes(range(16)), bytes(range(100, 116)), bytes(range(200, 216))
DOCS = Path(__file__).resolve().parents[4] / "docs" / "headend.md"


def test_spc_saysWhatItWasMadeOf() -> None:
    spc = fairplay.make_spc("movie", b"certificate", device=b"tv", nonce=b"n" * 16)
    assert spc.startswith(b"\0\0\0\1USPC") and len(spc) == 72 + 5
    said = fairplay.read_spc(spc)
    assert (said.identifier, said.nonce, said.device) == (b"movie", b"n" * 16, b"tv")
    assert said.certificate_sha256 == hashlib.sha256(b"certificate").digest()
    bare = fairplay.read_spc(fairplay.make_spc(b"\xff"))
    assert (bare.identifier, bare.certificate_sha256, bare.device) == (b"\xff", None, None)
    assert fairplay.make_spc("movie") != fairplay.make_spc("movie")


@pytest.mark.parametrize("spc", [b"", b"\0\0\0\1", bytes(range(256)), fairplay.make_spc("x")[:-1]])
def test_spc_ofAStranger_isRefused(spc: bytes) -> None:
    with pytest.raises(ValueError, match="SPC"):
        fairplay.read_spc(spc)


def test_ckc_carriesTheKey() -> None:
    spc = fairplay.make_spc("movie")
    ckc = fairplay.make_ckc(spc, KID, KEY)
    assert KEY not in ckc
    assert fairplay.open_ckc(ckc, spc) == (KID, KEY)


@pytest.mark.parametrize("damage", ["another SPC", "cut", "longer", "magic", "hash"])
def test_ckc_damaged_doesNotOpen(damage: str) -> None:
    spc = fairplay.make_spc("movie")
    ckc = fairplay.make_ckc(spc, KID, KEY)
    flipped = bytes([ckc[20] ^ 1])
    damaged = {
        "cut": ckc[:-1],
        "longer": ckc + b"\0",
        "magic": b"CKC2" + ckc[4:],
        "hash": ckc[:20] + flipped + ckc[21:],
    }
    with pytest.raises(ValueError, match="CKC"):
        fairplay.open_ckc(damaged.get(damage, ckc), fairplay.make_spc("movie") if damage == "another SPC" else spc)


def test_identifier_isTheJsonOfPlaylists() -> None:
    text = fairplay.identifier("Film é", KID, IV)
    assert json.loads(text) == {
        "ContentId": "Film é",
        "KeyId": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "IV": base64.b64encode(IV).decode(),
    }
    assert fairplay.skd_url("m", KID, IV) == "skd://" + fairplay.asset_id("m", KID, IV)
    assert base64.b64decode(fairplay.asset_id("Film é", KID, IV)) == text


def test_identifier_isReadInAnyForm() -> None:
    wanted = fairplay.Asset("Film é", KID, IV)
    text = fairplay.identifier("Film é", KID, IV)
    coded = base64.b64encode(text)
    for form in (
        text,
        coded,
        coded.rstrip(b"="),
        base64.urlsafe_b64encode(text),
        text.replace(b"ContentId", b"contentid"),
    ):
        assert fairplay.read_identifier(form) == wanted
    assert fairplay.read_identifier(b'{"ContentId":"x"}') == fairplay.Asset("x")
    assert fairplay.read_identifier(b"movie-1") == fairplay.Asset("movie-1")
    for nothing in (b"", b" ", b"\xff", b'{"iv":"x"}', b'{"KeyId":"x"}'):
        with pytest.raises(ValueError):
            fairplay.read_identifier(nothing)


def test_docs_cExample_makesSpcsAndOpensCkcs(tmp_path: Path) -> None:
    example = next(
        code for code in re.findall(r"```c\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S) if "make_spc" in code
    )
    (tmp_path / "example.c").write_text(
        example
        + """
#include <stdio.h>
static size_t read_all(unsigned char *into, size_t size, const char *name) {
  FILE *file = fopen(name, "rb");
  size_t got = file ? fread(into, 1, size, file) : 0;
  if (file) fclose(file);
  return got;
}
int main(int argc, char **argv) {
  static unsigned char spc[200], ckc[200], key[16];
  if (argc == 2) return fwrite(spc, 1, make_spc(spc, "certificate", 11, argv[1], strlen(argv[1])), stdout) ? 0 : 1;
  size_t spc_size = read_all(spc, sizeof spc, argv[1]), ckc_size = read_all(ckc, sizeof ckc, argv[2]);
  return open_ckc(key, ckc, ckc_size, spc, spc_size) && fwrite(key, 1, 16, stdout) == 16 ? 0 : 1;
}
"""
    )
    program = tmp_path / "example"
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(["cc", *flags, str(tmp_path / "example.c"), "-o", str(program), "-lcrypto"], check=True, timeout=60)
    spc = subprocess.run([str(program), "movie"], check=True, capture_output=True, timeout=10).stdout
    said = fairplay.read_spc(spc)
    assert said.identifier == b"movie"
    assert said.certificate_sha256 == hashlib.sha256(b"certificate").digest()
    (tmp_path / "spc").write_bytes(spc)
    (tmp_path / "ckc").write_bytes(fairplay.make_ckc(spc, KID, KEY))
    opened = subprocess.run(
        [str(program), str(tmp_path / "spc"), str(tmp_path / "ckc")], capture_output=True, timeout=10
    )
    assert (opened.returncode, opened.stdout) == (0, KEY)
    (tmp_path / "spc").write_bytes(fairplay.make_spc("movie"))
    assert (
        subprocess.run(
            [str(program), str(tmp_path / "spc"), str(tmp_path / "ckc")], capture_output=True, timeout=10
        ).returncode
        == 1
    )
