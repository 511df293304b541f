/*
 * calls_usher.c - measures how long short calls of the library take, and callbacks that this thread pumps. Prints a
 * JSON object: the nanoseconds of each kind of call. SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"
#include <stdio.h>

static volatile int32_t sink;
static long told;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  told += event->type == USHER_EVENT_KEPT_ALIVE;
}

static void print(const char *name, bench_clock spent, int64_t operations, const char *after) {
  printf("\"%s\": %.1f%s", name, (double)spent.cpu_ns / (double)operations, after);
}

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  const int64_t calls = (int64_t)options.rounds * 1000;
  usher_context_options context = USHER_CONTEXT_OPTIONS_INIT;
  const usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  host me = {0};
  context.clock = USHER_CLOCK_MANUAL;
  context.callbacks = USHER_CALLBACKS_PUMPED;
  host_open(&me, &options, context, ssp);
  host_play(&me, options.sessions);
  bench_clock version = {0}, state = {0}, stale = {0}, callback = {0};
  usher_playback *freed = NULL;
  host_check(
      usher_player_play(me.players[0],
          &(usher_playback_options){.struct_size = sizeof(usher_playback_options), .content_token = "content.token"},
          &freed),
      "usher_player_play");
  host_check(usher_context_settle(me.context, 0, UINT32_MAX, 10000), "usher_context_settle");
  host_check(usher_playback_free(freed), "usher_playback_free");

  bench_clock start = bench_now();
  for (int64_t i = 0; i < calls; i++) sink = usher_version()[0];
  bench_add(&version, start);
  start = bench_now();
  for (int64_t i = 0; i < calls; i++) sink = usher_playback_session_state(me.playbacks[1], (int32_t *)&sink);
  bench_add(&state, start);
  start = bench_now();
  for (int64_t i = 0; i < calls; i++) sink = usher_playback_session_state(freed, (int32_t *)&sink);
  bench_add(&stale, start);

  host_check(usher_context_pump(me.context, NULL), "usher_context_pump");
  host_check(usher_context_add_observer(me.context, on_event, NULL, NULL, NULL), "usher_context_add_observer");
  uint32_t ran = 0;
  int64_t all = 0;
  for (int round = 0; round < 5; round++) {
    host_check(usher_context_advance(me.context, 60000, 0), "usher_context_advance");
    host_check(usher_context_settle(me.context, 0, UINT32_MAX, 60000), "usher_context_settle");
    start = bench_now();
    host_check(usher_context_pump(me.context, &ran), "usher_context_pump");
    bench_add(&callback, start);
    all += ran;
  }
  if (told < 5 * (options.sessions - 1)) bench_fail("the observer", "did not receive every KEPT_ALIVE");
  printf("{");
  print("version", version, calls, ", ");
  print("state", state, calls, ", ");
  print("stale", stale, calls, ", ");
  print("callback", callback, all, "}\n");
  host_close(&me);
  return 0;
}
