/** @file
 * error.h - status values, origins, operations, and the detail of an error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_ERROR_H
#define USHER_ERROR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status: what every function returns -------------------------------------------------------------------------------- */

/** Done. */
#define USHER_OK 0
/** A parameter is NULL, empty, out of range, not a URL, has CR, LF or NUL in it, or a struct_size that fits no release. */
#define USHER_E_INVALID_ARGUMENT (-1)
/** The handle is NULL (except where NULL is a no-op), stale, freed, foreign or of another kind. */
#define USHER_E_INVALID_HANDLE (-2)
/** The context, player or playback was closed first. */
#define USHER_E_CLOSED (-3)
/** A newer item was started on the same player first. */
#define USHER_E_REPLACED (-4)
/** Neither the playback nor the context names a licence delegate. */
#define USHER_E_NO_DELEGATE (-5)
/** The time given ran out. What was asked may still be under way. */
#define USHER_E_TIMEOUT (-6)
/** The call would wait for something only the calling thread can do. */
#define USHER_E_WOULD_DEADLOCK (-7)
/** Called in a child of fork(). */
#define USHER_E_FORKED (-8)
/** Memory, a thread or a file descriptor could not be had. */
#define USHER_E_SYSTEM (-9)
/** A host callback failed or answered with an error. */
#define USHER_E_CALLBACK (-10)
/** The completion id was answered before, too late, or never existed. */
#define USHER_E_INVALID_COMPLETION (-11)
/** Not possible in the present state, e.g. usher_context_advance() on the system clock. */
#define USHER_E_STATE (-12)
/** No HTTP answer: refused, reset, unreachable, name not resolved, proxy failed. */
#define USHER_E_TRANSPORT (-20)
/** No HTTP answer: the TLS handshake failed or the certificate was not accepted. */
#define USHER_E_TLS (-21)
/** An HTTP status that is no success, without a service code. */
#define USHER_E_HTTP (-22)
/** The server refused with a code of its own; see usher_error.service_code. */
#define USHER_E_REFUSED (-23)
/** The account plays as many streams as it may (SSM code 1007 from the SSM). */
#define USHER_E_LIMIT (-24)
/** The answer could not be understood: not JSON, a field missing or of the wrong type. */
#define USHER_E_PROTOCOL (-25)
/** The answer is larger than `max_response_bytes`. */
#define USHER_E_TOO_LARGE (-26)
/** No content token: none was given, and the token callback gave none in time (5022 in the SDKs). */
#define USHER_E_NO_TOKEN (-27)
/** A redirect was refused: a request with a token goes only where it was sent. */
#define USHER_E_REDIRECT (-28)
/** The session is over (killed, expired, or not kept alive); the licence request was not sent. */
#define USHER_E_SESSION (-29)
/** The renewal that was due was not made in time. */
#define USHER_E_RENEWAL_MISSED (-30)
/** A hook said not to send the request, or a resource loader that the URL is not its own. */
#define USHER_E_DECLINED (-31)
/** The token map is at its bound, and playbacks hold every token in it. */
#define USHER_E_FULL (-32)
/** A URL that content, or an entitlement server, named leads to a host that is not on the allow-list. */
#define USHER_E_NOT_ALLOWED (-33)

/* ---- who answered -------------------------------------------------------------------------------------------------------- */

/** The library itself or the host. */
#define USHER_ORIGIN_LOCAL 0
/** The Secure Session Manager. */
#define USHER_ORIGIN_SSM 1
/** The licence server. */
#define USHER_ORIGIN_LICENSE 2
/** The certificate server. */
#define USHER_ORIGIN_CERTIFICATE 3
/** The entitlement server. */
#define USHER_ORIGIN_ENTITLEMENT 4

/* ---- during what --------------------------------------------------------------------------------------------------------- */

/** Nothing in particular. */
#define USHER_OPERATION_NONE 0
/** Setting a session up. */
#define USHER_OPERATION_SETUP 1
/** A heartbeat. */
#define USHER_OPERATION_HEARTBEAT 2
/** Tearing a session down. */
#define USHER_OPERATION_TEARDOWN 3
/** A licence request that is no renewal. */
#define USHER_OPERATION_LICENSE 4
/** A licence renewal, the host's or an enforced one. */
#define USHER_OPERATION_RENEWAL 5
/** A certificate request. */
#define USHER_OPERATION_CERTIFICATE 6
/** Asking an entitlement server. */
#define USHER_OPERATION_ENTITLEMENT 7

/** What went wrong, in full. Numbers mean different things at different origins: licence servers reuse the SSM's codes. */
typedef struct usher_error {
  /** USHER_OK when nothing is wrong, else USHER_E_... */
  int32_t status;
  /** USHER_ORIGIN_... */
  int32_t origin;
  /** USHER_OPERATION_... */
  int32_t operation;
  /** HTTP status, -1 when there was no HTTP answer. */
  int32_t http_status;
  /** The server's own `errorCode`, 0 when it gave none. */
  int64_t service_code;
  /** The server's own message, or one line of ours; UTF-8, tokens removed, never NULL. Lives as long as the struct around it. */
  const char *message;
  /** 1: playback must stop. */
  int32_t must_stop;
  /** 1: a session may be held at the head-end whose token never reached us; it ends by expiry. */
  int32_t orphan_possible;
} usher_error;

/** The same error by the numbers of other players, for hosts that migrate. */
typedef struct usher_legacy_codes {
  /** React Native player: 6001 set-up, 6002 teardown, 6003 heartbeat, 6004 too many sessions, 50xx licences; 0: no number fits. */
  int32_t react_native;
  /** Android `what`: -1352 set-up, -1353 heartbeat, -1354 teardown; 0: no number fits. */
  int32_t android_what;
  /** Android `extra`: the SSM's errorCode, else 0. */
  int64_t android_extra;
  /** Apple, inside the SDK: 3010 set-up, 3020 teardown, 3030 heartbeat, 3040 customer callback, 3050 request; 0: no number fits. */
  int32_t apple_internal;
  /** Apple notification `code`: the HTTP status, -1 when there was no HTTP answer. */
  int32_t apple_code;
} usher_legacy_codes;

/** What a code means, for a support desk. Static storage. */
typedef struct usher_explanation {
  /** One sentence a viewer understands. Never NULL. */
  const char *summary;
  /** What to do about it. Never NULL. */
  const char *advice;
  /** 1: the code is in the table; 0: the words are about its kind only. */
  int32_t known;
  /** Where the code is from, e.g. "SSM error codes". Never NULL. */
  const char *source;
} usher_explanation;

/**
 * The name of a status, e.g. "USHER_E_LIMIT".
 * @param status  USHER_OK or USHER_E_...
 * @return static storage; "USHER_E_UNKNOWN" for a value that is none.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_status_name(int32_t status);

/**
 * One line about a status, e.g. "the account plays as many streams as it may".
 * @param status  USHER_OK or USHER_E_...
 * @return static storage, never NULL.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_status_message(int32_t status);

/**
 * The server that answered, in words, e.g. "session manager"; "the library" for USHER_ORIGIN_LOCAL.
 * @param origin  USHER_ORIGIN_...
 * @return static storage; "unknown" for a value that is none.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_origin_name(int32_t origin);

/**
 * What was being done, in a word, e.g. "set-up"; "none" for USHER_OPERATION_NONE.
 * @param operation  USHER_OPERATION_...
 * @return static storage; "unknown" for a value that is none.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_operation_name(int32_t operation);

/**
 * Says an error in the numbers of other players.
 * @param error  as an event or response has it; its message is not looked at. Not NULL.
 * @param out    filled. Not NULL.
 * @return USHER_OK or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_error_legacy_codes(const usher_error *error, usher_legacy_codes *out);

/**
 * Explains an error in words for viewers and support desks, by the origin's own code table where it has one.
 *
 * @param origin        USHER_ORIGIN_...
 * @param status        USHER_E_... of the error; used where the code is 0 or unknown.
 * @param service_code  the server's `errorCode`, or 0.
 * @param out           filled; its strings are static. Not NULL.
 * @return USHER_OK or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_error_explain(int32_t origin, int32_t status, int64_t service_code, usher_explanation *out);

#ifdef __cplusplus
}
#endif
#endif /* USHER_ERROR_H */
