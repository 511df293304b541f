"""Tests customer SSM: heartbeats and renewals that fail, teardown, and the lifetime of a session. The host sends no
requests: it records the calls in a list."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

import usher
from stage import REAL_TIMEOUT_S, Stage, StageFactory
from stage.customer import BEATS, RENEWALS, Portal, play

E = usher.EventType
S = usher.Status
FAIRPLAY = usher.KeySystem.FAIRPLAY


# ---- heartbeats that fail --------------------------------------------------------------------------------------------


def ends(error: Any) -> Callable[[usher.SessionCall], Any]:
    def heartbeat(call: usher.SessionCall) -> Any:
        if isinstance(error, BaseException):
            raise error
        return error

    return heartbeat


@pytest.mark.callback_errors
@pytest.mark.parametrize(
    "answer",
    [S.SESSION, S.REFUSED, S.LIMIT, usher.SessionError("killed"), usher.LimitError("killed"), usher.RefusedError("no")],
)
def test_heartbeat_sessionEnded_stopsPlayback(stage: Stage, answer: Any) -> None:
    """The host's server has ended the session; the library reports a heartbeat error at once, and stops calling
    heartbeat() (protocol.md: Races)."""
    portal = Portal(stage, BEATS)
    portal.heartbeats = [ends(answer)]
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(600_000)
    assert portal.names == ["license", "heartbeat"]
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert error.must_stop
    assert error.status is (
        answer
        if isinstance(answer, S)
        else {usher.SessionError: S.SESSION, usher.LimitError: S.LIMIT}.get(type(answer), S.REFUSED)
    )
    assert error.__cause__ is (None if isinstance(answer, S) else answer)
    assert playback.session_state is usher.SessionState.FAILED


@pytest.mark.callback_errors
@pytest.mark.parametrize("answer", [S.TRANSPORT, S.HTTP, OSError("unreachable")])
def test_heartbeat_failedOnce_isTriedAgainInsideThePeriod(stage: Stage, answer: Any) -> None:
    """If a heartbeat fails but the session may still exist, the library retries it within its period, without an error
    event (protocol.md: Races)."""
    portal = Portal(stage, BEATS)
    portal.heartbeats = [ends(answer), ends(answer), None]
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(120_000)
    assert portal.asked == [
        ("license", 0),
        ("heartbeat", 60_000),
        ("heartbeat", 61_000),
        ("heartbeat", 63_000),
        ("heartbeat", 120_000),
    ]
    assert "HEARTBEAT_ERROR" not in stage.events.types()


@pytest.mark.callback_errors
def test_heartbeat_failingForGood_isToldOncePerOutageAndRecovers(stage: Stage) -> None:
    """Each heartbeat() raises an exception for some time. The library reports one heartbeat error, whose `__cause__` is
    the exception. It reports the next successful heartbeat with RECOVERED (protocol.md: Races)."""
    portal = Portal(stage, BEATS)
    failing = [True]

    def heartbeat(call: usher.SessionCall) -> Any:
        if failing[0]:
            raise OSError("unreachable")

    portal.heartbeats = [heartbeat] * 1000
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(200_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.status, error.must_stop) == (S.CALLBACK, True)
    assert type(error.__cause__) is OSError
    failing[0] = False
    stage.advance(60_000)
    assert stage.events.types().count("RECOVERED") == 1
    assert playback.session_state is usher.SessionState.ACTIVE


@pytest.mark.callback_errors
@pytest.mark.parametrize(
    ("answer", "status", "origin"),
    [
        (S.TRANSPORT, S.TRANSPORT, usher.Origin.SSM),
        (S.HTTP, S.HTTP, usher.Origin.SSM),
        (usher.TLSError("expired"), S.TLS, usher.Origin.SSM),
        (S.CALLBACK, S.CALLBACK, usher.Origin.LOCAL),
        (S.STATE, S.CALLBACK, usher.Origin.LOCAL),
        (OSError("unreachable"), S.CALLBACK, usher.Origin.LOCAL),
        pytest.param(
            usher.LATER,
            S.TIMEOUT,
            usher.Origin.LOCAL,
            marks=pytest.mark.keeps_resources("the questions that the host never answers"),
        ),
    ],
)
def test_heartbeatAndTeardown_thatFail_sayWithWhichStatusAndWhere(
    stage: Stage, answer: Any, status: S, origin: usher.Origin
) -> None:
    """The heartbeat and teardown callbacks fail. If they answer with a status that a server can cause, the errors of
    the events have this status and the origin SSM. Otherwise the errors have the origin LOCAL and the status CALLBACK,
    or TIMEOUT if there is no answer (delegates.md: Customer SSM)."""
    portal = Portal(stage, BEATS)
    portal.heartbeats = [ends(answer)] * 100
    portal.ends = ends(answer)
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(200_000)
    playback.close()
    stage.advance(10_000)
    for event in (E.HEARTBEAT_ERROR, E.TEARDOWN_ERROR):
        error = stage.events.error(event)
        assert (error.status, error.origin) == (status, origin), event


@pytest.mark.parametrize("ended", [False, True])
def test_teardown_ofASessionThatTheServerNoLongerHas_isDone(stage: Stage, ended: bool) -> None:
    """The host answers the teardown with SESSION, because its server no longer has the session; the library reports no
    TEARDOWN_ERROR, whether or not a heartbeat had this answer before."""
    portal = Portal(stage, BEATS)
    portal.heartbeats = [ends(S.SESSION)]
    portal.ends = ends(S.SESSION)
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(60_000 if ended else 0)
    playback.close()
    stage.settle()
    assert portal.names == ["license", *(["heartbeat"] if ended else []), "teardown"]
    assert "TEARDOWN_ERROR" not in stage.events.types()
    assert stage.events.types()[-2:] == ["SESSION_ENDED", "PLAYBACK_CLOSED"]


@pytest.mark.callback_errors
def test_heartbeat_thatAnswersNonsense_failedForThatReason(stage: Stage) -> None:
    """If heartbeat() returns False, the heartbeat fails: the bindings do not read False as the status 0, which means
    success."""
    portal = Portal(stage, BEATS, retry_permille=usher.OFF)
    portal.heartbeats = [ends(False)]
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(60_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert error.status is S.CALLBACK
    assert type(error.__cause__) is TypeError


def test_heartbeat_withoutAnAnswer_isTriedAgainAfterItsTime(stage: Stage) -> None:
    """A call of heartbeat() without an answer times out after three eighths of the period; the library calls
    heartbeat() again 0.3 s later (protocol.md: When it fails)."""
    portal = Portal(stage, BEATS)
    calls: list[usher.SessionCall] = []
    portal.heartbeats = [lambda call: calls.append(call) or usher.LATER]
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(60_000 + 22_500 + 1_000)
    assert portal.asked[1:] == [("heartbeat", 60_000), ("heartbeat", 82_800)]
    with pytest.raises(usher.InvalidCompletionError):
        calls[0].answer()
    assert "HEARTBEAT_ERROR" not in stage.events.types()


def test_heartbeat_answersLater_isDoneThen(stage: Stage) -> None:
    """The host may answer a heartbeat after its callback heartbeat() has returned. A late answer does not
    delay the next heartbeat, which is due one period after this heartbeat was due (customer SSM page)."""
    portal = Portal(stage, BEATS)
    calls: list[usher.SessionCall] = []
    portal.heartbeats = [lambda call: calls.append(call) or usher.LATER]
    playback = play(stage, portal, tag=7)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(65_000)
    assert (calls[0].operation, calls[0].tag, calls[0].playback) == (usher.Operation.HEARTBEAT, 7, playback)
    assert "KEPT_ALIVE" not in stage.events.types()
    calls[0].answer()
    stage.advance(55_000)
    assert portal.asked[1:] == [("heartbeat", 60_000), ("heartbeat", 120_000)]
    assert stage.events.types().count("KEPT_ALIVE") == 2


def test_heartbeats_whileOthersBlock_areOnTime(stage_factory: StageFactory) -> None:
    """If callbacks block all threads but one, a heartbeat on the remaining thread still runs when it is due
    (delegates.md: Customer SSM)."""
    stage = stage_factory(callback_threads_max=4)
    go, kept = threading.Event(), queue.Queue[usher.Event]()
    slow = [Portal(stage, BEATS) for _ in range(3)]
    for portal in slow:
        portal.heartbeats = [lambda call: go.wait(30) and None]
        play(stage, portal, player=usher.Player(stage.context)).get_license(FAIRPLAY, b"spc")
    quick = Portal(stage, BEATS)
    play(stage, quick, tag="quick").get_license(FAIRPLAY, b"spc")
    stage.context.add_observer(lambda event: kept.put(event) if event.type is E.KEPT_ALIVE else None)
    stage.advance(59_999)
    stage.held_callbacks = 100  # the callbacks that block, and the callbacks queued behind them
    for step in (1, 60_000, 60_000):
        stage.advance(step)
        assert kept.get(timeout=REAL_TIMEOUT_S).tag == "quick"
    assert [portal.names.count("heartbeat") for portal in slow] == [1, 1, 1]
    go.set()
    stage.held_callbacks = 0
    stage.settle()
    assert quick.asked == [("license", 0), ("heartbeat", 60_000), ("heartbeat", 120_000), ("heartbeat", 180_000)]
    assert [event.lateness_ms for event in stage.events.all(E.KEPT_ALIVE, tag="quick")] == [0, 0, 0]


@pytest.mark.callback_errors
def test_renewal_thatFails_isTriedAgainAndThenAHeartbeatError(stage: Stage) -> None:
    """In enforced mode, a renewal for which the host gives no licence counts as a failed heartbeat
    (protocol.md: Races)."""

    def broken(request: Any) -> Any:
        raise OSError("unreachable")

    portal = Portal(stage, RENEWALS, broken)
    playback = play(stage, portal, payload=lambda request: b"fresh")
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(125_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.operation, error.status, type(error.__cause__)) == (usher.Operation.RENEWAL, S.CALLBACK, OSError)
    assert portal.asked[:5] == [
        ("license", 0),
        ("renewal", 60_000),
        ("renewal", 61_000),
        ("renewal", 63_000),
        ("renewal", 67_000),
    ]


# ---- teardown and lifetime -------------------------------------------------------------------------------------------


def test_teardown_ofAZap_comesBeforeTheNextLicence(stage: Stage) -> None:
    """On a zap the library calls the teardown callback for the old session before the licence callback for the new item
    (protocol.md: Races)."""
    portal = Portal(stage, BEATS)
    play(stage, portal).get_license(FAIRPLAY, b"one")
    play(stage, portal).get_license(FAIRPLAY, b"two")
    stage.settle()
    assert portal.names == ["license", "teardown", "license"]


def test_teardown_thatTakesLong_holdsUpTheNextItemAtMostItsCap(stage: Stage) -> None:
    """The next item waits for the teardown of the old session, at most `teardown_timeout_ms`
    (protocol.md: When it fails; protocol.md: Races)."""
    calls: list[usher.SessionCall] = []
    portal = Portal(stage, BEATS)
    portal.ends = lambda call: calls.append(call) or usher.LATER  # type: ignore[func-returns-value]
    play(stage, portal).get_license(FAIRPLAY, b"one")
    second = play(stage, portal)
    future = second.request_license(FAIRPLAY, b"two")
    stage.advance(2_000)
    assert portal.names == ["license", "teardown"]
    stage.advance(1_000)
    assert future.result(10).data == b"licence"
    assert calls[0].operation is usher.Operation.TEARDOWN
    with pytest.raises(usher.InvalidCompletionError):
        calls[0].answer()
    second.close()
    stage.settle()
    calls[1].answer()
    stage.settle()
    assert stage.events.types()[-1] == "PLAYBACK_CLOSED"


@pytest.mark.callback_errors
def test_teardown_thatRaises_isATeardownError(stage: Stage) -> None:
    """If the teardown callback raises an exception, the library reports a teardown error
    (seed-to-api.md: Notifications)."""
    portal = Portal(stage, BEATS)
    portal.ends = ends(OSError("unreachable"))
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    playback.close()
    stage.advance(60_000)
    error = stage.events.error(E.TEARDOWN_ERROR)
    assert (error.operation, type(error.__cause__)) == (usher.Operation.TEARDOWN, OSError)
    assert stage.events.types()[-1] == "PLAYBACK_CLOSED"


def test_delegate_droppedWhileItPlays_isStillAsked(stage: Stage) -> None:
    """A playback keeps its delegate alive, even if the host has no other reference to the delegate
    (protocol.md: When it fails)."""
    asked: list[str] = []

    class Own(usher.CustomerDelegate):
        def license(self, request: usher.CustomerRequest) -> usher.LicenseResponse:
            asked.append("license")
            return BEATS

        def heartbeat(self, call: usher.SessionCall) -> None:
            asked.append("heartbeat")

    playback = play(stage, Own(stage.context, jitter_permille=usher.OFF))
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(60_000)
    assert asked == ["license", "heartbeat"]


@pytest.mark.parametrize(
    "options",
    [
        {"heartbeat": lambda call: None},
        {"teardown": lambda call: None},
        {"license": lambda r: BEATS, "certificate": b""},
        {"license": lambda r: BEATS, "jitter_permille": 501},
    ],
)
def test_customerDelegate_madeWrong_isRefused(stage: Stage, options: dict[str, Any]) -> None:
    """The library refuses a customer delegate that has a heartbeat or teardown callback but no licence callback
    (customer SSM page)."""
    with pytest.raises(usher.InvalidArgumentError):
        usher.CustomerDelegate(stage.context, **options)


# ---- callbacks removed during a session ------------------------------------------------------------------------------


def test_setCallbackNone_duringASession_failsItsHeartbeatsUntilCallbacksAreSet(stage: Stage) -> None:
    """The host removes the callbacks during a session and sets them again before the session's lease ends; the library
    retries the heartbeat, and the new callbacks keep the session alive."""
    portal = Portal(stage, BEATS)
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    portal.set_callback(None)
    stage.advance(65_000)
    assert stage.events.types().count("KEPT_ALIVE") == 0
    portal.set_callback(portal)
    stage.advance(60_000)
    assert "KEPT_ALIVE" in stage.events.types()
    assert stage.events.all(E.HEARTBEAT_ERROR) == []
    playback.close()
    stage.settle()
    assert portal.names[-1] == "teardown"


@pytest.mark.parametrize("answer", [BEATS, RENEWALS], ids=["heartbeats", "renewals"])
def test_setCallbackNone_untilTheLeaseEnds_isAHeartbeatError(stage: Stage, answer: Any) -> None:
    """The host removes the callbacks during a session; when the lease of the session has ended, the library reports a
    heartbeat error."""
    portal = Portal(stage, answer)
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    portal.set_callback(None)
    stage.advance(60_000)
    assert stage.events.all(E.HEARTBEAT_ERROR) == []
    stage.advance(140_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.status, error.must_stop) == (S.CALLBACK, True)
    assert "the delegate has no callbacks" in error.message
    playback.close()


def test_setCallbackNone_beforeTheClose_isATeardownError(stage: Stage) -> None:
    """The host removes the callbacks during a session and then closes the playback; the library cannot call the
    teardown callback, and reports TEARDOWN_ERROR, because the host's server still has the session."""
    portal = Portal(stage, BEATS)
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    portal.set_callback(None)
    playback.close()
    stage.settle()
    assert portal.names == ["license"]
    assert stage.events.error(E.TEARDOWN_ERROR).status is S.CALLBACK
    assert stage.events.types()[-3:] == ["TEARDOWN_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"]
