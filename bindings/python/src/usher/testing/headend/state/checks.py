"""Checks whether the tokens of a client allow it to open a session, to keep it alive, and to play a content (source:
test server, token check)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..clock import Clock
from ..codes import Problem, Refusal
from ..config import HeadEndConfig
from ..oracle.journal import Entry
from . import key_tokens
from .accounts import AccountBook
from .keystore import KeyStore
from .sessions import CreatedBy, Session, SessionTable
from .tokens import TokenMint, TokenPart

_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Grant:
    """The result of the token checks of a licence request.

    Attributes:
        content: the content token of the request; None for a renewal.
        session: the active session of the request; None if it has none.
        renewal: whether the request is a renewal (``renew=true``).
        needs_session: whether the licence needs a session, but the request has none (with SSP V2 the request then opens
            a session).
        keys: the content keys in the request's key tokens.
    """

    content: TokenPart | None
    session: Session | None
    renewal: bool
    needs_session: bool = False
    keys: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)


class Checks:
    """The checks of one head-end. Each check raises ``Refusal`` if it fails."""

    config: HeadEndConfig
    clock: Clock
    mint: TokenMint
    sessions: SessionTable
    keys: KeyStore
    accounts: AccountBook
    revoked: dict[str | None, int]
    _played: set[str]

    def check_header(self, entry: Entry, missing: Problem = Problem.TOKEN_MISSING) -> tuple[TokenPart, ...]:
        """Checks the form of the authorisation header. Returns its parts."""
        authorization = entry.authorization
        if not authorization.parts:
            raise Refusal(missing, status=self.config.missing_token_status)
        if self.config.strict_header:
            if authorization.lines > 1:
                raise Refusal(Problem.HEADER_FORMAT, f"{authorization.lines} authorisation header lines")
            if authorization.spaced:
                raise Refusal(Problem.HEADER_FORMAT, "space at a comma of the authorisation header")
        if any(not part.raw for part in authorization.parts):
            raise Refusal(Problem.HEADER_FORMAT, "empty part in the authorisation header")
        tenant = entry.tenant_id
        if tenant is not None and tenant != self.config.tenant:
            raise Refusal(Problem.WRONG_TENANT, f"nv-tenant-id names {tenant!r}")
        return authorization.parts

    def account_token(self, entry: Entry) -> TokenPart:
        """Checks the content or device token of a set-up, and returns it."""
        parts = self.check_header(entry)
        named = [part for part in parts if part.kind in ("content", "device")]
        if len(named) > 1:
            raise Refusal(Problem.SEVERAL_CONTENT_TOKENS)
        for part in parts:
            if part.kind not in ("content", "device", "key"):
                self.mint.verify(part, self.clock.now_ms())
                raise Refusal(Problem.TOKEN_KIND, f"a {part.kind} token does not set up a session")
        if not named:
            raise Refusal(Problem.TOKEN_MISSING)
        self._check_bearer(named[0])
        self._content_keys(named[0], parts)
        return named[0]

    def _check_bearer(self, part: TokenPart) -> None:
        """Checks form, signature, expiry and tenant of a content or device token, and that the token is not revoked."""
        self.mint.verify(part, self.clock.now_ms())
        oldest = max(self.revoked.get(None, 0), self.revoked.get(self.accounts.account(part), 0))
        if part.generation < oldest:
            raise Refusal(Problem.TOKEN_REVOKED, status=self.config.revoked_token_status)

    def _content_keys(self, content: TokenPart, parts: Sequence[TokenPart]) -> dict[bytes, bytes]:
        """Returns the keys in the key tokens of a request. The request must have every key token that its content token
        names."""
        there = [part.raw for part in parts if part.kind == "key"]
        wanted = {name for right in content.rights if isinstance(name := right.get("contentKeyToken"), str)}
        if wanted - {key_tokens.name_of(raw) for raw in there}:
            raise Refusal(Problem.KEY_TOKEN_MISSING)
        return {kid: key for raw in there for kid, key in key_tokens.unseal(raw, self.mint.key_token_secret).items()}

    def live_session(self, part: TokenPart) -> Session:
        """Checks a session token, and returns its active session."""
        self.mint.verify(part, self.clock.now_ms())
        return self.sessions.check(part.jti, part.seq)

    def lone_session(self, entry: Entry) -> Session:
        """Returns the active session of a request. The request must carry only the session token."""
        parts = self.check_header(entry, Problem.SESSION_TOKEN_MISSING)
        token = entry.session_token
        if token is None:
            self.mint.verify(parts[-1], self.clock.now_ms())
            raise Refusal(Problem.TOKEN_KIND, f"a {parts[-1].kind} token in place of the session token")
        if len(parts) > 1 and self.config.strict_header:
            raise Refusal(Problem.HEADER_FORMAT, "this request must carry only the session token")
        return self.live_session(token)

    def operator(self, entry: Entry) -> None:
        """Checks the AuthN token of an operator call."""
        parts = self.check_header(entry)
        self.mint.verify(parts[0], self.clock.now_ms())
        if len(parts) > 1 or parts[0].kind != "operator":
            raise Refusal(Problem.TOKEN_KIND, "an operator call takes one AuthN token")

    def license_content(self, entry: Entry) -> TokenPart:
        """Checks the content or device token of a licence request, and returns it."""
        parts = self.check_header(entry)
        content = entry.authorization.all("content") or entry.authorization.all("device")
        if len(content) > 1:
            raise Refusal(Problem.SEVERAL_CONTENT_TOKENS)
        for part in parts:
            if part.kind == "unknown":
                self.mint.verify(part, self.clock.now_ms())
                raise Refusal(Problem.TOKEN_KIND, f"unknown token kind {part.claims.get('typ')!r}")
        if not content:
            raise Refusal(Problem.TOKEN_MISSING, "content authorisation token missing")
        self._check_bearer(content[0])
        return content[0]

    def license_grant(self, entry: Entry, *, opens: bool = False) -> Grant:
        """Checks the tokens of a licence request, and returns the result.

        Args:
            opens: whether a request without a session is correct, because the licence request opens the session (SSP
                V2).
        """
        if entry.query_value("renew") == "true":
            return Grant(content=None, session=self.lone_session(entry), renewal=True)
        content = self.license_content(entry)
        token = entry.session_token
        if token is None and entry.authorization.all("session"):
            raise Refusal(Problem.HEADER_FORMAT, "the session token is not the last part")
        keys = self._content_keys(content, entry.parts)
        required = self.config.ssm_required
        missing = token is None and (required == "always" or (required == "token" and self._session_control(content)))
        if missing and not opens:
            raise Refusal(Problem.SESSION_TOKEN_MISSING)
        session = self.live_session(token) if token is not None else None
        if session is not None:
            account = self._account_named(content)
            if account is not None and account != session.account:
                raise Refusal(Problem.WRONG_ACCOUNT)
        self._check_replay(content)
        return Grant(content=content, session=session, renewal=False, needs_session=missing, keys=keys)

    def _account_named(self, token: TokenPart) -> str | None:
        """Returns the account that a token names, or the account of a device token's device; None if neither exists."""
        account = self.accounts.account(token)
        named = token.claims.get("device") if token.kind == "content" else token.claims
        is_named = isinstance(named, Mapping) and isinstance(named.get("accountId"), str)
        is_known = token.kind == "device" and account != token.device
        return account if is_named or is_known else None

    def _session_control(self, token: TokenPart) -> bool:
        return (
            token.session_control
            if token.kind == "content"
            else self.accounts.rights(self.accounts.account(token)).session_control
        )

    def open_session(self, token: TokenPart, created_by: CreatedBy) -> Session:
        """Takes a slot for the account of a content or device token. Returns the new session.

        Raises:
            Refusal: the account is at its limit, the token lacks the session control that the settings require,
                or the token names neither account nor device.
        """
        if token.kind == "content" and self.config.require_session_control and not token.session_control:
            raise Refusal(Problem.SESSION_CONTROL_DISABLED)
        account = self.accounts.account(token)
        if account is None:
            raise Refusal(Problem.TOKEN_MALFORMED, "token names neither account nor device")
        granted = token.max_sessions if token.kind == "content" else self.accounts.rights(account).max_sessions
        limit = granted if granted is not None else self.config.limit
        return self.sessions.set_up(
            account=account, device=token.device, content_ids=token.content_ids, limit=limit, created_by=created_by
        )

    def play(self, grant: Grant) -> None:
        """Records the use of a content token for a licence. If the setting ``anti_replay`` is on and the token has
        ``jti`` and ``exp``, the token is then not valid for a further licence. Does nothing for other tokens."""
        if grant.content is not None and self._guarded(grant.content) and grant.content.jti:
            self._played.add(grant.content.jti)

    def check_kids(self, grant: Grant, kids: Sequence[bytes]) -> None:
        """Checks that the token grants these keys. If the token has a list of key ids, each key must be in it. If the
        key store knows the contents of a key, one of them must be a content of the token.

        A renewal has no content token: it may get the keys of all contents of its session. A device token grants the
        keys of the contents that its account may play.
        """
        listed = grant.content.key_ids if grant.content is not None else frozenset[bytes]()
        contents = self._granted_contents(grant)
        for kid in kids:
            if listed and kid not in listed:
                raise Refusal(Problem.NOT_GRANTED, f"key id {kid.hex()} is not among the token's rights")
            belongs = self.keys.content_ids(kid)
            if belongs and contents is not None and not belongs & contents:
                raise Refusal(Problem.NOT_GRANTED, f"key id {kid.hex()} is of another content than the token")

    def _granted_contents(self, grant: Grant) -> frozenset[str] | None:
        """Returns the contents whose keys the request may get; None: all contents."""
        if grant.content is not None and grant.content.kind == "content":
            return frozenset(grant.content.content_ids)
        if grant.content is not None:
            return self.accounts.rights(self.accounts.account(grant.content)).content_ids
        if grant.session is not None and grant.session.content_ids:
            return frozenset(grant.session.content_ids)
        return self.accounts.rights(grant.session.account if grant.session is not None else None).content_ids

    def _guarded(self, content: TokenPart) -> bool:
        return self.config.anti_replay and content.jti is not None and "exp" in content.claims

    def _check_replay(self, content: TokenPart) -> None:
        if not self._guarded(content):
            return
        if content.jti in self._played:
            raise Refusal(Problem.TOKEN_REPLAYED)
        if content.claims["exp"] * 1000 > self.clock.now_ms() + _DAY_MS:
            raise Refusal(Problem.TOKEN_EXPIRED, "a token with jti must not be valid for more than 24 h")
