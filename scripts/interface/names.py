"""What the constants of the headers are called in Python and C++, where the name does not follow from the C name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headers import Constant, Headers


@dataclass(frozen=True)
class Group:
    """The constants that begin with `prefix`: an enumeration in Python and in C++."""

    prefix: str
    python: str
    cpp: str
    says: str
    """The docstring of the Python class, behind the prefix."""
    is_open: bool = True
    """Python: a newer library may answer a number that is not in it."""
    cpp_says: str = ""
    cpp_names: dict[str, str] = field(default_factory=dict)
    """C++ names that are not the C name in small letters; C++ keeps some words for itself."""
    also: tuple[str, ...] = ()
    """Constants of the group that do not begin with its prefix."""
    cpp_also: dict[str, str] = field(default_factory=dict)
    """C++ values that C has no name for."""

    def members(self, headers: Headers) -> Iterator[tuple[str, Constant]]:
        """Each constant with its name in capitals, without the prefix."""
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
        "what every function returns.",
        also=("USHER_OK",),
        cpp_says="USHER_OK and USHER_E_...",
    ),
    Group(
        "USHER_ORIGIN_",
        "Origin",
        "origin",
        "who answered. Numbers of a server mean different things at different origins.",
    ),
    Group("USHER_OPERATION_", "Operation", "operation", "what the library was doing."),
    Group("USHER_EVENT_", "EventType", "event_type", "what happened."),
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
    Group("USHER_LOG_", "LogLevel", "log_level", "how much the log says.", False, cpp_also={"standard": "0"}),
    Group("USHER_LICENSE_", "LicenseType", "license_type", "a first licence or a renewal."),
    Group("USHER_RENEW_", "RenewType", "renew_type", "how a session is kept alive."),
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
        "how a Widevine licence request is written.",
        False,
        cpp_names=AUTOMATIC,
    ),
    Group(
        "USHER_KEY_SYSTEM_",
        "KeySystem",
        "key_system",
        "DASH ContentProtection identifiers. Wherever one is taken, a plain str does too.",
    ),
    Group("USHER_SUSPEND_", "Suspend", "suspend_rule", "keep-alives while the host is suspended."),
    Group(
        "USHER_HOOK_",
        "Hook",
        "hook",
        "the steps of a licence request that host code may take over.",
        cpp_says="Which step of a licence request the hook takes over.",
        cpp_names={"HEADERS": "http_headers"},
    ),
    Group("USHER_ROUTE_", "Route", "route", "where a resource loader sends the SPC."),
    Group(
        "USHER_CONTENT_ID_",
        "ContentIDRule",
        "content_id_rule",
        "which part of a ``skd:`` URL is the content identifier.",
        cpp_says="Which part of a URL is the content identifier.",
    ),
    Group("USHER_FPS_REQUEST_", "FPSRequest", "fps_request_format", "how an SPC is wrapped."),
    Group("USHER_URLENCODE_", "URLEncode", "spc_urlencode", "what of a form is percent-coded."),
    Group("USHER_FPS_RESPONSE_", "FPSResponse", "fps_response_format", "how a CKC is wrapped.", cpp_names=AUTOMATIC),
]
"""In the order in which they are written."""

APART = ("USHER_VERSION_", "USHER_OFF")
"""Constants that are no enumeration; the writers place them themselves."""


def check(headers: Headers) -> list[str]:
    """Constants that no group takes."""
    taken = {constant.name for group in GROUPS for _, constant in group.members(headers)}
    left = [name for name in headers.constants if name not in taken and not name.startswith(APART)]
    return [f"{name}: no group of scripts/interface/names.py has its prefix; add a group" for name in left]
