"""Tests answers that the host gives later: from other threads, twice, too late, after the playback has ended, with
wrong ids, and with an answer of the wrong kind."""

from __future__ import annotations

import ctypes
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import usher
from stage import CHALLENGE, Stage, StageFactory
from usher._c import ffi

E = usher.EventType
MODES = ["threaded", "pumped"]
KINDS = ["token", "payload"]


class Asked:
    """A stage with one open question of the given kind; `request` is the question."""

    def __init__(self, stage: Stage, kind: str) -> None:
        self.stage, self.kind = stage, kind
        self.requests: list[Any] = []
        if kind == "token":
            self.playback = stage.player.play(delegate=stage.delegate(token_callback=self._keep))
            stage.settle()
        else:
            self.playback = stage.play(payload=self._keep)
            licence = self.playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
            stage.settle()
            assert licence.result(10).renew_type is usher.RenewType.ENFORCED
            stage.advance(60_000)
        assert len(self.requests) == 1
        self.request = self.requests[0]

    def _keep(self, request: Any) -> Any:
        self.requests.append(request)
        return usher.LATER

    @property
    def good(self) -> Any:
        return self.stage.headend.content_token() if self.kind == "token" else CHALLENGE

    @property
    def bad(self) -> list[Any]:
        return ["", "a\nb", "a\rb", "x" * 65_537] if self.kind == "token" else [b"", bytes(1024 * 1024 + 1)]

    def was_used(self) -> bool:
        """Whether the answer reached the head-end."""
        return self.stage.routes() == (["setup"] if self.kind == "token" else ["setup", "license", "license-renewal"])

    def was_not_used(self) -> bool:
        return self.stage.routes() == ([] if self.kind == "token" else ["setup", "license"])


Asking = Callable[..., Asked]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def asking(stage_factory: StageFactory, mode: str, kind: str) -> Asking:
    """Makes stages with an open question of the given kind."""

    def make(asked: str = kind, **headend: Any) -> Asked:
        return Asked(
            stage_factory(headend={"enforced": {"clearkey"}, "grace": 10.0, "limit": 50, **headend}, callbacks=mode),
            asked,
        )

    return make


def raw(function: Any, *arguments: Any) -> usher.Status:
    try:
        return usher.Status(function(*arguments))
    except usher.UsherError as error:
        return error.status


def complete_token(number: int, token: bytes | None = b"token") -> usher.Status:
    return raw(ffi.lib.usher_complete_token, number, token)


def complete_payload(number: int, payload: bytes | None = b"payload") -> usher.Status:
    return raw(ffi.lib.usher_complete_payload, number, ffi.c_bytes(payload), len(payload or b""))


def outcomes(calls: list[Callable[[], Any]]) -> Counter[str]:
    """Runs all calls at the same moment, each on a new thread. Returns the outcomes."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> str:
        gate.wait(10)
        try:
            call()
            return "done"
        except usher.UsherError as error:
            return type(error).__name__

    with ThreadPoolExecutor(len(calls)) as pool:
        return Counter(pool.map(run, calls))


def test_answer_fromAnotherThread_isUsed(asking: Asking) -> None:
    asked = asking()
    asked.stage.call(asked.request.answer, asked.good).result(10)
    asked.stage.settle()
    assert asked.was_used()
    assert asked.request.answered


@pytest.mark.parametrize("how", ["answer", "fail"])
def test_answered_forWhoGoesOnBecauseOfTheAnswer_isTrue(
    asking: Asking, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer may wake another thread, which reads `answered` before answer() or fail() returns. Even so early,
    `answered` must be True."""
    asked, seen = asking(), []
    name = f"usher_complete_{asked.kind}"
    tell = getattr(ffi.lib, name)
    reader = threading.Thread(target=lambda: seen.append(asked.request.answered))

    def complete(*arguments: Any) -> None:
        tell(*arguments)
        reader.start()
        reader.join(0.05)  # not longer: the reader may wait until this thread has answered

    monkeypatch.setattr(ffi.lib, name, complete)
    getattr(asked.request, how)(*[asked.good] * (how == "answer"))
    reader.join(10)
    assert seen == [True]


@pytest.mark.breaks_rules("late-beat")
def test_answer_aMomentBeforeTheDeadline_isUsed(asking: Asking) -> None:
    asked = asking()
    asked.stage.advance(4_999)
    asked.stage.call(asked.request.answer, asked.good).result(10)
    asked.stage.settle()
    assert asked.was_used()


@pytest.mark.parametrize("second", ["answer", "fail"])
def test_answer_twice_isInvalidTheSecondTime(asking: Asking, second: str) -> None:
    asked = asking()
    asked.request.answer(asked.good)
    again = (lambda: asked.request.answer(asked.good)) if second == "answer" else asked.request.fail
    for _ in range(3):
        with pytest.raises(usher.InvalidCompletionError):
            asked.stage.call(again).result(10)
    asked.stage.settle()
    assert asked.was_used()


def test_answer_byManyThreadsAtOnce_isTakenOnce(asking: Asking) -> None:
    asked = asking()
    good = asked.good
    assert outcomes([lambda: asked.request.answer(good)] * 16) == {"done": 1, "InvalidCompletionError": 15}
    asked.stage.settle()
    assert asked.was_used()


def test_answerAndFail_atOnce_areTakenOnce(asking: Asking) -> None:
    asked = asking()
    good = asked.good
    found = outcomes([lambda: asked.request.answer(good), asked.request.fail] * 4)
    assert found == {"done": 1, "InvalidCompletionError": 7}
    asked.stage.settle()
    assert asked.was_used() or asked.was_not_used()


def test_answer_thatIsNone_leavesTheQuestionOpen(asking: Asking) -> None:
    asked = asking()
    for value in asked.bad:
        with pytest.raises(usher.InvalidArgumentError):
            asked.request.answer(value)
        assert not asked.request.answered
    asked.stage.settle()
    assert asked.was_not_used()
    asked.request.answer(asked.good)
    asked.stage.settle()
    assert asked.was_used()


@pytest.mark.breaks_rules("late-beat")
def test_answer_afterTheDeadline_changesNothing(asking: Asking) -> None:
    asked = asking()
    asked.stage.advance(5_000)
    for call in (lambda: asked.request.answer(asked.good), asked.request.fail):
        with pytest.raises(usher.InvalidCompletionError):
            asked.stage.call(call).result(10)
    asked.stage.settle()
    assert asked.was_not_used()
    if asked.kind == "token":
        assert isinstance(asked.stage.events.error(E.SETUP_ERROR), usher.NoTokenError)


@pytest.mark.parametrize("end", ["close", "free", "stop", "zap"])
def test_answer_afterThePlaybacksEnd_changesNothing(asking: Asking, end: str) -> None:
    asked = asking()
    {
        "close": asked.playback.close,
        "free": asked.playback.free,
        "stop": asked.stage.player.stop,
        "zap": asked.stage.play,
    }[end]()
    asked.stage.settle()
    before = asked.stage.routes()
    for call in (lambda: asked.request.answer(asked.good), asked.request.fail):
        with pytest.raises(usher.InvalidCompletionError):
            asked.stage.call(call).result(10)
    asked.stage.settle()
    assert asked.stage.routes() == before


def test_answer_afterTheContextsEnd_isInvalid(asking: Asking) -> None:
    asked = asking()
    good = asked.good
    asked.stage.context.close()
    assert outcomes([lambda: asked.request.answer(good), asked.request.fail] * 4) == {"InvalidCompletionError": 8}
    assert not asked.stage.headend.sessions.active()


def test_answer_ofTheOtherKind_isInvalidAndLeavesTheQuestionOpen(asking: Asking) -> None:
    asked = asking()
    number = asked.request._completion
    wrong = complete_payload if asked.kind == "token" else complete_token
    for call in (lambda: wrong(number), lambda: wrong(number, None)):
        assert asked.stage.call(call).result(10) is usher.Status.INVALID_COMPLETION
    asked.stage.settle()
    assert asked.was_not_used()
    asked.request.answer(asked.good)
    asked.stage.settle()
    assert asked.was_used()


def test_garbageIds_fromManyThreads_areInvalidAndDisturbNothing(asking: Asking) -> None:
    asked = asking()
    number = asked.request._completion
    numbers = {
        0,
        2**63,
        2**64 - 1,
        *(number ^ (1 << bit) for bit in range(64)),
        *(number + step for step in range(1, 50)),
    } - {number}
    rng = random.Random(7)
    numbers |= {rng.getrandbits(64) for _ in range(500)} - {number}

    def storm() -> None:
        for one in numbers:
            assert complete_token(one) is usher.Status.INVALID_COMPLETION
            assert complete_payload(one) is usher.Status.INVALID_COMPLETION
            assert complete_token(one, None) is usher.Status.INVALID_COMPLETION

    assert outcomes([storm] * 4) == {"done": 4}
    asked.request.answer(asked.good)
    asked.stage.settle()
    assert asked.was_used()


def test_answer_fromInsideAnotherContextsCallback_isUsed(asking: Asking, stage_factory: StageFactory) -> None:
    asked, other = asking(), stage_factory()
    good = asked.good
    other.context.add_observer(lambda event: asked.request.answer(good) if event.type is E.SESSION_STARTED else None)
    other.play()
    other.settle()
    asked.stage.settle()
    assert asked.was_used()


def test_questionsOfManyPlaybacks_answeredInAnyOrder_areEachTheirOwn(stage_factory: StageFactory, mode: str) -> None:
    stage = stage_factory(headend={"limit": 30}, callbacks=mode)
    kept: dict[object, usher.TokenRequest] = {}
    delegate = stage.delegate(token_callback=lambda request: kept.setdefault(request.tag, request) and usher.LATER)
    players = [usher.Player(stage.context) for _ in range(20)]
    for number, player in enumerate(players):
        player.play(delegate=delegate, tag=number)
    stage.settle()
    tokens = {number: stage.headend.content_token(content_id=f"content-{number}") for number in kept}
    order = list(kept)
    random.Random(3).shuffle(order)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: kept[number].answer(tokens[number]), order))  # type: ignore[index]
    stage.settle()
    assert sorted(event.tag for event in stage.events.all(E.SESSION_STARTED)) == list(range(20))  # type: ignore[type-var]
    assert sorted(entry.header("nv-authorizations") for entry in stage.sent("setup")) == sorted(tokens.values())


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("rival", ["deadline", "close", "free", "context"])
def test_answer_racingTheEnd_neitherHangsNorLeaksASession(asking: Asking, rival: str) -> None:
    for round_ in range(6):
        asked = asking()
        good, stage = asked.good, asked.stage
        if rival == "deadline":
            stage.advance(4_999)
        ends: dict[str, Callable[[], Any]] = {
            "deadline": lambda stage=stage: stage.context.advance(1),
            "close": asked.playback.close,
            "free": asked.playback.free,
            "context": stage.context.close,
        }
        answers: list[Callable[[], Any]] = [lambda asked=asked, good=good: asked.request.answer(good)] * 3
        calls = [*answers, ends[rival]]
        random.Random(round_).shuffle(calls)
        found = outcomes(calls)
        assert found["done"] in (1, 2) and set(found) <= {"done", "InvalidCompletionError"}, found
        stage.close()
        assert not stage.headend.sessions.active(), stage.headend.journal.dump()


def test_completion_isNeverZeroAndNeverComesBack(stage_factory: StageFactory) -> None:
    stage = stage_factory()
    seen: list[int] = []

    def token(request: usher.TokenRequest) -> str:
        seen.append(request._completion)
        return stage.headend.content_token()

    delegate = stage.delegate(token_callback=token)
    for _ in range(30):
        stage.player.play(delegate=delegate)
        stage.settle()
    assert len(set(seen)) == 30 and 0 not in seen
    for number in seen:
        assert complete_token(number) is usher.Status.INVALID_COMPLETION


def test_payload_withASizeThatFitsNot_isRefusedAndTheQuestionStaysOpen(asking: Asking) -> None:
    asked = asking("payload")
    number = asked.request._completion
    data = ctypes.cast(ctypes.create_string_buffer(16), ctypes.POINTER(ctypes.c_uint8))
    for size in (0, 1024 * 1024 + 1, 2**63, 2**64 - 1):
        assert raw(ffi.lib.usher_complete_payload, number, data, size) is usher.Status.INVALID_ARGUMENT
    asked.request.answer(CHALLENGE)
    asked.stage.settle()
    assert asked.was_used()
