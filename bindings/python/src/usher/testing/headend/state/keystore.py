"""The store of content keys."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping

from ...fairplay import Asset, read_identifier
from ..codes import Problem, Refusal


class KeyStore:
    """The content keys by key id (16 bytes each), with the contents to which each key belongs. Any thread may use the
    store.

    A content may have several keys (key rotation), and a key may belong to several contents. A key that
    belongs to no content is valid for any content.
    """

    def __init__(self, keys: Mapping[bytes, bytes]) -> None:
        self._lock = threading.Lock()
        self._keys: dict[bytes, bytes] = {}
        self._contents: dict[bytes, set[str]] = {}
        self._of_content: dict[str, list[bytes]] = {}
        for kid, key in keys.items():
            self.add(kid, key)

    def add(self, kid: bytes, key: bytes, content_id: str | None = None) -> None:
        """Adds or replaces a key, and records the content to which the key belongs.

        Raises:
            ValueError: id or key is not 16 bytes.
        """
        if len(kid) != 16 or len(key) != 16:
            raise ValueError(f"key id and key are 16 bytes each, not {len(kid)} and {len(key)}")
        with self._lock:
            self._keys[kid] = key
            if content_id is not None and content_id not in self._contents.setdefault(kid, set()):
                self._contents[kid].add(content_id)
                self._of_content.setdefault(content_id, []).append(kid)

    def get(self, kid: bytes) -> bytes | None:
        """Returns the key; None if the key id is unknown."""
        with self._lock:
            return self._keys.get(kid)

    def content_ids(self, kid: bytes) -> frozenset[str]:
        """Returns the ids of all contents that use this key; empty if the key is valid for any content."""
        with self._lock:
            return frozenset(self._contents.get(kid, ()))

    def contents(self) -> tuple[str, ...]:
        """Returns the ids of the contents to which keys belong, the oldest first."""
        with self._lock:
            return tuple(self._of_content)

    def kids(self, content_id: str) -> tuple[bytes, ...]:
        """Returns the key ids of a content, from the oldest to the newest."""
        with self._lock:
            return tuple(self._of_content.get(content_id, ()))

    def named(self, identifier: bytes, keys: Mapping[bytes, bytes]) -> tuple[Asset, bytes, bytes]:
        """Finds the key id and the key for a content identifier. If the identifier has no key id, returns the newest
        key of the content.

        Args:
            identifier: the content identifier of an SPC.
            keys: the keys in the request; they take precedence over the keys in the store.

        Raises:
            Refusal: the identifier is empty or malformed, or the store has no key for it.
        """
        try:
            asset = read_identifier(identifier)
        except ValueError as error:
            raise Refusal(Problem.BAD_CHALLENGE, str(error)) from error
        kid = asset.kid if asset.kid is not None else self._newest(asset.content_id or "")
        key = None if kid is None else keys.get(kid, self.get(kid))
        if kid is None or key is None:
            raise Refusal(
                Problem.NO_KEY, f"no key for content identifier {identifier[:100].decode('utf-8', 'replace')}"
            )
        belongs = self.content_ids(kid)
        if asset.kid is not None and asset.content_id is not None and belongs and asset.content_id not in belongs:
            raise Refusal(Problem.NO_KEY, f"key id {kid.hex()} is not of content {asset.content_id!r}")
        return asset, kid, key

    def _newest(self, content_id: str) -> bytes | None:
        """Returns the newest key id of a content. If the store has no key of this content, but `content_id` is the text
        of a key id (a UUID), returns this key id; otherwise None."""
        kids = self.kids(content_id)
        if kids:
            return kids[-1]
        try:
            return uuid.UUID(content_id).bytes
        except ValueError:
            return None

    def ids(self) -> tuple[bytes, ...]:
        """Returns the ids of all keys, the oldest first."""
        with self._lock:
            return tuple(self._keys)

    def __len__(self) -> int:
        with self._lock:
            return len(self._keys)
