/** @file
 * loader.h - the FairPlay resource loader (PTAVAssetResourceLoaderDelegate): gets the CKC for a `skd:` URL from your
 * own key server, through an entitlement server, or from ExpressPlay.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_LOADER_H
#define USHER_LOADER_H

#include "base.h"
#include "content.h"
#include "license.h"

#ifdef __cplusplus
extern "C" {
#endif

/* route */
/** The SPC goes to `license_url`, or to the URL inside the `skd:` URL. */
#define USHER_ROUTE_KEY_SERVER 0
/** The library first asks the entitlement server (`entitlement_url`, or the URL inside the `skd:` URL with "?cid=").
    The server's reply has a token URL, and the SPC goes to that URL. */
#define USHER_ROUTE_ENTITLEMENT 1
/** The `skd:` URL is the token URL: the library replaces its scheme by `derived_scheme`. */
#define USHER_ROUTE_TOKEN_URL 2

/* token_kind: which token the library asks an entitlement server for */
/** The loader's option `device_binding` decides. Without it: a token for a limited time. With it: a token that
    registers the device; once the device is registered, a token for this device only. */
#define USHER_TOKEN_BY_LOADER 0
/** A token for a limited time, for any device. */
#define USHER_TOKEN_TIME_BASED 1
/** A token that registers the device with the licence server. */
#define USHER_TOKEN_REGISTRATION 2
/** A token that only this device can use; the device must be registered. */
#define USHER_TOKEN_DEVICE_BOUND 3

/* request_format */
/** The bytes of the SPC. */
#define USHER_FPS_REQUEST_RAW 0
/** A form: `spc=<base64>`. */
#define USHER_FPS_REQUEST_FORM 1
/** Base64 text. */
#define USHER_FPS_REQUEST_BASE64 2
/** JSON: `{"spc": "<base64>"}`. */
#define USHER_FPS_REQUEST_JSON 3

/* spc_urlencode */
/** Percent-code the values of a form. */
#define USHER_URLENCODE_VALUE 0
/** Percent-code nothing of the SPC. The library percent-codes the content identifier (`content_id_field`) anyway. */
#define USHER_URLENCODE_NONE 1
/** Percent-code the whole form, including '=' and '&'. */
#define USHER_URLENCODE_WHOLE 2

/* response_format */
/** JSON with "CkcMessage", "ckc" or "License"; else a `<ckc>` element; else base64; else raw bytes. */
#define USHER_FPS_RESPONSE_AUTO 0
/** Raw bytes. */
#define USHER_FPS_RESPONSE_RAW 1
/** Base64 text. */
#define USHER_FPS_RESPONSE_BASE64 2
/** `<ckc>base64</ckc>`. */
#define USHER_FPS_RESPONSE_ELEMENT 3
/** JSON. */
#define USHER_FPS_RESPONSE_JSON 4

/** An SPC that the CDM must make. The struct and everything it points to live until the callback returns. */
typedef struct usher_spc_request {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** The question, for usher_complete_payload(). */
  usher_completion completion;
  /** The playback. Not owned; you may have freed it already. */
  usher_playback *playback;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** The application certificate; NULL: the loader has none. */
  const uint8_t *certificate;
  /** Its length in bytes. */
  size_t certificate_size;
  /** The content identifier. */
  const uint8_t *content_id;
  /** Its length in bytes. */
  size_t content_id_size;
  /** The URL of the loading request, as the host gave it. */
  const uint8_t *url;
  /** Its length in bytes. */
  size_t url_size;
} usher_spc_request;

/**
 * SPC callback: let the CDM make an SPC from the certificate and the content identifier. Answer with
 * usher_complete_payload(), in the callback or later, within `spc_timeout_ms`.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes". Last call: before `destroy`.
 *
 * @param request    valid until the callback returns.
 * @param user_data  from the loader's options.
 */
typedef void (*usher_spc_fn)(const usher_spc_request *request, void *user_data);

/** The library's question: which server gets the SPC? The struct and everything it points to live until the callback
    returns. */
typedef struct usher_server_request {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** The question, for usher_complete_server(), usher_complete_entitlement() or usher_complete_builtin(). */
  usher_completion completion;
  /** The playback. Not owned; you may have freed it already. */
  usher_playback *playback;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** The URL of the loading request, as the host gave it. */
  const uint8_t *url;
  /** Its length in bytes. */
  size_t url_size;
  /** The content identifier for the SPC. */
  const uint8_t *content_id;
  /** The length of `content_id` in bytes; 0: the URL has no content identifier. */
  size_t content_id_size;
  /** The content identifier for an entitlement server: "cid" in the URL's query; else "ContentId" of the JSON in the
      URL; else the same as `content_id`. */
  const uint8_t *entitlement_id;
  /** The length of `entitlement_id` in bytes; 0: the URL has no such identifier. */
  size_t entitlement_id_size;
  /** The entitlement server that the library would ask; NULL: the library knows no such server, or the host of its
      URL is not on the allow-list. */
  const char *entitlement_url;
  /** The token that the library would ask for: USHER_TOKEN_TIME_BASED, _REGISTRATION or _DEVICE_BOUND. */
  int32_t token_kind;
} usher_server_request;

/**
 * Server callback, for `server` and `token_url` of the loader's options. Answer in the callback or later, within
 * `server_timeout_ms`:
 * - usher_complete_server(): the URL to which the SPC goes, and its header lines. For `token_url`: the token URL.
 * - usher_complete_entitlement(): the library asks an entitlement server for that URL.
 * - usher_complete_builtin(): the library does what it would do without the callback.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes". Last call: before `destroy`.
 *
 * @param request    valid until the callback returns.
 * @param user_data  from the loader's options.
 */
typedef void (*usher_server_fn)(const usher_server_request *request, void *user_data);

/** What the library asks an entitlement server for. You pass this struct to usher_complete_entitlement(). 0 or NULL:
    the default. */
typedef struct usher_entitlement {
  /** USHER_ENTITLEMENT_INIT sets it. */
  size_t struct_size;
  /** The entitlement server. Default: `entitlement_url` of the question. */
  const char *url;
  /** Content identifier, UTF-8, up to 64 kB. Default: `entitlement_id` of the question. */
  const uint8_t *content_id;
  /** Its length in bytes. */
  size_t content_id_size;
  /** USHER_TOKEN_... Default: `token_kind` of the question. */
  int32_t token_kind;
} usher_entitlement;

/** All defaults. */
#define USHER_ENTITLEMENT_INIT \
  { sizeof(usher_entitlement), NULL, NULL, 0, 0 }

/** Options of a resource loader. A field that is 0 or NULL has the default that its comment states. The library
    copies the options before return. */
typedef struct usher_loader_options {
  /** USHER_LOADER_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** Scheme of the URLs that the loader loads. Default "skd". */
  const char *scheme;
  /** USHER_ROUTE_...: where the SPC goes. Default: the key server. */
  int32_t route;
  /** USHER_CONTENT_ID_...: which part of the URL is the content identifier. Default: the decoded JSON. With the
      route to an entitlement server, a URL without such JSON may have the identifier as "cid" in its query. */
  int32_t content_id_rule;
  /** Key server. Default: the URL inside the `skd:` URL, if its host is allowed. */
  const char *license_url;
  /** Entitlement server. Default: the URL inside the `skd:` URL, if its host is allowed. */
  const char *entitlement_url;
  /** Hosts that a URL from content or from an entitlement server may have, separated by blanks: "host", "host:port",
      "host:*", "*.example.com"; without a port, the default port of the scheme. Default: none, so the library uses no
      such URL. */
  const char *allowed_hosts;
  /** Replaces `scheme` in a token URL: "https", or "http" (for loopback). Default "https". */
  const char *derived_scheme;
  /** The application certificate, 1 byte to 1 MiB. Default: none. */
  const uint8_t *certificate;
  /** Its length in bytes. */
  size_t certificate_size;
  /** A file that has the certificate; usher_context_add_loader() reads it. Default: none. */
  const char *certificate_file;
  /** URL of the certificate. The library fetches it once; after a failure, the next request fetches again. Default:
      none. */
  const char *certificate_url;
  /** "Name: value" header lines for the key server, separated by '\n'. Default: none. */
  const char *extra_headers;
  /** USHER_FPS_REQUEST_...: form of the request. Default: the bytes of the SPC. */
  int32_t request_format;
  /** USHER_URLENCODE_...: which parts of a form the library percent-codes. Default: values. */
  int32_t spc_urlencode;
  /** Name of the SPC's field in a form or in JSON. Default "spc". */
  const char *spc_field;
  /** Name of a further field with the content identifier, e.g. "assetId". Default: none. */
  const char *content_id_field;
  /** USHER_FPS_RESPONSE_...: form of the reply. Default AUTO. */
  int32_t response_format;
  /** 1: the entitlement server binds the device: the first request registers the device (the event
      USHER_EVENT_DEVICE_REGISTERED follows), and later tokens are valid for this device only. If a licence server
      does not know the device (LICENSE_ERROR with the code -4001), the next request registers the device again.
      Needs `customer_cookie`. Default 0. */
  int32_t device_binding;
  /** The customer cookie that the library sends to the entitlement server: up to 32 bytes of UTF-8. Default: none. */
  const char *customer_cookie;
  /** Makes SPCs. Required. */
  usher_spc_fn spc;
  /** A pointer that the library passes to `spc`, `server` and `token_url`. */
  void *user_data;
  /** Releases `user_data`: the last call with it. It runs when the library has freed the loader, or if
      usher_context_add_loader() fails. May be NULL. */
  usher_destroy_fn destroy;
  /** Time limit for the answer of the SPC callback, ms. Default 5000. */
  uint32_t spc_timeout_ms;
  /** JSON path ("a.b") of the CKC, which is base64. Default: "CkcMessage", "ckc" or "License". */
  const char *response_path;
  /** The callback that decides for each URL to which server the SPC goes, and with which headers. Default: `route`
      decides. */
  usher_server_fn server;
  /** The callback that supplies the token URL. If you set it, the library calls it instead of asking the
      entitlement server. Default: none; the library asks the entitlement server. */
  usher_server_fn token_url;
  /** Time limit for the answer of the callback `server`, and of the callback `token_url`, ms. Default 10000. */
  uint32_t server_timeout_ms;
  /** 1: the device is registered already: an earlier run of the program had the event
      USHER_EVENT_DEVICE_REGISTERED. Needs `device_binding`. Default 0. */
  int32_t device_registered;
} usher_loader_options;

/** All defaults; you must still set `spc`. */
#define USHER_LOADER_OPTIONS_INIT \
  { \
    sizeof(usher_loader_options), NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 0, \
        0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0 \
  }

/**
 * Registers a resource loader for a scheme with the context (in the SDKs: with the DRM manager). The new loader
 * replaces an earlier loader for that scheme. A context with a loader can play items that have no licence delegate.
 *
 * @param context  the context of the playbacks that it serves.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_loader_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT (also for a certificate file that cannot be read),
 *         or USHER_E_CLOSED after usher_context_close() began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_add_loader(
    usher_context *context, const usher_loader_options *options, usher_loader **out);

/**
 * Answers a server callback: the SPC goes to this URL.
 *
 * @param completion  the id that the callback received.
 * @param url         https, or http as in `license_url`; its host need not be in `allowed_hosts`. NULL: you have no
 *                    server; the loading request fails with USHER_E_CALLBACK.
 * @param headers     "Name: value" lines separated by '\n', at most 64 kB, sent after those of `extra_headers`. NULL:
 *                    none.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION if the question was answered before, its deadline has passed, its
 *         playback closes, or the id is unknown, or belongs to another callback; USHER_E_INVALID_ARGUMENT for a text
 *         that is not a URL, or lines that are not headers (the question stays open).
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_server(usher_completion completion, const char *url, const char *headers);

/**
 * Answers a server callback: the library asks an entitlement server. If `allowed_hosts` lists the host of the URL in
 * the server's reply, the SPC goes to that URL. If you answer the `server` callback with this function, and the loader
 * has a `token_url` callback, the library calls `token_url` first.
 *
 * @param completion   the id that the callback received.
 * @param entitlement  copied before return. NULL: all defaults.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION if the question was answered before, its deadline has passed, its
 *         playback closes, or the id is unknown, or belongs to another callback; USHER_E_INVALID_ARGUMENT (the question
 *         stays open).
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_entitlement(usher_completion completion, const usher_entitlement *entitlement);

/**
 * Unregisters a loader and frees its handle. Its loading requests continue. NULL is a no-op.
 *
 * @param loader  invalid after this call.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_loader_free(usher_loader *loader);

/**
 * If a loader is registered for the URL's scheme, loads the resource of the URL: the CKC. The library gets the
 * certificate, asks the host for the SPC, and gets the CKC from the key server. USHER_OK means that the library handles
 * the request: `fn` then runs exactly once, with the CKC or with an error.
 *
 * @param playback    the playback that needs the key. If it closes, the request completes with USHER_E_CLOSED.
 * @param url         1 byte to 64 kB. Not NULL.
 * @param url_size    its length in bytes.
 * @param timeout_ms  time limit on the context's clock, ms. 0: 20000; USHER_OFF: only the time
 *                    limits of the single steps apply.
 * @param fn          receives the answer: `data` is the CKC. Or USHER_E_NOT_ALLOWED (host not on the allow-list),
 *                    USHER_E_REFUSED (entitlement denied, or the key server refused; message and code are the
 *                    server's), USHER_E_CALLBACK, USHER_E_TIMEOUT, USHER_E_CLOSED, USHER_E_HTTP, USHER_E_TRANSPORT,
 *                    USHER_E_TLS, USHER_E_PROTOCOL, USHER_E_TOO_LARGE, USHER_E_REDIRECT. Not NULL.
 * @param user_data   passed to `fn`.
 * @param destroy     releases `user_data`: the last call with it. It runs after `fn`, or if this function fails. May be
 *                    NULL.
 * @param out_id      identifies the request, for usher_playback_cancel_load(). May be NULL.
 * @return USHER_OK: the library handles the request. USHER_E_DECLINED: no loader for the scheme; `fn` does not run.
 *         USHER_E_INVALID_ARGUMENT: also for a URL that names no content, if the loader can find the server only in the
 *         URL (it has no `license_url`, no `entitlement_url` and no server callback). USHER_E_INVALID_HANDLE.
 *         USHER_E_CLOSED: the playback is closed.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_load_resource(usher_playback *playback, const uint8_t *url, size_t url_size,
    uint32_t timeout_ms, usher_license_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);

/**
 * Loads the resource of a URL and waits for it.
 *
 * @param playback    as in usher_playback_load_resource().
 * @param url         1 byte to 64 kB. Not NULL.
 * @param url_size    its length in bytes.
 * @param timeout_ms  time limit on the context's clock, ms. 0: 20000; USHER_OFF: only the time
 *                    limits of the single steps apply.
 * @param out         a response to free with usher_response_free(), also if the answer is an error; NULL if the
 *                    function refused the call. May be NULL.
 * @return as usher_playback_load_resource(), and the errors that its `fn` receives; USHER_E_WOULD_DEADLOCK in a
 *         callback or on the pumping thread.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: no. Since: 0.1
 */
USHER_API int32_t usher_playback_get_resource(
    usher_playback *playback, const uint8_t *url, size_t url_size, uint32_t timeout_ms, usher_response **out);

/**
 * Cancels a loading request: it ends with USHER_E_CLOSED, unless it has ended already.
 *
 * @param playback  the playback that made it.
 * @param id        from usher_playback_load_resource().
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_STATE if the id is unknown, or the request has ended already.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_cancel_load(usher_playback *playback, uint64_t id);

#ifdef __cplusplus
}
#endif
#endif /* USHER_LOADER_H */
