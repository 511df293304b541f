/** @file
 * hooks.h - the common delegate: host code in place of the built-in steps of a licence request, as a subclass would have it.
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
/** contentIdentifier(url): the bytes that go into the SPC. Answer: bytes. */
#define USHER_HOOK_CONTENT_ID 1
/** certificate(): the application certificate. Answer: bytes. */
#define USHER_HOOK_CERTIFICATE 2
/** generateHTTPHeaders(assetID): answer with usher_complete_headers(). */
#define USHER_HOOK_HEADERS 3
/** getLicenseRequestUrl(): answer: the URL's text, with `renew=true` for renewals where the server wants it. */
#define USHER_HOOK_LICENSE_URL 4
/** The body of the licence request. Answer: bytes. */
#define USHER_HOOK_LICENSE_BODY 5
/** getCkcFromLicenseResponse(): the licence in a reply. Answer: bytes. Not asked for replies with an HTTP error. */
#define USHER_HOOK_LICENSE 6

/** One question to a hook. The struct and all its pointers live until the hook returns. */
typedef struct usher_hook_call {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** The question, for usher_complete_hook(), usher_complete_headers(), usher_complete_builtin() and usher_hook_builtin(). */
  usher_completion completion;
  /** USHER_HOOK_... */
  int32_t hook;
  /** USHER_LICENSE_REQUEST or USHER_LICENSE_RENEWAL. */
  int32_t type;
  /** For which; may be freed already. Not owned. */
  usher_playback *playback;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** USHER_KEY_SYSTEM_...; NULL for content identifier and certificate. */
  const char *key_system;
  /** Asset ID of the licence request, or the URL a content identifier is wanted of; NULL: none. */
  const uint8_t *asset_id;
  /** Its length in bytes. */
  size_t asset_id_size;
  /** The CDM's payload; for USHER_HOOK_LICENSE the server's reply. NULL for content identifier and certificate. */
  const uint8_t *data;
  /** Its length in bytes. */
  size_t data_size;
  /** HTTP status of the reply; 0 for the others. */
  int32_t http_status;
} usher_hook_call;

/**
 * A hook: answer now or later, from any thread, within the delegate's `hook_timeout_ms`.
 * Threads: a callback thread, in the order of the playback. May call: everything but blocking functions; usher_hook_builtin() too. Last call: before `destroy`.
 *
 * @param call       the question; lives until return.
 * @param user_data  as the hooks were set with.
 */
typedef void (*usher_hook_fn)(const usher_hook_call *call, void *user_data);

/** Hooks. NULL: the built-in behaviour. */
typedef struct usher_delegate_hooks {
  /** USHER_DELEGATE_HOOKS_INIT sets it. */
  size_t struct_size;
  /** scheme(): of the URLs the delegate is for; stripped from content identifiers. Default "skd". */
  const char *scheme;
  /** USHER_HOOK_CONTENT_ID. */
  usher_hook_fn content_id;
  /** USHER_HOOK_CERTIFICATE. */
  usher_hook_fn certificate;
  /** USHER_HOOK_HEADERS: in place of the token header and those of usher_delegate_set_http_header(). */
  usher_hook_fn http_headers;
  /** USHER_HOOK_LICENSE_URL. */
  usher_hook_fn license_url;
  /** USHER_HOOK_LICENSE_BODY. */
  usher_hook_fn license_body;
  /** USHER_HOOK_LICENSE. What the reply says about the session is read all the same. */
  usher_hook_fn license;
} usher_delegate_hooks;

/** All built-in. */
#define USHER_DELEGATE_HOOKS_INIT \
  { sizeof(usher_delegate_hooks), NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/**
 * Makes a common delegate: a default delegate with hooks.
 *
 * @param context    its playbacks belong to the same context.
 * @param options    copied before return. Not NULL.
 * @param hooks      copied before return. Not NULL.
 * @param user_data  given to every hook.
 * @param destroy    last call for `user_data`: when the hooks are replaced, when the delegate is gone, or when this function fails. May be NULL.
 * @param out        on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT or USHER_E_CLOSED.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_common_delegate_new(usher_context *context, const usher_default_options *options,
    const usher_delegate_hooks *hooks, void *user_data, usher_destroy_fn destroy, usher_delegate **out);

/**
 * Sets, replaces (or with hooks NULL clears) the hooks of a delegate that sends requests: default, common, SSP, SSP V2, multi-instance. In force for requests
 * that begin after it.
 *
 * @param delegate   not of customer SSM.
 * @param hooks      copied before return. NULL: all built-in; `user_data` is then let go of at once.
 * @param user_data  given to every hook.
 * @param destroy    as usher_common_delegate_new().
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, USHER_E_STATE for a customer SSM delegate.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_set_hooks(
    usher_delegate *delegate, const usher_delegate_hooks *hooks, void *user_data, usher_destroy_fn destroy);

/**
 * Answers a hook that makes bytes.
 *
 * @param completion  the id the hook was given.
 * @param bytes       what it made, 1 byte to 1 MiB. NULL: nothing; the request fails with USHER_E_CALLBACK.
 * @param size        its length in bytes.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION when answered before, too late, unknown, or a headers hook's; USHER_E_INVALID_ARGUMENT for a size that fits
 *         not, or a licence URL that is none (the question stays open).
 * Threads: any. In callbacks: yes, also in the asking one. Since: 0.1
 */
USHER_API int32_t usher_complete_hook(usher_completion completion, const uint8_t *bytes, size_t size);

/**
 * Answers a headers hook.
 *
 * @param completion  the id the hook was given.
 * @param headers     "Name: value" lines separated by '\n', at most 64 kB. "": the request is sent without them. NULL: the request is not sent, and fails with
 *                    USHER_E_DECLINED.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION; USHER_E_INVALID_ARGUMENT for lines that are no headers (the question stays open).
 * Threads: any. In callbacks: yes, also in the asking one. Since: 0.1
 */
USHER_API int32_t usher_complete_headers(usher_completion completion, const char *headers);

/**
 * Answers any hook with what the built-in behaviour makes.
 * @param completion  the id the hook was given.
 * @return USHER_OK or USHER_E_INVALID_COMPLETION.
 * Threads: any. In callbacks: yes, also in the asking one. Since: 0.1
 */
USHER_API int32_t usher_complete_builtin(usher_completion completion);

/**
 * Says what the built-in behaviour would make of a question, and leaves it open: what a subclass gets from its superclass. For a certificate it may
 * wait for the server, at most the context's `http_timeout_ms`, and on a manual clock until another thread advances it.
 *
 * @param completion  the id the hook was given.
 * @param out         a response to free with usher_response_free(): `data` the bytes, the URL's text, or the header lines. On an error of the built-in
 *                    behaviour also a response; NULL when the call itself was refused. Not NULL.
 * @return USHER_OK, the built-in behaviour's error, USHER_E_INVALID_COMPLETION or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes, also in the asking one. Waits: for the download of a certificate. Since: 0.1
 */
USHER_API int32_t usher_hook_builtin(usher_completion completion, usher_response **out);

#ifdef __cplusplus
}
#endif
#endif /* USHER_HOOKS_H */
