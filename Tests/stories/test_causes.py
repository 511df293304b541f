"""If a callback raises an exception, this exception is the `__cause__` of every error that follows from it, in calls
and in events."""

from __future__ import annotations

import gc
import traceback
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

import usher
from stage import CHALLENGE, Stage, StageFactory

E = usher.EventType
CLEARKEY = usher.KeySystem.CLEARKEY
pytestmark = pytest.mark.callback_errors


class PortalError(Exception):
    """Raised by the host's code."""


def portal(request: Any) -> Any:
    raise PortalError("the portal is down")


@pytest.fixture(params=["threaded", "pumped"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def enforced(stage_factory: StageFactory) -> Callable[..., Stage]:
    return lambda **options: stage_factory(headend={"enforced": {"clearkey"}, "grace": 10.0}, **options)


def play_asking(stage: Stage, callback: Callable[[usher.TokenRequest], Any]) -> usher.Playback:
    """Starts a playback without a token, so that the library asks the callback. Waits until set-up has ended, and
    returns the playback."""
    playback = stage.player.play(delegate=stage.delegate(token_callback=callback))
    stage.settle()
    return playback


def raised_by(call: Callable[..., Any], *arguments: Any) -> usher.UsherError:
    with pytest.raises(usher.UsherError) as caught:
        call(*arguments)
    return caught.value


# ---- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wait_session", "get_license"])
def test_tokenCallback_thatRaises_isTheCauseOfWhatTheCallRaises(stage: Stage, name: str) -> None:
    playback = play_asking(stage, portal)
    error = raised_by(getattr(playback, name), *([CLEARKEY, CHALLENGE] if name == "get_license" else []))
    assert type(error) is usher.NoTokenError
    assert type(error.__cause__) is PortalError
    assert error.__cause__ is stage.context.last_callback_error
    told = "".join(traceback.format_exception(error))
    parts = ["in portal\n", "PortalError: the portal is down", "direct cause", "usher._errors.NoTokenError"]
    assert [told.index(part) for part in parts] == sorted(told.index(part) for part in parts)


def test_tokenCallback_thatRaisesWhileACallWaits_isItsCause(stage: Stage) -> None:
    waiting = stage.call(
        lambda: stage.player.play(delegate=stage.delegate(token_callback=portal)).get_license(CLEARKEY, CHALLENGE)
    )
    error = waiting.exception(10)
    assert type(error) is usher.NoTokenError
    assert type(error.__cause__) is PortalError


def test_tokenCallback_thatRaises_isTheCauseInFuturesAndEvents(stage_factory: StageFactory, mode: str) -> None:
    stage = stage_factory(callbacks=mode)
    playback = play_asking(stage, portal)
    future = playback.request_license(CLEARKEY, CHALLENGE)
    stage.settle()
    for error in (future.exception(10), stage.events.error(E.SETUP_ERROR), stage.events.error(E.LICENSE_ERROR)):
        assert type(error) is usher.NoTokenError
        assert error.__cause__ is stage.callback_failures[0][1]
    assert not stage.routes()


def later_in_a_future(request: usher.TokenRequest) -> Future[str]:
    future: Future[str] = Future()
    future.set_exception(PortalError("later"))
    return future


def later_by_fail(request: usher.TokenRequest) -> Any:
    request.fail(PortalError("later"))
    return usher.LATER


@pytest.mark.parametrize("callback", [later_in_a_future, later_by_fail])
def test_question_thatFailsLater_hasItsCauseToo(stage: Stage, callback: Any) -> None:
    error = raised_by(play_asking(stage, callback).wait_session)
    assert type(error) is usher.NoTokenError
    assert type(error.__cause__) is PortalError


def test_question_failedByAnotherThread_hasItsCauseToo(stage: Stage) -> None:
    kept: list[usher.TokenRequest] = []
    playback = play_asking(stage, lambda request: kept.append(request) or usher.LATER)
    waiting = stage.call(playback.wait_session)
    stage.call(kept[0].fail, PortalError("elsewhere")).result(10)
    error = waiting.exception(10)
    assert type(error) is usher.NoTokenError
    assert type(error.__cause__) is PortalError


@pytest.mark.parametrize("answer", [7, "a\nb", "a\0b"])
def test_tokenCallback_thatReturnsNoToken_hasWhyAsTheCause(stage: Stage, answer: Any) -> None:
    error = raised_by(play_asking(stage, lambda request: answer).wait_session)
    assert type(error) is usher.NoTokenError
    assert isinstance(error.__cause__, (TypeError, usher.InvalidArgumentError))


# ---- payloads --------------------------------------------------------------------------------------------------------


@pytest.mark.breaks_rules("late-beat")
def test_payloadCallback_thatRaises_isTheCauseOfTheHeartbeatError(enforced: Callable[..., Stage], mode: str) -> None:
    stage = enforced(callbacks=mode)
    playback = stage.play(payload=portal)
    playback.request_license(CLEARKEY, CHALLENGE)
    stage.advance(125_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert type(error) is usher.CallbackError
    assert type(error.__cause__) is PortalError


@pytest.mark.breaks_rules("late-beat")
def test_payloadCallback_thatRaisesUntilTheSessionIsGivenUp_isTheCauseOfEveryCall(
    enforced: Callable[..., Stage],
) -> None:
    stage = enforced()
    playback = stage.play(payload=portal, delegate=stage.delegate(keep_alive_failures_max=1))
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(200_000)
    assert playback.session_state is usher.SessionState.FAILED
    gone = raised_by(playback.get_license, CLEARKEY, CHALLENGE)
    assert type(gone) is usher.SessionError
    for error in (gone, raised_by(playback.wait_session)):
        assert type(error.__cause__) is PortalError, error


@pytest.mark.breaks_rules("late-beat")
def test_payloadCallback_thatRaisedBeforeItAnswered_isNoCauseOfALaterError(enforced: Callable[..., Stage]) -> None:
    stage = enforced()
    answers: Iterator[Callable[[Any], Any]] = iter([portal, lambda request: CHALLENGE])
    playback = stage.play(payload=lambda request: next(answers, lambda request: None)(request))
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(190_000)
    assert [name for name, _ in stage.callback_failures] == ["payload"]
    assert stage.routes() == ["setup", "license", "license-renewal"]
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert type(error) is usher.CallbackError
    assert error.__cause__ is None


# ---- outcomes that leave `__cause__` None ----------------------------------------------------------------------------


@pytest.mark.parametrize("callback", [lambda request: None, lambda request: request.fail()])
def test_tokenCallback_thatHasNone_isNoCause(stage: Stage, callback: Any) -> None:
    error = raised_by(play_asking(stage, callback).wait_session)
    assert type(error) is usher.NoTokenError
    assert error.__cause__ is None


def test_tokenCallback_thatRaisesAfterTheDeadline_isNoCause(stage: Stage) -> None:
    kept: list[usher.TokenRequest] = []
    playback = play_asking(stage, lambda request: kept.append(request) or usher.LATER)
    stage.advance(5_000)
    with pytest.raises(usher.InvalidCompletionError):
        kept[0].fail(PortalError("too late"))
    error = raised_by(playback.wait_session)
    assert type(error) is usher.NoTokenError
    assert error.__cause__ is None


def test_tokenCallback_thatRaisesOfOnePlayback_isNoCauseForAnother(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 0})
    other = play_asking(stage, portal)
    refused = stage.play(player=usher.Player(stage.context))
    stage.settle()
    assert type(raised_by(refused.wait_session)) is usher.LimitError
    assert raised_by(refused.wait_session).__cause__ is None
    assert type(raised_by(other.wait_session).__cause__) is PortalError


def test_observer_thatRaises_isReportedAndNoCause(stage: Stage) -> None:
    stage.context.add_observer(portal)
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("license", usher.testing.headend.Fault.status(503))
    error = raised_by(stage.clear_keys, playback)
    assert type(error) is usher.HTTPStatusError
    assert error.__cause__ is None
    stage.settle()
    assert [name for name, _ in stage.callback_failures] == ["observer", "observer"]


# ---- which Python objects an exception keeps alive -------------------------------------------------------------------


@pytest.mark.breaks_rules("late-beat")
def test_playback_whoseCallbackRaised_isFreedWithItsLastReference(enforced: Callable[..., Stage]) -> None:
    stage = enforced()
    playback = stage.player.play(stage.headend.content_token(), delegate=stage.delegate(), payload=portal)
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(95_000)
    assert type(stage.context.last_callback_error) is PortalError, "its traceback refers to the request"
    stage.play()  # a zap: the player releases the first playback
    stage.settle()
    stage.events.clear()
    gone = weakref.ref(playback)
    gc.disable()
    try:
        del playback
        assert gone() is None, gc.get_referrers(gone())
    finally:
        gc.enable()
