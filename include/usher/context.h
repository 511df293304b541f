/** @file
 * context.h - one independent instance of the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_CONTEXT_H
#define USHER_CONTEXT_H

#include "base.h"
#include "event.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Time passes by itself (CLOCK_BOOTTIME: it goes on while the machine sleeps). */
#define USHER_CLOCK_SYSTEM 0
/** Time passes only in usher_context_advance() and usher_context_jump(): for tests. */
#define USHER_CLOCK_MANUAL 1

/** Callbacks run on the context's own callback threads. */
#define USHER_CALLBACKS_THREADED 0
/** Callbacks run only inside usher_context_pump(), on the thread that calls it. */
#define USHER_CALLBACKS_PUMPED 1

/** The library itself has a problem. */
#define USHER_LOG_ERROR 1
/** Events that are errors. */
#define USHER_LOG_WARNING 2
/** Events. */
#define USHER_LOG_INFO 3
/** Each request, with its HTTP status and how long it took. */
#define USHER_LOG_DEBUG 4

/**
 * Log sink. Threads: a callback thread. May call: everything but blocking functions. Last call: before `log_destroy`.
 *
 * @param level      USHER_LOG_...
 * @param line       one line of UTF-8 without newline or secrets; lives until return.
 * @param user_data  the options' `log_user_data`.
 */
typedef void (*usher_log_fn)(int32_t level, const char *line, void *user_data);

/** Everything a context can be told at its start. 0 or NULL: the default. Strings are copied. */
typedef struct usher_context_options {
  /** USHER_CONTEXT_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** USHER_CLOCK_... Default: USHER_CLOCK_SYSTEM. */
  int32_t clock;
  /** Highest USHER_LOG_... level told to `log`. Default: USHER_LOG_INFO. */
  int32_t log_level;
  /** Told what happens. Default: none. */
  usher_log_fn log;
  /** Given to `log`. */
  void *log_user_data;
  /** Last call for `log_user_data`. Default: none. */
  usher_destroy_fn log_destroy;
  /** Most threads that run callbacks at once. Default 16. While fewer than that block, no keep-alive waits for a callback. */
  uint32_t callback_threads_max;
  /** Time to connect, ms. Default 5000. */
  uint32_t connect_timeout_ms;
  /** Time for a whole request, ms. Default 10000. */
  uint32_t http_timeout_ms;
  /** Largest response body accepted, bytes. Default 1 MiB. */
  uint32_t max_response_bytes;
  /** Most requests under way to one origin (scheme, host, port); the others queue, keep-alives first. Default: 16 to an origin that answers within
      few milliseconds, up to 512 to one that takes longer. */
  uint32_t requests_per_origin_max;
  /** 1: allow `http` to hosts that are not loopback. Default 0: such URLs answer USHER_E_INVALID_ARGUMENT. */
  int32_t allow_insecure_http;
  /** PEM file of the certificate authorities to trust. Default: the system's. */
  const char *ca_file;
  /** Public key pin as libcurl's CURLOPT_PINNEDPUBLICKEY takes it ("sha256//..."). Default: none. */
  const char *pinned_public_key;
  /** PEM file of a client certificate. Default: none. */
  const char *client_certificate_file;
  /** PEM file of its key. Default: none. */
  const char *client_key_file;
  /** Proxy URL. Default: as the environment says (http_proxy, https_proxy, no_proxy); "" for none. */
  const char *proxy;
  /** User-Agent. Default "usher/VERSION". */
  const char *user_agent;
  /** USHER_CALLBACKS_...: on whose threads callbacks run. Default: USHER_CALLBACKS_THREADED. */
  int32_t callbacks;
  /** 0. */
  int32_t reserved;
} usher_context_options;

/** All defaults. */
#define USHER_CONTEXT_OPTIONS_INIT \
  { sizeof(usher_context_options), 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0 }

/**
 * Makes a context and starts its I/O thread.
 *
 * @param options  copied before return. NULL: all defaults.
 * @param out      on USHER_OK a handle to free with usher_context_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_ARGUMENT or USHER_E_SYSTEM. On failure `log_destroy` was called, except where `struct_size` itself was refused.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_new(const usher_context_options *options, usher_context **out);

/**
 * Closes every playback of the context as usher_playback_close(USHER_CLOSE_DEFAULT) does, in parallel, and waits until all are closed, and for replies
 * that may still bring a session token: its slot is given back, too. From now on the context starts nothing new. Idempotent: a second call waits again.
 *
 * @param context     the context to close.
 * @param timeout_ms  longest wait on the context's clock (on the manual clock another thread has to move it). 0: the default, 6000 (a reply and a
 *                    teardown at their caps).
 * @param out_open    number of playbacks still not closed at return. May be NULL.
 * @return USHER_OK when all are closed, USHER_E_TIMEOUT when `*out_open` are not, USHER_E_INVALID_HANDLE, USHER_E_WOULD_DEADLOCK.
 * Threads: any. In callbacks: no (USHER_E_WOULD_DEADLOCK, but closing begins). Waits: yes. Pumping thread: no
 * (USHER_E_WOULD_DEADLOCK, but closing begins). Since: 0.1
 */
USHER_API int32_t usher_context_close(usher_context *context, uint32_t timeout_ms, uint32_t *out_open);

/**
 * Frees a context: closes what is still open, with the default time; on the manual clock it moves that itself. Callbacks that are due run before it returns.
 * Handles of its players, playbacks and delegates
 * answer USHER_E_INVALID_HANDLE afterwards; those need not be freed. After return none of its callbacks runs or will run, and none of its threads is left. In a
 * callback (of whichever context) it returns at once and the rest happens in the background (pumped mode: before that pump returns; in another
 * context's callback, before this function does). In pumped mode, the
 * callbacks still due run inside this function. NULL is a no-op.
 *
 * @param context  stale from now on.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes, the rest happens in the background. Waits: yes, except in callbacks. Since: 0.1
 */
USHER_API int32_t usher_context_free(usher_context *context);

/**
 * Runs the callbacks that are due on the calling thread: a context made with USHER_CALLBACKS_PUMPED runs them nowhere else. Those that become due
 * meanwhile wait for the next pump. Sessions are kept alive by the I/O thread however seldom this is called. Functions that wait for servers or
 * for the host, called from the thread that pumped last, answer USHER_E_WOULD_DEADLOCK, since what they wait for may need that thread; those of
 * testing.h do not.
 *
 * @param context  one in pumped mode.
 * @param out_ran  how many ran. May be NULL.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_STATE in threaded mode or while another thread pumps; USHER_E_WOULD_DEADLOCK inside a callback.
 * Threads: any, one at a time; usually the host's main thread. In callbacks: no. Waits: no, it runs callbacks.
 * Since: 0.1
 */
USHER_API int32_t usher_context_pump(usher_context *context, uint32_t *out_ran);

/**
 * The file descriptor that is readable while callbacks are due, for poll(), epoll, GLib, asyncio ... Watch it for reading; do not read from it, write to
 * it or close it. It lives until usher_context_free(): remove it from your loop before.
 *
 * @param context  one in pumped mode.
 * @param out_fd   the descriptor; -1 on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_STATE in threaded mode.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_pump_fd(usher_context *context, int *out_fd);

/**
 * Adds an observer; it is told every event of the context from now on.
 *
 * @param context    whose events.
 * @param fn         not NULL.
 * @param user_data  given to every call.
 * @param destroy    last call for `user_data`; also called when this function fails. May be NULL.
 * @param out_id     for usher_context_remove_observer(). May be NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT or USHER_E_CLOSED.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_add_observer(
    usher_context *context, usher_event_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);

/**
 * Removes an observer. Events already on their way may still reach it until its `destroy` runs.
 * @param context  to which it was added.
 * @param id       of usher_context_add_observer().
 * @return USHER_OK, USHER_E_INVALID_HANDLE, or USHER_E_INVALID_ARGUMENT for an unknown id.
 * Threads: any. In callbacks: yes, also from the observer itself. Since: 0.1
 */
USHER_API int32_t usher_context_remove_observer(usher_context *context, uint64_t id);

/**
 * Sets, replaces (or with NULL clears) the delegate that serves playbacks which name none: the context's DRM manager.
 * Playbacks already started keep theirs.
 * @param context   whose playbacks.
 * @param delegate  of the same context, or NULL. The context keeps it alive; the handle may be freed.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, or USHER_E_INVALID_ARGUMENT for a delegate of another context.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_set_delegate(usher_context *context, usher_delegate *delegate);

/**
 * usher_playback_suspend() for all playbacks of a context.
 * @param context  which.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_suspend(usher_context *context);

/**
 * usher_playback_resume() for all playbacks of a context.
 * @param context  which.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_resume(usher_context *context);

/**
 * Says that the network is back, or another one: connections made before are not used again, and keep-alives that failed are tried at once.
 * Without it they are tried at their next time.
 * @param context  which.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_network_changed(usher_context *context);

#ifdef __cplusplus
}
#endif
#endif /* USHER_CONTEXT_H */
