"""Fixtures of the security tests."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def lib() -> Any:
    """The library under test."""
    from usher import _ffi

    return _ffi.lib
