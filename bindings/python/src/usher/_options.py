# Generated from include/usher/*.h by scripts/generate. Change the headers, then run `make generate`.
"""The options of contexts, delegates and resource loaders, with their types, units and defaults."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from ._c.enums import (
    AppendVersion,
    Callbacks,
    Clock,
    ContentIDRule,
    FPSRequest,
    FPSResponse,
    Guardian,
    HeartbeatMissing,
    HeartbeatStart,
    KeepAlive,
    LogLevel,
    Resetup,
    Route,
    Suspend,
    URLEncode,
    WireFormat,
)

if TYPE_CHECKING:
    from typing import TypedDict

    from typing_extensions import Required
else:
    from ._checked import Options as TypedDict


class ContextOptions(TypedDict, total=False):
    """Options of contexts. 0 and None mean the default; OFF means "none".

    clock: ``Clock``. Default: Clock.SYSTEM.
    log_level: The most detailed ``LogLevel`` level that `log` receives. Default: LogLevel.INFO.
    callback_threads_max: How many threads may run callbacks at the same time. Default 16. While this number of
        callbacks block, all other callbacks wait, also those that a keep-alive needs (payload callback, customer SSM).
    connect_timeout_ms: Time limit for connecting to a server, ms. If this time passes, the request fails with
        UsherTimeoutError. Default 5000.
    http_timeout_ms: Time limit for a whole request, ms. Default 10000.
    max_response_bytes: Largest reply body that the library accepts, bytes after decoding. Default 1 MiB. For a JSON
        text of more than 4 KiB, the library uses at most four times the size of the text plus 64 KiB of memory (for a
        Clear Key licence: plus 4 MiB). The library refuses a text that needs more, with ProtocolError. A shorter text
        may need 1.3 MB.
    requests_per_origin_max: How many requests to one origin (scheme, host and port) may be in flight. Further requests
        wait in a queue, keep-alives first. Default: 16 to an origin that replies within a few milliseconds, up to 512
        to an origin that takes longer.
    allow_insecure_http: True: allow `http` URLs to hosts other than loopback. Default False: such URLs get
        InvalidArgumentError.
    ca_file: PEM file of the certificate authorities to trust. For servers and for an https proxy, the library then
        trusts no other authorities. Default: the authorities of the system. Context() checks the files of this and the
        next three options. Keep the files: libcurl reads them again later, for new connections.
    pinned_public_key: Pin of the server's public key, in the form of libcurl's CURLOPT_PINNEDPUBLICKEY ("sha256//...").
        Default: none.
    client_certificate_file: PEM file of a client certificate. Default: none.
    client_key_file: PEM file of the client certificate's private key. Default: client_certificate_file.
    proxy: URL of a proxy: http, https, socks4, socks4a, socks5 or socks5h; the URL may have a name and a password.
        Default: from the environment (http_proxy, https_proxy, all_proxy, no_proxy); "" for no proxy.
    user_agent: User-Agent. Default "usher/VERSION".
    callbacks: ``Callbacks``: which threads run callbacks. Default: Callbacks.THREADED.
    connections_max: How many connections the context may have, to all servers together. Further requests wait in a
        queue, keep-alives first. To open a new connection, the library closes one that no request uses. Default: half
        of RLIMIT_NOFILE (the limit of file descriptors of the process), minus 8; at least 4 and at most 4096. If your
        host has several contexts, set this option, so that the host keeps descriptors for its own files.
    client_key_passphrase: Pass phrase of the client certificate's private key. Default: none; the library never asks
        for a pass phrase on the terminal.
    http2: True: use HTTP/2 for https if the server offers it. Default False: HTTP/1.1, with which a heartbeat takes
        less processor time.
    wipe_freed_memory: True: libcurl and OpenSSL wipe all memory that they free, in the whole process, so that freed
        memory has no tokens. Only for a host that controls its whole process: the first context must have this option,
        and nothing in the process may have used libcurl or OpenSSL before. Otherwise Context() raises StateError. Later
        contexts may omit this option. Default False.
    keep_cookies: True: keep the cookies that servers set, and send them back. Some load balancers need this: such a
        load balancer uses a cookie to send all requests of a session to the same server. Each origin (scheme, host and
        port) gets only its own cookies; the cookies follow the rules of RFC 6265 about path, `Secure` and expiry. The
        cookies are only in memory, and Context.close() frees them. The library keeps cookies of at most 64 origins. If
        an origin sets more than 64 cookies, the library forgets all cookies of that origin. Default False: the library
        ignores cookies.
    trace_context: True: send the header `traceparent` (W3C Trace Context) with each request, so that a tracing system
        can relate the requests of a playback to what the servers did for them. All requests of a playback have the same
        trace id, and each request has its own span id, also a request that repeats another one. The ids are random. Do
        not set this header in `extra_headers` too. The library does not add this header to requests that the host sends
        for customer SSM. Default False.
    timer_slack_ms: How many milliseconds later than its time a timer may run, at most 50. When a timer is due, the
        library waits for this time, and then runs all timers that have become due meanwhile. So a process with many
        playbacks wakes up less often, and each heartbeat takes less processor time. But each heartbeat may go out later
        by up to this time, and each time limit may end later by up to this time. The manual clock ignores this option.
        Default 0.
    journal_file: Path of the journal: a file in which the library keeps, for each session that the context holds, what
        another process needs to tear the session down. If the process dies, the next context with this path gives the
        slots back before it sets up its first session, and reports EventType.RECOVERED_SLOT for each slot. The library
        makes the file with the mode 0600. Up to 16 contexts, also of several processes, may use one file at the same
        time. If the file cannot be used, the context works without a journal and reports EventType.JOURNAL_ERROR. See
        the manual's page `recovery`. Default: none.
    journal_key: Key with which the library encrypts the journal (AES-256-GCM): 32 random bytes, the same at each start.
        Keep the key where others cannot read it, and not beside the journal. The library wipes its copy. If you set
        `journal_file`, set either this option or `journal_in_clear`; otherwise Context() raises InvalidArgumentError.
        Context() raises StateError if libcurl does not use OpenSSL. Default: none.
    journal_in_clear: True: the journal is not encrypted. Whoever can read the file can then read session tokens.
        Default False.
    recovery_wait_ms: How long the first set-ups of the context wait for the teardowns of the sessions that a dead
        process left in the journal, ms. After this time the teardowns continue, and set-ups no longer wait. Default
        3000.
    guardian: ``Guardian``: whether a guardian watches this process. The guardian is a small separate process,
        usher-guardian. If this process ends without closing its sessions (SIGKILL, a crash, _exit(), exec), the
        guardian tears them down at once. The guardian never touches a session while this process lives, except if this
        process closes the library's descriptors. Sessions of customer SSM have no guardian: only the host knows how to
        tear them down. The manual's page `guardian` has the details. Default: Guardian.OFF.
    close_at_exit_ms: How long the end of the process (exit(), or a return from main()) may wait for the teardown of the
        sessions that this context still holds, ms. The library then closes all playbacks of the context in an exit
        handler. Default 0: the end of the process does not wait, and nothing is torn down. _exit(), quick_exit(),
        abort() and signals run no exit handlers; use a guardian for these. A child of fork() does nothing when it ends.
    guardian_path: Absolute path of the program usher-guardian. Default: usher-guardian in the folder of libusher.so, or
        in ../libexec/usher or ../../libexec/usher as seen from this folder.
    """

    clock: Clock | int | Literal["system", "manual"]
    log_level: LogLevel | int | Literal["error", "warning", "info", "debug", "trace"]
    callback_threads_max: int
    connect_timeout_ms: int
    http_timeout_ms: int
    max_response_bytes: int
    requests_per_origin_max: int
    allow_insecure_http: bool
    ca_file: str | os.PathLike[str] | None
    pinned_public_key: str | None
    client_certificate_file: str | os.PathLike[str] | None
    client_key_file: str | os.PathLike[str] | None
    proxy: str | None
    user_agent: str | None
    callbacks: Callbacks | int | Literal["threaded", "pumped"]
    connections_max: int
    client_key_passphrase: str | None
    http2: bool
    wipe_freed_memory: bool
    keep_cookies: bool
    trace_context: bool
    timer_slack_ms: int
    journal_file: str | os.PathLike[str] | None
    journal_key: bytes | None
    journal_in_clear: bool
    recovery_wait_ms: int
    guardian: Guardian | int | Literal["off", "if_possible", "required"]
    close_at_exit_ms: int
    guardian_path: str | None


class SSPOptions(TypedDict, total=False):
    """Options of SSP delegates. 0 and None mean the default; OFF means "none".

    license_url: URL of the licence server. Required.
    certificate_url: URL of the certificate server (FairPlay application certificate). Default: none; requests for a
        certificate then fail with StateError.
    ssm_url: URL of the Secure Session Manager, with or without a trailing '/' and '/v1'. Default: none; playbacks then
        have no session.
    sync_setup_teardown: True: Player.play() waits for set-up, at most `setup_timeout_ms`; Playback.close(),
        Playback.free(), Player.stop() and Player.close() wait for teardown, at most `teardown_timeout_ms`. If set-up or
        teardown takes longer, it continues in the background. Default False: none of these calls waits.
    ssm_append_version: ``AppendVersion``: whether the library appends `ssm_api_version` to `ssm_url`. Default AUTO: the
        library appends it, unless the URL's last segment is a 'v' and digits.
    ssm_api_version: The version to append. Default "v1".
    setup_url: Complete URL for set-up. Set this option only if the library cannot build the URL from `ssm_url`. Without
        `ssm_url`, set all of `setup_url`, `heartbeat_url` and `teardown_url`, or none of them; with none, playbacks
        have no session. Default: none.
    heartbeat_url: Complete URL for heartbeats. Default: none.
    teardown_url: Complete URL for teardown. Default: none.
    renewal_url: Complete URL for renewals of Widevine licences. Default: none.
    token_header: Name of the header that carries the tokens. Default "nv-authorizations".
    extra_headers: Further headers for every request of this delegate (e.g. a tenant id). Default: none. Or give a
        mapping of names to values.
    setup_body: The JSON object that the library sends as the body of set-up. Default "{}"; "" for an empty body.
    keep_alive_body: Body of heartbeats and teardown. Default "{}"; "" for an empty body.
    setup_timeout_ms: Longest wait for set-up, in sync mode and in Playback.wait_session(), ms. Default 5000.
    teardown_timeout_ms: Longest time for which the library waits for a teardown, ms. Default 3000.
    token_timeout_ms: Time limit for the answer of the token callback, ms. Default 5000.
    payload_timeout_ms: Time limit for the answer of the payload callback, ms. Default 5000.
    heartbeat_missing: ``HeartbeatMissing``: what happens if the reply to set-up has no usable period. Default: set-up
        fails.
    heartbeat_start: ``HeartbeatStart``: when the first period begins. Default: with the reply to set-up.
    lenient_numbers: True: also accept a period that is a string with a number ("60"). Default False.
    period_min_ms: Shortest period, ms. If a server asks for a shorter period, the library uses this value and logs a
        warning. Default 1000.
    period_max_ms: Longest period, ms; the library lowers a longer period to this value. Default 86400000 (a day).
    period_updates: True: a period in a keep-alive reply replaces the period from set-up. Default False.
    jitter_permille: How early the library may send keep-alives, in thousandths of the period. For each playback the
        library chooses a random share of at most this value, and sends all keep-alives of the playback early by that
        share of the period. Default 50 (5 %); OFF: not early. At most 500.
    retry_permille: How long the library retries a keep-alive after a temporary failure: no reply, an unreadable or too
        large reply, a redirect, 429, 5xx, or a failed callback of the host. The library retries until this many
        thousandths of a period have passed since the keep-alive was due, but not after the end of the lease: the
        library assumes that the lease ends two periods after the last keep-alive that the server answered. Default
        1000: until the end of the lease. The library may make one or two more attempts within a second after this time,
        because the server's lease ends a moment later. At most 1000; OFF: no retry.
    keep_alive_failures_max: After this many periods without an answered keep-alive the session fails, and the library
        sends no more keep-alives. Default 10; OFF: no limit.
    keep_alive: ``KeepAlive``: what keeps the session alive. Default AUTO: the first licence reply decides.
    resetup_on_extra_license: ``Resetup``: what happens to the session when one playback requests a further licence that
        is not a renewal. Default: with a token callback, the library tears the session down and sets up another session
        with the new token; without a token callback, it keeps the session.
    wire_format: ``WireFormat``: form of Widevine licence requests. The library reads a reply in either form. Default
        AUTO.
    teardown_retries: How many times the library retries a teardown after a temporary failure, which `retry_permille`
        defines (after 0.5 s, 1 s, 2 s ...). Default 3; OFF: never. A set-up that waits for this teardown starts after
        `teardown_timeout_ms` at the latest, even if the teardown still has retries left.
    token_wait_ms: How long a playback without a content token waits for Playback.set_content_token(), if the delegate
        has no token callback, ms. Default 5000; OFF: it does not wait.
    hook_timeout_ms: Time limit for the answer of a hook, ms. Default 5000.
    suspend: ``Suspend``: whether keep-alives continue while the host is suspended. Default KEEP.
    keep_alive_timeout_ms: Time limit for one heartbeat or enforced renewal, ms. If a request gets no reply, it fails at
        this limit, early enough for a retry before the session's lease ends. Default: three eighths of the period, at
        least 1000; never more than the context's http_timeout_ms. For a retry, the limit is at most half of the time
        until the lease ends, but not below 300 ms. With the default, the limit is longer for a request whose bytes the
        server's TCP has acknowledged: up to seven tenths of the time until the lease ends. If, in addition, the network
        may have lost an earlier reply, the limit is shortly after the end of the lease, because another retry would
        probably fail.
    slot_wait_ms: How long the library waits for a slot, ms, if the server refuses set-up because the account has too
        many sessions (code 1007). The library reports EventType.WAITING_FOR_SLOT once, and repeats the set-up after 1
        s, 2 s, 4 s and then every 5 s. If the server asks for a longer pause (`Retry-After`), the library waits for
        that pause. The last request goes out when `slot_wait_ms` has passed; if the server's pause would end later,
        set-up fails at once. EventType.SESSION_STARTED or EventType.SETUP_ERROR follows; a close or a zap ends the
        wait. Licence requests wait too: if the `timeout_ms` of a request passes during this wait, the request's time
        limit begins again. Default 0: the refusal fails set-up at once.
    zap_without_waiting: True: a zap to an item of this delegate does not wait for the teardown of the earlier item's
        session: the teardown and the set-up (SSP V2: the licence request that opens the session) go out at the same
        time, the teardown first. So the next licence comes one round trip earlier, but for a moment both sessions may
        exist. If the server refuses the set-up because the account has too many sessions (code 1007), the library waits
        for the teardown, at most `teardown_timeout_ms`, and tries once more. Default False: the set-up waits for the
        teardown.
    """

    license_url: Required[str]
    certificate_url: str | None
    ssm_url: str | None
    sync_setup_teardown: bool
    ssm_append_version: AppendVersion | int | Literal["auto", "always", "never"]
    ssm_api_version: str | None
    setup_url: str | None
    heartbeat_url: str | None
    teardown_url: str | None
    renewal_url: str | None
    token_header: str | None
    extra_headers: Mapping[str, str] | str | None
    setup_body: str | None
    keep_alive_body: str | None
    setup_timeout_ms: int
    teardown_timeout_ms: int
    token_timeout_ms: int
    payload_timeout_ms: int
    heartbeat_missing: HeartbeatMissing | int | Literal["error", "no_timer"]
    heartbeat_start: HeartbeatStart | int | Literal["setup", "license"]
    lenient_numbers: bool
    period_min_ms: int
    period_max_ms: int
    period_updates: bool
    jitter_permille: int
    retry_permille: int
    keep_alive_failures_max: int
    keep_alive: KeepAlive | int | Literal["auto", "heartbeat", "renewal"]
    resetup_on_extra_license: Resetup | int | Literal["callback_only", "always", "never"]
    wire_format: WireFormat | int | Literal["auto", "raw"]
    teardown_retries: int
    token_wait_ms: int
    hook_timeout_ms: int
    suspend: Suspend | int | Literal["keep", "pause"]
    keep_alive_timeout_ms: int
    slot_wait_ms: int
    zap_without_waiting: bool


class SSPV2Options(SSPOptions, total=False):
    """Options of SSP V2 delegates: those of ``SSPOptions``, except `setup_url`, `setup_body` and `heartbeat_start`,
    which SSP V2 delegates ignore; and these. Set both `heartbeat_url` and `teardown_url`, or neither. 0 and None mean
    the default; OFF means "none".

    teardown_on_close: True: Playback.close() with CloseMode.DEFAULT tears the session down. Default False: it leaves
        the session to expire at the head-end.
    leave_on_zap: True: a zap leaves the session to expire. Default False: a zap tears the session down, and the next
        item waits for the teardown.
    token_field: JSON path ("a.b") of the session token in a licence reply. Default "sessionToken".
    period_field: JSON path of the keep-alive period in seconds. Default "heartbeat" (in any letter case).
    enforced_field: JSON path of the boolean that says whether licence renewals keep the session alive. Default
        "sessionDrmEnforced".
    token_reply_header: Reply header that carries the session token if the body has none. Default: none.
    period_default_ms: The period of a session whose reply has no period, ms. Default 60000; OFF: the session then has
        no keep-alives.
    """

    teardown_on_close: bool
    leave_on_zap: bool
    token_field: str | None
    period_field: str | None
    enforced_field: str | None
    token_reply_header: str | None
    period_default_ms: int


class MultiInstanceOptions(SSPOptions, total=False):
    """Options of multi-instance delegates: those of ``SSPOptions``, and the limits of the token map. 0 and None mean
    the default; OFF means "none".

    tokens_max: How many tokens the map holds at most. When the map is full, a new token replaces the oldest token that
        no playback holds. Default 0: no limit.
    time_to_live_ms: When this time has passed since a token was set, the map removes the token, unless a playback holds
        it; ms on the context's clock. Default 0: the map never does this.
    """

    tokens_max: int
    time_to_live_ms: int


class DefaultOptions(TypedDict, total=False):
    """Options of default and common delegates. 0 and None mean the default; OFF means "none".

    license_url: URL of the licence server. Required, except for a common delegate with a licence URL hook.
    certificate_url: URL of the certificate server. Default: none.
    extra_headers: Further headers for every request. Default: none. Or give a mapping of names to values.
    token_header: Name of the header that carries the content token of a playback that has one. Default
        "nv-authorizations".
    wire_format: ``WireFormat``: form of Widevine licence requests. Default AUTO.
    hook_timeout_ms: Time limit for the answer of a hook, ms. Default 5000.
    """

    license_url: str | None
    certificate_url: str | None
    extra_headers: Mapping[str, str] | str | None
    token_header: str | None
    wire_format: WireFormat | int | Literal["auto", "raw"]
    hook_timeout_ms: int


class CustomerOptions(TypedDict, total=False):
    """Options of customer SSM delegates. 0 and None mean the default; OFF means "none".

    license_timeout_ms: Time limit for the answer of the licence callback, ms. Default 10000. For a renewal at most
        `heartbeat_timeout_ms`.
    heartbeat_timeout_ms: Time limit for the answer to a heartbeat or renewal, ms. Default: three eighths of the period,
        at least 1000.
    teardown_timeout_ms: Time limit for the answer of the teardown callback, ms. Default 3000.
    payload_timeout_ms: Time limit for the answer of the payload callback, ms. Default 5000.
    jitter_permille: As in ``SSPOptions``. Default 50.
    retry_permille: How long the library retries a failed heartbeat or renewal, in thousandths of the period, counted
        from the time at which it was due; `retry_permille` in ``SSPOptions`` has the details. SessionCall.answer() and
        CustomerRequest.answer() say after which failures the library retries. Default 1000; OFF: no retry.
    keep_alive_failures_max: As in ``SSPOptions``. Default 10.
    suspend: ``Suspend``. Default KEEP.
    zap_without_waiting: True: a zap to an item of this delegate does not wait for the answer of the teardown callback:
        the library calls `license` for the next item as soon as the host requests its licence. If `license` fails with
        the code 1007 because the earlier session still exists, the library waits for the teardown, at most
        `teardown_timeout_ms`, and calls `license` once more. Default False: `license` waits for the answer of the
        teardown callback.
    """

    license_timeout_ms: int
    heartbeat_timeout_ms: int
    teardown_timeout_ms: int
    payload_timeout_ms: int
    jitter_permille: int
    retry_permille: int
    keep_alive_failures_max: int
    suspend: Suspend | int | Literal["keep", "pause"]
    zap_without_waiting: bool


class LoaderOptions(TypedDict, total=False):
    """Options of resource loaders. 0 and None mean the default; OFF means "none".

    scheme: Scheme of the URLs that the loader loads. Default "skd".
    route: ``Route``: where the SPC goes. Default: the key server.
    content_id_rule: ``ContentIDRule``: which part of the URL is the content identifier. Default: the decoded JSON. With
        the route to an entitlement server, a URL without such JSON may have the identifier as "cid" in its query.
    license_url: Key server. Default: the URL inside the `skd:` URL, if its host is allowed.
    entitlement_url: Entitlement server. Default: the URL inside the `skd:` URL, if its host is allowed.
    allowed_hosts: Hosts that a URL from content or from an entitlement server may have, separated by blanks: "host",
        "host:port", "host:*", "*.example.com"; without a port, the default port of the scheme. Default: none, so the
        library uses no such URL. Give a list of them, or one text.
    derived_scheme: Replaces `scheme` in a token URL: "https", or "http" (for loopback). Default "https".
    certificate: The application certificate, 1 byte to 1 MiB. Default: none.
    certificate_file: A file that has the certificate; ResourceLoader() reads it. Default: none.
    certificate_url: URL of the certificate. The library fetches it once; after a failure, the next request fetches
        again. Default: none.
    extra_headers: "Name: value" header lines for the key server, separated by line breaks. Default: none. Or give a
        mapping of names to values.
    request_format: ``FPSRequest``: form of the request. Default: the bytes of the SPC.
    spc_urlencode: ``URLEncode``: which parts of a form the library percent-codes. Default: values.
    spc_field: Name of the SPC's field in a form or in JSON. Default "spc".
    content_id_field: Name of a further field with the content identifier, e.g. "assetId". Default: none.
    response_format: ``FPSResponse``: form of the reply. Default AUTO.
    device_binding: True: the entitlement server binds the device: the first request registers the device (the event
        EventType.DEVICE_REGISTERED follows), and later tokens are valid for this device only. If a licence server does
        not know the device (LICENSE_ERROR with the code -4001), the next request registers the device again. Needs
        `customer_cookie`. Default False.
    customer_cookie: The customer cookie that the library sends to the entitlement server: up to 32 bytes of UTF-8.
        Default: none.
    spc_timeout_ms: Time limit for the answer of the SPC callback, ms. Default 5000.
    response_path: JSON path ("a.b") of the CKC, which is base64. Default: "CkcMessage", "ckc" or "License".
    server_timeout_ms: Time limit for the answer of the callback `server`, and of the callback `token_url`, ms. Default
        10000.
    device_registered: True: the device is registered already: an earlier run of the program had the event
        EventType.DEVICE_REGISTERED. Needs `device_binding`. Default False.
    """

    scheme: str | None
    route: Route | int | Literal["key_server", "entitlement", "token_url"]
    content_id_rule: (
        ContentIDRule
        | int
        | Literal["decoded_json", "decoded_base64", "host", "after_scheme", "after_semicolon", "whole_url", "ssp"]
    )
    license_url: str | None
    entitlement_url: str | None
    allowed_hosts: Iterable[str] | None
    derived_scheme: str | None
    certificate: bytes | None
    certificate_file: str | os.PathLike[str] | None
    certificate_url: str | None
    extra_headers: Mapping[str, str] | str | None
    request_format: FPSRequest | int | Literal["raw", "form", "base64", "json"]
    spc_urlencode: URLEncode | int | Literal["value", "none", "whole"]
    spc_field: str | None
    content_id_field: str | None
    response_format: FPSResponse | int | Literal["auto", "raw", "base64", "element", "json"]
    device_binding: bool
    customer_cookie: str | None
    spc_timeout_ms: int
    response_path: str | None
    server_timeout_ms: int
    device_registered: bool


ENUMERATIONS: dict[str, type[IntEnum]] = {
    "callbacks": Callbacks,
    "clock": Clock,
    "content_id_rule": ContentIDRule,
    "guardian": Guardian,
    "heartbeat_missing": HeartbeatMissing,
    "heartbeat_start": HeartbeatStart,
    "keep_alive": KeepAlive,
    "log_level": LogLevel,
    "request_format": FPSRequest,
    "resetup_on_extra_license": Resetup,
    "response_format": FPSResponse,
    "route": Route,
    "spc_urlencode": URLEncode,
    "ssm_append_version": AppendVersion,
    "suspend": Suspend,
    "wire_format": WireFormat,
}
"""The enumeration of each option that has one."""

LARGEST = {
    "jitter_permille": 500,
    "retry_permille": 1000,
}
"""The largest values of some options. For all other numbers, Python checks only the limit of the C type."""
STRUCTURES: dict[str, tuple[str, ...]] = {
    "ContextOptions": ("usher_context_options",),
    "CustomerOptions": ("usher_customer_options",),
    "DefaultOptions": ("usher_default_options",),
    "LoaderOptions": ("usher_loader_options",),
    "MultiInstanceOptions": ("usher_token_map_options",),
    "SSPOptions": ("usher_ssp_options",),
    "SSPV2Options": ("usher_ssp_v2_options",),
}
"""The C structures that have the options of each class. A class also has the options of its base class."""
