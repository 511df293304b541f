"""Searches the memory of a process for secrets."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path

SLICE = 16
RUN = 8
"""When the library searches a message for secrets, it stores this number of letters and digits in one 64-bit number."""


def needles(secrets: Mapping[str, bytes]) -> dict[str, list[bytes]]:
    """Returns the byte strings to search for: three parts of each secret, so that the search also finds fragments. No
    part contains the beginning of a long secret, because the beginning is often public (the header of a JWT). A short
    secret is an opaque token: the parts are its first and its last 8 bytes.

    Also returns three runs of 8 letters and digits in reverse order (see ``RUN``).
    """
    found = {}
    for name, secret in secrets.items():
        assert len(secret) > RUN, f"{name} is too short for the search"
        if len(secret) >= 2 * SLICE:
            places = (len(secret) // 3, len(secret) // 2, len(secret) - SLICE)
            parts = [secret[at : at + SLICE] for at in places]
        else:
            parts = [secret[:RUN], secret[-RUN:]]
        letters = bytes(byte for byte in secret.lower() if chr(byte).isalnum()) if secret.isascii() else secret.lower()
        starts = {len(letters) // 3, len(letters) // 2, len(letters) - RUN}
        runs = [letters[at : at + RUN][::-1] for at in starts if at + RUN <= len(letters)]
        found[name] = parts + runs
    return found


def without_outer_zeros(content: bytes) -> bytes:
    """Returns the bytes without the zeros at both ends, because most of a stack was never used. Leaves SLICE zeros
    beside the other bytes, because a part of a secret may begin or end with zeros."""
    begin, end = len(content) - len(content.lstrip(b"\0")), len(content.rstrip(b"\0"))
    return content[max(0, begin - SLICE) : end + SLICE]


def search(process: int, secrets: Mapping[str, bytes]) -> Counter[str]:
    """Counts how many parts of each secret are in the writable memory of a process."""
    wanted = needles(secrets)
    found: Counter[str] = Counter()
    for content in writable(process):
        for name, parts in wanted.items():
            found[name] += sum(content.count(part) for part in parts)
    return found


STEP = 48


def longest_runs(process: int, secrets: Mapping[str, bytes]) -> Counter[str]:
    """For each secret, returns the length of its longest part that is in the writable memory of a process. The search
    finds all parts of at least STEP + SLICE bytes, and some of the shorter ones."""
    found: Counter[str] = Counter()
    for content in writable(process):
        for name, secret in secrets.items():
            for start in range(0, len(secret) - SLICE + 1, STEP):
                at = content.find(secret[start : start + SLICE])
                while at >= 0:
                    before = equal_bytes(secret[:start][::-1], content[max(at - start, 0) : at][::-1])
                    after = equal_bytes(secret[start:], content[at : at + len(secret) - start])
                    found[name] = max(found[name], before + after)
                    at = content.find(secret[start : start + SLICE], at + 1)
    return found


def equal_bytes(first: bytes, second: bytes) -> int:
    """Returns how many bytes at the beginning of both texts are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def writable(process: int) -> Iterator[bytes]:
    """Returns the content of each writable region of a process's memory."""
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
            yield content
    finally:
        os.close(memory)
