"""Tests the notices of a player, and the wait for a slot while the account has too many sessions."""

from __future__ import annotations

from typing import Any

import pytest

import usher
from stage import KID, Stage, StageFactory
from stage.aio import AioStage, story
from stage.v2 import PAYLOAD
from stage.v2 import delegate as v2_delegate
from usher.testing.headend import Fault

E = usher.EventType
N = usher.NoticeType
CLEARKEY = usher.KeySystem.CLEARKEY


class Screen:
    """A player with an observer, which stores all notices."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.player = usher.Player(stage.context)
        self.notices: list[usher.Notice] = []
        self.observer = self.player.add_observer(self.notices.append)

    def play(self, tag: str = "film", *, licence: bool = True, **options: Any) -> usher.Playback:
        """Plays an item, and returns the playback. If `licence` is True, also requests the licence of the item."""
        playback = self.stage.play(player=self.player, tag=tag, delegate=self.stage.delegate(**options))
        if licence:
            playback.request_license(CLEARKEY, usher.clear_key_request([KID]))
        self.stage.settle()
        return playback

    def names(self) -> list[str]:
        return [notice.type.name for notice in self.notices]


@pytest.fixture
def screen(stage: Stage) -> Screen:
    return Screen(stage)


@pytest.fixture
def limited(stage_factory: StageFactory) -> Stage:
    """A stage whose account may have only one session at a time."""
    return stage_factory(headend={"limit": 1})


def setups(stage: Stage, skipped: int = 0) -> list[int]:
    """Returns the times at which set-ups arrived at the head-end, without the first `skipped` set-ups. The times are in
    ms after the first of these arrivals."""
    times = [entry.at_ms for entry in stage.sent("setup")[skipped:]]
    return [time - times[0] for time in times]


def too_many(retry_after_s: int) -> Fault:
    """Makes a refusal with code 1007 (too many sessions) and the header Retry-After."""
    return Fault.status(
        429,
        retry_after=retry_after_s,
        body={"errorCode": 1007, "message": "too many sessions"},
    )


# ---- notices ---------------------------------------------------------------------------------------------------------


def test_notices_ofAnItemThatPlays_areReadyAndTornDown(stage: Stage, screen: Screen) -> None:
    """The licence arrives, the library sends heartbeats, and the playback closes; the observer gets READY with the
    licence, and TORN_DOWN when the slot is free."""
    playback = screen.play()
    stage.advance(300_000)
    assert screen.names() == ["READY"]
    ready = screen.notices[0]
    assert (ready.playback, ready.player, ready.tag, ready.error) == (
        playback,
        screen.player,
        "film",
        None,
    )
    screen.player.stop()
    stage.settle()
    assert screen.names() == ["READY", "TORN_DOWN"]
    assert stage.headend.sessions.active() == []


def test_setupRefused_isOneNoticeWithWords(stage: Stage, screen: Screen) -> None:
    """Set-up fails, and so the licence request fails too; the observer gets REFUSED once, with the summary, the
    advice and the error of set-up."""
    stage.headend.faults.add("setup", Fault.error(1003))
    screen.play()
    assert stage.events.types() == ["SETUP_ERROR", "LICENSE_ERROR"]
    assert screen.names() == ["REFUSED"]
    refused = screen.notices[0]
    assert refused.error is not None
    assert (refused.error.operation, refused.error.service_code) == (
        usher.Operation.SETUP,
        1003,
    )
    words = refused.error.explain()
    assert (refused.summary, refused.advice) == (words.summary, words.advice)
    assert words.known
    screen.player.stop()
    stage.settle()
    assert screen.names() == ["REFUSED", "ENDED"]


def test_licenceRefused_thenGranted_isRefusedThenReady(stage: Stage, screen: Screen) -> None:
    """The server refuses the first licence request and grants the second one; the observer gets REFUSED, then READY."""
    stage.headend.faults.add("license", Fault.error(4000))
    playback = screen.play()
    assert screen.names() == ["REFUSED"]
    playback.request_license(CLEARKEY, usher.clear_key_request([KID]))
    stage.settle()
    assert screen.names() == ["REFUSED", "READY"]


def test_sessionKilled_isLostThenTornDown(stage: Stage, screen: Screen) -> None:
    """The operator ends the session; the observer gets LOST once, and TORN_DOWN when the host stops the item."""
    screen.play()
    stage.headend.kill_account("account-1")
    stage.advance(300_000)
    assert screen.names() == ["READY", "LOST"]
    lost = screen.notices[1]
    assert lost.error is not None
    assert lost.error.must_stop
    assert lost.summary == "The session is no longer valid: it expired, or the operator ended it."
    screen.player.stop()
    stage.settle()
    assert screen.names() == ["READY", "LOST", "TORN_DOWN"]


def test_outage_isLostThenRecovered(stage_factory: StageFactory) -> None:
    """Heartbeats fail until the lease has ended, and then succeed, because this head-end keeps sessions longer than the
    library assumes; the observer gets LOST, then RECOVERED."""
    stage = stage_factory(headend={"grace": 10})
    screen = Screen(stage)
    screen.play()
    stage.headend.faults.add("heartbeat", Fault.status(503), always=True)
    stage.advance(200_000)
    assert screen.names() == ["READY", "LOST"]
    stage.headend.faults.clear()
    stage.advance(120_000)
    assert screen.names() == ["READY", "LOST", "RECOVERED"]


@pytest.mark.leaves_session
def test_teardownFailed_isEndedWithTheReason(stage: Stage, screen: Screen) -> None:
    """The server does not confirm the teardown; the last notice is ENDED, with the error of the teardown."""
    screen.play(teardown_retries=usher.OFF)
    stage.headend.faults.add("teardown", Fault.status(503))
    screen.player.stop()
    stage.settle()
    assert screen.names() == ["READY", "ENDED"]
    error = screen.notices[1].error
    assert error is not None
    assert (error.operation, error.http_status) == (usher.Operation.TEARDOWN, 503)


def test_leftSession_tornDownLater_isTornDown(stage: Stage, screen: Screen) -> None:
    """The host leaves the session to expire, and the observer gets ENDED. Later the host tears the session down, and
    the observer gets TORN_DOWN."""
    playback = screen.play()
    playback.close(usher.CloseMode.LEAVE)
    stage.settle()
    playback.close(usher.CloseMode.TEARDOWN)
    stage.settle()
    assert screen.names() == ["READY", "ENDED", "TORN_DOWN"]


def test_zap_theObserverHearsOnlyOfTheNewItem(stage: Stage, screen: Screen) -> None:
    """After a zap the teardown of the old item fails; the observer gets no notice about the old item."""
    screen.play("old", teardown_retries=usher.OFF)
    stage.headend.faults.add("teardown", Fault.error(1011))
    screen.play("new", teardown_retries=usher.OFF)
    assert stage.events.types("old")[-3:] == [
        "TEARDOWN_ERROR",
        "SESSION_ENDED",
        "PLAYBACK_CLOSED",
    ]
    assert [(notice.type.name, notice.tag) for notice in screen.notices] == [
        ("READY", "old"),
        ("READY", "new"),
    ]
    stage.headend.kill_account("account-1")  # the head-end still holds the old session


def test_observer_hearsOnlyOfItsPlayer_untilItIsRemoved(stage: Stage, screen: Screen) -> None:
    """Each observer gets the notices of its own player only. It gets no notice after remove(), and none after the host
    has freed the player."""
    other = Screen(stage)
    screen.play("here")
    other.play("there")
    assert [notice.tag for notice in screen.notices] == ["here"]
    assert [notice.tag for notice in other.notices] == ["there"]
    screen.observer.remove()
    screen.player.stop()
    other.player.close()
    stage.settle()
    assert (screen.names(), other.names()) == (["READY"], ["READY"])
    other.observer.remove()  # does nothing


# ---- waiting for a slot ----------------------------------------------------------------------------------------------


def test_serviceCertificate_isNoNotice(stage: Stage) -> None:
    """The Widevine CDM first requests its service certificate; the observer gets no notice. Then the server refuses the
    licence; the observer gets REFUSED, because the item was never ready."""
    screen = Screen(stage)
    playback = screen.play(licence=False, key_system="widevine")
    playback.request_license(usher.KeySystem.WIDEVINE, b"\x08\x04")
    stage.settle()
    assert screen.names() == []
    stage.headend.faults.add("license", Fault.error(4000))
    playback.request_license(usher.KeySystem.WIDEVINE, b"a challenge of the CDM")
    stage.settle()
    assert screen.names() == ["REFUSED"]


def test_observer_addedWhileAnItemPlays_hearsOnlyOfTheNext(stage: Stage, screen: Screen) -> None:
    """The host adds a second observer while an item plays, and then the operator ends the session; only the first
    observer gets LOST. The second observer gets the notices of the next item."""
    screen.play()
    later: list[usher.Notice] = []
    observer = screen.player.add_observer(later.append)
    stage.headend.kill_account("account-1")
    stage.advance(61_000)
    assert screen.names() == ["READY", "LOST"]
    assert later == []
    screen.play("next")
    assert [notice.type.name for notice in later] == ["READY"]
    observer.remove()


def test_slotWait_whenAnotherDeviceStops_isReady(limited: Stage) -> None:
    """The account has no free slot. The observer gets WAITING once, and the library repeats the set-up after 1 s, 2 s,
    4 s and then every 5 s. When the other device has stopped, the item plays."""
    other = limited.play(tag="other device")
    limited.settle()
    screen = Screen(limited)
    playback = screen.play(slot_wait_ms=60_000)
    limited.advance(20_000)
    assert screen.names() == ["WAITING"]
    waiting = screen.notices[0]
    assert waiting.summary == "Too many devices are playing on this account right now."
    assert waiting.error is not None
    assert (type(waiting.error), waiting.error.must_stop) == (usher.LimitError, False)
    assert setups(limited, 1) == [0, 1000, 3000, 7000, 12_000, 17_000]
    assert playback.session_state is usher.SessionState.PENDING
    other.close()
    limited.advance(5000)
    assert screen.names() == ["WAITING", "READY"]
    assert limited.events.types("film") == [
        "WAITING_FOR_SLOT",
        "SESSION_STARTED",
        "LICENSE",
    ]
    screen.player.stop()


def test_slotWait_whenNoSlotBecomesFree_isRefused(limited: Stage) -> None:
    """No slot becomes free. The library sends the last set-up at the end of the wait, and then reports the refusal
    once."""
    limited.play(tag="other device")
    limited.settle()
    screen = Screen(limited)
    screen.play(slot_wait_ms=10_000)
    limited.advance(60_000)
    assert screen.names() == ["WAITING", "REFUSED"]
    assert limited.events.types("film") == [
        "WAITING_FOR_SLOT",
        "SETUP_ERROR",
        "LICENSE_ERROR",
    ]
    assert limited.events.error(E.SETUP_ERROR, "film").must_stop
    assert setups(limited, 1) == [0, 1000, 3000, 7000, 10_000]


def test_slotWait_obeysRetryAfter(stage: Stage, screen: Screen) -> None:
    """The server asks for a pause of 8 s; the library sends the next set-up after 8 s."""
    stage.headend.faults.add("setup", too_many(8))
    screen.play(slot_wait_ms=30_000)
    stage.advance(30_000)
    assert screen.names() == ["WAITING", "READY"]
    assert setups(stage) == [0, 8000]


def test_slotWait_ifRetryAfterIsLonger_isRefusedAtOnce(stage: Stage, screen: Screen) -> None:
    """The server asks for a pause that is longer than the wait; the library reports the refusal at once."""
    stage.headend.faults.add("setup", too_many(31))
    screen.play(slot_wait_ms=30_000)
    assert screen.names() == ["REFUSED"]


@pytest.mark.parametrize("end", ["close", "zap"])
def test_slotWait_endsWithTheItem(limited: Stage, end: str) -> None:
    """The host closes an item that waits for a slot, or plays another item; the library sends no further set-up for the
    first item."""
    limited.play(tag="other device")
    limited.settle()
    screen = Screen(limited)
    playback = screen.play(slot_wait_ms=60_000)
    limited.advance(1000)
    assert len(limited.sent("setup")) == 3
    if end == "close":
        playback.close()
    else:
        limited.play(player=screen.player, tag="news", clear=True)
    limited.advance(60_000)
    assert len(limited.sent("setup")) == 3
    assert limited.events.types("film") == ["WAITING_FOR_SLOT", "PLAYBACK_CLOSED"]
    assert screen.names() == (["WAITING", "ENDED"] if end == "close" else ["WAITING"])


def test_slotWait_longerThanTheTimeLimitOfTheLicence_isReady(limited: Stage) -> None:
    """The library waits for a slot for longer than the time limit of the licence request (20 s); the request does not
    fail."""
    other = limited.play(tag="other device")
    limited.settle()
    screen = Screen(limited)
    screen.play(slot_wait_ms=600_000)
    limited.advance(100_000)
    other.close()
    limited.advance(5000)
    assert screen.names() == ["WAITING", "READY"]
    screen.player.stop()


def test_slotWait_withV2_repeatsTheLicenceRequest(limited: Stage) -> None:
    """With SSP V2 the licence request opens the session; the library repeats this request until a slot is free."""
    other = limited.play(tag="other device")
    limited.settle()
    screen = Screen(limited)
    playback = limited.play(
        player=screen.player,
        tag="film",
        delegate=v2_delegate(limited, slot_wait_ms=60_000),
    )
    playback.request_license(CLEARKEY, PAYLOAD["clearkey"])
    limited.advance(1500)
    assert screen.names() == ["WAITING"]
    other.close()
    limited.advance(10_000)
    assert screen.names() == ["WAITING", "READY"]
    assert len(limited.sent("license")) == 3
    playback.close(usher.CloseMode.TEARDOWN)


def test_slotWait_withV2_thatFails_isFollowedByAWholeWait(stage: Stage, screen: Screen) -> None:
    """The repeated licence request fails for another reason, which ends the wait. A minute later the server refuses the
    next request because no slot is free; the library reports a new wait, and waits for the whole time again."""
    delegate = v2_delegate(stage, slot_wait_ms=60_000)
    playback = stage.play(player=screen.player, tag="film", delegate=delegate)
    for last in (Fault.error(4000), None):
        stage.headend.faults.add("license", Fault.error(1007, status=400))
        if last is not None:
            stage.headend.faults.add("license", last)
        answer = playback.request_license(CLEARKEY, PAYLOAD["clearkey"])
        stage.advance(10_000)
        assert answer.done()
        stage.advance(61_000 if last is not None else 0)
    assert stage.events.types("film").count("WAITING_FOR_SLOT") == 2
    assert screen.names()[-1] == "READY"
    playback.close(usher.CloseMode.TEARDOWN)
    stage.settle()


def test_slotWait_withV2_whenTheServerThenHangs_endsAtTheTimeLimit(stage: Stage, screen: Screen) -> None:
    """While the library waits for a slot, the server stops replying. The licence request times out: the library does
    not start the time limit of the request (3 s) again after the wait for a slot (5 s)."""
    stage.headend.faults.add("license", Fault.error(1007, status=400))
    delegate = v2_delegate(stage, slot_wait_ms=5000)
    playback = stage.play(player=screen.player, tag="film", delegate=delegate)
    answer = playback.request_license(CLEARKEY, PAYLOAD["clearkey"], timeout_ms=3000)
    stage.settle()
    stage.headend.faults.add("license", Fault.stall())
    stage.advance(10_000)
    assert answer.done()
    assert isinstance(answer.exception(), usher.UsherTimeoutError)
    assert screen.names() == ["WAITING", "REFUSED"]
    stage.headend.release()
    stage.settle()
    playback.close(usher.CloseMode.TEARDOWN)
    stage.settle()


# ---- asyncio ---------------------------------------------------------------------------------------------------------


@story
async def test_aioObserver_getsObjectsOfUsherAio(stage: AioStage) -> None:
    """The observer of an aio player gets the objects of usher.aio as playback and player, and the tag that the host
    gave to play()."""
    notices: list[usher.aio.Notice] = []
    player = usher.aio.Player(stage.context)
    player.add_observer(notices.append)
    stage.headend.faults.add("setup", Fault.error(1003))
    playback = await stage.play(player, tag="film")
    await stage.settle()
    assert [(notice.type, notice.playback, notice.player, notice.tag) for notice in notices] == [
        (N.REFUSED, playback, player, "film")
    ]
