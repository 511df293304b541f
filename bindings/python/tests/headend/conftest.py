"""Fixtures of the head-end's own tests, beside ``headend`` and ``headend_factory``."""

from __future__ import annotations

import pytest
from headend_client import Client

from usher.testing.headend import HeadEnd


@pytest.fixture
def client(headend: HeadEnd) -> Client:
    """A player against the ``headend`` fixture."""
    return Client(headend)
