"""Fixtures of the tests of the command usher."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.running import Usher


@pytest.fixture
def usher(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Usher:
    """Runs commands, and checks that they print no token."""
    return Usher(capsys, tmp_path)
