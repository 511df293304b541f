"""The live feed of the page: it sends the changes at a head-end as server-sent events.

A watcher is a connected page. It first receives the whole state (``snapshot``), and then each change (``change``), in
order. If several changes happen within a short time, the feed sends them as one event. The feed has only two timers:
one for the next expiry of a session, and one that keeps the connection alive.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from .. import paths
from ..clock import Clock, ManualClock
from ..config import HeadEndConfig, key_system_name
from ..network.gate import Gate
from ..network.script import FaultScript, Scripted
from ..state.keystore import KeyStore
from ..state.sessions import Account, Change, Session, SessionTable
from ..state.tokens import shorten
from .hiding import hide, hide_path
from .journal import Entry, Journal, Outcome

MOST_REQUESTS = 300
"""A snapshot has only the newest finished requests, at most this many."""
MOST_ACTIVE, MOST_ENDED, MOST_ACCOUNTS = 1000, 300, 1000
"""A snapshot has only the newest active sessions, ended sessions and accounts, at most this many of each."""

QUEUE_EVENTS, QUEUE_BYTES = 64, 4 * 1024 * 1024
"""If this many events, or events with this many bytes, wait for a slow watcher, the feed disconnects this watcher. When
the watcher connects again, it gets a new snapshot."""

_GATHER_S = 0.05
_PING_S = 10.0
_NAME_MAX = 120
_TEXT_MAX = 300
_LIST_MAX = 8
_EXAMPLES_MAX = 50

Send = Callable[[bytes], Awaitable[None]]


class _Watcher:
    """One connected page, with the queue of events for it. Use it only on the server's event loop."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self.cut = cut
        self._events: deque[bytes] = deque()
        self._bytes = 0
        self._ended = False
        self._wake = asyncio.Event()

    def put(self, event: bytes) -> bool:
        """Queues an event; returns False if the queue is full."""
        if self._events and (len(self._events) >= QUEUE_EVENTS or self._bytes + len(event) > QUEUE_BYTES):
            return False
        self._events.append(event)
        self._bytes += len(event)
        self._wake.set()
        return True

    def end(self) -> None:
        """Makes ``take`` return None after the queued events."""
        self._ended = True
        self._wake.set()

    def drop(self) -> None:
        """Drops the events in the queue, and closes the connection of the watcher."""
        self._events.clear()
        self.end()
        self.cut()

    async def take(self) -> bytes | None:
        """Returns the next event; None after the last."""
        while not self._events and not self._ended:
            self._wake.clear()
            await self._wake.wait()
        if not self._events:
            return None
        event = self._events.popleft()
        self._bytes -= len(event)
        return event


@dataclass
class _Changed:
    """The changes that the feed has not sent yet."""

    everything: bool = False
    accounts: dict[str, None] = field(default_factory=dict)
    sessions: dict[str, None] = field(default_factory=dict)
    requests: dict[int, None] = field(default_factory=dict)
    faults: bool = False
    held: bool = False


class Feed:
    """Sends changes to watchers. Call ``open``, ``close`` and ``watch`` only on the server's loop.

    Args:
        config: the settings of the head-end.
        clock: its clock.
        journal: its journal.
        sessions: its session table.
        faults: its fault script.
        gate: its gate, which holds requests back.
        keys: its content keys.
    """

    def __init__(
        self,
        config: HeadEndConfig,
        clock: Clock,
        journal: Journal,
        sessions: SessionTable,
        faults: FaultScript,
        gate: Gate,
        keys: KeyStore,
    ) -> None:
        self._config = config
        self._clock = clock
        self._journal = journal
        self._sessions = sessions
        self._faults = faults
        self._gate = gate
        self._keys = keys
        self._began_ms = clock.now_ms()
        self._lock = threading.Lock()
        self._changed = _Changed()
        self._scheduled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watchers: set[_Watcher] = set()
        self._number = 0
        self._sent_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def watchers(self) -> int:
        """How many pages are connected now."""
        return len(self._watchers)

    def open(self) -> None:
        """Begins to listen for changes. Call this on the server's event loop."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._scheduled, self._changed = False, _Changed()
        self._journal.listeners.add(self._on_request)
        self._sessions.listeners.add(self._on_session)
        self._faults.listeners.add(self._on_faults)
        self._gate.listeners.add(self._on_held)
        if isinstance(self._clock, ManualClock):
            self._clock.listeners.add(self._on_time)

    def close(self) -> None:
        """Tells every watcher that the head-end stops, and ends the streams."""
        with self._lock:
            self._loop = None
        self._journal.listeners.remove(self._on_request)
        self._sessions.listeners.remove(self._on_session)
        self._faults.listeners.remove(self._on_faults)
        self._gate.listeners.remove(self._on_held)
        if isinstance(self._clock, ManualClock):
            self._clock.listeners.remove(self._on_time)
        self._broadcast(self._event("stopped", {"now_ms": self._clock.now_ms()}))
        for watcher in self._watchers:
            watcher.end()

    async def watch(self, send: Send, cut: Callable[[], None]) -> None:
        """Sends events to one watcher until the head-end stops, the watcher disconnects, or too many events wait for
        it.

        Args:
            send: a function that writes to the watcher, and waits while the watcher is slow.
            cut: a function that closes the connection of the watcher at once.
        """
        watcher = _Watcher(cut)
        self._watchers.add(watcher)
        try:
            self._attend()
            watcher.put(b"retry: 1000\n\n" + self._event("snapshot", self._snapshot()))
            if self._loop is None:
                watcher.end()
            while (event := await watcher.take()) is not None:
                await send(event)
        finally:
            self._watchers.discard(watcher)
            self._attend()

    # The methods below are listeners. They run on any thread, while this thread holds the lock of the changed object.

    def _on_request(self, number: int | None) -> None:
        with self._lock:
            if not self._heed():
                return
            if number is None:
                self._changed.everything = True
            else:
                self._changed.requests[number] = None

    def _on_session(self, change: Change | None) -> None:
        with self._lock:
            if not self._heed():
                return
            if change is None:
                self._changed.everything = True
                return
            self._changed.accounts[change.account] = None
            if change.session is not None:
                self._changed.sessions[change.session] = None

    def _on_faults(self, _: int) -> None:
        with self._lock:
            self._changed.faults = self._heed()

    def _on_held(self, _: int) -> None:
        with self._lock:
            self._changed.held = self._heed()

    def _on_time(self, _: int) -> None:
        with self._lock:
            self._heed()

    def _heed(self) -> bool:
        """If a page is connected, schedules an event and returns True. Otherwise returns False."""
        if self._loop is None or not self._watchers:
            return False
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._gather)
        return True

    # The methods below send events. They run on the server's event loop.

    def _gather(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_at(max(loop.time(), self._sent_at + _GATHER_S), self._send_changes)

    def _send_changes(self) -> None:
        self._sessions.expire()
        with self._lock:
            changed, self._changed, self._scheduled = self._changed, _Changed(), False
            open_ = self._loop is not None
        if not open_ or not self._watchers:
            return
        self._sent_at = asyncio.get_running_loop().time()
        many = max(len(changed.sessions), len(changed.accounts)) > MOST_ACTIVE
        change = None if changed.everything or many else self._change(changed)
        if change is None:
            self._broadcast(self._event("snapshot", self._snapshot()))
        else:
            self._broadcast(self._event("change", change))

    def _broadcast(self, event: bytes) -> None:
        for watcher in tuple(self._watchers):
            if not watcher.put(event):
                self._watchers.discard(watcher)
                watcher.drop()

    def _event(self, name: str, value: dict[str, Any]) -> bytes:
        self._number += 1
        data = json.dumps(value, separators=(",", ":"))
        return f"id: {self._number}\nevent: {name}\ndata: {data}\n\n".encode("ascii")

    def _attend(self) -> None:
        """Starts the timers when the first page connects, and stops them when the last one disconnects."""
        if self._watchers and not self._tasks:
            self._tasks = [asyncio.create_task(self._ping())]
            if not isinstance(self._clock, ManualClock):
                self._tasks.append(asyncio.create_task(self._expire()))
        elif not self._watchers:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    async def _ping(self) -> None:
        """Sends the time at intervals. With this the page also knows that the connection still works."""
        while True:
            await asyncio.sleep(_PING_S)
            self._broadcast(self._event("ping", {"now_ms": self._clock.now_ms()}))

    async def _expire(self) -> None:
        """Ends each session when it expires. Always waits for the earliest expiry, since a new session cannot expire
        before that."""
        while True:
            due = self._sessions.next_expiry_ms
            await self._clock.wait_until(self._clock.now_ms() + self._config.lifetime_ms if due is None else due)
            self._sessions.expire()

    # Making the events.

    def _snapshot(self) -> dict[str, Any]:
        config = self._config
        sessions = self._sessions.newest(MOST_ACTIVE, MOST_ENDED)
        return {
            "head_end": {
                "tenant": clip(config.tenant),
                "limit": config.limit,
                "period_ms": config.period_ms,
                "lifetime_ms": config.lifetime_ms,
                "late_ms": config.period_ms + config.beat_tolerance_ms,
                "rotation": config.token_rotation,
                "enforced": sorted(map(key_system_name, config.enforced)),
                "ssm_path": paths.ssm(config.tenant),
                "paths": [asdict(path) for path in paths.all_of(config.tenant)],
                "example_accounts": _examples(config.accounts),
                "example_contents": _examples((config.content_id, *self._keys.contents())),
            },
            "clock": "manual" if isinstance(self._clock, ManualClock) else "system",
            "began_ms": self._began_ms,
            **self._always(),
            "accounts": [account_row(account) for account in self._sessions.accounts()[-MOST_ACCOUNTS:]],
            "sessions": [session_row(session) for session in sessions],
            "requests": [request_row(entry) for entry in self._journal.newest(MOST_REQUESTS)],
            "faults": [fault_row(line) for line in self._faults.script()],
            "held": [entry.number for entry in self._gate.entries()],
        }

    def _change(self, changed: _Changed) -> dict[str, Any] | None:
        """Returns the changes as the JSON object of an event; None if a changed account or session does not exist any
        more."""
        value = self._always()
        try:
            if changed.accounts:
                value["accounts"] = [account_row(self._sessions.account(name)) for name in changed.accounts]
            if changed.sessions:
                value["sessions"] = [session_row(self._sessions.get(ident)) for ident in changed.sessions]
        except KeyError:
            return None
        if changed.requests:
            newest = sorted(changed.requests)[-MOST_REQUESTS:]
            entries = [self._journal.get(number) for number in newest]
            value["requests"] = [request_row(entry) for entry in entries if entry is not None]
        if changed.faults:
            value["faults"] = [fault_row(line) for line in self._faults.script()]
        if changed.held:
            value["held"] = [entry.number for entry in self._gate.entries()]
        return value

    def _always(self) -> dict[str, Any]:
        counts = self._sessions.counts()
        return {
            "now_ms": self._clock.now_ms(),
            "totals": {"requests": self._journal.arrived, **{state.value: count for state, count in counts.items()}},
        }


def clip(text: str, most: int = _NAME_MAX) -> str:
    """Returns a text in at most `most` characters. At the end of a shortened text a digest replaces the rest, so that
    different names stay different."""
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{text[: most - 10]}…{digest[:8]}"


def _examples(names: Iterable[str]) -> list[str]:
    """Returns the names that the page suggests in its forms. A name that ``clip`` would shorten is not among them."""
    return [name for name in dict.fromkeys(names) if len(name) <= _NAME_MAX][:_EXAMPLES_MAX]


def account_row(account: Account) -> dict[str, Any]:
    """Returns an account as a JSON object for the page."""
    return {**asdict(account), "name": clip(account.name)}


def session_row(session: Session) -> dict[str, Any]:
    """Returns a session as a JSON object for the page."""
    return {
        "id": session.id,
        "account": clip(session.account),
        "device": None if session.device is None else clip(session.device),
        "contents": [clip(content) for content in session.content_ids[:_LIST_MAX]],
        "more_contents": max(0, len(session.content_ids) - _LIST_MAX),
        "state": session.state.value,
        "created_ms": session.created_ms,
        "kept_ms": session.last_keepalive_ms,
        "expires_ms": session.expires_ms,
        "ended_ms": session.ended_ms,
        "token": shorten("session", session.id, session.seq),
        "beats": session.beats,
        "licenses": session.licenses,
    }


def request_row(entry: Entry) -> dict[str, Any]:
    """Returns a request as a JSON object for the page, with shortened tokens and without its body."""
    return {
        "number": entry.number,
        "at_ms": entry.at_ms,
        "route": entry.route,
        "key_system": entry.key_system,
        "line": clip(f"{entry.method} {_route(entry)}") if entry.route == "unknown" else None,
        "account": None if entry.account is None else clip(entry.account),
        "session": None if entry.session is None else clip(entry.session),
        "sent": [clip(part.short) for part in entry.parts[:_LIST_MAX]],
        "given": None if entry.issued is None else shorten("session", entry.session or "", entry.issued),
        "lost": entry.issued is not None and not entry.delivered and entry.outcome is not Outcome.PENDING,
        "status": entry.status,
        "code": entry.error_code,
        "message": None if entry.error_message is None else clip(hide(entry.error_message, entry), _TEXT_MAX),
        "fault": None if entry.fault is None else clip(hide(entry.fault, entry)),
        "outcome": entry.outcome.value,
        "answered_ms": entry.answered_ms,
    }


def _route(entry: Entry) -> str:
    return hide_path(entry.path, entry).partition("?")[0]


def fault_row(line: Scripted) -> dict[str, Any]:
    """Returns a line of the fault script as a JSON object for the page."""
    return {**asdict(line), "label": clip(line.label), "account": None if line.account is None else clip(line.account)}
