"""Fixtures of the head-end's tests, in addition to ``headend`` and ``headend_factory``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from headend_client import Client

from usher.testing.headend import HeadEnd
from usher.testing.redis_server import RedisServer


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis server. The tests of one session share it; each uses a tenant or a database of its own."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def client(headend: HeadEnd) -> Client:
    """A client that sends a player's requests to the ``headend`` fixture."""
    return Client(headend)
