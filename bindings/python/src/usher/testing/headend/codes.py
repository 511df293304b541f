"""The table of errors: the error code and HTTP status for each problem.

Public documents list the codes, but do not say when a server sends each code, nor with which HTTP status. So a test may
replace any row of this table (``CodeTable.replacing``). The SSM server and the licence servers use the same numbers
with different meanings, so the table has one column of codes for the SSM server, and one for the licence servers
(source: SSM v1 error codes, licence service error codes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Literal

Family = Literal["ssm", "license"]
"""The kind of server that sends the reply: the session service, or a licence or certificate service."""


class Problem(str, Enum):
    """The problems that a request can have. ``CodeTable`` maps each problem to an error code."""

    HEADER_FORMAT = "header-format"
    HEADER_MISSING = "header-missing"
    TOKEN_MISSING = "token-missing"
    SESSION_TOKEN_MISSING = "session-token-missing"
    TOKEN_MALFORMED = "token-malformed"
    TOKEN_SIGNATURE = "token-signature"
    TOKEN_EXPIRED = "token-expired"
    TOKEN_REPLAYED = "token-replayed"
    TOKEN_REVOKED = "token-revoked"
    TOKEN_KIND = "token-kind"
    KEY_TOKEN = "key-token"
    KEY_TOKEN_MISSING = "key-token-missing"
    DEVICE_UNKNOWN = "device-unknown"
    DEVICE_ACCOUNT = "device-account"
    SEVERAL_CONTENT_TOKENS = "several-content-tokens"
    WRONG_TENANT = "wrong-tenant"
    WRONG_ACCOUNT = "wrong-account"
    SESSION_UNKNOWN = "session-unknown"
    SESSION_OVER = "session-over"
    SESSION_TOKEN_STALE = "session-token-stale"
    LIMIT_REACHED = "limit-reached"
    SESSION_CONTROL_DISABLED = "session-control-disabled"
    BAD_BODY = "bad-body"
    BAD_CHALLENGE = "bad-challenge"
    NO_KEY = "no-key"
    BAD_KEY_ID = "bad-key-id"
    NOT_GRANTED = "not-granted"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    INTERNAL = "internal"
    SSM_UNAVAILABLE = "ssm-unavailable"


class Refusal(Exception):
    """Raised when the head-end refuses a request.

    Args:
        problem: the problem; the code table maps it to a number.
        message: one line for the ``message`` of the error body; if empty, the text in the table.
        status: the HTTP status to use instead of the status in the table.
    """

    def __init__(self, problem: Problem, message: str = "", *, status: int | None = None) -> None:
        super().__init__(message or problem.value)
        self.problem = problem
        self.message = message
        self.status = status


_SSM: dict[Problem, int] = {
    Problem.HEADER_FORMAT: 1000,
    Problem.HEADER_MISSING: 1000,
    Problem.TOKEN_MISSING: 1003,
    Problem.SESSION_TOKEN_MISSING: 1003,
    Problem.TOKEN_MALFORMED: 1006,
    Problem.TOKEN_SIGNATURE: 1006,
    Problem.TOKEN_EXPIRED: 1004,
    Problem.TOKEN_REPLAYED: 1006,
    Problem.TOKEN_REVOKED: 1003,
    Problem.TOKEN_KIND: 1006,
    Problem.KEY_TOKEN: 1006,
    Problem.KEY_TOKEN_MISSING: 1012,
    Problem.DEVICE_UNKNOWN: 3004,
    Problem.DEVICE_ACCOUNT: 1009,
    Problem.SEVERAL_CONTENT_TOKENS: 1000,
    Problem.WRONG_TENANT: 1005,
    Problem.WRONG_ACCOUNT: 1009,
    Problem.SESSION_UNKNOWN: 1006,
    Problem.SESSION_OVER: 1006,
    Problem.SESSION_TOKEN_STALE: 1006,
    Problem.LIMIT_REACHED: 1007,
    Problem.SESSION_CONTROL_DISABLED: 1008,
    Problem.BAD_BODY: 1000,
    Problem.BAD_CHALLENGE: 1011,
    Problem.NO_KEY: 1012,
    Problem.BAD_KEY_ID: 1011,
    Problem.NOT_GRANTED: 1011,
    Problem.UNAUTHORIZED: 1003,
    Problem.FORBIDDEN: 1006,
    Problem.INTERNAL: 4000,
    Problem.SSM_UNAVAILABLE: 4001,
}

_LICENSE: dict[Problem, int] = {
    Problem.HEADER_FORMAT: 1004,
    Problem.HEADER_MISSING: 3003,
    Problem.TOKEN_MISSING: 4001,
    Problem.SESSION_TOKEN_MISSING: 4000,
    Problem.TOKEN_MALFORMED: 3006,
    Problem.TOKEN_SIGNATURE: 3004,
    Problem.TOKEN_EXPIRED: 4005,
    Problem.TOKEN_REPLAYED: 4006,
    Problem.TOKEN_REVOKED: 4000,
    Problem.TOKEN_KIND: 3005,
    Problem.KEY_TOKEN: 3004,
    Problem.KEY_TOKEN_MISSING: 4002,
    Problem.DEVICE_UNKNOWN: 4018,
    Problem.DEVICE_ACCOUNT: 4019,
    Problem.SEVERAL_CONTENT_TOKENS: 4003,
    Problem.WRONG_TENANT: 4009,
    Problem.WRONG_ACCOUNT: 4010,
    Problem.SESSION_UNKNOWN: 1006,
    Problem.SESSION_OVER: 1006,
    Problem.SESSION_TOKEN_STALE: 1006,
    Problem.LIMIT_REACHED: 1007,
    Problem.SESSION_CONTROL_DISABLED: 1008,
    Problem.BAD_BODY: 1001,
    Problem.BAD_CHALLENGE: 2001,
    Problem.NO_KEY: 4011,
    Problem.BAD_KEY_ID: 4014,
    Problem.NOT_GRANTED: 4000,
    Problem.UNAUTHORIZED: 4001,
    Problem.FORBIDDEN: 4000,
    Problem.INTERNAL: 4000,
    Problem.SSM_UNAVAILABLE: 4000,
}

_MESSAGES: dict[Problem, str] = {
    Problem.HEADER_FORMAT: "invalid authorisation header format",
    Problem.HEADER_MISSING: "mandatory header missing",
    Problem.TOKEN_MISSING: "authorisation token missing",
    Problem.SESSION_TOKEN_MISSING: "session token missing",
    Problem.TOKEN_MALFORMED: "token is not a JSON web token",
    Problem.TOKEN_SIGNATURE: "token signature does not verify",
    Problem.TOKEN_EXPIRED: "token has expired",
    Problem.TOKEN_REPLAYED: "token already played",
    Problem.TOKEN_REVOKED: "token is no longer accepted",
    Problem.TOKEN_KIND: "token of the wrong kind",
    Problem.KEY_TOKEN: "content key token cannot be decrypted",
    Problem.KEY_TOKEN_MISSING: "referenced content key token missing",
    Problem.DEVICE_UNKNOWN: "unknown device",
    Problem.DEVICE_ACCOUNT: "device belongs to another account",
    Problem.SEVERAL_CONTENT_TOKENS: "several content authorisation tokens",
    Problem.WRONG_TENANT: "tenant id mismatch",
    Problem.WRONG_ACCOUNT: "session belongs to another account",
    Problem.SESSION_UNKNOWN: "unknown session",
    Problem.SESSION_OVER: "session is over",
    Problem.SESSION_TOKEN_STALE: "session token has been replaced by a newer one",
    Problem.LIMIT_REACHED: "maximum number of active sessions exceeded",
    Problem.SESSION_CONTROL_DISABLED: "session management disabled",
    Problem.BAD_BODY: "invalid request format",
    Problem.BAD_CHALLENGE: "invalid challenge format",
    Problem.NO_KEY: "no key for key id",
    Problem.BAD_KEY_ID: "key id is not valid",
    Problem.NOT_GRANTED: "request not granted",
    Problem.UNAUTHORIZED: "authorisation missing",
    Problem.FORBIDDEN: "authorisation not accepted",
    Problem.INTERNAL: "internal error",
    Problem.SSM_UNAVAILABLE: "SSM not available",
}

_SSM_STATUS: dict[int, int] = {4000: 500, 4001: 503}
_PROBLEM_STATUS: dict[Problem, int] = {Problem.UNAUTHORIZED: 401, Problem.FORBIDDEN: 403}


def _frozen(table: dict[Problem, int]) -> Mapping[Problem, int]:
    return MappingProxyType(table)


@dataclass(frozen=True)
class CodeTable:
    """Error codes and HTTP statuses by problem.

    Attributes:
        ssm: for each problem the ``errorCode`` of the session service.
        license: for each problem the ``errorCode`` of the licence services.
        ssm_status: the HTTP status for an ``errorCode`` of the session service, if it is not ``default_status``.
        license_status: the same for licence codes.
        problem_status: the HTTP status for a problem; it takes precedence over the status of the problem's code.
        default_status: HTTP status of every other refusal (400: real servers send it with 1007).
        messages: for each problem the text of ``message``.
    """

    ssm: Mapping[Problem, int] = field(default_factory=lambda: _frozen(_SSM))
    license: Mapping[Problem, int] = field(default_factory=lambda: _frozen(_LICENSE))
    ssm_status: Mapping[int, int] = field(default_factory=lambda: MappingProxyType(_SSM_STATUS))
    license_status: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    problem_status: Mapping[Problem, int] = field(default_factory=lambda: _frozen(_PROBLEM_STATUS))
    default_status: int = 400
    messages: Mapping[Problem, str] = field(default_factory=lambda: MappingProxyType(_MESSAGES))

    def code(self, family: Family, problem: Problem) -> int:
        """Returns the ``errorCode`` of a problem, as a server of this family sends it."""
        return (self.ssm if family == "ssm" else self.license)[problem]

    def status(self, family: Family, problem: Problem) -> int:
        """Returns the HTTP status of a problem."""
        by_code = self.ssm_status if family == "ssm" else self.license_status
        return self.problem_status.get(problem, by_code.get(self.code(family, problem), self.default_status))

    def replacing(
        self,
        *,
        ssm: Mapping[Problem, int] | None = None,
        license: Mapping[Problem, int] | None = None,
        ssm_status: Mapping[int, int] | None = None,
        license_status: Mapping[int, int] | None = None,
        problem_status: Mapping[Problem, int] | None = None,
    ) -> CodeTable:
        """Returns a copy of this table with some rows replaced."""
        return replace(
            self,
            ssm={**self.ssm, **(ssm or {})},
            license={**self.license, **(license or {})},
            ssm_status={**self.ssm_status, **(ssm_status or {})},
            license_status={**self.license_status, **(license_status or {})},
            problem_status={**self.problem_status, **(problem_status or {})},
        )
