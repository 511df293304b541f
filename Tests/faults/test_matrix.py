"""Tests every fault during every operation: which events the host gets, how many requests reach the head-end, and how
many sessions the head-end still holds."""

from __future__ import annotations

from typing import Any

import pytest
from expected import EXPECTED
from known import FAULTS
from operations import COLUMNS, Column, Fault, play_in_scene
from page import Results

from usher.testing.headend.fixtures import Authority


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.key)
def test_fault(lib: Any, authority: Authority, results: Results, fault: Fault, column: Column) -> None:
    outcome = str(play_in_scene(authority, fault, column))
    results.add(fault.key, column.name, outcome)
    assert outcome == EXPECTED[fault.key][column.name]
