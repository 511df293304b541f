# Generated from include/usher/*.h by scripts/generate. Change the headers, then run `make generate`.
"""The constants of the headers as enumerations."""

from __future__ import annotations

from enum import Enum, IntEnum


class OpenIntEnum(IntEnum):
    """An IntEnum that accepts unknown numbers, because a newer library may return numbers that it does not list."""

    @classmethod
    def _missing_(cls, value: object) -> OpenIntEnum | None:
        if not isinstance(value, int):
            return None
        unknown = int.__new__(cls, value)
        unknown._name_ = f"UNKNOWN_{value}"
        unknown._value_ = value
        return unknown


class Status(OpenIntEnum):
    """USHER_OK and USHER_E_...: what every function returns."""

    OK = 0
    INVALID_ARGUMENT = -1
    INVALID_HANDLE = -2
    CLOSED = -3
    REPLACED = -4
    NO_DELEGATE = -5
    TIMEOUT = -6
    WOULD_DEADLOCK = -7
    FORKED = -8
    SYSTEM = -9
    CALLBACK = -10
    INVALID_COMPLETION = -11
    STATE = -12
    TRANSPORT = -20
    TLS = -21
    HTTP = -22
    REFUSED = -23
    LIMIT = -24
    PROTOCOL = -25
    TOO_LARGE = -26
    NO_TOKEN = -27
    REDIRECT = -28
    SESSION = -29
    RENEWAL_MISSED = -30
    DECLINED = -31
    FULL = -32
    NOT_ALLOWED = -33


class Origin(OpenIntEnum):
    """USHER_ORIGIN_...: the server that replied. The same service code means different things at different origins."""

    LOCAL = 0
    SSM = 1
    LICENSE = 2
    CERTIFICATE = 3
    ENTITLEMENT = 4


class Operation(OpenIntEnum):
    """USHER_OPERATION_...: the operation that an error belongs to."""

    NONE = 0
    SETUP = 1
    HEARTBEAT = 2
    TEARDOWN = 3
    LICENSE = 4
    RENEWAL = 5
    CERTIFICATE = 6
    ENTITLEMENT = 7


class TLSFault(OpenIntEnum):
    """USHER_TLS_FAULT_...: why there was no secure connection."""

    NONE = 0
    AUTHORITY = 1
    EXPIRED = 2
    NOT_YET_VALID = 3
    NAME = 4
    PIN = 5
    CLIENT_CERTIFICATE = 6


class EventType(OpenIntEnum):
    """USHER_EVENT_...: what happened."""

    SESSION_STARTED = 1
    SETUP_ERROR = 2
    HEARTBEAT_ERROR = 3
    TEARDOWN_ERROR = 4
    KEPT_ALIVE = 5
    RECOVERED = 6
    SESSION_DOUBTFUL = 7
    RENEWAL_DUE = 8
    SESSION_ENDED = 9
    LICENSE = 10
    LICENSE_ERROR = 11
    PLAYBACK_CLOSED = 12
    NO_SESSION = 13
    DEVICE_REGISTERED = 14
    CONTEXT_CLOSED = 15


class SessionState(OpenIntEnum):
    """USHER_SESSION_...: the state of a playback's session."""

    NONE = 0
    PENDING = 1
    ACTIVE = 2
    DOUBTFUL = 3
    FAILED = 4
    ENDED = 5


class CloseMode(IntEnum):
    """USHER_CLOSE_...: what closing does to the session."""

    DEFAULT = 0
    TEARDOWN = 1
    LEAVE = 2


class Clock(IntEnum):
    """USHER_CLOCK_...: how time passes in a context."""

    SYSTEM = 0
    MANUAL = 1


class Callbacks(IntEnum):
    """USHER_CALLBACKS_...: which threads run the callbacks of a context."""

    THREADED = 0
    PUMPED = 1


class LogLevel(IntEnum):
    """USHER_LOG_...: how detailed the log is."""

    ERROR = 1
    WARNING = 2
    INFO = 3
    DEBUG = 4


class LicenseType(OpenIntEnum):
    """USHER_LICENSE_...: a first licence or a renewal."""

    REQUEST = 0
    RENEWAL = 1


class RenewType(OpenIntEnum):
    """USHER_RENEW_...: how a session is kept alive."""

    DEFAULT = 0
    HEARTBEAT = 1
    ENFORCED = 2
    CDM = 3
    NONE = 4


class AppendVersion(IntEnum):
    """USHER_APPEND_...: whether ``ssm_api_version`` is added to ``ssm_url``."""

    AUTO = 0
    ALWAYS = 1
    NEVER = 2


class HeartbeatMissing(IntEnum):
    """USHER_HEARTBEAT_MISSING_...: what a set-up reply without a usable period means."""

    ERROR = 0
    NO_TIMER = 1


class HeartbeatStart(IntEnum):
    """USHER_HEARTBEAT_START_...: when the first period begins."""

    SETUP = 0
    LICENSE = 1


class KeepAlive(IntEnum):
    """USHER_KEEP_ALIVE_...: how the session is kept alive."""

    AUTO = 0
    HEARTBEAT = 1
    RENEWAL = 2


class Resetup(IntEnum):
    """USHER_RESETUP_...: what a further licence request does to the session."""

    CALLBACK_ONLY = 0
    ALWAYS = 1
    NEVER = 2


class WireFormat(IntEnum):
    """USHER_WIRE_...: the form of a Widevine licence request."""

    AUTO = 0
    RAW = 1


class KeySystem(str, Enum):
    """USHER_KEY_SYSTEM_...: DASH ContentProtection identifiers. Functions that take one also take a plain str."""

    FAIRPLAY = "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2"
    WIDEVINE = "EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"
    PLAYREADY = "9A04F079-9840-4286-AB92-E65BE0885F95"
    CLEARKEY = "1077EFEC-C0B2-4D02-ACE3-3C1E52E2FB4B"


class Suspend(OpenIntEnum):
    """USHER_SUSPEND_...: whether keep-alives continue while the host is suspended."""

    KEEP = 0
    PAUSE = 1


class Hook(OpenIntEnum):
    """USHER_HOOK_...: the steps of a licence request that a hook may take over."""

    CONTENT_ID = 1
    CERTIFICATE = 2
    HEADERS = 3
    LICENSE_URL = 4
    LICENSE_BODY = 5
    LICENSE = 6


class TokenKind(IntEnum):
    """USHER_TOKEN_...: which token the library asks an entitlement server for."""

    BY_LOADER = 0
    TIME_BASED = 1
    REGISTRATION = 2
    DEVICE_BOUND = 3


class Route(OpenIntEnum):
    """USHER_ROUTE_...: where a resource loader sends the SPC."""

    KEY_SERVER = 0
    ENTITLEMENT = 1
    TOKEN_URL = 2


class ContentIDRule(OpenIntEnum):
    """USHER_CONTENT_ID_...: which part of a ``skd:`` URL is the content identifier."""

    DECODED_JSON = 0
    DECODED_BASE64 = 1
    HOST = 2
    AFTER_SCHEME = 3
    AFTER_SEMICOLON = 4
    WHOLE_URL = 5
    SSP = 6


class FPSRequest(OpenIntEnum):
    """USHER_FPS_REQUEST_...: the format of the request that carries the SPC."""

    RAW = 0
    FORM = 1
    BASE64 = 2
    JSON = 3


class URLEncode(OpenIntEnum):
    """USHER_URLENCODE_...: which parts of a form are percent-encoded."""

    VALUE = 0
    NONE = 1
    WHOLE = 2


class FPSResponse(OpenIntEnum):
    """USHER_FPS_RESPONSE_...: the format of the reply that carries the CKC."""

    AUTO = 0
    RAW = 1
    BASE64 = 2
    ELEMENT = 3
    JSON = 4
