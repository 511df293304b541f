/** @file
 * testing.h - virtual time: for contexts made with USHER_CLOCK_MANUAL.
 *
 * Time stands still until you move it, so a test of an hour takes milliseconds and never sleeps. Requests are real: move your server's clock
 * by the same steps. A loop that steps exactly:
 *
 *   for (;;) {
 *     usher_context_settle(context, 0, 0, 5000);                       // everything under way has ended
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

/** What a context has under way. */
typedef struct usher_pending {
  /** USHER_PENDING_INIT sets it. */
  size_t struct_size;
  /** Requests sent and not answered. */
  uint32_t transfers;
  /** Callbacks queued or running. */
  uint32_t callbacks;
  /** Requests waiting for a place at their origin. */
  uint32_t queued;
  /** 0. */
  uint32_t reserved;
  /** Until the next timer, milliseconds; UINT64_MAX without one. */
  uint64_t next_timer_ms;
  /** The context's clock, milliseconds. */
  uint64_t now_ms;
} usher_pending;

/** For usher_context_pending() to fill. */
#define USHER_PENDING_INIT \
  { sizeof(usher_pending), 0, 0, 0, 0, 0, 0 }

/**
 * Moves the clock on by `ms`, stopping at every timer on the way in order. At each stop, and at the end, waits until nothing is under way, but at
 * most `settle_ms` of real time (0: does not wait).
 *
 * @param context    one on the manual clock.
 * @param ms         by how much.
 * @param settle_ms  longest wait at each stop.
 * @return USHER_OK; USHER_E_TIMEOUT if at some stop something was still under way (time was moved all the same); USHER_E_STATE on the system clock;
 *         USHER_E_INVALID_HANDLE; USHER_E_WOULD_DEADLOCK.
 * Threads: any. In callbacks: no. Waits: with `settle_ms`. Pumping thread: yes, without `settle_ms` (a due callback
 * counts as under way). Units: milliseconds. Since: 0.1
 */
USHER_API int32_t usher_context_advance(usher_context *context, uint64_t ms, uint32_t settle_ms);

/**
 * Moves the clock on by `ms` at one blow, as when the machine slept: every timer on the way is due at the end, and knows it is late.
 * @param context  one on the manual clock.
 * @param ms       by how much.
 * @return USHER_OK, USHER_E_STATE on the system clock, USHER_E_INVALID_HANDLE, USHER_E_WOULD_DEADLOCK.
 * Threads: any. In callbacks: no. Waits: briefly. Units: milliseconds. Since: 0.1
 */
USHER_API int32_t usher_context_jump(usher_context *context, uint64_t ms);

/**
 * Waits until no more than `transfers` requests and `callbacks` callbacks are under way: those your server or your test holds on purpose. Works on
 * both clocks.
 *
 * @param context     on either clock.
 * @param transfers   how many requests may stay under way.
 * @param callbacks   how many callbacks may stay queued or running.
 * @param timeout_ms  longest wait in real milliseconds, whatever the context's clock.
 * @return USHER_OK, USHER_E_TIMEOUT, USHER_E_INVALID_HANDLE, USHER_E_WOULD_DEADLOCK.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: yes (a due callback counts as under way). Since: 0.1
 */
USHER_API int32_t usher_context_settle(
    usher_context *context, uint32_t transfers, uint32_t callbacks, uint32_t timeout_ms);

/**
 * Says what is under way.
 * @param context  on either clock.
 * @param out      filled; set its struct_size first. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, USHER_E_WOULD_DEADLOCK.
 * Threads: any. In callbacks: no. Waits: briefly. Since: 0.1
 */
USHER_API int32_t usher_context_pending(usher_context *context, usher_pending *out);

#ifdef __cplusplus
}
#endif
#endif /* USHER_TESTING_H */
