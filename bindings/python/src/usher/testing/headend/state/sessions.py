"""The session table, which has all sessions at the head-end, and the rules for them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar

from ..codes import Problem, Refusal
from ..config import Rotation
from ..listeners import Listeners
from .store import Account, Change, CreatedBy, MemoryStore, Session, SessionState, Store, Transaction

T = TypeVar("T")

__all__ = ["Account", "Change", "CreatedBy", "Session", "SessionState", "SessionTable"]


class SessionTable:
    """All sessions, including those that have ended. Any thread may call any method; results are snapshots.

    Before a method reads or changes sessions, it ends the sessions whose ``expires_ms`` the clock has reached, and
    frees their slots. Only ``clear`` and ``next_expiry_ms`` do not need this.

    Args:
        now_ms: a function that returns the time on the head-end's clock.
        lifetime_ms: how long a session lives without a keep-alive, in ms.
        rotation: which older tokens are still valid.
        store: where the sessions are kept; None: in memory.

    Attributes:
        listeners: functions that the table calls with each change that this process makes; with None when it has
            dropped all sessions.
    """

    def __init__(
        self, now_ms: Callable[[], int], *, lifetime_ms: int, rotation: Rotation, store: Store | None = None
    ) -> None:
        self._now_ms = now_ms
        self._lifetime_ms = lifetime_ms
        self._rotation = rotation
        self._store: Store = MemoryStore() if store is None else store
        self.listeners: Listeners[Change | None] = Listeners()

    # The methods below are the rules of the table. Each rule runs as one transaction.

    def set_up(
        self,
        *,
        account: str,
        device: str | None,
        content_ids: tuple[str, ...],
        limit: int,
        created_by: CreatedBy = "setup",
    ) -> Session:
        """Opens a session, which takes a slot, and returns it.

        Raises:
            Refusal: the account already holds ``limit`` active sessions.
        """
        ident = uuid.uuid4().hex

        def rule(part: Transaction) -> Session | None:
            now = self._now_ms()
            if len(part.held(account)) >= limit:
                self._end_expired(part, part.held(account), now)
            before = part.account(account)
            known = before or Account(account, limit)
            if len(part.held(account)) >= limit:
                part.put_account(replace(known, limit=limit, refused=known.refused + 1, refused_ms=now))
                return None
            if before is None or before.limit != limit:
                part.put_account(replace(known, limit=limit))
            session = Session(
                id=ident,
                account=account,
                device=device,
                content_ids=content_ids,
                created_ms=now,
                last_keepalive_ms=now,
                expires_ms=now + self._lifetime_ms,
                created_by=created_by,
            )
            part.put_session(session)
            return session

        opened = self._run(rule)
        if opened is None:
            raise Refusal(Problem.LIMIT_REACHED, f"maximum number of active sessions ({limit}) exceeded")
        return opened

    def check(self, session_id: str | None, seq: int | None) -> Session:
        """Returns the active session of a token.

        Raises:
            Refusal: the session is unknown or has ended, or rotation has replaced the token.
        """
        self._expire(exact=False)
        session = self._store.session(session_id or "")
        if session is None or seq is None:
            raise Refusal(Problem.SESSION_UNKNOWN)
        session = self._live(session)
        oldest = session.seq - 1 if self._rotation == "accept_previous" else session.seq
        if seq > session.seq:
            raise Refusal(Problem.SESSION_UNKNOWN, "session token was never issued")
        if seq < oldest:
            raise Refusal(Problem.SESSION_TOKEN_STALE)
        return session

    def keep_alive(self, session: Session) -> Session:
        """Counts a heartbeat or renewal: extends the lease of the session and, unless the rotation is ``none``, makes a
        new token. Returns the new state of the session.

        Raises:
            Refusal: the session has ended meanwhile, or with strict rotation its token was replaced meanwhile. This
                happens only if several processes share the table.
        """

        def rule(part: Transaction) -> Session:
            now = self._now_ms()
            current = self._current(part, session)
            beaten = replace(
                current, beats=current.beats + 1, last_keepalive_ms=now, expires_ms=now + self._lifetime_ms
            )
            part.put_session(self._rotated(beaten))
            return self._rotated(beaten)

        return self._run(rule)

    def license(self, session: Session, content_ids: tuple[str, ...], *, rotate: bool) -> Session:
        """Counts a licence that is not a renewal. With ``rotate`` makes a new session token (enforced mode). Returns
        the new state of the session.

        Raises:
            Refusal: as ``keep_alive``.
        """

        def rule(part: Transaction) -> Session:
            current = self._current(part, session)
            known = current.content_ids
            merged = known + tuple(content for content in dict.fromkeys(content_ids) if content not in known)
            counted = replace(current, content_ids=merged, licenses=current.licenses + 1)
            part.put_session(self._rotated(counted) if rotate else counted)
            return self._rotated(counted) if rotate else counted

        return self._run(rule)

    def tear_down(self, session: Session) -> Session:
        """Tears a session down, which frees its slot. Returns the ended session.

        Raises:
            Refusal: as ``keep_alive``.
        """

        def rule(part: Transaction) -> Session:
            now = self._now_ms()
            return self._end(part, self._current(part, session), SessionState.TORN_DOWN, now)

        return self._run(rule)

    def kill(self, *, account: str | None = None, device: str | None = None) -> int:
        """Kills the active sessions of an account (None: of all accounts) and a device (None: of all devices). Returns
        how many it has killed."""
        doomed = [session.id for session in self.active(account) if device is None or session.device == device]

        def rule(part: Transaction) -> int:
            now = self._now_ms()
            found = [session for session in map(part.session, doomed) if session is not None and session.active]
            for session in found:
                self._end(part, session, SessionState.KILLED, now)
            return len(found)

        return self._run(rule) if doomed else 0

    def expire(self) -> None:
        """Ends the sessions that have expired. The methods that read or change sessions also do this."""
        self._expire(exact=True)

    def _expire(self, *, exact: bool) -> None:
        now = self._now_ms()
        due = self._store.due(now, exact=exact)
        if due:
            self._store.run(lambda part: self._end_expired(part, due, now), self.listeners.tell)

    def clear(self) -> None:
        """Drops every session, as after a restart that loses all data in memory."""
        self._store.clear(lambda: self.listeners.tell(None))

    # Questions.

    def all(self, account: str | None = None) -> list[Session]:
        """Returns the sessions of an account, or with None those of all accounts, in the order of set-up."""
        self.expire()
        return [s for s in self._store.sessions() if account is None or s.account == account]

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
        self.expire()
        session = self._store.session(session_id)
        if session is None:
            raise KeyError(session_id)
        return session

    def accounts(self) -> list[Account]:
        """Returns the accounts that have requested a session, in the order of their first request."""
        self.expire()
        return self._store.accounts()

    def account(self, name: str) -> Account:
        """Returns one account.

        Raises:
            KeyError: the account has never requested a session.
        """
        self.expire()
        account = self._store.account(name)
        if account is None:
            raise KeyError(name)
        return account

    def counts(self) -> dict[SessionState, int]:
        """Returns how many sessions are in each state."""
        self.expire()
        return self._store.counts()

    def newest(self, active: int, ended: int) -> list[Session]:
        """Returns the newest sessions in the order of set-up: at most ``active`` active sessions and ``ended`` ended
        sessions."""
        self.expire()
        chosen: list[Session] = []
        left = {True: active, False: ended}
        for session in reversed(self._store.sessions()):
            if left[session.active] > 0:
                left[session.active] -= 1
                chosen.append(session)
            elif not any(left.values()):
                break
        return chosen[::-1]

    @property
    def next_expiry_ms(self) -> int | None:
        """Returns a time before which no session expires; None if no session can expire."""
        return self._store.next_expiry_ms()

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
        return sum(self._store.counts().values())

    # Inside.

    def _run(self, rule: Callable[[Transaction], T]) -> T:
        self._expire(exact=False)
        return self._store.run(rule, self.listeners.tell)

    def _live(self, session: Session | None) -> Session:
        """Returns the session if it is active and has not expired."""
        if session is None:
            raise Refusal(Problem.SESSION_UNKNOWN)
        state = session.state
        if session.active and session.expires_ms <= self._now_ms():
            state = SessionState.EXPIRED
        if state is not SessionState.ACTIVE:
            raise Refusal(Problem.SESSION_OVER, f"session is over: {state.value.replace('_', ' ')}")
        return session

    def _current(self, part: Transaction, seen: Session) -> Session:
        """Returns the newest state of the session. ``seen`` is its state when the request's token was checked."""
        current = self._live(part.session(seen.id))
        if self._rotation == "strict" and current.seq != seen.seq:
            raise Refusal(Problem.SESSION_TOKEN_STALE)
        return current

    def _end_expired(self, part: Transaction, idents: Collection[str], now: int) -> None:
        for session in [*map(part.session, idents)]:
            if session is not None and session.active and session.expires_ms <= now:
                self._end(part, session, SessionState.EXPIRED, session.expires_ms)

    @staticmethod
    def _end(part: Transaction, session: Session, state: SessionState, at_ms: int) -> Session:
        ended = replace(session, state=state, ended_ms=at_ms)
        part.put_session(ended)
        return ended

    def _rotated(self, session: Session) -> Session:
        step = 0 if self._rotation == "none" else 1
        return replace(session, seq=session.seq + step, tokens_issued=session.tokens_issued + step)
