"""A host that was built with the headers of this checkout runs with the libraries of older releases.

`make abi-hosts` runs this file. It builds each recorded release from the history, which takes minutes, so `make test`
does not run it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from test_releases import RELEASES, ROOT, build_host, play

BUILD_S = 1800


@pytest.fixture(scope="module", params=RELEASES, ids=[folder.parent.name for folder in RELEASES])
def old_library(request: pytest.FixtureRequest) -> Path:
    """Builds the library of a release in build/abi/RELEASE, from the revision in its source.txt."""
    release: Path = request.param.parent
    revision = (release / "source.txt").read_text(encoding="utf-8").strip()
    folder = ROOT / "build" / "abi" / release.name
    tree = folder / "source"
    library = folder / revision / "libusher.so.0"
    if library.exists():
        return library
    tree.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(["git", "archive", revision], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "x", "-C", str(tree)], stdin=archive.stdout, check=True, timeout=BUILD_S)
    assert archive.returncode == 0, f"git has no revision {revision}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("USHER_")}
    command = [str(tree / "scripts" / "build-library"), "shipped", str(library.parent)]
    subprocess.run(command, check=True, timeout=BUILD_S, env=environment)
    return library


@pytest.mark.parametrize("way", ["linked", "table"])
def test_host_builtWithTheseHeaders_playsWithTheLibraryOfAnOlderRelease(
    old_library: Path, way: str, tmp_path: Path
) -> None:
    flags = ["-DBY_TABLE"] if way == "table" else []
    build_host(tmp_path / "host", ROOT / "include", old_library, *flags, "-DOLDER_LIBRARY")
    play(tmp_path / "host", *([old_library] if way == "table" else []))
