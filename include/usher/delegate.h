/** @file
 * delegate.h - licence delegates: how licences are asked for. Here: the default delegate, the SSP delegate with SSM v1, SSP V2. More: hooks.h
 * (common delegate), tokens.h (multi-instance), customer.h (customer SSM).
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
/** Adds the version unless the URL ends with one. */
#define USHER_APPEND_AUTO 0
/** Adds it. */
#define USHER_APPEND_ALWAYS 1
/** The URL is whole. */
#define USHER_APPEND_NEVER 2

/* heartbeat_missing */
/** A set-up error. */
#define USHER_HEARTBEAT_MISSING_ERROR 0
/** A session without keep-alives. */
#define USHER_HEARTBEAT_MISSING_NO_TIMER 1

/* heartbeat_start */
/** The first period begins when set-up was answered. */
#define USHER_HEARTBEAT_START_SETUP 0
/** The first period begins when the first licence came. */
#define USHER_HEARTBEAT_START_LICENSE 1

/* keep_alive */
/** As the first licence reply says. */
#define USHER_KEEP_ALIVE_AUTO 0
/** By heartbeats. */
#define USHER_KEEP_ALIVE_HEARTBEAT 1
/** By licence renewals. */
#define USHER_KEEP_ALIVE_RENEWAL 2

/* resetup_on_extra_license */
/** Set up again where there is a token callback to ask. */
#define USHER_RESETUP_CALLBACK_ONLY 0
/** Set up again. */
#define USHER_RESETUP_ALWAYS 1
/** The session is used again. */
#define USHER_RESETUP_NEVER 2

/* wire_format */
/** JSON for Widevine. */
#define USHER_WIRE_AUTO 0
/** Octets both ways. */
#define USHER_WIRE_RAW 1

/* suspend */
/** Keep-alives go on while the host is suspended. */
#define USHER_SUSPEND_KEEP 0
/** No keep-alives until the host is resumed. */
#define USHER_SUSPEND_PAUSE 1

/**
 * Token callback (OTVSSPTokenCallback.token()): asks for a fresh content token, because a further licence request came, or none was given at the start.
 * Answer with usher_complete_token(), now or later, within the delegate's `token_timeout_ms`.
 * Threads: a callback thread, in the order of the playback. May call: everything but blocking functions. Last call: before `destroy`.
 *
 * @param completion  the question, for usher_complete_token().
 * @param playback    which playback needs it; may be freed already. Not owned.
 * @param tag         the `tag` of the playback's options.
 * @param user_data   as usher_delegate_set_token_callback() was given it.
 */
typedef void (*usher_token_fn)(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data);

/**
 * How an SSP delegate works. 0 or NULL: the default written here. Strings are copied. URLs: http or https, up to 8 kB; a query is kept and comes after the
 * joined path. Headers: "Name: value" lines separated by '\n'; CR and NUL are refused.
 */
typedef struct usher_ssp_options {
  /** USHER_SSP_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** Licence server. Required. */
  const char *license_url;
  /** Certificate server (FairPlay application certificate). Default: none; certificate requests answer USHER_E_STATE. */
  const char *certificate_url;
  /** Secure Session Manager. Default: none; playbacks then have no session. With or without trailing '/' and '/v1'. */
  const char *ssm_url;
  /** 1: usher_player_play() waits for set-up, at most `setup_timeout_ms`, and usher_playback_close() for teardown, at most `teardown_timeout_ms`. What
      does not end in time goes on in the background. Default 0: neither waits. */
  int32_t sync_setup_teardown;
  /** USHER_APPEND_...: whether `ssm_api_version` is added to ssm_url. Default AUTO: unless its last segment is v and digits. */
  int32_t ssm_append_version;
  /** Default "v1". */
  const char *ssm_api_version;
  /** Whole URL for set-up, where it does not follow from the above; without ssm_url all or none of this and the next two. Default: none. */
  const char *setup_url;
  /** Whole URL for heartbeats. Default: none. */
  const char *heartbeat_url;
  /** Whole URL for teardown. Default: none. */
  const char *teardown_url;
  /** Whole URL for renewals of Widevine licences. Default: none. */
  const char *renewal_url;
  /** Name of the header that carries the tokens. Default "nv-authorizations". */
  const char *token_header;
  /** More headers for every request of this delegate (e.g. a tenant id). Default: none. */
  const char *extra_headers;
  /** JSON object sent as the body of set-up. Default "{}"; "" for an empty body. */
  const char *setup_body;
  /** Body of heartbeat and teardown. Default "{}"; "" for an empty body. */
  const char *keep_alive_body;
  /** Cap of the wait for set-up in sync mode and in usher_playback_wait_session(), ms. Default 5000. */
  uint32_t setup_timeout_ms;
  /** Cap of every wait for teardown, ms. Default 3000. */
  uint32_t teardown_timeout_ms;
  /** How long the token callback may take, ms. Default 5000. */
  uint32_t token_timeout_ms;
  /** How long the payload callback may take, ms. Default 5000. */
  uint32_t payload_timeout_ms;
  /** USHER_HEARTBEAT_MISSING_...: set-up answered without a usable period. Default: set-up error. */
  int32_t heartbeat_missing;
  /** USHER_HEARTBEAT_START_...: when the first period begins. Default: when set-up was answered. */
  int32_t heartbeat_start;
  /** 1: a numeric string is a period too ("60"). Default 0. */
  int32_t lenient_numbers;
  /** Least period, ms; a shorter one is made this. Default 50. */
  uint32_t period_min_ms;
  /** Most, ms. Default 86400000 (a day). */
  uint32_t period_max_ms;
  /** 1: a period in a keep-alive reply replaces the one of set-up. Default 0. */
  int32_t period_updates;
  /** A beat is early by up to this many thousandths of its period, different for each playback. Default 50 (5 %); USHER_OFF: none. Most 500. */
  uint32_t jitter_permille;
  /** A keep-alive that failed in transport, with 5xx or 429 is tried again for this many thousandths of the period. Default 500; USHER_OFF: never. */
  uint32_t retry_permille;
  /** Outages: after this many periods without an answered keep-alive, stop trying. Default 10; USHER_OFF: never stop. */
  uint32_t keep_alive_failures_max;
  /** USHER_KEEP_ALIVE_...: how the session is kept alive. Default AUTO: as the first licence reply says. */
  int32_t keep_alive;
  /** USHER_RESETUP_...: what a further non-renewal licence request of one playback does to its session. Default: with a token callback, teardown and
      set-up with the new token; without, the session is used again. */
  int32_t resetup_on_extra_license;
  /** USHER_WIRE_...: AUTO = JSON for Widevine, RAW = octets both ways. The reply decodes either. Default AUTO. */
  int32_t wire_format;
  /** A teardown that failed in transport, with 5xx or 429 is tried again this often (after 0.5 s, 1 s, 2 s ...). Default 3; USHER_OFF: never. What waits
      for the slot goes on at `teardown_timeout_ms` all the same. */
  uint32_t teardown_retries;
  /** How long a playback that was given no content token waits for usher_playback_set_content_token(), where there is no token callback, ms. Default 5000;
      USHER_OFF: not at all. */
  uint32_t token_wait_ms;
  /** How long a hook may take, ms. Default 5000. */
  uint32_t hook_timeout_ms;
  /** USHER_SUSPEND_...: keep-alives while the host is suspended. Default KEEP. */
  int32_t suspend;
  /** Time for one heartbeat or enforced renewal, ms, so that one that stalls can be tried again inside the period. Default: three eighths of the period, at
      least 1000; never more than the context's http_timeout_ms. */
  uint32_t keep_alive_timeout_ms;
} usher_ssp_options;

/** All defaults; `license_url` is still to be set. */
#define USHER_SSP_OPTIONS_INIT \
  { \
    sizeof(usher_ssp_options), NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
  }

/**
 * Makes an SSP delegate (OTVSSPLicenseDelegate).
 *
 * @param context  its playbacks belong to the same context.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT or USHER_E_CLOSED.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_ssp_delegate_new(
    usher_context *context, const usher_ssp_options *options, usher_delegate **out);

/** How an SSP V2 delegate works, beside its usher_ssp_options. 0 or NULL: the default written here. */
typedef struct usher_ssp_v2_options {
  /** USHER_SSP_V2_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** Servers, headers, times. Its `setup_url`, `setup_body` and `heartbeat_start` are not used: the licence request sets the session up (whole URLs are
      those for heartbeats and teardown, both or none). Not NULL. */
  const usher_ssp_options *ssp;
  /** 1: usher_playback_close() with USHER_CLOSE_DEFAULT tears down. Default 0: the session is left to expire at the head-end. */
  int32_t teardown_on_close;
  /** 1: a zap leaves the session to expire. Default 0: it tears down, and the next item waits for that. */
  int32_t leave_on_zap;
  /** JSON path ("a.b") of the session token in a licence reply. Default "sessionToken". */
  const char *token_field;
  /** JSON path of the keep-alive period, seconds. Default "heartbeat" (in any case). */
  const char *period_field;
  /** JSON path of the boolean that says whether licence renewals keep the session alive. Default "sessionDrmEnforced". */
  const char *enforced_field;
  /** A header of the reply that carries the session token where the body has none. Default: none. */
  const char *token_reply_header;
  /** Period where the reply names none, ms. Default 60000; USHER_OFF: no keep-alives then. */
  uint32_t period_default_ms;
} usher_ssp_v2_options;

/** All defaults; `ssp` is still to be set. */
#define USHER_SSP_V2_OPTIONS_INIT \
  { sizeof(usher_ssp_v2_options), NULL, 0, 0, NULL, NULL, NULL, NULL, 0 }

/**
 * Makes an SSP V2 delegate (OTVSSPLicenseDelegateV2): the first licence request of a playback sets its session up. A refusal for too many sessions is told as
 * USHER_EVENT_SETUP_ERROR. A reply without session token plays without a session (USHER_EVENT_NO_SESSION).
 *
 * @param context  its playbacks belong to the same context.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT or USHER_E_CLOSED.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_ssp_v2_delegate_new(
    usher_context *context, const usher_ssp_v2_options *options, usher_delegate **out);

/** How a default or common delegate works. 0 or NULL: the default written here. URLs and headers as in usher_ssp_options. */
typedef struct usher_default_options {
  /** USHER_DEFAULT_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** Licence server. Required, but for a common delegate with a licence URL hook. */
  const char *license_url;
  /** Certificate server. Default: none. */
  const char *certificate_url;
  /** More headers for every request. Default: none. */
  const char *extra_headers;
  /** Name of the header that carries a playback's content token, where it has one. Default "nv-authorizations". */
  const char *token_header;
  /** USHER_WIRE_...: Widevine's form. Default AUTO. */
  int32_t wire_format;
  /** How long a hook may take, ms. Default 5000. */
  uint32_t hook_timeout_ms;
} usher_default_options;

/** All defaults. */
#define USHER_DEFAULT_OPTIONS_INIT \
  { sizeof(usher_default_options), NULL, NULL, NULL, NULL, 0, 0 }

/**
 * Makes a default delegate: a certificate URL, a licence URL, the headers of usher_delegate_set_http_header(). No session, and no token is needed.
 *
 * @param context  its playbacks belong to the same context.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT or USHER_E_CLOSED.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_default_delegate_new(
    usher_context *context, const usher_default_options *options, usher_delegate **out);

/**
 * Sets a header of the licence requests to come, of every kind of delegate (setHTTPHeader). Where a playback has a token of its own for the same header,
 * that one is sent.
 *
 * @param delegate  whose requests.
 * @param name      a header name. Not NULL.
 * @param value     no CR, LF or NUL, at most 64 kB; kept secret like a token. NULL takes the header away.
 * @return USHER_OK, USHER_E_INVALID_HANDLE or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_set_http_header(usher_delegate *delegate, const char *name, const char *value);

/**
 * Sets, replaces (or with fn NULL clears) the token callback (OTVSSPLicenseDelegate.setToken).
 *
 * @param delegate   whose playbacks ask it.
 * @param fn         NULL clears it; `user_data` is then let go of at once.
 * @param user_data  given to every call.
 * @param destroy    last call for `user_data`: when replaced, when the delegate is gone, or when this function fails. May be NULL.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_set_token_callback(
    usher_delegate *delegate, usher_token_fn fn, void *user_data, usher_destroy_fn destroy);

/**
 * Frees the handle. The delegate itself lives on while playbacks or the context use it. NULL is a no-op.
 * @param delegate  stale from now on.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_free(usher_delegate *delegate);

/**
 * Answers a token callback.
 *
 * @param completion  the id the callback was given.
 * @param token       a header value: not empty, no CR, LF or NUL, at most 64 kB. NULL: there is none; the request fails with USHER_E_NO_TOKEN.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION when answered before, too late, or unknown; USHER_E_INVALID_ARGUMENT for a token that is none (the
 *         question stays open).
 * Threads: any. In callbacks: yes, also in the asking one. Since: 0.1
 */
USHER_API int32_t usher_complete_token(usher_completion completion, const char *token);

#ifdef __cplusplus
}
#endif
#endif /* USHER_DELEGATE_H */
