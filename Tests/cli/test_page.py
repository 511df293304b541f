"""docs/testers.md shows what usher probe and usher check really print; Tests/cli/page.py writes it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from cli import wrong_server
from cli.page import CASES, PAGE, sections


@pytest.mark.parametrize(("make"), [make for _, make in sections()], ids=[name for name, _ in sections()])
def test_page_section_isWhatTheCommandsPrint(make: Callable[[], str]) -> None:
    assert make() in PAGE.read_text(encoding="utf-8"), "run Tests/cli/page.py"


def test_page_namesTheTenFaultsOfTheWrongServer_andNoOther_withTheShortestStories() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## A head-end with ten faults")[2].partition("\n## ")[0]
    found = dict(re.findall(r"^✗ ([a-z-]+): .*\n.*\n  The shortest story, .*?: (.*)$", section, re.M))
    assert len(wrong_server.FAULTS) == 10 and set(found) == wrong_server.FAULTS
    assert found["setup-period"] == "setup 1"
    assert found["teardown"] == "setup 1 → teardown 1"
    assert found["teardown-ends"] == "setup 1 → teardown 1 → heartbeat 1"
    assert found["heartbeat-next"] == "setup 1 → heartbeat 1 → heartbeat 1"
    assert found["limit-code"] == "setup 1 → setup 2 → setup 3"
    assert found["limit-others"] == "setup 1 → setup 2 → setup 3 → heartbeat 1"
    assert found["limit-together"] == "setup 1, 3 together"


def test_page_has20Faults() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(CASES) == 20 and page.count("\n### ") == 20
