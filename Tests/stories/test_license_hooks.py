"""The licence hook reads a licence reply. The session uses the token, the period and the arrival time of the same
reply, whatever the hook does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.v2 import PAYLOAD, SYSTEMS, ask, licence, play
from usher.testing.headend import V2, Fault
from usher.testing.headend.config import KEY_SYSTEMS, KeySystem

E = usher.EventType
T = usher.CloseMode.TEARDOWN
Call = usher.HookCall[bytes]


def hooked(
    stage: Stage, key_system: KeySystem, answer: Any, v2: bool = True, hook: str = "license_from_reply", **options: Any
) -> Any:
    """Makes an SSP delegate, V2 or V1. Its hook with the name `hook`, by default the licence hook, is `answer`."""
    base: Any = usher.SSPV2Delegate if v2 else usher.SSPDelegate
    Own = type("Own", (base,), {hook: lambda self, call: answer(call)})
    options.setdefault("license_url", stage.headend.license_url(key_system, api="v2" if v2 else "v1"))
    return Own(stage.context, ssm_url=stage.headend.ssm_url, jitter_permille=usher.OFF, **options)


def builtin(call: Call) -> bytes:
    return call.builtin()


class Kept:
    """A licence hook that stores its calls, so that the story can answer them later."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, call: Call) -> Any:
        self.calls.append(call)
        return usher.LATER

    def wait(self, stage: Stage, count: int = 1) -> Call:
        stage.until(lambda: len(self.calls) >= count)
        stage.settle()
        return self.calls[count - 1]

    def answer(self, index: int = 0) -> None:
        self.calls[index].answer(self.calls[index].builtin())


class Slow:
    """A hook that keeps the first call for which `keeps` is true, so that the story can answer it later."""

    def __init__(self, keeps: Callable[[Call], bool]) -> None:
        self.keeps = keeps
        self.call: Call | None = None

    def __call__(self, call: Call) -> Any:
        if self.call is not None or not self.keeps(call):
            return call.builtin()
        self.call = call
        return usher.LATER

    def answer(self) -> None:
        assert self.call is not None
        self.call.answer(self.call.builtin())


def is_renewal(call: Call) -> bool:
    return call.type is usher.LicenseType.RENEWAL


# ---- the token in the reply ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key_system", KEY_SYSTEMS)
@pytest.mark.parametrize("v2", [False, True], ids=["V1", "V2"])
def test_replyWithAToken_whoseHookAnswersTheBuiltinLicence_keepsTheSession(
    stage_factory: StageFactory, key_system: KeySystem, v2: bool
) -> None:
    """The licence hook of a host returns the built-in licence. The session still takes the token of the reply, and the
    close tears the session down."""
    stage = stage_factory(headend={"enforced": {key_system}, "token_rotation": "strict"})
    playback = stage.play(delegate=hooked(stage, key_system, builtin, v2))
    licence(playback, key_system)
    stage.settle()
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close(T)
    stage.settle()
    assert stage.events.all(E.NO_SESSION, E.TEARDOWN_ERROR) == []
    assert stage.headend.sessions.active() == []


def test_laterReplyWithAToken_opensASession(stage: Stage) -> None:
    """The first content needs no session, and the second content needs one. The second licence reply opens the session,
    and the library tears this session down at the close."""
    tokens = [stage.headend.content_token("alice", "free", session_control=False), stage.headend.content_token()]
    playback = play(stage, token=tokens[0], token_callback=lambda request: tokens[1])
    assert licence(playback).renew_type is usher.RenewType.NONE
    stage.settle()
    assert playback.session_state is usher.SessionState.NONE
    assert licence(playback).renew_type is usher.RenewType.HEARTBEAT
    stage.advance(60_000)
    assert playback.session_state is usher.SessionState.ACTIVE
    assert stage.events.types() == ["NO_SESSION", "LICENSE", "SESSION_STARTED", "LICENSE", "KEPT_ALIVE"]
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license", "license", "heartbeat", "teardown"]


def test_laterReplyWithoutAToken_isNotReportedAgain(stage: Stage) -> None:
    """Two licence replies have no session token. The library reports NO_SESSION once, and sends nothing when the
    playback closes."""
    playback = play(stage, token=stage.headend.content_token("alice", "free", session_control=False))
    licence(playback)
    licence(playback)
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license", "license"]
    assert stage.events.types() == ["NO_SESSION", "LICENSE", "LICENSE", "PLAYBACK_CLOSED"]


def test_requestsAtOnce_whoseFirstReplyHasNoToken_openOneSession(stage: Stage) -> None:
    """The host makes three licence requests, and the first reply has no session token. The library sends the second
    request alone. The second request opens the session, and the third request carries the token of this session."""
    stage.headend.faults.add("license", Fault.reply(200, body={"keys": [{"kty": "oct", "k": "AA", "kid": "AA"}]}))
    playback = play(stage)
    for future in [ask(playback) for _ in range(3)]:
        future.result(10)
    assert stage.seqs() == [("license", None), ("license", None), ("license", 1)]
    assert len(stage.headend.sessions) == 1
    playback.close(T)


def test_close_whileALaterOpeningReplyIsOnItsWay_tearsTheSessionDown(stage: Stage) -> None:
    """A playback has no session, and the host closes it while a licence request is in flight. The reply has a session
    token; the library tears the session of this token down."""
    tokens = [stage.headend.content_token("alice", "free", session_control=False), stage.headend.content_token()]
    playback = play(stage, token=tokens[0], token_callback=lambda request: tokens[1])
    licence(playback)
    stage.headend.faults.add("license", Fault.stall("after"))
    future = ask(playback)
    stage.headend.wait_held()
    playback.close(T)
    stage.headend.release()
    stage.settle()
    assert isinstance(future.exception(10), usher.ClosedError)
    assert stage.routes() == ["license", "license", "teardown"]


# ---- a slow hook -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period_s", [2, 6])
def test_slowHook_holdsNoHeartbeatBack(stage_factory: StageFactory, period_s: int) -> None:
    """The licence hook of the first licence answers after 4.5 s. The periods count from the arrival of the reply: the
    library sends all heartbeats on time, with the newest token."""
    stage = stage_factory(headend={"period_s": period_s, "token_rotation": "strict"})
    kept = Kept()
    playback = stage.play(delegate=hooked(stage, "clearkey", kept))
    future = ask(playback)
    kept.wait(stage)
    assert (playback.session_state, future.done()) == (usher.SessionState.ACTIVE, False)
    stage.advance(4500)
    kept.answer()
    assert future.result(10).clear_keys() == {KID: KEY}
    stage.advance(3 * period_s * 1000 - 4500)
    assert [event.lateness_ms for event in stage.events.all(E.KEPT_ALIVE)] == [0, 0, 0]
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("heartbeat", 1), ("heartbeat", 2), ("heartbeat", 3), ("teardown", 4)]


def test_slowHook_inV1_holdsNoTokenBack(stage_factory: StageFactory) -> None:
    """A licence reply replaces the session token, and the hook for this reply answers after 4.5 s. Meanwhile the
    renewals carry the new token and are on time."""
    stage = stage_factory(headend={"period_s": 2, "token_rotation": "strict", "enforced": {"clearkey"}})
    kept = Kept()
    playback = stage.play(
        delegate=hooked(stage, "clearkey", kept, v2=False), payload=lambda request: PAYLOAD["clearkey"]
    )
    future = ask(playback)
    kept.wait(stage)
    stage.advance(4500)
    assert stage.seqs() == [("setup", None), ("license", 1), ("license-renewal", 2), ("license-renewal", 3)]
    for index in range(3):
        kept.answer(index)
    assert future.result(10).clear_keys() == {KID: KEY}
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED", *["KEPT_ALIVE"] * 2, *["LICENSE"] * 3]
    playback.close(T)


def test_slowHook_thatFailsInTheEnd_failsTheLicenceOnly(stage: Stage) -> None:
    """The licence hook does not answer within its time limit. The licence request fails, but the session that the reply
    opened continues until the playback closes."""
    playback = stage.play(delegate=hooked(stage, "clearkey", Kept()))
    future = ask(playback)
    stage.until(lambda: stage.events.all(E.SESSION_STARTED))
    stage.advance(5000)
    assert isinstance(future.exception(10), usher.UsherTimeoutError)
    stage.advance(55_000)
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("heartbeat", 1), ("teardown", 2)]


@pytest.mark.parametrize("v2", [False, True], ids=["V1", "V2"])
def test_requestThatTimesOut_whoseReplyComesLater_asksNoHook(stage: Stage, v2: bool) -> None:
    """The host no longer waits for the licence when its reply arrives. The library takes the session token from the
    reply if there is one, and does not ask the licence hook."""
    kept = Kept()
    playback = stage.play(delegate=hooked(stage, "clearkey", kept, v2=v2))
    stage.headend.faults.add("license", Fault.delay(3000))
    future = ask(playback, timeout_ms=2000)
    stage.advance(2000)
    assert isinstance(future.exception(10), usher.UsherTimeoutError)
    stage.advance(1000)
    playback.close(T)
    stage.settle()
    assert kept.calls == []
    first = [("license", None)] if v2 else [("setup", None), ("license", 1)]
    assert stage.seqs() == [*first, ("teardown", 1)]


def test_hookOfARenewal_thatFails_isReportedAsALicenceError(stage_factory: StageFactory) -> None:
    """The server accepts a renewal, but the licence hook returns no licence. The session continues, and the library
    reports the failed renewal."""
    stage = stage_factory(headend={"enforced": {"clearkey"}})

    def answer(call: Call) -> Any:
        return None if call.type is usher.LicenseType.RENEWAL else call.builtin()

    playback = stage.play(delegate=hooked(stage, "clearkey", answer), payload=lambda request: PAYLOAD["clearkey"])
    licence(playback)
    stage.advance(120_000)
    assert stage.seqs() == [("license", None), ("license-renewal", 1), ("license-renewal", 2)]
    assert stage.events.types() == ["SESSION_STARTED", "LICENSE", *["KEPT_ALIVE", "LICENSE_ERROR"] * 2]
    error = stage.events.all(E.LICENSE_ERROR)[0].error
    assert error is not None
    assert (error.status, error.operation, error.must_stop) == (
        usher.Status.CALLBACK,
        usher.Operation.RENEWAL,
        False,
    )
    playback.close(T)


@pytest.mark.breaks_rules("late-beat")
def test_renewal_whoseHookDoesNotAnswer_isMissedAfterOnePeriod(stage_factory: StageFactory) -> None:
    """The hook for a renewal does not answer for many periods. After one period without an answer, the library reports
    HEARTBEAT_ERROR with the status RENEWAL_MISSED. When the renewal has succeeded, the library reports RECOVERED."""
    stage = stage_factory(headend={"enforced": {"clearkey"}, "grace": 9.0})
    slow = Slow(is_renewal)
    delegate = hooked(stage, "clearkey", slow, hook="license_body", hook_timeout_ms=600_000)
    playback = stage.play(delegate=delegate, payload=lambda request: PAYLOAD["clearkey"])
    licence(playback)
    stage.advance(119_000)
    assert stage.events.all(E.HEARTBEAT_ERROR) == []
    stage.advance(1_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.status, error.must_stop) == (usher.Status.RENEWAL_MISSED, True)
    assert playback.session_state is usher.SessionState.DOUBTFUL
    stage.advance(130_000)
    slow.answer()
    stage.settle()
    assert stage.events.types()[2:] == ["HEARTBEAT_ERROR", "LICENSE", "KEPT_ALIVE", "RECOVERED"]
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("license-renewal", 1), ("teardown", 2)]


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("v2", [True, False])
@pytest.mark.parametrize("waited_ms", [500, 5000], ids=["before the teardown", "after the teardown"])
def test_renewal_whoseSessionIsReplacedMeanwhile_isNotSentWithItsToken(
    stage_factory: StageFactory, v2: bool, waited_ms: int
) -> None:
    """A hook still prepares a renewal when the host asks for a further licence, so that the library replaces the
    session. The teardown waits for the hook for at most 3 s. When the hook answers, the library does not send the
    renewal with the token of the old session (protocol.md: Licences)."""
    stage = stage_factory(headend={"enforced": {"clearkey"}, "grace": 9.0})
    slow = Slow(is_renewal)
    options: Any = {"hook": "license_body", "hook_timeout_ms": 600_000, "resetup_on_extra_license": "always"}
    delegate = hooked(stage, "clearkey", slow, v2, **options)
    playback = stage.play(delegate=delegate, payload=lambda request: PAYLOAD["clearkey"])
    licence(playback)
    stage.advance(60_000)
    stage.until(lambda: slow.call)
    again = ask(playback)
    stage.advance(waited_ms)
    slow.answer()
    stage.settle()
    assert again.result(10).clear_keys() == {KID: KEY}
    opening = ["license"] if v2 else ["setup", "license"]
    assert stage.routes() == [*opening, "teardown", *opening]
    assert stage.events.all(E.LICENSE_ERROR) == [] and stage.events.all(E.HEARTBEAT_ERROR) == []
    stage.advance(60_000)
    assert stage.routes()[-1] == "license-renewal", "the new session has renewals of its own"
    playback.close(T)
    stage.settle()


@pytest.mark.parametrize("waited_ms", [500, 5000], ids=["before the teardown", "after the teardown"])
def test_licence_whoseSessionIsReplacedMeanwhile_getsTheNextSession(stage: Stage, waited_ms: int) -> None:
    """A hook still prepares a further licence request when the host asks for another licence, so that the library
    replaces the session a second time. When the hook answers, the library sends both requests under the newest
    session."""
    slow = Slow(lambda call: len(stage.sent("license")) == 1)
    options: Any = {"hook": "license_body", "hook_timeout_ms": 600_000, "resetup_on_extra_license": "always"}
    delegate = hooked(stage, "clearkey", slow, v2=False, **options)
    playback = stage.play(delegate=delegate)
    licence(playback)
    second = ask(playback)
    stage.until(lambda: slow.call)
    third = ask(playback)
    stage.advance(waited_ms)
    slow.answer()
    stage.settle()
    assert [future.result(10).clear_keys() for future in (second, third)] == [{KID: KEY}] * 2
    replaced = ["teardown", "setup"]
    assert stage.routes() == ["setup", "license", *replaced, *replaced, "license", "license"]
    playback.close(T)
    stage.settle()


def test_licencesOfTheStart_ofWhichOneIsSlow_needOneFurtherToken(stage: Stage) -> None:
    """The player asks for audio and video at the start, and a hook still prepares the request for audio when the player
    asks for a further licence. The library asks the token callback once, and sends both requests under the new
    session (protocol.md: Licences)."""
    slow = Slow(lambda call: True)
    asked: list[usher.TokenRequest] = []

    def token(request: usher.TokenRequest) -> str:
        asked.append(request)
        return stage.headend.content_token("account-1")

    options: Any = {"hook": "license_body", "hook_timeout_ms": 600_000, "token_callback": token}
    delegate = hooked(stage, "clearkey", slow, v2=False, **options)
    playback = stage.play(stage.headend.content_token("account-1"), delegate=delegate)
    audio = ask(playback)
    stage.until(lambda: slow.call)
    licence(playback)
    further = ask(playback)
    stage.advance(5000)
    slow.answer()
    stage.settle()
    assert [request.result(10).clear_keys() for request in (audio, further)] == [{KID: KEY}] * 2
    assert stage.routes() == ["setup", "license", "teardown", "setup", "license", "license"]
    assert len(asked) == 1
    playback.close(T)
    stage.settle()


# ---- replies from which the library cannot read the token ------------------------------------------------------------


@pytest.mark.leaves_session
@pytest.mark.parametrize(
    "fault",
    [
        Fault.fields(sessionToken="a\nb"),
        Fault.fields(sessionToken=7),
        Fault.html_page(processed=True),
        Fault.truncate(),
    ],
    ids=["no header text", "a number", "web page", "cut"],
)
def test_unreadableReply_whoseHookFindsNoLicence_mayLeaveAnOrphan(stage: Stage, fault: Fault) -> None:
    """The library cannot read a session token in the reply and the hook returns no licence; the error and
    PLAYBACK_CLOSED have orphan_possible."""
    stage.headend.faults.add("license", fault)
    playback = stage.play(delegate=hooked(stage, "clearkey", lambda call: None))
    with pytest.raises(usher.UsherError) as caught:
        licence(playback)
    assert caught.value.orphan_possible
    playback.close(T)
    stage.settle()
    assert stage.events.only(E.PLAYBACK_CLOSED).orphan_possible


@pytest.mark.leaves_session
def test_unusableToken_whoseHookFindsALicence_mayLeaveAnOrphan(stage: Stage) -> None:
    """The reply has a session token with characters that a header cannot contain, and the hook returns the licence. The
    playback continues without a session, and PLAYBACK_CLOSED has orphan_possible."""
    stage.headend.faults.add("license", Fault.fields(sessionToken="a\nb"))
    playback = stage.play(delegate=hooked(stage, "clearkey", lambda call: b"by the host"))
    assert licence(playback).data == b"by the host"
    playback.close(T)
    stage.settle()
    assert stage.events.types() == ["NO_SESSION", "LICENSE", "PLAYBACK_CLOSED"]
    assert stage.events.only(E.PLAYBACK_CLOSED).orphan_possible


# ---- error replies with a session token ------------------------------------------------------------------------------


def with_status(status: int) -> Fault:
    """Makes a fault with which the head-end executes the request, but sends the reply with an error status."""
    return Fault(f"processed, status {status}", edits=(lambda reply: dataclasses.replace(reply, status=status),))


ERRORS = {str(status): with_status(status) for status in (302, 400, 403, 500, 503)}


@pytest.mark.parametrize("fault", [*ERRORS.values(), Fault.fields(errorCode=1007, license=None)], ids=[*ERRORS, "1007"])
@pytest.mark.parametrize("in_header", [False, True], ids=["body", "header"])
def test_errorReplyWithAToken_thatShouldOpenASession_isTornDown(
    stage_factory: StageFactory, fault: Fault, in_header: bool
) -> None:
    """The server opens a session, but replies to the licence request with an error that has the session token. The
    licence request fails, and the close tears the session down."""
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    if in_header:
        settings = {"v2": V2(token_field=None, token_header="x-session")}
        options = {"token_reply_header": "x-session"}
    stage = stage_factory(headend=settings)
    stage.headend.faults.add("license", fault)
    playback = play(stage, "widevine", token_callback=lambda request: stage.headend.content_token(), **options)
    with pytest.raises(usher.UsherError) as caught:
        playback.get_license(SYSTEMS["widevine"], PAYLOAD["widevine"])
    assert not caught.value.orphan_possible
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license", "teardown"]
    assert not stage.events.only(E.PLAYBACK_CLOSED).orphan_possible


@pytest.mark.parametrize(
    "fault", [*ERRORS.values(), Fault.fields(errorCode=1007) | with_status(400)], ids=[*ERRORS, "1007"]
)
@pytest.mark.parametrize("closed", [False, True], ids=["", "closed meanwhile"])
def test_errorReplyToSetUp_withAToken_isTornDown(stage: Stage, fault: Fault, closed: bool) -> None:
    """The server opens a session, but replies to set-up with an error status. Set-up fails, and the close tears the
    session down with the token of the reply."""
    if closed:
        fault = fault | Fault.stall("after")
    stage.headend.faults.add("setup", fault)
    playback = stage.play(token_callback=lambda request: stage.headend.content_token())
    if closed:
        stage.headend.wait_held()
    else:
        stage.settle()
        assert not stage.events.error(E.SETUP_ERROR).orphan_possible
    playback.close()
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]
    assert not stage.events.only(E.PLAYBACK_CLOSED).orphan_possible
