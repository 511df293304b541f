"""Searches the memory of a process for secrets."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

SLICE = 16


def needles(secrets: Mapping[str, bytes]) -> dict[str, list[bytes]]:
    """Returns the byte strings to search for: three parts of each secret, so that the search also finds fragments.

    Also returns the first 8 letters of each part in reverse order, because the library stores letters in 64-bit numbers
    when it searches a message for secrets. No part has the beginning of the secret, because that is often public (the
    header of a JWT).
    """
    found = {}
    for name, secret in secrets.items():
        assert len(secret) >= 2 * SLICE, f"{name} is too short for the search"
        places = (len(secret) // 3, len(secret) // 2, len(secret) - SLICE)
        found[name] = [secret[at : at + SLICE] for at in places]
        found[name] += [secret[at : at + 8].lower()[::-1] for at in places]
    return found


def search(process: int, secrets: Mapping[str, bytes]) -> Counter[str]:
    """Counts how many parts of each secret are in the writable memory of a process."""
    wanted = needles(secrets)
    found: Counter[str] = Counter()
    regions = Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines()
    memory = os.open(f"/proc/{process}/mem", os.O_RDONLY)
    try:
        for region in regions:
            addresses, rights, *rest = region.split(maxsplit=5)
            if not rights.startswith("rw") or (rest and rest[-1].startswith("[v")):
                continue
            start, end = (int(part, 16) for part in addresses.split("-"))
            content = os.pread(memory, end - start, start)
            assert len(content) == end - start, f"{region}: only {len(content)} bytes could be read"
            for name, parts in wanted.items():
                found[name] += sum(content.count(part) for part in parts)
    finally:
        os.close(memory)
    return found
