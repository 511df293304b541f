"""Maps numbers to Python objects. C keeps such a number as ``user_data``; it is never an address.

C gets only a few function pointers, which live as long as the process. When C calls such a function, the number in
``user_data`` identifies the Python object for this call. C's ``destroy``, the last call with a number, removes the
object from this registry. So Python never frees an object that C may still use; and if a call came too late, it would
find no object and do nothing.
"""

from __future__ import annotations

import itertools
from typing import Any

from . import abi

_entries: dict[int | None, Any] = {}
_ids = itertools.count(1)


def add(entry: Any) -> int:
    """Keeps `entry` alive until C calls ``destroy`` for it. Returns the number to pass to C as ``user_data``."""
    number = next(_ids)
    _entries[number] = entry
    return number


get = _entries.get
"""Returns the entry of a number, or None if the entry was removed. Threads: any (single dict operations are atomic)."""


def count() -> int:
    """Returns how many entries C still uses."""
    return len(_entries)


destroy = abi.DestroyFn(_entries.pop)
"""The C function that removes an entry. It calls the built-in ``dict.pop`` directly: if it called a Python function, a
signal handler could raise an exception there before the entry is removed. It holds no lock, because it may free objects
whose finalizers call C."""
