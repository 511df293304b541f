"""A pytest plugin that records which story calls which function of the library, for ``test_every_function.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from resources import RECORD

HERE = Path(__file__).resolve().parent
LAST = "test_every_function.py"


class Calls:
    """Records which tests called each function of the library successfully. ctypes reports every call with
    ``errcheck``."""

    def __init__(self) -> None:
        self.tests_of: dict[str, set[str]] = {}
        self.is_whole_suite = False
        self.given: Any = None
        """Records the handles that the running story gets (``resources.Given``)."""
        self._running: pytest.Item | None = None
        self._is_traced = False

    def begin(self, item: pytest.Item) -> None:
        self._running = item
        if not self._is_traced and "usher._c.ffi" in sys.modules:
            self._is_traced = True
            self._trace()

    def _trace(self) -> None:
        from usher._c import abi, ffi

        for name in abi.PROTOTYPES:
            function = getattr(ffi.lib, name)
            function.errcheck = self._traced(name, function.errcheck)

    def _traced(self, name: str, before: Any) -> Any:
        def note(result: Any, function: Any, arguments: Any) -> Any:
            item = self._running
            went_well = result == 0 if type(result) is int and name != "usher_get_api" else bool(result)
            if went_well and self.given is not None:
                self.given.note(name, arguments)
            if went_well and item is not None and item.get_closest_marker("sweep") is None:
                self.tests_of.setdefault(name, set()).add(item.nodeid)
            return result if before is None else before(result, function, arguments)

        return note


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RECORD] = Calls()
    config.addinivalue_line(
        "markers",
        "sweep: calls every function of the headers in a loop, and so does not count as a test of any of them",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the tests, so that the test which reads the record runs after all other tests."""
    items.sort(key=lambda item: item.path.name == LAST)
    wanted = set(HERE.glob("test_*.py"))
    named = any("::" in argument for argument in config.args)
    config.stash[RECORD].is_whole_suite = wanted <= {item.path for item in items} and not named


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.config.stash[RECORD].is_whole_suite = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[RECORD].begin(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    item.config.stash[RECORD].begin(item)


@pytest.fixture
def calls(request: pytest.FixtureRequest) -> Calls:
    """Returns the record of the tests that ran before the present test."""
    return request.config.stash[RECORD]
