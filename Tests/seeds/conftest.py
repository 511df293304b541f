from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from connections import few_connections as few_connections  # pytest finds the fixtures here
from resources import same_resources as same_resources
from seeds.clips import MEDIA, Clip, make_clips
from seeds.ports import Ports

from usher.testing.headend import HeadEnd


@pytest.fixture(scope="session")
def ports(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, step: Callable[[str], None]
) -> Iterator[Ports]:
    """Builds the ports that the selected tests run; in a test module, the constant PORT names the port of its tests.
    The fixture waits until the compilers have built all ports. This wait counts as part of the first test, so the time
    limit of that test begins again after each port."""
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


@pytest.fixture
def headend(request: pytest.FixtureRequest, token_form: str) -> Iterator[HeadEnd]:
    """A head-end whose accounts have one session each. Its period is a minute, so that no heartbeat is due; a test
    may set another period."""
    period_s = getattr(request, "param", 60)
    with HeadEnd(
        clock="system",
        control=False,
        period_s=period_s,
        grace=8,
        limit=1,
        token_rotation="strict",
        token_form=token_form,
    ) as running:
        running.add_media(MEDIA)
        yield running
