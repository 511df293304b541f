"""Each load completes exactly once: with an answer, a failure or a time-out, when the host cancels it, or when the
playback, player or context closes."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage
from stage.fps import CDM, SKD, loader, play, ready
from usher.testing.headend import Fault

E = usher.EventType
STEPS = ["certificate", "entitlement", "rights"]
"""The requests of the longest route. The library sends them in this order: the entitlement request, whose reply has the
token URL; the certificate request; and the licence request ("rights")."""


class Told:
    """Records each call of a load's callback."""

    def __init__(self) -> None:
        self.futures: list[Future[bytes]] = []

    def __call__(self, future: Future[bytes]) -> None:
        self.futures.append(future)


def long_way(stage: Stage, spc: Any = None, **options: Any) -> usher.ResourceLoader:
    """Makes a loader that asks the entitlement server, downloads the certificate, asks the CDM, and then asks the
    licence server."""
    ready(stage)
    return loader(
        stage,
        spc,
        route=usher.Route.ENTITLEMENT,
        entitlement_url=stage.headend.entitlement_url,
        certificate_url=stage.headend.fps_certificate_url,
        **options,
    )


def test_load_thatWorks_isToldOnce(stage: Stage) -> None:
    told, cdm = Told(), CDM()
    long_way(stage, cdm)
    load = play(stage).load_resource(SKD, callback=told)
    assert cdm.opened(load.result(10)) == (KID, KEY)
    stage.settle()
    assert told.futures == [load]
    assert stage.events.types() == ["LICENSE"]
    assert stage.routes() == ["entitlement", "certificate", "rights"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "fault",
    [Fault.status(500), Fault.drop("after"), Fault.reset_in_body(), Fault.empty_body()],
    ids=lambda fault: fault.label,
)
def test_load_thatFails_isToldOnce(stage: Stage, step: str, fault: Fault) -> None:
    told = Told()
    long_way(stage)
    stage.headend.faults.add(step, fault, always=True)
    load = play(stage).load_resource(SKD, callback=told)
    assert isinstance(load.exception(10), usher.UsherError)
    stage.advance(60_000)
    assert told.futures == [load]
    assert stage.events.types() == ["LICENSE_ERROR"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("end", ["close", "free", "cancel", "stop", "zap", "timeout", "context"])
def test_load_endedWhileAServerAnswers_isToldOnce(stage: Stage, step: str, end: str) -> None:
    told = Told()
    long_way(stage)
    stage.headend.faults.add(step, Fault.stall("after"))
    playback = play(stage)
    load = playback.load_resource(SKD, callback=told, timeout_ms=5_000)
    stage.headend.wait_held()
    stage.settle()
    sent = stage.routes()
    wanted = finish(stage, playback, load, end)
    if end != "context":
        stage.settle()  # The library has ended the load before the reply arrives.
    stage.headend.release()
    if end != "context":
        stage.advance(60_000)
    assert told.futures == [load]
    if wanted is None:
        assert load.cancelled()
    else:
        assert type(load.exception(10)) is wanted
    assert stage.routes() == sent, "the library sends no request for a finished load"


def finish(
    stage: Stage, playback: usher.Playback, load: usher.LoadingRequest, end: str
) -> type[usher.UsherError] | None:
    """Ends the load in the way that `end` names. Returns the expected error class, or None if the future is
    cancelled."""
    if end == "close":
        playback.close()
    elif end == "free":
        playback.free()
    elif end == "stop":
        stage.player.stop()
    elif end == "cancel":
        assert load.cancel()
        assert load.cancel(), "a second cancel() also answers True"
        return None
    elif end == "zap":
        play(stage)
        assert isinstance(load.exception(10), usher.ClosedError)
        return type(load.exception(10))
    elif end == "timeout":
        stage.advance(5_000)
        return usher.UsherTimeoutError
    elif end == "context":
        stage.call(stage.context.close).result(10)
    return usher.ClosedError


@pytest.mark.parametrize("end", ["close", "free", "cancel", "stop", "zap", "timeout", "context"])
def test_load_endedWhileTheCdmIsAsked_isToldOnce_andTheSpcIsTooLate(stage: Stage, end: str) -> None:
    told, asked = Told(), list[usher.SPCRequest]()

    def later(request: usher.SPCRequest) -> Any:
        asked.append(request)
        return usher.LATER

    long_way(stage, later, spc_timeout_ms=60_000)
    playback = play(stage)
    load = playback.load_resource(SKD, callback=told, timeout_ms=5_000)
    stage.settle()
    (request,) = asked
    wanted = finish(stage, playback, load, end)
    if end != "context":
        stage.settle()
    with pytest.raises(usher.InvalidCompletionError):
        request.answer(CDM().make(request))
    assert told.futures == [load]
    if wanted is not None:
        assert type(load.exception(10)) is wanted
    assert stage.routes() == ["entitlement", "certificate"]


@pytest.mark.parametrize("end", ["close", "cancel"])
@pytest.mark.parametrize("step", [*STEPS, "spc"])
def test_load_endedByTheApplication_isNoError(stage: Stage, step: str, end: str) -> None:
    long_way(stage, (lambda request: usher.LATER) if step == "spc" else None)
    if step != "spc":
        stage.headend.faults.add(step, Fault.stall())
    playback = play(stage)
    load = playback.load_resource(SKD)
    stage.settle()
    finish(stage, playback, load, end)
    stage.settle()
    assert stage.events.all(E.LICENSE_ERROR) == []


def test_cancel_ofAFinishedRequest_doesNothing(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    load = play(stage).load_resource(SKD)
    cdm.opened(load.result(10))
    assert not load.cancel()
    cdm.opened(load.result(0))


def test_cancel_ofOne_leavesTheOthers(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    stage.headend.faults.add("ckc", Fault.stall(), times=2)
    playback = play(stage)
    loads = [playback.load_resource(SKD) for _ in range(2)]
    stage.headend.wait_held(2)
    assert loads[0].cancel()
    stage.headend.release()
    assert cdm.opened(loads[1].result(10)) == (KID, KEY)
    with pytest.raises(CancelledError):
        loads[0].result(0)


def test_cancelInC_ofANumberThatIsNone_isAStateError(stage: Stage) -> None:
    from usher._c import ffi

    loader(stage)
    playback = play(stage)
    for number in (0, 1, 2**64 - 1):
        with pytest.raises(usher.StateError):
            ffi.lib.usher_playback_cancel_load(playback._handle, number)


def test_cancelInC_ofAnotherPlaybacksRequest_isAStateError(stage: Stage) -> None:
    from usher._c import ffi

    ready(stage)
    loader(stage)
    stage.headend.faults.add("ckc", Fault.stall())
    with usher.Player(stage.context) as other:
        load = play(stage).load_resource(SKD)
        stranger = play(stage, player=other)
        stage.headend.wait_held()
        with pytest.raises(usher.StateError):
            ffi.lib.usher_playback_cancel_load(stranger._handle, load._number)
        stage.headend.release()
        assert load.result(10)


def test_cancel_insideItsOwnSpcCallback_endsIt(stage: Stage) -> None:
    ready(stage)
    cdm, loads, told = CDM(), list[usher.LoadingRequest](), Told()
    began = threading.Event()

    def spc(request: usher.SPCRequest) -> bytes:
        assert began.wait(10)
        loads[0].cancel()
        return cdm.make(request)

    loader(stage, spc)
    loads.append(play(stage).load_resource(SKD, callback=told))
    began.set()
    stage.settle()
    assert loads[0].cancelled()
    assert told.futures == loads
    assert stage.routes() == []


def test_cancel_racingTheReply_endsOnceOneWayOrTheOther(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    playback = play(stage)
    told = Told()
    loads = []
    for round in range(200):
        load = playback.load_resource(SKD, callback=told)
        if round % 2:
            threading.Event().wait(0.0005 * (round % 7))
        load.cancel()
        loads.append(load)
    stage.settle()
    assert told.futures == loads, "the callback ran once for each load, in the order of the loads"
    for load in loads:
        if not load.cancelled():
            cdm.opened(load.result(0))
