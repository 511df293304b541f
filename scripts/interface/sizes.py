"""Writes FirstSizes.swift: the sizes that the structures of the interface had in the first release that had them."""

from __future__ import annotations

import re
from pathlib import Path

from headers import ROOT, SIZED_BY_THE_LIBRARY, Headers

RELEASES = ROOT / "Tests" / "abi" / "releases"
SIZES = "sizes.txt"

HEAD = """\
// Generated from Tests/abi/releases by scripts/generate. `scripts/abi record` records the sizes of a release.
internal import CUsher

"""


def releases(folder: Path, major: int) -> list[Path]:
    """Returns the recorded releases of a major version, oldest first."""
    found = [path for path in folder.glob(f"{major}.*") if (path / SIZES).exists()]
    return sorted(found, key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)])


def read_values(file: Path) -> dict[str, str]:
    """Reads a file whose lines have a name and a value. Returns the values by name."""
    return dict(line.split(" ", 1) for line in file.read_text(encoding="utf-8").splitlines())


def first_sizes(headers: Headers) -> str:
    known: dict[str, str] = {}
    for release in releases(RELEASES, headers.version[0]):
        known = read_values(release / SIZES) | known
    lines = []
    for name, structure in headers.structures.items():
        if structure.is_sized and name not in SIZED_BY_THE_LIBRARY:
            # If no release had the structure, every host that knows it was compiled with its present size.
            size = known.get(name, f"MemoryLayout<{name}>.size")
            lines.append(f"extension {name}: GrowingStruct {{ static var firstSize: Int {{ {size} }} }}")
    return HEAD + "\n".join(lines) + "\n"
