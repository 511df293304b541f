"""Stops and moves hosts while their items play (moves.py)."""

from __future__ import annotations

import json

import pytest
from moves import CASES
from page import MOVED, Results

QUICK = (
    "stopped",
    "slept",
    "address, in flight",
    "namespace, in flight",
    "namespace, killed",
    "server moved, in flight",
)
"""The cases that `make test` plays; `make faults` plays all."""


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=[pytest.mark.in_world("moves.py", key), *([] if key in QUICK else [pytest.mark.whole])])
        for key in CASES
    ],
)
def test_host_stoppedOrMoved_keepsItsSessions(printed: str, results: Results, key: str) -> None:
    """The host or its network is stopped or moved, and old connections are dead. The library does not wait for them: a
    heartbeat is answered over a new connection before the lease ends, so the host is told of no error. If the host did
    not run for some time, an event first tells it that the session is doubtful. If a signal kills the host after its
    move, the guardian has moved too, and tears the sessions down."""
    found = json.loads(printed)
    results.add(MOVED, key, found["outcome"])
    assert found["outcome"] == CASES[key].expected
    assert found["left"] == 0, "the host or its guardian tears the sessions down at the end"
