"""pytest fixtures for the reference head-end.

To load the plugin, write ``pytest_plugins = ["usher.testing.pytest_plugin"]`` in the top ``conftest.py``, or run pytest
with ``-p usher.testing.pytest_plugin``. The report of a failed test has the journals of its head-ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from .headend import HeadEnd

HeadEndFactory = Callable[..., HeadEnd]
"""The type of a function that starts a head-end with settings of ``HeadEndConfig``. At the end of the test the fixture
stops the head-end."""

_HEAD_ENDS = pytest.StashKey[list[HeadEnd]]()
_TITLE = "head-end journal"


@pytest.fixture
def headend_factory(request: pytest.FixtureRequest) -> Iterator[HeadEndFactory]:
    """Returns a function that starts head-ends, by default with a manual clock and strict token rotation."""
    made: list[HeadEnd] = request.node.stash.setdefault(_HEAD_ENDS, [])
    ours: list[HeadEnd] = []

    def make(**settings: Any) -> HeadEnd:
        head_end = HeadEnd(**{"clock": "manual", "token_rotation": "strict", **settings})
        ours.append(head_end)
        made.append(head_end)
        return head_end.start()

    yield make
    for head_end in ours:
        head_end.stop()


@pytest.fixture
def headend(headend_factory: HeadEndFactory) -> HeadEnd:
    """A head-end that is started, with a manual clock, strict token rotation, and otherwise the default settings."""
    return headend_factory()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the journals to the report of a failed test."""
    report = yield
    if report.failed and not any(title.startswith(_TITLE) for title, _ in report.sections):
        for head_end in item.stash.get(_HEAD_ENDS, []):
            report.sections.append((f"{_TITLE} {head_end.url}", head_end.journal.dump()))
    return report
