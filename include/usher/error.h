/** @file
 * error.h - status values, origins and operations, and the description of an error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_ERROR_H
#define USHER_ERROR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status: the result of a call -------------------------------------------------------------------------------- */

/** Success. */
#define USHER_OK 0
/** An argument is missing, malformed or out of range: NULL, empty, not a URL, text with CR, LF or NUL in it, or a
    struct_size that no release has. */
#define USHER_E_INVALID_ARGUMENT (-1)
/** The handle was freed, its context was freed, it is of another kind, the library never returned it, or it is NULL
    (except where NULL is a no-op). */
#define USHER_E_INVALID_HANDLE (-2)
/** The context, player or playback was closed before the operation could finish. */
#define USHER_E_CLOSED (-3)
/** The host started a newer item on the same player before this item began. */
#define USHER_E_REPLACED (-4)
/** Neither the playback nor the context has a licence delegate. */
#define USHER_E_NO_DELEGATE (-5)
/** The time limit passed. The operation may still be running. */
#define USHER_E_TIMEOUT (-6)
/** The call would wait for something that only the calling thread can do. */
#define USHER_E_WOULD_DEADLOCK (-7)
/** The calling process is a child of fork(), and its parent had made a context before. */
#define USHER_E_FORKED (-8)
/** The system had no memory, thread or file descriptor for the operation. If it has no memory for the library itself,
    the process ends. */
#define USHER_E_SYSTEM (-9)
/** A callback of the host failed or answered with an error. */
#define USHER_E_CALLBACK (-10)
/** The question was answered before, its deadline has passed, or the completion id is unknown. */
#define USHER_E_INVALID_COMPLETION (-11)
/** The operation is not possible in the present state, e.g. usher_context_advance() on the system clock. */
#define USHER_E_STATE (-12)
/** No HTTP reply: connection refused or reset, host unreachable, name not resolved, or proxy failed. */
#define USHER_E_TRANSPORT (-20)
/** No HTTP reply: the TLS handshake failed, or the library did not accept the server's certificate. */
#define USHER_E_TLS (-21)
/** The server replied with an HTTP status that means a failure, and the reply has no service code. */
#define USHER_E_HTTP (-22)
/** The server refused the request with an error code: see usher_error.service_code. */
#define USHER_E_REFUSED (-23)
/** The account already plays as many streams as it may (the SSM answered code 1007). */
#define USHER_E_LIMIT (-24)
/** The reply cannot be understood: it is not JSON, or a field is missing or has the wrong type. From usher_read_mp4()
    and usher_clearkey_keys(): the file or the licence is malformed. */
#define USHER_E_PROTOCOL (-25)
/** The body of the reply is larger than `max_response_bytes`, or the bytes around it (header lines, sizes of chunks,
    trailers) are too many. From functions of content.h and clearkey.h: the buffer is too small, or the file has too
    many boxes. */
#define USHER_E_TOO_LARGE (-26)
/** The playback has no content token: the host set none, and the token callback did not answer with a token in time
    (5022 in the SDKs). */
#define USHER_E_NO_TOKEN (-27)
/** The server replied with a redirect; `message` has the URL of the redirect, without the query. The library follows no
    redirects, so that a token goes only to the configured server. */
#define USHER_E_REDIRECT (-28)
/** The session is over: the SSM ended it, it expired, or the library could not keep it alive. The library did not send
    the licence request. */
#define USHER_E_SESSION (-29)
/** A licence renewal was due, and a whole period has passed without it. */
#define USHER_E_RENEWAL_MISSED (-30)
/** A hook asked not to send the request, or no resource loader is registered for the URL's scheme. */
#define USHER_E_DECLINED (-31)
/** The token map is full, and playbacks hold every token in it. */
#define USHER_E_FULL (-32)
/** A URL that came from content or from an entitlement server has a host that is not on the allow-list. */
#define USHER_E_NOT_ALLOWED (-33)

/* ---- origin: which server answered ------------------------------------------------------------------------------- */

/** The library itself or the host. This is also the origin if a callback of a customer SSM delegate is missing, fails
    or does not answer in time. If such a callback answers that a server failed, the origin is this server. */
#define USHER_ORIGIN_LOCAL 0
/** The Secure Session Manager. */
#define USHER_ORIGIN_SSM 1
/** The licence server. */
#define USHER_ORIGIN_LICENSE 2
/** The certificate server. */
#define USHER_ORIGIN_CERTIFICATE 3
/** The entitlement server. */
#define USHER_ORIGIN_ENTITLEMENT 4

/* ---- operation: what the library was doing ----------------------------------------------------------------------- */

/** No particular operation. */
#define USHER_OPERATION_NONE 0
/** Session set-up. */
#define USHER_OPERATION_SETUP 1
/** A heartbeat. */
#define USHER_OPERATION_HEARTBEAT 2
/** Session teardown. */
#define USHER_OPERATION_TEARDOWN 3
/** A licence request that is not a renewal. */
#define USHER_OPERATION_LICENSE 4
/** A licence renewal that the host requested, or that the library requested by itself. */
#define USHER_OPERATION_RENEWAL 5
/** A certificate request. */
#define USHER_OPERATION_CERTIFICATE 6
/** A request to an entitlement server. */
#define USHER_OPERATION_ENTITLEMENT 7

/* ---- TLS fault: why there was no secure connection --------------------------------------------------------------- */

/** The error has another status than USHER_E_TLS, or another reason than the following. */
#define USHER_TLS_FAULT_NONE 0
/** The server's certificate is not from an authority that the context trusts. */
#define USHER_TLS_FAULT_AUTHORITY 1
/** The server's certificate has expired, by the clock of this machine. */
#define USHER_TLS_FAULT_EXPIRED 2
/** The server's certificate is not valid yet, by the clock of this machine. */
#define USHER_TLS_FAULT_NOT_YET_VALID 3
/** The server's certificate is for another host name. */
#define USHER_TLS_FAULT_NAME 4
/** The server's public key is not `pinned_public_key`. */
#define USHER_TLS_FAULT_PIN 5
/** The server asks for a client certificate, or refuses the one of `client_certificate_file`. A server with TLS 1.2
    often does not report this; then the fault is USHER_TLS_FAULT_NONE. */
#define USHER_TLS_FAULT_CLIENT_CERTIFICATE 6

/** The full description of an error. Read `service_code` together with `origin`: licence servers use the same numbers
    as the SSM with other meanings. */
typedef struct usher_error {
  /** USHER_OK if there is no error, else USHER_E_... */
  int32_t status;
  /** USHER_ORIGIN_... */
  int32_t origin;
  /** USHER_OPERATION_... */
  int32_t operation;
  /** HTTP status; -1 if there was no HTTP reply. Also 407 if a proxy asks for a sign-in before it connects to the
      server. */
  int32_t http_status;
  /** The server's `errorCode`; 0 if the reply has no code, or a code of more than 7 digits. */
  int64_t service_code;
  /** The server's message without secrets, or one line from the library. If the server's message has coded characters
      such as %41, the library withholds that message, and `message` says so. UTF-8, one line of at most 512 bytes,
      never NULL. Valid as long as the event or response that contains this struct. */
  const char *message;
  /** 1: the host must stop playback. */
  int32_t must_stop;
  /** 1: the head-end may hold a session whose token never reached the library. That session ends when it expires. */
  int32_t orphan_possible;
  /** 1: a licence request failed because the session had failed, and an earlier event of the playback has reported the
      failure of the session (USHER_EVENT_SETUP_ERROR or USHER_EVENT_HEARTBEAT_ERROR). So do not show an error on the
      screen a second time. */
  int32_t already_reported;
  /** How long the server asks you to wait before you try again (its header Retry-After), ms; 0: the server did not say.
      */
  uint32_t retry_after_ms;
  /** USHER_TLS_FAULT_... */
  int32_t tls_fault;
} usher_error;

/** The numbers that the React Native player, the Android player and the Apple SDK use for the same error. Hosts that
    migrate from them need these numbers. */
typedef struct usher_legacy_codes {
  /** React Native player: 6001 set-up, 6002 teardown, 6003 heartbeat, 6004 too many sessions, 50xx licences; 0: no
      number fits. */
  int32_t react_native;
  /** Android `what`: -1352 set-up, -1353 heartbeat, -1354 teardown; 0: no number fits. */
  int32_t android_what;
  /** Android `extra`: the SSM's errorCode, else 0. */
  int64_t android_extra;
  /** Apple, inside the SDK: 3010 set-up, 3020 teardown, 3030 heartbeat, 3050 any other request; 0: no number fits. If
      `status` is USHER_E_CALLBACK, the number is 3040 instead of 3030 or 3050. If a customer SSM callback does not
      answer in time, or answers with another status, `status` is not USHER_E_CALLBACK, so the number stays 3030 or
      3050. */
  int32_t apple_internal;
  /** Apple notification `code`: the HTTP status; -1 if there was no HTTP reply. */
  int32_t apple_code;
} usher_legacy_codes;

/** The meaning of an error, in words for a support desk. All strings are static. */
typedef struct usher_explanation {
  /** One sentence that a viewer understands. Never NULL. */
  const char *summary;
  /** One sentence of advice for the viewer or the operator. Never NULL. */
  const char *advice;
  /** 1: the code is in the table that `source` names; 0: the words describe only the kind of error. */
  int32_t known;
  /** The table that has the code, e.g. "SSM error codes"; if `known` is 0, a text that begins with "library status".
      Never NULL. */
  const char *source;
} usher_explanation;

/**
 * Returns the name of a status, e.g. "USHER_E_LIMIT".
 *
 * @param status  USHER_OK or USHER_E_...
 * @return static storage; "USHER_E_UNKNOWN" for an unknown value.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_status_name(int32_t status);

/**
 * Returns one line that describes a status, e.g. "the account plays as many streams as it may".
 *
 * @param status  USHER_OK or USHER_E_...
 * @return static storage, never NULL.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_status_message(int32_t status);

/**
 * Returns the name of the server that answered, e.g. "session manager"; "the library" for USHER_ORIGIN_LOCAL.
 *
 * @param origin  USHER_ORIGIN_...
 * @return static storage; "unknown" for an unknown value.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_origin_name(int32_t origin);

/**
 * Returns the name of an operation, e.g. "set-up"; "none" for USHER_OPERATION_NONE.
 *
 * @param operation  USHER_OPERATION_...
 * @return static storage; "unknown" for an unknown value.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_operation_name(int32_t operation);

/**
 * Translates an error into the numbers of the React Native player, the Android player and the Apple SDK.
 *
 * @param error  from an event or a response; the function ignores its message. Not NULL.
 * @param out    filled. Not NULL.
 * @return USHER_OK or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_error_legacy_codes(const usher_error *error, usher_legacy_codes *out);

/**
 * Explains an error in words for viewers and support desks. The function looks for the code in the code table of the
 * origin. At set-up, one code of the SSM has another meaning, so the function also reads the operation. If the code is
 * not in the table, the function makes the words from the HTTP status, the TLS fault and the status.
 *
 * @param error  from an event or a response; the function ignores its message. Not NULL.
 * @param out    filled; its strings are static. Not NULL.
 * @return USHER_OK, or USHER_E_INVALID_ARGUMENT, also for an unknown origin.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_error_explain(const usher_error *error, usher_explanation *out);

#ifdef __cplusplus
}
#endif
#endif /* USHER_ERROR_H */
