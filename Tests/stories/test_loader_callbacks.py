"""Tests answers of the SPC callback: at once, later, from another thread, twice, too late, after the load has ended,
and by an exception."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage
from stage.fps import CDM, SKD, failed, loader, play, ready
from usher._c import ffi

E = usher.EventType


class Kept:
    """An SPC callback that stores its requests and does not answer them."""

    def __init__(self) -> None:
        self.requests: list[usher.SPCRequest] = []

    def __call__(self, request: usher.SPCRequest) -> Any:
        self.requests.append(request)
        return usher.LATER


def asked(stage: Stage) -> tuple[CDM, usher.SPCRequest, usher.LoadingRequest]:
    """Starts a load that waits for its SPC. Returns the CDM, the request that the callback got, and the future."""
    ready(stage)
    kept = Kept()
    loader(stage, kept)
    load = play(stage).load_resource(SKD)
    stage.settle()
    (request,) = kept.requests
    return CDM(), request, load


def test_answer_later_fromAnotherThread_isUsed(stage: Stage) -> None:
    cdm, request, load = asked(stage)
    assert not request.answered
    stage.call(lambda: request.answer(cdm.make(request))).result(10)
    assert request.answered
    assert cdm.opened(load.result(10)) == (KID, KEY)


def test_answer_asAFuture_isUsed(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    with ThreadPoolExecutor(1) as pool:
        loader(stage, lambda request: pool.submit(cdm, request))
        assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)


def test_answer_insideTheCallback_isUsed(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, lambda request: request.answer(cdm.make(request)))
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)


def test_answer_twice_theSecondIsRefused(stage: Stage) -> None:
    cdm, request, load = asked(stage)
    request.answer(cdm.make(request))
    with pytest.raises(usher.InvalidCompletionError):
        request.answer(b"another")
    with pytest.raises(usher.InvalidCompletionError):
        request.fail()
    assert cdm.opened(load.result(10)) == (KID, KEY)


def test_answer_fromManyThreadsAtOnce_oneIsUsed(stage: Stage) -> None:
    ready(stage)
    cdm, kept = CDM(), Kept()
    loader(stage, kept)
    playback = play(stage)
    for _ in range(20):
        load = playback.load_resource(SKD)
        stage.settle()
        request = kept.requests.pop()
        spc = cdm.make(request)
        gate = threading.Barrier(6)

        def run(request: usher.SPCRequest = request, spc: bytes = spc, gate: threading.Barrier = gate) -> str:
            gate.wait(10)
            try:
                request.answer(spc)
                return "used"
            except usher.UsherError as error:
                return type(error).__name__

        with ThreadPoolExecutor(6) as pool:
            outcomes = Counter(future.result(10) for future in [pool.submit(run) for _ in range(6)])
        assert outcomes == {"used": 1, "InvalidCompletionError": 5}
        assert cdm.opened(load.result(10)) == (KID, KEY)


def test_answer_afterItsDeadline_doesNothing(stage: Stage) -> None:
    ready(stage)
    kept = Kept()
    loader(stage, kept)
    load = play(stage).load_resource(SKD)
    stage.settle()
    stage.advance(5_000)
    assert isinstance(load.exception(10), usher.UsherTimeoutError)
    with pytest.raises(usher.InvalidCompletionError):
        kept.requests[0].answer(CDM().make(kept.requests[0]))
    stage.settle()
    assert stage.routes() == []


@pytest.mark.parametrize("end", ["playback closed", "playback freed", "loader freed, then playback", "context freed"])
def test_answer_afterTheEnd_doesNothing(stage: Stage, end: str) -> None:
    ready(stage)
    kept = Kept()
    made = loader(stage, kept)
    playback = play(stage)
    load = playback.load_resource(SKD)
    stage.settle()
    if end == "context freed":
        stage.call(stage.context.close).result(10)
    elif end == "playback freed":
        playback.free()
    else:
        if end.startswith("loader"):
            made.close()
        playback.close()
    assert isinstance(load.exception(10), usher.ClosedError)
    with pytest.raises(usher.InvalidCompletionError):
        kept.requests[0].answer(b"late")
    assert stage.routes() == []


def test_answer_afterTheLoaderWasFreed_isUsed(stage: Stage) -> None:
    """Loads continue after the host has freed their loader: the callback object and the options live until the last
    load ends."""
    ready(stage)
    cdm, kept = CDM(), Kept()
    made = loader(stage, kept)
    load = play(stage).load_resource(SKD)
    stage.settle()
    made.close()
    kept.requests[0].answer(cdm.make(kept.requests[0]))
    assert cdm.opened(load.result(10)) == (KID, KEY)


@pytest.mark.parametrize(
    "spc", [b"", bytes(1024 * 1024 + 1), bytes(10 * 1024 * 1024)], ids=["0 bytes", "1 MiB + 1", "10 MiB"]
)
def test_answer_ofAnImpossibleSize_isRefused_andTheQuestionStaysOpen(stage: Stage, spc: bytes) -> None:
    cdm, request, load = asked(stage)
    with pytest.raises(usher.InvalidArgumentError):
        request.answer(spc)
    request.answer(cdm.make(request))
    assert cdm.opened(load.result(10)) == (KID, KEY)


@pytest.mark.callback_errors
def test_answer_ofAnImpossibleSize_returned_failsTheRequest(stage: Stage) -> None:
    ready(stage)
    loader(stage, lambda request: b"")
    error = failed(play(stage))
    assert isinstance(error, usher.CallbackError)
    assert isinstance(error.__cause__, usher.InvalidArgumentError)
    assert stage.routes() == []


def test_answerInC_ofTheOtherKind_isRefused(stage: Stage) -> None:
    cdm, request, load = asked(stage)
    with pytest.raises(usher.InvalidCompletionError):
        ffi.lib.usher_complete_token(request._completion, b"token")
    request.answer(cdm.make(request))
    assert load.result(10)


# ---- no SPC ----------------------------------------------------------------------------------------------------------


def test_noSpc_failsTheRequest(stage: Stage) -> None:
    ready(stage)
    loader(stage, lambda request: None)
    error = failed(play(stage))
    assert type(error) is usher.CallbackError
    assert (error.origin, error.operation, error.__cause__) == (usher.Origin.LOCAL, usher.Operation.LICENSE, None)
    assert stage.routes() == []
    stage.settle()
    assert stage.events.types() == ["LICENSE_ERROR"]


@pytest.mark.callback_errors
def test_exception_isTheCauseOfTheError_ofACallAFutureAndAnEvent(stage: Stage) -> None:
    ready(stage)

    def spc(request: usher.SPCRequest) -> bytes:
        raise LookupError("no CDM")

    loader(stage, spc)
    playback = play(stage)
    error = failed(playback)
    assert isinstance(error, usher.CallbackError)
    assert isinstance(error.__cause__, LookupError)
    later = playback.load_resource(SKD).exception(10)
    assert isinstance(later, usher.CallbackError)
    assert isinstance(later.__cause__, LookupError)
    stage.settle()
    assert [
        isinstance(event.error and event.error.__cause__, LookupError) for event in stage.events.all(E.LICENSE_ERROR)
    ] == [True, True]
    assert [name for name, _ in stage.callback_failures] == ["spc", "spc"]


def test_failure_withACause_isTheCauseOfTheError(stage: Stage) -> None:
    ready(stage)
    loader(stage, lambda request: request.fail(LookupError("no CDM")))
    error = failed(play(stage))
    assert isinstance(error, usher.CallbackError)
    assert isinstance(error.__cause__, LookupError)


@pytest.mark.callback_errors
def test_exceptions_ofTwoKeysSideBySide_goEachToItsOwn(stage: Stage) -> None:
    """Three keys load at the same time, and the callbacks for two of them raise exceptions. Each error has the
    exception of its own request as `__cause__`."""
    ready(stage)
    stage.headend.add_key(b"1" * 16, b"2" * 16, "good")

    cdm = CDM()

    def spc(request: usher.SPCRequest) -> bytes:
        if request.url == "skd://bad":
            raise LookupError("no CDM")
        if request.url == "skd://worse":
            raise ArithmeticError("no CDM either")
        return cdm.make(request)

    loader(stage, spc)
    playback = play(stage)
    loads = {url: playback.load_resource(url) for url in ("skd://bad", "skd://worse", "skd://good")}
    causes = {
        url: error and error.__cause__ for url, error in ((url, load.exception(10)) for url, load in loads.items())
    }
    assert {url: type(cause).__name__ for url, cause in causes.items()} == {
        "skd://bad": "LookupError",
        "skd://worse": "ArithmeticError",
        "skd://good": "NoneType",
    }
    assert cdm.opened(loads["skd://good"].result()) == (b"1" * 16, b"2" * 16)


@pytest.mark.callback_errors
def test_exception_ofTheFuture_isTheCause(stage: Stage) -> None:
    ready(stage)

    def spc(request: usher.SPCRequest) -> Future[bytes]:
        made: Future[bytes] = Future()
        made.set_exception(LookupError("no CDM"))
        return made

    loader(stage, spc)
    assert isinstance(failed(play(stage)).__cause__, LookupError)


@pytest.mark.callback_errors
def test_exception_ofTheToldCallback_isReported_andNothingElse(stage: Stage) -> None:
    ready(stage)

    def told(future: Future[bytes]) -> None:
        raise LookupError("told")

    loader(stage)
    load = play(stage).load_resource(SKD, callback=told)
    assert load.result(10)
    stage.settle()
    assert [(name, type(error)) for name, error in stage.callback_failures] == [("resource", LookupError)]


def test_callbacks_ofOnePlayback_runInOrder_andNotAtOnce(stage: Stage) -> None:
    for number in range(30):
        stage.headend.add_key(bytes([number]) * 16, KEY, f"movie-{number}")
    cdm, running, order = CDM(), threading.Semaphore(1), list[str]()

    def spc(request: usher.SPCRequest) -> bytes:
        assert running.acquire(blocking=False), "two SPC callbacks ran at the same time"
        order.append(request.url)
        made = cdm.make(request)
        running.release()
        return made

    loader(stage, spc)
    playback = play(stage)
    urls = [f"skd://movie-{number}" for number in range(30)]
    for load in [playback.load_resource(url) for url in urls]:
        assert load.result(10)
    assert order == urls


def test_callback_ofOnePlayback_doesNotHoldUpAnother(stage: Stage) -> None:
    ready(stage)
    cdm, hold, entered = CDM(), threading.Event(), threading.Event()

    def spc(request: usher.SPCRequest) -> bytes:
        if request.tag == "slow":
            entered.set()
            assert hold.wait(10)
        return cdm.make(request)

    loader(stage, spc)
    with usher.Player(stage.context) as other:
        slow = play(stage, tag="slow").load_resource(SKD)
        assert entered.wait(10)
        assert cdm.opened(play(stage, player=other).get_resource(SKD)) == (KID, KEY)
        assert not slow.done()
        hold.set()
        assert slow.result(10)


def test_callback_ofASlowCdm_holdsNoHeartbeatUp(stage: Stage) -> None:
    ready(stage)
    kept = Kept()
    loader(stage, kept, spc_timeout_ms=600_000)
    playback = stage.play()
    playback.wait_session()
    load = playback.load_resource(SKD, timeout_ms=usher.OFF)
    stage.advance(180_000)
    assert stage.routes() == ["setup", "heartbeat", "heartbeat", "heartbeat"]
    kept.requests[0].answer(CDM().make(kept.requests[0]))
    assert load.result(10)
