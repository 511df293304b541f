"""Tests the table of files and keys that `usher gateway` serves (hosts/usher/entries.c), at its real limits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles entries_rounds.c with AddressSanitizer. Returns the program."""
    program = tmp_path_factory.mktemp("entries") / "rounds"
    sources = [ROOT / "Tests" / "hosts" / "entries_rounds.c", ROOT / "hosts" / "usher" / "entries.c"]
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined"]
    command = ["cc", *flags, "-fno-sanitize-recover", "-I", ROOT / "hosts" / "usher", *sources, "-o", program]
    subprocess.run([str(word) for word in command], check=True, timeout=120)
    return program


@pytest.mark.parametrize("test", ["numbers", "bytes", "rounds"])
def test_gatewayEntries_ofOnePlaylist_areValidTogether(program: Path, test: str) -> None:
    """A new entry never replaces an entry of the same playlist, also if the URLs are long and if some entries stay for
    the whole playback."""
    done = subprocess.run([str(program), test], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
