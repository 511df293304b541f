"""Fixtures of the tests of the guardian."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from killing import LIMIT_S, PATIENCE, Killing, build_host, guardian, guardians, wait_until

from usher.testing.headend import HeadEnd


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert guardian().exists(), f"{guardian()} is missing"
    return build_host(tmp_path_factory.mktemp("host"))


@contextmanager
def ending_guardians() -> Iterator[None]:
    """After the `with` block, waits until every guardian that started in it has ended. Fails if one does not end."""
    before = guardians()
    yield
    wait_until(lambda: not guardians() - before, "a guardian is left")


@pytest.fixture(autouse=True)
def no_guardian_left() -> Iterator[None]:
    with ending_guardians():
        yield


def headend(**settings: object) -> HeadEnd:
    """Returns a head-end whose sessions do not expire during a test, so that only a teardown ends them."""
    return HeadEnd(period_s=10, grace=1000, limit=5000, enforced=frozenset({"fairplay"}), **settings)


@pytest.fixture
def killing(program: Path) -> Iterator[Killing]:
    with headend() as made, ending_guardians():
        yield Killing(made, program)


@pytest.fixture
def secure(program: Path) -> Iterator[Killing]:
    with headend(tls=True) as made, ending_guardians():
        yield Killing(made, program)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "exact: looks at properties that a guardian under a sanitizer does not have")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-kills", action="store_true", help="kill the host at all points, and at 1,200 random times")


@pytest.fixture
def kill_share(request: pytest.FixtureRequest) -> int:
    """Returns n: the test kills a host at every n-th point."""
    return 1 if request.config.getoption("--all-kills") else 25


@pytest.fixture
def free_within_s(request: pytest.FixtureRequest) -> float:
    """How long after the death of a host the server may still hold its session. `make kills` requires one second. `make
    test` may run on a busy machine, and only requires that the session ends."""
    return 1.0 * PATIENCE if request.config.getoption("--all-kills") else LIMIT_S


@pytest.fixture
def kill_times(request: pytest.FixtureRequest) -> int:
    """How many hosts the test kills at random times, for each way to play and each keeper of the sessions."""
    return 134 if request.config.getoption("--all-kills") else 8
