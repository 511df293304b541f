"""A playback that names no delegate uses the delegate of the context (the DRM manager of the SDKs). The host sets,
replaces, clears and frees this delegate."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage

E = usher.EventType


class Named(usher.SSPDelegate):
    """A delegate that sends its name in a header of each licence request."""

    def __init__(self, stage: Stage, name: str, **options: Any) -> None:
        self.name = name
        options.setdefault("ssm_url", stage.headend.ssm_url)
        super().__init__(
            stage.context, license_url=stage.headend.license_url("clearkey"), jitter_permille=usher.OFF, **options
        )

    def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str]:
        return {**call.builtin(), "X-Delegate": self.name}


def play(stage: Stage, **options: Any) -> usher.Playback:
    playback = stage.player.play(stage.headend.content_token(), **options)
    stage._playbacks.append(playback)
    stage.settle()
    return playback


def names(stage: Stage) -> list[str | None]:
    return [entry.header("x-delegate") for entry in stage.sent("license")]


def test_manager_withoutADelegate_refusesToPlay(stage: Stage) -> None:
    """Without a licence delegate, the library refuses play() (delegates.md: Which delegate)."""
    with pytest.raises(usher.NoDelegateError):
        play(stage)
    assert stage.routes() == []


def test_manager_setLicenseDelegate_servesPlaybacksThatNameNone(stage: Stage) -> None:
    """After OTVDRMManager.shared.setLicenseDelegate(), a player that names no delegate uses this delegate
    (multi-instance page; customer SSM page; delegates.md: Hooks)."""
    stage.context.set_delegate(Named(stage, "manager's"))
    assert stage.clear_keys(play(stage)) == {KID: KEY}
    assert stage.clear_keys(play(stage, delegate=Named(stage, "its own"))) == {KID: KEY}
    assert names(stage) == ["manager's", "its own"]


def test_manager_replaced_servesTheNextPlaybacks(stage: Stage) -> None:
    """Playbacks that start later use the new delegate; a playback that has already started keeps its delegate
    (delegates.md: Which delegate)."""
    stage.context.set_delegate(Named(stage, "first"))
    first = play(stage)
    stage.context.set_delegate(Named(stage, "second"))
    gc.collect()
    assert stage.clear_keys(first) == {KID: KEY}
    stage.advance(60_000)
    assert stage.routes() == ["setup", "license", "heartbeat"]
    assert stage.clear_keys(play(stage)) == {KID: KEY}
    assert names(stage) == ["first", "second"]


def test_manager_cleared_servesNoMoreAndLeavesWhoPlays(stage: Stage) -> None:
    """After the host has cleared the context's delegate, the library refuses play() without a delegate. A playback that
    already plays keeps the old delegate (delegates.md: Which delegate)."""
    stage.context.set_delegate(Named(stage, "only"))
    playback = play(stage)
    stage.context.set_delegate(None)
    gc.collect()
    with pytest.raises(usher.NoDelegateError):
        stage.player.play(stage.headend.content_token())
    assert stage.clear_keys(playback) == {KID: KEY}
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "license", "teardown"]


def test_manager_keepsTheDelegate_whoseHandleWasFreed(stage: Stage) -> None:
    """The context keeps the delegate alive after the host has freed its handle (protocol.md: When it fails)."""
    delegate = Named(stage, "kept")
    stage.context.set_delegate(delegate)
    delegate.close()
    del delegate
    gc.collect()
    assert stage.clear_keys(play(stage)) == {KID: KEY}
    assert names(stage) == ["kept"]


def test_delegate_replacedWhileItsPlaybackPlays_livesUntilThatEnds(stage: Stage) -> None:
    """A replaced delegate lives until its last playback closes; then Python frees it (protocol.md: When it fails)."""
    delegate = Named(stage, "old")
    gone = weakref.ref(delegate)
    stage.context.set_delegate(delegate)
    del delegate
    playback = stage.player.play(stage.headend.content_token())
    stage.context.set_delegate(None)
    gc.collect()
    assert gone() is not None
    assert stage.clear_keys(playback) == {KID: KEY}
    playback.close()
    stage.settle()
    stage.events.clear()
    gc.collect()
    assert gone() is None


def test_delegate_destroyedWithItsPlaybacks_tearsDown(stage: Stage) -> None:
    """A playback still uses a delegate after the host has freed the delegate's handle. When the host frees the playback
    too, the library tears the session down (protocol.md: When it fails)."""
    delegate = Named(stage, "dropped")
    playback = stage.player.play(stage.headend.content_token(), delegate=delegate)
    stage.settle()
    delegate.close()
    assert stage.routes() == ["setup"], "a playback still uses it"
    playback.free()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


def test_manager_setFreedOrForeignDelegate_isRefusedAndKeepsTheOld(stage: Stage, stage_factory: Any) -> None:
    """The library refuses a delegate that is freed or belongs to another context; the context keeps its earlier
    delegate."""
    stage.context.set_delegate(Named(stage, "stays"))
    freed = Named(stage, "freed")
    freed.close()
    with pytest.raises(usher.InvalidHandleError):
        stage.context.set_delegate(freed)
    other = stage_factory()
    with pytest.raises(usher.InvalidArgumentError):
        stage.context.set_delegate(Named(other, "foreign"))
    assert stage.clear_keys(play(stage)) == {KID: KEY}
    assert names(stage) == ["stays"]


def test_manager_replacedFromManyThreads_givesEachPlaybackAWholeDelegate(stage_factory: Any) -> None:
    """Several threads start playbacks while another thread replaces the delegate. Each playback calls the hooks of only
    one delegate, and keeps this delegate alive."""
    stage = stage_factory(headend={"limit": 100})
    stage.context.set_delegate(Named(stage, "0"))
    stop, failures = threading.Event(), []

    def replace() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            stage.context.set_delegate(Named(stage, str(number)))

    def plays() -> None:
        try:
            for _ in range(20):
                playback = usher.Player(stage.context).play(stage.headend.content_token())
                assert stage.clear_keys(playback) == {KID: KEY}
                playback.close()
        except BaseException as error:
            failures.append(error)

    replacing = threading.Thread(target=replace)
    playing = [threading.Thread(target=plays) for _ in range(3)]
    for thread in (replacing, *playing):
        thread.start()
    for thread in playing:
        thread.join(60)
    stop.set()
    replacing.join(10)
    assert not failures, failures
    assert len(names(stage)) == 60
    assert all(names(stage))
    stage.settle()


def test_managers_ofTwoContexts_areIndependent(stage: Stage, stage_factory: Any) -> None:
    """Each context has a separate delegate; there is no global state."""
    other = stage_factory(stage.headend)
    stage.context.set_delegate(Named(stage, "one"))
    other.context.set_delegate(Named(other, "two"))
    assert stage.clear_keys(play(stage)) == {KID: KEY}
    assert other.clear_keys(play(other)) == {KID: KEY}
    assert names(stage) == ["one", "two"]
