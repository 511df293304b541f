"""docs/faults.md says what came of the faults. `--write-page` writes it, and wants every cell to have been played."""

from __future__ import annotations

import pytest
from expected import EXPECTED
from page import PAGE, Results, render
from rows import TITLES


def test_page_saysWhatCame(results: Results, request: pytest.FixtureRequest) -> None:
    page = render(results.over(EXPECTED), TITLES)
    if request.config.getoption("--write-page"):
        assert not results.missing(EXPECTED)
        assert not request.session.testsfailed, "not written: a cell is not as it is expected to be"
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "docs/faults.md is not what came of the faults; `make faults` writes it"
