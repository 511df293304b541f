"""The fixtures. Modules of the head-end and of the library are loaded when a test first needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from . import options

if TYPE_CHECKING:
    import usher
    from usher.testing.headend import HeadEnd

    from .expect import Expectations
    from .foreign import ForeignHeadEnd
    from .stage import Stage, StageFactory

HeadEndFactory = Callable[..., "HeadEnd"]
"""The type of a function that starts a head-end with settings of ``HeadEndConfig``. The fixture that provides the
function stops the head-end at the end of the test."""

HEAD_ENDS = pytest.StashKey[list["HeadEnd"]]()
"""The head-ends of a test."""
FAILED = pytest.StashKey[bool]()
"""Whether a test has failed."""


@pytest.fixture(scope="session")
def usher_foreign_headend(pytestconfig: pytest.Config) -> ForeignHeadEnd | None:
    """The head-end of ``--usher-headend-url``; None: tests use the reference head-end."""
    return options.foreign(pytestconfig)


@pytest.fixture
def headend_settings() -> Mapping[str, Any]:
    """The settings that all reference head-ends of a test have unless the test says otherwise. Override this fixture to
    change them for a module or a project."""
    return {}


@pytest.fixture
def headend_factory(request: pytest.FixtureRequest, headend_settings: Mapping[str, Any]) -> Iterator[HeadEndFactory]:
    """Returns a function that starts reference head-ends, by default with a manual clock and strict token rotation.

    The settings come from five places, and each place overrides those before it: these two defaults, ``--usher-tls``,
    ``headend_settings``, the marker ``usher_headend`` and the arguments of the function.
    """
    from usher.testing.headend import HeadEnd

    made: list[HeadEnd] = request.node.stash.setdefault(HEAD_ENDS, [])
    ours: list[HeadEnd] = []
    defaults: dict[str, Any] = {"clock": "manual", "token_rotation": "strict"}
    if request.config.getoption("--usher-tls"):
        defaults["tls"] = True
    marked = _marked(request, "usher_headend")

    def make(**settings: Any) -> HeadEnd:
        head_end = HeadEnd(**{**defaults, **headend_settings, **marked, **settings})
        for mark in reversed(list(request.node.iter_markers("usher_faults"))):
            head_end.faults.add(*mark.args, **mark.kwargs)
        ours.append(head_end)
        made.append(head_end)
        return head_end.start()

    yield make
    for head_end in ours:
        head_end.stop()


@pytest.fixture
def headend(
    request: pytest.FixtureRequest,
    usher_foreign_headend: ForeignHeadEnd | None,
    headend_factory: HeadEndFactory,
) -> HeadEnd | ForeignHeadEnd:
    """The head-end of the test: a reference head-end that runs, or the head-end that ``--usher-headend-url`` names."""
    if usher_foreign_headend is None:
        return headend_factory()
    usher_foreign_headend.require(**_marked(request, "usher_headend"))
    if request.node.get_closest_marker("usher_faults"):
        _ = usher_foreign_headend.faults  # skips the test
    return usher_foreign_headend


@pytest.fixture
def stage_factory(request: pytest.FixtureRequest, headend_factory: HeadEndFactory) -> Iterator[StageFactory]:
    """Returns a function that makes stages: ``stage_factory(headend, **context_options)``. ``headend`` is a head-end,
    or settings of a new reference head-end; by default it is the fixture ``headend``.

    At the end of the test the fixture closes the stages and checks them (``Stage.check_end``), unless the test has
    failed.
    """
    from .stage import Stage

    stages: list[Stage] = []
    marked = _marked(request, "usher_context")

    def make(headend: Any = None, **options: Any) -> Stage:
        if isinstance(headend, Mapping):
            server = headend_factory(**headend)
        else:
            server = request.getfixturevalue("headend") if headend is None else headend
        stages.append(Stage(server, **{**marked, **options}))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()
    if request.node.stash.get(FAILED, False):
        return
    broken = request.node.get_closest_marker("usher_breaks_rules")
    for stage in stages:
        stage.check_end(
            leaves_session=request.node.get_closest_marker("usher_leaves_session") is not None,
            ignore=broken.args if broken else (),
            callback_errors=request.node.get_closest_marker("usher_callback_errors") is not None,
        )


@pytest.fixture
def stage(stage_factory: StageFactory) -> Stage:
    """A stage: a context of the library and the fixture ``headend``, with one clock for both."""
    return stage_factory()


@pytest.fixture
def usher_context(stage: Stage) -> usher.Context:
    """The context of the fixture ``stage``."""
    return stage.context


@pytest.fixture
def expect(headend: HeadEnd | ForeignHeadEnd) -> Expectations:
    """Checks of the journal and the session table of the fixture ``headend``."""
    from .expect import Expectations

    return Expectations(headend)


@pytest.fixture
def door_factory() -> Iterator[Callable[..., Any]]:
    """Returns a function that makes doors: ``door_factory(url, tls=…)`` puts a door in front of the server at this URL.
    At the end of the test the fixture closes the doors."""
    from usher.testing.doors import Door

    doors: list[Door] = []

    def make(url: str, **options: Any) -> Door:
        doors.append(Door(url, **options))
        return doors[-1]

    yield make
    for door in doors:
        door.close()


def _marked(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    """Returns the settings of all markers of this name; the marker that is nearest to the test overrides the others."""
    found: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers(name))):
        found |= mark.kwargs
    return found
