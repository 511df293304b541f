"""Tests the resource loader in asyncio: coroutines make SPCs, and tasks await keys. If a program cancels a task, the
library cancels the request of this task."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.fps import CDM, SKD, loader, play, ready
from usher.testing.headend import Fault


async def aio_stage(stage: Stage, spc: Any, **options: Any) -> tuple[usher.aio.Context, usher.aio.Player]:
    ready(stage)
    context = usher.aio.Context(
        proxy="", on_callback_error=lambda name, error: stage.callback_failures.append((name, error))
    )
    options.setdefault("license_url", stage.headend.fps_url)
    usher.aio.ResourceLoader(context, spc, **options)
    return context, usher.aio.Player(context)


def test_aio_coroutine_makesTheSpc_andTheKeyIsAwaited(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"clock": "system"})
    cdm = CDM()

    async def story() -> None:
        asked: list[usher.aio.SPCRequest] = []

        async def spc(request: usher.aio.SPCRequest) -> bytes:
            asked.append(request)
            await asyncio.sleep(0)
            return cdm.make(request)

        context, player = await aio_stage(stage, spc)
        async with context, player, await player.play(tag="tag") as playback:
            await playback.wait_session()
            assert cdm.opened(await playback.get_resource(SKD)) == (KID, KEY)
            assert asked[0].playback is playback
            assert asked[0].tag == "tag"
            keys = await asyncio.gather(*(playback.get_resource(SKD) for _ in range(5)))
            assert [cdm.opened(key) for key in keys] == [(KID, KEY)] * 5
            with pytest.raises(usher.DeclinedError):
                await playback.get_resource("other://movie")

    asyncio.run(asyncio.wait_for(story(), 30))


def test_aio_plainFunction_makesTheSpc(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"clock": "system"})
    cdm = CDM()

    async def story() -> None:
        context, player = await aio_stage(stage, cdm.make)
        async with context, player, await player.play() as playback:
            assert cdm.opened(await playback.get_resource(SKD)) == (KID, KEY)

    asyncio.run(asyncio.wait_for(story(), 30))


@pytest.mark.callback_errors
def test_aio_exceptionOfACoroutine_isTheCause(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"clock": "system"})

    async def story() -> None:
        async def spc(request: usher.aio.SPCRequest) -> bytes:
            raise LookupError("no CDM")

        context, player = await aio_stage(stage, spc)
        async with context, player, await player.play() as playback:
            with pytest.raises(usher.CallbackError) as caught:
                await playback.get_resource(SKD)
            assert isinstance(caught.value.__cause__, LookupError)

    asyncio.run(asyncio.wait_for(story(), 30))
    assert [name for name, _ in stage.callback_failures] == ["spc"]


def test_aio_cancelledTask_givesTheRequestUp(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"clock": "system"})
    stage.headend.faults.add("ckc", Fault.stall())

    async def story() -> None:
        cdm = CDM()
        context, player = await aio_stage(stage, cdm.make)
        async with context, player, await player.play() as playback:
            task = asyncio.create_task(playback.get_resource(SKD))
            while not stage.headend.held:
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while context.blocking.pending().transfers:
                await asyncio.sleep(0.005)
            assert cdm.opened(await playback.get_resource(SKD)) == (KID, KEY)

    asyncio.run(asyncio.wait_for(story(), 30))
    stage.headend.release()


def test_aio_closedPlayback_failsWhatAwaits(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"clock": "system"})
    stage.headend.faults.add("ckc", Fault.stall())

    async def story() -> None:
        context, player = await aio_stage(stage, CDM().make)
        async with context, player, await player.play() as playback:
            task = asyncio.create_task(playback.get_resource(SKD))
            while not stage.headend.held:
                await asyncio.sleep(0.005)
            await playback.close()
            with pytest.raises(usher.ClosedError):
                await task

    asyncio.run(asyncio.wait_for(story(), 30))
    stage.headend.release()


def test_aio_futureOfTheBlockingForm_isWrapped(stage_factory: StageFactory) -> None:
    """LoadingRequest is a concurrent.futures.Future, so that asyncio, gevent and thread pools can wait for it."""
    stage = stage_factory()
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    playback = play(stage)

    async def story() -> tuple[bytes, bytes]:
        return cdm.opened(await asyncio.wrap_future(playback.load_resource(SKD)))

    assert asyncio.run(asyncio.wait_for(story(), 30)) == (KID, KEY)
