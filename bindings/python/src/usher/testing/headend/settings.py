# Generated from config.py by scripts/generate. Change config.py, then run `make generate`.
"""The settings of a head-end as keywords of ``HeadEnd()``, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from .codes import CodeTable
    from .config import AnyKeySystem, FairPlayReply, HeartbeatKey, Rotation, SsmRequired, TeardownReply, TokenForm
    from .knobs import V2, Base64Form, Certificate, ExpressPlay, Fps, Sees


class HeadEndSettings(TypedDict, total=False):
    """The fields of ``HeadEndConfig``, which describes them."""

    tenant: str
    host: str
    host_names: tuple[str, ...]
    port: int
    tls: bool
    manual_start_ms: int
    hmac_key: bytes
    key_id: str
    accounts: tuple[str, ...]
    content_id: str
    limit: int
    period_s: float
    grace: float
    token_rotation: Rotation
    token_form: TokenForm
    session_token_lifetime_s: int
    heartbeat_key: HeartbeatKey
    teardown_reply: TeardownReply
    auth_headers: tuple[str, ...]
    strict_header: bool
    ssm_required: SsmRequired
    require_session_control: bool
    anti_replay: bool
    missing_token_status: int | None
    revoked_token_status: int
    enforced: frozenset[AnyKeySystem]
    fairplay_reply: FairPlayReply
    fairplay_base64: Base64Form
    v2: V2
    certificate: Certificate
    fps: Fps
    expressplay: ExpressPlay
    sees: Sees
    keys: Mapping[bytes, bytes]
    codes: CodeTable
    fault_seed: int
    beat_tolerance_ms: int
    control: bool
    control_token: str | None
    journal_tokens: bool
    journal_limit: int | None
    max_body_bytes: int
    sessions_url: str | None
    reuse_port: bool
