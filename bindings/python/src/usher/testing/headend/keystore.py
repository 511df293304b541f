"""The content keys a head-end knows."""

from __future__ import annotations

import threading
from collections.abc import Mapping


class KeyStore:
    """The content keys of the head-end, 16 bytes by 16-byte key id. Any thread may use it."""

    def __init__(self, keys: Mapping[bytes, bytes]) -> None:
        self._lock = threading.Lock()
        self._keys: dict[bytes, bytes] = {}
        for kid, key in keys.items():
            self.add(kid, key)

    def add(self, kid: bytes, key: bytes) -> None:
        """Adds or replaces a key.

        Raises:
            ValueError: id or key is not 16 bytes.
        """
        if len(kid) != 16 or len(key) != 16:
            raise ValueError(f"key id and key are 16 bytes each, not {len(kid)} and {len(key)}")
        with self._lock:
            self._keys[kid] = key

    def get(self, kid: bytes) -> bytes | None:
        """The key, None when unknown."""
        with self._lock:
            return self._keys.get(kid)

    def __len__(self) -> int:
        with self._lock:
            return len(self._keys)
