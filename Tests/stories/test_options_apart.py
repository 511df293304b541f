"""Each object uses the options that the host set for this object, and the defaults of its kind for all other
options."""

from __future__ import annotations

import usher
from stage import Stage, StageFactory
from usher.testing.headend import Fault

E = usher.EventType


def test_delegates_withDifferentOptions_playSideBySide_eachByItsOwn(stage_factory: StageFactory) -> None:
    """Two delegates share one context. The host sets six options of the first delegate and no option of the second, so
    the second has the defaults."""
    stage = stage_factory(headend={"period_s": 60, "limit": 9})
    own = stage.delegate(
        extra_headers="X-Own: 1",
        setup_timeout_ms=1_000,
        teardown_timeout_ms=1_000,
        heartbeat_start=usher.HeartbeatStart.LICENSE,
        retry_permille=usher.OFF,
        token_wait_ms=100,
    )
    plain = usher.SSPDelegate(
        stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url
    )
    for name, delegate in (("own", own), ("plain", plain)):
        token = stage.headend.content_token(name)
        stage.play(token, delegate=delegate, player=usher.Player(stage.context), tag=name)
    stage.settle()
    sent = {entry.account: entry.header("X-Own") for entry in stage.sent("setup")}
    assert sent == {"own": "1", "plain": None}
    stage.advance(61_000)
    # Neither playback requests a licence. The first delegate starts heartbeats with the first licence
    # (`heartbeat_start`), so only the second delegate sends heartbeats.
    assert [entry.account for entry in stage.sent("heartbeat")] == ["plain"]
    assert stage.events.types("own") == ["SESSION_STARTED"]


def test_contexts_withDifferentTimeouts_eachWaitsForItsOwn(stage_factory: StageFactory) -> None:
    """One of two contexts sets a short time-out for requests, and the head-ends reply to no set-up in time. Only the
    set-up in the context with the short time-out fails."""
    short = stage_factory(http_timeout_ms=1_000)
    plain = stage_factory()
    for stage in (short, plain):
        stage.headend.faults.add("setup", Fault.stall("before"))
        stage.play(tag="a")
        stage.headend.wait_held()
        stage.advance(1_500)
    assert short.events.types("a") == ["SETUP_ERROR"] and plain.events.types("a") == []
    for stage in (short, plain):
        stage.headend.release()
        stage.settle()
    assert plain.events.types("a") == ["SESSION_STARTED"]


def test_tokenQuestions_ofTwoDelegates_haveTheirOwnDeadlines(stage: Stage) -> None:
    """One delegate sets its token time-out, and another delegate does not. Each set-up fails at the deadline of its own
    delegate."""
    waiting: list[usher.TokenRequest] = []

    def later(request: usher.TokenRequest) -> object:
        waiting.append(request)
        return usher.LATER

    slow = stage.delegate(token_callback=later, token_timeout_ms=60_000)
    plain = stage.delegate(token_callback=later)
    kept = [
        usher.Player(stage.context).play(None, delegate=delegate, tag=name)
        for name, delegate in (("slow", slow), ("plain", plain))
    ]
    stage.advance(59_000)
    assert stage.events.types("plain")[:1] == ["SETUP_ERROR"] and stage.events.types("slow") == []
    stage.advance(2_000)
    assert stage.events.types("slow")[:1] == ["SETUP_ERROR"] and len(waiting) == len(kept)
