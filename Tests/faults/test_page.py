"""Tests that docs/faults.md shows the outcomes of this run.

With `--write-page` the test writes the page; the run must have played every cell before.
"""

from __future__ import annotations

import pytest
from expected import AT_ONCE, EXPECTED, over_http2
from moves import CASES
from page import CHAOS, MOVED, PAGE, Results, render
from rows import OVER_HTTP2, TITLES


def test_page_saysWhatCame(results: Results, request: pytest.FixtureRequest) -> None:
    expected = {**EXPECTED, **over_http2(fault.key for fault in OVER_HTTP2), "at once": AT_ONCE}
    expected[MOVED] = {key: case.expected for key, case in CASES.items()}
    table = results.over(expected)
    # `make chaos` writes the last section.
    _, title, chaos = PAGE.read_text(encoding="utf-8").partition(CHAOS)
    page = render(table, TITLES, table["at once"]) + title + chaos
    if request.config.getoption("--write-page"):
        assert not results.missing(expected)
        assert not request.session.testsfailed, "page not written: a cell differs from the expected outcome"
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, (
        "docs/faults.md differs from the outcomes of this run; `make faults` writes it"
    )
