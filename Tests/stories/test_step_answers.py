"""Tests answers to a hook of a licence request: later, after the deadline, twice, from another thread, with an invalid
value, and by an exception.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

import usher
from stage import CHALLENGE, HEADER, KEY, KID, Stage, StageFactory
from usher._c import ffi
from usher.testing.headend import Fault

E = usher.EventType
CLEARKEY = usher.KeySystem.CLEARKEY
STEPS = ["content_identifier", "certificate", "http_headers", "license_url", "license_body", "license_from_reply"]
LICENSE_STEPS = STEPS[2:]


@pytest.fixture
def stage(stage_factory: StageFactory) -> Stage:
    """A stage whose licences need no session."""
    return stage_factory(headend={"ssm_required": "never"})


class Kept:
    """Stores the calls of one hook, so that the story can answer them later."""

    def __init__(
        self, stage: Stage, step: str, base: type[usher.HTTPDelegate] = usher.CommonDelegate, **options: Any
    ) -> None:
        self.calls: list[usher.HookCall[Any]] = []
        self.came = threading.Event()

        def keep(delegate: usher.HTTPDelegate, call: usher.HookCall[Any]) -> Any:
            self.calls.append(call)
            self.came.set()
            return usher.LATER

        options.setdefault("license_url", stage.headend.license_url("clearkey"))
        options.setdefault("certificate_url", stage.headend.certificate_url("fairplay"))
        self.delegate: usher.HTTPDelegate = type("Keeping", (base,), {step: keep})(stage.context, **options)
        self.step = step
        self.stage = stage

    def play(self) -> usher.Playback:
        playback = self.stage.player.play(self.stage.headend.content_token(), delegate=self.delegate)
        self.stage._playbacks.append(playback)
        return playback

    def ask(self, playback: usher.Playback) -> Future[Any]:
        """Starts a request that calls the hook, and returns the future of the request."""
        if self.step == "content_identifier":
            return playback.request_content_id("skd://movie")
        if self.step == "certificate":
            return playback.request_certificate()
        return playback.request_license(CLEARKEY, CHALLENGE)

    def good(self) -> Any:
        """Returns a valid answer for the hook."""
        made = {
            "http_headers": {HEADER: self.stage.headend.content_token()},
            "license_url": self.stage.headend.license_url("clearkey"),
        }
        return made.get(self.step, CHALLENGE)


# ---- later -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_step_answeredLaterFromAnotherThread_goesOn(stage: Stage, step: str) -> None:
    """A hook may answer later, from any thread; only the request of this hook waits for the answer
    (protocol.md: Licences; delegates.md: Hooks)."""
    kept = Kept(stage, step)
    playback = kept.play()
    future = kept.ask(playback)
    stage.settle()
    assert (future.done(), kept.calls[0].answered) == (False, False)
    stage.call(kept.calls[0].answer, kept.good()).result(10)
    assert future.result(10)
    assert kept.calls[0].answered


@pytest.mark.parametrize("step", LICENSE_STEPS)
def test_step_thatIsSlow_doesNotHoldUpAnotherPlayback(stage: Stage, step: str) -> None:
    """A slow hook of one playback does not delay the licence of another playback (delegates.md: Token map)."""
    kept = Kept(stage, step)
    first = kept.ask(kept.play())
    stage.settle()
    other = stage.play(delegate=stage.delegate(ssm_url=None), player=usher.Player(stage.context))
    assert stage.clear_keys(other) == {KID: KEY}
    assert not first.done()
    kept.calls[0].answer(kept.good())
    assert first.result(10)


def test_step_thatBlocks_doesNotHoldUpHeartbeats(stage_factory: StageFactory) -> None:
    """A hook that blocks does not delay the heartbeats of its playback: hooks and heartbeats run on different threads
    (delegates.md: Hooks)."""
    stage = stage_factory()
    go = threading.Event()

    class Blocking(usher.SSPDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str]:
            assert go.wait(10)
            return call.builtin()

    delegate = stage.delegate(kind=Blocking, hook_timeout_ms=300_000)
    playback = stage.play(delegate=delegate)
    stage.settle()
    future = playback.request_license(CLEARKEY, CHALLENGE, timeout_ms=usher.OFF)
    stage.held_callbacks = 3  # the hook that blocks, and the events queued after it
    stage.advance(120_000)
    assert stage.routes() == ["setup", "heartbeat", "heartbeat"]
    go.set()
    assert future.result(10).clear_keys() == {KID: KEY}
    stage.held_callbacks = 0


def test_step_thatAnswersWithAFuture_isWaitedFor(stage: Stage) -> None:
    """A hook may return a concurrent.futures.Future; the library waits for it."""
    answer: Future[dict[str, str]] = Future()

    class Own(usher.CommonDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> Future[dict[str, str]]:
            return answer

    playback = stage.player.play(delegate=Own(stage.context, license_url=stage.headend.license_url("clearkey")))
    future = playback.request_license(CLEARKEY, CHALLENGE)
    stage.settle()
    assert not future.done()
    answer.set_result({HEADER: stage.headend.content_token()})
    assert future.result(10).clear_keys() == {KID: KEY}


# ---- too late, twice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_step_withoutAnAnswerInTime_timesOut(stage: Stage, step: str) -> None:
    """A hook must answer within `hook_timeout_ms`, 5 s by default; a later answer gets an error and has no effect
    (protocol.md: Races)."""
    kept = Kept(stage, step)
    playback = kept.play()
    future = kept.ask(playback)
    stage.advance(4_999)
    assert not future.done()
    stage.advance(1)
    error = future.exception(10)
    assert type(error) is usher.UsherTimeoutError
    assert error.__cause__ is None
    routes = stage.routes()
    for late in (
        lambda: kept.calls[0].answer(kept.good()),
        kept.calls[0].fail,
        kept.calls[0].answer_builtin,
        kept.calls[0].builtin,
    ):
        with pytest.raises(usher.InvalidCompletionError):
            late()
    stage.settle()
    assert stage.routes() == routes


def test_step_withATimeOfItsOwn_timesOutThen(stage: Stage) -> None:
    """`hook_timeout_ms` sets the time in which a hook must answer."""
    kept = Kept(stage, "http_headers", hook_timeout_ms=700)
    future = kept.ask(kept.play())
    stage.advance(699)
    assert not future.done()
    stage.advance(1)
    assert type(future.exception(10)) is usher.UsherTimeoutError
    assert stage.routes() == []


@pytest.mark.parametrize("step", STEPS)
def test_step_answeredTwice_takesTheFirst(stage: Stage, step: str) -> None:
    """A host answers a hook twice: the first answer counts, and the second one gets InvalidCompletionError
    (protocol.md: Races)."""
    kept = Kept(stage, step)
    future = kept.ask(kept.play())
    stage.settle()
    call = kept.calls[0]
    call.answer(kept.good())
    for again in (lambda: call.answer(kept.good()), call.fail, call.answer_builtin, call.builtin):
        with pytest.raises(usher.InvalidCompletionError):
            again()
    assert future.result(10)


def test_step_answeredByManyThreadsAtOnce_takesOne(stage: Stage) -> None:
    """Eight threads answer at the same time: the first answer counts; every other answer gets InvalidCompletionError
    (protocol.md: Races)."""
    kept = Kept(stage, "http_headers")
    future = kept.ask(kept.play())
    stage.settle()
    token, outcomes, barrier = stage.headend.content_token(), [], threading.Barrier(8)

    def answer(number: int) -> None:
        barrier.wait(10)
        try:
            kept.calls[0].answer({HEADER: token, "X-Number": str(number)})
            outcomes.append(number)
        except usher.InvalidCompletionError:
            outcomes.append(-1)

    threads = [threading.Thread(target=answer, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert future.result(10).clear_keys() == {KID: KEY}
    winners = [number for number in outcomes if number >= 0]
    assert (len(outcomes), len(winners)) == (8, 1)
    assert [entry.header("x-number") for entry in stage.sent("license")] == [str(winners[0])]


# ---- after playback or context ended ---------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_step_answeredAfterThePlaybackWasClosedAndFreed_doesNothing(stage: Stage, step: str) -> None:
    """When a playback closes, its open questions to hooks end; a later answer gets an error (protocol.md: Races)."""
    kept = Kept(stage, step)
    playback = kept.play()
    future = kept.ask(playback)
    stage.settle()
    playback.close()
    assert type(future.exception(10)) is usher.ClosedError
    playback.free()
    routes = stage.routes()
    with pytest.raises(usher.InvalidCompletionError):
        kept.calls[0].answer(kept.good())
    stage.settle()
    assert stage.routes() == routes


@pytest.mark.parametrize("step", STEPS)
def test_step_answeredAfterTheContextIsGone_doesNothing(stage: Stage, step: str) -> None:
    """The library never uses a completion id again: after the context was freed, it refuses an answer with an old
    id."""
    kept = Kept(stage, step)
    future = kept.ask(kept.play())
    stage.settle()
    good = kept.good()
    stage.close()
    assert type(future.exception(10)) is usher.ClosedError
    for late in (lambda: kept.calls[0].answer(good), kept.calls[0].fail, kept.calls[0].builtin):
        with pytest.raises(usher.InvalidCompletionError):
            late()


def test_step_ofAZappedPlayback_isEndedWithIt(stage: Stage) -> None:
    """On a zap the library ends the questions of the old item, but not those of the new item (protocol.md: Races)."""
    kept = Kept(stage, "http_headers")
    first = kept.ask(kept.play())
    stage.settle()
    second = kept.ask(kept.play())
    assert isinstance(first.exception(10), usher.ClosedError)
    stage.settle()
    kept.calls[1].answer(kept.good())
    assert second.result(10).clear_keys() == {KID: KEY}
    assert len(stage.sent("license")) == 1


def test_delegate_closedWhileItsStepIsAsked_goesOn(stage: Stage) -> None:
    """After the host has freed the delegate's handle, the library still calls the hooks of the delegate for playbacks
    that use it (protocol.md: When it fails)."""
    kept = Kept(stage, "http_headers")
    playback = kept.play()
    future = kept.ask(playback)
    stage.settle()
    kept.delegate.close()
    kept.calls[0].answer(kept.good())
    assert future.result(10).clear_keys() == {KID: KEY}
    again = kept.ask(playback)
    stage.settle()
    kept.calls[1].answer(kept.good())
    assert again.result(10).clear_keys() == {KID: KEY}


def test_delegate_nobodyKeeps_livesAsLongAsItsPlayback(stage: Stage) -> None:
    """The Python object with the hooks lives as long as a playback uses it; then the garbage collector frees it
    (protocol.md: When it fails)."""

    class Own(usher.CommonDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str]:
            return call.builtin()

    delegate = Own(stage.context, license_url=stage.headend.license_url("clearkey"))
    gone = weakref.ref(delegate)
    playback = stage.player.play(stage.headend.content_token(), delegate=delegate)
    del delegate
    gc.collect()
    assert stage.clear_keys(playback) == {KID: KEY}
    playback.close()
    stage.settle()
    stage.events.clear()
    gc.collect()
    assert gone() is None


def test_delegate_thatRefersToItself_isCollected(stage: Stage) -> None:
    """The bindings hold no reference to a delegate that no playback uses, so Python's garbage collector frees it,
    even if the delegate refers to itself."""

    class Own(usher.SSPDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str]:
            return call.builtin()

    delegate = Own(stage.context, license_url=stage.headend.license_url("clearkey"))
    delegate.itself = delegate  # type: ignore[attr-defined]
    gone = weakref.ref(delegate)
    del delegate
    gc.collect()
    assert gone() is None


# ---- invalid answers -------------------------------------------------------------------------------------------------

NONSENSE: dict[str, list[Any]] = {
    "content_identifier": [b"", "text", 7, b"x" * (2**20 + 1)],
    "certificate": [b"", "text", object()],
    "http_headers": [
        "X: y",
        7,
        {"X": 7},
        {7: "x"},
        {"": "x"},
        {"a b": "x"},
        {"X": "a\nInjected: 1"},
        {"X": "a\r"},
        {"X": "a\0b"},
        {"X\nInjected": "1"},
        {"X: a": "b"},
        {"X": "y" * 70_000},
    ],
    "license_url": [
        "",
        "not a URL",
        "ftp://127.0.0.1/",
        "http://tenant.example.invalid/",
        b"http://127.0.0.1/",
        "http://127.0.0.1/\0",
        7,
    ],
    "license_body": [b"", "text", 7, {}, b"x" * (2**20 + 1)],
    "license_from_reply": [b"", "text", None.__class__, b"x" * (2**20 + 1)],
}


@pytest.mark.callback_errors
@pytest.mark.parametrize(
    ("step", "answer"),
    [(step, answer) for step, answers in NONSENSE.items() for answer in answers],
    ids=lambda v: repr(v)[:40],
)
def test_step_thatAnswersNonsense_failsWithItsReason(stage: Stage, step: str, answer: Any) -> None:
    """The library refuses an invalid answer of a hook. The request fails without being sent (unless the hook reads the
    reply), and the `__cause__` of its error says why the answer is invalid (delegates.md: Hooks)."""
    kept = Kept(stage, step)
    setattr(type(kept.delegate), step, lambda delegate, call: answer)
    error = kept.ask(kept.play()).exception(10)
    assert type(error) is (usher.DeclinedError if step == "http_headers" else usher.CallbackError)
    assert isinstance(error.__cause__, (TypeError, AttributeError, usher.InvalidArgumentError))
    assert [name for name, _ in stage.callback_failures] == [step]
    stage.settle()
    assert not [entry for entry in stage.headend.journal if entry.header("injected")]
    assert len(stage.sent("license")) == (step == "license_from_reply")


def test_step_refusedAnswer_leavesTheQuestionOpen(stage: Stage) -> None:
    """After an invalid answer the question stays open, so that the hook can give a valid one."""
    kept = Kept(stage, "license_url")
    future = kept.ask(kept.play())
    stage.settle()
    for nonsense in ("", "no URL", "http://tenant.example.invalid/"):
        with pytest.raises(usher.InvalidArgumentError):
            kept.calls[0].answer(nonsense)
    assert not future.done()
    kept.calls[0].answer(kept.good())
    assert future.result(10).clear_keys() == {KID: KEY}


@pytest.mark.parametrize("step", [step for step in STEPS if step != "http_headers"])
def test_step_none_failsTheRequest(stage: Stage, step: str) -> None:
    """If a hook other than the headers hook answers None, its request fails with CallbackError
    (delegates.md: Hooks)."""
    kept = Kept(stage, step)
    setattr(type(kept.delegate), step, lambda delegate, call: None)
    error = kept.ask(kept.play()).exception(10)
    assert type(error) is usher.CallbackError
    assert error.__cause__ is None


class StepError(Exception):
    """Raised by the host's code."""


@pytest.mark.callback_errors
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("how", ["raises", "fails later", "future"])
def test_step_thatRaises_isTheCauseOfTheFailure(stage: Stage, step: str, how: str) -> None:
    """If a hook raises an exception, the request fails, and the exception is the `__cause__` of the error."""
    raised = StepError("mine")

    def broken(delegate: Any, call: usher.HookCall[Any]) -> Any:
        if how == "raises":
            raise raised
        if how == "future":
            future: Future[Any] = Future()
            future.set_exception(raised)
            return future
        call.fail(raised)
        return None

    kept = Kept(stage, step)
    setattr(type(kept.delegate), step, broken)
    playback = kept.play()
    error = kept.ask(playback).exception(10)
    assert type(error) is (usher.DeclinedError if step == "http_headers" else usher.CallbackError)
    assert error.__cause__ is raised
    stage.settle()
    if step in LICENSE_STEPS:
        assert stage.events.error(E.LICENSE_ERROR).__cause__ is raised
    call: Callable[[], object] = {
        "content_identifier": lambda: playback.get_content_id("skd://movie"),
        "certificate": playback.get_certificate,
    }.get(step, lambda: playback.get_license(CLEARKEY, CHALLENGE))
    with pytest.raises(type(error)) as caught:
        call()
    assert caught.value.__cause__ is raised


def test_headersQuestion_answeredAsBytes_isRefused(stage: Stage, lib: Any) -> None:
    """The library refuses an answer of the wrong kind: headers need usher_complete_headers(), other hooks
    usher_complete_hook()."""
    headers, body = Kept(stage, "http_headers"), Kept(stage, "license_body")
    second = usher.Player(stage.context).play("token", delegate=body.delegate)
    futures = [headers.ask(headers.play()), body.ask(second)]
    stage.settle()
    with pytest.raises(usher.InvalidCompletionError):
        lib.usher_complete_hook(headers.calls[0]._completion, ffi.c_bytes(b"X: y"), 4)
    with pytest.raises(usher.InvalidCompletionError):
        lib.usher_complete_headers(body.calls[0]._completion, b"X: y")
    with pytest.raises(usher.InvalidCompletionError):
        lib.usher_complete_token(body.calls[0]._completion, b"token")
    assert not any(future.done() for future in futures)
    headers.calls[0].answer(headers.good())
    assert futures[0].result(10).clear_keys() == {KID: KEY}


# ---- with sessions ---------------------------------------------------------------------------------------------------


def test_headersStep_declinedWithSsm_leavesTheSessionAlone(stage_factory: StageFactory) -> None:
    """If the headers hook declines, the library sends no licence request, but the session continues, and the next
    request can use it (delegates.md: Hooks)."""
    stage = stage_factory()
    answers: list[Any] = [None]

    class Own(usher.SSPDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> Any:
            return answers.pop() if answers else call.builtin()

    delegate = stage.delegate(kind=Own)
    playback = stage.play(delegate=delegate)
    stage.settle()
    with pytest.raises(usher.DeclinedError):
        stage.clear_keys(playback)
    assert playback.session_state is usher.SessionState.ACTIVE
    assert stage.clear_keys(playback) == {KID: KEY}
    stage.advance(60_000)
    assert stage.routes() == ["setup", "license", "heartbeat"]


@pytest.mark.callback_errors
@pytest.mark.breaks_rules("late-beat")
def test_renewalOfTheLibrary_whoseStepFails_isAKeepAliveThatFailed(stage_factory: StageFactory) -> None:
    """In enforced mode, a renewal that a hook prevents is a failed keep-alive: the library retries it, and then reports
    a heartbeat error (protocol.md: Races)."""
    stage = stage_factory(headend={"enforced": {"clearkey"}, "grace": 10.0})
    broken = [True]

    class Own(usher.SSPDelegate):
        def license_body(self, call: usher.HookCall[bytes]) -> Any:
            if call.type is usher.LicenseType.RENEWAL and broken[0]:
                raise StepError("mine")
            return call.builtin()

    delegate = stage.delegate(kind=Own)
    playback = stage.play(delegate=delegate, payload=lambda request: CHALLENGE)
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(125_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert type(error.__cause__) is StepError
    broken[0] = False
    stage.advance(60_000)
    assert "RECOVERED" in stage.events.types()
    assert stage.routes()[:3] == ["setup", "license", "license-renewal"]


@pytest.mark.parametrize("is_closed", [False, True])
def test_step_answeredAfterItsRequestWasGivenUp_sendsNothing(stage_factory: StageFactory, is_closed: bool) -> None:
    """A licence request times out, or the playback closes, before the hook has answered. The library never sends this
    request. After a time-out, the next licence request succeeds (protocol.md: Races)."""
    stage = stage_factory()
    kept = Kept(
        stage,
        "license_url",
        usher.SSPDelegate,
        ssm_url=stage.headend.ssm_url,
        jitter_permille=usher.OFF,
        hook_timeout_ms=60_000,
    )
    playback = kept.play()
    stage.settle()
    future = playback.request_license(CLEARKEY, CHALLENGE, timeout_ms=1000)
    stage.advance(0 if is_closed else 1000)
    if is_closed:
        playback.close()
        assert type(future.exception(10)) is usher.ClosedError
        stage.settle()
    else:
        assert type(future.exception(10)) is usher.UsherTimeoutError
        kept.calls[0].answer(kept.good())
        stage.settle()
        again = kept.ask(playback)
        stage.settle()
        kept.calls[1].answer(kept.good())
        assert again.result(10).clear_keys() == {KID: KEY}
    assert stage.routes() == (["setup", "teardown"] if is_closed else ["setup", "license"])


def test_renewal_declinedByTheHeadersStep_isTriedAgain(stage_factory: StageFactory) -> None:
    """If the headers hook gives no headers, the library does not send the renewal. It tries the renewal again within
    the same period, and the session continues (delegates.md: Hooks; protocol.md: Races)."""
    stage = stage_factory(headend={"enforced": {"clearkey"}, "beat_tolerance_ms": 1_000})
    answers: list[Any] = []

    class Own(usher.SSPDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> Any:
            return answers.pop() if answers else call.builtin()

    delegate = stage.delegate(kind=Own)
    playback = stage.play(delegate=delegate, payload=lambda request: CHALLENGE)
    stage.settle()
    stage.clear_keys(playback)
    answers.append(None)
    stage.advance(60_000)
    assert stage.routes() == ["setup", "license"]
    stage.advance(1_000)
    assert stage.routes() == ["setup", "license", "license-renewal"]
    assert "HEARTBEAT_ERROR" not in stage.events.types()


def held_step(stage: Stage, step: str) -> tuple[Kept, Future[usher.License]]:
    """Starts a session and a licence request that waits for this hook. Returns the calls of the hook, and the future of
    the licence. Meanwhile the test can let heartbeats replace the session token."""
    session = {"ssm_url": stage.headend.ssm_url, "jitter_permille": usher.OFF}
    kept = Kept(stage, step, usher.SSPDelegate, hook_timeout_ms=300_000, **session)
    playback = kept.play()
    stage.settle()
    return kept, playback.request_license(CLEARKEY, CHALLENGE, timeout_ms=usher.OFF)


def test_licenceStep_whileTheSessionTokenIsReplaced_goesOutWithTheNewest(stage_factory: StageFactory) -> None:
    """If a heartbeat replaces the session token while a hook runs, the request after the hook carries the new token
    (protocol.md: The session)."""
    stage = stage_factory()
    kept, future = held_step(stage, "license_body")
    stage.advance(60_000)
    assert stage.routes() == ["setup", "heartbeat"]
    kept.calls[0].answer(CHALLENGE)
    assert future.result(10).clear_keys() == {KID: KEY}
    assert stage.seqs() == [("setup", None), ("heartbeat", 1), ("license", 2)]


def test_headersStep_whileTheSessionTokenIsReplaced_canGetTheNewest(stage_factory: StageFactory) -> None:
    """The built-in headers have the session token that is the newest one when the hook asks for these headers
    (protocol.md: The session; delegates.md: Hooks)."""
    stage = stage_factory()
    kept, future = held_step(stage, "http_headers")
    stage.advance(120_000)
    kept.calls[0].answer(kept.calls[0].builtin())
    assert future.result(10).clear_keys() == {KID: KEY}
    assert stage.seqs() == [("setup", None), ("heartbeat", 1), ("heartbeat", 2), ("license", 3)]


@pytest.mark.breaks_rules("stale-token")
def test_headersStep_thatAnswersWithAReplacedToken_isAskedAgain(stage_factory: StageFactory) -> None:
    """If the hook answered with an old session token and the server denies it, the library calls the hook again and
    sends the request once more (protocol.md: The session)."""
    stage = stage_factory()
    kept, future = held_step(stage, "http_headers")
    stage.settle()
    old = kept.calls[0].builtin()
    stage.advance(60_000)
    kept.calls[0].answer(old)
    stage.settle()
    assert [entry.status for entry in stage.sent("license")] == [400]
    kept.calls[1].answer(kept.calls[1].builtin())
    assert future.result(10).clear_keys() == {KID: KEY}
    assert stage.seqs() == [("setup", None), ("heartbeat", 1), ("license", 1), ("license", 2)]


def test_reply_ofABigLicence_isToldWhole(stage: Stage) -> None:
    """The hook gets the complete reply, byte for byte."""
    body = bytes(range(256)) * 2000
    told: list[bytes] = []

    class Own(usher.CommonDelegate):
        def license_from_reply(self, call: usher.HookCall[bytes]) -> bytes:
            told.append(call.data or b"")
            return (call.data or b"")[::-1]

    stage.headend.faults.add("license", Fault.reply(200, body=body))
    playback = stage.player.play(
        stage.headend.content_token(), delegate=Own(stage.context, license_url=stage.headend.license_url("clearkey"))
    )
    assert playback.get_license(CLEARKEY, CHALLENGE).data == body[::-1]
    assert told == [body]
