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
    "namespace, killed at once",
    "namespaces, at once",
    "namespace, no new guardian",
    "namespace, new guardian fails",
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
    """The host stops, or the host, its network or the server's address changes, and old connections are dead. The
    library does not wait for them: a heartbeat is answered over a new connection before the lease ends, so the host is
    told of no error. If the host did not run for some time, an event first tells it that the session is doubtful.

    In the cases with a guardian, the host moves to another network namespace, and a signal then kills it. The guardian
    that runs at this time tears the sessions down: the new one, or the old one if the new one does not run."""
    found = json.loads(printed)
    results.add(MOVED, key, found["outcome"])
    assert found["outcome"] == CASES[key].expected
    assert found["left"] == 0, "the host or its guardian tears the sessions down at the end"
