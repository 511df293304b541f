"""Tests players and zaps: the order of teardown and set-up, the retry after a refusal, and a new start after an
error."""

from __future__ import annotations

import pytest

import usher
from stage import CHALLENGE, KEY, KID, Stage, StageFactory
from usher.testing.headend import Fault

E = usher.EventType
S = usher.SessionState


def screen(stage: Stage) -> usher.Player:
    return usher.Player(stage.context)


# ---- order -----------------------------------------------------------------------------------------------------------


def test_zap_toAnotherStream_isTeardownThenSetup(stage: Stage) -> None:
    """A zap tears down the old session, then sets up the new one, then requests the licence (protocol.md: Races)."""
    first = stage.play(stage.headend.content_token("one"), tag="first")
    stage.settle()
    stage.clear_keys(first)
    second = stage.play(stage.headend.content_token("two"), tag="second")
    assert stage.clear_keys(second) == {KID: KEY}
    assert [(entry.route, entry.account) for entry in stage.headend.journal] == [
        ("setup", "one"),
        ("license", "one"),
        ("teardown", "one"),
        ("setup", "two"),
        ("license", "two"),
    ]
    stage.settle()
    assert stage.events.types("first") == ["SESSION_STARTED", "LICENSE", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert stage.events.types("second") == ["SESSION_STARTED", "LICENSE"]
    assert (first.session_state, second.session_state) == (S.ENDED, S.ACTIVE)


def test_zap_atTheLimitOfOne_works(stage_factory: StageFactory) -> None:
    """At every zap the library tears the old session down before it sets up the new one, so that a limit of one session
    is enough (protocol.md: Races)."""
    stage = stage_factory(headend={"limit": 1})
    for _ in range(10):
        stage.play()
        stage.settle()
    assert stage.routes() == ["setup"] + ["teardown", "setup"] * 9
    assert "SETUP_ERROR" not in stage.events.types()


@pytest.mark.leaves_session
def test_zap_whoseTeardownFails_isNotHeldUp(stage: Stage) -> None:
    """The library reports a failed teardown, but this failure does not delay the next set-up (protocol.md: Races)."""
    stage.headend.faults.add("teardown", Fault.error(4000, status=500), always=True)
    delegate = stage.delegate(teardown_retries=usher.OFF)
    stage.play(delegate=delegate, tag="first")
    stage.settle()
    second = stage.play(delegate=delegate, tag="second")
    stage.settle()
    assert stage.events.error(E.TEARDOWN_ERROR, "first").service_code == 4000
    assert second.session_state is S.ACTIVE
    stage.headend.faults.clear()


def test_zap_whoseSetupFails_leavesAPlaybackWithoutLicences(stage: Stage) -> None:
    """After a failed set-up the playback stays open without a session, and its licence requests fail with the error of
    the set-up (protocol.md: Races)."""
    stage.play()
    stage.settle()
    stage.headend.faults.add("setup", Fault.error(1011))
    second = stage.play(tag="second")
    stage.settle()
    with pytest.raises(usher.RefusedError) as caught:
        stage.clear_keys(second)
    assert caught.value.service_code == 1011
    assert second.session_state is S.FAILED
    assert stage.routes() == ["setup", "teardown", "setup"]


def test_zap_quicklyThroughManyStreams_setsUpTheLastOnly(stage: Stage) -> None:
    """While a set-up is in flight, only the newest item waits for the player; it replaces an item that waited before
    (protocol.md: Races)."""
    stage.headend.faults.add("setup", Fault.stall("after"))
    first = stage.play(stage.headend.content_token("first"), tag=0)
    stage.settle()
    between = [stage.play(stage.headend.content_token(f"between-{number}"), tag=number) for number in range(1, 6)]
    last = stage.play(stage.headend.content_token("last"), tag=6)
    stage.headend.release()
    stage.settle()
    assert [(entry.route, entry.account) for entry in stage.headend.journal] == [
        ("setup", "first"),
        ("teardown", "first"),
        ("setup", "last"),
    ]
    for playback in between:
        assert type(stage.events.error(E.PLAYBACK_CLOSED, playback.tag)) is usher.ReplacedError
    assert (first.session_state, last.session_state) == (S.ENDED, S.ACTIVE)


def test_zap_toAClearStream_tearsDownAndAsksForNothing(stage: Stage) -> None:
    """On a zap to a stream without DRM, the library tears the old session down and sets up no new one
    (multi-instance page; protocol.md: Races)."""
    stage.play()
    stage.settle()
    clear = stage.player.play(delegate=stage.delegate(), clear=True)
    stage.advance(600_000)
    assert stage.routes() == ["setup", "teardown"]
    assert clear.session_state is S.NONE
    encrypted = stage.play()
    stage.settle()
    assert stage.clear_keys(encrypted) == {KID: KEY}
    assert stage.routes() == ["setup", "teardown", "setup", "license"]


def test_zap_toADelegateWithoutSsm_tearsDown(stage: Stage) -> None:
    """On a zap to an item with another delegate, the library tears the old session down with the delegate of the old
    item (protocol.md: Races)."""
    stage.play()
    stage.settle()
    stage.play(delegate=stage.delegate(ssm_url=None))
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


@pytest.mark.leaves_session
def test_zap_betweenHeadEnds_tearsDownWhereItWasSetUp(stage_factory: StageFactory) -> None:
    """The library tears each session down at the head-end that opened it; a refusal by one head-end does not affect the
    other session."""
    stage, other = stage_factory(), stage_factory()
    stage.play()
    stage.settle()
    delegate = usher.SSPDelegate(
        stage.context, license_url=other.headend.license_url("clearkey"), ssm_url=other.headend.ssm_url
    )
    stage.player.play(other.headend.content_token(), delegate=delegate)
    stage.settle()
    assert (stage.routes(), other.routes()) == (["setup", "teardown"], ["setup"])
    stage.play()
    stage.settle()
    assert (stage.routes(), other.routes()) == (["setup", "teardown", "setup"], ["setup", "teardown"])
    for one in (stage, other):
        held = one.play(player=screen(one))
        one.settle()
        held.close(usher.CloseMode.LEAVE)
        one.settle()


def test_licenceOfTheOldItem_isCancelledByTheZap(stage: Stage) -> None:
    """A zap cancels the licence requests of the old item that are in flight (protocol.md: Races)."""
    stage.headend.faults.add("license", Fault.stall())
    first = stage.play()
    stage.settle()
    future = first.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]))
    stage.settle()
    second = stage.play()
    assert isinstance(future.exception(10), usher.ClosedError)
    stage.headend.release()
    stage.settle()
    assert stage.clear_keys(second) == {KID: KEY}
    assert stage.routes() == ["setup", "license", "teardown", "setup", "license"]


def test_licencesOfTheNewItem_waitForItsTurnAndSession(stage: Stage) -> None:
    """Licence requests that are made before the session token exists wait for it (protocol.md: Races)."""
    stage.play()
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    second = stage.play()
    future = second.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]))
    stage.advance(1_000)
    assert stage.routes() == ["setup", "teardown"]
    stage.headend.release()
    assert future.result(10).clear_keys() == {KID: KEY}
    assert stage.routes() == ["setup", "teardown", "setup", "license"]


# ---- sync ------------------------------------------------------------------------------------------------------------


def test_zap_withSync_waitsForTeardownAndSetup(stage: Stage) -> None:
    """With syncSSMSetupTeardown, play() returns after teardown and set-up
    (SSM v1 page; protocol.md: When it fails; protocol.md: Races)."""
    delegate = stage.delegate(sync_setup_teardown=True)
    for _ in range(2):
        playback = stage.player.play(stage.headend.content_token(), delegate=delegate)
        assert playback.session_state is S.ACTIVE
    assert stage.routes() == ["setup", "teardown", "setup"]
    playback.close()
    assert stage.routes() == ["setup", "teardown", "setup", "teardown"]


def test_zap_withSyncAndAStalledTeardown_returnsAtItsCaps(stage: Stage) -> None:
    """The library waits at most 3 s for the teardown before set-up; play() itself returns after at most 5 s
    (protocol.md: When it fails)."""
    delegate = stage.delegate(sync_setup_teardown=True)
    stage.player.play(stage.headend.content_token(), delegate=delegate)
    stage.headend.faults.add("teardown", Fault.stall())
    playing = stage.call(stage.player.play, stage.headend.content_token(), delegate=delegate)
    stage.wait_timer(3_000)  # the teardown request is in flight
    stage.advance(2_999)
    assert stage.still_waiting(playing)
    stage.advance(1)
    assert playing.result(10).session_state is S.ACTIVE
    assert stage.routes()[:3] == ["setup", "teardown", "setup"]
    stage.headend.release()
    stage.settle()


# ---- set-up refused because of the limit -----------------------------------------------------------------------------


def test_zap_refusedForTheLimitAfterItsTeardown_isNotTriedAgain(stage_factory: StageFactory) -> None:
    """At a zap the head-end replies to the teardown of the old session, and then refuses set-up with 1007. So another
    device uses the slot: the library reports a limit error and does not retry (protocol.md: When it fails;
    protocol.md: Races)."""
    stage = stage_factory(headend={"limit": 1})
    stage.play(tag="first")
    stage.settle()
    stage.headend.faults.add("setup", Fault.error(1007))
    stage.play(tag="second")
    stage.settle()
    assert stage.events.error(E.SETUP_ERROR, "second").status is usher.Status.LIMIT
    assert stage.routes() == ["setup", "teardown", "setup"]


def test_setup_refusedForTheLimitWhileAnotherScreenStops_isTriedOnceMore(stage_factory: StageFactory) -> None:
    """If the head-end refuses set-up with 1007 while a teardown of the same context is in flight, the library retries
    set-up once after the teardown (protocol.md: Races)."""
    stage = stage_factory(headend={"limit": 1})
    first = stage.play(tag="first")
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    first.close()
    second = stage.play(player=screen(stage), tag="second")
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup"]
    assert second.session_state is S.PENDING
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup", "setup"]
    assert second.session_state is S.ACTIVE


def test_setup_refusedTwice_isALimitError(stage_factory: StageFactory) -> None:
    """The library retries set-up only once: it reports a second refusal as a limit error (protocol.md: Races)."""
    stage = stage_factory(headend={"limit": 1})
    first = stage.play(tag="first")
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    first.close()
    stage.headend.faults.add("setup", Fault.error(1007), always=True)
    stage.play(player=screen(stage), tag="second")
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert stage.events.error(E.SETUP_ERROR, "second").status is usher.Status.LIMIT
    assert stage.routes() == ["setup", "teardown", "setup", "setup"]


def test_setup_refusedWhileATeardownHangs_isTriedAgainAtTheCap(stage_factory: StageFactory) -> None:
    """A refused set-up waits at most 3 s for the library's own teardown; then the library retries the set-up
    (protocol.md: Races)."""
    stage = stage_factory(headend={"limit": 1})
    first = stage.play()
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    first.close()
    stage.play(player=screen(stage), tag="second")
    stage.advance(2_999)
    assert stage.routes() == ["setup", "teardown", "setup"]
    stage.advance(1)
    assert stage.routes()[:4] == ["setup", "teardown", "setup", "setup"]
    assert stage.events.error(E.SETUP_ERROR, "second").status is usher.Status.LIMIT
    stage.headend.release()
    stage.settle()


def test_twoSetups_refusedWhileOneStops_areEachTriedOnce(stage_factory: StageFactory) -> None:
    """A teardown frees one slot, and two set-ups wait for this slot. One set-up gets the slot; the other is refused
    again, and the library does not retry it (protocol.md: Races)."""
    stage = stage_factory(headend={"limit": 1})
    first = stage.play()
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    first.close()
    waiting = [stage.play(player=screen(stage), tag=name) for name in ("second", "third")]
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert sorted(playback.session_state.name for playback in waiting) == ["ACTIVE", "FAILED"]
    assert stage.routes() == ["setup", "teardown"] + ["setup"] * 4


# ---- after an error --------------------------------------------------------------------------------------------------


def test_zapToTheSameStream_afterAHeartbeatError_playsUnderANewSession(stage: Stage) -> None:
    """After a heartbeat error the host stops and zaps to the same stream, which plays in a new session
    (SSM v1 page; protocol.md: When it fails)."""
    token = stage.headend.content_token("alice")
    first = stage.play(token)
    stage.settle()
    stage.clear_keys(first)
    stage.headend.kill_account("alice")
    stage.advance(60_000)
    assert stage.events.error(E.HEARTBEAT_ERROR).must_stop
    with pytest.raises(usher.SessionError):
        stage.clear_keys(first)
    second = stage.play(token)
    stage.settle()
    assert stage.clear_keys(second) == {KID: KEY}
    assert stage.routes() == ["setup", "license", "heartbeat", "setup", "license"], (
        "no teardown for a session that the server does not know"
    )
    sessions = [entry.session for entry in stage.sent("license")]
    assert len(set(sessions)) == 2


def test_zapToTheSameStream_afterASetupError_setsUpAgain(stage: Stage) -> None:
    """After a set-up error the host plays the same stream again; the library sends a new set-up
    (protocol.md: Races)."""
    stage.headend.faults.add("setup", Fault.status(503))
    token = stage.headend.content_token()
    stage.play(token, tag="first")
    stage.settle()
    assert stage.events.error(E.SETUP_ERROR, "first").http_status == 503
    second = stage.play(token, tag="second")
    stage.settle()
    assert second.session_state is S.ACTIVE
    assert stage.routes() == ["setup", "setup"]


def test_zapToTheSameStream_afterARefusedBeat_givesTheOldSlotBackFirst(stage_factory: StageFactory) -> None:
    """If the server has refused a heartbeat for any other reason than an unknown session, the library tears the old
    session down before it sets up a new one (protocol.md: Races)."""
    stage = stage_factory(headend={"limit": 1})
    token = stage.headend.content_token()
    stage.play(token)
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.error(1011))
    stage.advance(60_000)
    stage.play(token)
    stage.settle()
    assert stage.routes() == ["setup", "heartbeat", "teardown", "setup"]


# ---- players ---------------------------------------------------------------------------------------------------------


def test_player_stoppedWhileTheNextItemWaits_playsNeither(stage: Stage) -> None:
    """When the host stops the player (in the SDKs: sets a null source), the library tears down the session of the
    current item, and closes the item that waits for the player (protocol.md: Races)."""
    stage.play(tag="first")
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    stage.play(tag="second")
    stage.settle()
    stage.player.stop()
    stage.settle()  # the I/O thread has handled the stop before the reply to the teardown arrives
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]
    assert {event.tag for event in stage.events.all(E.PLAYBACK_CLOSED)} == {"first", "second"}


def test_player_freed_tearsDown(stage: Stage) -> None:
    """When the host frees the player (in the SDKs: the view), the library tears down the session of the item that plays
    (protocol.md: Races; SSM v1 page)."""
    player = screen(stage)
    stage.play(player=player)
    stage.settle()
    player.close()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


def test_playbackOfAnotherPlayer_isNotDisturbedByAZap(stage: Stage) -> None:
    """Players are independent: a zap on one player does not disturb the playback of another player (multi-instance
    page)."""
    main = stage.play(stage.headend.content_token("main"), player=screen(stage))
    preview = screen(stage)
    for number in range(3):
        stage.play(stage.headend.content_token(f"preview-{number}"), player=preview)
        stage.settle()
    assert stage.clear_keys(main) == {KID: KEY}
    assert len([entry for entry in stage.headend.journal if entry.account == "main"]) == 2


def test_zap_whileASessionIsReplaced_startsTheNextItem(stage: Stage) -> None:
    first = stage.play(token_callback=lambda request: stage.headend.content_token(), tag="first")
    stage.settle()
    stage.clear_keys(first)
    stage.headend.faults.add("teardown", Fault.stall("after"))
    first.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    stage.headend.wait_held()
    stage.advance(3_500)
    stage.play(tag="second")
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert "SESSION_STARTED" in stage.events.types("second")
