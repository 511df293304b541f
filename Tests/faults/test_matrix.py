"""Tests every fault during every operation: which events the host gets, how many requests reach the head-end, and how
many sessions the head-end still holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from expected import EXPECTED, NOT_OVER_HTTP2, OVER_HTTP2, over_http2
from known import FAULTS
from operations import COLUMNS, Column, Fault, play_in_scene
from page import Results

from usher.testing.headend.fixtures import Authority


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.key)
def test_fault_onAnOperation_hasItsDefinedOutcome(
    lib: Any, authority: Authority, results: Results, fault: Fault, column: Column
) -> None:
    outcome = str(play_in_scene(authority, fault, column))
    results.add(fault.key, column.name, outcome)
    assert outcome == EXPECTED[fault.key][column.name]


def http2_cells() -> Iterator[Any]:
    """Yields the cells over HTTP/2. For each fault, one cell has no mark: the quick run plays only the cells without a
    mark."""
    for number, fault in enumerate(fault for fault in FAULTS if fault.http2):
        for column in COLUMNS:
            if (fault.key, column.name) in NOT_OVER_HTTP2:
                continue
            is_quick = column is COLUMNS[number % len(COLUMNS)]
            yield pytest.param(
                fault, column, id=f"{fault.key}-{column.name}", marks=[] if is_quick else [pytest.mark.whole]
            )


@pytest.mark.parametrize(("fault", "column"), list(http2_cells()))
def test_fault_overHttp2(lib: Any, authority: Authority, results: Results, fault: Fault, column: Column) -> None:
    outcome = str(play_in_scene(authority, fault, column, http2=True))
    key = fault.key + OVER_HTTP2
    results.add(key, column.name, outcome)
    assert outcome == over_http2([fault.key])[key][column.name]
