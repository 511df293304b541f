"""Tests delegates in asyncio, whose hooks and callbacks are coroutines on the thread of the event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

import usher
from stage import CHALLENGE, HEADER
from stage.aio import KEY, KID, AioStage, story
from usher.testing import fairplay
from usher.testing.headend import Fault

E = usher.EventType
CLEARKEY, FAIRPLAY = usher.KeySystem.CLEARKEY, usher.KeySystem.FAIRPLAY
NO_SESSIONS = {"ssm_required": "never"}


async def play(
    stage: AioStage, delegate: usher.aio.Delegate, token: str | None = None, **options: Any
) -> usher.aio.Playback:
    return await stage.player.play(token, delegate=delegate, **options)


# ---- hooks -----------------------------------------------------------------------------------------------------------


@story(headend=NO_SESSIONS, uses_threads=True)
async def test_steps_asCoroutines_areAwaitedOnTheLoop(stage: AioStage) -> None:
    """Every hook may be a coroutine, and may await the built-in answer (delegates.md: Hooks)."""
    me, asked = threading.get_ident(), []

    class Own(usher.aio.CommonDelegate):
        async def made(self, call: usher.aio.HookCall[Any]) -> Any:
            assert threading.get_ident() == me
            await asyncio.sleep(0)
            asked.append((call.hook.name, call.tag, call.playback is not None))
            return await call.builtin()

        content_identifier = certificate = http_headers = license_url = license_body = license_from_reply = made

    stage.headend.add_key(KID, KEY, "movie")
    urls = {
        "license_url": stage.headend.license_url("fairplay"),
        "certificate_url": stage.headend.certificate_url("fairplay"),
    }
    delegate = Own(stage.context, hook_timeout_ms=60_000, **urls)
    delegate.set_http_header(HEADER, stage.headend.content_token(content_id="movie"))
    playback = await play(stage, delegate, tag="mine")
    identifier = await playback.get_content_id(fairplay.skd_url("movie", KID, bytes(16)))
    spc = fairplay.make_spc(identifier, await playback.get_certificate())
    license = await playback.get_license(FAIRPLAY, spc, asset_id="movie")
    assert fairplay.open_ckc(license.data, spc) == (KID, KEY)
    names = ["CONTENT_ID", "CERTIFICATE", "LICENSE_URL", "LICENSE_BODY", "HEADERS", "LICENSE"]
    assert asked == [(name, "mine", True) for name in names]
    await playback.wait_session()


@story(headend=NO_SESSIONS)
async def test_steps_plainOrOfTheSuperclass_work(stage: AioStage) -> None:
    """A hook may be a plain function; a coroutine hook may await the answer of the superclass (delegates.md: Hooks)."""

    class Own(usher.aio.DefaultDelegate):
        def scheme(self) -> str:
            return "own"

        def license_url(self, call: usher.aio.HookCall[str]) -> str:
            return stage.headend.license_url("clearkey") + "?plain=1"

        async def http_headers(self, call: usher.aio.HookCall[dict[str, str]]) -> dict[str, str]:
            made = await super().http_headers(call)  # type: ignore[misc]
            return {**made, "X-Own": "1"}

        def content_identifier(self, call: usher.aio.HookCall[bytes]) -> None:
            call.answer_builtin()

    playback = await play(
        stage, Own(stage.context, license_url=stage.headend.license_url("fairplay")), stage.headend.content_token()
    )
    assert (await playback.get_license(CLEARKEY, CHALLENGE)).clear_keys() == {KID: KEY}
    assert await playback.get_content_id("own://plain") == b"plain"
    entry = stage.headend.journal.last("license")
    assert (entry.header("x-own"), entry.query_value("plain")) == ("1", "1")


@story(headend=NO_SESSIONS)
async def test_headersStep_thatAwaitsNone_doesNotSendTheRequest(stage: AioStage) -> None:
    """If the headers hook answers None, the library does not send the request (delegates.md: Hooks)."""

    class Own(usher.aio.CommonDelegate):
        async def http_headers(self, call: usher.aio.HookCall[dict[str, str]]) -> None:
            await asyncio.sleep(0)

    playback = await play(stage, Own(stage.context, license_url=stage.headend.license_url("clearkey")))
    with pytest.raises(usher.DeclinedError):
        await playback.get_license(CLEARKEY, CHALLENGE)
    assert stage.routes() == []


@story(headend=NO_SESSIONS, failures=True)
async def test_step_thatRaises_isTheCauseOfTheFailure(stage: AioStage) -> None:
    """If a hook coroutine raises an exception, the request fails, and the exception is the `__cause__` of the error."""

    class Own(usher.aio.CommonDelegate):
        async def license_body(self, call: usher.aio.HookCall[bytes]) -> bytes:
            await asyncio.sleep(0)
            raise OSError("no body")

    playback = await play(stage, Own(stage.context, license_url=stage.headend.license_url("clearkey")))
    with pytest.raises(usher.CallbackError) as caught:
        await playback.get_license(CLEARKEY, CHALLENGE)
    assert type(caught.value.__cause__) is OSError
    assert [name for name, _ in stage.failures] == ["license_body"]


@story(headend=NO_SESSIONS)
async def test_step_answeredLaterFromAnotherThread_goesOn(stage: AioStage) -> None:
    """A hook stores the call that it got. Later any thread may call answer() of this call."""
    kept: list[usher.aio.HookCall[Any]] = []

    class Own(usher.aio.CommonDelegate):
        def license_body(self, call: usher.aio.HookCall[bytes]) -> Any:
            kept.append(call)
            return usher.LATER

    playback = await play(
        stage, Own(stage.context, license_url=stage.headend.license_url("clearkey")), stage.headend.content_token()
    )
    task = asyncio.ensure_future(playback.get_license(CLEARKEY, CHALLENGE))
    await stage.settle()
    assert (kept[0].playback, task.done()) == (playback, False)
    answering = threading.Thread(target=kept[0].answer, args=[CHALLENGE])
    answering.start()
    answering.join()
    assert (await task).clear_keys() == {KID: KEY}


@story(headend=NO_SESSIONS)
async def test_step_stillRunningWhenThePlaybackCloses_isCancelled(stage: AioStage) -> None:
    """If a playback closes while a hook coroutine runs, the request that needs the hook fails with ClosedError. The
    answer of the hook then has no effect (protocol.md: Races)."""
    go = asyncio.Event()

    class Own(usher.aio.CommonDelegate):
        async def http_headers(self, call: usher.aio.HookCall[dict[str, str]]) -> dict[str, str]:
            await go.wait()
            return {}

    playback = await play(stage, Own(stage.context, license_url=stage.headend.license_url("clearkey")))
    task = asyncio.ensure_future(playback.get_license(CLEARKEY, CHALLENGE))
    await stage.settle()
    await playback.close()
    with pytest.raises(usher.ClosedError):
        await task
    go.set()
    await stage.settle()
    assert stage.routes() == []


@story
async def test_delegate_ofWhichNobodyKnows_isAskedWhileAPlaybackUsesIt(stage: AioStage) -> None:
    """If only a playback refers to a delegate, the hooks of the delegate work until the playback is freed. Then Python
    frees the delegate too (protocol.md: When it fails)."""

    class Own(usher.aio.SSPDelegate):
        async def http_headers(self, call: usher.aio.HookCall[dict[str, str]]) -> dict[str, str]:
            return {**await call.builtin(), "X-Own": "1"}

    delegate = Own(stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url)
    gone = weakref.ref(delegate)
    playback = await play(stage, delegate, stage.headend.content_token())
    del delegate
    gc.collect()
    await playback.wait_session()
    await playback.get_license(CLEARKEY, CHALLENGE)
    assert stage.headend.journal.last("license").header("x-own") == "1"
    await playback.close()
    playback.free()
    await stage.player.close()
    await stage.settle()
    stage.events.clear()
    del playback
    gc.collect()
    await stage.settle()
    assert gone() is None, gc.get_referrers(gone())


# ---- multi-instance, V2, clear items ---------------------------------------------------------------------------------


@story(headend={"limit": 3})
async def test_multiInstance_inAsyncio_findsTheTokenOfEachStream(stage: AioStage) -> None:
    """Each stream uses the token of its content identifier, and each playback has a separate session
    (multi-instance page)."""
    delegate = usher.aio.MultiInstanceDelegate(
        stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url
    )
    tokens = {name: stage.headend.content_token(name, name) for name in ("main", "preview")}
    delegate.tokens["main"] = tokens["main"]
    playbacks = {
        name: await usher.aio.Player(stage.context).play(delegate=delegate, content_id=name) for name in tokens
    }
    await playbacks["main"].wait_session()
    waiting = asyncio.ensure_future(playbacks["preview"].wait_session())
    await stage.settle()
    assert not waiting.done()
    delegate.tokens["preview"] = tokens["preview"]
    await waiting
    assert [entry.account for entry in stage.headend.journal] == ["main", "preview"]
    for playback in playbacks.values():
        await playback.close()


@story
async def test_sspV2_inAsyncio_isSetUpByTheFirstLicence(stage: AioStage) -> None:
    """The first licence reply opens the session, and wait_session() waits for it (protocol.md: SSP V2)."""
    url = stage.headend.license_url("clearkey", api="v2")
    delegate = usher.aio.SSPV2Delegate(
        stage.context, license_url=url, ssm_url=stage.headend.ssm_url, teardown_on_close=True
    )
    playback = await play(stage, delegate, stage.headend.content_token())
    waiting = asyncio.ensure_future(playback.wait_session())
    await stage.settle()
    assert not waiting.done()
    assert (await playback.get_license(CLEARKEY, CHALLENGE)).clear_keys() == {KID: KEY}
    await waiting
    await playback.close()
    assert stage.routes() == ["license", "teardown"]


@story(headend=NO_SESSIONS)
async def test_sspV2_withoutASession_isSetUpAllTheSame(stage: AioStage) -> None:
    """If the licence reply has no session token, the playback needs no session, and the host gets the licence
    (protocol.md: SSP V2)."""
    url = stage.headend.license_url("clearkey", api="v2")
    delegate = usher.aio.SSPV2Delegate(stage.context, license_url=url, ssm_url=stage.headend.ssm_url)
    playback = await play(stage, delegate, stage.headend.content_token())
    await playback.get_license(CLEARKEY, CHALLENGE)
    await playback.wait_session()
    assert stage.types() == ["NO_SESSION", "LICENSE"]


@story
async def test_clearItem_inAsyncio_needsNothing(stage: AioStage) -> None:
    """A clear stream has no session and needs no token (multi-instance page)."""
    playback = await stage.player.play(delegate=stage.delegate(), clear=True)
    await playback.wait_session()
    await stage.settle()
    assert playback.session_state is usher.SessionState.NONE
    await playback.close()
    assert stage.routes() == []


@story
async def test_lateContentToken_inAsyncio_isTaken(stage: AioStage) -> None:
    """A playback may start without a token; the host sets the token later
    (delegates.md: Content tokens that come late, or go stale)."""
    playback = await stage.player.play(delegate=stage.delegate())
    waiting = asyncio.ensure_future(playback.wait_session())
    await stage.settle()
    playback.set_content_token(stage.headend.content_token())
    await waiting
    with pytest.raises(usher.StateError):
        playback.set_content_token(stage.headend.content_token())
    await playback.close()


# ---- customer SSM ----------------------------------------------------------------------------------------------------


@story
async def test_customer_asCoroutines_isAwaited(stage: AioStage) -> None:
    """license() and heartbeat() may be coroutines (customer SSM page)."""
    asked: list[Any] = []

    class Portal(usher.aio.CustomerDelegate):
        async def license(self, request: usher.aio.CustomerRequest) -> usher.LicenseResponse:
            await asyncio.sleep(0)
            asked.append((request.type.name, request.payload, request.playback is not None, request.tag))
            return usher.LicenseResponse(b"ckc", heartbeat_s=60, renew_type=usher.RenewType.HEARTBEAT)

        async def heartbeat(self, call: usher.aio.SessionCall) -> None:
            await asyncio.sleep(0)
            asked.append((call.operation.name, call.playback is not None, call.tag))

        async def teardown(self, call: usher.aio.SessionCall) -> usher.Status:
            asked.append(call.operation.name)
            return usher.Status.OK

    playback = await play(stage, Portal(stage.context, jitter_permille=usher.OFF), tag="mine")
    assert (await playback.get_license(FAIRPLAY, b"spc")).data == b"ckc"
    await playback.wait_session()
    await stage.advance(60_000)
    await playback.close()
    assert asked == [("REQUEST", b"spc", True, "mine"), ("HEARTBEAT", True, "mine"), "TEARDOWN"]
    assert "KEPT_ALIVE" in stage.types()


@story(failures=True)
async def test_customer_coroutineThatRaises_failed(stage: AioStage) -> None:
    """If the callback raises an exception, the request fails, and the exception is the `__cause__` of the error
    (customer SSM page)."""
    answers = [True, False]

    async def license(request: usher.aio.CustomerRequest) -> usher.LicenseResponse:
        if answers.pop():
            raise OSError("no portal")
        return usher.LicenseResponse(b"ckc", heartbeat_s=60, renew_type=usher.RenewType.HEARTBEAT)

    async def heartbeat(call: usher.aio.SessionCall) -> None:
        raise usher.SessionError("killed")

    delegate = usher.aio.CustomerDelegate(
        stage.context, license=license, heartbeat=heartbeat, jitter_permille=usher.OFF
    )
    playback = await play(stage, delegate)
    await playback.get_license(FAIRPLAY, b"spc")
    with pytest.raises(usher.CallbackError) as caught:
        await playback.get_license(FAIRPLAY, b"another")
    assert type(caught.value.__cause__) is OSError
    await stage.advance(60_000)
    error = next(event.error for event in stage.events if event.type is E.HEARTBEAT_ERROR)
    assert error is not None
    assert (error.status, type(error.__cause__)) == (usher.Status.SESSION, usher.SessionError)


# ---- before the play -------------------------------------------------------------------------------------------------


@story()
async def test_preparedItem_inAsyncio_hasItsToken(stage: AioStage) -> None:
    """The host prepares an item before it plays it. Then the library asks for the token once, before the play
    (delegates.md: Prepare the next item)."""
    asked: list[tuple[object, object]] = []

    async def token(request: usher.aio.TokenRequest) -> str:
        asked.append((request.tag, request.playback))
        return stage.headend.content_token()

    delegate = stage.delegate(token_callback=token)
    delegate.connect_ahead()
    stage.player.prepare(delegate=delegate, tag="next")
    await stage.settle()
    assert asked == [("next", None)]
    await (await stage.player.play(delegate=delegate)).wait_session()
    assert (len(asked), stage.routes()) == (1, ["setup"])


# ---- suspend, and what is refused ------------------------------------------------------------------------------------


@story(breaks_rules=("late-beat",))
async def test_suspendedAndResumed_inAsyncio_beatsAtOnce(stage: AioStage) -> None:
    """A context or a playback that is suspended and resumed sends an overdue heartbeat at once
    (protocol.md: When it fails)."""
    playback = await stage.play(delegate=stage.delegate(suspend=usher.Suspend.PAUSE))
    await playback.wait_session()
    stage.context.suspend()
    await stage.advance(90_000)
    assert stage.routes() == ["setup"]
    playback.resume()
    await stage.settle()
    assert stage.routes() == ["setup", "heartbeat"]
    playback.suspend()
    stage.context.resume()
    stage.headend.faults.add("heartbeat", Fault.reset())
    await stage.advance(30_000)
    stage.context.network_changed()
    await stage.settle()
    assert stage.routes() == ["setup"] + ["heartbeat"] * 3
    await playback.close()


@story
async def test_delegateThatWouldBlock_isRefused(stage: AioStage) -> None:
    """usher.aio refuses `sync_setup_teardown`, because it would block the event loop; a program awaits the set-up
    instead."""
    for kind in (usher.aio.SSPDelegate, usher.aio.SSPV2Delegate, usher.aio.MultiInstanceDelegate):
        with pytest.raises(usher.InvalidArgumentError):
            kind(stage.context, license_url=stage.headend.license_url("clearkey"), sync_setup_teardown=True)
