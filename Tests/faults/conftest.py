"""Options and fixtures of the fault matrix."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from page import Results

from usher.testing.headend.fixtures import Authority

PAGE_TEST = "test_page.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-page", action="store_true", help="write docs/faults.md; needs a run of every cell")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "whole: runs only in `make faults`: it takes long or needs network namespaces")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves the test of the page to the end, since the page shows the outcomes of all other tests."""
    items.sort(key=lambda item: item.path.name == PAGE_TEST)


@pytest.fixture(scope="session")
def results() -> Results:
    """The outcomes of this run."""
    return Results()


@pytest.fixture(scope="session")
def authority() -> Iterator[Authority]:
    """One certificate authority for all cells, since generating keys takes time."""
    yield Authority("localhost")
