"""The session table, which has all sessions at the head-end."""

from __future__ import annotations

import heapq
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Literal

from ..codes import Problem, Refusal
from ..config import Rotation
from ..listeners import Listeners

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


@dataclass
class _Book:
    """The data that the table keeps for an account."""

    held: set[str] = field(default_factory=set)
    limit: int = 0
    refused: int = 0
    refused_ms: int | None = None


class SessionTable:
    """All sessions, including those that have ended. Any thread may call any method; results are snapshots.

    Every method first ends the sessions whose ``expires_ms`` the clock has reached, and frees their slots.

    Args:
        now_ms: a function that returns the time on the head-end's clock.
        lifetime_ms: how long a session lives without a keep-alive, in ms.
        rotation: which older tokens are still valid.

    Attributes:
        listeners: functions that the table calls with each change; with None when it has dropped all sessions.
    """

    def __init__(self, now_ms: Callable[[], int], *, lifetime_ms: int, rotation: Rotation) -> None:
        self._now_ms = now_ms
        self._lifetime_ms = lifetime_ms
        self._rotation = rotation
        self._lock = threading.RLock()
        self._sessions: dict[str, Session] = {}
        self._accounts: dict[str, _Book] = {}
        self._counts: Counter[SessionState] = Counter()
        self._expiries: list[tuple[int, str]] = []
        self.listeners: Listeners[Change | None] = Listeners()

    def set_up(
        self,
        *,
        account: str,
        device: str | None,
        content_ids: tuple[str, ...],
        limit: int,
        created_by: CreatedBy = "setup",
    ) -> Session:
        """Opens a session, which takes a slot.

        Raises:
            Refusal: the account already holds ``limit`` active sessions.
        """
        with self._lock:
            now = self._expire()
            book = self._accounts.setdefault(account, _Book())
            book.limit = limit
            if len(book.held) >= limit:
                book.refused += 1
                book.refused_ms = now
                self.listeners.tell(Change(account))
                raise Refusal(Problem.LIMIT_REACHED, f"maximum number of active sessions ({limit}) exceeded")
            session = Session(
                id=uuid.uuid4().hex,
                account=account,
                device=device,
                content_ids=content_ids,
                created_ms=now,
                last_keepalive_ms=now,
                expires_ms=now + self._lifetime_ms,
                created_by=created_by,
            )
            book.held.add(session.id)
            self._counts[SessionState.ACTIVE] += 1
            heapq.heappush(self._expiries, (session.expires_ms, session.id))
            return self._store(session)

    def check(self, session_id: str | None, seq: int | None) -> Session:
        """Returns the active session of a token.

        Raises:
            Refusal: the session is unknown or has ended, or rotation has replaced the token.
        """
        with self._lock:
            self._expire()
            session = self._sessions.get(session_id or "")
            if session is None or seq is None:
                raise Refusal(Problem.SESSION_UNKNOWN)
            if not session.active:
                raise Refusal(Problem.SESSION_OVER, f"session is over: {session.state.value.replace('_', ' ')}")
            oldest = session.seq - 1 if self._rotation == "accept_previous" else session.seq
            if seq > session.seq:
                raise Refusal(Problem.SESSION_UNKNOWN, "session token was never issued")
            if seq < oldest:
                raise Refusal(Problem.SESSION_TOKEN_STALE)
            return session

    def keep_alive(self, session: Session) -> Session:
        """Counts a heartbeat or renewal: extends the lease of the session and, unless the rotation is ``none``, makes a
        new token."""
        with self._lock:
            now = self._now_ms()
            expires = now + self._lifetime_ms
            return self._rotated(session.id, beats=1, last_keepalive_ms=now, expires_ms=expires)

    def license(self, session: Session, content_ids: tuple[str, ...], *, rotate: bool) -> Session:
        """Counts a licence that is not a renewal. With ``rotate`` makes a new session token (enforced mode)."""
        with self._lock:
            current = self._sessions[session.id]
            known = current.content_ids
            merged = known + tuple(content for content in dict.fromkeys(content_ids) if content not in known)
            updated = self._store(replace(current, content_ids=merged, licenses=current.licenses + 1))
            return self._rotated(session.id) if rotate else updated

    def tear_down(self, session: Session) -> Session:
        """Tears a session down, which frees its slot."""
        with self._lock:
            return self._end(session.id, SessionState.TORN_DOWN, self._now_ms())

    def kill(self, *, account: str | None = None, device: str | None = None) -> int:
        """Kills the active sessions of an account or a device. Returns how many it has killed."""
        with self._lock:
            now = self._expire()
            doomed = [
                session.id
                for session in self._sessions.values()
                if session.active
                and (account is None or session.account == account)
                and (device is None or session.device == device)
            ]
            for ident in doomed:
                self._end(ident, SessionState.KILLED, now)
            return len(doomed)

    def expire(self) -> None:
        """Ends the sessions that have expired. The other methods of this class do this, too."""
        with self._lock:
            self._expire()

    def clear(self) -> None:
        """Drops every session, as after a restart that loses all data in memory."""
        with self._lock:
            self._sessions.clear()
            self._accounts.clear()
            self._counts.clear()
            self._expiries.clear()
            self.listeners.tell(None)

    def all(self, account: str | None = None) -> list[Session]:
        """Returns all sessions, or those of one account, in the order of set-up."""
        with self._lock:
            self._expire()
            return [s for s in self._sessions.values() if account is None or s.account == account]

    def active(self, account: str | None = None) -> list[Session]:
        """Returns the sessions that hold a slot now."""
        return [session for session in self.all(account) if session.active]

    def in_state(self, state: SessionState | str, account: str | None = None) -> list[Session]:
        """Returns the sessions in one state."""
        wanted = SessionState(state)
        return [session for session in self.all(account) if session.state is wanted]

    def get(self, session_id: str) -> Session:
        """Returns one session by its id.

        Raises:
            KeyError: no such session.
        """
        with self._lock:
            self._expire()
            return self._sessions[session_id]

    def accounts(self) -> list[Account]:
        """Returns the accounts that have requested a session, in the order of their first request."""
        with self._lock:
            self._expire()
            return [_account_of(name, book) for name, book in self._accounts.items()]

    def account(self, name: str) -> Account:
        """Returns one account.

        Raises:
            KeyError: the account has never requested a session.
        """
        with self._lock:
            self._expire()
            return _account_of(name, self._accounts[name])

    def counts(self) -> dict[SessionState, int]:
        """Returns how many sessions are in each state."""
        with self._lock:
            self._expire()
            return {state: self._counts[state] for state in SessionState}

    def newest(self, active: int, ended: int) -> list[Session]:
        """Returns the newest sessions in the order of set-up: at most ``active`` active sessions and ``ended`` ended
        sessions."""
        with self._lock:
            self._expire()
            order = reversed(self._sessions.values())
            chosen = {s.id for s in islice((s for s in order if s.active), active)}
            order = reversed(self._sessions.values())
            chosen |= {s.id for s in islice((s for s in order if not s.active), ended)}
            return [session for session in self._sessions.values() if session.id in chosen]

    @property
    def next_expiry_ms(self) -> int | None:
        """Returns a time before which no session expires; None if no session can expire."""
        with self._lock:
            return self._expiries[0][0] if self._expiries else None

    def only(self, account: str | None = None) -> Session:
        """Returns the only active session.

        Raises:
            AssertionError: no session or several sessions are active.
        """
        active = self.active(account)
        if len(active) != 1:
            raise AssertionError(f"{len(active)} sessions are active, expected one: {active}")
        return active[0]

    def __len__(self) -> int:
        with self._lock:
            return len(self._sessions)

    def _expire(self) -> int:
        now = self._now_ms()
        while self._expiries and self._expiries[0][0] <= now:
            _, ident = heapq.heappop(self._expiries)
            session = self._sessions[ident]
            if not session.active:
                continue
            if session.expires_ms > now:
                heapq.heappush(self._expiries, (session.expires_ms, ident))
            else:
                self._end(ident, SessionState.EXPIRED, session.expires_ms)
        return now

    def _end(self, ident: str, state: SessionState, at_ms: int) -> Session:
        session = replace(self._sessions[ident], state=state, ended_ms=at_ms)
        self._accounts[session.account].held.discard(ident)
        self._counts[SessionState.ACTIVE] -= 1
        self._counts[state] += 1
        return self._store(session)

    def _store(self, session: Session) -> Session:
        self._sessions[session.id] = session
        self.listeners.tell(Change(session.account, session.id))
        return session

    def _rotated(
        self, ident: str, *, beats: int = 0, last_keepalive_ms: int | None = None, expires_ms: int | None = None
    ) -> Session:
        session = self._sessions[ident]
        step = 0 if self._rotation == "none" else 1
        updated = replace(
            session,
            seq=session.seq + step,
            tokens_issued=session.tokens_issued + step,
            beats=session.beats + beats,
            last_keepalive_ms=session.last_keepalive_ms if last_keepalive_ms is None else last_keepalive_ms,
            expires_ms=session.expires_ms if expires_ms is None else expires_ms,
        )
        return self._store(updated)


def _account_of(name: str, book: _Book) -> Account:
    return Account(name, book.limit, len(book.held), book.refused, book.refused_ms)
