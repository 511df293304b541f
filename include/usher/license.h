/** @file
 * license.h - licence and certificate requests, with a completion or blocking.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_LICENSE_H
#define USHER_LICENSE_H

#include "base.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The key systems. Each string is the key system's DASH ContentProtection identifier. Functions also accept an
   identifier in lower case, and with "urn:uuid:" before it. */
/** FairPlay Streaming. */
#define USHER_KEY_SYSTEM_FAIRPLAY "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2"
/** Widevine. */
#define USHER_KEY_SYSTEM_WIDEVINE "EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"
/** PlayReady. */
#define USHER_KEY_SYSTEM_PLAYREADY "9A04F079-9840-4286-AB92-E65BE0885F95"
/** W3C Clear Key. */
#define USHER_KEY_SYSTEM_CLEARKEY "1077EFEC-C0B2-4D02-ACE3-3C1E52E2FB4B"

/* type */
/** A licence for new keys. */
#define USHER_LICENSE_REQUEST 0
/** A licence that prolongs an earlier one. */
#define USHER_LICENSE_RENEWAL 1

/* renew_type */
/** Only for `renew_type` in the host's answer to a licence callback of customer SSM, where it means the same as
    USHER_RENEW_ENFORCED. In usher_response_info, `renew_type` never has this value. */
#define USHER_RENEW_DEFAULT 0
/** Heartbeats keep the session alive. */
#define USHER_RENEW_HEARTBEAT 1
/** The library's own licence renewals keep the session alive. */
#define USHER_RENEW_ENFORCED 2
/** The CDM itself asks for renewals (Widevine). */
#define USHER_RENEW_CDM 3
/** Nothing keeps the session alive, or the playback has no session. */
#define USHER_RENEW_NONE 4

/** The licence request that the CDM made. The library copies it before return. */
typedef struct usher_license_request {
  /** USHER_LICENSE_REQUEST_INIT sets it. */
  size_t struct_size;
  /** USHER_KEY_SYSTEM_... Required. */
  const char *key_system;
  /** USHER_LICENSE_REQUEST or USHER_LICENSE_RENEWAL. */
  int32_t type;
  /** Time limit for the answer on the context's clock, ms, including the wait for the session. The request does not
      time out while the library waits for a slot (`slot_wait_ms` of the SSP delegate): the time limit then begins again
      whenever it has passed. Default 20000; USHER_OFF: only the time limits of the single steps apply. */
  uint32_t timeout_ms;
  /** The CDM's message: FairPlay SPC, Widevine challenge, PlayReady SOAP, Clear Key JSON. 1 byte to 1 MiB. Required. */
  const uint8_t *payload;
  /** Its length in bytes. */
  size_t payload_size;
  /** Identifies the content for which the host requests the licence: the text of the `skd:` URL, or the asset ID
      (base64 of JSON with "ContentId"), up to 64 kB. Hooks receive it, and a multi-instance delegate uses it to find
      the content token. Default: none; the request uses the playback's own token. */
  const uint8_t *asset_id;
  /** Its length in bytes. */
  size_t asset_id_size;
} usher_license_request;

/** All defaults; you must still set `key_system` and `payload`. */
#define USHER_LICENSE_REQUEST_INIT \
  { sizeof(usher_license_request), NULL, 0, 0, NULL, 0, NULL, 0 }

/** An answer. If a completion received it, everything that it points to lives until the completion returns. If
    usher_response_get() filled it, everything lives until the response is freed. */
typedef struct usher_response_info {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** The data for the CDM: CKC, Widevine licence, PlayReady SOAP reply, Clear Key JSON; or a certificate. NULL on
      error. */
  const uint8_t *data;
  /** The length of `data` in bytes; 0 on error. */
  size_t data_size;
  /** Keep-alive period of the session, ms; 0: none. */
  uint64_t period_ms;
  /** USHER_RENEW_...: what keeps the session alive. */
  int32_t renew_type;
  /** USHER_LICENSE_...: the type of the request to which this is the answer. */
  int32_t type;
  /** The error. Its `status` is USHER_OK if there is data. */
  usher_error error;
} usher_response_info;

/** For usher_response_get() to fill. */
#define USHER_RESPONSE_INFO_INIT \
  { \
    sizeof(usher_response_info), NULL, 0, 0, 0, 0, { 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0 } \
  }

/**
 * Completion of a request for a licence, a certificate, a content identifier or a resource; runs exactly once for each
 * request that the library accepted. Also the type of `renewed` in usher_playback_options, which runs once for each
 * renewed licence.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes". Last call: a completion runs only once; the last call of `renewed` comes before `destroy`.
 *
 * @param playback   the playback that made the request. Not owned; you may have freed it already.
 * @param response   the answer; valid until the callback returns.
 * @param tag        the `tag` of the playback's options.
 * @param user_data  as the function that made the request received it.
 */
typedef void (*usher_license_fn)(
    usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data);

/**
 * Requests a licence and returns at once; `fn` receives the answer. If the SSM session is still being set up, the
 * request waits for it. The request carries the content token and the session token; a renewal carries only the session
 * token.
 *
 * @param playback   the playback that needs the licence.
 * @param request    copied before return. Not NULL.
 * @param fn         receives the answer, exactly once: USHER_OK with data, or USHER_E_CLOSED, USHER_E_REPLACED,
 *                   USHER_E_TIMEOUT, the reason why set-up failed (e.g. USHER_E_LIMIT), USHER_E_SESSION if the session
 *                   ended after set-up (the library then does not send the request), USHER_E_STATE (no URL for this
 *                   kind of request), USHER_E_CALLBACK or USHER_E_DECLINED (from a hook or a licence callback),
 *                   USHER_E_SYSTEM, USHER_E_NO_TOKEN, USHER_E_REFUSED, USHER_E_HTTP, USHER_E_TRANSPORT, USHER_E_TLS,
 *                   USHER_E_PROTOCOL, USHER_E_TOO_LARGE, USHER_E_REDIRECT. Not NULL.
 * @param user_data  passed to `fn`.
 * @param destroy    releases `user_data`: the last call with it. It runs after `fn`, or if this function fails. May be
 *                   NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED if the playback is closed.
 *         If this function does not return USHER_OK, `fn` does not run.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_request_license(usher_playback *playback, const usher_license_request *request,
    usher_license_fn fn, void *user_data, usher_destroy_fn destroy);

/**
 * Requests a licence and waits for it.
 *
 * @param playback  the playback that needs the licence.
 * @param request   copied. Not NULL. Its `timeout_ms` limits the wait; the comment of that field says what
 *                  `slot_wait_ms` changes.
 * @param out       a response to free with usher_response_free(), also if the answer is an error; NULL if the
 *                  function refused the call. May be NULL.
 * @return USHER_OK, or the status of the error as in usher_playback_request_license(); USHER_E_WOULD_DEADLOCK in a
 *         callback or on the pumping thread.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: no. Since: 0.1
 */
USHER_API int32_t usher_playback_get_license(
    usher_playback *playback, const usher_license_request *request, usher_response **out);

/**
 * Gets the delegate's certificate and waits for it. The library fetches the certificate once and keeps it in memory;
 * after a failure, the next call fetches again.
 *
 * @param playback    the playback whose delegate supplies the certificate.
 * @param timeout_ms  longest wait on the context's clock, ms. 0: 10000.
 * @param out         as in usher_playback_get_license(). `data` is the certificate (DER; Widevine: protobuf). If the
 *                    reply is text without a certificate, or DER that is cut short, the call fails with
 *                    USHER_E_PROTOCOL.
 * @return USHER_OK; USHER_E_STATE without a certificate URL; the status of the error; USHER_E_INVALID_HANDLE;
 *         USHER_E_WOULD_DEADLOCK in a callback or on the pumping thread; USHER_E_CLOSED if the playback is closed.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: no. Since: 0.1
 */
USHER_API int32_t usher_playback_get_certificate(usher_playback *playback, uint32_t timeout_ms, usher_response **out);

/**
 * Requests the delegate's certificate and returns at once; `fn` receives the answer.
 *
 * @param playback   the playback whose delegate supplies the certificate.
 * @param fn         receives the answer, exactly once. Not NULL.
 * @param user_data  passed to `fn`.
 * @param destroy    releases `user_data`: the last call with it. It runs after `fn`, or if this function fails. May be
 *                   NULL.
 * @return as usher_playback_request_license(), and USHER_E_STATE without a certificate URL.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_request_certificate(
    usher_playback *playback, usher_license_fn fn, void *user_data, usher_destroy_fn destroy);

/**
 * Gets the content identifier of a `skd:` URL or asset ID from the delegate, and waits for it (Apple:
 * contentIdentifier(url:)). If the delegate has a content identifier hook, the hook makes the identifier. Otherwise the
 * library removes the scheme, cuts the text at '?' or '#' and decodes percent-coding and base64 (any variant). If the
 * text is not base64 of JSON, the text itself is the identifier.
 *
 * @param playback    the playback whose delegate finds the identifier.
 * @param url         the URL or asset ID, 1 byte to 64 kB. Not NULL.
 * @param url_size    its length in bytes.
 * @param timeout_ms  longest wait on the context's clock, ms. 0: 10000.
 * @param out         as in usher_playback_get_license(). `data` is the identifier that goes into the SPC.
 * @return USHER_OK; USHER_E_CALLBACK or USHER_E_TIMEOUT of the hook; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT;
 *         USHER_E_WOULD_DEADLOCK in a callback or on the pumping thread; USHER_E_CLOSED if the playback is closed.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: no. Since: 0.1
 */
USHER_API int32_t usher_playback_get_content_id(
    usher_playback *playback, const uint8_t *url, size_t url_size, uint32_t timeout_ms, usher_response **out);

/**
 * Requests the content identifier of a URL and returns at once; `fn` receives the answer.
 *
 * @param playback   the playback whose delegate finds the identifier.
 * @param url        as in usher_playback_get_content_id(); copied before return.
 * @param url_size   its length in bytes.
 * @param fn         receives the answer, exactly once. Not NULL.
 * @param user_data  passed to `fn`.
 * @param destroy    releases `user_data`: the last call with it. It runs after `fn`, or if this function fails. May be
 *                   NULL.
 * @return as usher_playback_request_license().
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_request_content_id(usher_playback *playback, const uint8_t *url, size_t url_size,
    usher_license_fn fn, void *user_data, usher_destroy_fn destroy);

/**
 * Reads a response.
 *
 * @param response  from usher_playback_get_license() or any other function that gives a response.
 * @param out       filled; set its struct_size first. Everything it points to lives until usher_response_free(). Not
 *                  NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_response_get(usher_response *response, usher_response_info *out);

/**
 * Frees a response and wipes its data. NULL is a no-op.
 * @param response  invalid after this call.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_response_free(usher_response *response);

#ifdef __cplusplus
}
#endif
#endif /* USHER_LICENSE_H */
