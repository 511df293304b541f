"""Tests the head-end's page in Chromium. The checks are in ``page_checks.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from page_browser import PROGRAM, Check, browser, run
from page_checks import CHECKS

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium, which opens the page, is not installed")


@pytest.fixture(scope="module")
def in_browser() -> Iterator[Callable[[Check], None]]:
    """Returns a function that runs a check. All checks use the same browser."""
    loop = asyncio.new_event_loop()
    opened = browser()
    try:
        page = loop.run_until_complete(opened.__aenter__())
        try:
            yield lambda check: loop.run_until_complete(run(check, page))
        finally:
            loop.run_until_complete(opened.__aexit__(None, None, None))
    finally:
        loop.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_page_inABrowser(check: Check, in_browser: Callable[[Check], None]) -> None:
    in_browser(check)
