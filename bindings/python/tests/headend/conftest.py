"""Fixtures of the head-end's tests, in addition to ``headend`` and ``headend_factory``."""

from __future__ import annotations

import pytest
from headend_client import Client

from usher.testing.headend import HeadEnd


@pytest.fixture
def client(headend: HeadEnd) -> Client:
    """A client that sends a player's requests to the ``headend`` fixture."""
    return Client(headend)
