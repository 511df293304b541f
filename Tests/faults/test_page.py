"""docs/faults.md says what came of the faults. `--write-page` writes it, and wants every cell to have been played."""

from __future__ import annotations

import pytest
from expected import AT_ONCE, EXPECTED
from page import PAGE, Results, render
from rows import TITLES


def test_page_saysWhatCame(results: Results, request: pytest.FixtureRequest) -> None:
    expected = {**EXPECTED, "at once": AT_ONCE}
    table = results.over(expected)
    page = render(table, TITLES, table["at once"])
    if request.config.getoption("--write-page"):
        assert not results.missing(expected)
        assert not request.session.testsfailed, "not written: a cell is not as it is expected to be"
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, (
        "docs/faults.md is not what came of the faults; `make faults` writes it"
    )
