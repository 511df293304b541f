from __future__ import annotations

import os
from pathlib import Path

import pytest
from seeds.ports import Ports


@pytest.fixture(scope="session")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Ports:
    return Ports(Path(os.environ["USHER_LIBRARY"]).resolve(), tmp_path_factory.mktemp("ports"))
