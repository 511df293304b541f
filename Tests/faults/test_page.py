"""Tests that docs/faults.md shows the outcomes of this run.

With `--write-page` the test writes the page; the run must have played every cell before.
"""

from __future__ import annotations

import pytest
from expected import AT_ONCE, EXPECTED, over_http2
from page import PAGE, Results, render
from rows import OVER_HTTP2, TITLES


def test_page_saysWhatCame(results: Results, request: pytest.FixtureRequest) -> None:
    expected = {**EXPECTED, **over_http2(fault.key for fault in OVER_HTTP2), "at once": AT_ONCE}
    table = results.over(expected)
    page = render(table, TITLES, table["at once"])
    if request.config.getoption("--write-page"):
        assert not results.missing(expected)
        assert not request.session.testsfailed, "page not written: a cell differs from the expected outcome"
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, (
        "docs/faults.md differs from the outcomes of this run; `make faults` writes it"
    )
