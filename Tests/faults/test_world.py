"""Tests faults of name servers, links and clocks, in a process with separate network and mount namespaces."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from expected import EXPECTED, OVER_HTTP2, over_http2
from in_world import run_in_world
from operations import COLUMNS, Column, Fault
from page import Results
from rows import WORLDLY
from world import GIVES_UP_S, enter
from worldly import BEATS

pytestmark = pytest.mark.whole

Cells = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """Plays all cells in one separate process. Returns the outcomes by fault and column."""
    folder = tmp_path_factory.mktemp("world")
    trial = subprocess.run([*enter(), "true"], capture_output=True, text=True, timeout=30, check=False)
    if trial.returncode:
        pytest.fail(
            "network namespaces are not permitted here, and these faults need them: "
            f"{' '.join(enter())} says {trial.stderr.strip()!r}"
        )
    out = folder / "cells"
    run_in_world(folder, "worldly.py", str(out), timeout_s=500)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {(line["fault"], line["column"]): line for line in lines}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.parametrize("fault", WORLDLY, ids=lambda fault: fault.key)
def test_faultOfTheWorld_onAnOperation_hasItsDefinedOutcome(
    cells: Cells, results: Results, fault: Fault, column: Column, version: str
) -> None:
    key = fault.key + (OVER_HTTP2 if version == "HTTP/2" else "")
    cell = cells[key, column.name]
    assert "failure" not in cell, cell["failure"]
    results.add(key, column.name, cell["outcome"])
    assert cell["outcome"] == {**EXPECTED, **over_http2([fault.key])}[key][column.name]
    # When the name server answers again, a lookup that has already begun takes up to ASKS_AGAIN_S longer.
    assert cell["seconds"] < GIVES_UP_S, "a request waited until the resolver gave up"
    assert (cell["names_asked"] > 0) == (fault.door == "named")


@pytest.mark.timeout(300)
def test_beats_whileTheWallClockJumps_areOnTime(cells: Cells) -> None:
    """The library sends heartbeats on time while the wall clock jumps by a day. The test runs in real time, so a
    heartbeat may be 1 s late."""
    story = cells["jumps", ""]
    assert story["types"] == ["SESSION_STARTED", *["KEPT_ALIVE"] * BEATS]
    assert story["lateness_ms"] < 1000 and story["held"] == 0
