/*
 * beats_usher.c - heartbeats of libusher, with one playback per session. All heartbeats are due at once, on the manual
 * clock. Variant 0: no observer. Variant 1: an observer on callback threads receives each KEPT_ALIVE. Variant 2: the
 * observer runs in a pump. Variant 3: no observer. Variant 4: no observer, but a guardian. With --journal the context
 * has a journal, which is encrypted in variant 3 and in clear in all others. SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"
#include <stdatomic.h>

static atomic_long told;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type == USHER_EVENT_KEPT_ALIVE) atomic_fetch_add(&told, 1);
}

/** Plays one period, in which each session sends one heartbeat. */
static void one_round(const host *me, int variant, uint64_t period) {
  if (variant != 2) {
    host_check(usher_context_advance(me->context, period, 60000), "usher_context_advance");
    return;
  }
  host_check(usher_context_advance(me->context, period, 0), "usher_context_advance");
  host_check(usher_context_settle(me->context, 0, UINT32_MAX, 60000), "usher_context_settle");
  host_check(usher_context_pump(me->context, NULL), "usher_context_pump");
}

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  host me = {0};
  usher_context_options context = USHER_CONTEXT_OPTIONS_INIT;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  context.clock = USHER_CLOCK_MANUAL;
  if (options.variant == 4) context.guardian = USHER_GUARDIAN_REQUIRED;
  if (options.variant == 2) context.callbacks = USHER_CALLBACKS_PUMPED;
  const uint8_t key[32] = {1};
  context.journal_file = options.journal;
  context.journal_in_clear = options.journal && options.variant != 3;
  if (options.variant == 3) context.journal_key = key, context.journal_key_size = sizeof key;
  host_open(&me, &options, context, ssp);
  host_play(&me, options.sessions);
  const int is_observed = options.variant == 1 || options.variant == 2;
  if (is_observed)
    host_check(usher_context_add_observer(me.context, on_event, NULL, NULL, NULL), "usher_context_add_observer");
  usher_pending pending = USHER_PENDING_INIT;
  host_check(usher_context_pending(me.context, &pending), "usher_context_pending");
  const uint64_t period = pending.next_timer_ms;
  for (int round = 0; round < options.warm_up; round++) one_round(&me, options.variant, period);
  const int turn = options.turns ? options.turns : options.rounds;
  bench_clock start = bench_now();
  for (int round = 1; round <= options.rounds; round++) {
    if (options.turns && (round - 1) % turn == 0) bench_await_turn(&start);
    one_round(&me, options.variant, period);
    if (round % turn != 0) continue;
    bench_clock spent = {0};
    bench_add(&spent, start);
    bench_print(spent, (int64_t)turn * options.sessions);
    start = bench_now();
  }
  const long beats = (long)options.rounds * options.sessions;
  if (is_observed && atomic_load(&told) < beats) bench_fail("the observer", "did not receive every KEPT_ALIVE");
  if (host_active(&me) != options.sessions) bench_fail("the sessions", "not all active at the end");
  host_close(&me);
  return 0;
}
