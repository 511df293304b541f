"""All rows of the matrix, in the page's order."""

from __future__ import annotations

from collections.abc import Mapping

from known import FAULTS

TITLES: Mapping[str, str] = {fault.key: fault.title for fault in FAULTS}
"""Key to words."""
