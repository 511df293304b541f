"""Fixtures of the security tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from connections import few_connections as few_connections  # pytest finds the fixtures here
from resources import same_resources as same_resources

from stage import PERIOD_MS, Stage
from usher.testing.headend import HeadEnd


@pytest.fixture
def stage_factory(lib: Any, headend_factory: Callable[..., HeadEnd], token_form: str) -> Iterator[Callable[..., Stage]]:
    """Makes stages: ``stage_factory(headend={…settings}, **context_options)``."""
    stages: list[Stage] = []

    def make(headend: dict[str, Any] | None = None, **options: Any) -> Stage:
        defaults = {"period_s": PERIOD_MS // 1000, "limit": 9, "grace": 50, "token_form": token_form}
        stages.append(Stage(headend_factory(**{**defaults, **(headend or {})}), **options))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(stage_factory: Callable[..., Stage]) -> Stage:
    return stage_factory()
