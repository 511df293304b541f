"""One class for each feature of the head-end that has several settings. ``HeadEndConfig`` has one object of each
class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

Base64Form = Literal["padded", "unpadded", "urlsafe", "urlsafe-unpadded"]
"""The forms of base64."""

CertificateForm = Literal["der", "base64", "pem", "json", "empty"]
"""The forms in which the head-end sends the FairPlay application certificate; with ``empty`` the reply has no body."""

RequestForm = Literal["raw", "form", "form-plain", "form-whole", "base64", "json"]
"""The encodings of the SPC in a key request: raw bytes, a form, base64 text, or JSON. A form is ``spc=`` and base64:
with ``form`` the base64 is percent-encoded, with ``form-plain`` nothing is percent-encoded, and with ``form-whole``
the whole form is percent-encoded, also the ``=`` after ``spc``."""

ReplyForm = Literal["raw", "json", "xml", "base64"]
"""The encodings of the CKC in a reply: raw bytes, JSON, ``<ckc>base64</ckc>`` or base64 text."""

REQUEST_FORMS: tuple[RequestForm, ...] = get_args(RequestForm)

ExpressPlayErrors = Literal["html", "json", "json-short", "json-error"]
"""The forms of ExpressPlay's errors: a web page, or JSON in one of three forms: with ``errorCode`` and
``errorMessage``, with ``code`` and ``message``, or with ``error`` and ``message``."""

MessageId = Literal["same", "wrong", "missing"]
"""The ``messageID`` of an entitlement reply: the same as in the request (as the protocol requires), another one, or no
``messageID``."""

Presence = Literal["optional", "required"]


def one_of(name: str, value: str, choices: object) -> None:
    """Checks a setting against the values of a ``Literal``.

    Raises:
        ValueError: the setting has another value.
    """
    if value not in get_args(choices):
        raise ValueError(f"{name}: unknown value {value!r}; known are {', '.join(map(str, get_args(choices)))}")


@dataclass(frozen=True, kw_only=True)
class V2:
    """How a licence reply of SSP V2 describes the session that the request opened.

    Public documents say little about the names of the fields, so all these names are settings (source: SSM v2, inferred
    wire form). A name with dots is a path: ``session.token`` is ``{"session": {"token": …}}``.

    Attributes:
        token_field: path of the session token in the reply; None: the body has no session token.
        token_header: the response header with the session token; None: no header.
        period_field: path of the keep-alive period in s; None: the reply has no period.
        enforced_field: path of the flag that switches DRM-enforced mode on; None: the reply has no such flag.
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
    """How SSP and the key server send the FairPlay application certificate.

    Attributes:
        form: the encoding of the certificate.
        field: with JSON, the member that has the certificate as base64.
        base64: the form of the base64 if ``form`` is ``json`` or ``base64``.
        size_bytes: the head-end adds zeros to the certificate up to this size, so that a test can make a certificate
            that is too large.
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
        requests: the accepted encodings.
        spc_field: the field of the SPC in a form or in JSON.
        asset_field: a field that must name the same content as the SPC; None: no such field.
        authorization: the value the ``Authorization`` header must have, None: no check.
        reply: how the reply encodes the CKC.
        reply_path: the path of the CKC in a JSON reply, with dots.
        base64: the form of the CKC's base64.
    """

    requests: frozenset[RequestForm] = frozenset(REQUEST_FORMS)
    spc_field: str = "spc"
    asset_field: str | None = None
    authorization: str | None = field(default=None, repr=False)
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
        errors: the form of its errors; public documents do not define the JSON form.
        lifetime_s: how long a token is valid.
        one_shot: whether a token is valid for only one licence.
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
        message_id: the ``messageID`` of its replies.
        denied_status: HTTP status of a denial.
        bound_only: whether the server refuses entitlements to licences that are not bound to a device.
        authorization: the value the ``Authorization`` header must have, None: no check.
        rights_url: the beginning of the token URLs in its replies; None: the URL of the head-end's ExpressPlay service.
    """

    message_id: MessageId = "same"
    denied_status: int = 200
    bound_only: bool = False
    authorization: str | None = field(default=None, repr=False)
    rights_url: str | None = None

    def __post_init__(self) -> None:
        one_of("sees.message_id", self.message_id, MessageId)
