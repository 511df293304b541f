"""Options and fixtures of the fault matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest
from in_world import run_in_world
from page import Results

from usher.testing.headend.fixtures import Authority

PAGE_TEST = "test_page.py"
LONGEST_S = 150
"""The time limit of the program of a test with the mark `in_world`. It is long enough for a busy machine."""
STEP_S = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-page", action="store_true", help="write docs/faults.md; needs a run of every cell")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "whole: runs only in `make faults`: it takes long or needs network namespaces")
    config.addinivalue_line("markers", "in_world(program, argument): see the fixture `worlds`")


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


@pytest.fixture(scope="session", autouse=True)
def worlds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, ...], Future[str]]]:
    """Starts the programs of all selected tests with the mark `in_world`, each in its own network namespaces. They play
    in real time and mostly wait, so they run while the other tests run. Returns what each prints."""
    runs = {mark.args for item in request.session.items for mark in item.iter_markers("in_world")}
    folder = tmp_path_factory.mktemp("worlds")
    with ThreadPoolExecutor(max(1, len(runs))) as pool:
        yield {run: pool.submit(run_in_world, folder, *run, timeout_s=LONGEST_S) for run in runs}


@pytest.fixture
def printed(
    request: pytest.FixtureRequest, worlds: dict[tuple[str, ...], Future[str]], step: Callable[[str], None]
) -> str:
    """What the program of the test with the mark `in_world` has printed."""
    mark = request.node.get_closest_marker("in_world")
    assert mark is not None
    run = worlds[mark.args]
    while not run.done():
        step(f"{mark.args[0]}, which plays in real time")
        wait([run], STEP_S)
    return run.result()
