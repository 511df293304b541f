from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from connections import few_connections as few_connections  # pytest finds the fixtures here
from resources import same_resources as same_resources
from seeds.clips import Clip, make_clips
from seeds.ports import Ports


@pytest.fixture(scope="session")
def ports(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, step: Callable[[str], None]
) -> Iterator[Ports]:
    """The ports that the selected tests run. PORT of a test module names its port. The compilers have built all ports
    when the first test begins; each port that they build gives this test its whole time limit again."""
    modules = [item.getparent(pytest.Module) for item in request.session.items]
    names = {name for module in modules if module and (name := getattr(module.obj, "PORT", ""))}
    ports = Ports(Path(os.environ["USHER_LIBRARY"]).resolve(), tmp_path_factory.mktemp("ports"), names)
    try:
        for missing in ports.builds():
            step(f"the compilers, which have not built these ports yet: {', '.join(missing)}")
        yield ports
    finally:
        ports.close()


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Clip]:
    return make_clips(tmp_path_factory.mktemp("clips"))
