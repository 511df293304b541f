"""The playback of ``usher probe``: what it does, step by step, and what it finds.

The library plays; its requests go through a ``Relay``, which keeps them. The clock of the library is manual, so a
heartbeat need not wait for its period.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import usher
from usher import EventType, LogLevel, Status

from .. import advice
from ..target import Target
from ..wire.client import Client
from ..wire.exchange import Exchange
from ..wire.redact import Redactor
from ..wire.relay import Relay

_SLICE_MS = 100
"""Each call of settle() waits at most this long, because Python sees Ctrl-C only between the calls."""
_CLOSE_S = 10.0
"""How many seconds a probe waits for the teardown at its end."""


@dataclass
class Step:
    """A step of the playback.

    Attributes:
        name: such as ``set-up``.
        outcome: ``ok``, ``failed`` or ``skipped``.
        words: what the step showed, or why it failed or was skipped.
        advice: for a failure, the next thing to do.
        ms: how long the step took.
        error: the library's error; None without one.
        warnings: what the library logged as a warning.
    """

    name: str = field(repr=False)
    outcome: str = field(default="ok", repr=False)
    words: str = field(default="", repr=False)
    advice: str = field(default="", repr=False)
    ms: float = 0.0
    error: usher.UsherError | None = None
    exchanges: list[Exchange] = field(default_factory=list, repr=False)
    warnings: list[str] = field(default_factory=list, repr=False)

    @property
    def failed(self) -> bool:
        return self.outcome == "failed"


class Probe:
    """One playback.

    Args:
        target: the head-end.
        heartbeats: how many heartbeats to send.
        real_time: whether to wait a period before each heartbeat, as a player does.
        options: further options of the delegate.
        tell: a function that gets each step when it has ended.
    """

    def __init__(
        self,
        target: Target,
        *,
        heartbeats: int = 2,
        real_time: bool = False,
        options: dict[str, object] | None = None,
        tell: Callable[[Step], object] = lambda step: None,
    ) -> None:
        self.target = target
        self.heartbeats = heartbeats
        self.real_time = real_time
        self.options = options or {}
        self.tell = tell
        self.steps: list[Step] = []
        self.redactor = Redactor()
        for token in target.tokens:
            self.redactor.content_token(token)
        self._events: list[usher.Event] = []
        self._warnings: list[str] = []
        self._period_ms = 0

    @property
    def unreachable(self) -> bool:
        """Whether the first request got no connection."""
        first = next((exchange for step in self.steps for exchange in step.exchanges), None)
        return first is not None and first.failure is not None and not first.failure.connected

    def run(self) -> None:
        """Plays, and adds each step to ``steps``. If a KeyboardInterrupt comes, tears the session down, and lets the
        exception continue."""
        client = Client(self.target.limit_s, self.target.ca_file)
        with Relay(client) as self._relay, self._context() as self._context_:
            self._context_.add_observer(self._events.append)
            try:
                delegate = self._delegate(self._context_)
                with usher.Player(self._context_) as player:
                    try:
                        self._play(player, delegate)
                    finally:
                        self._tear_down(player)
            finally:
                self._context_.begin_close(1000)  # then the end of the context does not wait for servers

    # ---- the steps ---------------------------------------------------------------------------------------------------

    def _play(self, player: usher.Player, delegate: usher.Delegate) -> None:
        if self.target.v2:
            playback = player.play(self.target.token, delegate=delegate)
            licensed = self._license(playback, "licence, which opens the session")
            if licensed.failed or not self._session_of(licensed):
                return
        else:
            with self._step("set-up") as step:
                playback = player.play(self.target.token, delegate=delegate)
                self._settle()
                self._judge(step, EventType.SESSION_STARTED, (EventType.SETUP_ERROR,))
                if not step.failed and self._session_of(step):
                    step.words = f"the session is set up; the server wants a keep-alive every {self._period()}"
            if step.failed or not self._is_active(playback):
                return
            self._license(playback, "licence")
        for number in range(1, self.heartbeats + 1):
            if not self._is_active(playback) or not self._period_ms:
                break
            if self._beat(number).failed:  # the library reports an outage only once
                break
        if not self._is_active(playback):
            return
        with self._step("teardown") as step:
            playback.close(usher.CloseMode.TEARDOWN)
            self._settle()
            retries = 0
            while not self._got(EventType.SESSION_ENDED, EventType.TEARDOWN_ERROR) and retries < 8:
                retries += 1
                self._advance(1000)
            self._judge(step, EventType.SESSION_ENDED, (EventType.TEARDOWN_ERROR,))
            if not step.failed:
                step.words = "the server has confirmed the teardown"

    def _license(self, playback: usher.Playback, name: str) -> Step:
        with self._step(name) as step:
            if not self.target.asks_license:
                step.outcome = "skipped"
                missing = "--license" if self.target.license is None else "--key-id or --payload"
                step.words = f"give {missing} to request a licence"
                return step
            payload = self.target.payload or usher.clear_key_request(list(self.target.key_ids))
            asked = playback.request_license(getattr(usher.KeySystem, self.target.key_system.upper()), payload)
            self._settle()
            if not asked.done():
                self._advance(30_000)  # more than the library's limit for the whole request
            error = asked.exception(timeout=5)
            if isinstance(error, usher.UsherError):
                self._fail(step, error)
            elif error is not None:
                raise error
            else:
                step.words = f"a licence of {len(asked.result().data)} bytes"
                if self.target.key_system == "clearkey":
                    count = len(asked.result().clear_keys())
                    step.words += f" with {count} {'key' if count == 1 else 'keys'}"
            if self.target.v2 and not step.failed:
                started = self._got(EventType.SESSION_STARTED)
                step.words += (
                    f"; the session is open, with a keep-alive every {self._period()}"
                    if started
                    else "; the reply opens no session, so nothing counts this stream"
                )
        return step

    def _beat(self, number: int) -> Step:
        with self._step(f"heartbeat {number}") as step:
            if self.real_time:
                time.sleep(self._period_ms / 1000)
            self._advance(self._period_ms)
            waits = (EventType.KEPT_ALIVE, EventType.HEARTBEAT_ERROR, EventType.RENEWAL_DUE)
            for _ in range(40):  # the library retries until the session's lease ends
                if self._got(*waits):
                    break
                self._advance(max(1, self._period_ms // 8))
            if self._got(EventType.RENEWAL_DUE):
                step.outcome = "skipped"
                step.words = "licence renewals keep this session alive; they need a CDM"
                return step
            self._judge(step, EventType.KEPT_ALIVE, (EventType.HEARTBEAT_ERROR,))
            if not step.failed:
                count = len(self._relay.exchanges)
                step.words = "the session is kept alive" + (f", after {count} attempts" if count > 1 else "")
        return step

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _context(self) -> usher.Context:
        def log(level: LogLevel, line: str) -> None:
            if level == LogLevel.WARNING and "_ERROR: USHER_E_" not in line:  # a step reports failures itself
                self._warnings.append(line)

        return usher.Context(clock="manual", log=log, log_level=LogLevel.WARNING, http_timeout_ms=3_600_000, proxy="")

    def _delegate(self, context: usher.Context) -> usher.Delegate:
        target = self.target
        license_url = target.license or target.ssm or ""
        given: dict[str, object] = {
            "license_url": self._relay.url(license_url),
            "ssm_url": None if target.ssm is None else self._relay.url(target.ssm),
            "token_header": target.token_header,
            "extra_headers": dict(target.headers) or None,
            "ssm_append_version": target.append_version,
            "jitter_permille": usher.OFF,
            "teardown_timeout_ms": 3_600_000,
            **self.options,
        }
        make: Callable[..., usher.Delegate] = usher.SSPV2Delegate if target.v2 else usher.SSPDelegate
        return make(context, **given)

    @contextmanager
    def _step(self, name: str) -> Iterator[Step]:
        step = Step(name)
        self._events.clear()
        self._warnings.clear()
        self._relay.exchanges.clear()
        began = time.monotonic()
        try:
            yield step
        finally:
            step.ms = (time.monotonic() - began) * 1000
            step.exchanges = list(self._relay.exchanges)
            step.warnings = list(self._warnings)
            for exchange in step.exchanges:
                self._learn(exchange)
            self.steps.append(step)
        self.tell(step)

    def _learn(self, exchange: Exchange) -> None:
        sent = next((value for name, value in exchange.request_headers if name == self.target.token_header), "")
        for token in sent.split(","):
            if token and token != self.target.token:
                self.redactor.session_token(token)
        issued = exchange.member("sessionToken")
        if isinstance(issued, str) and issued:
            self.redactor.session_token(issued)

    def _settle(self) -> None:
        """Waits until no request and no callback runs, in short steps, so that Ctrl-C works."""
        end = time.monotonic() + self.target.limit_s + 5
        while True:
            try:
                self._context_.settle(timeout_ms=_SLICE_MS)
                return
            except usher.UsherTimeoutError:
                if time.monotonic() > end:
                    raise

    def _advance(self, ms: int) -> None:
        """Moves the clock from timer to timer. After each timer waits for the replies, so that no request times out."""
        left = ms
        while left > 0:
            timer = self._context_.pending().next_timer_ms
            step = left if timer is None else min(left, max(1, timer))
            self._context_.advance(step)
            self._settle()
            left -= step

    def _tear_down(self, player: usher.Player) -> None:
        """Tears down the session of the player. Waits for this at most `_CLOSE_S` seconds."""
        player.stop(usher.CloseMode.TEARDOWN)
        end = time.monotonic() + _CLOSE_S
        while time.monotonic() < end:
            try:
                self._context_.settle(timeout_ms=_SLICE_MS)
                return
            except usher.UsherTimeoutError:
                continue

    def _got(self, *types: EventType) -> bool:
        return any(event.type in types for event in self._events)

    def _is_active(self, playback: usher.Playback) -> bool:
        return playback.session_state in (usher.SessionState.ACTIVE, usher.SessionState.DOUBTFUL)

    def _session_of(self, step: Step) -> bool:
        started = next((event for event in self._events if event.type == EventType.SESSION_STARTED), None)
        self._period_ms = 0 if started is None else started.period_ms
        return started is not None

    def _period(self) -> str:
        started = next((event for event in self._events if event.type == EventType.SESSION_STARTED), None)
        period_ms = 0 if started is None else started.period_ms
        return f"{period_ms / 1000:g} s" if period_ms else "never"

    def _judge(self, step: Step, good: EventType, bad: tuple[EventType, ...]) -> None:
        failed = next((event for event in self._events if event.type in bad), None)
        if failed is not None and failed.error is not None:
            self._fail(step, failed.error)
        elif not self._got(good):
            step.outcome, step.words = "failed", "the library reports nothing; this is a fault of usher probe"

    def _fail(self, step: Step, error: usher.UsherError) -> None:
        step.outcome, step.error = "failed", error
        last = self._relay.exchanges[-1] if self._relay.exchanges else None
        if last is not None and last.failure is not None:
            step.words, step.advice = advice.of_failure(last)
            return
        message = self.redactor.text(error.message)
        code = f", code {error.service_code}" if error.service_code else ""
        http = f"HTTP {error.http_status}{code}" if error.http_status > 0 else f"{error.status.name}{code}"
        step.words = f"{http}: {message}" if message else http
        known = error.explain() if error.service_code else None
        if known is not None and known.known:
            step.words += f" ({known.summary[0].lower()}{known.summary[1:].rstrip('.')})"
        if error.status in (Status.HTTP, Status.REFUSED) and error.http_status >= 400 and not error.service_code:
            step.advice = advice.of_status(error.http_status)
        else:
            origin = error.origin.name.lower()
            words = advice.NEXT.get(error.status.name, "").format(code=error.service_code, origin=origin)
            step.advice = words or error.explain().advice
