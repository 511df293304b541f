"""Where the session table keeps its data: the interface of a store, and the store in memory.

A store keeps data and decides nothing. The rules (limit, rotation, expiry) are in ``sessions``. The table runs each
rule as one transaction of the store.
"""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")

CreatedBy = Literal["setup", "license"]
"""The kind of request that opened a session: a set-up, or with SSP V2 the first licence request."""


class SessionState(str, Enum):
    """The states of a session. ``active`` may become any other state; the other states are final."""

    ACTIVE = "active"
    TORN_DOWN = "torn_down"
    EXPIRED = "expired"
    KILLED = "killed"


@dataclass(frozen=True, slots=True)
class Session:
    """A snapshot of one session. Times are ms on the head-end's clock.

    Attributes:
        id: the ``jti`` of all session tokens of the session.
        account: the account whose slot the session holds.
        device: the device that opened the session; None if the token named no device.
        content_ids: the contents in its content tokens, in the order first seen.
        created_ms: time of the set-up.
        last_keepalive_ms: time of the last heartbeat or renewal, or of the set-up.
        expires_ms: when the session expires without another keep-alive.
        state: see ``SessionState``.
        ended_ms: when the session ended; None if it is active.
        seq: ``seq`` of the newest session token.
        tokens_issued: number of session tokens, including the first.
        beats: how many heartbeats and renewals the head-end has accepted.
        licenses: how many licences the session has got; renewals do not count.
        created_by: see ``CreatedBy``.
    """

    id: str
    account: str
    device: str | None
    content_ids: tuple[str, ...]
    created_ms: int
    last_keepalive_ms: int
    expires_ms: int
    state: SessionState = SessionState.ACTIVE
    ended_ms: int | None = None
    seq: int = 1
    tokens_issued: int = 1
    beats: int = 0
    licenses: int = 0
    created_by: CreatedBy = "setup"

    @property
    def active(self) -> bool:
        """Whether the session holds a slot."""
        return self.state is SessionState.ACTIVE


@dataclass(frozen=True, slots=True)
class Account:
    """A snapshot of one account.

    Attributes:
        name: the account.
        limit: the limit of sessions at the account's newest set-up.
        held: how many sessions the account holds.
        refused: number of set-ups that the head-end refused because of the limit.
        refused_ms: time of the last such refusal, else None.
    """

    name: str
    limit: int
    held: int = 0
    refused: int = 0
    refused_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the table.

    Attributes:
        account: the account of the change.
        session: id of the new or changed session; None: only the account changed.
    """

    account: str
    session: str | None = None


class Transaction(Protocol):
    """One transaction, with which a rule reads and writes data. The store keeps either all its changes or none."""

    def session(self, ident: str) -> Session | None:
        """Returns a session."""

    def account(self, name: str) -> Account | None:
        """Returns an account; None if it has never requested a session."""

    def held(self, account: str) -> Collection[str]:
        """Returns the ids of the active sessions of an account."""

    def put_session(self, session: Session) -> None:
        """Stores a new or changed session, and updates the list of the active sessions of its account."""

    def put_account(self, account: Account) -> None:
        """Stores the data of an account, except its sessions; ignores ``held``."""


class Store(Protocol):
    """The data of a session table. Any thread may call any method.

    Attributes:
        is_shared: whether other processes use the same data.
    """

    is_shared: bool

    def run(self, rule: Callable[[Transaction], T], tell: Callable[[Change], None]) -> T:
        """Runs a rule as one transaction, passes the changes that it made to ``tell``, and returns the result of the
        rule.

        A store may run the rule again if another process has changed the same data, so the rule must only read and
        write through its argument.
        """

    def due(self, now_ms: int, *, exact: bool) -> list[str]:
        """Returns ids of active sessions that may have expired by now. A shared store may omit those of the last
        moments if ``exact`` is False: each rule checks the sessions that it reads."""

    def next_expiry_ms(self) -> int | None:
        """Returns a time before which no session expires; None if no session can expire."""

    def session(self, ident: str) -> Session | None:
        """Returns a session."""

    def sessions(self) -> list[Session]:
        """Returns all sessions in the order of set-up."""

    def account(self, name: str) -> Account | None:
        """Returns an account; None if it has never requested a session."""

    def accounts(self) -> list[Account]:
        """Returns all accounts in the order of their first request."""

    def counts(self) -> dict[SessionState, int]:
        """Returns how many sessions are in each state."""

    def clear(self, then: Callable[[], None]) -> None:
        """Drops everything, and calls ``then``."""


@dataclass
class _Book:
    """An account, with its active sessions."""

    account: Account
    held: set[str] = field(default_factory=set)


class MemoryStore:
    """A store in the memory of this process."""

    is_shared = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._sessions: dict[str, Session] = {}
        self._books: dict[str, _Book] = {}
        self._counts: Counter[SessionState] = Counter()
        self._expiries: list[tuple[int, str]] = []
        self._changes: list[Change] = []

    def run(self, rule: Callable[[Transaction], T], tell: Callable[[Change], None]) -> T:
        with self._lock:
            try:
                return rule(self)
            finally:  # a rule writes last, so a rule that raises has changed nothing
                changes, self._changes = self._changes, []
                for change in changes:
                    tell(change)

    # The methods below are those of Transaction. Rules call these methods inside `run`, so `run` holds the lock.

    def held(self, account: str) -> Collection[str]:
        book = self._books.get(account)
        return book.held if book is not None else ()

    def put_session(self, session: Session) -> None:
        before = self._sessions.get(session.id)
        self._sessions[session.id] = session
        held = self._book(session.account).held
        if before is None:
            held.add(session.id)
            heapq.heappush(self._expiries, (session.expires_ms, session.id))
        elif before.state is not session.state:
            held.discard(session.id)
            self._counts[before.state] -= 1
        if before is None or before.state is not session.state:
            self._counts[session.state] += 1
        self._changes.append(Change(session.account, session.id))

    def put_account(self, account: Account) -> None:
        self._book(account.name).account = account
        self._changes.append(Change(account.name))

    def _book(self, account: str) -> _Book:
        return self._books.setdefault(account, _Book(Account(account, 0)))

    # The session table calls the methods below outside its rules.

    def due(self, now_ms: int, *, exact: bool) -> list[str]:
        with self._lock:
            found = []
            while self._expiries and self._expiries[0][0] <= now_ms:
                _, ident = heapq.heappop(self._expiries)
                session = self._sessions[ident]
                if not session.active:
                    continue
                if session.expires_ms > now_ms:
                    heapq.heappush(self._expiries, (session.expires_ms, ident))
                else:
                    found.append(ident)
            for ident in found:  # these sessions stay in the heap until a rule has ended them
                heapq.heappush(self._expiries, (self._sessions[ident].expires_ms, ident))
            return found

    def next_expiry_ms(self) -> int | None:
        with self._lock:
            return self._expiries[0][0] if self._expiries else None

    def session(self, ident: str) -> Session | None:
        with self._lock:
            return self._sessions.get(ident)

    def sessions(self) -> list[Session]:
        with self._lock:
            return list(self._sessions.values())

    def account(self, name: str) -> Account | None:
        with self._lock:
            book = self._books.get(name)
            return None if book is None else replace(book.account, held=len(book.held))

    def accounts(self) -> list[Account]:
        with self._lock:
            return [replace(book.account, held=len(book.held)) for book in self._books.values()]

    def counts(self) -> dict[SessionState, int]:
        with self._lock:
            return {state: self._counts[state] for state in SessionState}

    def clear(self, then: Callable[[], None]) -> None:
        with self._lock:
            self._sessions.clear()
            self._books.clear()
            self._counts.clear()
            self._expiries.clear()
            then()
