/** @file
 * testing.h - virtual time: for contexts made with USHER_CLOCK_MANUAL.
 *
 * Time stands still until you move it, so a test of an hour takes milliseconds and never sleeps. The requests are real:
 * move the clock of your server by the same steps. This loop moves both clocks from timer to timer:
 *
 *   for (;;) {
 *     usher_context_settle(context, 0, 0, 5000);                       // every request and callback has ended
 *     if (remaining == 0) break;
 *     usher_pending pending = USHER_PENDING_INIT; usher_context_pending(context, &pending);
 *     uint64_t step = remaining < pending.next_timer_ms ? remaining : pending.next_timer_ms;
 *     server_advance(step); usher_context_advance(context, step, 0); remaining -= step;
 *   }
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TESTING_H
#define USHER_TESTING_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The requests, callbacks and timers of a context. */
typedef struct usher_pending {
  /** USHER_PENDING_INIT sets it. */
  size_t struct_size;
  /** Requests sent and not answered yet. */
  uint32_t transfers;
  /** Callbacks queued or running. */
  uint32_t callbacks;
  /** Requests that wait in the queue of their origin. */
  uint32_t queued;
  /** Always 0. */
  uint32_t reserved;
  /** Milliseconds until the next timer; UINT64_MAX if no timer is set. */
  uint64_t next_timer_ms;
  /** The context's clock, milliseconds. */
  uint64_t now_ms;
} usher_pending;

/** The initial value to pass to usher_context_pending(). */
#define USHER_PENDING_INIT \
  { sizeof(usher_pending), 0, 0, 0, 0, 0, 0 }

/**
 * Advances the clock by `ms` and stops at every timer on the way, in order. At each stop, and at the end, it waits
 * until no request or callback is under way, at most `settle_ms` of real time (0: it does not wait).
 *
 * @param context    a context on the manual clock.
 * @param ms         by how many milliseconds.
 * @param settle_ms  longest wait at each stop, in real milliseconds.
 * @return USHER_OK; USHER_E_TIMEOUT if at some stop a request or callback was still under way (the clock advanced all
 *         the same); USHER_E_STATE on the system clock; USHER_E_INVALID_HANDLE; USHER_E_WOULD_DEADLOCK in a callback.
 * Threads: any. In callbacks: no. Waits: with `settle_ms`. Pumping thread: yes, without `settle_ms` (a due callback
 * counts as under way). Units: milliseconds. Since: 0.1
 */
USHER_API int32_t usher_context_advance(usher_context *context, uint64_t ms, uint32_t settle_ms);

/**
 * Advances the clock by `ms` in one step, as when the machine slept: every timer on the way runs at the end, and the
 * library sees how late each one is.
 *
 * @param context  a context on the manual clock.
 * @param ms       by how many milliseconds. The clock does not go beyond 2^62.
 * @return USHER_OK; USHER_E_STATE on the system clock; USHER_E_INVALID_HANDLE; USHER_E_WOULD_DEADLOCK in a callback.
 * Threads: any. In callbacks: no. Waits: briefly. Units: milliseconds. Since: 0.1
 */
USHER_API int32_t usher_context_jump(usher_context *context, uint64_t ms);

/**
 * Waits until at most `transfers` requests and at most `callbacks` callbacks are under way. Pass the numbers that your
 * server or your test holds back on purpose, usually 0. Works on both clocks.
 *
 * @param context     a context on either clock.
 * @param transfers   how many requests may stay under way.
 * @param callbacks   how many callbacks may stay queued or running.
 * @param timeout_ms  longest wait in real milliseconds, whatever the context's clock.
 * @return USHER_OK; USHER_E_TIMEOUT if that time passed; USHER_E_INVALID_HANDLE; USHER_E_WOULD_DEADLOCK in a callback.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: yes (a due callback counts as under way). Since: 0.1
 */
USHER_API int32_t usher_context_settle(
    usher_context *context, uint32_t transfers, uint32_t callbacks, uint32_t timeout_ms);

/**
 * Returns in `out` the number of requests and callbacks under way, and the time of the next timer.
 *
 * @param context  a context on either clock.
 * @param out      filled; set its struct_size first. Not NULL.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT; USHER_E_WOULD_DEADLOCK in a callback.
 * Threads: any. In callbacks: no. Waits: briefly. Since: 0.1
 */
USHER_API int32_t usher_context_pending(usher_context *context, usher_pending *out);

#ifdef __cplusplus
}
#endif
#endif /* USHER_TESTING_H */
