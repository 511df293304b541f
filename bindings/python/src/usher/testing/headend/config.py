"""The settings of a reference head-end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Literal, Union, get_args

from ... import _border
from .codes import CodeTable
from .knobs import V2, Base64Form, Certificate, ExpressPlay, Fps, Sees, one_of

KeySystem = Literal["fairplay", "widevine", "playready", "clearkey"]
"""The key systems with a licence service."""

KEY_SYSTEMS: tuple[KeySystem, ...] = get_args(KeySystem)

AnyKeySystem = Union[KeySystem, Enum]  # noqa: UP007
"""A key system: one of the names in `KEY_SYSTEMS`, or a member of ``usher.KeySystem``."""


def key_system_name(key_system: AnyKeySystem | str) -> KeySystem:
    """Returns the name of a key system. Raises ValueError if there is no such key system."""
    name = key_system.name.lower() if isinstance(key_system, Enum) else key_system
    if name not in KEY_SYSTEMS:
        raise ValueError(f"unknown key system {name}; key systems are {', '.join(KEY_SYSTEMS)}")
    return name


SERVICE_OF: Mapping[KeySystem, str] = {
    "fairplay": "fpls",
    "widevine": "wvls",
    "playready": "prls",
    "clearkey": "ckls",
}
"""For each key system, the path segment of its licence service (source: SSP licence service URLs)."""

HeartbeatKey = Literal["heartbeat", "heartBeat"]
TeardownReply = Literal["json", "no-content", "text"]
SsmRequired = Literal["token", "always", "never"]
FairPlayReply = Literal["json", "raw"]
Rotation = Literal["strict", "accept_previous", "none"]
TokenForm = Literal["jwt", "uuid", "letters", "digits", "mixed"]
"""The forms of tokens; with ``mixed`` each token has one of the other forms."""
Api = Literal["v1", "v2"]
"""The version of the licence services; with v2 the licence request opens the session."""

DEFAULT_TENANT = "TENANT1"
DEFAULT_ACCOUNT = "account-1"
DEFAULT_CONTENT_ID = "content-1"
DEFAULT_HMAC_KEY = b"usher reference head-end: fixture key, signs nothing real"
MAX_HEADER_BYTES = 65_536
"""The largest request line or header field that the head-end accepts. The limit is high because a header can have
several long tokens."""


@dataclass(frozen=True, kw_only=True)
class HeadEndConfig:
    """The settings of one head-end.

    Attributes:
        tenant: the first path segment of every URL, and the ``tenantId`` in tokens.
        host: the address on which the head-end listens. Use an address other than loopback only in a test lab.
        host_names: further names that clients may use in URLs of the page and the control endpoints. IP addresses,
            ``localhost`` and ``host`` are always allowed.
        port: TCP port, 0 for a free one.
        tls: serve HTTPS with a certificate from a certificate authority made for this head-end.
        clock: ``system``, or ``manual`` for a clock that moves only with ``advance``.
        manual_start_ms: where a manual clock starts, in ms since the Unix epoch.
        hmac_key: HS256 key that signs and verifies every token.
        key_id: ``kid`` (the id of the key) in the header of tokens.
        accounts: examples of accounts: the program prints a content token for each, and the page suggests them in its
            forms. Accounts that are not in this list may also have tokens and sessions.
        content_id: the example of a content: its id is in the printed tokens, and the page suggests it.
        limit: how many sessions an account may have if the content token has no ``maxSessions``.
        period_s: seconds between keep-alives, possibly a fraction. The head-end sends this number in the set-up reply.
        grace: a session expires ``period_s * grace`` seconds after its last keep-alive.
        token_rotation: ``strict`` accepts only the newest session token, ``accept_previous`` also the one
            before it, ``none`` never changes the token.
        token_form: ``jwt``, or opaque tokens: a UUID, 12 letters or 13 digits in place of each JWT.
        session_token_lifetime_s: the time from set-up until session tokens expire (``exp``), in seconds.
        heartbeat_key: the name of the field in the set-up reply that has the period.
        teardown_reply: ``json`` is 200 with ``{}``, ``no-content`` is 204, ``text`` is 200 with text
            (source: SSM v1 teardown).
        auth_headers: header names that may carry the tokens, compared without regard to case.
        strict_header: refuse spaces around commas, and more than one authorisation header line.
        ssm_required: when a licence needs a live session: ``always``, ``never``, or ``token``. With ``token`` a licence
            needs one if session control is on in the content token, or for the account of the device token. With SSP V2
            the licence request opens the session; if the licence needs none, the reply has no session token.
        require_session_control: whether to refuse set-up (1008) for tokens without session control.
        anti_replay: whether to refuse a second licence for a content token with the same ``jti`` (if the token has
            ``exp``).
        missing_token_status: HTTP status of the reply to a request without the authorisation header; None: the status
            in the code table.
        revoked_token_status: HTTP status for a token that ``revoke_tokens`` revoked.
        enforced: key systems whose licence replies enforce the session (DRM-enforced mode).
        fairplay_reply: JSON with ``CkcMessage``, or the raw CKC.
        fairplay_base64: how ``CkcMessage`` is encoded.
        v2: the form of licence replies of SSP V2.
        certificate: how the head-end serves the FairPlay application certificate.
        fps: the generic FairPlay key server.
        expressplay: the ExpressPlay licence service.
        sees: the entitlement server.
        keys: content keys by key id, 16 bytes each, valid for any content; ``add_key`` adds keys of one content.
        codes: the error code and HTTP status of each problem.
        fault_seed: the seed of the random choices of faults, such as jitter. With the same seed, the same requests get
            the same faults.
        beat_tolerance_ms: how late a keep-alive may be; ``violations()`` reports a later one.
        control: whether to serve the control endpoints under ``/_control/``.
        control_token: the token that clients of the control endpoints and of the page must send. None: on loopback no
            token is needed; on any other address the head-end makes a random token (``HeadEnd.control_token``).
        journal_tokens: whether the journal of the control endpoints has whole tokens, or only their short names.
        journal_limit: how many of the newest entries the journal keeps; None: all entries.
        max_body_bytes: the largest request body that the head-end accepts.
        sessions_url: the Redis server that keeps the session table, as ``redis://HOST:PORT/DATABASE``; head-ends with
            the same server and tenant share their sessions. None: the table is in memory.
        reuse_port: whether other processes may listen on the same port; the system then spreads new connections over
            these processes.
    """

    tenant: str = DEFAULT_TENANT
    host: str = "127.0.0.1"
    host_names: tuple[str, ...] = ()
    port: int = 0
    tls: bool = False
    clock: Literal["system", "manual"] = "system"
    manual_start_ms: int = 1_700_000_000_000
    hmac_key: bytes = field(default=DEFAULT_HMAC_KEY, repr=False)
    key_id: str = "usher-fixture-1"
    accounts: tuple[str, ...] = (DEFAULT_ACCOUNT,)
    content_id: str = DEFAULT_CONTENT_ID
    limit: int = 2
    period_s: float = 60.0
    grace: float = 2.0
    token_rotation: Rotation = "accept_previous"
    token_form: TokenForm = "jwt"
    session_token_lifetime_s: int = 86_400
    heartbeat_key: HeartbeatKey = "heartbeat"
    teardown_reply: TeardownReply = "json"
    auth_headers: tuple[str, ...] = ("nv-authorizations",)
    strict_header: bool = True
    ssm_required: SsmRequired = "token"
    require_session_control: bool = False
    anti_replay: bool = True
    missing_token_status: int | None = None
    revoked_token_status: int = 401
    enforced: frozenset[AnyKeySystem] = frozenset()
    fairplay_reply: FairPlayReply = "json"
    fairplay_base64: Base64Form = "padded"
    v2: V2 = field(default_factory=V2)
    certificate: Certificate = field(default_factory=Certificate)
    fps: Fps = field(default_factory=Fps)
    expressplay: ExpressPlay = field(default_factory=ExpressPlay)
    sees: Sees = field(default_factory=Sees)
    keys: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)
    codes: CodeTable = field(default_factory=CodeTable)
    fault_seed: int = 0
    beat_tolerance_ms: int = 250
    control: bool = True
    control_token: str | None = field(default=None, repr=False)
    journal_tokens: bool = False
    journal_limit: int | None = None
    max_body_bytes: int = 16 * 1024 * 1024
    sessions_url: str | None = field(default=None, repr=False)
    reuse_port: bool = False

    def __post_init__(self) -> None:
        for setting in fields(self):
            _border.simple(getattr(self, setting.name), str(setting.type), setting.name)
        try:
            object.__setattr__(self, "enforced", frozenset(key_system_name(name) for name in self.enforced))
        except ValueError as error:
            raise ValueError(f"enforced: {error}") from None
        if not self.tenant or "/" in self.tenant:
            raise ValueError(f"tenant: {self.tenant!r} is not one path segment")
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port: {self.port} is not a number from 0 to 65535")
        if not (math.isfinite(self.period_s) and self.period_s > 0):
            raise ValueError(f"period_s: {self.period_s} is not a positive number of seconds")
        if not (math.isfinite(self.grace) and self.grace >= 1.0):
            raise ValueError(f"grace: {self.grace} is less than one period")
        if self.limit < 0:
            raise ValueError(f"limit: {self.limit} is negative")
        one_of("clock", self.clock, Literal["system", "manual"])
        one_of("token_rotation", self.token_rotation, Rotation)
        one_of("token_form", self.token_form, TokenForm)
        object.__setattr__(self, "host_names", tuple(self.host_names))
        object.__setattr__(self, "accounts", tuple(self.accounts))
        if self.control_token is not None and not (self.control_token.isascii() and self.control_token.isalnum()):
            raise ValueError("control_token: only ASCII letters and digits are allowed")
        one_of("heartbeat_key", self.heartbeat_key, HeartbeatKey)
        one_of("teardown_reply", self.teardown_reply, TeardownReply)
        one_of("ssm_required", self.ssm_required, SsmRequired)
        one_of("fairplay_reply", self.fairplay_reply, FairPlayReply)
        one_of("fairplay_base64", self.fairplay_base64, Base64Form)
        if self.sessions_url is not None and self.token_form != "jwt":
            raise ValueError("token_form: a head-end that shares its sessions can read only JWTs of other head-ends")
        if self.fairplay_reply == "raw" and "fairplay" in self.enforced:
            raise ValueError("fairplay_reply: a raw CKC cannot carry the session token of enforced mode")

    @property
    def period_ms(self) -> int:
        """The keep-alive period in ms, at least 1."""
        return max(1, round(self.period_s * 1000))

    @property
    def lifetime_ms(self) -> int:
        """How long a session lives without a keep-alive, in ms."""
        return max(1, round(self.period_s * self.grace * 1000))
