"""The host suspends a playback, the machine sleeps, or the network fails and comes back while an item plays."""

from __future__ import annotations

import pytest

import usher
from stage import CHALLENGE, Stage, StageFactory
from usher.testing.headend import Fault

E = usher.EventType
S = usher.SessionState
CLEARKEY = usher.KeySystem.CLEARKEY
PAUSE = usher.Suspend.PAUSE


def paused(stage: Stage) -> usher.Playback:
    """Starts a playback whose heartbeats pause while the playback is suspended. Returns the playback."""
    playback = stage.play(delegate=stage.delegate(suspend=PAUSE))
    stage.settle()
    return playback


# ---- background ------------------------------------------------------------------------------------------------------


def test_background_normal_beatsGoOn(stage: Stage) -> None:
    """In normal background mode and picture-in-picture, heartbeats continue as in the foreground
    (SSM v1 page; protocol.md: When it fails)."""
    playback = stage.play()
    stage.settle()
    playback.suspend()
    stage.advance(180_000)
    playback.resume()
    stage.advance(60_000)
    assert stage.routes() == ["setup"] + ["heartbeat"] * 4
    assert playback.session_state is S.ACTIVE


def test_background_withoutAnErrorNotification_resumesUnderTheSameSession(stage: Stage) -> None:
    """If the library reported no error in the background, the playback continues in the foreground with the same
    session (SSM v1 page)."""
    playback = stage.play()
    stage.settle()
    stage.clear_keys(playback)
    stage.context.suspend()
    stage.advance(90_000)
    stage.context.resume()
    stage.clear_keys(playback)
    assert stage.routes() == ["setup", "license", "heartbeat", "license"]
    assert {entry.session for entry in stage.headend.journal} == {stage.headend.sessions.only().id}


def test_background_withAHeartbeatError_zapsToTheSameStream(stage: Stage) -> None:
    """After a heartbeat error the host stops and zaps to the same stream, which plays in a new session
    (SSM v1 page; protocol.md: When it fails)."""
    token = stage.headend.content_token("alice")
    playback = stage.play(token)
    stage.settle()
    stage.context.suspend()
    stage.headend.kill_account("alice")
    stage.advance(60_000)
    stage.context.resume()
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.must_stop, error.service_code) == (True, 1006)
    assert playback.session_state is S.FAILED
    again = stage.play(token)
    stage.settle()
    assert stage.clear_keys(again)
    assert again.session_state is S.ACTIVE
    assert stage.routes() == ["setup", "heartbeat", "setup", "license"]


def test_licenceInTheBackground_isAnswered(stage: Stage) -> None:
    """Only keep-alives wait while a playback is suspended: a licence request is sent at once
    (protocol.md: When it fails)."""
    playback = paused(stage)
    playback.suspend()
    assert stage.clear_keys(playback)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "license", "teardown"]


# ---- suspended -------------------------------------------------------------------------------------------------------


def test_paused_beforeTheBeatIsDue_goesOnAsPlanned(stage: Stage) -> None:
    """A pause that ends before the heartbeat is due changes nothing (protocol.md: When it fails)."""
    playback = paused(stage)
    stage.advance(20_000)
    playback.suspend()
    stage.advance(30_000)
    playback.resume()
    assert stage.routes() == ["setup"]
    stage.advance(10_000)
    assert stage.routes() == ["setup", "heartbeat"]
    assert "SESSION_DOUBTFUL" not in stage.events.types()


@pytest.mark.breaks_rules("late-beat")
def test_paused_pastTheBeat_sendsOneAtOnce(stage: Stage) -> None:
    """If a heartbeat became due during the pause, the library sends it on resume; the session is doubtful until the
    reply arrives (protocol.md: When it fails; protocol.md: Races)."""
    playback = paused(stage)
    playback.suspend()
    stage.advance(100_000)
    assert stage.routes() == ["setup"], "paused"
    stage.headend.faults.add("heartbeat", Fault.stall("after"))
    playback.resume()
    stage.settle()
    assert stage.routes() == ["setup", "heartbeat"]
    assert playback.session_state is S.DOUBTFUL
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_DOUBTFUL"]
    stage.headend.release()
    stage.settle()
    assert playback.session_state is S.ACTIVE
    assert stage.events.only(E.KEPT_ALIVE).lateness_ms == 40_000
    stage.advance(20_000)
    assert stage.routes() == ["setup", "heartbeat", "heartbeat"], "the next one is due 120 s after set-up"


@pytest.mark.breaks_rules("late-beat")
def test_paused_manyPeriods_sendsOneBeatNotMany(stage_factory: StageFactory) -> None:
    """If several heartbeats became due during the pause, the library sends only one heartbeat on resume
    (protocol.md: Races)."""
    stage = stage_factory(headend={"grace": 100.0})
    playback = paused(stage)
    stage.context.suspend()
    stage.advance(1_000_000)
    stage.context.resume()
    stage.settle()
    assert stage.routes() == ["setup", "heartbeat"]
    assert playback.session_state is S.ACTIVE
    stage.advance(60_000)
    assert stage.routes() == ["setup", "heartbeat", "heartbeat"]


@pytest.mark.breaks_rules("late-beat")
def test_paused_untilTheSessionExpired_isAHeartbeatError(stage: Stage) -> None:
    """If the heartbeat after resume fails, the library reports a heartbeat error, and playback must stop
    (protocol.md: When it fails; protocol.md: Races)."""
    playback = paused(stage)
    stage.context.suspend()
    stage.advance(3_600_000)
    assert not stage.headend.sessions.active(), "the session has expired at the head-end"
    stage.context.resume()
    stage.settle()
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.service_code, error.http_status, error.must_stop) == (1006, 400, True)
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_DOUBTFUL", "HEARTBEAT_ERROR"]
    assert playback.session_state is S.FAILED
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "heartbeat"], "no teardown for a session that the server does not know"


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("suspend", [usher.Suspend.KEEP, usher.Suspend.PAUSE])
def test_machineThatSlept_beatsAtOnceWhenItWakes(stage: Stage, suspend: usher.Suspend) -> None:
    """When the machine wakes from sleep and its clock has jumped, the library sends a heartbeat at once and reports the
    session as doubtful (protocol.md: Races)."""
    playback = stage.play(delegate=stage.delegate(suspend=suspend))
    stage.settle()
    stage.context.suspend()
    stage.sleep(100_000)
    if suspend is PAUSE:
        assert stage.routes() == ["setup"]
    stage.context.resume()
    stage.settle()
    assert stage.routes() == ["setup", "heartbeat"]
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_DOUBTFUL", "KEPT_ALIVE"]
    assert playback.session_state is S.ACTIVE


@pytest.mark.breaks_rules("late-beat")
def test_machineThatSlept_withoutAWord_isNoticedAllTheSame(stage: Stage) -> None:
    """If the host does not report that the machine slept, the library itself notices this, because one of its timers is
    overdue (protocol.md: Races)."""
    stage.play()
    stage.settle()
    stage.sleep(100_000)
    assert stage.routes() == ["setup", "heartbeat"]
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_DOUBTFUL", "KEPT_ALIVE"]


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("away_s", [5, 440, 620])
def test_machineThatSleptAnHour_withoutANetworkAtFirst(stage: Stage, away_s: int) -> None:
    """The machine sleeps for an hour, and has no network yet when it wakes. The host gets one error at once, and
    the library goes on trying for seven to nine minutes. If the network comes back within this time, the server says
    that the session has ended (network.md: Sleep)."""
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.reset(), times=1000)
    stage.sleep(3_600_000)
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_DOUBTFUL", "HEARTBEAT_ERROR"]
    first = stage.events.error(E.HEARTBEAT_ERROR)
    assert (first.status, first.must_stop) == (usher.Status.TRANSPORT, True)
    stage.advance(away_s * 1000)
    assert playback.session_state is (S.DOUBTFUL if away_s < 600 else S.FAILED)
    stage.headend.faults.clear()
    stage.context.network_changed()
    stage.settle()
    codes = [event.error and event.error.service_code for event in stage.events.all(E.HEARTBEAT_ERROR)]
    assert codes == ([0, 1006] if away_s < 600 else [0])


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("asked", ["licence", "certificate"])
def test_machineThatSlept_duringARequest_stillTakesItsReply(stage: Stage, asked: str) -> None:
    """The machine sleeps while the host waits for a licence or a certificate, and the host's time limit passes. The
    host gets the reply if it arrives within a second after the machine wakes
    (threading.md: A stopped process, or sleep)."""
    playback = stage.play(delegate=stage.delegate(certificate_url=stage.headend.certificate_url("fairplay")))
    stage.settle()
    stage.headend.faults.add("license" if asked == "licence" else "certificate", Fault.stall("after"))
    get = {
        "licence": lambda: playback.get_license(CLEARKEY, CHALLENGE, timeout_ms=5000).data,
        "certificate": lambda: playback.get_certificate(timeout_ms=5000),
    }[asked]
    reply = stage.call(get)
    stage.headend.wait_held(1)
    stage.sleep(600_000)
    stage.advance(900)
    assert not reply.done()
    stage.headend.release()
    stage.settle()
    assert reply.result(10)


@pytest.mark.breaks_rules("late-beat")
def test_machineThatSlept_duringARequest_reportsTheMissingReplyASecondLater(stage: Stage) -> None:
    """The machine sleeps while the host waits for a licence, and no reply arrives after the machine wakes. A second
    later the host gets the error of the request (threading.md: A stopped process, or sleep)."""
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("license", Fault.stall("after"))
    reply = playback.request_license(CLEARKEY, CHALLENGE)
    stage.headend.wait_held(1)
    stage.sleep(600_000)
    assert not reply.done()
    stage.advance(1000)
    error = reply.exception(10)
    assert isinstance(error, usher.UsherTimeoutError) and error.must_stop
    assert error.origin is usher.Origin.LICENSE


@pytest.mark.breaks_rules("late-beat")
def test_suspendedOne_leavesTheOthersAlone(stage: Stage) -> None:
    """The host suspends only the playback of the preview: the preview pauses, and the main stream continues
    (delegates.md: Token map)."""
    delegate = stage.delegate(suspend=PAUSE)
    first = stage.play(delegate=delegate)
    stage.play(delegate=delegate, player=usher.Player(stage.context))
    stage.settle()
    one, two = (entry.session for entry in stage.sent("setup"))
    first.suspend()
    stage.advance(100_000)
    assert [entry.session for entry in stage.sent("heartbeat")] == [two]
    first.resume()
    stage.settle()
    assert [entry.session for entry in stage.sent("heartbeat")] == [two, one]


def test_suspended_twice_andResumedTwice_isTheSame(stage: Stage) -> None:
    """The host calls suspend() or resume() twice; the second call changes nothing."""
    playback = paused(stage)
    for _ in range(2):
        stage.context.suspend()
    playback.resume()
    stage.context.resume()
    stage.advance(60_000)
    assert stage.routes() == ["setup", "heartbeat"]


def test_suspended_duringSetup_isSetUpAllTheSame(stage: Stage) -> None:
    """Set-up is not a keep-alive: it continues while the playback is suspended. The first period starts with the reply
    to set-up (protocol.md: When it fails)."""
    stage.headend.faults.add("setup", Fault.stall("after"))
    playback = stage.play(delegate=stage.delegate(suspend=PAUSE))
    stage.settle()
    playback.suspend()
    stage.headend.release()
    stage.settle()
    assert playback.session_state is S.ACTIVE
    playback.resume()
    stage.advance(60_000)
    assert stage.routes() == ["setup", "heartbeat"]


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("waits_for", ["its reply", "the teardown of the item before"])
def test_suspended_duringSetup_sendsNoBeatUntilItResumes(stage: Stage, waits_for: str) -> None:
    """The host suspends a playback whose set-up waits. The set-up continues, but no heartbeat follows until the host
    resumes; then the overdue heartbeat follows at once (protocol.md: When it fails)."""
    delegate = stage.delegate(suspend=PAUSE)
    before = ["setup"] if waits_for == "its reply" else ["setup", "teardown", "setup"]
    if waits_for == "its reply":
        stage.headend.faults.add("setup", Fault.stall("after"))
    else:
        stage.play(delegate=delegate)
        stage.settle()
        stage.headend.faults.add("teardown", Fault.stall("after"))
    playback = stage.play(delegate=delegate)
    stage.settle()
    stage.context.suspend()
    stage.headend.release()
    stage.settle()
    assert playback.session_state is S.ACTIVE
    stage.advance(100_000)
    assert stage.routes() == before
    playback.resume()
    stage.settle()
    assert stage.routes() == [*before, "heartbeat"]


def test_closed_whileSuspended_isTornDown(stage: Stage) -> None:
    """Closing a suspended playback tears its session down (protocol.md: When it fails)."""
    playback = paused(stage)
    playback.suspend()
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


@pytest.mark.breaks_rules("late-beat")
def test_enforcedSession_paused_asksForItsRenewalOnResume(stage_factory: StageFactory) -> None:
    """In enforced mode the keep-alive that is due on resume is a renewal
    (protocol.md: Heartbeats or renewals; protocol.md: When it fails)."""
    stage = stage_factory(headend={"enforced": {"clearkey"}, "grace": 10.0})
    playback = stage.play(delegate=stage.delegate(suspend=PAUSE), payload=lambda request: CHALLENGE)
    stage.settle()
    stage.clear_keys(playback)
    playback.suspend()
    stage.advance(100_000)
    assert stage.routes() == ["setup", "license"]
    playback.resume()
    stage.settle()
    assert stage.routes() == ["setup", "license", "license-renewal"]


def test_stale_playbackAndContext_areRefused(stage: Stage) -> None:
    """Every call with a stale handle raises InvalidHandleError."""
    playback = stage.play()
    stage.settle()
    playback.close()
    playback.free()
    stage.settle()
    for call in (playback.suspend, playback.resume):
        with pytest.raises(usher.InvalidHandleError):
            call()
    stage.close()
    for call in (stage.context.suspend, stage.context.resume, stage.context.network_changed):
        with pytest.raises(usher.InvalidHandleError):
            call()


# ---- the network -----------------------------------------------------------------------------------------------------


@pytest.mark.breaks_rules("late-beat")
def test_network_lostAndBack_triesTheFailedBeatAtOnce(stage: Stage) -> None:
    """A heartbeat has failed. As soon as the network is back, the library sends the heartbeat again. It does not wait
    for the time of the next retry (protocol.md: Races)."""
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.reset(), times=3)
    stage.advance(64_500)
    assert stage.routes().count("heartbeat") == 3
    stage.context.network_changed()
    stage.settle()
    assert stage.routes().count("heartbeat") == 4
    assert "HEARTBEAT_ERROR" not in stage.events.types()
    assert playback.session_state is S.ACTIVE


@pytest.mark.breaks_rules("late-beat")
def test_network_backAfterTheError_recovers(stage_factory: StageFactory) -> None:
    """Each outage causes one error. When the network is back, the library sends a heartbeat at once and reports its
    success as recovery (protocol.md: Races)."""
    stage = stage_factory(headend={"grace": 10.0})
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.drop(), always=True)
    stage.advance(125_000)
    assert stage.events.error(E.HEARTBEAT_ERROR).status is usher.Status.TRANSPORT
    stage.headend.faults.clear()
    stage.context.network_changed()
    stage.settle()
    assert stage.events.types()[-2:] == ["KEPT_ALIVE", "RECOVERED"]
    assert playback.session_state is S.ACTIVE


def test_network_changedWhileAllIsWell_sendsNothing(stage: Stage) -> None:
    """A change of the network is no reason for an early heartbeat: the library sends the next heartbeat when it is due,
    over a new connection (protocol.md: When it fails)."""
    stage.play()
    stage.settle()
    stage.advance(30_000)
    stage.context.network_changed()
    stage.settle()
    assert stage.routes() == ["setup"]
    stage.advance(30_000)
    assert stage.routes() == ["setup", "heartbeat"]
