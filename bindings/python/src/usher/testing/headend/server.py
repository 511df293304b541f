"""The head-end for use in a test: an HTTP server on its own thread."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import threading
from collections.abc import Collection
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from aiohttp import web

from ... import _border
from ..loops import catch_up
from .addresses import Addresses
from .clock import Clock, ManualClock, SystemClock
from .config import MAX_HEADER_BYTES, HeadEndConfig
from .fixtures import Authority
from .network import guard, reading
from .network.dispatch import Dispatcher
from .network.gate import Gate
from .network.script import FaultScript
from .oracle import checker, control
from .oracle.checker import Violation
from .oracle.feed import Feed
from .oracle.journal import Journal
from .routes import Router
from .service import Service
from .state.backoffice import BackOffice
from .state.keystore import KeyStore
from .state.sessions import SessionTable

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .settings import HeadEndSettings

_START_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 10.0


class HeadEnd(Addresses, BackOffice):
    """A reference head-end. Any thread may call any method.

    It listens on loopback from ``start()`` to ``stop()``; ``with HeadEnd() as he`` calls both. After a stop the
    head-end keeps its journal, session table and fault script.

    Args:
        config: the settings as one object. Pass either this or ``settings``, such as ``HeadEnd(limit=1)``.
        clock: ``system`` or ``manual`` as in the config, or a clock object.
        settings: fields of ``HeadEndConfig``, which says what each of them means, and has their defaults.

    Attributes:
        config: its settings.
        clock: its clock.
        journal: every request.
        sessions: the session table.
        faults: the fault script.
        gate: holds back the requests that have a stall fault.
        keys: the key store.
        feed: sends changes to the page.
        control_token: the token that clients of the control endpoints must send; None if they need no token.
    """

    def __init__(
        self,
        config: HeadEndConfig | None = None,
        *,
        clock: Clock | Literal["system", "manual"] | None = None,
        **settings: Unpack[HeadEndSettings],
    ) -> None:
        given: dict[str, Any] = dict(settings)
        if isinstance(clock, str):
            given["clock"], clock = clock, None
        if config is not None and given:
            raise TypeError("HeadEnd takes a config or settings, not both")
        _border.known(given, [field.name for field in dataclasses.fields(HeadEndConfig)], "HeadEnd")
        self.config = config if config is not None else HeadEndConfig(**given)
        self.control_token = self.config.control_token
        if self.control_token is None and guard.needs_token(self.config.host):
            self.control_token = secrets.token_hex(16)
        made = ManualClock(self.config.manual_start_ms) if self.config.clock == "manual" else SystemClock()
        self.clock: Clock = clock if clock is not None else made
        self._service = Service(self.config, self.clock)
        self.journal = Journal(limit=self.config.journal_limit)
        self.sessions: SessionTable = self._service.sessions
        self.faults = FaultScript(seed=self.config.fault_seed)
        self.gate = Gate()
        self.keys: KeyStore = self._service.keys
        self.feed = Feed(self.config, self.clock, self.journal, self.sessions, self.faults, self.gate, self.keys)
        self._router = Router(self.config.tenant)
        self._authority = Authority(self.config.host) if self.config.tls else None
        self._port = self.config.port
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._server: web.Server | None = None
        self._connections_made = 0
        self._life = threading.Lock()

    # Start and stop.

    def start(self) -> HeadEnd:
        """Starts the head-end. Returns when it accepts connections.

        Raises:
            RuntimeError: the head-end is already running.
            OSError: the head-end cannot listen on its address, for example because another program uses the port.
        """
        with self._life:
            if self._thread is not None:
                raise RuntimeError("the head-end is started already")
            started = threading.Event()
            failure: list[BaseException] = []
            thread = threading.Thread(target=self._run, args=(started, failure), name="usher-headend", daemon=True)
            thread.start()
            if not started.wait(_START_TIMEOUT_S):
                raise TimeoutError(f"the head-end has not started within {_START_TIMEOUT_S} s")
            if failure:
                thread.join()
                raise failure[0]
            self._thread = thread
        return self

    def stop(self) -> None:
        """Stops the head-end, and closes every connection; held requests get no reply. A second call does nothing."""
        with self._life:
            thread, loop, stop = self._thread, self._loop, self._stop
            if thread is None or loop is None or stop is None:
                return
            loop.call_soon_threadsafe(stop.set)
            thread.join(_STOP_TIMEOUT_S)
            if thread.is_alive():
                raise TimeoutError(f"the head-end has not stopped within {_STOP_TIMEOUT_S} s")
            self._thread = None

    def restart(self, *, keep_table: bool = True) -> HeadEnd:
        """Stops the head-end, and starts it again on the same port. If ``keep_table`` is False, the head-end loses all
        sessions. Returns the head-end itself."""
        self.stop()
        if not keep_table:
            self._service.forget()
        return self.start()

    @property
    def running(self) -> bool:
        """Whether the head-end listens."""
        return self._thread is not None

    def __enter__(self) -> HeadEnd:
        return self if self.running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:
            if started.is_set():
                raise
            failure.append(error)
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        dispatcher = Dispatcher(self._service, self._router, self.journal, self.faults, self.gate)

        async def answer(request: web.Request) -> web.StreamResponse:
            if self.config.control and control.concerns(request, self.config.auth_headers):
                return await control.handle(self, request)
            return await dispatcher.handle(request)

        app = web.Application(client_max_size=self.config.max_body_bytes)
        app.router.add_route("*", "/{anything:.*}", answer)
        runner = reading.Runner(
            app,
            self._count_connection,
            access_log=None,
            handle_signals=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            **reading.RUNNER_OPTIONS,
        )
        await runner.setup()
        self._server = runner.server
        self.feed.open()
        try:
            context = self._authority.server_context() if self._authority is not None else None
            site = web.TCPSite(
                runner,
                self.config.host,
                self._port,
                ssl_context=context,
                reuse_address=True,
                reuse_port=self.config.reuse_port,
                backlog=1024,
                **reading.SITE_OPTIONS,
            )
            await site.start()
            self._port = int(runner.addresses[0][1])
            self._service.tenant_url = self.tenant_url
            started.set()
            await self._stop.wait()
            dispatcher.stopping = True
        finally:
            self.feed.close()
            await runner.cleanup()

    def _count_connection(self) -> None:
        self._connections_made += 1

    # Time.

    @property
    def manual(self) -> bool:
        """Whether the clock is manual, so that ``advance`` moves it."""
        return isinstance(self.clock, ManualClock)

    def advance(self, ms: int) -> int:
        """Moves a manual clock forward. The delayed requests and replies that are due continue, and the sessions that
        have expired end. Returns the new time in ms.

        Raises:
            RuntimeError: the clock is not manual.
        """
        if not isinstance(self.clock, ManualClock):
            raise RuntimeError("the head-end's clock is not manual, so a test cannot move it")
        now = self.clock.advance(ms)
        self.sessions.expire()
        return now

    # Interventions.

    def kill_account(self, account: str) -> int:
        """Kills the sessions of an account, as an operator does. Returns how many it has killed."""
        return self.sessions.kill(account=account)

    def kill_account_of(self, session_id: str) -> int:
        """Kills all sessions of the account to which this session belongs. Returns how many it has killed.

        Raises:
            KeyError: no such session.
        """
        return self.sessions.kill(account=self.sessions.get(session_id).account)

    def kill_device(self, device: str) -> int:
        """Kills the sessions of a device. Returns how many it has killed."""
        return self.sessions.kill(device=device)

    @property
    def held(self) -> int:
        """How many requests are held now because of stall faults."""
        return self.gate.held

    def release(self, route: str | None = None, count: int | None = None) -> int:
        """Releases held requests, the oldest first. Returns how many it has released."""
        return self.gate.release(route, count)

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return 0 if self._server is None else len(self._server.connections)

    @property
    def connections_made(self) -> int:
        """How many connections the head-end has accepted, including those that are closed."""
        return self._connections_made

    def catch_up(self) -> None:
        """Waits until the head-end has handled everything that its clients have sent or closed before the call. A
        request whose client has closed the connection is then no longer held."""
        with self._life:
            if self._thread is not None and self._loop is not None:
                catch_up(self._loop)

    def wait_held(self, count: int = 1, timeout: float = 5.0) -> None:
        """Waits until exactly ``count`` requests are held.

        Raises:
            TimeoutError: after ``timeout`` real seconds.
        """
        self.gate.wait_held(count, timeout)

    def wait_delayed(self, count: int = 1, timeout: float = 5.0) -> None:
        """Waits until exactly ``count`` delayed requests and replies wait for a later time of the manual clock.

        Raises:
            RuntimeError: the clock is not manual.
            TimeoutError: after ``timeout`` real seconds.
        """
        if not isinstance(self.clock, ManualClock):
            raise RuntimeError("the head-end's clock is not manual, so it does not count the replies that wait for it")
        self.clock.wait_waiting(count, timeout)

    # Checks.

    def violations(self, *, ignore: Collection[str] = ()) -> list[Violation]:
        """Returns the protocol violations of clients. The docstring of ``checker.find`` names the kinds."""
        return checker.find(
            self.journal.entries(),
            period_ms=self.config.period_ms,
            tolerance_ms=self.config.beat_tolerance_ms,
            ignore=ignore,
        )

    def assert_clean(self, *, ignore: Collection[str] = ()) -> None:
        """Checks that there are no violations.

        Raises:
            AssertionError: there are violations. The message contains them and the journal as text.
        """
        found = self.violations(ignore=ignore)
        if found:
            listed = "\n".join(str(violation) for violation in found)
            raise AssertionError(f"{len(found)} violations:\n{listed}\n\n{self.journal.dump()}")
