/** @file
 * customer.h - customer SSM: the operator's own session management. The host talks to its servers; the library says when.
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

/** A licence the host is to get. The struct and all its pointers live until the callback returns. */
typedef struct usher_customer_request {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** The question, for usher_complete_license(). */
  usher_completion completion;
  /** For which; may be freed already. Not owned. */
  usher_playback *playback;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** USHER_KEY_SYSTEM_... */
  const char *key_system;
  /** The CDM's message: SPC, challenge. */
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
 * Licence callback (OTVCustomerSSMCallback.license): get a licence from your servers, setting your session up before the first. Answer with
 * usher_complete_license(), now or later, within `license_timeout_ms`.
 * Threads: a callback thread, in the order of the playback. May call: everything but blocking functions. Last call: before `destroy`.
 *
 * @param request    lives until return.
 * @param user_data  of the options.
 */
typedef void (*usher_customer_license_fn)(const usher_customer_request *request, void *user_data);

/**
 * Heartbeat or teardown callback (OTVCustomerSSMCallback.heartbeat). Answer with usher_complete_call(), now or later: a heartbeat within its part of the period
 * (see `heartbeat_timeout_ms`), a teardown within `teardown_timeout_ms`.
 * Threads: a callback thread, in the order of the playback. May call: everything but blocking functions. Last call: before `destroy`.
 *
 * @param completion  the question.
 * @param playback    for which; may be freed already. Not owned.
 * @param tag         the `tag` of the playback's options.
 * @param user_data   of the options.
 */
typedef void (*usher_customer_call_fn)(
    usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data);

/** How a customer SSM delegate works. 0 or NULL: the default written here. */
typedef struct usher_customer_options {
  /** USHER_CUSTOMER_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** The application certificate, up to 1 MiB. Default: none. */
  const uint8_t *certificate;
  /** Its length in bytes. */
  size_t certificate_size;
  /** Licences and renewals. Required. */
  usher_customer_license_fn license;
  /** Heartbeats. Default: none; periods pass in silence. */
  usher_customer_call_fn heartbeat;
  /** Called once when a playback that had a licence closes (ours: the SDKs have none). Default: none. */
  usher_customer_call_fn teardown;
  /** Given to all three. */
  void *user_data;
  /** Last call for `user_data`: when the delegate is gone, or when usher_customer_delegate_new() fails. May be NULL. */
  usher_destroy_fn destroy;
  /** How long the licence callback may take, ms. Default 10000; a renewal has no longer than a heartbeat. */
  uint32_t license_timeout_ms;
  /** How long a heartbeat or renewal may take, ms. Default: three eighths of the period, at least 1000. */
  uint32_t heartbeat_timeout_ms;
  /** How long the teardown callback may take, ms. Default 3000. */
  uint32_t teardown_timeout_ms;
  /** How long the payload callback may take, ms. Default 5000. */
  uint32_t payload_timeout_ms;
  /** As in usher_ssp_options. Default 50. */
  uint32_t jitter_permille;
  /** As in usher_ssp_options. Default 500. */
  uint32_t retry_permille;
  /** As in usher_ssp_options. Default 10. */
  uint32_t keep_alive_failures_max;
  /** USHER_SUSPEND_... Default KEEP. */
  int32_t suspend;
} usher_customer_options;

/** All defaults; `license` is still to be set. */
#define USHER_CUSTOMER_OPTIONS_INIT \
  { sizeof(usher_customer_options), NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0 }

/** What the licence callback got (OTVSSMLicenseResponse), or why it got nothing. Copied before return. */
typedef struct usher_customer_license {
  /** USHER_CUSTOMER_LICENSE_INIT sets it. */
  size_t struct_size;
  /** The licence for the CDM, up to 1 MiB. NULL: there is none, for the reason below. */
  const uint8_t *license;
  /** Its length in bytes. */
  size_t license_size;
  /** Period of heartbeats or renewals in seconds; 0: none. From 0 to 1e9, and below 0.05 as 0.05; a later answer changes it. */
  double heartbeat_s;
  /** USHER_RENEW_ENFORCED: the library asks for a renewal each period; USHER_RENEW_HEARTBEAT: it calls the heartbeat callback. 0: enforced. The first
      answer decides. */
  int32_t renew_type;
  /** HTTP status of your server, for the error; 0: none. */
  int32_t http_status;
  /** Your server's code, for the error; 1007 means too many sessions. 0: none. */
  int64_t service_code;
  /** One line for the error, up to 1000 bytes. May be NULL. */
  const char *message;
} usher_customer_license;

/** No licence, nothing said. */
#define USHER_CUSTOMER_LICENSE_INIT \
  { sizeof(usher_customer_license), NULL, 0, 0, 0, 0, 0, NULL }

/**
 * Makes a customer SSM delegate. The first licence opens the playback's session: USHER_EVENT_SESSION_STARTED tells its period.
 *
 * @param context  its playbacks belong to the same context.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT or USHER_E_CLOSED.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_customer_delegate_new(
    usher_context *context, const usher_customer_options *options, usher_delegate **out);

/**
 * Answers a licence callback.
 *
 * @param completion  the id the callback was given.
 * @param license     copied. NULL: there is none; the request fails with USHER_E_CALLBACK.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION when answered before, too late, or unknown; USHER_E_INVALID_ARGUMENT for a period below 0 or not a number, a
 *         renew type that is none, a licence of 0 bytes or too large (the question stays open).
 * Threads: any. In callbacks: yes, also in the asking one. Since: 0.1
 */
USHER_API int32_t usher_complete_license(usher_completion completion, const usher_customer_license *license);

/**
 * Answers a heartbeat or teardown callback.
 *
 * @param completion  the id the callback was given.
 * @param status      USHER_OK: done. USHER_E_SESSION, USHER_E_REFUSED, USHER_E_LIMIT: your server ended the session; playback must stop. Any other
 *                    USHER_E_...: it failed; a heartbeat is tried again inside its period.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION; USHER_E_INVALID_ARGUMENT for a status that is none (the question stays open).
 * Threads: any. In callbacks: yes, also in the asking one. Since: 0.1
 */
USHER_API int32_t usher_complete_call(usher_completion completion, int32_t status);

#ifdef __cplusplus
}
#endif
#endif /* USHER_CUSTOMER_H */
