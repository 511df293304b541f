"""Cassettes: recorded exchanges of a player with its head-end, without any secret.

``format`` reads and writes the file, ``naming`` turns requests and replies into exchanges, ``recorder`` is a proxy that
records, ``trace`` makes a cassette from a trace of the library, ``server`` and ``client`` play a cassette back.
"""

from __future__ import annotations

from .format import Cassette, CassetteError, Exchange, read, write

__all__ = ["Cassette", "CassetteError", "Exchange", "read", "write"]
