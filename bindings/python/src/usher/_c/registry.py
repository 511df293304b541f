"""What C's ``user_data`` means on our side: a number, never an address.

Every function pointer given to C is one of a few module-level trampolines that live as long as the process; which Python callable one means
travels as an integer in ``user_data``. The entry is dropped by C's ``destroy``, the last call for it. So Python's garbage collector can
never free something C may still call, and a call that came too late would find no entry and do nothing.
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
