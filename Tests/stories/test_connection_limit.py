"""Tests requests that wait in the queue, because each origin may have only a limited number of requests in flight."""

from __future__ import annotations

import pytest

import usher
from stage import CHALLENGE, REAL_TIMEOUT_S, Stage, StageFactory
from stage.fps import SKD, loader, ready
from usher.testing.headend import Fault

E = usher.EventType


def playing(stage: Stage, *tags: str) -> None:
    """Starts playbacks one after another, each on a separate player, so that their heartbeats are due at one time."""
    delegate = stage.delegate()
    for tag in tags:
        stage.play(player=usher.Player(stage.context), delegate=delegate, tag=tag)
    stage.settle()


def test_heartbeat_behindOneThatHangs_isSentWithoutAFreeConnectionAndSaysHowLate(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 9}, requests_per_origin_max=1)
    playing(stage, "hangs", "waits", "waits too")
    stage.headend.faults.add("heartbeat", Fault.stall("before"))
    stage.advance(60_000)
    assert stage.headend.journal.count("heartbeat") == 1 and stage.events.all(E.KEPT_ALIVE) == []
    stage.advance(100)
    assert {event.tag: event.lateness_ms for event in stage.events.all(E.KEPT_ALIVE)} == {
        "waits": 100,
        "waits too": 100,
    }
    stage.headend.release()
    stage.settle()
    assert stage.events.only(E.KEPT_ALIVE, tag="hangs").lateness_ms == 0


def test_heartbeats_dueAtOnceWithOneConnection_goOneAfterAnother(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 99}, requests_per_origin_max=1)
    tags = [f"screen {number}" for number in range(20)]
    playing(stage, *tags)
    stage.advance(60_000)
    assert {event.tag: event.lateness_ms for event in stage.events.all(E.KEPT_ALIVE)} == dict.fromkeys(tags, 0)
    assert [entry.session for entry in stage.sent("heartbeat")] == [entry.session for entry in stage.sent("setup")]


def test_heartbeat_whileAnotherOriginHangs_waitsForNothing(
    stage_factory: StageFactory, headend_factory: object
) -> None:
    stage = stage_factory(headend={"limit": 9}, requests_per_origin_max=1)
    playing(stage, "here")
    other = headend_factory(period_s=60)  # type: ignore[operator]
    theirs = stage.delegate(license_url=other.license_url("clearkey"), ssm_url=other.ssm_url)
    stage.play(other.content_token(), player=usher.Player(stage.context), delegate=theirs, tag="there")
    stage.settle()
    other.faults.add("heartbeat", Fault.stall("before"))
    stage.also_held.append(lambda: other.held)
    stage.advance(60_000)
    assert stage.events.only(E.KEPT_ALIVE).tag == "here" and stage.events.only(E.KEPT_ALIVE).lateness_ms == 0
    other.release()
    stage.settle()


@pytest.mark.breaks_rules("late-beat")
def test_heartbeats_whereAnswersComeButSlowly_waitHalfASecondAtMost(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 99}, requests_per_origin_max=1)
    playing(stage, *[f"screen {number}" for number in range(20)])
    stage.headend.faults.add("heartbeat", Fault.delay(90), always=True)
    stage.step_ms = 10
    stage.advance(62_000)
    late = [event.lateness_ms for event in stage.events.all(E.KEPT_ALIVE)]
    assert len(late) == 20 and max(late) == 500, late
    assert stage.events.types().count("HEARTBEAT_ERROR") == 0


def test_teardowns_toAServerThatHangs_areAllSentWithinSeconds(stage_factory: StageFactory) -> None:
    """A server does not reply to 200 teardowns. Each second the library raises the number of requests that may be in
    flight to this server, and so sends all teardowns within two seconds."""
    stage = stage_factory(headend={"limit": 200})
    playing(stage, *[f"screen {number}" for number in range(200)])
    stage.headend.faults.add("teardown", Fault.stall("after"), always=True)
    for playback in stage._playbacks:
        playback.close()
    stage.advance(1_000)
    assert stage.headend.journal.count("teardown") == 16 + 48
    stage.advance(1_000)
    assert stage.headend.journal.count("teardown") == 200
    assert not stage.headend.sessions.active()
    stage.headend.faults.clear()
    stage.headend.release()
    stage.settle()


def test_close_whileItsLicenceWaitsForAConnection_sendsNothingMore(stage_factory: StageFactory) -> None:
    """A playback closes while its key request has the only permit and its licence request is queued. The library never
    sends the licence request; the teardown gets the permit."""
    stage = stage_factory(headend={"limit": 9}, requests_per_origin_max=1)
    ready(stage)
    loader(stage)
    playback = stage.play(delegate=stage.delegate())
    stage.settle()
    stage.headend.faults.add("ckc", Fault.stall())
    load = playback.load_resource(SKD)
    stage.headend.wait_held()
    playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    playback.close()
    stage.settle()
    assert isinstance(load.exception(10), usher.ClosedError)
    stage.headend.journal.wait_for(1, route="teardown", answered=True)
    assert stage.routes() == ["setup", "ckc", "teardown"] and not stage.headend.sessions.active()


def test_contextClosed_whileItemsWaitForTheirTurn_setsNothingUp(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 9})
    stage.play()
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall("after"))
    stage.play(tag="next")
    stage.headend.wait_held()
    closing = stage.call(stage.context.shutdown)
    stage.until(lambda: stage.events.all(E.PLAYBACK_CLOSED, tag="next"))
    stage.headend.release()
    assert closing.result(REAL_TIMEOUT_S) == 0
    assert stage.routes() == ["setup", "teardown"]
