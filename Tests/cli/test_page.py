"""docs/testers.md shows what usher probe and usher check really print; Tests/cli/page.py writes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cli.page import CASES, PAGE, sections


@pytest.mark.parametrize(("make"), [make for _, make in sections()], ids=[name for name, _ in sections()])
def test_page_section_isWhatTheCommandsPrint(make: Callable[[], str]) -> None:
    assert make() in PAGE.read_text(encoding="utf-8"), "run Tests/cli/page.py"


def test_page_has20Faults() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(CASES) == 20 and page.count("\n### ") == 20
