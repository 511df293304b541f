"""The journal: the requests of clients, and the replies to them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Any

from ..config import AnyKeySystem, KeySystem, key_system_name
from ..listeners import Listeners
from ..state.tokens import Authorization, TokenPart, shorten
from .hiding import hide, hide_path, plain

ROUTES = (
    "setup",
    "heartbeat",
    "teardown",
    "renewal-wv",
    "license",
    "license-renewal",
    "certificate",
    "ckc",
    "rights",
    "entitlement",
    "kill-account",
    "kill-device",
    "unknown",
)
"""All route names that an entry may have."""


class Outcome(str, Enum):
    """The outcome of a request. It is first ``pending``, and later one of the other values."""

    PENDING = "pending"
    ANSWERED = "answered"
    """The head-end has sent the complete reply."""
    DAMAGED = "damaged"
    """The head-end sent a reply that a fault had shortened or damaged."""
    DROPPED = "dropped"
    """A fault, or the stop of the head-end, closed the connection without a reply."""
    CLIENT_GONE = "client-gone"
    """The client closed the connection before it had received the reply."""


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    """One request. An entry never changes: read the journal again for the request's newer state.

    Attributes:
        number: 1 for the first request to arrive, then 2 …
        at_ms: when the request arrived, on the head-end's clock.
        route: one of ``ROUTES``.
        key_system: the key system of a licence or certificate service; None for other requests.
        method: HTTP method.
        path: path and query as sent.
        query: query items in order, decoded.
        headers: pairs (name, value) as sent, in order, decoded as Latin-1.
        body: the request body.
        authorization: the tokens of the authorisation header, read but not checked.
        account: the account that the tokens name; None if they name no account.
        session: the id of the session to which the session token belongs, or which the request opened; None if there is
            no such session.
        status: HTTP status of the reply; None before the reply, or if no reply was sent.
        error_code: ``errorCode`` or other error number in the reply, else None.
        error_message: the error text in the reply, else None.
        fault: label of the fault that the request got, else None.
        outcome: see ``Outcome``.
        answered_ms: when the reply was sent, on the head-end's clock.
        answered_after: the number of the newest request that had arrived when the head-end sent the reply.
        issued: ``seq`` of the session token in the reply, else None.
        delivered: whether the reply, as a fault may have changed it, still had the whole session token.
    """

    number: int
    at_ms: int
    route: str
    key_system: KeySystem | None
    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, str], ...]
    body: bytes
    authorization: Authorization
    account: str | None
    session: str | None
    status: int | None = None
    error_code: int | None = None
    error_message: str | None = None
    fault: str | None = None
    outcome: Outcome = Outcome.PENDING
    answered_ms: int | None = None
    answered_after: int | None = None
    issued: int | None = None
    delivered: bool = False

    @property
    def parts(self) -> tuple[TokenPart, ...]:
        """The parts of the request's authorisation header."""
        return self.authorization.parts

    @property
    def session_token(self) -> TokenPart | None:
        """The session token of the request; None if the request has none."""
        return self.authorization.session

    @property
    def tenant_id(self) -> str | None:
        """The value of the header ``nv-tenant-id``; None if the client did not send it."""
        return self.header("nv-tenant-id")

    @property
    def trace_parent(self) -> str | None:
        """The value of the header ``traceparent`` (W3C Trace Context); None if the client did not send it."""
        return self.header("traceparent")

    def header(self, name: str) -> str | None:
        """Returns the first value of a header; None if the request does not have it. The letter case of the name does
        not matter."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def header_values(self, name: str) -> list[str]:
        """Returns all values of a header, in order."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def query_value(self, name: str) -> str | None:
        """Returns the first value of a query item; None if the query does not have it."""
        return next((value for key, value in self.query if key == name), None)

    def __str__(self) -> str:
        return " ".join(cell.strip() for cell in _cells(self, self.at_ms) if cell.strip())

    def __repr__(self) -> str:
        return f"<Entry {self}>"


@dataclass(frozen=True)
class _Filter:
    route: str | None = None
    account: str | None = None
    session: str | None = None
    key_system: str | None = None
    answered: bool | None = None

    def __call__(self, entry: Entry) -> bool:
        return (
            (self.route is None or entry.route == self.route)
            and (self.account is None or entry.account == self.account)
            and (self.session is None or entry.session == self.session)
            and (self.key_system is None or entry.key_system == self.key_system)
            and (self.answered is None or (entry.status is not None) == self.answered)
        )


@dataclass
class Journal:
    """Every request in the order of arrival. Any thread may call any method.

    The methods have the filters ``route``, ``account``, ``session``, ``key_system`` and ``answered``; an entry must
    match all filters that the caller sets. With ``answered=True`` an entry matches only if its reply was sent.

    Attributes:
        limit: how many of the newest entries the journal keeps; None: all entries.
        listeners: functions that the journal calls with the number of a new or changed entry; with None when it has
            dropped all entries.
    """

    limit: int | None = None
    listeners: Listeners[int | None] = field(default_factory=Listeners, init=False, repr=False)
    _entries: dict[int, Entry] = field(default_factory=dict, init=False, repr=False)
    _counts: Counter[str] = field(default_factory=Counter, init=False, repr=False)
    _last: int = field(default=0, init=False, repr=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False, repr=False)

    def open(self, entry: Entry) -> Entry:
        """Adds a request, and returns its entry with the ``number`` set."""
        with self._changed:
            self._last += 1
            entry = replace(entry, number=self._last)
            self._entries[entry.number] = entry
            self._counts[entry.route] += 1
            if self.limit is not None and len(self._entries) > self.limit:
                del self._entries[next(iter(self._entries))]
            self._changed.notify_all()
            self.listeners.tell(entry.number)
            return entry

    def amend(self, number: int, **changes: Any) -> Entry | None:
        """Replaces fields of one entry; returns None if the journal has dropped it."""
        with self._changed:
            entry = self._entries.get(number)
            if entry is None:
                return None
            if "answered_ms" in changes:
                changes["answered_after"] = self._last
            entry = replace(entry, **changes)
            self._entries[number] = entry
            self._changed.notify_all()
            self.listeners.tell(number)
            return entry

    def entries(
        self,
        *,
        route: str | None = None,
        account: str | None = None,
        session: str | None = None,
        key_system: AnyKeySystem | str | None = None,
        answered: bool | None = None,
        after: int = 0,
    ) -> list[Entry]:
        """Returns the entries that match, oldest first, with numbers greater than ``after``."""
        name = None if key_system is None else key_system_name(key_system)
        wanted = _Filter(_known(route), account, session, name, answered)
        with self._changed:
            return [entry for entry in self._entries.values() if entry.number > after and wanted(entry)]

    def routes(
        self,
        *,
        account: str | None = None,
        session: str | None = None,
        key_system: AnyKeySystem | str | None = None,
        after: int = 0,
    ) -> list[str]:
        """Returns the route names of the matching requests, in the order of arrival."""
        found = self.entries(account=account, session=session, key_system=key_system, after=after)
        return [entry.route for entry in found]

    def get(self, number: int) -> Entry | None:
        """Returns one entry by its number; None if the journal does not have it."""
        with self._changed:
            return self._entries.get(number)

    def newest(self, count: int) -> list[Entry]:
        """Returns the newest entries, sorted from the oldest to the newest."""
        with self._changed:
            return list(islice(reversed(self._entries.values()), count))[::-1]

    @property
    def arrived(self) -> int:
        """How many requests have arrived, including those of dropped entries."""
        with self._changed:
            return self._last

    def last(self, route: str | None = None, *, account: str | None = None, session: str | None = None) -> Entry:
        """Returns the newest matching entry.

        Raises:
            LookupError: no entry matches.
        """
        found = self.entries(route=route, account=account, session=session)
        if not found:
            raise LookupError(f"no request to {route or 'any route'} has arrived")
        return found[-1]

    def count(self, route: str | None = None, *, account: str | None = None, session: str | None = None) -> int:
        """Returns how many entries in the journal match."""
        return len(self.entries(route=route, account=account, session=session))

    def counts(self) -> dict[str, int]:
        """Returns how many requests of each route have arrived since the start, including those of dropped entries."""
        with self._changed:
            return {route: self._counts[route] for route in ROUTES if self._counts[route]}

    def wait_for(
        self,
        what: int | Callable[[Journal], bool],
        timeout: float = 5.0,
        *,
        route: str | None = None,
        account: str | None = None,
        session: str | None = None,
        key_system: AnyKeySystem | str | None = None,
        answered: bool | None = None,
    ) -> list[Entry]:
        """Waits until enough requests match, or until a predicate of the journal holds.

        Args:
            what: the number of matching entries, or a predicate that gets the journal at each change.
            timeout: real seconds.

        Returns:
            The matching entries.

        Raises:
            TimeoutError: the message contains the journal as text.
        """

        def matching() -> list[Entry]:
            return self.entries(route=route, account=account, session=session, key_system=key_system, answered=answered)

        def reached() -> bool:
            return what(self) if callable(what) else len(matching()) >= what

        with self._changed:
            if not self._changed.wait_for(reached, timeout):
                goal = "the predicate" if callable(what) else f"{what} requests to {route or 'any route'}"
                raise TimeoutError(f"not reached: {goal} within {timeout} s; the journal:\n{self.dump()}")
            return matching()

    def clear(self) -> None:
        """Drops all entries. The numbers of later entries continue from the last one."""
        with self._changed:
            self._entries.clear()
            self._changed.notify_all()
            self.listeners.tell(None)

    def dump(self, entries: Sequence[Entry] | None = None, *, since_ms: int | None = None) -> str:
        """Returns entries (None: all) as a text table with one line for each request. Tokens are shortened to kind, id
        and sequence number."""
        entries = self.entries() if entries is None else entries
        if not entries:
            return "(no requests)"
        start = entries[0].at_ms if since_ms is None else since_ms
        rows = [("#", "time", "route", "account", "sent", "answer", "given", "fault")]
        rows += [_cells(entry, start) for entry in entries]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    def __len__(self) -> int:
        with self._changed:
            return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def __getitem__(self, index: int) -> Entry:
        return self.entries()[index]


def _known(route: str | None) -> str | None:
    if route is not None and route not in ROUTES:
        raise ValueError(f"unknown route {route!r}; routes are {', '.join(ROUTES)}")
    return route


def _cells(entry: Entry, start_ms: int) -> tuple[str, str, str, str, str, str, str, str]:
    sent = ",".join(part.short for part in entry.parts)
    if entry.authorization.spaced:
        sent += " (space at comma)"
    answer = str(entry.status) if entry.status is not None else "-"
    if entry.error_code is not None:
        answer += f"/{entry.error_code}"
    if entry.outcome is not Outcome.ANSWERED:
        answer += f" {entry.outcome.value}"
    given = "" if entry.issued is None else shorten("session", entry.session or "", entry.issued)
    if given and not entry.delivered:
        given += " (lost)" if entry.outcome is not Outcome.PENDING else ""
    name = entry.route + (f" {entry.key_system}" if entry.key_system else "")
    if entry.route == "unknown":
        name = f"unknown {entry.method} {hide_path(entry.path, entry).partition('?')[0]}"
    time = f"+{(entry.at_ms - start_ms) / 1000:.3f}s"
    fault = "" if entry.fault is None else hide(entry.fault, entry)
    return (
        str(entry.number),
        time,
        plain(name),
        plain(entry.account or ""),
        plain(sent),
        answer,
        plain(given),
        plain(fault),
    )
