/** @file
 * customer.h - customer SSM: the operator's own session management. The host sends the requests to its own servers; the
 * library calls the host when a request is due.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_CUSTOMER_H
#define USHER_CUSTOMER_H

#include "base.h"
#include "delegate.h"
#include "license.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A licence that the host must get. The struct and everything it points to live until the callback returns. */
typedef struct usher_customer_request {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** The question, for usher_complete_license(). */
  usher_completion completion;
  /** The playback. Not owned; you may have freed it already. */
  usher_playback *playback;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** One of the strings USHER_KEY_SYSTEM_..., for example "94CE86FB-..." for FairPlay. They are in upper case, as in
      the SDKs. */
  const char *key_system;
  /** The CDM's message: SPC or challenge. */
  const uint8_t *payload;
  /** Its length in bytes. */
  size_t payload_size;
  /** USHER_LICENSE_REQUEST or USHER_LICENSE_RENEWAL. */
  int32_t type;
  /** Length of `asset_id` in bytes. */
  size_t asset_id_size;
  /** Asset ID of the licence request; NULL: none. */
  const uint8_t *asset_id;
} usher_customer_request;

/**
 * Licence callback (OTVCustomerSSMCallback.license): get a licence from your servers. Answer with
 * usher_complete_license(), in the callback or later, within `license_timeout_ms`.
 *
 * Before the first licence of a playback, set your session up. If you then answer without a licence, or too late, end
 * your session yourself: for the library the playback has no session, so it does not call the teardown callback.
 *
 * While renewals keep the session alive (USHER_RENEW_ENFORCED), the library calls this callback again each period with
 * the type USHER_LICENSE_RENEWAL. The payload of a renewal comes from the payload callback of the playback. Without
 * that callback, the library uses the payload and the `key_system` of the last request that the host made for this
 * playback, and `asset_id` is NULL. That last request may be one for another track, or a renewal.
 *
 * The callbacks and observers of one playback run one at a time. So if this callback blocks longer than its time limit,
 * observers receive the events of the time-out only after it has returned. The same is true for the callbacks below.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes". Last call: before `destroy`.
 *
 * @param request    valid until the callback returns.
 * @param user_data  from the delegate's options.
 */
typedef void (*usher_customer_license_fn)(const usher_customer_request *request, void *user_data);

/**
 * Heartbeat callback without an answer (OTVCustomerSSMCallback.heartbeat()): send a heartbeat to your server, and
 * return. The library takes the return as success; the heartbeat fails only if the callback does not return within
 * `heartbeat_timeout_ms`. If your server refuses the heartbeat, close the playback.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes". Last call: before `destroy`.
 *
 * @param playback   the playback. Not owned; you may have freed it already.
 * @param tag        the `tag` of the playback's options.
 * @param user_data  from the delegate's options.
 */
typedef void (*usher_customer_heartbeat_fn)(usher_playback *playback, uint64_t tag, void *user_data);

/**
 * Heartbeat callback with a result, or teardown callback. Answer with usher_complete_call(), in the callback
 * or later: a heartbeat within `heartbeat_timeout_ms`, a teardown within `teardown_timeout_ms`.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes". Last call: before `destroy`.
 *
 * @param completion  the question, for usher_complete_call().
 * @param playback    the playback. Not owned; you may have freed it already.
 * @param tag         the `tag` of the playback's options.
 * @param user_data   from the delegate's options.
 */
typedef void (*usher_customer_call_fn)(
    usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data);

/** Options of a customer SSM delegate. A field that is 0 or NULL has the default that its comment states. */
typedef struct usher_customer_options {
  /** USHER_CUSTOMER_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** The application certificate, up to 1 MiB, for usher_playback_get_certificate() and
      usher_playback_request_certificate(), which return these bytes; the library has no other use for the
      certificate. Default: none; those functions then return USHER_E_STATE. */
  const uint8_t *certificate;
  /** Its length in bytes. */
  size_t certificate_size;
  /** The callback that gets licences and renewals from your servers. Default: none; then set the callbacks with
      usher_delegate_set_customer_callbacks(). */
  usher_customer_license_fn license;
  /** The callback that sends heartbeats and answers with a result. Default: none. If neither this callback nor
      `simple_heartbeat` is set, the library calls nothing when a heartbeat is due, and reports no
      USHER_EVENT_KEPT_ALIVE. */
  usher_customer_call_fn heartbeat;
  /** The callback that ends the session at your servers. It runs once when a playback that had a licence closes,
      also if you answered a heartbeat with USHER_E_SESSION. It does not run if the playback closes with
      USHER_CLOSE_LEAVE, or if you answered a Widevine renewal with code 1006. The SDKs have no such callback.
      Default: none; the session then stays active at your servers, USHER_EVENT_SESSION_ENDED has `left` = 1, and
      the next item may start before the session ends. */
  usher_customer_call_fn teardown;
  /** Passed to the callbacks. */
  void *user_data;
  /** Releases `user_data`: the last call with it. It runs when the library has freed the delegate, or if
      usher_customer_delegate_new() fails. May be NULL. */
  usher_destroy_fn destroy;
  /** Time limit for the answer of the licence callback, ms. Default 10000. For a renewal at most
      `heartbeat_timeout_ms`. */
  uint32_t license_timeout_ms;
  /** Time limit for the answer to a heartbeat or renewal, ms. Default: three eighths of the period, at least 1000. */
  uint32_t heartbeat_timeout_ms;
  /** Time limit for the answer of the teardown callback, ms. Default 3000. */
  uint32_t teardown_timeout_ms;
  /** Time limit for the answer of the payload callback, ms. Default 5000. */
  uint32_t payload_timeout_ms;
  /** As in usher_ssp_options. Default 50. */
  uint32_t jitter_permille;
  /** How long the library retries a failed heartbeat or renewal, in thousandths of the period, counted from the
      time at which it was due; `retry_permille` in usher_ssp_options has the details. usher_complete_call() and
      usher_complete_license() say after which failures the library retries. Default 1000; USHER_OFF: no retry. */
  uint32_t retry_permille;
  /** As in usher_ssp_options. Default 10. */
  uint32_t keep_alive_failures_max;
  /** USHER_SUSPEND_... Default KEEP. */
  int32_t suspend;
  /** The callback that sends heartbeats without a result: the library takes its return as success. Set this or
      `heartbeat`, not both. Default: none. */
  usher_customer_heartbeat_fn simple_heartbeat;
  /** 1: a zap to an item of this delegate does not wait for the answer of the teardown callback: the library calls
      `license` for the next item as soon as the host requests its licence. If `license` fails with
      the code 1007 because the earlier session still exists, the library waits for the teardown, at most
      `teardown_timeout_ms`, and calls `license` once more. Default 0: `license` waits for the answer of the teardown
      callback. */
  int32_t zap_without_waiting;
} usher_customer_options;

/** All defaults. */
#define USHER_CUSTOMER_OPTIONS_INIT \
  { sizeof(usher_customer_options), NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0 }

/** The callbacks of a customer SSM delegate (OTVCustomerSSMCallback), as in usher_customer_options. */
typedef struct usher_customer_callbacks {
  /** USHER_CUSTOMER_CALLBACKS_INIT sets it. */
  size_t struct_size;
  /** Gets licences and renewals. Required. */
  usher_customer_license_fn license;
  /** The callback that sends heartbeats and answers with a result. Default: none. */
  usher_customer_call_fn heartbeat;
  /** Ends the session. Default: none. */
  usher_customer_call_fn teardown;
  /** The callback that sends heartbeats without a result: the library takes its return as success. Set this or
      `heartbeat`, not both. Default: none. */
  usher_customer_heartbeat_fn simple_heartbeat;
} usher_customer_callbacks;

/** No callbacks; you must still set `license`. */
#define USHER_CUSTOMER_CALLBACKS_INIT \
  { sizeof(usher_customer_callbacks), NULL, NULL, NULL, NULL }

/** The answer of a licence callback (OTVSSMLicenseResponse): a licence, or the reason why the host has no licence.
    usher_complete_license() copies this struct and everything it points to. */
typedef struct usher_customer_license {
  /** USHER_CUSTOMER_LICENSE_INIT sets it. */
  size_t struct_size;
  /** The licence for the CDM, up to 1 MiB. NULL: the host has no licence; the fields below say why. */
  const uint8_t *license;
  /** Its length in bytes. */
  size_t license_size;
  /** Period of heartbeats or renewals in seconds, 0 to 1e9; 0: no keep-alives; a value between 0 and 0.05 counts as
      0.05. A later answer may change the period. */
  double heartbeat_s;
  /** USHER_RENEW_ENFORCED: the library calls the licence callback for a renewal each period. USHER_RENEW_HEARTBEAT: it
      calls the heartbeat callback. USHER_RENEW_NONE: neither. USHER_RENEW_DEFAULT (0): the same as
      USHER_RENEW_ENFORCED. USHER_RENEW_CDM is not possible here. The first answer decides. In later answers the library
      only checks that this value is valid. */
  int32_t renew_type;
  /** HTTP status of your server, for `http_status` of the error; 0: none. */
  int32_t http_status;
  /** Your server's code, for `service_code` of the error. 0: none. If the answer to the request that opens the session
      has the code 1007 and no licence, the account has too many sessions: the library reports USHER_EVENT_SETUP_ERROR
      with USHER_E_LIMIT and the origin USHER_ORIGIN_SSM, and the session has failed. With every other code the status
      is USHER_E_REFUSED. */
  int64_t service_code;
  /** One line for the error's message, up to 1000 bytes. May be NULL. */
  const char *message;
  /** The server that failed, for `origin` of the error: USHER_ORIGIN_LICENSE or USHER_ORIGIN_SSM. The explanations
      of `service_code` depend on this server. USHER_ORIGIN_LOCAL (0): you do not know the server. The error then
      has USHER_ORIGIN_LICENSE (for Widevine renewals: USHER_ORIGIN_SSM), or USHER_ORIGIN_LOCAL if `http_status` and
      `service_code` are both 0. */
  int32_t origin;
} usher_customer_license;

/** The initial value of an answer: no licence and no reason. */
#define USHER_CUSTOMER_LICENSE_INIT \
  { sizeof(usher_customer_license), NULL, 0, 0, 0, 0, 0, NULL, 0 }

/**
 * Makes a customer SSM delegate. The first licence opens the playback's session, and USHER_EVENT_SESSION_STARTED
 * reports its period.
 *
 * @param context  the context of its playbacks.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_customer_delegate_new(
    usher_context *context, const usher_customer_options *options, usher_delegate **out);

/**
 * Sets or replaces the callbacks of a customer SSM delegate (OTVCustomerSSMDelegate.setCallback), for all calls from
 * now on. A licence request of a delegate without callbacks fails with USHER_E_STATE. If you remove the callbacks
 * during a session, the session continues: its heartbeats and renewals fail with USHER_E_CALLBACK until you set
 * callbacks again, and its teardown fails with USHER_EVENT_TEARDOWN_ERROR. So close the playbacks of the delegate
 * first.
 *
 * @param delegate   a customer SSM delegate.
 * @param callbacks  copied before return. NULL removes the callbacks; `destroy` then runs at once for this `user_data`.
 * @param user_data  passed to the callbacks.
 * @param destroy    releases `user_data`: the last call with it. It runs when the library no longer calls these
 *                   callbacks, or if this function fails. May be NULL.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT if `license` is missing or both heartbeat
 *         callbacks are set; USHER_E_STATE for a delegate of another kind.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_set_customer_callbacks(
    usher_delegate *delegate, const usher_customer_callbacks *callbacks, void *user_data, usher_destroy_fn destroy);

/**
 * Answers a licence callback.
 *
 * If the answer to a renewal of the library has no licence, the library retries the renewal as long as the option
 * `retry_permille` allows, in three cases:
 * - `http_status` is 429, or 500 and more, with or without a service code;
 * - the answer has neither an HTTP status nor a service code;
 * - the answer does not come in time.
 * Any other answer without a licence, for example with HTTP status 404 or with only a service code, is final: the
 * library reports USHER_EVENT_HEARTBEAT_ERROR at once, and the session has failed.
 *
 * @param completion  the id that the callback received.
 * @param license     copied. NULL: the host has no licence; the request fails with USHER_E_CALLBACK.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION if the question was answered before or its deadline has passed, or the
 *         id is unknown; USHER_E_INVALID_ARGUMENT for a period that is negative, not a number or more than 1e9, a renew
 *         type that is unknown or USHER_RENEW_CDM, a licence of 0 bytes or more than 1 MiB, a message of more than
 *         1000 bytes, or an `origin` that the comment of this field does not name (the question stays open).
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_license(usher_completion completion, const usher_customer_license *license);

/**
 * Answers a heartbeat or teardown callback.
 *
 * @param completion  the id that the callback received.
 * @param status      USHER_OK: done. For a heartbeat, USHER_E_SESSION, USHER_E_REFUSED and USHER_E_LIMIT mean that your
 *                    server ended the session: the library reports USHER_EVENT_HEARTBEAT_ERROR with this status at
 *                    once, and playback must stop. Any other USHER_E_... means that the heartbeat failed: the library
 *                    retries it as long as the option `retry_permille` allows. For a teardown, USHER_E_SESSION means
 *                    that your server no longer has the session: the teardown is done. After any other USHER_E_... the
 *                    library reports USHER_EVENT_TEARDOWN_ERROR and does not retry the teardown. The errors of these
 *                    events have your status and USHER_ORIGIN_SSM if your status is USHER_E_SESSION, USHER_E_REFUSED,
 *                    USHER_E_LIMIT, USHER_E_TRANSPORT, USHER_E_TLS, USHER_E_TIMEOUT, USHER_E_HTTP, USHER_E_PROTOCOL,
 *                    USHER_E_TOO_LARGE or USHER_E_REDIRECT. After any other status the errors have USHER_E_CALLBACK and
 *                    USHER_ORIGIN_LOCAL, and their message is usher_status_message() of your status.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION if the question was answered before or its deadline has passed, or the
 *         id is unknown; USHER_E_INVALID_ARGUMENT for an unknown status (the question stays open).
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_call(usher_completion completion, int32_t status);

#ifdef __cplusplus
}
#endif
#endif /* USHER_CUSTOMER_H */
