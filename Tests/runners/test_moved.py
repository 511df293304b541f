"""Somebody moves a checkout after a build. Then make and scripts/build-library build those files again that contain
absolute paths."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = """// swift-tools-version:6.0
import PackageDescription
let package = Package(
  name: "tiny",
  products: [.library(name: "usher", type: .dynamic, targets: ["Usher"])],
  targets: [
    .target(name: "CTiny", publicHeadersPath: "."),
    .target(name: "Usher", dependencies: ["CTiny"], exclude: ["usher.map"]),
  ])
"""
SOURCES = {
    "Package.swift": PACKAGE,
    "Sources/CTiny/tiny.h": "int tiny(void);\n",
    "Sources/CTiny/tiny.c": '#include "tiny.h"\nint tiny(void) { return 7; }\n',
    "Sources/Usher/Usher.swift": 'import CTiny\nimport Glibc\n@_cdecl("f") public func f() -> Int32 { tiny() }\n',
    "Sources/Usher/usher.map": "",
    "include/tiny.h": "",
    "guardian/main.c": "int main(void) { return 0; }\n",
}
"""A small Swift package with the same folders as the library, which itself takes minutes to build."""
MOST_WAITS = 15


def made(folder: Path) -> Path:
    """Makes a checkout of the small package, with the real scripts."""
    for name, text in SOURCES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("Makefile", "scripts/build-library", "scripts/forget-paths"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(checkout: Path, step: Callable[[str], None], what: str) -> tuple[int, str]:
    """Builds the library of a checkout. Returns the exit code and what the build printed to stderr. On a busy machine
    a build may take longer than the time limit of a test, so the limit begins again several times."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("USHER_")}
    command = [str(checkout / "scripts" / "build-library"), "checked", str(checkout / "build" / "checked")]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(MOST_WAITS):
            step(what)
            with contextlib.suppress(subprocess.TimeoutExpired):
                said = process.communicate(timeout=20)[1]
                return process.returncode, said
        raise AssertionError(f"{what} has not ended")
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("swift") is None, reason="needs Swift")
def test_buildLibrary_inAMovedCheckout_buildsAgain(tmp_path: Path, step: Callable[[str], None]) -> None:
    checkout = made(tmp_path / "first")
    code, said = build(checkout, step, "the first build")
    assert code == 0 and "was moved" not in said, said
    built = checkout / ".build" / "debug" / "libusher.so"
    before = built.stat().st_mtime_ns
    code, said = build(checkout, step, "a second build in the same folder, which has nothing to do")
    assert (code, said, built.stat().st_mtime_ns) == (0, "", before)
    moved = checkout.rename(tmp_path / "second")
    source = moved / "Sources" / "Usher" / "Usher.swift"
    source.write_text(source.read_text() + "public let changed = true\n")  # the compiler must run
    code, said = build(moved, step, "a build after the move")
    assert code == 0, said
    assert said == "usher: this folder was moved or copied after the last build: building everything again\n"
    assert (moved / "build" / "checked" / "libusher.so.0").is_file()


def test_make_inAMovedCheckout_forgetsWhatHasAbsolutePaths(tmp_path: Path) -> None:
    checkout = made(tmp_path / "first")

    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        command = ["make", "--no-print-directory", "help"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True)

    assert run(checkout).returncode == 0
    stale = [
        ".venv/ready",
        ".venv-docs/ready",
        ".build/debug.yaml",
        ".build-embedded/x",
        "build/examples/CMakeCache.txt",
    ]
    kept = ["build/shipped/libusher.so.0", "build/checked/stamp", "Sources/Usher/Usher.swift"]
    for name in (*stale, *kept):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
    assert "this folder was" not in run(checkout).stderr
    assert all((checkout / name).exists() for name in (*stale, *kept))
    moved = checkout.rename(tmp_path / "second")
    assert f"this folder was {tmp_path}/first when something was last built in it" in run(moved).stderr
    assert not any((moved / name).parent.exists() for name in stale)
    assert all((moved / name).exists() for name in kept)
    assert "this folder was" not in run(moved).stderr
