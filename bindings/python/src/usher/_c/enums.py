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
    """The result of a call. In C: USHER_OK and USHER_E_*."""

    OK = 0
    """Success."""
    INVALID_ARGUMENT = -1
    """An argument is missing, malformed or out of range: NULL, empty, not a URL, text with CR, LF or NUL in it, or a
    struct_size that no release has."""
    INVALID_HANDLE = -2
    """The handle was freed, its context was freed, it is of another kind, the library never returned it, or it is NULL
    (except where NULL is a no-op)."""
    CLOSED = -3
    """The context, player or playback was closed before the operation could finish."""
    REPLACED = -4
    """The host started a newer item on the same player before this item began."""
    NO_DELEGATE = -5
    """Neither the playback nor the context has a licence delegate."""
    TIMEOUT = -6
    """The time limit passed. The operation may still be running."""
    WOULD_DEADLOCK = -7
    """The call would wait for something that only the calling thread can do."""
    FORKED = -8
    """The calling process is a child of fork(), and its parent had made a context before."""
    SYSTEM = -9
    """The system had no memory, thread or file descriptor for the operation. If it has no memory for the library
    itself, the process ends."""
    CALLBACK = -10
    """A callback of the host failed or answered with an error."""
    INVALID_COMPLETION = -11
    """The question was answered before, its deadline has passed, or the completion id is unknown."""
    STATE = -12
    """The operation is not possible in the present state, e.g. Context.advance() on the system clock."""
    TRANSPORT = -20
    """No HTTP reply: connection refused or reset, host unreachable, name not resolved, or proxy failed."""
    TLS = -21
    """No HTTP reply: the TLS handshake failed, or the library did not accept the server's certificate."""
    HTTP = -22
    """The server replied with an HTTP status that means a failure, and the reply has no service code."""
    REFUSED = -23
    """The server refused the request with an error code: see ``UsherError.service_code``."""
    LIMIT = -24
    """The account already plays as many streams as it may (the SSM answered code 1007)."""
    PROTOCOL = -25
    """The reply cannot be understood: it is not JSON, or a field is missing or has the wrong type. From read_mp4() and
    License.clear_keys(): the file or the licence is malformed."""
    TOO_LARGE = -26
    """The body of the reply is larger than `max_response_bytes`, or the bytes around it (header lines, sizes of chunks,
    trailers) are too many. From the functions that read content and Clear Key licences: the buffer is too small, or the
    file has too many boxes."""
    NO_TOKEN = -27
    """The playback has no content token: the host set none, and the token callback did not answer with a token in time
    (5022 in the SDKs)."""
    REDIRECT = -28
    """The server replied with a redirect; `message` has the URL of the redirect, without the query. The library follows
    no redirects, so that a token goes only to the configured server."""
    SESSION = -29
    """The session is over: the SSM ended it, it expired, or the library could not keep it alive. The library did not
    send the licence request."""
    RENEWAL_MISSED = -30
    """A licence renewal was due, and a whole period has passed without it."""
    DECLINED = -31
    """A hook asked not to send the request, or no resource loader is registered for the URL's scheme."""
    FULL = -32
    """The token map is full, and playbacks hold every token in it."""
    NOT_ALLOWED = -33
    """A URL that came from content or from an entitlement server has a host that is not on the allow-list."""


class Origin(OpenIntEnum):
    """The server that replied. The same service code means different things at different origins. In C:
    USHER_ORIGIN_*."""

    LOCAL = 0
    """The library itself or the host. This is also the origin if a callback of a customer SSM delegate is missing,
    fails or does not answer in time. If such a callback answers that a server failed, the origin is this server."""
    SSM = 1
    """The Secure Session Manager."""
    LICENSE = 2
    """The licence server."""
    CERTIFICATE = 3
    """The certificate server."""
    ENTITLEMENT = 4
    """The entitlement server."""


class Operation(OpenIntEnum):
    """The operation that an error belongs to. In C: USHER_OPERATION_*."""

    NONE = 0
    """No particular operation."""
    SETUP = 1
    """Session set-up."""
    HEARTBEAT = 2
    """A heartbeat."""
    TEARDOWN = 3
    """Session teardown."""
    LICENSE = 4
    """A licence request that is not a renewal."""
    RENEWAL = 5
    """A licence renewal that the host requested, or that the library requested by itself."""
    CERTIFICATE = 6
    """A certificate request."""
    ENTITLEMENT = 7
    """A request to an entitlement server."""


class TLSFault(OpenIntEnum):
    """Why there was no secure connection. In C: USHER_TLS_FAULT_*."""

    NONE = 0
    """The error has another status than Status.TLS, or another reason than the following."""
    AUTHORITY = 1
    """The server's certificate is not from an authority that the context trusts."""
    EXPIRED = 2
    """The server's certificate has expired, by the clock of this machine."""
    NOT_YET_VALID = 3
    """The server's certificate is not valid yet, by the clock of this machine."""
    NAME = 4
    """The server's certificate is for another host name."""
    PIN = 5
    """The server's public key is not `pinned_public_key`."""
    CLIENT_CERTIFICATE = 6
    """The server asks for a client certificate, or refuses the one of `client_certificate_file`. A server with TLS 1.2
    often does not report this; then the fault is NONE."""


class EventType(OpenIntEnum):
    """What happened. In C: USHER_EVENT_*."""

    SESSION_STARTED = 1
    """The library has set the session up; `period_ms` is its keep-alive period (0: none)."""
    SETUP_ERROR = 2
    """Set-up failed: the playback gets no licence and must stop (OTVSSMSetupErrorNotification)."""
    HEARTBEAT_ERROR = 3
    """The library could not keep the session alive (OTVSSMHeartbeatErrorNotification). Stop playback; to continue,
    start the same item again. The library reports each outage once."""
    TEARDOWN_ERROR = 4
    """Teardown failed: the head-end may hold the slot until the session expires (OTVSSMTeardownErrorNotification).
    `must_stop` is 0, because the playback has stopped already."""
    KEPT_ALIVE = 5
    """The server accepted a heartbeat, or a renewal that keeps the session alive. With customer SSM: the heartbeat
    callback or the renewal has succeeded. If there is no heartbeat callback, the library does not report this event for
    heartbeats."""
    RECOVERED = 6
    """The outage that HEARTBEAT_ERROR reported is over: the session is alive."""
    SESSION_DOUBTFUL = 7
    """A keep-alive is overdue, e.g. after the machine slept: the session may have ended. KEPT_ALIVE or HEARTBEAT_ERROR
    follows."""
    RENEWAL_DUE = 8
    """A renewal is due and the playback has no payload callback: call Playback.request_license() with
    LicenseType.RENEWAL. With customer SSM the library does not report this event."""
    SESSION_ENDED = 9
    """The library no longer holds the session: it tore the session down, or left it to expire (`left` = 1), or the
    server had ended it. If the teardown failed, TEARDOWN_ERROR comes first. With customer SSM and no teardown callback,
    `left` is 1, because the session is still active at your servers. If you closed the playback during set-up, this
    event comes without an earlier SESSION_STARTED."""
    LICENSE = 10
    """A licence arrived: the first one, a further one, or a renewal."""
    LICENSE_ERROR = 11
    """A licence request failed or could not be sent. The library does not report this event for requests that a close
    or a zap ended."""
    PLAYBACK_CLOSED = 12
    """The playback is closed, and the teardown with its retries has ended. No event of the playback follows, unless you
    later tear down a session that was left to expire (see Playback.close()). `error.status` is Status.OK, or
    Status.REPLACED if the player got a newer item before this one began. `error.orphan_possible` is 1 if the head-end
    may hold a session whose token never reached the library. In threaded mode Playback.wait_closed() returns after the
    observers have received this event; Context.close() waits for the observers at most one second."""
    NO_SESSION = 13
    """SSP V2: the licence reply had no session token. Playback continues without a session: the library sends no
    keep-alives and no teardown. The library reports this event once per playback. If the reply to a later licence
    request has a session token, SESSION_STARTED follows."""
    DEVICE_REGISTERED = 14
    """A resource loader has registered the device: the licence server accepted a token that registers the device. Store
    this fact, and set `device_registered` of ``LoaderOptions`` when the program starts again."""
    CONTEXT_CLOSED = 15
    """The close that Context.begin_close() began has ended. `error.status` is Status.OK if all playbacks are closed, or
    Status.TIMEOUT if the time limit has passed; Context.close() then closes the playbacks that are still open. The
    event belongs to no playback. After this event, observers on other threads may still receive events of playbacks."""
    WAITING_FOR_SLOT = 16
    """The server refused set-up because the account has too many sessions, and the library repeats the set-up (option
    `slot_wait_ms` of the delegate). `error` describes the refusal, with `must_stop` = 0. SESSION_STARTED or SETUP_ERROR
    follows, unless you close the playback before."""
    RECOVERED_SLOT = 17
    """A slot that was lost is free again (`error.status` is Status.OK), or could not be given back (`error` says why
    the teardown failed). The event belongs to no playback. In the first case a process died while it held a session,
    and the library has tried to tear this session down with the record in the journal (option `journal_file` of the
    context). `error.orphan_possible` is 1 if the server does not know the recorded session token: the session has ended
    already, or the process died before it recorded a newer token. The library begins these teardowns when the context
    gets its first observer, or its first playback. In the second case a teardown of this context got no answer
    (TEARDOWN_ERROR), and the library has sent it again, with success. The library sends it before the next set-up at
    the same server, and when the network changes, until the lease of the session must have ended. If no such teardown
    succeeds, there is no event."""
    JOURNAL_ERROR = 18
    """The library cannot use the journal, or a part of it: `error.message` says why. The context works without the
    journal, or without that part: if the process dies, the slots may stay taken until the sessions expire. The event
    belongs to no playback. The library reports what it found at the start when the context gets its first observer, or
    its first playback."""


class NoticeType(OpenIntEnum):
    """What a viewer must know. In C: USHER_NOTICE_*."""

    READY = 1
    """The item may play. Either its first licence has arrived; or it had its licence, waited for a slot, and the
    library has set up its new session."""
    WAITING = 2
    """Too many devices play on the account. The library repeats the set-up (option `slot_wait_ms`). READY, REFUSED or
    LOST follows, unless you stop the item before."""
    REFUSED = 3
    """The item cannot play. One of these has failed: set-up, the request for the first licence, or a keep-alive before
    the first licence arrived. READY follows if you request a licence again and get one, or if the session recovers."""
    LOST = 4
    """The item was ready and must stop: the session is lost, or a further licence was refused. RECOVERED may follow."""
    RECOVERED = 5
    """The item may play again: the session is alive, or the licence has arrived."""
    TORN_DOWN = 6
    """The item is closed, and the head-end no longer holds its slot."""
    ENDED = 7
    """The item is closed. It never had a session, or the library left its session to expire, or the teardown failed.
    After a failed teardown, `error` says why it failed, and the head-end may hold the slot until the session
    expires."""


class SessionState(OpenIntEnum):
    """The state of a playback's session. In C: USHER_SESSION_*."""

    NONE = 0
    """The playback has no session: its delegate has no SSM, the item is clear, or (SSP V2) the last licence reply had
    no session token (EventType.NO_SESSION)."""
    PENDING = 1
    """There is no session yet: set-up is under way, or the playback waits. It may wait for a content token, for its
    first licence (SSP V2, customer SSM), or until the player has closed the earlier playback."""
    ACTIVE = 2
    """The session is set up, and the library keeps it alive."""
    DOUBTFUL = 3
    """The session may have ended: a keep-alive is overdue (EventType.SESSION_DOUBTFUL), or the outage that
    EventType.HEARTBEAT_ERROR reported continues. While the library retries a failed keep-alive before that event, the
    state stays ACTIVE."""
    FAILED = 4
    """Set-up or keep-alive failed for good: stop playback."""
    ENDED = 5
    """The playback is closed or closing."""


class CloseMode(IntEnum):
    """What closing does to the session. In C: USHER_CLOSE_*."""

    DEFAULT = 0
    """The default, which depends on the kind of delegate. With SSM v1 the library tears the session down. With customer
    SSM it calls the teardown callback, if you set one. With SSP V2 it leaves the session to expire, but tears it down
    on a zap (see ``SSPV2Options``)."""
    TEARDOWN = 1
    """Tear the session down."""
    LEAVE = 2
    """Leave the session to expire at the head-end. With customer SSM the library does not call the teardown
    callback."""


class Clock(IntEnum):
    """How time passes in a context. In C: USHER_CLOCK_*."""

    SYSTEM = 0
    """Real time, which also passes while the machine sleeps (CLOCK_BOOTTIME)."""
    MANUAL = 1
    """For tests: time passes only in Context.advance() and Context.jump()."""


class Callbacks(IntEnum):
    """Which threads run the callbacks of a context. In C: USHER_CALLBACKS_*."""

    THREADED = 0
    """Callbacks run on the context's own callback threads."""
    PUMPED = 1
    """Callbacks run only inside Context.pump(), on the thread that calls it."""


class Guardian(IntEnum):
    """Whether a context has a guardian. In C: USHER_GUARDIAN_*."""

    OFF = 0
    """No guardian."""
    IF_POSSIBLE = 1
    """The context has a guardian if the system can start one. Otherwise the log gets a warning with the reason, and the
    context works without a guardian."""
    REQUIRED = 2
    """The context must have a guardian. If the system cannot start one, Context() raises an exception that has the
    reason, and the log gets it."""


class LogLevel(IntEnum):
    """How detailed the log is. In C: USHER_LOG_*."""

    ERROR = 1
    """Problems of the library itself."""
    WARNING = 2
    """The lines of ERROR, and events that report an error."""
    INFO = 3
    """The lines of WARNING, and all other events."""
    DEBUG = 4
    """The lines of INFO, and each request with its HTTP status and its duration."""
    TRACE = 5
    """The lines of DEBUG, and the trace: each line of the trace is a JSON object for a playback that starts, a request,
    a reply or an event. Write these lines to a file; the manual's page `traces` describes them, and `usher trace` shows
    them."""


class LicenseType(OpenIntEnum):
    """A first licence or a renewal. In C: USHER_LICENSE_*."""

    REQUEST = 0
    """A licence for new keys."""
    RENEWAL = 1
    """A licence that prolongs an earlier one."""


class RenewType(OpenIntEnum):
    """How a session is kept alive. In C: USHER_RENEW_*."""

    DEFAULT = 0
    """Only for `renew_type` in the host's answer to a licence callback of customer SSM, where it means the same as
    ENFORCED. In ``License``, `renew_type` never has this value."""
    HEARTBEAT = 1
    """Heartbeats keep the session alive."""
    ENFORCED = 2
    """The library's own licence renewals keep the session alive."""
    CDM = 3
    """The CDM itself asks for renewals (Widevine)."""
    NONE = 4
    """Nothing keeps the session alive, or the playback has no session."""


class AppendVersion(IntEnum):
    """Whether ``ssm_api_version`` is added to ``ssm_url``. In C: USHER_APPEND_*."""

    AUTO = 0
    """Append `ssm_api_version` to `ssm_url`, unless this URL already ends with a version."""
    ALWAYS = 1
    """Always append the version."""
    NEVER = 2
    """Append nothing: `ssm_url` is complete."""


class HeartbeatMissing(IntEnum):
    """What a set-up reply without a usable period means. In C: USHER_HEARTBEAT_MISSING_*."""

    ERROR = 0
    """Set-up fails."""
    NO_TIMER = 1
    """The session has no keep-alives."""


class HeartbeatStart(IntEnum):
    """When the first period begins. In C: USHER_HEARTBEAT_START_*."""

    SETUP = 0
    """The first period begins with the reply to set-up, or with the licence that sets the session up. If this reply
    came more than half a period after the request, the library sends the first keep-alive earlier: one and a half
    periods after the request, or at once if this time has passed, because the server's lease began before the reply."""
    LICENSE = 1
    """The first period begins with the first licence."""


class KeepAlive(IntEnum):
    """How the session is kept alive. In C: USHER_KEEP_ALIVE_*."""

    AUTO = 0
    """The first licence reply says what keeps the session alive."""
    HEARTBEAT = 1
    """Heartbeats keep the session alive."""
    RENEWAL = 2
    """Licence renewals keep the session alive."""


class Resetup(IntEnum):
    """What a further licence request does to the session. In C: USHER_RESETUP_*."""

    CALLBACK_ONLY = 0
    """For a further licence of a playback: set up another session if the delegate has a token callback, else keep the
    session."""
    ALWAYS = 1
    """Set up another session."""
    NEVER = 2
    """Keep the session."""


class WireFormat(IntEnum):
    """The form of a Widevine licence request. In C: USHER_WIRE_*."""

    AUTO = 0
    """Widevine licence requests are JSON."""
    RAW = 1
    """The body of a Widevine licence request is the bytes of the CDM, without JSON."""


class KeySystem(str, Enum):
    """DASH ContentProtection identifiers. Functions that take one also take a plain str. In C: USHER_KEY_SYSTEM_*."""

    FAIRPLAY = "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2"
    """FairPlay Streaming."""
    WIDEVINE = "EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"
    """Widevine."""
    PLAYREADY = "9A04F079-9840-4286-AB92-E65BE0885F95"
    """PlayReady."""
    CLEARKEY = "1077EFEC-C0B2-4D02-ACE3-3C1E52E2FB4B"
    """W3C Clear Key."""


class Suspend(OpenIntEnum):
    """Whether keep-alives continue while the host is suspended. In C: USHER_SUSPEND_*."""

    KEEP = 0
    """Keep-alives continue while the host is suspended."""
    PAUSE = 1
    """The library sends no keep-alives until the host resumes."""


class Hook(OpenIntEnum):
    """The steps of a licence request that a hook may take over. In C: USHER_HOOK_*."""

    CONTENT_ID = 1
    """contentIdentifier(url): the bytes that go into the SPC. Answer with bytes."""
    CERTIFICATE = 2
    """certificate(): the application certificate. Answer with bytes."""
    HEADERS = 3
    """generateHTTPHeaders(assetID): the headers. Answer with HookCall.answer()."""
    LICENSE_URL = 4
    """getLicenseRequestUrl(): the URL. Answer with the text of the URL; add `renew=true` for renewals if the server
    requires it."""
    LICENSE_BODY = 5
    """The body of the licence request. Answer with bytes."""
    LICENSE = 6
    """getCkcFromLicenseResponse(): the licence in a reply. Answer with bytes. The library does not call this hook for a
    reply with an HTTP error."""


class TokenKind(IntEnum):
    """Which token the library asks an entitlement server for. In C: USHER_TOKEN_*."""

    BY_LOADER = 0
    """The loader's option `device_binding` decides. Without it: a token for a limited time. With it: a token that
    registers the device; once the device is registered, a token for this device only."""
    TIME_BASED = 1
    """A token for a limited time, for any device."""
    REGISTRATION = 2
    """A token that registers the device with the licence server."""
    DEVICE_BOUND = 3
    """A token that only this device can use; the device must be registered."""


class Route(OpenIntEnum):
    """Where a resource loader sends the SPC. In C: USHER_ROUTE_*."""

    KEY_SERVER = 0
    """The SPC goes to `license_url`, or to the URL inside the `skd:` URL."""
    ENTITLEMENT = 1
    """The library first asks the entitlement server (`entitlement_url`, or the URL inside the `skd:` URL with "?cid=").
    The server's reply has a token URL, and the SPC goes to that URL."""
    TOKEN_URL = 2
    """The `skd:` URL is the token URL: the library replaces its scheme by `derived_scheme`."""


class Part(OpenIntEnum):
    """Which part of the content a protection is about. In C: USHER_PART_*."""

    ELEMENT = 0
    """From all functions except read_mp4(): one box, line or element."""
    FILE = 1
    """From read_mp4(): the whole file."""
    TRACK = 2
    """From read_mp4(): one encrypted track."""
    PSSH = 3
    """From read_mp4(): one pssh box."""


class ContentIDRule(OpenIntEnum):
    """Which part of a ``skd:`` URL is the content identifier. In C: USHER_CONTENT_ID_*."""

    DECODED_JSON = 0
    """If the text after the scheme is base64 (any variant) of JSON: the decoded JSON. Otherwise: the text itself."""
    DECODED_BASE64 = 1
    """If the text after the scheme is base64: the decoded bytes. Otherwise: the text itself."""
    HOST = 2
    """The host of the URL."""
    AFTER_SCHEME = 3
    """Everything after the scheme."""
    AFTER_SEMICOLON = 4
    """Everything after the last ';'."""
    WHOLE_URL = 5
    """The whole URL."""
    SSP = 6
    """The member "ContentId" of the decoded JSON: the content identifier that the token map uses. Without such a
    member: the text after the scheme."""


class FPSRequest(OpenIntEnum):
    """The format of the request that carries the SPC. In C: USHER_FPS_REQUEST_*."""

    RAW = 0
    """The bytes of the SPC."""
    FORM = 1
    """A form: `spc=<base64>`."""
    BASE64 = 2
    """Base64 text."""
    JSON = 3
    """JSON: `{"spc": "<base64>"}`."""


class URLEncode(OpenIntEnum):
    """Which parts of a form are percent-encoded. In C: USHER_URLENCODE_*."""

    VALUE = 0
    """Percent-code the values of a form."""
    NONE = 1
    """Percent-code nothing of the SPC. The library percent-codes the content identifier (`content_id_field`) anyway."""
    WHOLE = 2
    """Percent-code the whole form, including '=' and '&'."""


class FPSResponse(OpenIntEnum):
    """The format of the reply that carries the CKC. In C: USHER_FPS_RESPONSE_*."""

    AUTO = 0
    """JSON with "CkcMessage", "ckc" or "License"; else a `<ckc>` element; else base64; else raw bytes."""
    RAW = 1
    """Raw bytes."""
    BASE64 = 2
    """Base64 text."""
    ELEMENT = 3
    """`<ckc>base64</ckc>`."""
    JSON = 4
    """JSON."""
