"""Settings that belong to one feature of the head-end; ``HeadEndConfig`` holds one object of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Base64Form = Literal["padded", "unpadded", "urlsafe", "urlsafe-unpadded"]
"""How base64 is written."""

CertificateForm = Literal["der", "base64", "pem", "json", "empty"]
"""How the FairPlay application certificate is served; ``empty`` is a reply of no bytes."""

RequestForm = Literal["raw", "form", "form-plain", "form-whole", "base64", "json"]
"""How a key request encodes the SPC: its bytes; ``spc=`` and base64, escaped, not escaped or with the
``=`` escaped as well; base64 text; JSON."""

ReplyForm = Literal["raw", "json", "xml", "base64"]
"""How the reply encodes the CKC: its bytes, JSON, ``<ckc>base64</ckc>`` or base64 text."""

REQUEST_FORMS: tuple[RequestForm, ...] = get_args(RequestForm)

ExpressPlayErrors = Literal["html", "json", "json-short", "json-error"]
"""How ExpressPlay tells an error: a web page, or JSON with ``errorCode`` and ``errorMessage``, ``code`` and
``message``, ``error`` and ``message``."""

MessageId = Literal["same", "wrong", "missing"]
"""The ``messageID`` of an entitlement reply: the request's, as it must be, or not."""

Presence = Literal["optional", "required"]


def one_of(name: str, value: str, choices: object) -> None:
    """Checks a setting against the values of a ``Literal``.

    Raises:
        ValueError: it is none of them.
    """
    if value not in get_args(choices):
        raise ValueError(f"{name}: unknown value {value!r}; known are {', '.join(map(str, get_args(choices)))}")


@dataclass(frozen=True, kw_only=True)
class V2:
    """What a licence reply of SSP V2 says about the session it has created, and how.

    The names of public material are thin, so all of them are settings (source: SSM v2, inferred wire
    form). A name with dots is a path: ``session.token`` is ``{"session": {"token": …}}``.

    Attributes:
        token_field: where the session token stands in the reply, None for nowhere.
        token_header: a response header that carries it (too), None for none.
        period_field: where the keep-alive period in s stands, None for nowhere.
        enforced_field: where the flag of DRM-enforced mode stands, None for nowhere.
        tenant: whether a licence request needs ``nv-tenant-id``.
    """

    token_field: str | None = "sessionToken"
    token_header: str | None = None
    period_field: str | None = "heartbeat"
    enforced_field: str | None = "sessionDrmEnforced"
    tenant: Presence = "optional"

    def __post_init__(self) -> None:
        one_of("v2.tenant", self.tenant, Presence)
        paths = [
            path.split(".") for path in (self.token_field, self.period_field, self.enforced_field) if path is not None
        ]
        for path in paths:
            if not all(path):
                raise ValueError(f"v2: {'.'.join(path)!r} is not a path of names")
            if sum(other[: len(path)] == path for other in paths) > 1:
                raise ValueError(f"v2: two values stand at {'.'.join(path)!r}")


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How the FairPlay application certificate is served, by SSP and by the key server.

    Attributes:
        form: its encoding.
        field: the member that holds it in JSON, as base64.
        base64: how that base64, or that of ``base64``, is written.
        size_bytes: zeros fill it up to this size, for a certificate that is too large.
    """

    form: CertificateForm = "der"
    field: str = "certificate"
    base64: Base64Form = "padded"
    size_bytes: int = 0

    def __post_init__(self) -> None:
        one_of("certificate.form", self.form, CertificateForm)
        one_of("certificate.base64", self.base64, Base64Form)


@dataclass(frozen=True, kw_only=True)
class Fps:
    """The generic FairPlay key server.

    Attributes:
        requests: the encodings taken; others are refused.
        spc_field: the field of the SPC in a form or in JSON.
        asset_field: a field that must name the same content as the SPC, None for none.
        authorization: the value the ``Authorization`` header must have, None for any or none.
        reply: how the CKC is encoded.
        reply_path: where it stands in JSON; dots make a path.
        base64: how its base64 is written.
    """

    requests: frozenset[RequestForm] = frozenset(REQUEST_FORMS)
    spc_field: str = "spc"
    asset_field: str | None = None
    authorization: str | None = None
    reply: ReplyForm = "raw"
    reply_path: str = "ckc"
    base64: Base64Form = "padded"

    def __post_init__(self) -> None:
        object.__setattr__(self, "requests", frozenset(self.requests))
        for form in self.requests:
            one_of("fps.requests", form, RequestForm)
        one_of("fps.reply", self.reply, ReplyForm)
        one_of("fps.base64", self.base64, Base64Form)
        if not all(self.reply_path.split(".")):
            raise ValueError(f"fps.reply_path: {self.reply_path!r} is not a path of names")


@dataclass(frozen=True, kw_only=True)
class ExpressPlay:
    """The ExpressPlay licence service.

    Attributes:
        errors: how it tells an error; its layout in JSON is not settled in public material.
        lifetime_s: how long a token is good for.
        one_shot: a token is good for one licence.
    """

    errors: ExpressPlayErrors = "html"
    lifetime_s: float = 30 * 86_400
    one_shot: bool = False

    def __post_init__(self) -> None:
        one_of("expressplay.errors", self.errors, ExpressPlayErrors)


@dataclass(frozen=True, kw_only=True)
class Sees:
    """The entitlement server.

    Attributes:
        message_id: what it answers as ``messageID``.
        denied_status: HTTP status of a denial.
        bound_only: entitles only to licences bound to a device.
        authorization: the value the ``Authorization`` header must have, None for any or none.
        rights_url: what its token URLs begin with, None for this head-end's own service.
    """

    message_id: MessageId = "same"
    denied_status: int = 200
    bound_only: bool = False
    authorization: str | None = None
    rights_url: str | None = None

    def __post_init__(self) -> None:
        one_of("sees.message_id", self.message_id, MessageId)
