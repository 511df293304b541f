"""The option `trace_context`: requests have the header `traceparent` of W3C Trace Context (docs/traces.md)."""

from __future__ import annotations

import json
import re

import pytest

import usher
from stage import PERIOD_MS, Stage, StageFactory
from usher.testing.headend import Fault

E = usher.EventType
FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01")


def ids(stage: Stage, route: str | None = None) -> list[tuple[str, str]]:
    """Returns trace id and span id of each request that arrived, in order."""
    found = []
    for entry in stage.headend.journal.entries(route=route):
        assert len(entry.header_values("traceparent")) == 1, entry.headers
        match = FORM.fullmatch(entry.trace_parent or "")
        assert match, entry.trace_parent
        found.append((match[1], match[2]))
    return found


def watch(stage: Stage) -> None:
    """Plays one item with its licence for one period, and closes it."""
    playback = stage.play()
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(PERIOD_MS)
    playback.close()
    stage.settle()


def test_requests_withTraceContext_haveOneTraceForEachPlayback(stage_factory: StageFactory) -> None:
    """Two items play one after the other. The four requests of each have the same trace id, and each request has its
    own span id. The trace of the context has the same headers as the journal."""
    stage = stage_factory(trace_context=True)
    watch(stage)
    watch(stage)
    sent = ids(stage)
    assert stage.routes() == ["setup", "license", "heartbeat", "teardown"] * 2
    assert len({trace for trace, _ in sent[:4]}) == 1 == len({trace for trace, _ in sent[4:]})
    assert sent[0][0] != sent[4][0]
    assert len({span for _, span in sent}) == 8
    lines = [line for line in map(json.loads, stage.trace) if line["kind"] == "request"]
    assert [line["traceparent"] for line in lines] == [entry.trace_parent for entry in stage.headend.journal]


def test_repeatedHeartbeat_withTraceContext_hasItsOwnSpan(stage_factory: StageFactory) -> None:
    """The server drops a heartbeat, and the library repeats it. Both have the same trace id and different span ids."""
    stage = stage_factory(trace_context=True)
    stage.play()
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.drop())
    stage.advance(2 * PERIOD_MS)
    beats = ids(stage, "heartbeat")
    assert len(beats) >= 2 and len({trace for trace, _ in beats}) == 1
    assert len({span for _, span in beats}) == len(beats)


def test_certificate_withTraceContext_hasATraceOfItsOwn(stage_factory: StageFactory) -> None:
    """A request for the certificate belongs to no playback: it has another trace id than the playback."""
    stage = stage_factory(trace_context=True)
    delegate = stage.delegate(certificate_url=stage.headend.certificate_url("fairplay"))
    playback = stage.play(delegate=delegate)
    stage.settle()
    playback.get_certificate()
    (setup,), (certificate,) = ids(stage, "setup"), ids(stage, "certificate")
    assert setup[0] != certificate[0]


def test_contexts_withTraceContext_haveDifferentIds(stage_factory: StageFactory) -> None:
    """The first playback of each context has the same number, but the trace ids and span ids of two contexts differ."""
    first, second = stage_factory(trace_context=True), stage_factory(trace_context=True)
    watch(first)
    watch(second)
    assert not {trace for trace, _ in ids(first)} & {trace for trace, _ in ids(second)}
    assert not {span for _, span in ids(first)} & {span for _, span in ids(second)}


def test_requests_byDefault_haveNoTraceContext(stage: Stage) -> None:
    watch(stage)
    assert [entry.trace_parent for entry in stage.headend.journal] == [None] * 4
    assert not [line for line in stage.trace if "traceparent" in line]


def test_timerSlack_onTheSystemClock_heartbeatsWaitForEachOther(stage_factory: StageFactory) -> None:
    """With a timer slack of 50 ms, the library sends a heartbeat 50 ms late if nothing else wakes the library earlier.
    On a busy machine something else may wake the library before one heartbeat, but not before each of five. So the test
    requires that at least one of the five heartbeats is at least 49 ms late."""
    stage = stage_factory(
        headend={"clock": "system", "period_s": 0.3, "grace": 20.0, "beat_tolerance_ms": 60_000},
        clock="system",
        timer_slack_ms=50,
    )
    stage.play()
    for beats in range(1, 6):
        stage.headend.journal.wait_for(beats, route="heartbeat")
        if any(event.lateness_ms >= 49 for event in stage.events.all(E.KEPT_ALIVE)):
            return
    lateness = [event.lateness_ms for event in stage.events.all(E.KEPT_ALIVE)]
    raise AssertionError(f"no heartbeat waited for the slack: {lateness} ms late")


@pytest.mark.parametrize("option", [{"timer_slack_ms": 51}, {"trace_context": 2}])
def test_context_withAWrongOption_isRefused(option: dict[str, int]) -> None:
    (name,) = option
    with pytest.raises((usher.InvalidArgumentError, TypeError), match=name):
        usher.Context(**option)  # type: ignore[arg-type]
