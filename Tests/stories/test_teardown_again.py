"""A teardown got no answer, although the library repeated it, for example because the viewer closed the item in a
tunnel. The library still has the session token, so it sends the teardown again when an answer is needed or becomes
likely: before the next set-up at this head-end, and when the network changes
(protocol.md: Teardowns without an answer)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import usher
from stage import Stage, StageFactory
from usher.testing.headend import Fault, HeadEnd

E = usher.EventType


@pytest.fixture
def headend(headend_factory: Callable[..., HeadEnd]) -> HeadEnd:
    """A head-end whose accounts may have one session."""
    return headend_factory(limit=1, period_s=60)


@pytest.fixture
def closed(stage_factory: StageFactory, headend: HeadEnd) -> Stage:
    """A stage whose first item was closed while the head-end was away; the library has given up its teardown."""
    stage = stage_factory(headend)
    playback = play(stage)
    stage.settle()
    headend.faults.add("teardown", Fault.drop(), always=True)
    playback.close()
    stage.advance(10_000)
    assert names(stage) == ["SESSION_STARTED", "TEARDOWN_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert len(headend.sessions.active()) == 1
    return stage


def play(stage: Stage, **options: Any) -> usher.Playback:
    return stage.play(stage.headend.content_token("a"), **options)


def names(stage: Stage, since: int = 0) -> list[str]:
    """Returns the types of the events in the order in which they happened, without the first `since` ones."""
    ordered = sorted(stage.events.all(), key=lambda event: event.sequence)
    return [event.type.name for event in ordered][since:]


def teardowns(stage: Stage) -> int:
    return len(stage.headend.journal.entries(route="teardown"))


def test_nextItem_afterTheNetworkIsBack_plays(closed: Stage) -> None:
    """The network is back when the viewer plays the next item. The head-end refuses nothing, or the library repeats the
    set-up after the teardown: the item plays."""
    closed.headend.faults.clear()
    play(closed)
    closed.settle()
    assert sorted(names(closed, 4)) == ["RECOVERED_SLOT", "SESSION_STARTED"]
    (event,) = closed.events.all(E.RECOVERED_SLOT)
    assert event.error is None
    assert len(closed.headend.sessions.active()) == 1
    assert teardowns(closed) == 5


def test_nextItem_whileTheNetworkIsStillAway_isRefused_andTheOneAfterItPlays(closed: Stage) -> None:
    """The set-up reaches the head-end, but the teardowns do not. The library waits for its own teardown, and then
    reports the refusal. When the teardown reaches the head-end, the next item plays."""
    play(closed)
    closed.advance(10_000)
    assert names(closed, 4) == ["SETUP_ERROR"]
    assert closed.events.error(E.SETUP_ERROR).status is usher.Status.LIMIT
    closed.headend.faults.clear()
    play(closed)
    closed.settle()
    assert sorted(names(closed, 5)) == ["PLAYBACK_CLOSED", "RECOVERED_SLOT", "SESSION_STARTED"]


def test_networkChanged_sendsTheTeardownAgain(closed: Stage) -> None:
    closed.headend.faults.clear()
    closed.context.network_changed()
    closed.settle()
    assert names(closed, 4) == ["RECOVERED_SLOT"]
    assert not closed.headend.sessions.active()
    closed.context.network_changed()
    closed.settle()
    assert teardowns(closed) == 5, "the slot is free: no further teardown"


def test_networkChanged_duringATeardown_sendsNoSecondOne(closed: Stage) -> None:
    """The network changes three times while the head-end holds the reply to the teardown back."""
    closed.headend.faults.clear()
    closed.headend.faults.add("teardown", Fault.stall("after"))
    for _ in range(3):
        closed.context.network_changed()
        closed.settle()
    assert teardowns(closed) == 5
    closed.headend.release()
    closed.settle()
    assert names(closed, 4) == ["RECOVERED_SLOT"]


def test_leaseIsOver_noTeardownIsSent(closed: Stage) -> None:
    """Four periods later no server holds the session any more."""
    closed.headend.faults.clear()
    closed.advance(4 * 60_000)
    closed.context.network_changed()
    closed.settle()
    assert teardowns(closed) == 4
    assert names(closed, 4) == []


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (Fault.error(1006), ["RECOVERED_SLOT"]),
        (Fault.status(403), []),
        (Fault.error(1003, status=200), []),
    ],
    ids=["unknown session", "refused", "refused with 200"],
)
def test_serverThatAnswers_isNotAskedAgain(closed: Stage, answer: Fault, reported: list[str]) -> None:
    """The head-end may not know the session, because it has executed one of the teardowns whose replies were lost: the
    slot is free. A refusal is not reported, because the host has had its TEARDOWN_ERROR."""
    closed.headend.faults.clear()
    closed.headend.faults.add("teardown", answer)
    for _ in range(2):
        closed.context.network_changed()
        closed.settle()
    assert teardowns(closed) == 5
    assert names(closed, 4) == reported
    closed.context.close()
    closed.headend.clock.advance(600_000)


@pytest.mark.parametrize("status", [302, 407, 408, 425, 429, 500])
def test_statusAfterWhichARepetitionMaySucceed_isNoAnswer(
    stage_factory: StageFactory, headend: HeadEnd, status: int
) -> None:
    stage = stage_factory(headend)
    playback = play(stage)
    stage.settle()
    headend.faults.add("teardown", Fault.status(status), always=True)
    playback.close()
    stage.advance(10_000)
    assert stage.events.error(E.TEARDOWN_ERROR).http_status == status
    headend.faults.clear()
    stage.context.network_changed()
    stage.settle()
    assert names(stage, 4) == ["RECOVERED_SLOT"]
    assert not headend.sessions.active()


def test_serverThatAsksToWait_isAskedAfterThatTime(closed: Stage) -> None:
    """The answer to the first teardown that is sent again is 503 with Retry-After: 60."""
    closed.headend.faults.clear()
    closed.headend.faults.add("teardown", Fault.status(503, retry_after=60))
    for _ in range(3):
        closed.context.network_changed()
        closed.settle()
    assert teardowns(closed) == 5
    closed.advance(60_000)
    closed.context.network_changed()
    closed.settle()
    assert teardowns(closed) == 6
    assert names(closed, 4) == ["RECOVERED_SLOT"]


def test_waitForASlot_sendsTheTeardownOnlyOnce(closed: Stage) -> None:
    """The library repeats the set-up of the next item for ten seconds. It sends the teardown, with its retries, before
    the first set-up only."""
    play(closed, delegate=closed.delegate(slot_wait_ms=10_000))
    closed.advance(20_000)
    assert teardowns(closed) == 4 + 4
    assert names(closed, 4)[-1] == "SETUP_ERROR"
    closed.context.close()
    closed.headend.clock.advance(600_000)


def test_contextThatClosesBetweenTwoRetries_hasNoTimer(closed: Stage) -> None:
    """The resource check of the stories looks for timers of a closed context."""
    closed.context.network_changed()
    closed.settle()
    assert teardowns(closed) > 4
    closed.context.close()
    closed.headend.clock.advance(600_000)


def test_manySessions_areTornDownTogether(stage_factory: StageFactory, headend: HeadEnd) -> None:
    """The library remembers 16 sessions: of 20, it gives back the newest ones."""
    stage = stage_factory(headend)
    headend.faults.add("teardown", Fault.drop(), always=True)
    delegate = stage.delegate()
    for number in range(20):
        player = usher.Player(stage.context)
        playback = player.play(headend.content_token(f"account {number}"), delegate=delegate)
        stage.settle()
        playback.close()
        stage.settle()
    stage.advance(10_000)
    assert len(headend.sessions.active()) == 20
    headend.faults.clear()
    stage.context.network_changed()
    stage.settle()
    assert len(stage.events.all(E.RECOVERED_SLOT)) == 16
    assert len(headend.sessions.active()) == 4
    stage.context.close()
    headend.clock.advance(600_000)
