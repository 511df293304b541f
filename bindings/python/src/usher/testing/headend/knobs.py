"""Settings that belong to one feature of the head-end; ``HeadEndConfig`` holds one object of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Base64Form = Literal["padded", "unpadded", "urlsafe", "urlsafe-unpadded"]
"""How base64 is written."""

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
        paths = [path.split(".") for path in (self.token_field, self.period_field, self.enforced_field) if path is not None]
        for path in paths:
            if not all(path):
                raise ValueError(f"v2: {'.'.join(path)!r} is not a path of names")
            if sum(other[: len(path)] == path for other in paths) > 1:
                raise ValueError(f"v2: two values stand at {'.'.join(path)!r}")
