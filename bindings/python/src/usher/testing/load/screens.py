"""The Locust file of ``usher load``: each user is a screen that plays with libusher."""

from __future__ import annotations

import itertools
import random
import resource
import time
from typing import Any

import gevent  # type: ignore[import-untyped]
from gevent.event import AsyncResult  # type: ignore[import-untyped]
from gevent.event import Event as Flag
from locust import User, events, task
from locust.runners import MasterRunner, WorkerRunner

import usher
from usher.testing.load import figures
from usher.testing.load.figures import Cost
from usher.testing.load.pump import Pump
from usher.testing.load.settings import Settings, Tokens

E = usher.EventType
KID = bytes(16)
settings = Settings.given()
tokens = Tokens(settings)
_numbers = itertools.count()
_TEARDOWN_S = 60.0
_NOTE_S = 1.0


class Watch:
    """The flags for which a screen waits during one playback. This object is the ``tag`` of the playback."""

    def __init__(self) -> None:
        self.started: Any = AsyncResult()
        self.over = Flag()
        """Set when the session is lost or the playback is closed."""
        self.closed = Flag()


class Worker:
    """The context of this process, and what it reports to the master.

    Args:
        environment: Locust's environment.
    """

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.pump = Pump()
        self.delegate = usher.SSPDelegate(
            self.pump.context, license_url=settings.license_url, ssm_url=settings.ssm_url, jitter_permille=usher.OFF
        )
        self.pump.context.add_observer(self._on_event)
        self._cpu_s = time.process_time()
        self._resident = _resident_bytes()

    def record(self, name: str, ms: float, error: BaseException | None = None) -> None:
        """Records an operation in Locust's statistics."""
        self.environment.events.request.fire(
            request_type="usher", name=name, response_time=ms, response_length=0, exception=error, context={}
        )

    def _on_event(self, event: usher.Event) -> None:
        watch = event.tag
        if not isinstance(watch, Watch):
            return
        if event.type is E.KEPT_ALIVE:
            self.record(figures.HEARTBEAT, event.lateness_ms)
        elif event.type is E.SESSION_STARTED:
            watch.started.set(None)
        elif event.type is E.SETUP_ERROR:
            watch.started.set(event.error)
        elif event.type is E.HEARTBEAT_ERROR:
            self.record(figures.HEARTBEAT, 0, event.error)
            watch.over.set()
        elif event.type is E.TEARDOWN_ERROR:
            self.record(figures.TEARDOWN, 0, event.error)
        elif event.type is E.PLAYBACK_CLOSED:
            watch.over.set()
            watch.closed.set()

    def cost(self) -> Cost:
        """Returns what the playbacks of this process have cost so far."""
        metrics = self.pump.context.metrics()
        return Cost(
            cpu_s=time.process_time() - self._cpu_s,
            resident=max(0, _resident_bytes() - self._resident),
            held=metrics.sessions_held,
            lost=metrics.sessions_lost,
            requests=metrics.setups_sent + metrics.heartbeats_sent + metrics.teardowns_sent + metrics.licenses_sent,
            retries=metrics.retries,
        )


_worker: Worker | None = None
_most: Cost | None = None
"""The cost at the moment when this process held the most sessions."""


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class ScreenUser(User):
    """A screen: it plays an item, keeps its session alive, and ends it; then it plays the next one."""

    @task
    def watch(self) -> None:
        """Plays one item."""
        worker = _worker
        if worker is None:
            return
        number = next(_numbers)
        if settings.accounts:
            number = random.randrange(settings.accounts)
            account = f"load-{number}"
        else:
            account = f"load-{getattr(self.environment.runner, 'worker_index', 0)}-{number}"
        try:
            self._watch(worker, number, account)
        except Exception as error:
            worker.record(figures.SCREEN, 0, error)
        gevent.sleep(settings.pause_s)

    def _watch(self, worker: Worker, number: int, account: str) -> None:
        watch, began = Watch(), time.monotonic()
        with usher.Player(worker.pump.context) as player:
            playback = player.play(tokens.token(number, account), delegate=worker.delegate, tag=watch)
            error = watch.started.get()
            took = (time.monotonic() - began) * 1000
            if isinstance(error, usher.LimitError):
                worker.record(figures.REFUSED, took)
            else:
                worker.record(figures.SETUP, took, error)
            if error is None:
                self._play(worker, playback, watch)

    def _play(self, worker: Worker, playback: usher.Playback, watch: Watch) -> None:
        if settings.licenses:
            answer: Any = AsyncResult()
            began = time.monotonic()
            playback.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]), callback=answer.set)
            error = answer.get().exception()
            worker.record(figures.LICENSE, (time.monotonic() - began) * 1000, error)
        watch.over.wait(settings.hold_s or None)
        began = time.monotonic()
        playback.close()
        if watch.closed.wait(_TEARDOWN_S):
            worker.record(figures.TEARDOWN, (time.monotonic() - began) * 1000)


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _on_start(environment: Any, **_: Any) -> None:
    global _worker
    if not isinstance(environment.runner, MasterRunner):
        _worker = Worker(environment)
        if not isinstance(environment.runner, WorkerRunner):  # a worker notes its cost in _on_report()
            gevent.spawn(_note_often)


@events.test_stop.add_listener  # type: ignore[untyped-decorator]
def _on_stop(environment: Any, **_: Any) -> None:
    global _worker
    worker, _worker = _worker, None
    if worker is not None:
        _note(worker)
        left = worker.pump.close()
        if left:
            worker.record(figures.TEARDOWN, 0, RuntimeError(f"{left} sessions were not torn down"))
        if not isinstance(environment.runner, WorkerRunner) and _most is not None:
            figures.reported[environment.runner] = _most


def _note(worker: Worker) -> None:
    global _most
    cost = worker.cost()
    _most = cost if _most is None or cost.held >= _most.held else _most.later(cost)


def _note_often() -> None:
    while _worker is not None:
        _note(_worker)
        gevent.sleep(_NOTE_S)


@events.report_to_master.add_listener  # type: ignore[untyped-decorator]
def _on_report(client_id: str, data: dict[str, Any], **_: Any) -> None:
    if _worker is not None:
        _note(_worker)
    if _most is not None:
        data["usher"] = _most.as_dict()


@events.worker_report.add_listener  # type: ignore[untyped-decorator]
def _on_worker_report(client_id: str, data: dict[str, Any], **_: Any) -> None:
    if "usher" in data:
        figures.reported[client_id] = Cost(**data["usher"])


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def _on_quitting(environment: Any, **_: Any) -> None:
    if not isinstance(environment.runner, WorkerRunner):
        if _most is not None:  # Locust may quit before it stops the test
            figures.reported[environment.runner] = _most
        figures.write(environment.stats, settings)


# The loop measures times from its last turn, which was before the imports: without this call the test would end early.
gevent.get_hub().loop.update_now()
