"""The Python objects behind C's ``user_data``, which is a number, never an address.

C gets only a few function pointers, which live as long as the process. The number in ``user_data`` says which Python
object a call is for. C's ``destroy``, the last call for a number, removes the object. So Python never frees an object
that C may still use, and a call that comes too late finds no object and does nothing.
"""

from __future__ import annotations

import itertools
from typing import Any

from . import abi

_entries: dict[int, Any] = {}
_ids = itertools.count(1)


def add(entry: Any) -> int:
    """Keeps `entry` alive until C calls ``destroy`` for it; returns the number to give C as ``user_data``."""
    number = next(_ids)
    _entries[number] = entry
    return number


def get(number: int | None) -> Any:
    """The entry, or None when it is gone. Threads: any (single dict operations are atomic)."""
    return _entries.get(number or 0)


def drop(number: int | None) -> None:
    """Forgets an entry. No lock is held, so whatever dies with it may call back into C."""
    _entries.pop(number or 0, None)


def count() -> int:
    """How many entries C still holds."""
    return len(_entries)


destroy = abi.DestroyFn(drop)
