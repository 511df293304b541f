"""Tests which Python objects keep other objects alive, which objects the garbage collector frees, and threads that free
objects at the same moment."""

from __future__ import annotations

import copy
import gc
import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest

import usher
from stage import REAL_TIMEOUT_S, Stage, StageFactory
from usher._c import registry
from usher.testing.headend import Fault, HeadEnd


class Empty(usher.SSPDelegate):
    """A subclass with `__len__`, as containers have it. Python reads an empty container as false, so the bindings must
    not test a delegate with `if delegate`."""

    def __len__(self) -> int:
        return 0


def test_delegateThatIsFalse_isUsedAllTheSame(stage: Stage) -> None:
    stage.context.set_delegate(stage.delegate(ssm_url=None))
    named = Empty(stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url)
    stage.play(delegate=named).wait_session()
    assert stage.routes() == ["setup"]
    stage.context.set_delegate(named)
    stage.play(player=usher.Player(stage.context), delegate=None).wait_session()
    assert stage.routes() == ["setup", "setup"]


def test_contextsDelegate_replacedAndFreedWhileAPlaybackStarts_theNewOneIsUsed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread replaces and frees the context's delegate after play() has chosen it and before play() calls the
    library: play() uses the new delegate."""
    old, new = stage.delegate(ssm_url=None), stage.delegate()
    stage.context.set_delegate(old)
    add = registry.add

    def replaced(entry: Any) -> int:
        monkeypatch.setattr(registry, "add", add)
        stage.call(stage.context.set_delegate, new).result()
        stage.call(old.close).result()
        return add(entry)

    monkeypatch.setattr(registry, "add", replaced)
    stage.play(delegate=None).wait_session()
    assert stage.routes() == ["setup"]


def test_delegateThatWasFreed_isRefused(stage: Stage) -> None:
    freed = stage.delegate()
    freed.close()
    with pytest.raises(usher.InvalidHandleError):
        stage.play(delegate=freed)


class Closing(usher.Context):
    """A context that closes when the bindings read its property `closed`, which still returns False. So the context
    closes as if another thread did it directly after the bindings had read the property."""

    closes_next = False

    @property
    def closed(self) -> bool:
        was = not self._has_handle
        if self.closes_next and not was:
            self.closes_next = False
            self.close()
        return was


@pytest.fixture
def closing(lib: Any) -> Closing:
    return Closing(proxy="")


@pytest.mark.parametrize(
    "what", ["playback.close", "playback.free", "player.close", "delegate.close", "loader.close", "observer.remove"]
)
def test_end_whileAnotherThreadClosesTheContext_isNoError(closing: Closing, headend: HeadEnd, what: str) -> None:
    with closing as context:
        loader = usher.ResourceLoader(context, spc=lambda request: b"spc", license_url=headend.fps_url)
        delegate = usher.DefaultDelegate(context, license_url=headend.license_url("clearkey"))
        player = usher.Player(context)
        ends: dict[str, Callable[[], object]] = {
            "playback.close": (playback := player.play(delegate=delegate)).close,
            "playback.free": playback.free,
            "player.close": player.close,
            "delegate.close": delegate.close,
            "loader.close": loader.close,
            "observer.remove": context.add_observer(lambda event: None).remove,
        }
        context.closes_next = True
        ends[what]()
        assert context.closed


def test_playback_closedWhileAnotherThreadFreesIt_isNoError(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    playback = stage.play()
    playback.wait_session()
    from usher import playback as module

    end = module.end

    def freed(context: usher.Context, function: Any, *arguments: object) -> None:
        monkeypatch.setattr(module, "end", end)
        stage.call(playback.free).result()
        end(context, function, *arguments)

    monkeypatch.setattr(module, "end", freed)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_whatHasAHandle_isNotCopied(stage: Stage, how: Callable[[object], object]) -> None:
    """Objects with a handle cannot be copied: to free the copy would free the handle that the original still uses."""
    playback = stage.play()
    playback.wait_session()
    loader = usher.ResourceLoader(stage.context, spc=lambda request: b"spc", license_url=stage.headend.fps_url)
    for original in (
        stage.context,
        stage.player,
        stage.delegate(),
        playback,
        loader,
        stage.context.add_observer(stage.events),
    ):
        with pytest.raises(TypeError, match="cannot be copied"):
            how(original)
    gc.collect()
    assert playback.session_state is usher.SessionState.ACTIVE


def test_argumentOfAnotherType_isRefusedAndLeavesNothingBehind(stage: Stage) -> None:
    delegate, held = stage.delegate(), registry.count()
    for options in ({"delegate": "a text"}, {"clear": "no"}, {"content_id": 5}, {"content_token": 5}):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            stage.player.play(**{"delegate": delegate, **options})  # type: ignore[arg-type]
    playback = stage.player.play(delegate=delegate, clear=True)
    while_playing = registry.count()
    with pytest.raises(TypeError):
        playback.request_content_id(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        playback.load_resource(5)  # type: ignore[arg-type]
    assert (held, registry.count()) == (while_playing - 1, while_playing)


def test_syncPlayback_thatNobodyKeeps_isFreedWithoutAWait(stage: Stage) -> None:
    """The garbage collector frees a player and its sync playback while the head-end does not reply to the teardown; the
    thread that runs the finalizers does not wait."""
    player = usher.Player(stage.context)
    kept: list[object] = [
        player,
        player.play(stage.headend.content_token(), delegate=stage.delegate(sync_setup_teardown=True)),
    ]
    del player
    stage.settle()
    stage.events.clear()
    stage.headend.faults.add("teardown", Fault.stall())

    def drop() -> None:
        kept.clear()
        gc.collect()

    stage.call(drop).result(10)
    stage.headend.wait_held()
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


def test_context_thatNobodyKeeps_isFreed(stage_factory: StageFactory, headend: HeadEnd) -> None:
    """The host closes its playback, and drops all references to the context without closing it. The garbage collector
    frees the context with a ResourceWarning, and the bindings then hold no user_data."""
    context = usher.Context(proxy="")
    delegate = usher.SSPDelegate(context, license_url=headend.license_url("clearkey"), ssm_url=headend.ssm_url)
    events: list[usher.EventType] = []
    context.add_observer(lambda event: events.append(event.type))
    playback = usher.Player(context).play(headend.content_token(), delegate=delegate)
    playback.wait_session()
    playback.close()
    playback.wait_closed()
    with pytest.warns(ResourceWarning, match="not closed"):
        del context, delegate, playback
        deadline = time.monotonic() + REAL_TIMEOUT_S
        while registry.count() and time.monotonic() < deadline:  # library threads release references later
            gc.collect()
    assert headend.journal.routes() == ["setup", "teardown"]
    assert events[-1] is usher.EventType.PLAYBACK_CLOSED
