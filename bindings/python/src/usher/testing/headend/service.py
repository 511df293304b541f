"""The state of one head-end and the token checks, which all routes use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .. import fairplay
from ..fairplay import Spc
from .clock import Clock
from .codes import Family, Problem, Refusal
from .config import HeadEndConfig, KeySystem
from .fixtures import certificate_der, service_certificate
from .network.replies import Reply, error_reply
from .oracle.journal import Entry
from .state.accounts import AccountBook
from .state.checks import Checks, Grant
from .state.keystore import KeyStore
from .state.redis_store import RedisStore
from .state.rights import Right, RightsLedger
from .state.sessions import Session, SessionTable
from .state.tokens import TokenMint

__all__ = ["Answer", "Grant", "Handler", "Route", "Service"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, and the facts about it that the journal records.

    Attributes:
        reply: the reply.
        account: the account; if None, the journal takes the account from the tokens.
        session: the session; if None, the journal takes the session from the tokens.
        issued: ``seq`` of the session token in the reply, else None.
        token: the session token in the reply.
        error_code: the error number of a refusal.
        error_message: the error text of a refusal.
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
    """One route of the head-end.

    Attributes:
        method: HTTP method.
        path: the path after the tenant; ``{tenant}`` in it stands for the tenant.
        name: the route's name in the journal.
        handler: the function that makes the answer.
        family: the kind of server; the error codes depend on it.
        key_system: the key system of a licence or certificate service.
        renewal_name: the name in the journal if the query has ``renew=true``.
    """

    method: str
    path: str
    name: str
    handler: Handler
    family: Family = "ssm"
    key_system: KeySystem | None = None
    renewal_name: str | None = None


_NO_KEYS: Mapping[bytes, bytes] = MappingProxyType({})


class Service(Checks):
    """The state and the checks of one head-end. Handlers run on the server's event loop, one at a time.

    Attributes:
        tenant_url: the URL of the head-end with its tenant; empty before the head-end listens.
    """

    def __init__(self, config: HeadEndConfig, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self.mint = TokenMint(config.hmac_key, config.key_id, config.tenant, config.token_form)
        self.keys = KeyStore(config.keys)
        self.sessions = SessionTable(
            clock.now_ms,
            lifetime_ms=config.lifetime_ms,
            rotation=config.token_rotation,
            store=None if config.sessions_url is None else RedisStore(config.sessions_url, f"usher:{config.tenant}:"),
        )
        self.fairplay_certificate = certificate_der(f"{config.tenant} FairPlay fixture").ljust(
            config.certificate.size_bytes, b"\0"
        )
        self.widevine_certificate = service_certificate(config.tenant)
        self.rights = RightsLedger(clock)
        self.accounts = AccountBook()
        self.revoked: dict[str | None, int] = {}
        self.tenant_url = ""
        self._played: set[str] = set()

    def refuse(self, family: Family, refusal: Refusal) -> Answer:
        """Makes the error reply to a refusal, from the code table."""
        codes = self.config.codes
        code = codes.code(family, refusal.problem)
        message = refusal.message or codes.messages.get(refusal.problem, refusal.problem.value)
        status = codes.status(family, refusal.problem) if refusal.status is None else refusal.status
        return Answer(error_reply(status, code, message), error_code=code, error_message=message)

    def revoke(self, account: str | None) -> None:
        """Revokes all existing tokens of one account, or of all accounts."""
        self.mint.generation += 1
        self.revoked[account] = self.mint.generation

    def forget(self) -> None:
        """Drops all sessions and the list of played tokens, as after a restart that loses all data in memory."""
        self.sessions.clear()
        self._played.clear()

    def period_field(self) -> int | float:
        """The keep-alive period in s, as replies have it: an integer if it has no fraction."""
        period = self.config.period_s
        return int(period) if period == int(period) else period

    def session_token(self, session: Session) -> str:
        """Returns the newest token of a session, signed, as the client gets it."""
        exp = session.created_ms // 1000 + self.config.session_token_lifetime_s
        return self.mint.session(
            session=session.id, seq=session.seq, account=session.account, device=session.device, exp=exp
        )

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
        """Makes a right to play a content. By default, lifetime and number of uses are those of the settings."""
        settings = self.config.expressplay
        lifetime_s = settings.lifetime_s if expires_in_s is None else expires_in_s
        if uses is None and settings.one_shot:
            uses = 1
        return Right(content_id, kid, self.clock.now_ms() + round(lifetime_s * 1000), uses, cookie, device)

    def read_spc(self, spc: bytes, keys: Mapping[bytes, bytes] = _NO_KEYS) -> tuple[Spc, bytes, bytes]:
        """Returns the contents of an SPC, and the key id and the key for it. The keys in ``keys`` take precedence over
        those of the key store.

        Raises:
            Refusal: the SPC is damaged, was made with another certificate, or needs an unknown key.
        """
        try:
            said = fairplay.read_spc(spc)
        except ValueError as error:
            raise Refusal(Problem.BAD_CHALLENGE, str(error)) from error
        if said.certificate_sha256 not in (None, hashlib.sha256(self.fairplay_certificate).digest()):
            raise Refusal(Problem.BAD_CHALLENGE, "the SPC was made with another certificate")
        _, kid, key = self.keys.named(said.identifier, keys)
        return said, kid, key
