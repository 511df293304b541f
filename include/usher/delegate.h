/** @file
 * delegate.h - licence delegates: they decide how the library asks for licences. This header has the default delegate
 * and the SSP delegates with SSM v1 and with SSP V2. Other headers have the other delegates: hooks.h (common delegate),
 * tokens.h (multi-instance), customer.h (customer SSM).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_DELEGATE_H
#define USHER_DELEGATE_H

#include "base.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ssm_append_version */
/** Append `ssm_api_version` to `ssm_url`, unless this URL already ends with a version. */
#define USHER_APPEND_AUTO 0
/** Always append the version. */
#define USHER_APPEND_ALWAYS 1
/** Append nothing: `ssm_url` is complete. */
#define USHER_APPEND_NEVER 2

/* heartbeat_missing */
/** Set-up fails. */
#define USHER_HEARTBEAT_MISSING_ERROR 0
/** The session has no keep-alives. */
#define USHER_HEARTBEAT_MISSING_NO_TIMER 1

/* heartbeat_start */
/** The first period begins with the reply to set-up, or with the licence that sets the session up. If this reply came
    more than half a period after the request, the library sends the first keep-alive earlier: one and a half periods
    after the request, or at once if this time has passed, because the server's lease began before the reply. */
#define USHER_HEARTBEAT_START_SETUP 0
/** The first period begins with the first licence. */
#define USHER_HEARTBEAT_START_LICENSE 1

/* keep_alive */
/** The first licence reply says what keeps the session alive. */
#define USHER_KEEP_ALIVE_AUTO 0
/** Heartbeats keep the session alive. */
#define USHER_KEEP_ALIVE_HEARTBEAT 1
/** Licence renewals keep the session alive. */
#define USHER_KEEP_ALIVE_RENEWAL 2

/* resetup_on_extra_license */
/** For a further licence of a playback: set up another session if the delegate has a token callback, else keep the
    session. */
#define USHER_RESETUP_CALLBACK_ONLY 0
/** Set up another session. */
#define USHER_RESETUP_ALWAYS 1
/** Keep the session. */
#define USHER_RESETUP_NEVER 2

/* wire_format */
/** Widevine licence requests are JSON. */
#define USHER_WIRE_AUTO 0
/** The body of a Widevine licence request is the bytes of the CDM, without JSON. */
#define USHER_WIRE_RAW 1

/* suspend */
/** Keep-alives continue while the host is suspended. */
#define USHER_SUSPEND_KEEP 0
/** The library sends no keep-alives until the host resumes. */
#define USHER_SUSPEND_PAUSE 1

/**
 * Token callback (OTVSSPTokenCallback.token()): asks the host for a fresh content token. There are three reasons: the
 * playback started without a token; it needs a further licence; or a server denied its token (401 or 403). Answer with
 * usher_complete_token(), in the callback or later, within the delegate's `token_timeout_ms`.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes". Last call: before `destroy`.
 *
 * @param completion  the question, for usher_complete_token().
 * @param playback    the playback that needs the token. Not owned; you may have freed it already.
 * @param tag         the `tag` of the playback's options.
 * @param user_data   as usher_delegate_set_token_callback() received it.
 */
typedef void (*usher_token_fn)(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data);

/**
 * Options of an SSP delegate. A field that is 0 or NULL has the default that its comment states. The library copies the
 * strings. URLs: http or https, up to 8 kB; the library adds a path before the URL's query. Headers: "Name: value"
 * lines separated by '\n', without control characters except the tab. The library refuses the headers that it sets
 * itself: Host, Content-Length, Transfer-Encoding, TE, Trailer, Connection, Keep-Alive, Proxy-Connection, Upgrade,
 * HTTP2-Settings, Expect.
 */
typedef struct usher_ssp_options {
  /** USHER_SSP_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** URL of the licence server. Required. */
  const char *license_url;
  /** URL of the certificate server (FairPlay application certificate). Default: none; requests for a certificate then
      fail with USHER_E_STATE. */
  const char *certificate_url;
  /** URL of the Secure Session Manager, with or without a trailing '/' and '/v1'. Default: none; playbacks then have no
      session. */
  const char *ssm_url;
  /** 1: usher_player_play() waits for set-up, at most `setup_timeout_ms`; usher_playback_close(),
      usher_playback_free(), usher_player_stop() and usher_player_free() wait for teardown, at most
      `teardown_timeout_ms`. If set-up or teardown takes longer, it continues in the background. Default 0: none of
      these calls waits. */
  int32_t sync_setup_teardown;
  /** USHER_APPEND_...: whether the library appends `ssm_api_version` to `ssm_url`. Default AUTO: the library appends
      it, unless the URL's last segment is a 'v' and digits. */
  int32_t ssm_append_version;
  /** The version to append. Default "v1". */
  const char *ssm_api_version;
  /** Complete URL for set-up. Set this option only if the library cannot build the URL from `ssm_url`. Without
      `ssm_url`, set all of `setup_url`, `heartbeat_url` and `teardown_url`, or none of them; with none, playbacks
      have no session. Default: none. */
  const char *setup_url;
  /** Complete URL for heartbeats. Default: none. */
  const char *heartbeat_url;
  /** Complete URL for teardown. Default: none. */
  const char *teardown_url;
  /** Complete URL for renewals of Widevine licences. Default: none. */
  const char *renewal_url;
  /** Name of the header that carries the tokens. Default "nv-authorizations". */
  const char *token_header;
  /** Further headers for every request of this delegate (e.g. a tenant id). Default: none. */
  const char *extra_headers;
  /** The JSON object that the library sends as the body of set-up. Default "{}"; "" for an empty body. */
  const char *setup_body;
  /** Body of heartbeats and teardown. Default "{}"; "" for an empty body. */
  const char *keep_alive_body;
  /** Longest wait for set-up, in sync mode and in usher_playback_wait_session(), ms. Default 5000. */
  uint32_t setup_timeout_ms;
  /** Longest time for which the library waits for a teardown, ms. Default 3000. */
  uint32_t teardown_timeout_ms;
  /** Time limit for the answer of the token callback, ms. Default 5000. */
  uint32_t token_timeout_ms;
  /** Time limit for the answer of the payload callback, ms. Default 5000. */
  uint32_t payload_timeout_ms;
  /** USHER_HEARTBEAT_MISSING_...: what happens if the reply to set-up has no usable period. Default: set-up fails. */
  int32_t heartbeat_missing;
  /** USHER_HEARTBEAT_START_...: when the first period begins. Default: with the reply to set-up. */
  int32_t heartbeat_start;
  /** 1: also accept a period that is a string with a number ("60"). Default 0. */
  int32_t lenient_numbers;
  /** Shortest period, ms. If a server asks for a shorter period, the library uses this value and logs a warning.
      Default 1000. */
  uint32_t period_min_ms;
  /** Longest period, ms; the library lowers a longer period to this value. Default 86400000 (a day). */
  uint32_t period_max_ms;
  /** 1: a period in a keep-alive reply replaces the period from set-up. Default 0. */
  int32_t period_updates;
  /** How early the library may send keep-alives, in thousandths of the period. For each playback the library chooses a
      random share of at most this value, and sends all keep-alives of the playback early by that share of the period.
      Default 50 (5 %); USHER_OFF: not early. At most 500. */
  uint32_t jitter_permille;
  /** How long the library retries a keep-alive after a temporary failure: no reply, an unreadable or too large reply, a
      redirect, 429, 5xx, or a failed callback of the host. The library retries until this many thousandths of a period
      have passed since the keep-alive was due, but not after the end of the lease: the library assumes that the lease
      ends two periods after the last keep-alive that the server answered. Default 1000: until the end of the lease. The
      library may make one or two more attempts within a second after this time, because the server's lease ends a
      moment later. At most 1000; USHER_OFF: no retry. */
  uint32_t retry_permille;
  /** After this many periods without an answered keep-alive the session fails, and the library sends no more
      keep-alives. Default 10; USHER_OFF: no limit. */
  uint32_t keep_alive_failures_max;
  /** USHER_KEEP_ALIVE_...: what keeps the session alive. Default AUTO: the first licence reply decides. */
  int32_t keep_alive;
  /** USHER_RESETUP_...: what happens to the session when one playback requests a further licence that is not a renewal.
      Default: with a token callback, the library tears the session down and sets up another session with the new token;
      without a token callback, it keeps the session. */
  int32_t resetup_on_extra_license;
  /** USHER_WIRE_...: form of Widevine licence requests. The library reads a reply in either form. Default AUTO. */
  int32_t wire_format;
  /** How many times the library retries a teardown after a temporary failure, which `retry_permille` defines (after
      0.5 s, 1 s, 2 s ...). Default 3; USHER_OFF: never. A set-up that waits for this teardown starts after
      `teardown_timeout_ms` at the latest, even if the teardown still has retries left. */
  uint32_t teardown_retries;
  /** How long a playback without a content token waits for usher_playback_set_content_token(), if the delegate has no
      token callback, ms. Default 5000; USHER_OFF: it does not wait. */
  uint32_t token_wait_ms;
  /** Time limit for the answer of a hook, ms. Default 5000. */
  uint32_t hook_timeout_ms;
  /** USHER_SUSPEND_...: whether keep-alives continue while the host is suspended. Default KEEP. */
  int32_t suspend;
  /** Time limit for one heartbeat or enforced renewal, ms. If a request gets no reply, it fails at this limit, early
      enough for a retry before the session's lease ends. Default: three eighths of the period, at least 1000; never
      more than the context's http_timeout_ms. For a retry, the limit is at most half of the time until the lease ends,
      but not below 300 ms. With the default, the limit is longer for a request whose bytes the server's TCP has
      acknowledged: up to seven tenths of the time until the lease ends. If, in addition, the network may have lost an
      earlier reply, the limit is shortly after the end of the lease, because another retry would probably fail. */
  uint32_t keep_alive_timeout_ms;
  /** How long the library waits for a slot, ms, if the server refuses set-up because the account has too many sessions
      (code 1007). The library reports USHER_EVENT_WAITING_FOR_SLOT once, and repeats the set-up after 1 s, 2 s, 4 s and
      then every 5 s. If the server asks for a longer pause (`Retry-After`), the library waits for that pause. The last
      request goes out when `slot_wait_ms` has passed; if the server's pause would end later, set-up fails at once.
      USHER_EVENT_SESSION_STARTED or USHER_EVENT_SETUP_ERROR follows; a close or a zap ends the wait. Licence requests
      wait too: if the `timeout_ms` of a request passes during this wait, the request's time limit begins again. Default
      0: the refusal fails set-up at once. */
  uint32_t slot_wait_ms;
  /** 1: a zap to an item of this delegate does not wait for the teardown of the earlier item's session: the teardown
      and the set-up (SSP V2: the licence request that opens the session) go out at the same time, the teardown first.
      So the next licence comes one round trip earlier, but for a moment both sessions may exist. If the server refuses
      the set-up because the account has too many sessions (code 1007), the library waits for the teardown, at most
      `teardown_timeout_ms`, and tries once more. Default 0: the set-up waits for the teardown. */
  int32_t zap_without_waiting;
} usher_ssp_options;

/** All defaults; you must still set `license_url`. */
#define USHER_SSP_OPTIONS_INIT \
  { \
    sizeof(usher_ssp_options), NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
  }

/**
 * Makes an SSP delegate (OTVSSPLicenseDelegate).
 *
 * @param context  the context of its playbacks.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_ssp_delegate_new(
    usher_context *context, const usher_ssp_options *options, usher_delegate **out);

/** Options of an SSP V2 delegate, in addition to those of usher_ssp_options. A field that is 0 or NULL has the default
    that its comment states. */
typedef struct usher_ssp_v2_options {
  /** USHER_SSP_V2_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** The options for servers, headers and times. Not NULL. The delegate ignores `setup_url`, `setup_body` and
      `heartbeat_start`, since the licence request sets the session up. Set both `heartbeat_url` and `teardown_url`, or
      neither. */
  const usher_ssp_options *ssp;
  /** 1: usher_playback_close() with USHER_CLOSE_DEFAULT tears the session down. Default 0: it leaves the session to
      expire at the head-end. */
  int32_t teardown_on_close;
  /** 1: a zap leaves the session to expire. Default 0: a zap tears the session down, and the next item waits for the
      teardown. */
  int32_t leave_on_zap;
  /** JSON path ("a.b") of the session token in a licence reply. Default "sessionToken". */
  const char *token_field;
  /** JSON path of the keep-alive period in seconds. Default "heartbeat" (in any letter case). */
  const char *period_field;
  /** JSON path of the boolean that says whether licence renewals keep the session alive. Default "sessionDrmEnforced".
      */
  const char *enforced_field;
  /** Reply header that carries the session token if the body has none. Default: none. */
  const char *token_reply_header;
  /** The period of a session whose reply has no period, ms. Default 60000; USHER_OFF: the session then has no
      keep-alives. */
  uint32_t period_default_ms;
} usher_ssp_v2_options;

/** All defaults; you must still set `ssp`. */
#define USHER_SSP_V2_OPTIONS_INIT \
  { sizeof(usher_ssp_v2_options), NULL, 0, 0, NULL, NULL, NULL, NULL, 0 }

/**
 * Makes an SSP V2 delegate (OTVSSPLicenseDelegateV2): the first licence request of a playback sets its session up. If
 * the server refuses the request because of too many sessions, USHER_EVENT_SETUP_ERROR reports the refusal. If the
 * reply has no session token, the item plays without a session (USHER_EVENT_NO_SESSION).
 *
 * @param context  the context of its playbacks.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_ssp_v2_delegate_new(
    usher_context *context, const usher_ssp_v2_options *options, usher_delegate **out);

/** Options of a default or common delegate. A field that is 0 or NULL has the default that its comment states. URLs and
    headers have the same rules as in usher_ssp_options. */
typedef struct usher_default_options {
  /** USHER_DEFAULT_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** URL of the licence server. Required, except for a common delegate with a licence URL hook. */
  const char *license_url;
  /** URL of the certificate server. Default: none. */
  const char *certificate_url;
  /** Further headers for every request. Default: none. */
  const char *extra_headers;
  /** Name of the header that carries the content token of a playback that has one. Default "nv-authorizations". */
  const char *token_header;
  /** USHER_WIRE_...: form of Widevine licence requests. Default AUTO. */
  int32_t wire_format;
  /** Time limit for the answer of a hook, ms. Default 5000. */
  uint32_t hook_timeout_ms;
} usher_default_options;

/** All defaults. */
#define USHER_DEFAULT_OPTIONS_INIT \
  { sizeof(usher_default_options), NULL, NULL, NULL, NULL, 0, 0 }

/**
 * Makes a default delegate. It has a certificate URL, a licence URL, and the headers that
 * usher_delegate_set_http_header() sets. Its playbacks have no session and need no token.
 *
 * @param context  the context of its playbacks.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_default_delegate_new(
    usher_context *context, const usher_default_options *options, usher_delegate **out);

/**
 * Sets a header for all later licence requests of a delegate of any kind (setHTTPHeader). If a playback's token goes
 * into a header of the same name, the request carries the token instead.
 *
 * @param delegate  the delegate that makes the requests.
 * @param name      a header name. Not NULL.
 * @param value     no CR, LF or NUL, at most 64 kB; kept secret like a token. NULL removes the header.
 * @return USHER_OK, USHER_E_INVALID_HANDLE or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_set_http_header(usher_delegate *delegate, const char *name, const char *value);

/**
 * Sets or replaces the token callback (OTVSSPLicenseDelegate.setToken); `fn` NULL clears it.
 *
 * @param delegate   the delegate whose playbacks use the callback.
 * @param fn         the callback. NULL clears it; `destroy` then runs at once for this `user_data`.
 * @param user_data  passed to every call.
 * @param destroy    releases `user_data`: the last call with it. It runs after the callback was replaced, when the
 *                   library has freed the delegate, or if this function fails. May be NULL.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_set_token_callback(
    usher_delegate *delegate, usher_token_fn fn, void *user_data, usher_destroy_fn destroy);

/**
 * Opens connections to the servers of a delegate, so that the first play needs no time for name look-ups, TCP and TLS:
 * to the SSM server and the licence server. With the option `zap_without_waiting` the library opens two connections to
 * the SSM server, because a zap then uses two at once. The call takes no slot and needs no token.
 *
 * libcurl opens a connection only for a request. So the library sends `HEAD /` to each server, without tokens and
 * without `extra_headers`; the server may reply with any status. While `keep_ms` has not passed, the library sends such
 * a request again whenever a connection has been idle for three quarters of the time for which it may be used again: 15
 * s, or the time that the server's `Keep-Alive: timeout=` allows.
 *
 * A failure has no event: the request that needs the connection opens one itself, and reports its own error. The log
 * has each of these requests at the level debug. The call does nothing for servers that the library does not know:
 * those of a customer SSM delegate, and a licence server whose URL comes from a hook.
 *
 * @param delegate  the delegate whose servers the host will need.
 * @param keep_ms   how long the library keeps the connections ready, ms on the context's clock, counted from this call.
 *                  usher_delegate_free() does not end this time. A later call for the same server replaces this time.
 *                  0: the library opens the connections once, and does not keep them ready.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, or USHER_E_CLOSED after usher_context_close() began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_connect_ahead(usher_delegate *delegate, uint32_t keep_ms);

/**
 * Frees the handle. The delegate itself exists as long as playbacks or the context use it. NULL is a no-op.
 *
 * @param delegate  invalid after this call.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_free(usher_delegate *delegate);

/**
 * Answers a token callback.
 *
 * @param completion  the id that the callback received.
 * @param token       a header value: not only blanks, no control character except tab, at most 64 kB. NULL: the host
 *                    has no token; the request fails with USHER_E_NO_TOKEN or, if the library asked because a server
 *                    denied the previous token, with the error of that denial.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION if the question was answered before, its deadline has passed, its
 *         playback closes, or the id is unknown; USHER_E_INVALID_ARGUMENT if `token` is not such a header value (the
 *         question stays open).
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_token(usher_completion completion, const char *token);

#ifdef __cplusplus
}
#endif
#endif /* USHER_DELEGATE_H */
