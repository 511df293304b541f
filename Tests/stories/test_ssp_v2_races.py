"""Tests SSP V2: the reply that should open a session fails, or something else happens while the library waits for it
(docs/protocol.md: Races)."""

from __future__ import annotations

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.v2 import PAYLOAD, ask, delegate, licence, play
from usher.testing.headend import Fault, SessionState
from usher.testing.headend.config import KeySystem

E = usher.EventType
T, LEAVE = usher.CloseMode.TEARDOWN, usher.CloseMode.LEAVE


# ---- the reply that opens the session --------------------------------------------------------------------------------


def test_limit_onTheLicenceReply_isASetupError(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    with usher.Player(stage.context) as other:
        first = play(stage, player=other)
        licence(first)
        second = play(stage, tag="second")
        with pytest.raises(usher.LimitError) as caught:
            licence(second)
        error = caught.value
        assert (error.service_code, error.http_status, error.origin) == (1007, 400, usher.Origin.SSM)
        stage.settle()
        told = stage.events.error(E.SETUP_ERROR, "second")
        assert (type(told), told.must_stop, told.service_code) == (usher.LimitError, True, 1007)
        assert second.session_state is usher.SessionState.FAILED
        assert stage.events.types("second") == ["SETUP_ERROR", "LICENSE_ERROR"], (
            "set-up failed, and the licence request with it"
        )
        second.close(T)
        first.close(T)
        stage.settle()
        assert stage.routes() == ["license", "license", "teardown"], "no retry, and no teardown for the refused session"


def test_limit_whileAnOwnTeardownIsUnderWay_isTriedOnceMore(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    with usher.Player(stage.context) as other:
        first = play(stage, player=other)
        licence(first)
        stage.headend.faults.add("teardown", Fault.stall())
        first.close(T)
        stage.headend.wait_held()
        second = play(stage)
        future = ask(second)
        stage.settle()
        assert stage.routes() == ["license", "teardown", "license"]
        assert not future.done()
        stage.headend.release()
        assert future.result(10).clear_keys() == {KID: KEY}
        assert stage.routes() == ["license", "teardown", "license", "license"]
        assert stage.events.all(E.SETUP_ERROR) == []
        second.close(T)


def test_limit_whileAnOwnTeardownNeverAnswers_endsAtTheCap(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    with usher.Player(stage.context) as other:
        first = play(stage, player=other)
        licence(first)
        stage.headend.faults.add("teardown", Fault.stall("after"))
        first.close(T)
        stage.headend.wait_held()
        stage.headend.faults.add("license", Fault.error(1007, status=400), times=2)
        second = play(stage)
        future = ask(second)
        stage.settle()
        stage.advance(3_000)
        assert isinstance(future.exception(10), usher.LimitError)
        assert stage.routes() == ["license", "teardown", "license", "license"], "one retry only"
        stage.headend.release()
        stage.settle()


@pytest.mark.parametrize("code", [1003, 1006, 1008, 3001, 4000])
def test_refusal_ofTheLicence_isALicenceError_andTheNextRequestOpensAnew(stage: Stage, code: int) -> None:
    stage.headend.faults.add("license", Fault.error(code))
    playback = play(stage)
    with pytest.raises(usher.RefusedError) as caught:
        licence(playback)
    assert caught.value.service_code == code
    assert licence(playback).clear_keys() == {KID: KEY}
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license", "license", "teardown"]


LOST = [
    Fault.drop("after"),
    Fault.reset_in_body(),
    Fault.truncate(),
    Fault.non_json("<html>"),
    Fault.oversized(9_000_000),
]


@pytest.mark.leaves_session
@pytest.mark.parametrize("fault", LOST, ids=lambda fault: fault.label)
def test_openingReply_lost_isToldWithOrphanPossible(stage: Stage, fault: Fault) -> None:
    stage.headend.faults.add("license", fault)
    playback = play(stage, "fairplay")
    with pytest.raises(usher.UsherError) as caught:
        licence(playback, "fairplay")
    assert caught.value.orphan_possible
    stage.settle()
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license"], "without its token the session cannot be torn down"
    assert stage.events.only(E.PLAYBACK_CLOSED).orphan_possible
    assert len(stage.headend.sessions.active()) == 1


def test_openingReply_refused_leavesNoOrphan(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.error(4000))
    playback = play(stage)
    with pytest.raises(usher.RefusedError) as caught:
        licence(playback)
    assert not caught.value.orphan_possible
    playback.close(T)
    stage.settle()
    assert not stage.events.only(E.PLAYBACK_CLOSED).orphan_possible


def test_openingRequest_neverSent_leavesNoOrphan(stage: Stage) -> None:
    playback = play(stage, license_url="http://127.0.0.1:1/licenses")
    with pytest.raises(usher.TransportError) as caught:
        licence(playback)
    assert not caught.value.orphan_possible


@pytest.mark.leaves_session
def test_openingReply_withoutToken_butWithALicence_playsOn_andMayLeaveAnOrphan(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.without("sessionToken"))
    playback = play(stage)
    assert licence(playback).clear_keys() == {KID: KEY}
    stage.settle()
    stage.events.only(E.NO_SESSION)
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license"]


@pytest.mark.parametrize("token", ["", None])
@pytest.mark.leaves_session
def test_openingReply_withAnEmptyToken_playsWithoutASession(stage: Stage, token: object) -> None:
    stage.headend.faults.add("license", Fault.fields(sessionToken=token))
    playback = play(stage)
    assert licence(playback).clear_keys() == {KID: KEY}
    stage.settle()
    stage.events.only(E.NO_SESSION)
    playback.close(T)


@pytest.mark.parametrize("token", ["a\nb", "a\0b", 7, [], {"a": 1}])
@pytest.mark.leaves_session
def test_openingReply_withATokenThatIsNone_isLost(stage: Stage, token: object) -> None:
    """The server has opened a session, but the token in the reply is invalid. So the library cannot tear the session
    down."""
    stage.headend.faults.add("license", Fault.fields(sessionToken=token))
    playback = play(stage)
    with pytest.raises(usher.ProtocolError) as caught:
        licence(playback)
    assert caught.value.orphan_possible
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license"]
    assert stage.events.only(E.PLAYBACK_CLOSED).orphan_possible


def test_openingReply_withATokenButWithoutALicence_isTornDownOnClose(stage: Stage) -> None:
    """The reply has a session token but no readable licence. The licence request fails, and the library tears the
    session down when the playback closes."""
    stage.headend.faults.add("license", Fault.without("CkcMessage"))
    playback = play(stage, "fairplay")
    with pytest.raises(usher.ProtocolError):
        licence(playback, "fairplay")
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("teardown", 1)]


# ---- races with close ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_teardownWhileTheOpeningReplyIsUnderWay_usesItsToken(stage: Stage, when: str) -> None:
    stage.headend.faults.add("license", Fault.stall(when))  # type: ignore[arg-type]
    playback = play(stage)
    future = ask(playback)
    stage.headend.wait_held()
    playback.close(T)
    assert isinstance(future.exception(10), usher.ClosedError)
    stage.advance(2_000)
    assert stage.routes() == ["license"]
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("license", None), ("teardown", 1)]
    closed = stage.events.only(E.PLAYBACK_CLOSED)
    assert (closed.error, closed.orphan_possible) == (None, False)
    assert stage.events.all(E.LICENSE) == [], "the licence request had ended before"


def test_leaveWhileTheOpeningReplyIsUnderWay_leavesIt(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = play(stage)
    future = ask(playback)
    stage.headend.wait_held()
    playback.close(LEAVE)
    assert isinstance(future.exception(10), usher.ClosedError)
    stage.headend.release()
    stage.advance(5_000)
    assert stage.routes() == ["license"]
    stage.events.only(E.PLAYBACK_CLOSED)
    stage.headend.advance(120_000)
    assert stage.headend.sessions.all()[0].state is SessionState.EXPIRED


def test_teardownWhileTheOpeningReplyNeverComes_endsAtTheCapWithOrphanPossible(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = play(stage)
    ask(playback)
    stage.headend.wait_held()
    playback.close(T)
    stage.advance(2_999)
    assert stage.events.all(E.PLAYBACK_CLOSED) == []
    stage.advance(1)
    assert stage.events.only(E.PLAYBACK_CLOSED).orphan_possible
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("license", None), ("teardown", 1)], (
        "a session token that comes after the time-out is still torn down"
    )


@pytest.mark.parametrize("key_system", ["clearkey", "fairplay", "playready", "widevine"])
def test_teardownWhileARenewalIsUnderWay_usesTheNewestToken(stage_factory: StageFactory, key_system: KeySystem) -> None:
    stage = stage_factory(headend={"enforced": {key_system}, "grace": 3.0})
    route = "renewal-wv" if key_system == "widevine" else "license-renewal"
    stage.headend.faults.add(route, Fault.stall("after"))
    playback = play(stage, key_system, payload=lambda request: PAYLOAD[key_system])
    licence(playback, key_system)
    if key_system == "widevine":
        ask(playback, key_system, type=usher.LicenseType.RENEWAL)
    else:
        stage.advance(60_000)
    stage.headend.wait_held()
    playback.close(T)
    stage.headend.release()
    stage.settle()
    assert stage.seqs() == [("license", None), (route, 1), ("teardown", 2)]


@pytest.mark.parametrize("status", [500, 503])
def test_teardownFails_isTold(stage: Stage, status: int) -> None:
    stage.headend.faults.add("teardown", Fault.status(status), always=True)
    playback = play(stage)
    licence(playback)
    playback.close(T)
    stage.advance(30_000)
    assert stage.events.all(E.TEARDOWN_ERROR)
    stage.headend.faults.clear()
    stage.headend.advance(120_000)


# ---- races with zap --------------------------------------------------------------------------------------------------


def test_zapWhileTheOpeningReplyIsUnderWay_itsSessionIsTornDown_thenTheNextAsks(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    stage.headend.faults.add("license", Fault.stall("after"))
    first = ask(play(stage, tag="first"))
    stage.headend.wait_held()
    second = play(stage, tag="second")
    future = ask(second)
    assert isinstance(first.exception(10), usher.ClosedError)
    stage.settle()
    assert stage.routes() == ["license"], "without the first session's token the slot cannot be freed"
    stage.headend.release()
    assert future.result(10).clear_keys() == {KID: KEY}
    assert stage.seqs() == [("license", None), ("teardown", 1), ("license", None)]
    second.close(T)


def test_zapWithLeave_whileTheOpeningReplyIsUnderWay_theNextNeedNotWait(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.stall("after"))
    first = ask(play(stage, leave_on_zap=True))
    stage.headend.wait_held()
    second = play(stage)
    assert licence(second).clear_keys() == {KID: KEY}
    assert isinstance(first.exception(10), usher.ClosedError)
    stage.headend.release()
    second.close(T)
    stage.settle()
    assert stage.routes() == ["license", "license", "teardown"]
    stage.headend.advance(120_000)


def test_zapOverSeveral_theNewestWins(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    stage.headend.faults.add("license", Fault.stall("after"))
    futures = [ask(play(stage, tag="0"))]
    stage.headend.wait_held()
    for number in range(1, 5):
        futures.append(ask(play(stage, tag=str(number))))
    stage.headend.release()
    assert futures[-1].result(10).clear_keys() == {KID: KEY}
    assert [type(future.exception(10)) for future in futures[:-1]] == [usher.ClosedError] + [usher.ReplacedError] * 3
    assert stage.seqs() == [("license", None), ("teardown", 1), ("license", None)]
    stage.player.stop(T)


def test_zapWhileTheTeardownIsUnderWay_waitsForIt(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    first = play(stage)
    licence(first)
    stage.headend.faults.add("teardown", Fault.stall())
    second = play(stage)
    future = ask(second)
    stage.headend.wait_held()
    stage.settle()
    assert stage.routes() == ["license", "teardown"]
    stage.headend.release()
    assert future.result(10).clear_keys() == {KID: KEY}
    second.close(T)


def test_contextClose_whileTheOpeningReplyIsUnderWay_tearsDownWhereTheOptionSaysSo(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = play(stage, teardown_on_close=True)
    future = ask(playback)
    stage.headend.wait_held()
    closing = stage.call(stage.context.shutdown)
    assert isinstance(future.exception(10), usher.ClosedError)
    stage.headend.release()
    assert closing.result(10) == 0
    assert stage.seqs() == [("license", None), ("teardown", 1)]


# ---- tokens ----------------------------------------------------------------------------------------------------------


def test_tokenCallback_isAskedForFurtherLicences_andTheSessionIsMadeAnew(stage: Stage) -> None:
    """A further licence with a new content token needs a new session, as in V1: the library first tears down the old
    session."""
    tokens: list[str] = []

    def token(request: usher.TokenRequest) -> str:
        tokens.append(stage.headend.content_token())
        return tokens[-1]

    playback = play(stage, token_callback=token)
    licence(playback)
    assert tokens == [], "the first licence uses the token given to play()"
    licence(playback)
    assert len(tokens) == 1
    assert stage.seqs() == [("license", None), ("teardown", 1), ("license", None)]
    playback.close(T)


@pytest.mark.parametrize("late", [False, True], ids=["none", "no answer"])
def test_tokenCallback_withoutAToken_failsTheLicence_andTheSessionGoesOn(stage: Stage, late: bool) -> None:
    """If the token callback returns None or does not answer in time, only this licence request fails, with "content
    token unavailable" (5022) (SSM V2 page; protocol.md: Licences)."""
    asked: list[usher.TokenRequest] = []

    def token(request: usher.TokenRequest) -> usher.Later | None:
        asked.append(request)
        return usher.LATER if late else None

    playback = play(stage, token_callback=token)
    licence(playback)
    future = ask(playback)
    stage.advance(5_000 if late else 0)
    error = future.exception(10)
    assert isinstance(error, usher.NoTokenError)
    assert error.legacy_codes.react_native == 5022
    if late:
        with pytest.raises(usher.InvalidCompletionError):
            asked[0].answer(stage.headend.content_token())
    stage.advance(60_000)
    assert stage.seqs() == [("license", None), ("heartbeat", 1)]
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close(T)


def test_tokenCallback_withoutAToken_firstLicence_opensNothing(stage: Stage) -> None:
    """Without an initial token, the library asks the token callback before the first licence request. If the callback
    has no token, the library does not send this request (SSM V2 page)."""
    playback = stage.player.play(delegate=delegate(stage, token_callback=lambda request: None))
    with pytest.raises(usher.NoTokenError):
        licence(playback)
    playback.close(T)
    stage.settle()
    assert stage.routes() == []


def test_contentTokenRefused401_isReplacedByTheCallback_andTheSessionOpensWithIt(stage: Stage) -> None:
    old = stage.headend.content_token()
    stage.headend.revoke_tokens()
    stage.headend.advance(1_000)
    playback = play(stage, token=old, token_callback=lambda request: stage.headend.content_token(jti="new"))
    assert licence(playback).clear_keys() == {KID: KEY}
    assert [entry.status for entry in stage.sent("license")] == [401, 200]
    playback.close(T)


def test_clockOfTheKeepAlive_beginsWithTheReply(stage: Stage) -> None:
    stage.headend.faults.add("license", Fault.delay(4_000, "after"))
    playback = play(stage)
    future = ask(playback)
    stage.advance(4_000)
    future.result(10)
    stage.advance(55_999)
    assert "heartbeat" not in stage.routes()
    stage.advance(4_001)
    assert stage.routes() == ["license", "heartbeat"]
    playback.close(T)


def test_backgroundOrPictureInPicture_beatsGoOn(stage: Stage) -> None:
    """Heartbeats continue in the background, whether the host reports the background or not
    (SSM V2 page; protocol.md: When it fails)."""
    playback = play(stage)
    licence(playback)
    playback.suspend()
    stage.advance(180_000)
    playback.resume()
    stage.advance(60_000)
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), *(("heartbeat", number) for number in range(1, 5)), ("teardown", 5)]


@pytest.mark.parametrize("where", ["in the background", "in the foreground"])
def test_heartbeatError_zapToTheSameStream_playsUnderANewSession(stage: Stage, where: str) -> None:
    """After a heartbeat error the host stops and plays the same stream again, in a new session
    (SSM V2 page; protocol.md: Races)."""
    token = stage.headend.content_token("alice")
    playback = play(stage, token=token)
    licence(playback)
    if where == "in the background":
        stage.context.suspend()
    stage.headend.kill_account("alice")
    stage.advance(60_000)
    stage.context.resume()
    assert stage.events.error(E.HEARTBEAT_ERROR).must_stop
    again = play(stage, token=token)
    assert licence(again).clear_keys() == {KID: KEY}
    assert again.session_state is usher.SessionState.ACTIVE
    again.close(T)
    stage.settle()
    assert stage.routes() == ["license", "heartbeat", "license", "teardown"], (
        "no teardown for a session that the server does not know"
    )


@pytest.mark.breaks_rules("late-beat")
def test_suspendAndResume_beatAtOnceWhenDue(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"grace": 10.0})
    playback = play(stage, suspend=usher.Suspend.PAUSE)
    licence(playback)
    playback.suspend()
    stage.advance(90_000)
    assert stage.routes() == ["license"]
    playback.resume()
    stage.settle()
    assert stage.routes() == ["license", "heartbeat"]
    playback.close(T)
