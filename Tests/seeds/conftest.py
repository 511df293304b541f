from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from seeds.clips import Clip, make_clips
from seeds.ports import Ports


@pytest.fixture(scope="session")
def ports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """The ports that the selected tests run. PORT of a test module names its port."""
    modules = [item.getparent(pytest.Module) for item in request.session.items]
    names = {name for module in modules if module and (name := getattr(module.obj, "PORT", ""))}
    ports = Ports(Path(os.environ["USHER_LIBRARY"]).resolve(), tmp_path_factory.mktemp("ports"), names)
    yield ports
    ports.close()


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Clip]:
    return make_clips(tmp_path_factory.mktemp("clips"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives the tests of this folder more time: the first tests wait until the compilers have built the ports."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(240))
