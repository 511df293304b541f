"""The fixtures that make stages for the stories, with the checks at the end of every story."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import calls
import pytest
from connections import few_connections as few_connections  # pytest finds the fixtures here
from resources import same_resources as same_resources

import usher
from pytest_usher.fixtures import FAILED
from stage import PERIOD_MS, REAL_TIMEOUT_S, Stage, StageFactory
from usher.testing.headend import HeadEnd


def pytest_configure(config: pytest.Config) -> None:
    # ThreadSanitizer starts a thread for itself when the process starts its first thread. That must happen before the
    # first story, whose check would otherwise find one thread too many.
    first = threading.Thread(target=lambda: None)
    first.start()
    first.join()
    config.pluginmanager.register(calls)
    config.addinivalue_line(
        "markers", "leaves_session: at the end of this story a session remains at the head-end, on purpose"
    )
    config.addinivalue_line(
        "markers", "breaks_rules(*kinds): violations of the protocol that this story causes on purpose"
    )
    config.addinivalue_line("markers", "callback_errors: callbacks of this story raise on purpose")


@pytest.fixture
def stage_factory(
    lib: Any, headend_factory: Callable[..., HeadEnd], token_form: str, request: pytest.FixtureRequest
) -> Iterator[StageFactory]:
    """Returns a function that makes stages: ``stage_factory(headend={…settings}, **context_options)``.

    At the end of the story, the head-ends must hold no session, and their journals must have no violation, unless a
    marker of the story allows it.
    """
    stages: list[Stage] = []

    def make(headend: dict[str, Any] | HeadEnd | None = None, **options: Any) -> Stage:
        server = (
            headend
            if isinstance(headend, HeadEnd)
            else headend_factory(**{"period_s": PERIOD_MS // 1000, "token_form": token_form, **(headend or {})})
        )
        stage = Stage(server, **options)
        stages.append(stage)
        return stage

    yield make
    for stage in stages:
        stage.close()
    if request.node.stash.get(FAILED, False):
        return
    broken = request.node.get_closest_marker("breaks_rules")
    for stage in stages:
        if not request.node.get_closest_marker("keeps_resources"):
            stage.until_closed()
        stage.check_end(
            leaves_session=request.node.get_closest_marker("leaves_session") is not None,
            ignore=broken.args if broken else (),
            callback_errors=request.node.get_closest_marker("callback_errors") is not None,
        )
    from usher._c import registry

    deadline = time.monotonic() + REAL_TIMEOUT_S
    while registry.count() and time.monotonic() < deadline:
        threading.Event().wait(0.002)  # a context freed in a callback ends later, on a background thread
    assert registry.count() == 0, "C's destroy has not run for every user_data"


@pytest.fixture
def stage(stage_factory: StageFactory) -> Stage:
    """The default stage: the period is 60 s, each account may have two sessions, and the head-end accepts only the
    newest token."""
    return stage_factory()


@pytest.fixture
def context(stage: Stage) -> usher.Context:
    return stage.context
