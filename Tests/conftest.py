"""Fixtures of the Python tests of the library: the library under test. The pytest plugin (bindings/pytest) has the
fixtures of the head-end."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest_plugins = ["stage.forms", "steps"]


@pytest.fixture(scope="session")
def lib() -> Any:
    """Loads the library under test. Skips the tests if ``USHER_LIBRARY`` is not set and the package has no library."""
    try:
        from usher._c import ffi
    except ImportError as error:
        if os.environ.get("USHER_LIBRARY"):
            raise
        pytest.skip(f"no library: {error}")
    return ffi.lib
