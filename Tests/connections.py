"""A fixture which checks after each test that the library made few connections to the head-ends. A library that does
not use its connections again would make a new one for each request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_usher.fixtures import FAILED
from usher.testing.headend import Entry, HeadEnd, Outcome

SPARE = 2
"""A head-end may have this many more connections than `needed` returns: a client may open a connection and then not use
it, because its request was cancelled or another connection became free."""
NEAR_MS = 100
"""For `needed`, a request begins this many ms before it arrived at the head-end, and ends this many ms after the
head-end has sent the reply: the client sends the request earlier than it arrives, and gets the reply later than the
head-end sends it."""

OURS = "usher/"
"""The beginning of the library's User-Agent."""


def uses_kept_connections(entry: Entry) -> bool:
    """Whether the library sent this request and had to send it over a kept connection if there was one. A request
    without a session token may open a session. For such a request the library may open a new connection until it knows
    that the server keeps connections open."""
    return (entry.header("user-agent") or "").startswith(OURS) and entry.session_token is not None


def needed(entries: list[Entry]) -> int:
    """Returns how many connections these requests need at most. This is the sum of three numbers: the largest number of
    requests that were in flight at the same time; the number of requests whose connection broke or that may open a
    session; and the number of requests that another client sent (some hosts of the seeds send requests themselves).

    On virtual time many requests arrive at the same instant, so they count as in flight at the same time."""
    kept = [entry for entry in entries if entry.outcome is Outcome.ANSWERED and uses_kept_connections(entry)]
    ends = {entry.number: entry.at_ms if entry.answered_ms is None else entry.answered_ms for entry in kept}
    return (
        len(entries)
        - len(kept)
        + max(
            (
                sum(other.at_ms - NEAR_MS < entry.at_ms < ends[other.number] + NEAR_MS for other in kept)
                for entry in kept
            ),
            default=0,
        )
    )


@pytest.fixture(autouse=True)
def few_connections(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each test, checks for each head-end of the test that it accepted no more connections than the requests in
    its journal need. A test with the marker ``many_connections(reason)`` is not checked."""
    started: list[HeadEnd] = []
    start = HeadEnd.start

    def noted(headend: HeadEnd) -> HeadEnd:
        if headend not in started:
            started.append(headend)
        return start(headend)

    monkeypatch.setattr(HeadEnd, "start", noted)
    yield
    if request.node.stash.get(FAILED, False) or request.node.get_closest_marker("many_connections"):
        return
    for headend in started:
        entries = list(headend.journal)
        most = needed(entries) + SPARE
        assert headend.connections_made <= most, (
            f"{headend.connections_made} connections for {len(entries)} requests, of which at most {most - SPARE} need "
            f"a connection of their own\n{headend.journal.dump()}"
        )
