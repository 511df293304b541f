"""The enumerations that the headers' constants form in Python and C++, and the names that differ from the C names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headers import Constant, Headers


@dataclass(frozen=True)
class Group:
    """The constants that begin with `prefix`. They form an enumeration in Python and one in C++."""

    prefix: str
    python: str
    cpp: str
    says: str
    """The docstring of the Python class; the generator puts the prefix before it."""
    is_open: bool = True
    """Whether the Python class accepts unknown numbers, which a newer library may return."""
    cpp_says: str = ""
    cpp_names: dict[str, str] = field(default_factory=dict)
    """The C++ names of constants whose C name, in lower case, is a reserved word of C++."""
    also: tuple[str, ...] = ()
    """Constants of the group that do not begin with its prefix."""
    cpp_also: dict[str, str] = field(default_factory=dict)
    """Values that have a name in C++, but no constant in C."""

    def members(self, headers: Headers) -> Iterator[tuple[str, Constant]]:
        """Returns each constant with its name in upper case, without the prefix."""
        for constant in headers.constants.values():
            if constant.name in self.also:
                yield constant.name.removeprefix("USHER_"), constant
            elif constant.name.startswith(self.prefix):
                yield constant.name.removeprefix(self.prefix), constant

    def cpp_name(self, member: str) -> str:
        return self.cpp_names.get(member, member.lower())


AUTOMATIC = {"AUTO": "automatic"}

GROUPS = [
    Group(
        "USHER_E_",
        "Status",
        "status",
        "the result of a call.",
        also=("USHER_OK",),
        cpp_says="USHER_OK and USHER_E_...",
    ),
    Group(
        "USHER_ORIGIN_",
        "Origin",
        "origin",
        "the server that replied. The same service code means different things at different origins.",
    ),
    Group("USHER_OPERATION_", "Operation", "operation", "the operation that an error belongs to."),
    Group("USHER_TLS_FAULT_", "TLSFault", "tls_fault", "why there was no secure connection."),
    Group("USHER_EVENT_", "EventType", "event_type", "what happened."),
    Group("USHER_NOTICE_", "NoticeType", "notice_type", "what a viewer must know."),
    Group("USHER_SESSION_", "SessionState", "session_state", "the state of a playback's session."),
    Group(
        "USHER_CLOSE_",
        "CloseMode",
        "close_mode",
        "what closing does to the session.",
        False,
        cpp_names={"DEFAULT": "standard"},
    ),
    Group("USHER_CLOCK_", "Clock", "clock_kind", "how time passes in a context.", False),
    Group("USHER_CALLBACKS_", "Callbacks", "callback_mode", "which threads run the callbacks of a context.", False),
    Group(
        "USHER_GUARDIAN_",
        "Guardian",
        "guardian_mode",
        "whether a context has a guardian.",
        False,
        cpp_names={"OFF": "none"},
    ),
    Group("USHER_LOG_", "LogLevel", "log_level", "how detailed the log is.", False, cpp_also={"standard": "0"}),
    Group("USHER_LICENSE_", "LicenseType", "license_type", "a first licence or a renewal."),
    Group(
        "USHER_RENEW_",
        "RenewType",
        "renew_type",
        "how a session is kept alive.",
        cpp_names={"DEFAULT": "standard"},
    ),
    Group(
        "USHER_APPEND_",
        "AppendVersion",
        "append_version",
        "whether ``ssm_api_version`` is added to ``ssm_url``.",
        False,
        cpp_names=AUTOMATIC,
    ),
    Group(
        "USHER_HEARTBEAT_MISSING_",
        "HeartbeatMissing",
        "heartbeat_missing",
        "what a set-up reply without a usable period means.",
        False,
    ),
    Group("USHER_HEARTBEAT_START_", "HeartbeatStart", "heartbeat_start", "when the first period begins.", False),
    Group("USHER_KEEP_ALIVE_", "KeepAlive", "keep_alive", "how the session is kept alive.", False, cpp_names=AUTOMATIC),
    Group("USHER_RESETUP_", "Resetup", "resetup", "what a further licence request does to the session.", False),
    Group(
        "USHER_WIRE_",
        "WireFormat",
        "wire_format",
        "the form of a Widevine licence request.",
        False,
        cpp_names=AUTOMATIC,
    ),
    Group(
        "USHER_KEY_SYSTEM_",
        "KeySystem",
        "key_system",
        "DASH ContentProtection identifiers. Functions that take one also take a plain str.",
    ),
    Group("USHER_SUSPEND_", "Suspend", "suspend_rule", "whether keep-alives continue while the host is suspended."),
    Group(
        "USHER_HOOK_",
        "Hook",
        "hook",
        "the steps of a licence request that a hook may take over.",
        cpp_says="Which step of a licence request the hook takes over.",
        cpp_names={"HEADERS": "http_headers"},
    ),
    Group(
        "USHER_TOKEN_",
        "TokenKind",
        "token_kind",
        "which token the library asks an entitlement server for.",
        False,
    ),
    Group("USHER_ROUTE_", "Route", "route", "where a resource loader sends the SPC."),
    Group("USHER_PART_", "Part", "part", "which part of the content a protection is about."),
    Group(
        "USHER_CONTENT_ID_",
        "ContentIDRule",
        "content_id_rule",
        "which part of a ``skd:`` URL is the content identifier.",
        cpp_says="Which part of a URL is the content identifier.",
    ),
    Group("USHER_FPS_REQUEST_", "FPSRequest", "fps_request_format", "the format of the request that carries the SPC."),
    Group("USHER_URLENCODE_", "URLEncode", "spc_urlencode", "which parts of a form are percent-encoded."),
    Group(
        "USHER_FPS_RESPONSE_",
        "FPSResponse",
        "fps_response_format",
        "the format of the reply that carries the CKC.",
        cpp_names=AUTOMATIC,
    ),
]
"""The groups in the order in which the generator writes them."""

APART = ("USHER_VERSION_", "USHER_OFF")
"""Prefixes of constants that belong to no enumeration; the writers treat them separately."""


def check(headers: Headers) -> list[str]:
    """Returns an error for each constant that belongs to no group."""
    taken = {constant.name for group in GROUPS for _, constant in group.members(headers)}
    left = [name for name in headers.constants if name not in taken and not name.startswith(APART)]
    return [f"{name}: no group of scripts/interface/names.py has its prefix; add a group" for name in left]
