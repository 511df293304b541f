"""The stage of the stories: the library under test (USHER_LIBRARY), the head-end, and one clock for both.

The stage itself belongs to the pytest plugin (bindings/pytest). The modules of this package have the parts that only
the project's own tests need.
"""

from __future__ import annotations

import usher
from pytest_usher.events import REAL_TIMEOUT_S
from pytest_usher.stage import KEY, KID, Stage, StageFactory

__all__ = ["CHALLENGE", "HEADER", "KEY", "KID", "PERIOD_MS", "REAL_TIMEOUT_S", "Stage", "StageFactory"]

CHALLENGE = usher.clear_key_request([KID])
HEADER = "nv-authorizations"
PERIOD_MS = 60_000
