"""Tests usher.aio on virtual time: awaited calls, coroutine callbacks, cancelled tasks."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import usher
from stage import CHALLENGE
from stage.aio import KEY, KID, AioStage, story
from usher.testing.headend import Fault, HeadEnd

E = usher.EventType
ANY = 2**32 - 1


# ---- a whole playback ------------------------------------------------------------------------------------------------


@story
async def test_aio_playedKeptAliveAndClosed_isTheUsualOrder(stage: AioStage) -> None:
    me, threads = threading.get_ident(), set()

    async def token(request: usher.aio.TokenRequest) -> str:
        threads.add(threading.get_ident())
        assert request.tag == "mine" and request.playback is not None
        await asyncio.sleep(0.001)
        return stage.headend.content_token()

    stage.context.add_observer(lambda event: threads.add(threading.get_ident()))
    stream = stage.context.events()
    seen: list[usher.aio.Event] = []

    async def read() -> None:
        async for event in stream:
            seen.append(event)

    reading = asyncio.create_task(read())
    async with (
        usher.aio.Player(stage.context) as player,
        await player.play(delegate=stage.delegate(token_callback=token), tag="mine") as playback,
    ):
        await playback.wait_session()
        license = await playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE)
        assert license.clear_keys() == {KID: KEY}
        await stage.advance(120_000)
        assert playback.session_state is usher.SessionState.ACTIVE
    await playback.wait_closed()
    assert stage.routes() == ["setup", "license", "heartbeat", "heartbeat", "teardown"]
    await stage.context.close()
    await reading
    names = [event.type.name for event in seen]
    assert names == ["SESSION_STARTED", "LICENSE", "KEPT_ALIVE", "KEPT_ALIVE", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert all(event.playback is playback and event.player is player and event.tag == "mine" for event in seen)
    assert threads == {me}


@story(headend={"enforced": {"clearkey"}})
async def test_payloadAndRenewed_asCoroutines_renew(stage: AioStage) -> None:
    renewed: list[tuple[usher.aio.Playback, usher.License]] = []

    async def payload(request: usher.aio.PayloadRequest) -> bytes:
        await asyncio.sleep(0)
        assert request.playback is playback
        assert request.key_system == usher.KeySystem.CLEARKEY.value
        return CHALLENGE

    async def told(playback: usher.aio.Playback, license: usher.License) -> None:
        await asyncio.sleep(0)
        renewed.append((playback, license))

    playback = await stage.play(payload=payload, renewed=told)
    await playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    await stage.advance(120_000)
    assert stage.routes() == ["setup", "license", "license-renewal", "license-renewal"]
    assert [one is playback and license.type for one, license in renewed] == [usher.LicenseType.RENEWAL] * 2


@story
async def test_loop_busyForMinutes_sessionIsKeptAlive(stage: AioStage) -> None:
    await (await stage.play()).wait_session()
    for _ in range(3):  # the body has no await, so the event loop does not run
        stage.context.blocking.settle(0, ANY, 5000)
        stage.headend.advance(60_000)
        stage.context.blocking.advance(60_000)
    stage.context.blocking.settle(0, ANY, 5000)
    assert stage.routes() == ["setup"] + ["heartbeat"] * 3
    assert stage.types() == ["SESSION_STARTED"]
    await stage.settle()
    assert stage.types() == ["SESSION_STARTED"] + ["KEPT_ALIVE"] * 3


# ---- waiting for the session -----------------------------------------------------------------------------------------


@story
async def test_waitSession_forManyTasks_endsForAll(stage: AioStage) -> None:
    stage.headend.faults.add("setup", Fault.error(1003))
    playback = await stage.play()
    waits = [asyncio.create_task(playback.wait_session()) for _ in range(3)]
    found = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(error) for error in found] == [usher.RefusedError] * 3
    assert len({id(error) for error in found}) == 3
    with pytest.raises(usher.RefusedError):
        await playback.wait_session()


@story(headend={"limit": 1})
async def test_waitSession_overTheLimit_isALimitError(stage: AioStage) -> None:
    await (await stage.play()).wait_session()
    second = await stage.play(usher.aio.Player(stage.context))
    with pytest.raises(usher.LimitError) as caught:
        await second.wait_session()
    assert (caught.value.service_code, caught.value.must_stop) == (1007, True)


@story
async def test_waitSession_ofASessionThatWasKilled_saysWhy(stage: AioStage) -> None:
    playback = await stage.play()
    await playback.wait_session()
    stage.headend.kill_account("account-1")
    await stage.advance(60_000)
    with pytest.raises(usher.RefusedError) as caught:
        await playback.wait_session()
    assert caught.value.operation is usher.Operation.HEARTBEAT


@story
async def test_waitSession_withoutASessionManager_returns(stage: AioStage) -> None:
    token = stage.headend.content_token(session_control=False)
    playback = await stage.player.play(token, delegate=stage.delegate(ssm_url=None))
    await playback.wait_session()
    await stage.settle()
    assert playback.session_state is usher.SessionState.NONE


@story
async def test_waitSession_closedOrReplacedFirst_saysWhich(stage: AioStage) -> None:
    stage.headend.faults.add("setup", Fault.stall())
    first = await stage.play()
    await stage.held()
    between = await stage.play()
    waiting = asyncio.create_task(between.wait_session())
    await asyncio.sleep(0)
    last = await stage.play()
    with pytest.raises(usher.ReplacedError):
        await waiting
    closing = asyncio.create_task(last.close())
    with pytest.raises(usher.ClosedError):
        await last.wait_session()
    stage.headend.release()
    await closing
    await first.wait_closed()
    with pytest.raises(usher.ClosedError):
        await first.wait_session()


@story
async def test_zapAndStop_waitForWhatTheyClosed(stage: AioStage) -> None:
    first = await stage.play()
    await first.wait_session()
    second = await stage.play()
    await first.wait_closed()
    await second.wait_session()
    await stage.player.stop()
    assert stage.routes() == ["setup", "teardown", "setup", "teardown"]
    await stage.player.stop()
    await stage.player.close()
    await stage.player.close()


# ---- licences and certificates ---------------------------------------------------------------------------------------


@story
async def test_getCertificate_isTheServersOrAnError(stage: AioStage) -> None:
    url = stage.headend.certificate_url("fairplay")
    stage.headend.faults.add("certificate", Fault.status(500))
    playback = await stage.play(delegate=stage.delegate(certificate_url=url))
    with pytest.raises(usher.HTTPStatusError):
        await playback.get_certificate()
    assert (await playback.get_certificate())[:2] == b"\x30\x82"
    without = await stage.play(usher.aio.Player(stage.context))
    with pytest.raises(usher.StateError):
        await without.get_certificate()


@story
async def test_getLicense_onAStalledServer_timesOutOnTheContextsClock(stage: AioStage) -> None:
    playback = await stage.play()
    await playback.wait_session()
    stage.headend.faults.add("license", Fault.stall())
    asking = asyncio.create_task(playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE, timeout_ms=4_000))
    await stage.held()
    await stage.advance(3_999)
    assert not asking.done()
    await stage.advance(1)
    with pytest.raises(TimeoutError):
        await asking


@story
async def test_manyLicenses_atOnce_allArrive(stage: AioStage) -> None:
    playback = await stage.play()
    licenses = await asyncio.gather(*(playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE) for _ in range(20)))
    assert all(license.clear_keys() == {KID: KEY} for license in licenses)


@story
async def test_blockingCalls_onTheLoopsThread_areWouldDeadlock(stage: AioStage) -> None:
    playback = await stage.play()
    with pytest.raises(usher.WouldDeadlockError):
        playback._blocking.wait_session()
    with pytest.raises(usher.InvalidArgumentError):
        stage.delegate(sync_setup_teardown=True)


# ---- coroutine callbacks that fail -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["raises", "is no token", "has a newline", "has none", "plain raises"])
def test_tokenCoroutine_thatFails_isNoTokenAndReported(
    lib: Any, headend_factory: Callable[..., HeadEnd], kind: str
) -> None:
    async def token(request: usher.aio.TokenRequest) -> Any:
        await asyncio.sleep(0)
        if kind == "raises":
            raise ZeroDivisionError("mine")
        return {"is no token": 7, "has a newline": "a\nb", "has none": None}[kind]

    def plain(request: usher.aio.TokenRequest) -> str:
        raise ZeroDivisionError("mine")

    @story(failures=True)
    async def run(stage: AioStage) -> None:
        playback = await stage.player.play(
            delegate=stage.delegate(token_callback=plain if kind == "plain raises" else token)
        )
        with pytest.raises(usher.NoTokenError):
            await playback.wait_session()
        assert [name for name, _ in stage.failures] == ([] if kind == "has none" else ["token"])
        if "raises" in kind:
            assert isinstance(stage.context.last_callback_error, ZeroDivisionError)

    run(lib, headend_factory)


@pytest.mark.parametrize("kind", ["coroutine", "plain", "future", "fail"])
def test_tokenCallback_thatRaises_isTheCauseOfWhatIsAwaited(
    lib: Any, headend_factory: Callable[..., HeadEnd], kind: str
) -> None:
    mine = ZeroDivisionError("mine")

    async def coroutine(request: usher.aio.TokenRequest) -> str:
        await asyncio.sleep(0)
        raise mine

    def plain(request: usher.aio.TokenRequest) -> str:
        raise mine

    def future(request: usher.aio.TokenRequest) -> asyncio.Future[str]:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        answer.set_exception(mine)
        return answer

    def fail(request: usher.aio.TokenRequest) -> None:
        request.fail(mine)

    @story(failures=True)
    async def run(stage: AioStage) -> None:
        asked = {"coroutine": coroutine, "plain": plain, "future": future, "fail": fail}[kind]
        playback = await stage.player.play(delegate=stage.delegate(token_callback=asked))  # type: ignore[arg-type]
        with pytest.raises(usher.NoTokenError) as waiting:
            await playback.wait_session()
        with pytest.raises(usher.NoTokenError) as ended:
            await playback.wait_session()
        with pytest.raises(usher.NoTokenError) as licence:
            await playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE)
        await stage.settle()
        told = [event.error for event in stage.events if event.error is not None]
        assert [event.type.name for event in stage.events] == ["SETUP_ERROR", "LICENSE_ERROR"]
        assert all(error.__cause__ is mine for error in [waiting.value, ended.value, licence.value, *told])

    run(lib, headend_factory)


@story(failures=True, headend={"enforced": {"clearkey"}, "grace": 10.0}, breaks_rules=("late-beat",))
async def test_payloadCoroutine_thatRaises_isTheCauseOfWhatIsToldAndAwaited(stage: AioStage) -> None:
    mine = ZeroDivisionError("mine")

    async def payload(request: usher.aio.PayloadRequest) -> bytes:
        await asyncio.sleep(0)
        raise mine

    playback = await stage.play(payload=payload, delegate=stage.delegate(keep_alive_failures_max=1))
    await playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    await stage.advance(200_000)
    assert playback.session_state is usher.SessionState.FAILED
    with pytest.raises(usher.SessionError) as licence:
        await playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    with pytest.raises(usher.CallbackError) as waiting:
        await playback.wait_session()
    told = [event.error for event in stage.events if event.type is E.HEARTBEAT_ERROR]
    assert told
    assert all(error is not None and error.__cause__ is mine for error in [licence.value, waiting.value, *told])


@story(failures=True)
async def test_observerCoroutine_thatRaises_isReportedAndOthersAreTold(stage: AioStage) -> None:
    async def broken(event: usher.aio.Event) -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError("mine")

    def plain(event: usher.aio.Event) -> None:
        raise LookupError("mine")

    stage.context.add_observer(plain)
    stage.context.add_observer(broken)
    told: list[usher.aio.Event] = []
    stage.context.add_observer(told.append)
    await (await stage.play()).wait_session()
    await stage.settle()
    assert [event.type for event in told] == [E.SESSION_STARTED]
    assert sorted((name, type(error).__name__) for name, error in stage.failures) == [
        ("observer", "LookupError"),
        ("observer", "ZeroDivisionError"),
    ]
    stage.context.remove_observer(plain)


@story
async def test_tokenCoroutine_stillRunningAtClose_isCancelled(stage: AioStage) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def never(request: usher.aio.TokenRequest) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    playback = await stage.player.play(delegate=stage.delegate(token_callback=never))
    waiting = asyncio.create_task(playback.wait_session())
    await began.wait()
    await stage.context.close()
    await ended.wait()
    with pytest.raises(usher.ClosedError):
        await waiting
    assert stage.routes() == []


@story
async def test_tokenCoroutine_tooLate_changesNothing(stage: AioStage) -> None:
    gate = asyncio.Event()

    async def late(request: usher.aio.TokenRequest) -> str:
        await gate.wait()
        return stage.headend.content_token()

    playback = await stage.player.play(delegate=stage.delegate(token_callback=late))
    await stage.advance(5_000)
    with pytest.raises(usher.NoTokenError):
        await playback.wait_session()
    gate.set()
    await stage.settle()
    assert stage.routes() == []


@story
async def test_tokenRequest_keptAndAnsweredFromAnotherThread_isTheToken(stage: AioStage) -> None:
    kept: list[usher.aio.TokenRequest] = []
    playback = await stage.player.play(
        delegate=stage.delegate(token_callback=lambda request: kept.append(request) or usher.LATER)
    )
    await stage.settle()
    token = stage.headend.content_token()
    thread = threading.Thread(target=kept[0].answer, args=(token,))
    thread.start()
    await playback.wait_session()
    thread.join()
    with pytest.raises(usher.InvalidCompletionError):
        kept[0].answer(token)


# ---- cancelling ------------------------------------------------------------------------------------------------------


async def cancelled(awaitable: Awaitable[Any], until: Callable[[], Awaitable[Any]]) -> None:
    task = asyncio.ensure_future(awaitable)
    await until()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@story
async def test_getLicense_cancelled_leavesTheLateAnswerToNobody(stage: AioStage) -> None:
    playback = await stage.play()
    await playback.wait_session()
    stage.headend.faults.add("license", Fault.stall("after"))
    await cancelled(playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE), stage.held)
    stage.headend.release()
    await stage.settle()
    assert stage.types() == ["SESSION_STARTED", "LICENSE"]
    assert (await playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE)).clear_keys()


@story
async def test_waits_cancelled_breakNothing(stage: AioStage) -> None:
    stage.headend.faults.add("setup", Fault.stall())
    playback = await stage.play()
    await cancelled(playback.wait_session(), stage.held)
    await cancelled(playback.wait_closed(), stage.held)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(playback.wait_session(), 0.01)
    stage.headend.release()
    await playback.wait_session()
    stage.headend.faults.add("certificate", Fault.stall())
    stage.headend.faults.add("teardown", Fault.stall())
    await cancelled(playback.close(), stage.held)
    stage.headend.release()
    await playback.wait_closed()
    assert stage.routes() == ["setup", "teardown"]


@story
async def test_contextClose_cancelled_goesOn(stage: AioStage) -> None:
    playback = await stage.play()
    await playback.wait_session()
    stage.headend.faults.add("teardown", Fault.stall())
    await cancelled(stage.context.close(), stage.held)
    assert not stage.context.blocking.closed
    stage.headend.release()
    await stage.context.close()
    assert stage.context.blocking.closed
    with pytest.raises(usher.InvalidHandleError):
        usher.aio.Player(stage.context)


@story
async def test_contextClose_withALicenseUnderWay_endsItWithClosed(stage: AioStage) -> None:
    playback = await stage.play()
    await playback.wait_session()
    stage.headend.faults.add("license", Fault.stall())
    asking = asyncio.create_task(playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE))
    await stage.held()
    closing = asyncio.create_task(stage.context.close())
    with pytest.raises(usher.ClosedError):
        await asking
    stage.headend.release()
    await closing


# ---- events ----------------------------------------------------------------------------------------------------------


@story
async def test_events_inTwoStreams_areToldToBothAndEnd(stage: AioStage) -> None:
    one, two = stage.context.events(), stage.context.events()
    playback = await stage.play()
    assert (await one.__anext__()).type is E.SESSION_STARTED
    async for event in two:
        assert event.type is E.SESSION_STARTED
        break
    one.close()
    assert [event async for event in one] == []
    await playback.close()
    await stage.context.close()
    assert [event.type async for event in two] == [E.SESSION_ENDED, E.PLAYBACK_CLOSED]
    assert [event async for event in stage.context.events()] == []


@story
async def test_event_ofADroppedPlayback_hasNoObjectsAndItIsClosedAllTheSame(stage: AioStage) -> None:
    player = usher.aio.Player(stage.context)
    await (await stage.play(player)).wait_session()
    stage.events.clear()
    del player
    gc.collect()
    await stage.settle()
    assert stage.types() == ["SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert stage.events[0].playback is None
    assert not stage.context._open


# ---- servers that do not answer, in real time ------------------------------------------------------------------------


def test_playbackClose_onAMuteServer_returnsAfterTheCap(lib: Any, headend_factory: Callable[..., HeadEnd]) -> None:
    headend = headend_factory(clock="system")

    async def play() -> tuple[float, list[str]]:
        stage = AioStage(headend, clock="system")
        async with stage.context:
            playback = await stage.play(delegate=stage.delegate(teardown_timeout_ms=200))
            await playback.wait_session()
            headend.faults.add("teardown", Fault.stall())
            began = time.monotonic()
            await playback.close()
            took, types = time.monotonic() - began, stage.types()
            headend.release()
            await playback.wait_closed()
            return took, types

    took, types = asyncio.run(play())
    assert 0.2 <= took < 2
    assert types == ["SESSION_STARTED"]
    assert headend.journal.routes() == ["setup", "teardown"]


def test_contextClose_withATeardownTriedAgain_doesNotHoldTheLoopUp(
    lib: Any, headend_factory: Callable[..., HeadEnd]
) -> None:
    headend = headend_factory(clock="system")

    async def play() -> tuple[int, float]:
        stage, gaps = AioStage(headend, clock="system"), [0.0]
        await (await stage.play()).wait_session()
        headend.faults.add("teardown", Fault.status(503), times=2)

        async def tick() -> None:
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.005)
                gaps.append(time.monotonic() - before)

        ticking = asyncio.create_task(tick())
        still_open = await stage.context.close()
        ticking.cancel()
        return still_open, max(gaps)

    still_open, longest = asyncio.run(play())
    assert still_open == 0
    assert longest < 0.9, "the library sent the third try 1 s after the second"
    assert headend.journal.routes() == ["setup"] + ["teardown"] * 3
    assert not headend.sessions.active()


# ---- event loops -----------------------------------------------------------------------------------------------------


def test_context_withoutALoop_isRefused(lib: Any) -> None:
    with pytest.raises(RuntimeError):
        usher.aio.Context()


def test_context_madeWithABadOption_leavesNothing(lib: Any) -> None:
    async def make() -> None:
        with pytest.raises(TypeError):
            usher.aio.Context(callbacks="threaded")
        with pytest.raises(TypeError):
            usher.aio.Context(nonsense=1)
        with pytest.raises(usher.InvalidArgumentError):
            usher.aio.Context(log_level=99)

    asyncio.run(make())


LEFT_OPEN = """
import asyncio, sys, usher
license_url, ssm_url, token = sys.argv[1:]
async def never(event):
    pass
async def none(call):
    assert False, "there is no loop to await this"
async def main():
    context = usher.aio.Context(proxy="")
    context.add_observer(never)
    ours = usher.aio.CustomerDelegate(context, license=lambda request: usher.LicenseResponse(b"x"), teardown=none)
    other = await usher.aio.Player(context).play(delegate=ours)
    await other.get_license(usher.KeySystem.FAIRPLAY, b"spc")
    delegate = usher.aio.SSPDelegate(context, license_url=license_url, ssm_url=ssm_url)
    playback = await usher.aio.Player(context).play(token, delegate=delegate)
    waiting = asyncio.create_task(playback.wait_closed())
    await playback.wait_session()
    return context, playback, other
kept = asyncio.run(main())
print("left")
"""


def test_program_thatLeavesTheContextOpen_exitsAndTearsDown(lib: Any, headend_factory: Callable[..., HeadEnd]) -> None:
    headend = headend_factory(clock="system")
    arguments = [headend.license_url("clearkey"), headend.ssm_url, headend.content_token()]
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", LEFT_OPEN, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")
    assert headend.journal.routes() == ["setup", "teardown"]


def test_context_onAnotherLoop_afterTheFirstEnded_works(lib: Any, headend_factory: Callable[..., HeadEnd]) -> None:
    headend = headend_factory()

    async def play() -> None:
        stage = AioStage(headend)
        async with stage.context:
            await (await stage.play()).wait_session()

    for _ in range(3):
        asyncio.run(play())
    assert headend.journal.routes() == ["setup", "teardown"] * 3
    assert not headend.sessions.active()
