/** @file
 * metrics.h - what a context has done so far, for monitoring.
 *
 *   usher_metrics metrics = USHER_METRICS_INIT;
 *   usher_context_metrics(context, &metrics);
 *   size_t size = sizeof(page);
 *   usher_metrics_text(&metrics, NULL, page, &size);      // the text that Prometheus reads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_METRICS_H
#define USHER_METRICS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Counters and present values of a context. A counter begins at 0 with the context and never decreases. */
typedef struct usher_metrics {
  /** USHER_METRICS_INIT sets it. */
  size_t struct_size;
  /** Present value: playbacks whose session is USHER_SESSION_ACTIVE or USHER_SESSION_DOUBTFUL. */
  uint64_t sessions_held;
  /** Sessions that began, each with USHER_EVENT_SESSION_STARTED. */
  uint64_t sessions_opened;
  /** Sessions that failed after they had begun: USHER_SESSION_FAILED. */
  uint64_t sessions_lost;
  /** Set-up requests that the library sent, repeated ones included. This and the next four counters do not count the
      requests that a customer SSM delegate lets the host send. */
  uint64_t setups_sent;
  /** Heartbeat requests that the library sent, repeated ones included. */
  uint64_t heartbeats_sent;
  /** Teardown requests that the library sent, repeated ones included. */
  uint64_t teardowns_sent;
  /** Licence requests that the library sent for players and for renewals, repeated ones included. */
  uint64_t licenses_sent;
  /** All other requests that the library sent: for certificates, for entitlements, to key servers, and those of
      usher_delegate_connect_ahead(). */
  uint64_t others_sent;
  /** Heartbeats, renewals and teardowns that the library repeated, because the earlier request had no good reply. The
      counters of requests above include them. */
  uint64_t retries;
  /** Keep-alives that succeeded: heartbeats and renewals, each with USHER_EVENT_KEPT_ALIVE. */
  uint64_t keep_alives;
  /** The sum of the `lateness_ms` of all keep-alives that `keep_alives` counts, ms. */
  uint64_t lateness_ms;
  /** Keep-alives with a `lateness_ms` of at most 10. */
  uint64_t late_at_most_10_ms;
  /** Keep-alives with a `lateness_ms` of at most 50, including those of at most 10. Each of the next four fields counts
      up to a longer time in the same way. */
  uint64_t late_at_most_50_ms;
  /** At most 100. */
  uint64_t late_at_most_100_ms;
  /** At most 500. */
  uint64_t late_at_most_500_ms;
  /** At most 1000. */
  uint64_t late_at_most_1000_ms;
  /** At most 5000. */
  uint64_t late_at_most_5000_ms;
  /** Denials of the session manager (USHER_ORIGIN_SSM). A denial is a reply with an HTTP status of 400 or more, or with
      a code of the service. It counts even if the library then repeats the request with success. With a customer SSM
      delegate, the library counts the refusals that the host reports. */
  uint64_t denials_ssm;
  /** Denials of the licence server (USHER_ORIGIN_LICENSE). */
  uint64_t denials_license;
  /** Denials of the certificate server (USHER_ORIGIN_CERTIFICATE). */
  uint64_t denials_certificate;
  /** Denials of the entitlement server (USHER_ORIGIN_ENTITLEMENT). */
  uint64_t denials_entitlement;
  /** Sessions whose teardown failed, each with USHER_EVENT_TEARDOWN_ERROR or, after USHER_EVENT_PLAYBACK_CLOSED, with a
      warning in the log. */
  uint64_t teardowns_failed;
  /** Connections that the library began to open, those that failed included. */
  uint64_t connections_opened;
  /** Replies that arrived over a connection which had brought a reply before. */
  uint64_t connections_reused;
  /** Present value: requests that wait in the queue of their origin. */
  uint64_t requests_queued;
  /** Present value: requests sent and not answered yet. */
  uint64_t requests_in_flight;
  /** Present value: callbacks queued or running. */
  uint64_t callbacks;
} usher_metrics;

/** The initial value to pass to usher_context_metrics(). */
#define USHER_METRICS_INIT \
  { sizeof(usher_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Returns in `out` the counters and present values of a context, all of the same instant.
 *
 * @param context  the context.
 * @param out      filled; set its struct_size first. Not NULL.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT; USHER_E_WOULD_DEADLOCK in a callback.
 * Threads: any. In callbacks: no. Waits: briefly. Since: 0.1
 */
USHER_API int32_t usher_context_metrics(usher_context *context, usher_metrics *out);

/**
 * Writes metrics in the text format of Prometheus, version 0.0.4, for the endpoint that Prometheus reads. The names of
 * the metrics begin with "usher_"; docs/metrics.md lists them.
 *
 * @param metrics  from usher_context_metrics(). Not NULL.
 * @param labels   labels to add to each sample, in the form of Prometheus, e.g. "screen=\"3\",region=\"north\"". A host
 *                 with several contexts needs them, to tell the contexts apart. The library only checks that the text
 *                 has at most 4096 bytes and no control characters. NULL: none.
 * @param buffer   receives the text, UTF-8 without a NUL; NULL to ask for its length.
 * @param size     set it to the length of `buffer` in bytes; on return it is the length of the text. Not NULL.
 * @return USHER_OK; USHER_E_TOO_LARGE if the buffer is too small or NULL (`size` is then the needed length);
 *         USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_metrics_text(const usher_metrics *metrics, const char *labels, uint8_t *buffer, size_t *size);

#ifdef __cplusplus
}
#endif
#endif /* USHER_METRICS_H */
