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

/** Real time, which also passes while the machine sleeps (CLOCK_BOOTTIME). */
#define USHER_CLOCK_SYSTEM 0
/** For tests: time passes only in usher_context_advance() and usher_context_jump(). */
#define USHER_CLOCK_MANUAL 1

/** Callbacks run on the context's own callback threads. */
#define USHER_CALLBACKS_THREADED 0
/** Callbacks run only inside usher_context_pump(), on the thread that calls it. */
#define USHER_CALLBACKS_PUMPED 1

/** Problems of the library itself. */
#define USHER_LOG_ERROR 1
/** The lines of USHER_LOG_ERROR, and events that report an error. */
#define USHER_LOG_WARNING 2
/** The lines of USHER_LOG_WARNING, and all other events. */
#define USHER_LOG_INFO 3
/** The lines of USHER_LOG_INFO, and each request with its HTTP status and its duration. */
#define USHER_LOG_DEBUG 4
/** The lines of USHER_LOG_DEBUG, and the trace: each line of the trace is a JSON object for a playback that starts, a
    request, a reply or an event. Write these lines to a file; docs/traces.md describes them, and `usher trace` shows
    them. */
#define USHER_LOG_TRACE 5

/** No guardian. */
#define USHER_GUARDIAN_OFF 0
/** The context has a guardian if the system can start one. Otherwise the log gets a warning with the reason, and the
    context works without a guardian. */
#define USHER_GUARDIAN_IF_POSSIBLE 1
/** The context must have a guardian. If the system cannot start one, usher_context_new() fails, and `refusal` and the
    log get the reason. */
#define USHER_GUARDIAN_REQUIRED 2

/**
 * Log sink: receives one line of the log.
 * Threads: a callback thread, one line at a time; the calling thread for the lines of usher_context_new(). May call:
 * every function whose comment says "In callbacks: yes".
 * Last call: before `log_destroy`.
 *
 * @param level      USHER_LOG_...
 * @param line       one line of UTF-8 without newline or secrets; valid until the callback returns. A line about a
 *                   playback begins with "playback N (tag T): ", or with "playback N: " if the tag is 0. T is the
 *                   `tag` of the playback's options.
 * @param user_data  the options' `log_user_data`.
 */
typedef void (*usher_log_fn)(int32_t level, const char *line, void *user_data);

/**
 * Refusal: says why a function returns USHER_E_INVALID_ARGUMENT, USHER_E_STATE, USHER_E_NO_DELEGATE or
 * USHER_E_WOULD_DEADLOCK, or why usher_context_new() fails. The callback runs before that function returns, so the host
 * can add the text to its own error or exception. The library does not call this callback if a request has failed (the
 * response says why), or if the handle is invalid. The functions of clearkey.h, content.h and error.h never call this
 * callback, because they use no context.
 * Threads: the thread that calls the function that refuses. May call: every function whose comment says "In callbacks:
 * yes"; if the function that you call refuses too, the library calls this callback again. Last call: during the host's
 * last call of a function of this context.
 *
 * @param status     the status that the function returns.
 * @param text       one line of UTF-8: the parameter or field, a colon, and what is wrong with it, for example
 *                   "license_url: missing". It has no secrets. Valid until the callback returns.
 * @param user_data  the options' `refusal_user_data`.
 */
typedef void (*usher_refusal_fn)(int32_t status, const char *text, void *user_data);

/** Options of a context. A field that is 0 or NULL has the default that its comment states. The library copies the
    strings. */
typedef struct usher_context_options {
  /** USHER_CONTEXT_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** USHER_CLOCK_... Default: USHER_CLOCK_SYSTEM. */
  int32_t clock;
  /** The most detailed USHER_LOG_... level that `log` receives. Default: USHER_LOG_INFO. */
  int32_t log_level;
  /** The host's callback that receives the lines of the log. Default: none. */
  usher_log_fn log;
  /** Passed to `log`. */
  void *log_user_data;
  /** Releases `log_user_data`: the last call with this pointer. Default: none. */
  usher_destroy_fn log_destroy;
  /** How many threads may run callbacks at the same time. Default 16. While this number of callbacks block, all other
      callbacks wait, also those that a keep-alive needs (payload callback, customer SSM). */
  uint32_t callback_threads_max;
  /** Time limit for connecting to a server, ms. If this time passes, the request fails with USHER_E_TIMEOUT.
      Default 5000. */
  uint32_t connect_timeout_ms;
  /** Time limit for a whole request, ms. Default 10000. */
  uint32_t http_timeout_ms;
  /** Largest reply body that the library accepts, bytes after decoding. Default 1 MiB. For a JSON text of more than
      4 KiB, the library uses at most four times the size of the text plus 64 KiB of memory (for a Clear Key
      licence: plus 4 MiB). The library refuses a text that needs more, with USHER_E_PROTOCOL. A shorter text may
      need 1.3 MB. */
  uint32_t max_response_bytes;
  /** How many requests to one origin (scheme, host and port) may be in flight. Further requests wait in a queue,
      keep-alives first. Default: 16 to an origin that replies within a few milliseconds, up to 512 to an origin that
      takes longer. */
  uint32_t requests_per_origin_max;
  /** 1: allow `http` URLs to hosts other than loopback. Default 0: such URLs get USHER_E_INVALID_ARGUMENT. */
  int32_t allow_insecure_http;
  /** PEM file of the certificate authorities to trust. For servers and for an https proxy, the library then trusts no
      other authorities. Default: the authorities of the system. usher_context_new() checks the files of this and the
      next three options. Keep the files: libcurl reads them again later, for new connections. */
  const char *ca_file;
  /** Pin of the server's public key, in the form of libcurl's CURLOPT_PINNEDPUBLICKEY ("sha256//..."). Default: none.
      */
  const char *pinned_public_key;
  /** PEM file of a client certificate. Default: none. */
  const char *client_certificate_file;
  /** PEM file of the client certificate's private key. Default: client_certificate_file. */
  const char *client_key_file;
  /** URL of a proxy: http, https, socks4, socks4a, socks5 or socks5h; the URL may have a name and a password.
      Default: from the environment (http_proxy, https_proxy, all_proxy, no_proxy); "" for no proxy. */
  const char *proxy;
  /** User-Agent. Default "usher/VERSION". */
  const char *user_agent;
  /** USHER_CALLBACKS_...: which threads run callbacks. Default: USHER_CALLBACKS_THREADED. */
  int32_t callbacks;
  /** How many connections the context may have, to all servers together. Further requests wait in a queue, keep-alives
      first. To open a new connection, the library closes one that no request uses. Default: half of RLIMIT_NOFILE (the
      limit of file descriptors of the process), minus 8; at least 4 and at most 4096. If your host has several
      contexts, set this option, so that the host keeps descriptors for its own files. */
  uint32_t connections_max;
  /** Pass phrase of the client certificate's private key. Default: none; the library never asks for a pass phrase on
      the terminal. */
  const char *client_key_passphrase;
  /** 1: use HTTP/2 for https if the server offers it. Default 0: HTTP/1.1, with which a heartbeat takes less processor
      time. */
  int32_t http2;
  /** 1: libcurl and OpenSSL wipe all memory that they free, in the whole process, so that freed memory has no
      tokens. Only for a host that controls its whole process: the first context must have this option, and nothing
      in the process may have used libcurl or OpenSSL before. Otherwise usher_context_new() returns USHER_E_STATE.
      Later contexts may omit this option. Default 0. */
  int32_t wipe_freed_memory;
  /** 1: keep the cookies that servers set, and send them back. Some load balancers need this: such a load balancer
      uses a cookie to send all requests of a session to the same server. Each origin (scheme, host and port) gets
      only its own cookies; the cookies follow the rules of RFC 6265 about path, `Secure` and expiry. The cookies
      are only in memory, and usher_context_free() frees them. The library keeps cookies of at most 64 origins. If
      an origin sets more than 64 cookies, the library forgets all cookies of that origin. Default 0: the library
      ignores cookies. */
  int32_t keep_cookies;
  /** The host's callback that learns why a function refuses a call. The log gets the same text, as a warning.
      Default: none. */
  usher_refusal_fn refusal;
  /** A pointer that the library passes to `refusal`. The pointer must be valid as long as you call functions of
      this context. */
  void *refusal_user_data;
  /** 1: send the header `traceparent` (W3C Trace Context) with each request, so that a tracing system can relate
      the requests of a playback to what the servers did for them. All requests of a playback have the same trace
      id, and each request has its own span id, also a request that repeats another one. The ids are random. Do not
      set this header in `extra_headers` too. The library does not add this header to requests that the host sends
      for customer SSM. Default 0. */
  int32_t trace_context;
  /** How many milliseconds later than its time a timer may run, at most 50. When a timer is due, the library waits
      for this time, and then runs all timers that have become due meanwhile. So a process with many playbacks wakes
      up less often, and each heartbeat takes less processor time. But each heartbeat may go out later by up to this
      time, and each time limit may end later by up to this time. The manual clock ignores this option. Default 0. */
  uint32_t timer_slack_ms;
  /** Path of the journal: a file in which the library keeps, for each session that the context holds, what another
      process needs to tear the session down. If the process dies, the next context with this path gives the slots
      back before it sets up its first session, and reports USHER_EVENT_RECOVERED_SLOT for each slot. The library
      makes the file with the mode 0600. Up to 16 contexts, also of several processes, may use one file at the same
      time. If the file cannot be used, the context works without a journal and reports USHER_EVENT_JOURNAL_ERROR.
      See docs/recovery.md. Default: none. */
  const char *journal_file;
  /** Key with which the library encrypts the journal (AES-256-GCM): 32 random bytes, the same at each start. Keep
      the key where others cannot read it, and not beside the journal. The library wipes its copy. If you set
      `journal_file`, set either this option or `journal_in_clear`; otherwise usher_context_new() returns
      USHER_E_INVALID_ARGUMENT. usher_context_new() returns USHER_E_STATE if libcurl does not use OpenSSL. Default:
      none. */
  const uint8_t *journal_key;
  /** Size of `journal_key`: 32. */
  size_t journal_key_size;
  /** 1: the journal is not encrypted. Whoever can read the file can then read session tokens. Default 0. */
  int32_t journal_in_clear;
  /** How long the first set-ups of the context wait for the teardowns of the sessions that a dead process left in the
      journal, ms. After this time the teardowns continue, and set-ups no longer wait. Default 3000. */
  uint32_t recovery_wait_ms;
  /** USHER_GUARDIAN_...: whether a guardian watches this process. The guardian is a small separate process,
      usher-guardian. If this process ends without closing its sessions (SIGKILL, a crash, _exit(), exec), the
      guardian tears them down at once. The guardian never touches a session while this process lives, except if
      this process closes the library's descriptors. Sessions of customer SSM have no guardian: only the host knows
      how to tear them down. docs/guardian.md has the details. Default: USHER_GUARDIAN_OFF. */
  int32_t guardian;
  /** How long the end of the process (exit(), or a return from main()) may wait for the teardown of the sessions that
      this context still holds, ms. The library then closes all playbacks of the context in an exit handler. Default 0:
      the end of the process does not wait, and nothing is torn down. _exit(), quick_exit(), abort() and signals run no
      exit handlers; use a guardian for these. A child of fork() does nothing when it ends. */
  uint32_t close_at_exit_ms;
  /** Absolute path of the program usher-guardian. Default: usher-guardian in the folder of libusher.so, or in
      ../libexec/usher or ../../libexec/usher as seen from this folder. */
  const char *guardian_path;
} usher_context_options;

/** All defaults. */
#define USHER_CONTEXT_OPTIONS_INIT \
  { \
    sizeof(usher_context_options), 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, \
        NULL, 0, 0, 0, NULL, NULL, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, NULL \
  }

/**
 * Makes a context and starts its I/O thread and the watchdog of that thread.
 *
 * @param options  copied before return. NULL: all defaults.
 * @param out      on USHER_OK a handle to free with usher_context_free(); NULL on failure. Not NULL.
 * @return USHER_OK; USHER_E_INVALID_ARGUMENT, also if a certificate file cannot be read or a pin is malformed;
 *         USHER_E_TLS if a certificate file has no certificate or key, or if key, certificate and pass phrase do not
 *         match; USHER_E_STATE if `wipe_freed_memory` comes too late, or the library cannot encrypt the journal;
 *         USHER_E_SYSTEM if the system has no thread or file descriptor for the context, or if the guardian is
 *         required and cannot be started. If this function fails, it calls `log_destroy` before it returns, except if
 *         it refuses `struct_size`.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_new(const usher_context_options *options, usher_context **out);

/**
 * Closes every playback of the context in parallel, each as usher_playback_close(USHER_CLOSE_DEFAULT) does, and waits
 * until all are closed. The function also waits for replies that may still bring a session token, and then tears down
 * the session of that token. As soon as this call has begun, the context starts no new playback and accepts no new
 * request. A second call waits again, with its own time limit. A later usher_context_free() waits for the servers'
 * replies at most until the time limit of the last usher_context_close() or usher_context_begin_close() has passed.
 *
 * @param context     the context to close.
 * @param timeout_ms  longest wait on the context's clock, ms (another thread must move a manual clock meanwhile). 0:
 *                    the default, 6000, enough for one reply and one teardown at their default limits.
 * @param out_open    how many playbacks are still not closed at return. May be NULL.
 * @return USHER_OK if all are closed; USHER_E_TIMEOUT if some are not (`*out_open` says how many);
 *         USHER_E_INVALID_HANDLE; USHER_E_WOULD_DEADLOCK in a callback or on the pumping thread.
 * Threads: any. In callbacks: no (USHER_E_WOULD_DEADLOCK, but closing begins). Waits: yes. Pumping thread: no
 * (USHER_E_WOULD_DEADLOCK, but closing begins). Since: 0.1
 */
USHER_API int32_t usher_context_close(usher_context *context, uint32_t timeout_ms, uint32_t *out_open);

/**
 * Begins what usher_context_close() does, and returns at once. USHER_EVENT_CONTEXT_CLOSED follows when all playbacks
 * are closed, or when the time limit of this call has passed. After this event usher_context_free() does not wait for
 * servers, unless a later call has set another time limit. Each call of this function leads to one such event.
 *
 * @param context     the context to close.
 * @param timeout_ms  time limit on the context's clock, ms, also for usher_context_free(). 0: the default, 6000.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_begin_close(usher_context *context, uint32_t timeout_ms);

/**
 * Frees a context: closes the playbacks that are still open, runs the callbacks that are due, and ends its threads.
 * This function waits for the servers' replies, at most until the time limit of the last usher_context_close() or
 * usher_context_begin_close() has passed, counted from that call. Without such a call it waits at most twice the
 * longest `teardown_timeout_ms` of the delegates that played (for one reply and one teardown), and at most 6000 ms. On
 * the manual clock this function moves the clock itself. When this function has returned, no callback of the context
 * runs or will run. The handles of the context's players, playbacks and delegates are then invalid
 * (USHER_E_INVALID_HANDLE); you need not free them. NULL is a no-op.
 *
 * When this function has returned, all threads of the context have ended, with one exception: threads that look up a
 * host name, if the name server does not answer. There are at most 32 such threads, two for each name. These threads do
 * not use the context, and end at the time limit of the system's resolver (see resolv.conf(5)).
 *
 * Each playback gets PLAYBACK_CLOSED before this function returns. If the server has not answered the teardown of a
 * playback in time, TEARDOWN_ERROR comes before PLAYBACK_CLOSED, and both events have `orphan_possible`.
 *
 * If the system could not start a callback thread, the callbacks that are still due run inside this function.
 *
 * In a callback of any context this function returns at once, and the context ends later:
 * - If a thread is in usher_context_pump() of this context, that call ends the context before it returns.
 * - Otherwise, if this context is pumped, and the callback runs in a pump of another context, that pump ends this
 *   context before it returns.
 * - In all other cases a background thread ends the context.
 * The callbacks of a pumped context that are still due run on the thread that ends the context. If you call this
 * function outside callbacks, that thread is the calling thread.
 *
 * @param context  invalid after this call.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes, the rest happens in the background. Waits: yes, except in callbacks. Since: 0.1
 */
USHER_API int32_t usher_context_free(usher_context *context);

/**
 * Runs the callbacks that are due, on the calling thread. A context made with USHER_CALLBACKS_PUMPED runs callbacks
 * only in this function. Callbacks that become due meanwhile wait for the next pump. The I/O thread keeps sessions
 * alive even if you rarely call this function. The thread that pumped last is the pumping thread. On this thread,
 * functions that wait for servers or for the host return USHER_E_WOULD_DEADLOCK, because they may wait for a callback
 * that only the next pump of this thread would run. The functions of testing.h do not return this error on the pumping
 * thread.
 *
 * @param context  a context in pumped mode.
 * @param out_ran  how many callbacks this call ran. May be NULL.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_STATE in threaded mode or while another thread pumps;
 *         USHER_E_WOULD_DEADLOCK in a callback.
 * Threads: any, one at a time; usually the host's main thread. In callbacks: no. Waits: no, it runs callbacks.
 * Since: 0.1
 */
USHER_API int32_t usher_context_pump(usher_context *context, uint32_t *out_ran);

/**
 * Returns in `out_fd` a file descriptor that is readable while callbacks are due, for poll(), epoll, GLib, asyncio and
 * other loops. Only watch the descriptor: do not read, write or close it. The descriptor is valid until
 * usher_context_free(): remove it from your loop before that call.
 *
 * @param context  a context in pumped mode.
 * @param out_fd   the descriptor; -1 on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_STATE in threaded mode.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_pump_fd(usher_context *context, int *out_fd);

/**
 * Adds an observer, which receives every later event of the context.
 *
 * @param context    the context whose events it receives.
 * @param fn         the observer. Not NULL.
 * @param user_data  passed to every call.
 * @param destroy    releases `user_data`: the last call with it; runs also if this function fails. May be NULL.
 * @param out_id     an id for usher_context_remove_observer(). May be NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_add_observer(
    usher_context *context, usher_event_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);

/**
 * Removes an observer. Until its `destroy` runs, the observer may still receive events that were queued before this
 * call.
 *
 * @param context  the context to which it was added.
 * @param id       from usher_context_add_observer() or usher_player_add_observer().
 * @return USHER_OK, USHER_E_INVALID_HANDLE, or USHER_E_INVALID_ARGUMENT for an unknown id.
 * Threads: any. In callbacks: yes, also from the observer itself. Since: 0.1
 */
USHER_API int32_t usher_context_remove_observer(usher_context *context, uint64_t id);

/**
 * Sets or replaces the context's delegate, which serves playbacks whose options have no `delegate` (in the SDKs: the
 * delegate of the DRM manager); NULL clears it. Playbacks that have already started keep their delegate.
 *
 * @param context   the context of those playbacks.
 * @param delegate  a delegate of the same context, or NULL. The context keeps the delegate alive; you may free the
 *                  handle.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, or USHER_E_INVALID_ARGUMENT for a delegate of another context.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_set_delegate(usher_context *context, usher_delegate *delegate);

/**
 * Calls usher_playback_suspend() for all playbacks of a context.
 *
 * @param context  the context.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_suspend(usher_context *context);

/**
 * Calls usher_playback_resume() for all playbacks of a context.
 *
 * @param context  the context.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_resume(usher_context *context);

/**
 * Tells the library that the network came back or changed. The library forgets the addresses of servers, closes idle
 * connections, opens new ones for new requests, and at once retries the keep-alives that failed. Without this call, the
 * library retries them when the next retry or period is due. The library also sends the teardowns again that got no
 * answer (see USHER_EVENT_RECOVERED_SLOT). When the machine has slept, the library does all this by itself.
 *
 * Requests in flight continue until their reply or their time-out, with two exceptions. If this machine no longer has
 * the local address of a connection, the requests on this connection fail at once. A keep-alive or teardown fails after
 * one second if the server's machine has not acknowledged it. The library repeats keep-alives and teardowns over new
 * connections.
 *
 * If the calling thread has moved to another network namespace (setns()), the library moves its I/O thread there too.
 * If the context has a guardian, a new guardian there replaces it. If the system does not permit the move, the log gets
 * a warning. Inside a callback the namespace of the thread does not count.
 *
 * @param context  the context.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_context_network_changed(usher_context *context);

#ifdef __cplusplus
}
#endif
#endif /* USHER_CONTEXT_H */
