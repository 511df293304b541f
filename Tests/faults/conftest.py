"""What the matrix of faults needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from page import Results

from usher.testing.headend.fixtures import Authority

PAGE_TEST = "test_page.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-page", action="store_true", help="write docs/faults.md; needs a run of every cell")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "whole: only in `make faults`, since it takes long or needs network namespaces")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The page comes after all that it tells of."""
    items.sort(key=lambda item: item.path.name == PAGE_TEST)


@pytest.fixture(scope="session")
def results() -> Results:
    """What came of the faults of this run."""
    return Results()


@pytest.fixture(scope="session")
def authority() -> Iterator[Authority]:
    """One authority for all cells, since making keys takes time."""
    yield Authority("localhost")
