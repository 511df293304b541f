"""A thousand playbacks have faults at the same time. Each has the same outcome as a single playback, and the heartbeats
of other playbacks are on time."""

from __future__ import annotations

import contextlib
import resource
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from crowd import KINDS, Crowd, short
from expected import AT_ONCE, EXPECTED
from operations import COLUMNS, Column, Fault
from page import Results

from usher.testing.headend.fixtures import Authority

COUNT = 1000
FILES = 8192
BY_NAME = {column.name: column for column in COLUMNS}
pytestmark = pytest.mark.whole


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """Raises the limit of open files, since both ends of every connection are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        pytest.fail(
            f"a thousand playbacks and their server need {FILES} files; this process may have {hard} (ulimit -Hn)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def at_once(authority: Authority, column: Column, kinds: tuple[Fault, ...]) -> str:
    with contextlib.closing(Crowd(authority, column, COUNT, kinds)) as crowd:
        told = crowd.play()
        wanted = [short(EXPECTED[kinds[number % len(kinds)].key][column.name]) for number in range(COUNT)]
        other = Counter(
            (kinds[n % len(kinds)].key, told[n], crowd.held(n))
            for n in range(COUNT)
            if (told[n], crowd.held(n)) != wanted[n]
        )
        assert not other, other
        late = crowd.lateness_ms()
        return f"{COUNT} as each alone; {len(late)} beats beside them, at most {max(late)} ms late"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", AT_ONCE)
def test_thousandAtOnce_areAsEachAlone_andLateNobodyElse(
    lib: Any, authority: Authority, results: Results, name: str
) -> None:
    """A thousand playbacks have faults at the same time. Each of them has the same outcome as a single playback with
    the same fault, and the heartbeats of playbacks without faults are on time.

    A silent server is the hardest fault for the playbacks without faults: unanswered requests use every
    permit of their origin.
    """
    column, _, only = name.partition(", ")
    kinds = tuple(fault for fault in KINDS if only in ("", fault.key))
    outcome = at_once(authority, BY_NAME[column], kinds)
    results.add("at once", name, outcome)
    assert outcome == AT_ONCE[name]
