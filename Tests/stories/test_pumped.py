"""Tests pumped mode: host code runs only inside pump(), and the library keeps sessions alive whether the host pumps or
not."""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import usher
from stage import CHALLENGE, REAL_TIMEOUT_S, Stage, StageFactory
from usher._c import abi, registry
from usher.testing.headend import Fault

E = usher.EventType
ANY = 2**32 - 1


KEPT: list[Any] = []
"""Function pointers that C may call until the process ends. So the test never releases them."""


class Witness:
    """Wraps callbacks. Records the thread of each call, and the thread that destroyed each callback object."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.dropped: list[tuple[str, int]] = []
        self.pumping = False
        self.outside: list[str] = []

    def __call__(self, name: str, function: Callable[..., Any] = lambda *arguments: None) -> Callable[..., Any]:
        witness = self

        class Callback:
            def __call__(self, *arguments: Any) -> Any:
                witness.calls.append((name, threading.get_ident()))
                if not witness.pumping:
                    witness.outside.append(name)
                return function(*arguments)

            def __del__(self) -> None:
                witness.dropped.append((name, threading.get_ident()))

        return Callback()

    def pump(self, context: usher.Context) -> int:
        self.pumping = True
        try:
            return context.pump()
        finally:
            self.pumping = False

    def threads(self) -> set[int]:
        return {thread for _, thread in [*self.calls, *self.dropped]}

    def elsewhere(self) -> list[str]:
        """Returns the callbacks that were called or destroyed on threads other than the calling thread."""
        me = threading.get_ident()
        return [name for name, thread in self.calls if thread != me] + [
            f"destroy of {name}" for name, thread in self.dropped if thread != me
        ]

    def names(self) -> set[str]:
        return {name for name, _ in self.calls}


@pytest.fixture
def destroys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[int]]:
    """Counts how often the library calls destroy for each user_data of the stages that are made after this fixture. At
    the end, no count may be above 1."""
    counted: Counter[int] = Counter()

    def destroy(number: int | None) -> None:
        counted[number or 0] += 1
        registry._entries.pop(number or 0)

    function = abi.DestroyFn(destroy)
    KEPT.append(function)
    monkeypatch.setattr(registry, "destroy", function)
    yield counted
    assert set(counted.values()) <= {1}, f"destroy ran more than once: {counted}"


@pytest.fixture
def pumped(stage_factory: StageFactory) -> Stage:
    return stage_factory(callbacks="pumped")


def advance_unpumped(stage: Stage, ms: int) -> None:
    """Moves both clocks but does not pump, so callbacks wait."""
    remaining = ms
    while True:
        stage.context.settle(0, ANY, 5000)
        if not remaining:
            return
        timer = stage.context.pending().next_timer_ms
        step = remaining if timer is None else min(remaining, timer)
        stage.headend.advance(step)
        stage.context.advance(step)
        remaining -= step


def readable(context: usher.Context, timeout_s: float = 0.0) -> bool:
    poll = select.poll()
    poll.register(context.pump_fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


# ---- the host's loop -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", ["poll", "select"])
def test_loop_ofOneThread_playsRenewsAndClosesAllInsidePump(stage_factory: StageFactory, waiting: str) -> None:
    witness = Witness()
    stage = stage_factory(headend={"enforced": {"clearkey"}})
    headend = stage.headend
    context = usher.Context(
        clock="manual", proxy="", callbacks="pumped", log=witness("log"), log_level=usher.LogLevel.DEBUG
    )
    fd = context.pump_fd
    events: list[usher.Event] = []
    context.add_observer(witness("observer", events.append))
    token = headend.content_token()
    delegate = usher.SSPDelegate(
        context,
        license_url=headend.license_url("clearkey"),
        ssm_url=headend.ssm_url,
        jitter_permille=usher.OFF,
        token_callback=witness("token", lambda request: token),
    )
    player = usher.Player(context)
    playback = player.play(
        delegate=delegate, payload=witness("payload", lambda request: CHALLENGE), renewed=witness("renewed")
    )
    licenses: list[usher.License] = []
    playback.request_license(
        usher.KeySystem.CLEARKEY,
        CHALLENGE,
        callback=witness("license", lambda future: licenses.append(future.result())),
    )

    def due() -> bool:
        if waiting == "select":
            return bool(select.select([fd], [], [], 0.02)[0])
        return readable(context, 0.02)

    deadline = time.monotonic() + 20
    while not any(event.type is E.PLAYBACK_CLOSED for event in events):
        assert time.monotonic() < deadline, [event.type.name for event in events]
        if due():
            assert witness.pump(context) > 0
            if sum(event.type is E.KEPT_ALIVE for event in events) == 2:
                playback.close()
        elif licenses:
            pending = context.pending()
            if pending.transfers == 0 and pending.callbacks == 0 and pending.next_timer_ms is not None:
                headend.advance(pending.next_timer_ms)
                context.advance(pending.next_timer_ms)
    assert headend.journal.routes() == ["setup", "license", "license-renewal", "license-renewal", "teardown"]
    assert licenses[0].clear_keys()
    assert witness.names() == {"log", "observer", "token", "payload", "renewed", "license"}
    assert not witness.outside
    player.close()
    delegate.close()
    context.close()
    assert witness.elsewhere() == []
    assert registry.count() == 2, "the log callback and the observer of the stage"


def test_pumpFd_isReadableJustWhileCallbacksAreDue(pumped: Stage) -> None:
    context = pumped.context
    pumped.settle()
    assert not readable(context)
    pumped.play()
    assert readable(context, 10)
    assert readable(context), "polling the descriptor must not reset it"
    pumped.settle()
    assert not readable(context)
    assert context.pump() == 0
    assert context.pump_fd == context.pump_fd


def test_callbackThatBecomesDueInAPump_waitsForTheNext(pumped: Stage) -> None:
    told: list[str] = []

    def observer(event: usher.Event) -> None:
        told.append(event.type.name)
        if event.type is E.SESSION_STARTED:
            pumped.context.add_observer(told.append).remove()  # its destroy is now due
            stop = time.monotonic() + 10
            while not readable(pumped.context) and time.monotonic() < stop:
                pass
            told.append("returned")

    pumped.context.add_observer(observer)
    pumped.play()
    context = pumped.context
    while "SESSION_STARTED" not in told:
        readable(context, 10)
        context.pump()
    assert told == ["SESSION_STARTED", "returned"]
    assert readable(context, 10)
    assert context.pump() >= 1


@pytest.mark.parametrize("what", ["pump", "pump_fd"])
def test_pump_ofAThreadedContext_isAStateError(stage: Stage, what: str) -> None:
    with pytest.raises(usher.StateError):
        stage.context.pump() if what == "pump" else stage.context.pump_fd


def test_pump_ofAFreedContext_isAnInvalidHandle(pumped: Stage) -> None:
    pumped.context.close()
    with pytest.raises(usher.InvalidHandleError):
        pumped.context.pump()
    with pytest.raises(usher.InvalidHandleError):
        _ = pumped.context.pump_fd


def test_callbacks_ofAnUnknownKind_areRefused(lib: Any) -> None:
    with pytest.raises((ValueError, KeyError)):
        usher.Context(callbacks="sometimes")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        usher.Context(callbacks=2)  # type: ignore[arg-type]


# ---- a host that does not pump ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("freed_by", ["this thread", "another"])
def test_pump_neverCalled_sessionLivesAndFreeRunsWhatIsDue(
    stage_factory: StageFactory, destroys: Counter[int], freed_by: str
) -> None:
    stage = stage_factory(callbacks="pumped")
    witness, told = Witness(), []
    stage.context.add_observer(witness("observer", lambda event: told.append(event.type.name)))
    stage.play()
    advance_unpumped(stage, 5 * 60_000)
    assert stage.routes() == ["setup"] + ["heartbeat"] * 5
    assert stage.headend.sessions.active()
    assert not told and not stage.events.types() and not stage.logs and not destroys
    if freed_by == "another":
        threads: list[int] = []
        stage.call(lambda: (threads.append(threading.get_ident()), stage.context.close())).result(20)
        freeing = threads[0]
    else:
        freeing = threading.get_ident()
        stage.context.close()
    assert told == ["SESSION_STARTED"] + ["KEPT_ALIVE"] * 5 + ["SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert witness.threads() == {freeing}
    assert witness.dropped
    assert registry.count() == 0, "every destroy has run when free returns"


def test_pump_notCalledWhile10000CallbacksWait_dropsKeptAliveAndLogsHowMany(pumped: Stage) -> None:
    """A host does not pump until 10,000 callbacks wait. The library then drops KEPT_ALIVE events and log lines, but no
    other events. After the host has pumped, the library logs how many it dropped, and reports KEPT_ALIVE events
    again."""
    told: Counter[str] = Counter()
    for _ in range(2_000):
        pumped.context.add_observer(lambda event: told.update([event.type.name]))
    pumped.play(tag="a")
    other = pumped.play(tag="b", player=usher.Player(pumped.context))
    advance_unpumped(pumped, 9 * 60_000)
    other.close()
    advance_unpumped(pumped, 60_000)
    assert 10_000 <= pumped.context.pending().callbacks < 20_000
    assert pumped.routes().count("heartbeat") == 9 * 2 + 1
    pumped.settle()
    kept = pumped.events.types("a").count("KEPT_ALIVE")
    assert 1 <= kept < 10
    assert pumped.events.types("b")[-2:] == ["SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert told["PLAYBACK_CLOSED"] == 2_000 and told["SESSION_STARTED"] == 2 * 2_000
    missing = 9 * 2 + 1 - len(pumped.events.all(E.KEPT_ALIVE))
    pumped.advance(60_000)
    sequences = [event.sequence for event in pumped.events.all()]
    assert max(sequences) - min(sequences) + 1 - len(sequences) == missing
    assert pumped.events.types("a").count("KEPT_ALIVE") == kept + 1
    (line,) = [line for line in pumped.logs if "log lines dropped" in line]
    assert int(line.split()[-1]) >= missing > 0


def test_blockingCalls_ofAThreadThatNeverPumped_needNoPump(pumped: Stage) -> None:
    playback = pumped.play()
    playback.wait_session()
    assert pumped.clear_keys(playback)
    assert not pumped.events.types()


def test_waitClosed_ofAnotherThread_needsNobodyToPump(pumped: Stage) -> None:
    playback = pumped.play()
    playback.close()
    pumped.call(playback.wait_closed).result(10)
    pumped.settle()
    assert pumped.events.types()[-1] == "PLAYBACK_CLOSED"


def test_tokenQuestion_neverPumped_endsAtItsDeadline(pumped: Stage) -> None:
    asked: list[usher.TokenRequest] = []
    delegate = pumped.delegate(token_callback=lambda request: asked.append(request) or usher.LATER)
    playback = pumped.player.play(delegate=delegate)
    advance_unpumped(pumped, 5_000)
    with pytest.raises(usher.NoTokenError):
        playback.wait_session()
    pumped.settle()
    for request in asked:
        with pytest.raises(usher.InvalidCompletionError):
            request.answer("too-late")


# ---- pumps in callbacks and on other threads -------------------------------------------------------------------------


def test_pump_insideACallback_isWouldDeadlock(pumped: Stage) -> None:
    found: list[type[BaseException]] = []

    def observer(event: usher.Event) -> None:
        if not pumped.context.closed:
            with pytest.raises(usher.WouldDeadlockError) as caught:
                pumped.context.pump()
            found.append(caught.type)

    pumped.context.add_observer(observer)
    pumped.play()
    pumped.settle()
    assert found == [usher.WouldDeadlockError]


def test_pump_fromTwoThreadsAtOnce_isAStateErrorForTheSecond(pumped: Stage) -> None:
    entered, gate = threading.Event(), threading.Event()

    def observer(event: usher.Event) -> None:
        entered.set()
        assert gate.wait(20)

    pumped.context.add_observer(observer)
    pumped.play()
    assert readable(pumped.context, 10)

    def pump_until_entered() -> int:
        ran = 0
        while not entered.is_set():
            readable(pumped.context, 0.05)
            ran += pumped.context.pump()
        return ran

    first = pumped.call(pump_until_entered)
    assert entered.wait(10)
    with pytest.raises(usher.StateError):
        pumped.context.pump()
    gate.set()
    assert first.result(10) >= 1
    pumped.settle()


def test_blockingCalls_onThePumpingThread_areWouldDeadlock(pumped: Stage) -> None:
    playback = pumped.play()
    pumped.settle()
    sync = pumped.delegate(sync_setup_teardown=True)
    for call in (
        lambda: playback.wait_session(),
        lambda: playback.wait_closed(10),
        lambda: playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE),
        lambda: playback.get_certificate(),
        lambda: pumped.player.play(delegate=sync),
    ):
        with pytest.raises(usher.WouldDeadlockError):
            call()
    assert pumped.routes() == ["setup"]
    asking = pumped.call(pumped.clear_keys, playback)
    assert asking.result(10), "a blocking call on another thread returns"
    with pytest.raises(usher.WouldDeadlockError):
        pumped.context.shutdown()
    pumped.settle()
    assert pumped.events.types()[-2:] == ["SESSION_ENDED", "PLAYBACK_CLOSED"], (
        "the refused shutdown() has begun to close the context"
    )


def test_pumpingThread_changes_withWhoeverPumpsLast(pumped: Stage) -> None:
    playback = pumped.play()
    pumped.settle()
    with pytest.raises(usher.WouldDeadlockError):
        playback.wait_session()
    pumped.call(pumped.context.pump).result(10)
    playback.wait_session()


SYNC_ENDS: dict[str, Callable[[Stage, usher.Playback], None]] = {
    "close": lambda stage, playback: playback.close(),
    "free": lambda stage, playback: playback.free(),
    "stop": lambda stage, playback: stage.player.stop(),
    "close of the player": lambda stage, playback: stage.player.close(),
}


@pytest.mark.parametrize("end", SYNC_ENDS)
def test_syncPlayback_onThePumpingThread_waitsForSetupAndTeardown(pumped: Stage, end: str) -> None:
    """The host pumps on its main thread, and sets sync_setup_teardown. play() returns when the session is set up, and
    every call that ends the playback returns when the session is torn down (SSM v1 page)."""
    pumped.context.pump()
    playback = pumped.play(sync_setup_teardown=True)
    assert playback.session_state is usher.SessionState.ACTIVE
    SYNC_ENDS[end](pumped, playback)
    assert pumped.routes() == ["setup", "teardown"]
    assert not pumped.headend.sessions.active()
    pumped.settle()
    assert pumped.events.types() == ["SESSION_STARTED", "SESSION_ENDED", "PLAYBACK_CLOSED"]


def test_syncPlay_onThePumpingThread_runsCallbacksWhileItWaits(pumped: Stage) -> None:
    """The host calls a sync play() on the pumping thread, and the head-end denies the content token. play() runs the
    token callback while it waits, and returns when the session is set up."""
    pumped.headend.faults.add("setup", Fault.error(1004, status=401))
    pumped.context.pump()
    asked: list[int] = []

    def token(request: usher.TokenRequest) -> str:
        asked.append(threading.get_ident())
        return pumped.headend.content_token()

    playback = pumped.play(sync_setup_teardown=True, token_callback=token)
    assert asked == [threading.get_ident()]
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close()


def test_syncPlay_beforeTheFirstPump_runsCallbacksOnTheThreadOfTheContext(stage_factory: StageFactory) -> None:
    """The host calls a sync play before its first pump, on the thread that made the context; play() runs the token
    callback while it waits, as on the pumping thread."""
    # This context uses the system clock. So if play() ran no callback, the call would end with a time-out, and the test
    # would fail.
    stage = stage_factory(callbacks="pumped", clock="system")
    stage.headend.faults.add("setup", Fault.error(1004, status=401))
    asked: list[int] = []

    def token(request: usher.TokenRequest) -> str:
        asked.append(threading.get_ident())
        return stage.headend.content_token()

    playback = stage.play(sync_setup_teardown=True, token_callback=token)
    assert asked == [threading.get_ident()]
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close()


def test_syncPlay_ofAnotherThreadBeforeTheFirstPump_runsNoCallbacks(pumped: Stage) -> None:
    """A thread that did not make the context calls a sync play before the first pump; play() waits and runs no
    callback on that thread."""
    playback = pumped.call(pumped.play, sync_setup_teardown=True).result(10)
    assert playback.session_state is usher.SessionState.ACTIVE
    assert pumped.events.types() == []
    pumped.settle()
    assert pumped.events.types() == ["SESSION_STARTED"]


@pytest.mark.parametrize("known", [True, False])
def test_syncPlay_ofAContentId_needsATokenInTheMap(stage_factory: StageFactory, known: bool) -> None:
    """The host plays by content identifier on the pumping thread. If the map has no token, the library refuses play(),
    because this thread could set the token only after play() has returned."""
    # This context uses the system clock. So if the library did not refuse play(), the call would end with a time-out,
    # and the test would fail.
    stage = stage_factory(callbacks="pumped", clock="system")
    delegate = stage.delegate(kind=usher.MultiInstanceDelegate, sync_setup_teardown=True)
    stage.context.pump()
    if known:
        delegate.tokens[b"film"] = stage.headend.content_token()
        playback = stage.player.play(delegate=delegate, content_id=b"film")
        assert playback.session_state is usher.SessionState.ACTIVE
        playback.close()
    else:
        with pytest.raises(usher.WouldDeadlockError):
            stage.player.play(delegate=delegate, content_id=b"film")
        assert stage.routes() == []


def test_syncPlay_ofAContentIdWithoutATokenMap_isRefused(stage_factory: StageFactory) -> None:
    """The host plays by content identifier on the pumping thread, with a delegate that has no token map. The library
    refuses play(), because it cannot find a token for the identifier."""
    stage = stage_factory(callbacks="pumped", clock="system")
    stage.context.pump()
    with pytest.raises(usher.WouldDeadlockError):
        stage.player.play(delegate=stage.delegate(sync_setup_teardown=True), content_id=b"film")
    assert stage.routes() == []


def test_syncPlay_onThePumpingThread_letsOnlyOneThreadPump(pumped: Stage) -> None:
    """While a sync play() waits on the pumping thread, the library refuses a pump on another thread; play() returns
    when the head-end replies."""
    pumped.headend.faults.add("setup", Fault.stall())
    refused: list[type[BaseException]] = []

    def second_thread() -> None:
        pumped.headend.wait_held()
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while not refused and time.monotonic() < deadline:  # play() may not have begun to pump
            try:
                pumped.context.pump()
            except usher.UsherError as error:
                refused.append(type(error))
            threading.Event().wait(0.002)
        pumped.headend.release()

    pumped.context.pump()
    other = pumped.call(second_thread)
    playback = pumped.play(sync_setup_teardown=True)
    other.result(10)
    assert refused == [usher.StateError]
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close()


@pytest.mark.callback_errors
def test_callbackThatRaises_isReportedAndTheNextRuns(pumped: Stage) -> None:
    def broken(event: usher.Event) -> None:
        raise ZeroDivisionError("mine")

    pumped.context.add_observer(broken)
    pumped.play()
    pumped.settle()
    assert pumped.events.types() == ["SESSION_STARTED"]
    assert [(name, type(error)) for name, error in pumped.callback_failures] == [("observer", ZeroDivisionError)]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupt_insideACallback_isRaisedByPump(pumped: Stage, kind: type[BaseException]) -> None:
    def interrupted(event: usher.Event) -> None:
        raise kind

    observer = pumped.context.add_observer(interrupted)
    pumped.play()
    with pytest.raises(kind):
        pumped.settle()
    observer.remove()
    pumped.settle()
    assert pumped.events.types() == ["SESSION_STARTED"], "the other callbacks that were due ran too"
    assert not pumped.callback_failures


# ---- closing and freeing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("callbacks", ["threaded", "pumped"])
@pytest.mark.parametrize("where", ["observer", "token", "license", "log"])
def test_context_closedInsideACallback_endsAndDestroysOnce(
    stage_factory: StageFactory, destroys: Counter[int], callbacks: Any, where: str
) -> None:
    headend = stage_factory().headend
    done, armed = threading.Event(), threading.Event()
    contexts: list[usher.Context] = []
    token = headend.content_token()

    def end(*arguments: Any) -> Any:
        if contexts and armed.is_set() and not done.is_set():
            done.set()
            contexts[0].close()
        return token

    def ends(name: str) -> Any:
        return end if name == where else (lambda *arguments: token)

    armed.set()
    context = usher.Context(
        clock="manual", proxy="", callbacks=callbacks, log=ends("log"), log_level=usher.LogLevel.DEBUG
    )
    contexts.append(context)
    context.add_observer(ends("observer"))
    delegate = usher.SSPDelegate(
        context,
        license_url=headend.license_url("clearkey"),
        ssm_url=headend.ssm_url,
        jitter_permille=usher.OFF,
        token_callback=ends("token"),
    )
    with contextlib.suppress(usher.ClosedError, usher.InvalidHandleError):
        playback = usher.Player(context).play(delegate=delegate)
        playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE, callback=ends("license"))
    deadline = time.monotonic() + 20
    others = 2  # the log callback and the observer of the stage
    while not done.is_set() or registry.count() > others:
        assert time.monotonic() < deadline, f"{registry.count()} not destroyed; {headend.journal.dump()}"
        if callbacks == "pumped" and not context.closed:
            context.pump()
        threading.Event().wait(0.002)
    assert not headend.sessions.active()
    with pytest.raises(usher.InvalidHandleError):
        context.add_observer(print)
    assert set(destroys.values()) == {1}


def test_context_freedInsideAPump_isDoneWhenThatPumpReturns(pumped: Stage, destroys: Counter[int]) -> None:
    context = pumped.context
    told: list[str] = []
    threads: set[int] = set()

    def observer(event: usher.Event) -> None:
        threads.add(threading.get_ident())
        told.append(event.type.name)
        if event.type is E.SESSION_STARTED:
            context.close()
            told.append("close returned")

    context.add_observer(observer)
    pumped.play()
    while not context.closed:
        readable(context, 10)
        context.pump()
    assert told == ["SESSION_STARTED", "close returned", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert threads == {threading.get_ident()}
    assert registry.count() == 0
    assert pumped.routes() == ["setup", "teardown"]


def test_context_freedWhileAnotherThreadPumps_hasNoCallbackAfterReturn(pumped: Stage) -> None:
    entered, gate, left = threading.Event(), threading.Event(), threading.Event()

    def observer(event: usher.Event) -> None:
        if event.type is E.SESSION_STARTED:
            entered.set()
            assert gate.wait(20)
            left.set()

    pumped.context.add_observer(observer)
    pumped.play()

    def pump() -> None:
        while not entered.is_set():
            readable(pumped.context, 0.05)
            pumped.context.pump()

    pumping = pumped.call(pump)
    assert entered.wait(10)
    closing = pumped.call(pumped.context.close)
    was_waiting = all(pumped.still_waiting(closing) for _ in range(20))
    gate.set()
    pumping.result(20)
    closing.result(20)
    assert was_waiting, "close() returned while a callback ran"
    assert left.is_set()


def test_contexts_twoPumpedByOneThread_areIndependent(stage_factory: StageFactory) -> None:
    one, two = stage_factory(callbacks="pumped"), stage_factory(callbacks="pumped")
    one.play()
    two.play()
    one.settle()
    assert one.events.types() == ["SESSION_STARTED"] and two.events.types() == []
    two.settle()
    assert two.events.types() == ["SESSION_STARTED"]
    assert one.context.pump_fd != two.context.pump_fd


def test_contexts_pumpedAndThreaded_doNotMix(stage_factory: StageFactory) -> None:
    pumped, threaded = stage_factory(callbacks="pumped"), stage_factory()
    pumped.play()
    pumped.settle()
    playback = threaded.play()
    playback.wait_session()
    assert threaded.clear_keys(playback), "the pumping thread may block on another context, which has threads"
