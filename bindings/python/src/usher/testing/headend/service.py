"""What the routes share: the state of one head-end and the token checks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .. import fairplay
from ..fairplay import Spc
from .clock import Clock
from .codes import Family, Problem, Refusal
from .config import HeadEndConfig, KeySystem
from .fixtures import certificate_der, service_certificate
from .journal import Entry
from .keystore import KeyStore
from .replies import Reply, error_reply
from .rights import Right, RightsLedger
from .sessions import CreatedBy, Session, SessionTable
from .tokens import TokenMint, TokenPart

_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply and what it did.

    Attributes:
        reply: the reply.
        account: whom it concerns, None to leave the journal's own reading.
        session: the session it concerns, None likewise.
        issued: ``seq`` of the session token given, None for none.
        token: that token.
        error_code: number of a refusal.
        error_message: its text.
    """

    reply: Reply
    account: str | None = None
    session: str | None = None
    issued: int | None = None
    token: str | None = field(default=None, repr=False)
    error_code: int | None = None
    error_message: str | None = None


Handler = Callable[["Service", Entry], Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """One thing the head-end answers.

    Attributes:
        method: HTTP method.
        path: the path after the tenant; ``{tenant}`` stands for the tenant again.
        name: route name of the journal.
        handler: makes the answer.
        family: which error table applies.
        key_system: of a licence or certificate service.
        renewal_name: route name when the query says ``renew=true``.
    """

    method: str
    path: str
    name: str
    handler: Handler
    family: Family = "ssm"
    key_system: KeySystem | None = None
    renewal_name: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What a licence request is entitled to.

    Attributes:
        content: its content token, None on a renewal.
        session: its live session, None without one.
        renewal: whether it renews (``renew=true``).
        needs_session: whether it must have a session and came without one (SSP V2 opens it then).
    """

    content: TokenPart | None
    session: Session | None
    renewal: bool
    needs_session: bool = False


class Service:
    """State and checks of one head-end. Handlers run on the server's loop, one at a time.

    Attributes:
        tenant_url: where it listens, empty until it does.
    """

    def __init__(self, config: HeadEndConfig, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self.mint = TokenMint(config.hmac_key, config.key_id, config.tenant)
        self.keys = KeyStore(config.keys)
        self.sessions = SessionTable(clock.now_ms, lifetime_ms=config.lifetime_ms, rotation=config.token_rotation)
        self.fairplay_certificate = certificate_der(f"{config.tenant} FairPlay fixture").ljust(config.certificate.size_bytes, b"\0")
        self.widevine_certificate = service_certificate(config.tenant)
        self.rights = RightsLedger(clock)
        self.tenant_url = ""
        self._played: set[str] = set()

    def refuse(self, family: Family, refusal: Refusal) -> Answer:
        """The error reply of a refusal, by the code table."""
        codes = self.config.codes
        code = codes.code(family, refusal.problem)
        message = refusal.message or codes.messages.get(refusal.problem, refusal.problem.value)
        return Answer(error_reply(codes.status(family, refusal.problem), code, message), error_code=code, error_message=message)

    def forget(self) -> None:
        """Loses all sessions and played tokens, as a restart without memory does."""
        self.sessions.clear()
        self._played.clear()

    # Token checks (source: test server, token check).

    def check_header(self, entry: Entry, missing: Problem = Problem.TOKEN_MISSING) -> tuple[TokenPart, ...]:
        """The parts of the authorisation header, its form checked."""
        authorization = entry.authorization
        if not authorization.parts:
            raise Refusal(missing)
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
        """The content or device token of a set-up, verified."""
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
        self.mint.verify(named[0], self.clock.now_ms())
        return named[0]

    def live_session(self, part: TokenPart) -> Session:
        """The live session of a session token, verified."""
        self.mint.verify(part, self.clock.now_ms())
        return self.sessions.check(part.jti, part.seq)

    def lone_session(self, entry: Entry) -> Session:
        """The live session of a request that must carry the session token alone."""
        parts = self.check_header(entry, Problem.SESSION_TOKEN_MISSING)
        token = entry.session_token
        if token is None:
            self.mint.verify(parts[-1], self.clock.now_ms())
            raise Refusal(Problem.TOKEN_KIND, f"a {parts[-1].kind} token in place of the session token")
        if len(parts) > 1 and self.config.strict_header:
            raise Refusal(Problem.HEADER_FORMAT, "the session token must be alone here")
        return self.live_session(token)

    def operator(self, entry: Entry) -> None:
        """Checks the AuthN token of an operator call."""
        parts = self.check_header(entry)
        self.mint.verify(parts[0], self.clock.now_ms())
        if len(parts) > 1 or parts[0].kind != "operator":
            raise Refusal(Problem.TOKEN_KIND, "an operator call takes one AuthN token")

    def license_content(self, entry: Entry) -> TokenPart:
        """The content token of a licence request, verified."""
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
        self.mint.verify(content[0], self.clock.now_ms())
        return content[0]

    def license_grant(self, entry: Entry, *, opens: bool = False) -> Grant:
        """What the tokens of a licence request entitle it to.

        Args:
            opens: a missing session is no fault, the licence will set it up (SSP V2).
        """
        if entry.query_value("renew") == "true":
            return Grant(content=None, session=self.lone_session(entry), renewal=True)
        content = self.license_content(entry)
        token = entry.session_token
        if token is None and entry.authorization.all("session"):
            raise Refusal(Problem.HEADER_FORMAT, "the session token is not the last part")
        required = self.config.ssm_required
        missing = token is None and (required == "always" or (required == "token" and content.session_control))
        if missing and not opens:
            raise Refusal(Problem.SESSION_TOKEN_MISSING)
        session = self.live_session(token) if token is not None else None
        if session is not None:
            bound = content.claims.get("device")
            account = bound.get("accountId") if isinstance(bound, Mapping) else content.claims.get("accountId")
            if isinstance(account, str) and account != session.account:
                raise Refusal(Problem.WRONG_ACCOUNT)
        self._check_replay(content)
        return Grant(content=content, session=session, renewal=False, needs_session=missing)

    def open_session(self, token: TokenPart, created_by: CreatedBy) -> Session:
        """Takes a slot for the account of a content or device token.

        Raises:
            Refusal: the account is at its limit, the token has no session control where that is asked
                for, or it names nobody.
        """
        if token.kind == "content" and self.config.require_session_control and not token.session_control:
            raise Refusal(Problem.SESSION_CONTROL_DISABLED)
        limit = token.max_sessions if token.max_sessions is not None else self.config.limit
        account = token.account
        if account is None:
            raise Refusal(Problem.TOKEN_MALFORMED, "token names neither account nor device")
        return self.sessions.set_up(
            account=account, device=token.device, content_ids=token.content_ids, limit=limit, created_by=created_by
        )

    def period_field(self) -> int | float:
        """The keep-alive period in s as replies tell it: a whole number where it is one."""
        period = self.config.period_s
        return int(period) if period == int(period) else period

    def play(self, grant: Grant) -> None:
        """Remembers that a content token was played."""
        if grant.content is not None and self._guarded(grant.content) and grant.content.jti:
            self._played.add(grant.content.jti)

    def session_token(self, session: Session) -> str:
        """The newest token of a session, as sent to the client."""
        exp = session.created_ms // 1000 + self.config.session_token_lifetime_s
        return self.mint.session(
            session=session.id, seq=session.seq, account=session.account, device=session.device, exp=exp
        )

    def check_kids(self, grant: Grant, kids: Sequence[bytes]) -> None:
        """Checks that a content token that lists its key ids lists these."""
        listed = grant.content.key_ids if grant.content is not None else frozenset[bytes]()
        for kid in kids:
            if listed and kid not in listed:
                raise Refusal(Problem.NOT_GRANTED, f"key id {kid.hex()} is not among the token's rights")

    def right(
        self,
        content_id: str,
        *,
        kid: bytes | None = None,
        expires_in_s: float | None = None,
        uses: int | None = None,
        cookie: str | None = None,
        device: bytes | None = None,
    ) -> Right:
        """A right to a content, its lifetime and uses by the settings unless told otherwise."""
        settings = self.config.expressplay
        lifetime_s = settings.lifetime_s if expires_in_s is None else expires_in_s
        if uses is None and settings.one_shot:
            uses = 1
        return Right(content_id, kid, self.clock.now_ms() + round(lifetime_s * 1000), uses, cookie, device)

    def read_spc(self, spc: bytes) -> tuple[Spc, bytes, bytes]:
        """What an SPC of ours says, with the key id and key it asks for.

        Raises:
            Refusal: it is damaged, was made with another certificate, or asks for an unknown key.
        """
        try:
            said = fairplay.read_spc(spc)
        except ValueError as error:
            raise Refusal(Problem.BAD_CHALLENGE, str(error)) from error
        if said.certificate_sha256 not in (None, hashlib.sha256(self.fairplay_certificate).digest()):
            raise Refusal(Problem.BAD_CHALLENGE, "the SPC was made with another certificate")
        _, kid, key = self.keys.named(said.identifier)
        return said, kid, key

    def _guarded(self, content: TokenPart) -> bool:
        return self.config.anti_replay and content.jti is not None and "exp" in content.claims

    def _check_replay(self, content: TokenPart) -> None:
        if not self._guarded(content):
            return
        if content.jti in self._played:
            raise Refusal(Problem.TOKEN_REPLAYED)
        if content.claims["exp"] * 1000 > self.clock.now_ms() + _DAY_MS:
            raise Refusal(Problem.TOKEN_EXPIRED, "a token with jti must not be valid for more than 24 h")
