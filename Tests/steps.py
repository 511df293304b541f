"""The fixture ``step``, for tests that take longer than the time limit of a test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from parts import STEP

RUNNING = pytest.StashKey[tuple[pytest.Item, Any]]()
"""The key under which pytest stores the test that runs now, and this test's settings of pytest-timeout."""


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    item.config.stash[RUNNING] = (item, settings)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.config.stash.setdefault(RUNNING, (item, None))
    try:
        return (yield)
    finally:
        del item.config.stash[RUNNING]


@pytest.fixture(scope="session")
def step(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Returns a function that a long test calls before each step, with the text of what it waits for. The function
    prints the text at once, and starts the time limit of the test again. So each step has the whole time limit."""
    config = request.config
    capture = config.pluginmanager.getplugin("capturemanager")

    def begin(what: str) -> None:
        item, settings = config.stash[RUNNING]
        if settings is not None:
            config.hook.pytest_timeout_cancel_timer(item=item)
        with capture.global_and_fixture_disabled():
            print(f"\n{STEP}{what}", flush=True)
        if settings is not None:
            config.hook.pytest_timeout_set_timer(item=item, settings=settings)

    return begin
