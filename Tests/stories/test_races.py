"""Tests the table of races (docs/protocol.md: Races): one story for each row that is possible with SSM v1."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

import usher
from stage import Stage, StageFactory
from usher.testing.headend import Fault

E = usher.EventType


# ---- close -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_close_whileSetupInFlight_waitsForTheTokenAndTearsDownWithIt(stage: Stage, when: str) -> None:
    stage.headend.faults.add("setup", Fault.stall(when))  # type: ignore[arg-type]
    playback = stage.play()
    stage.headend.wait_held()
    playback.close()
    stage.advance(2_000)
    assert stage.routes() == ["setup"]
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("setup", None), ("teardown", 1)]
    assert stage.events.only(E.PLAYBACK_CLOSED).error is None


def test_close_whileSetupNeverAnswers_endsAtTheCapWithOrphanPossible(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.stall("after"))
    playback = stage.play()
    stage.headend.wait_held()
    playback.close()
    stage.advance(3_000)
    assert stage.events.all(E.PLAYBACK_CLOSED)
    assert stage.events.only(E.PLAYBACK_CLOSED).orphan_possible
    assert stage.routes() == ["setup"]
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"], "a session token that comes after the time-out is still torn down"


def test_close_whileHeartbeatInFlight_waitsAndTearsDownWithTheNewestToken(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.stall("after"))
    playback = stage.play()
    stage.advance(60_000)
    playback.close()
    stage.advance(1_000)
    assert stage.routes() == ["setup", "heartbeat"]
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("setup", None), ("heartbeat", 1), ("teardown", 2)]


def test_close_whileHeartbeatNeverAnswers_tearsDownAtTheCapWithTheLastKnownToken(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.stall("before"))
    playback = stage.play()
    stage.advance(60_000)
    playback.close()
    stage.advance(2_999)
    assert stage.headend.journal.count("teardown") == 0
    stage.advance(1)
    assert stage.headend.journal.last("teardown").session_token.seq == 1
    assert stage.events.all(E.PLAYBACK_CLOSED)


def test_close_whileRenewalInFlight_tearsDownWithTheNewestToken(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"clearkey"}})
    stage.headend.faults.add("license-renewal", Fault.stall("after"))
    playback = stage.play(
        payload=lambda request: usher.clear_key_request([bytes.fromhex("00112233445566778899aabbccddeeff")])
    )
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(60_000)
    assert stage.headend.held == 1
    playback.close()
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("setup", None), ("license", 1), ("license-renewal", 2), ("teardown", 3)]


def test_close_whileLicenseInFlight_completesItWithClosed(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.stall())
    playback = stage.play()
    stage.settle()
    future = playback.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([bytes(16)]))
    stage.headend.wait_held()
    playback.close()
    with pytest.raises(usher.ClosedError):
        future.result(5)
    stage.advance(3_000)
    stage.headend.release()
    stage.settle()
    assert stage.routes()[-1] == "teardown"


def test_close_whileEnforcedLicenseInFlight_usesTheTokenOfTheLateReply(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"clearkey"}})
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = stage.play()
    stage.settle()
    future = playback.request_license(
        usher.KeySystem.CLEARKEY, usher.clear_key_request([bytes.fromhex("00112233445566778899aabbccddeeff")])
    )
    stage.headend.wait_held()
    playback.close()
    with pytest.raises(usher.ClosedError):
        future.result(5)
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("setup", None), ("license", 1), ("teardown", 2)]


def test_close_whileTeardownInFlight_orClosed_isNothing(stage: Stage) -> None:
    stage.headend.faults.add("teardown", Fault.stall())
    playback = stage.play()
    stage.settle()
    playback.close()
    stage.headend.wait_held()
    playback.close()
    stage.headend.release()
    stage.settle()
    playback.close()
    playback.close(usher.CloseMode.LEAVE)
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]
    stage.events.only(E.PLAYBACK_CLOSED)


# ---- zap -------------------------------------------------------------------------------------------------------------


def test_zap_whileSetupInFlight_newestWinsAndThoseBetweenAreReplaced(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.stall("after"))
    stage.play(tag="first")
    stage.headend.wait_held()
    between = stage.play(tag="between")
    waiting = between.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([bytes(16)]))
    stage.play(tag="newest")
    with pytest.raises(usher.ReplacedError):
        waiting.result(5)
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("setup", None), ("teardown", 1), ("setup", None)]
    assert isinstance(stage.events.error(E.PLAYBACK_CLOSED, "between"), usher.ReplacedError)
    assert stage.events.types("newest") == ["SESSION_STARTED"]
    assert "SESSION_STARTED" not in stage.events.types("between")


def test_zap_whileTeardownInFlight_setupWaitsForIt(stage: Stage) -> None:
    stage.headend.faults.add("teardown", Fault.stall())
    stage.play()
    stage.settle()
    stage.play()
    stage.advance(2_999)
    assert stage.routes() == ["setup", "teardown"]
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup"]


@pytest.mark.leaves_session
def test_zap_whileTeardownNeverAnswers_setupGoesOnAtTheCap(stage: Stage) -> None:
    stage.headend.faults.add("teardown", Fault.stall("before"))
    delegate = stage.delegate(teardown_retries=usher.OFF)
    stage.play(delegate=delegate)
    stage.settle()
    stage.play(delegate=delegate)
    stage.advance(3_000)
    assert stage.routes()[:3] == ["setup", "teardown", "setup"]
    stage.headend.faults.clear()
    stage.headend.restart()  # the head-end drops the held requests; the first session stays until it expires


def test_setup_refusedWhileOwnTeardownInFlight_isTriedOnceMore(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    stage.headend.faults.add("teardown", Fault.stall())
    first = stage.play(tag="first")
    stage.settle()
    first.close()
    stage.headend.wait_held()
    stage.play(tag="second", player=usher.Player(stage.context))
    stage.settle()
    assert "SETUP_ERROR" not in stage.events.types("second")
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup", "setup"]
    assert stage.events.types("second") == ["SESSION_STARTED"]


def test_setup_refusedWithNothingOfOursToWaitFor_isALimitError(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    stage.play()
    stage.settle()
    second = stage.play(tag="second", player=usher.Player(stage.context))
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR, "second")
    assert isinstance(error, usher.LimitError)
    assert (error.origin, error.operation, error.http_status, error.service_code) == (
        usher.Origin.SSM,
        usher.Operation.SETUP,
        400,
        1007,
    )
    assert error.must_stop and not error.orphan_possible
    assert error.explain().known
    assert stage.headend.journal.count("setup") == 2
    with pytest.raises(usher.LimitError):
        second.wait_session()
    with pytest.raises(usher.LimitError):
        second.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([bytes(16)]))


# ---- replies of set-up -----------------------------------------------------------------------------------------------

ORPHANING = {
    "lost": Fault.drop("after"),
    "reset": Fault.reset("after"),
    "html": Fault.html_page(processed=True),
    "not JSON": Fault.non_json(),
    "empty": Fault.empty_body(),
    "truncated": Fault.truncate(),
    "bad chunks": Fault.bad_chunks(),
    "without token": Fault.without("sessionToken"),
    "empty token": Fault.fields(sessionToken=""),
    "token a number": Fault.fields(sessionToken=7),
    "too large": Fault.oversized(2 * 1024 * 1024),
}


@pytest.mark.leaves_session
@pytest.mark.parametrize("kind", ORPHANING)
def test_setupReply_unreadable_isAnErrorWithOrphanPossibleAndNoRetry(stage: Stage, kind: str) -> None:
    stage.headend.faults.add("setup", ORPHANING[kind])
    playback = stage.play()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR)
    assert error.orphan_possible and error.must_stop
    assert error.operation is usher.Operation.SETUP
    wanted = {"lost": usher.TransportError, "reset": usher.TransportError, "too large": usher.TooLargeError}
    assert isinstance(error, wanted.get(kind, (usher.ProtocolError, usher.TransportError)))
    stage.advance(30_000)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup"]


def test_setup_withAControlCharacterInTheToken_isRefused(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.reply(200, body={"sessionToken": "a\r\nb: c", "heartbeat": 60}))
    stage.play()
    stage.settle()
    assert isinstance(stage.events.error(E.SETUP_ERROR), usher.ProtocolError)
    assert stage.routes() == ["setup"]


def test_setup_redirected_isRefused(stage: Stage) -> None:
    """The head-end redirects the set-up. The library does not follow the redirect; the error contains the new URL
    without its query."""
    target = "https://portal.example/sign-in"
    stage.headend.faults.add("setup", Fault.redirect(target + "?device=1"))
    stage.play()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR)
    assert isinstance(error, usher.RedirectError)
    assert f"the server redirects to {target}" in str(error) and "device" not in str(error)
    assert stage.routes() == ["setup"]


def test_setup_connectionRefused_isATransportError(stage: Stage) -> None:
    stage.headend.stop()
    stage.play()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR)
    assert isinstance(error, usher.TransportError)
    assert error.http_status == -1
    assert not error.orphan_possible


@pytest.mark.parametrize(("status", "code"), [(400, 1003), (400, 1005), (500, 4000), (503, 4001), (400, 4242)])
def test_setup_refusedWithACode_tellsIt(stage: Stage, status: int, code: int) -> None:
    stage.headend.faults.add("setup", Fault.error(code, status=status))
    stage.play()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR)
    assert isinstance(error, usher.RefusedError)
    assert (error.service_code, error.http_status, error.message) == (code, status, "by fault script")
    assert error.explain().summary and error.explain().advice
    assert stage.headend.journal.count("setup") == 1


@pytest.mark.parametrize("status", [401, 403, 404, 500, 502])
def test_setup_refusedWithAStatusAlone_isAnHttpError(stage: Stage, status: int) -> None:
    stage.headend.faults.add("setup", Fault.status(status))
    stage.play()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR)
    assert isinstance(error, usher.HTTPStatusError)
    assert error.http_status == status


@pytest.mark.parametrize(("status", "orphan"), [(500, False), (502, True), (503, False), (504, True)])
def test_setup_answeredByAGateway_mayLeaveAnOrphan(stage: Stage, status: int, orphan: bool) -> None:
    """If a gateway answers set-up with 502 or 504, the library reports orphan_possible, because the server behind the
    gateway may have opened a session. If the server itself answers 500 or 503, the library does not report it
    (protocol.md: Races)."""
    stage.headend.faults.add("setup", Fault.status(status))
    stage.play()
    stage.settle()
    assert stage.events.only(E.SETUP_ERROR).orphan_possible is orphan


# ---- heartbeat -------------------------------------------------------------------------------------------------------


def test_heartbeat_forAKilledSession_stopsAtOnceAndIsNotTornDown(stage: Stage) -> None:
    playback = stage.play()
    stage.settle()
    stage.headend.kill_account("account-1")
    stage.advance(60_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert isinstance(error, usher.RefusedError)
    assert (error.service_code, error.must_stop) == (1006, True)
    assert playback.session_state is usher.SessionState.FAILED
    stage.advance(180_000)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "heartbeat"]


def test_heartbeat_refusedOtherwise_stopsAndIsTornDownOnClose(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.error(1003))
    playback = stage.play()
    stage.advance(60_000)
    assert stage.events.error(E.HEARTBEAT_ERROR).must_stop
    stage.advance(59_000)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "heartbeat", "teardown"]


FAILURES = {
    "503": Fault.status(503),
    "429": Fault.status(429),
    "drop": Fault.drop("before"),
    "reset": Fault.reset("before"),
}


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.breaks_rules("late-beat")
def test_heartbeat_failedInTransport_isTriedAgainInsideThePeriodUntold(stage: Stage, kind: str) -> None:
    stage.headend.faults.add("heartbeat", FAILURES[kind], times=2)
    stage.play()
    stage.advance(60_000)
    assert stage.headend.journal.count("heartbeat") == 1
    stage.advance(1_000)
    assert stage.headend.journal.count("heartbeat") == 2
    stage.advance(2_000)
    assert stage.headend.journal.count("heartbeat") == 3
    assert "HEARTBEAT_ERROR" not in stage.events.types()
    assert stage.events.types()[-1] == "KEPT_ALIVE"


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("body", [b"{}", bytes((1 << 20) + 1)], ids=["", "too large"])
def test_heartbeat_refusedWithRetryAfter_waitsThatLong(stage: Stage, body: bytes) -> None:
    """The head-end answers 503 with Retry-After. The library waits that long before it retries the heartbeat, also if
    the body of the reply is larger than max_response_bytes."""
    stage.headend.faults.add("heartbeat", Fault.reply(503, headers={"Retry-After": "7"}, body=body))
    stage.play()
    stage.advance(60_000 + 6_999)
    assert stage.headend.journal.count("heartbeat") == 1
    stage.advance(1)
    assert stage.headend.journal.count("heartbeat") == 2


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("seconds_ahead", [7, 55])
def test_heartbeat_refusedWithRetryAfterAsADate_waitsUntilThen(stage: Stage, seconds_ahead: int) -> None:
    """The head-end answers 503 with a date in Retry-After. The library waits for the time between the `Date` of the
    reply and the date in Retry-After, and then retries the heartbeat. It reports no error event, because the lease has
    not ended (protocol.md: When it fails)."""
    today = datetime(2030, 1, 1, 12, 0, 0, tzinfo=timezone.utc)
    dates = {"Date": format_datetime(today, usegmt=True)}
    dates["Retry-After"] = format_datetime(today + timedelta(seconds=seconds_ahead), usegmt=True)
    stage.headend.faults.add("heartbeat", Fault.reply(503, headers=dates))
    stage.play()
    stage.advance(60_000 + 1000 * seconds_ahead - 1)
    assert stage.headend.journal.count("heartbeat") == 1
    stage.advance(1)
    assert stage.headend.journal.count("heartbeat") == 2
    assert "HEARTBEAT_ERROR" not in stage.events.types()


@pytest.mark.breaks_rules("late-beat")
def test_heartbeats_whileTheServerIsDown_areRetriedUntilTheLeaseEnds(stage: Stage) -> None:
    """The head-end answers 503 to heartbeats for 59 s of a 60 s period. The library retries the heartbeat more and more
    often until the lease ends, so the session survives, and the host gets no error event
    (protocol.md: When it fails)."""
    stage.headend.faults.add("heartbeat", Fault.status(503), always=True)
    playback = stage.play()
    stage.advance(60_000 + 59_000)
    assert stage.headend.journal.count("heartbeat") > 10, "the retries become denser"
    stage.headend.faults.clear()
    stage.advance(1_000)
    assert "HEARTBEAT_ERROR" not in stage.events.types()
    assert playback.session_state is usher.SessionState.ACTIVE
    assert len(stage.headend.sessions.active()) == 1


@pytest.mark.breaks_rules("late-beat")
def test_outage_isToldOnceAndItsEndToo(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"grace": 100.0})
    stage.headend.faults.add("heartbeat", Fault.status(503), always=True)
    playback = stage.play()
    stage.advance(3 * 60_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.http_status, error.must_stop) == (503, True)
    stage.headend.faults.clear()
    stage.advance(60_000)
    stage.events.only(E.RECOVERED)
    assert playback.session_state is usher.SessionState.ACTIVE


def test_heartbeat_withRetriesOff_isToldAtOnce(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.status(503))
    stage.play(delegate=stage.delegate(retry_permille=usher.OFF))
    stage.advance(60_000)
    stage.events.only(E.HEARTBEAT_ERROR)
    assert stage.headend.journal.count("heartbeat") == 1


@pytest.mark.breaks_rules("late-beat")
def test_heartbeatDue_whileTheEarlierIsInFlight_isNotSentTwice(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"period_s": 4, "grace": 10.0})
    stage.headend.faults.add("heartbeat", Fault.stall("after"))
    stage.play(delegate=stage.delegate(keep_alive_timeout_ms=10_000))
    stage.advance(4_000 + 5_000)
    assert stage.headend.journal.count("heartbeat") == 1
    stage.headend.release()
    stage.settle()
    assert stage.events.all(E.KEPT_ALIVE)
    stage.advance(4_000)
    assert [seq for route, seq in stage.seqs() if route == "heartbeat"][:2] == [1, 2]


@pytest.mark.breaks_rules("late-beat")
def test_heartbeat_stalledInAShortPeriod_isTriedAgainInTime(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"period_s": 10})
    stage.headend.faults.add("heartbeat", Fault.stall("before"))
    stage.play()
    stage.advance(40_000)
    assert "HEARTBEAT_ERROR" not in stage.events.types()
    assert [s.state.value if hasattr(s.state, "value") else s.state for s in stage.headend.sessions.all()] == ["active"]


@pytest.mark.breaks_rules("late-beat")
def test_machine_sleptPastABeat_beatsOnceAtOnceAndIsDoubtfulUntilThen(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"grace": 10.0})
    stage.headend.faults.add("heartbeat", Fault.stall())
    playback = stage.play()
    stage.sleep(4 * 60_000)
    assert stage.headend.journal.count("heartbeat") == 1
    assert playback.session_state is usher.SessionState.DOUBTFUL
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_DOUBTFUL"]
    stage.headend.release()
    stage.settle()
    assert playback.session_state is usher.SessionState.ACTIVE
    assert stage.events.only(E.KEPT_ALIVE).lateness_ms == 3 * 60_000


@pytest.mark.breaks_rules("late-beat")
def test_machine_sleptPastTheSession_isAHeartbeatError(stage: Stage) -> None:
    stage.play()
    stage.sleep(10 * 60_000)
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_DOUBTFUL", "HEARTBEAT_ERROR"]


# ---- teardown and the context ----------------------------------------------------------------------------------------


@pytest.mark.leaves_session
def test_teardown_failed_isToldAndBlocksNothing(stage: Stage) -> None:
    stage.headend.faults.add("teardown", Fault.error(4000, status=500), times=4)
    first = stage.play(delegate=stage.delegate(teardown_retries=usher.OFF))
    stage.settle()
    stage.play(tag="next")
    stage.settle()
    error = stage.events.error(E.TEARDOWN_ERROR)
    assert (error.operation, error.service_code) == (usher.Operation.TEARDOWN, 4000)
    assert stage.events.types("next") == ["SESSION_STARTED"]
    first.free()


def test_teardown_failedInTransport_isTriedAgain(stage: Stage) -> None:
    stage.headend.faults.add("teardown", Fault.status(503), times=2)
    playback = stage.play()
    stage.settle()
    playback.close()
    stage.advance(3_000)
    assert stage.routes() == ["setup"] + ["teardown"] * 3
    assert "TEARDOWN_ERROR" not in stage.events.types()


def test_teardown_ofAKilledSession_isATeardownError(stage: Stage) -> None:
    playback = stage.play()
    stage.settle()
    stage.headend.kill_account("account-1")
    playback.close()
    stage.settle()
    assert stage.events.error(E.TEARDOWN_ERROR).service_code == 1006
    stage.events.only(E.PLAYBACK_CLOSED)


def test_context_shutDownWithPlaybacksOpen_closesThemAllInParallel(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 10})
    players = [usher.Player(stage.context) for _ in range(5)]
    for player in players:
        stage.play(player=player)
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall(), times=5)
    closing = stage.call(stage.context.shutdown)
    stage.headend.wait_held(5)
    stage.headend.release()
    assert closing.result(5) == 0
    assert len(stage.events.all(E.PLAYBACK_CLOSED)) == 5
    with pytest.raises(usher.ClosedError):
        players[0].play("token")


def test_context_shutDownInTooShortATime_saysHowManyAreOpen(stage: Stage) -> None:
    stage.headend.faults.add("teardown", Fault.stall("before"))
    stage.play()
    stage.settle()
    closing = stage.call(stage.context.shutdown, 700)
    stage.headend.wait_held()
    stage.wait_timer(700)  # the teardown request has a timer too, which is due after 1000 ms
    stage.context.advance(700)
    assert closing.result(5) == 1
    # The time for the close has passed, so usher_context_free() will not wait for the retry of the teardown.
    stage.headend.restart()
    stage.advance(5_000)
