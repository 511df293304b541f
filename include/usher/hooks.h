/** @file
 * hooks.h - the common delegate: callbacks of the host replace built-in steps of a licence request, as methods of a
 * subclass would.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HOOKS_H
#define USHER_HOOKS_H

#include "base.h"
#include "delegate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* hook */
/** contentIdentifier(url): the bytes that go into the SPC. Answer with bytes. */
#define USHER_HOOK_CONTENT_ID 1
/** certificate(): the application certificate. Answer with bytes. */
#define USHER_HOOK_CERTIFICATE 2
/** generateHTTPHeaders(assetID): the headers. Answer with usher_complete_headers(). */
#define USHER_HOOK_HEADERS 3
/** getLicenseRequestUrl(): the URL. Answer with the text of the URL; add `renew=true` for renewals if the server
    requires it. */
#define USHER_HOOK_LICENSE_URL 4
/** The body of the licence request. Answer with bytes. */
#define USHER_HOOK_LICENSE_BODY 5
/** getCkcFromLicenseResponse(): the licence in a reply. Answer with bytes. The library does not call this hook for a
    reply with an HTTP error. */
#define USHER_HOOK_LICENSE 6

/** One question to a hook. The struct and everything it points to live until the hook returns. */
typedef struct usher_hook_call {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** The question, for usher_complete_hook(), usher_complete_headers(), usher_complete_builtin() and
      usher_hook_builtin(). */
  usher_completion completion;
  /** USHER_HOOK_... */
  int32_t hook;
  /** USHER_LICENSE_REQUEST or USHER_LICENSE_RENEWAL. */
  int32_t type;
  /** The playback. Not owned; you may have freed it already. */
  usher_playback *playback;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** USHER_KEY_SYSTEM_...; NULL for content identifier and certificate. */
  const char *key_system;
  /** Asset ID of the licence request; for USHER_HOOK_CONTENT_ID the URL. NULL: none. */
  const uint8_t *asset_id;
  /** Its length in bytes. */
  size_t asset_id_size;
  /** The CDM's payload; for USHER_HOOK_LICENSE the body of the server's reply. NULL for content identifier and
      certificate. */
  const uint8_t *data;
  /** Its length in bytes. */
  size_t data_size;
  /** USHER_HOOK_LICENSE: HTTP status of the reply; else 0. */
  int32_t http_status;
} usher_hook_call;

/**
 * A hook. Answer in the callback or later, from any thread, within the delegate's `hook_timeout_ms`.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes", also usher_hook_builtin(). Last call: before `destroy`.
 *
 * @param call       the question; valid until the callback returns.
 * @param user_data  as usher_common_delegate_new() or usher_delegate_set_hooks() received it.
 */
typedef void (*usher_hook_fn)(const usher_hook_call *call, void *user_data);

/** The hooks of a delegate. NULL: the built-in behaviour. */
typedef struct usher_delegate_hooks {
  /** USHER_DELEGATE_HOOKS_INIT sets it. */
  size_t struct_size;
  /** scheme(): the scheme of the delegate's URLs; the library removes it from content identifiers. Default "skd". */
  const char *scheme;
  /** USHER_HOOK_CONTENT_ID. */
  usher_hook_fn content_id;
  /** USHER_HOOK_CERTIFICATE. */
  usher_hook_fn certificate;
  /** The hook for USHER_HOOK_HEADERS. Its answer replaces the token header and the headers of
      usher_delegate_set_http_header(). */
  usher_hook_fn http_headers;
  /** USHER_HOOK_LICENSE_URL. */
  usher_hook_fn license_url;
  /** USHER_HOOK_LICENSE_BODY. */
  usher_hook_fn license_body;
  /** The hook for USHER_HOOK_LICENSE. The library also reads the reply itself, for the session token and the
      period. It uses both as soon as the reply arrives, before this hook answers. */
  usher_hook_fn license;
} usher_delegate_hooks;

/** No hooks. */
#define USHER_DELEGATE_HOOKS_INIT \
  { sizeof(usher_delegate_hooks), NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/**
 * Makes a common delegate: a default delegate with hooks.
 *
 * @param context    the context of its playbacks.
 * @param options    copied before return. Not NULL.
 * @param hooks      copied before return. Not NULL.
 * @param user_data  passed to every hook.
 * @param destroy    releases `user_data`: the last call with it. It runs after the hooks were replaced, when the
 *                   library has freed the delegate, or if this function fails. May be NULL.
 * @param out        on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_common_delegate_new(usher_context *context, const usher_default_options *options,
    const usher_delegate_hooks *hooks, void *user_data, usher_destroy_fn destroy, usher_delegate **out);

/**
 * Sets or replaces the hooks of a default, common, SSP, SSP V2 or multi-instance delegate; `hooks` NULL removes them.
 * Requests that begin after this call use the new hooks.
 *
 * @param delegate   any delegate except one of customer SSM.
 * @param hooks      copied before return. NULL: no hooks; `destroy` then runs at once for this `user_data`.
 * @param user_data  passed to every hook.
 * @param destroy    as in usher_common_delegate_new().
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_STATE for a customer SSM delegate.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_set_hooks(
    usher_delegate *delegate, const usher_delegate_hooks *hooks, void *user_data, usher_destroy_fn destroy);

/**
 * Answers a hook whose answer is bytes.
 *
 * @param completion  the id that the hook received.
 * @param bytes       the answer, 1 byte to 1 MiB. NULL: the host has no answer; the request fails with
 *                    USHER_E_CALLBACK.
 * @param size        its length in bytes.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION if the question was answered before, its deadline has passed, its
 *         playback closes, or the id is unknown, or belongs to a headers hook; USHER_E_INVALID_ARGUMENT for a wrong
 *         size, or for a licence URL that is not a URL (the question stays open).
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_hook(usher_completion completion, const uint8_t *bytes, size_t size);

/**
 * Answers a headers hook.
 *
 * @param completion  the id that the hook received.
 * @param headers     "Name: value" lines separated by '\n', at most 64 kB. Empty text: the library sends the request
 *                    without these lines. NULL: it does not send the request, which fails with USHER_E_DECLINED.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION if the question was answered before, its deadline has passed, its
 *         playback closes, or the id is unknown, or belongs to another hook; USHER_E_INVALID_ARGUMENT for lines that
 *         are not headers (the question stays open).
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_headers(usher_completion completion, const char *headers);

/**
 * Answers any hook, or a server callback of a resource loader, with the result of the built-in behaviour.
 *
 * @param completion  the id that the hook or the callback received.
 * @return USHER_OK, or USHER_E_INVALID_COMPLETION if the question was answered before, its deadline has passed, its
 *         playback closes, or the id is unknown.
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_builtin(usher_completion completion);

/**
 * Returns the result of the built-in behaviour for a question, and leaves the question open. A hook can call this
 * function as a method of a subclass calls the method of the superclass. For a certificate this function may wait for
 * the server, at most the context's `http_timeout_ms`; on a manual clock, until another thread moves the clock.
 *
 * @param completion  the id that the hook received.
 * @param out         a response to free with usher_response_free(): `data` is the bytes, the text of the URL, or the
 *                    header lines. If the built-in behaviour failed, `*out` is a response with the error; if this
 *                    function refused the call, `*out` is NULL. `out` must not be NULL.
 * @return USHER_OK; the error of the built-in behaviour; USHER_E_INVALID_COMPLETION if the question was answered
 *         before, its deadline has passed, its playback closes, or the id is unknown; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes, also in the callback that asked. Waits: for the download of a certificate.
 * Since: 0.1
 */
USHER_API int32_t usher_hook_builtin(usher_completion completion, usher_response **out);

#ifdef __cplusplus
}
#endif
#endif /* USHER_HOOKS_H */
