"""A store in Redis, which the session tables of several head-ends share."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from typing import Any, TypeVar

from ..codes import Problem, Refusal
from .store import Account, Change, Session, SessionState, Transaction

T = TypeVar("T")

_TIMEOUT_S = 2.0
"""How many seconds a request to Redis may take."""
_TRIES = 50
"""The most times that a rule runs if other head-ends change the same data meanwhile."""
_DUE_EVERY_MS = 50
"""Before a rule runs, a head-end asks Redis for expired sessions, but only if this many ms have passed since it last
asked."""


class RedisStore:
    """A store in Redis. Any thread may call any method.

    A rule runs as a transaction with WATCH, MULTI and EXEC: if another head-end has changed what the rule has read,
    Redis writes nothing, and the rule runs again.

    If Redis cannot be reached, methods raise ``Refusal`` with the HTTP status 503. If the connection breaks while Redis
    commits, the head-end cannot know whether the rule took effect, and refuses the request. So a set-up that was
    refused may hold a slot until the session expires, but no account has more sessions than its limit. With the
    rotation ``accept_previous`` a client that got 503 for a heartbeat may repeat it.

    Args:
        url: ``redis://HOST:PORT/DATABASE`` or ``unix://PATH``. Use a database of your own: ``clear`` deletes the keys
            that begin with ``prefix``.
        prefix: the beginning of all keys. Head-ends with the same prefix share their sessions.
    """

    is_shared = True

    def __init__(self, url: str, prefix: str) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ModuleNotFoundError as error:
            raise ValueError(
                "a session table in Redis needs the package redis: pip install 'libusher[load]'"
            ) from error
        self._failures: tuple[type[BaseException], ...] = (redis.RedisError, OSError)
        self._conflict = redis.WatchError
        self._prefix = prefix
        self._asked_ms = 0
        self._client: Any = redis.Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            retry_on_error=[],
        )

    def run(self, rule: Callable[[Transaction], T], tell: Callable[[Change], None]) -> T:
        for _ in range(_TRIES):
            try:
                with self._client.pipeline() as pipe:
                    part = _Part(pipe, self._prefix)
                    outcome = rule(part)
                    part.commit()
            except self._conflict:
                continue
            except self._failures as error:
                raise self._unreachable(error) from error
            for change in part.changes:
                tell(change)
            return outcome
        raise Refusal(Problem.SSM_UNAVAILABLE, "the session table is changed too often", status=503)

    def due(self, now_ms: int, *, exact: bool) -> list[str]:
        if not exact and abs(now_ms - self._asked_ms) < _DUE_EVERY_MS:
            return []
        found: list[str] = self._ask("zrangebyscore", "expiries", 0, now_ms)
        self._asked_ms = now_ms
        return found

    def next_expiry_ms(self) -> int | None:
        first = self._ask("zrange", "expiries", 0, 0, withscores=True)
        return int(first[0][1]) if first else None

    def session(self, ident: str) -> Session | None:
        return _session(self._ask("get", f"session:{ident}"))

    def sessions(self) -> list[Session]:
        found = self._many("session", self._ask("lrange", "sessions", 0, -1))
        return [session for session in map(_session, found) if session is not None]

    def account(self, name: str) -> Account | None:
        account = _account(self._ask("get", f"account:{name}"))
        return None if account is None else replace(account, held=self._ask("scard", f"held:{name}"))

    def accounts(self) -> list[Account]:
        names = self._ask("lrange", "accounts", 0, -1)
        return [account for account in map(self.account, names) if account is not None]

    def counts(self) -> dict[SessionState, int]:
        found = self._ask("hgetall", "counts")
        return {state: int(found.get(state.value, 0)) for state in SessionState}

    def clear(self, then: Callable[[], None]) -> None:
        try:
            for key in self._client.scan_iter(match=f"{_escaped(self._prefix)}*", count=1000):
                self._client.delete(key)
        except self._failures as error:
            raise self._unreachable(error) from error
        then()

    def _many(self, kind: str, names: list[str]) -> list[Any]:
        if not names:
            return []
        try:
            found: list[Any] = self._client.mget([f"{self._prefix}{kind}:{name}" for name in names])
        except self._failures as error:
            raise self._unreachable(error) from error
        return found

    def _ask(self, command: str, key: str, *arguments: Any, **options: Any) -> Any:
        try:
            return getattr(self._client, command)(self._prefix + key, *arguments, **options)
        except self._failures as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> Refusal:
        return Refusal(Problem.SSM_UNAVAILABLE, f"the session table in Redis does not answer: {error}", status=503)


class _Part:
    """One transaction: reads with WATCH, and keeps the writes for EXEC."""

    def __init__(self, pipe: Any, prefix: str) -> None:
        self._pipe = pipe
        self._prefix = prefix
        self._sessions: dict[str, Session | None] = {}
        self._stored: dict[str, Session | None] = {}
        self._accounts: dict[str, Account | None] = {}
        self._new_accounts: set[str] = set()
        self._held: dict[str, set[str]] = {}
        self._changed_accounts: set[str] = set()
        self.changes: list[Change] = []

    def session(self, ident: str) -> Session | None:
        if ident not in self._sessions:
            self._sessions[ident] = self._stored[ident] = _session(self._read("get", f"session:{ident}"))
        return self._sessions[ident]

    def account(self, name: str) -> Account | None:
        if name not in self._accounts:
            self._accounts[name] = _account(self._read("get", f"account:{name}"))
            if self._accounts[name] is None:
                self._new_accounts.add(name)
        return self._accounts[name]

    def held(self, account: str) -> Collection[str]:
        if account not in self._held:
            self._held[account] = set(self._read("smembers", f"held:{account}"))
        return frozenset(self._held[account])

    def put_session(self, session: Session) -> None:
        self.session(session.id)
        self._sessions[session.id] = session
        if session.account in self._held:
            (self._held[session.account].add if session.active else self._held[session.account].discard)(session.id)
        self.changes.append(Change(session.account, session.id))

    def put_account(self, account: Account) -> None:
        self.account(account.name)
        self._accounts[account.name] = account
        self._changed_accounts.add(account.name)
        self.changes.append(Change(account.name))

    def commit(self) -> None:
        """Writes everything at once. Raises WatchError if another head-end has changed what this object has read."""
        if not self.changes:
            return
        self._pipe.multi()
        for name in self._changed_accounts:
            account = self._accounts[name]
            assert account is not None
            self._pipe.set(f"{self._prefix}account:{name}", json.dumps({**asdict(account), "held": 0}))
            if name in self._new_accounts:
                self._pipe.rpush(f"{self._prefix}accounts", name)
        for ident, session in self._sessions.items():
            before = self._stored[ident]
            if session is not None and session != before:
                self._write(session, before)
        self._pipe.execute()

    def _write(self, session: Session, before: Session | None) -> None:
        key, ident = self._prefix, session.id
        self._pipe.set(f"{key}session:{ident}", json.dumps(asdict(session)))
        if session.active:
            self._pipe.zadd(f"{key}expiries", {ident: session.expires_ms})
        if before is None:
            self._pipe.rpush(f"{key}sessions", ident)
            self._pipe.sadd(f"{key}held:{session.account}", ident)
        elif before.state is not session.state:
            self._pipe.srem(f"{key}held:{session.account}", ident)
            self._pipe.zrem(f"{key}expiries", ident)
            self._pipe.hincrby(f"{key}counts", before.state.value, -1)
        if before is None or before.state is not session.state:
            self._pipe.hincrby(f"{key}counts", session.state.value, 1)

    def _read(self, command: str, key: str) -> Any:
        self._pipe.watch(self._prefix + key)
        return getattr(self._pipe, command)(self._prefix + key)


def _session(text: str | None) -> Session | None:
    if text is None:
        return None
    value = json.loads(text)
    value |= {"state": SessionState(value["state"]), "content_ids": tuple(value["content_ids"])}
    return Session(**value)


def _account(text: str | None) -> Account | None:
    return None if text is None else Account(**json.loads(text))


def _escaped(text: str) -> str:
    """Returns a pattern of Redis that matches only this text."""
    return "".join(f"\\{letter}" if letter in "\\*?[]^" else letter for letter in text)
