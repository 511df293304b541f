"""Tests the metrics of a context: each counter agrees with the head-end's journal, its session table or the events, and
the official Prometheus client reads their text."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import usher
from stage import Stage, StageFactory
from stage.fps import failed, loader, play, ready
from usher.testing.headend import Fault

E = usher.EventType
LATE_MS = (10, 50, 100, 500, 1000, 5000)


def seen(stage: Stage) -> dict[str, int]:
    """Returns the expected metrics, counted from the head-end's journal, its session table and the events."""
    entries = list(stage.headend.journal)
    sent = Counter(entry.route for entry in entries)
    denied = Counter(entry.route for entry in entries if (entry.status or 0) >= 400)
    late = [event.lateness_ms for event in stage.events.all(E.KEPT_ALIVE)]
    named = ("setup", "heartbeat", "teardown", "license")
    return {
        "sessions_held": len(stage.headend.sessions.active()),
        "sessions_opened": len(stage.events.all(E.SESSION_STARTED)),
        "setups_sent": sent["setup"],
        "heartbeats_sent": sent["heartbeat"],
        "teardowns_sent": sent["teardown"],
        "licenses_sent": sent["license"],
        "others_sent": sum(sent[route] for route in sent if route not in named),
        "keep_alives": len(late),
        "lateness_ms": sum(late),
        **{f"late_at_most_{most}_ms": sum(lateness <= most for lateness in late) for most in LATE_MS},
        "denials_ssm": sum(denied[route] for route in ("setup", "heartbeat", "teardown")),
        "denials_license": denied["license"] + denied["ckc"] + denied["rights"],
        "denials_certificate": denied["certificate"],
        "denials_entitlement": denied["entitlement"],
        "connections_opened": stage.headend.connections_made,
    }


def agrees(stage: Stage) -> usher.Metrics:
    """Waits until every request has its answer, then compares the metrics with the records of the head-end. Returns the
    metrics."""
    stage.settle()
    metrics = stage.context.metrics()
    wanted = seen(stage)
    assert {name: getattr(metrics, name) for name in wanted} == wanted, stage.headend.journal.dump()
    assert (metrics.requests_queued, metrics.requests_in_flight, metrics.callbacks) == (0, 0, 0)
    return metrics


@pytest.mark.breaks_rules("late-beat")
def test_metrics_agreeWithTheJournal(stage_factory: StageFactory) -> None:
    """Two screens play, and the head-end refuses a third one because of the limit. Then the library repeats a heartbeat
    that got the status 503, the machine sleeps, the library repeats the teardown of one session, the operator kills the
    other session, and the teardown of a third session fails. At each step the metrics agree with the head-end."""
    stage = stage_factory(headend={"limit": 2})
    assert agrees(stage) == usher.Metrics(*[0] * 27)
    screens = [usher.Player(stage.context) for _ in range(3)]
    first = stage.play(player=screens[0])
    stage.settle()
    stage.clear_keys(first)
    assert agrees(stage).sessions_held == 1
    second = stage.play(player=screens[1])
    stage.settle()
    refused = stage.play(player=screens[2])
    metrics = agrees(stage)
    assert (metrics.sessions_held, metrics.setups_sent, metrics.denials_ssm) == (2, 3, 1)
    assert metrics.sessions_lost == 0
    refused.close()
    stage.advance(60_000)
    metrics = agrees(stage)
    assert (metrics.heartbeats_sent, metrics.retries, metrics.late_at_most_10_ms) == (2, 0, 2)

    stage.headend.faults.add("heartbeat", Fault.status(503))
    stage.advance(65_000)
    metrics = agrees(stage)
    assert (metrics.heartbeats_sent, metrics.retries, metrics.keep_alives, metrics.denials_ssm) == (5, 1, 4, 2)
    stage.sleep(70_000)  # the next heartbeats were due after 55 s
    metrics = agrees(stage)
    assert (metrics.keep_alives, metrics.late_at_most_5000_ms) == (6, 4) and metrics.lateness_ms >= 30_000

    stage.headend.faults.add("teardown", Fault.status(503))
    second.close()
    stage.advance(1_000)
    metrics = agrees(stage)
    assert (metrics.teardowns_sent, metrics.teardowns_failed, metrics.retries) == (2, 0, 2)
    stage.headend.sessions.kill()
    stage.advance(60_000)
    metrics = agrees(stage)
    assert (metrics.sessions_held, metrics.sessions_lost, metrics.sessions_opened) == (0, 1, 2)
    third = stage.play(player=screens[2])
    stage.settle()
    stage.headend.faults.add("teardown", Fault.error(4001, processed=True))
    third.close()
    metrics = agrees(stage)
    assert (metrics.teardowns_failed, metrics.sessions_opened, metrics.sessions_lost) == (1, 3, 1)
    answered = sum(entry.status is not None for entry in stage.headend.journal)
    assert 0 < metrics.connections_reused == answered - metrics.connections_opened


@pytest.mark.parametrize("route", ["license", "certificate"])
def test_denial_isCountedForItsServer(stage: Stage, route: str) -> None:
    """The licence server or the certificate server refuses a request. The library counts the denial for this server."""
    playback = stage.play(delegate=stage.delegate(certificate_url=stage.headend.certificate_url("widevine")))
    stage.settle()
    stage.headend.faults.add(route, Fault.error(4005))
    with pytest.raises(usher.RefusedError):
        if route == "license":
            stage.clear_keys(playback)
        else:
            playback.get_certificate()
    metrics = agrees(stage)
    assert getattr(metrics, f"denials_{route}") == 1 == sum(denials(metrics))


@pytest.mark.parametrize(
    ("step", "origin"), [("entitlement", "entitlement"), ("certificate", "certificate"), ("rights", "license")]
)
def test_denialOfALoader_isCountedForItsServer(stage: Stage, step: str, origin: str) -> None:
    """A resource loader asks an entitlement server, a certificate server and a key server, and one of them refuses. The
    library counts the denial for this server."""
    ready(stage)
    loader(
        stage,
        route=usher.Route.ENTITLEMENT,
        entitlement_url=stage.headend.entitlement_url,
        certificate_url=stage.headend.fps_certificate_url,
    )
    stage.headend.faults.add(step, Fault.error(4005))
    failed(play(stage))
    metrics = agrees(stage)
    assert metrics.others_sent == len(stage.routes()) > 0
    assert getattr(metrics, f"denials_{origin}") == 1 == sum(denials(metrics))


def denials(metrics: usher.Metrics) -> list[int]:
    return [value for name, value in asdict(metrics).items() if name.startswith("denials_")]


def test_denialInAReplyWithStatus200_isCounted(stage: Stage) -> None:
    """The head-end refuses a set-up: its reply has an error code and the status 200. The library counts this denial
    too."""
    stage.headend.faults.add("setup", Fault.error(1007, status=200))
    stage.play()
    stage.settle()
    assert stage.events.error(E.SETUP_ERROR).status is usher.Status.LIMIT
    assert stage.context.metrics().denials_ssm == 1


def test_requestsThatWait_areCounted(stage_factory: StageFactory) -> None:
    """At most one request may be in flight. While the head-end holds the first request, the metrics count one request
    in flight and one in the queue."""
    stage = stage_factory(requests_per_origin_max=1)
    stage.headend.faults.add("setup", Fault.stall())
    for _ in range(2):
        stage.play(player=usher.Player(stage.context))
    stage.until(lambda: stage.headend.held == 1)
    metrics = stage.context.metrics()
    assert (metrics.requests_in_flight, metrics.requests_queued, metrics.setups_sent) == (1, 1, 1)
    stage.headend.release()
    assert agrees(stage).setups_sent == 2


def test_callbacksThatWait_areCounted(stage_factory: StageFactory) -> None:
    """A host does not pump, so its callbacks wait. The metrics count the waiting callbacks."""
    stage = stage_factory(callbacks="pumped")
    stage.play()
    stage.until(lambda: stage.context.pending().callbacks > 0 and not stage.context.pending().transfers)
    assert stage.context.metrics().callbacks == stage.context.pending().callbacks > 0
    assert agrees(stage).sessions_opened == 1


def test_metrics_inACallback_areRefused(stage: Stage) -> None:
    """An observer asks for the metrics. The library refuses this, because the call would wait for the I/O thread."""
    caught: list[BaseException] = []

    def ask(event: usher.Event) -> None:
        try:
            stage.context.metrics()
        except usher.WouldDeadlockError as error:
            caught.append(error)

    with stage.context.add_observer(ask):
        stage.play()
        stage.settle()
    assert caught


# ---- the text for Prometheus -----------------------------------------------------------------------------------------

NUMBERS = usher.Metrics(*range(101, 128))
NUMBERS = replace(NUMBERS, **{f"late_at_most_{most}_ms": 80 + at for at, most in enumerate(LATE_MS)})
SAMPLES = {
    "usher_sessions_held": "sessions_held",
    "usher_sessions_opened_total": "sessions_opened",
    "usher_sessions_lost_total": "sessions_lost",
    **{f"usher_requests_sent_total kind={kind}": f"{kind}s_sent" for kind in ("setup", "heartbeat", "teardown")},
    "usher_requests_sent_total kind=license": "licenses_sent",
    "usher_requests_sent_total kind=other": "others_sent",
    "usher_retries_total": "retries",
    **{f"usher_keep_alive_lateness_seconds_bucket le={most / 1000:g}": f"late_at_most_{most}_ms" for most in LATE_MS},
    "usher_keep_alive_lateness_seconds_bucket le=+Inf": "keep_alives",
    "usher_keep_alive_lateness_seconds_count": "keep_alives",
    "usher_keep_alive_lateness_seconds_sum": "lateness_ms",
    **{
        f"usher_denials_total origin={origin}": f"denials_{origin}"
        for origin in ("ssm", "license", "certificate", "entitlement")
    },
    "usher_teardowns_failed_total": "teardowns_failed",
    "usher_connections_opened_total": "connections_opened",
    "usher_connections_reused_total": "connections_reused",
    "usher_requests_queued": "requests_queued",
    "usher_requests_in_flight": "requests_in_flight",
    "usher_callbacks": "callbacks",
}


@pytest.mark.parametrize(
    "labels", [None, {}, {"screen": "3", "place": 'a "b"\\c\nd, e}'}], ids=["none", "empty", "two"]
)
def test_text_isReadByThePrometheusClient(labels: dict[str, str] | None) -> None:
    """The official client reads the text: each sample has the value of its field and the host's labels, and each metric
    has its type."""
    families = list(text_string_to_metric_families(NUMBERS.prometheus(labels)))
    found: dict[str, float] = {}
    for sample in (sample for family in families for sample in family.samples):
        own = {name: value for name, value in sample.labels.items() if name not in (labels or {})}
        assert {**sample.labels, **(labels or {})} == sample.labels, sample
        found[" ".join([sample.name, *(f"{name}={value}" for name, value in own.items())])] = sample.value
    scale = {"lateness_ms": 0.001}
    wanted = {name: pytest.approx(getattr(NUMBERS, field) * scale.get(field, 1)) for name, field in SAMPLES.items()}
    assert found == wanted
    assert set(SAMPLES.values()) == set(asdict(NUMBERS)), "each field has a sample"
    kinds = Counter(family.type for family in families)
    assert kinds == {"gauge": 4, "counter": 8, "histogram": 1}
    assert all(family.documentation.endswith(".") for family in families)


def test_text_ofLargeNumbers_isExact() -> None:
    """The text shows the sum of the lateness with thousandths of a second, and shows all digits of a counter, also
    those that a floating-point number cannot hold."""
    text = replace(NUMBERS, lateness_ms=1_234_007, heartbeats_sent=2**64 - 1).prometheus()
    assert "usher_keep_alive_lateness_seconds_sum 1234.007\n" in text
    assert 'usher_requests_sent_total{kind="heartbeat"} 18446744073709551615\n' in text


@pytest.mark.parametrize("labels", [{"a": "\r"}, {"a": "\x7f"}, {"a": "x" * 4096}, {"a": "\0"}])
def test_text_withBadLabels_isRefused(labels: dict[str, Any]) -> None:
    """A label has a control character or a NUL, or the labels are too long; the call raises InvalidArgumentError."""
    with pytest.raises(usher.InvalidArgumentError):
        NUMBERS.prometheus(labels)
    assert NUMBERS.prometheus({"a": "x" * 4092})
