/*
 * held_usher.c - measures many playbacks in one process on the real clock: their memory, and how late their heartbeats
 * are. The program spreads the set-ups over `--spread` seconds, and then runs for `--seconds`. It prints one line of
 * JSON, with the lateness as a histogram of milliseconds. Variant 1 has no observer, so it counts no heartbeats: the
 * program then assumes one heartbeat per session and second. SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { most_late_ms = 20000 };
static atomic_long late[most_late_ms + 1]; /* late[n]: how many heartbeats were n ms late */
static atomic_long beats, errors;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  switch (event->type) {
  case USHER_EVENT_KEPT_ALIVE:
    atomic_fetch_add(&beats, 1);
    atomic_fetch_add(&late[event->lateness_ms < most_late_ms ? event->lateness_ms : most_late_ms], 1);
    break;
  case USHER_EVENT_SETUP_ERROR:
  case USHER_EVENT_HEARTBEAT_ERROR:
  case USHER_EVENT_SESSION_DOUBTFUL:
    if (atomic_fetch_add(&errors, 1) == 0)
      fprintf(stderr, "%s: %s\n", usher_event_name(event->type), event->error.message ? event->error.message : "");
    break;
  default: break;
  }
}

static long resident_kb(void) {
  char line[256];
  long found = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) {
    if (sscanf(line, "VmRSS: %ld kB", &found) == 1) break;
  }
  if (status) fclose(status);
  return found;
}

/** Returns how many bytes malloc has given out, in all its arenas and with mmap. */
static int64_t allocated(void) {
  const struct mallinfo2 info = mallinfo2();
  return (int64_t)info.uordblks + (int64_t)info.hblkhd;
}

/** Starts the playbacks evenly over `spread_ns`. */
static void play_spread(host *me, int sessions, int64_t spread_ns) {
  const int64_t start = bench_now().wall_ns;
  for (int i = 0; i < sessions; i++) {
    bench_sleep_until(start + spread_ns / sessions * i);
    host_start(me);
  }
  host_check(usher_context_settle(me->context, 0, 0, 60000), "usher_context_settle");
}

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  const usher_context_options context = USHER_CONTEXT_OPTIONS_INIT;
  const usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  host me = {0};
  host_open(&me, &options, context, ssp);
  if (options.variant == 0)
    host_check(usher_context_add_observer(me.context, on_event, NULL, NULL, NULL), "usher_context_add_observer");
  /* The first playback allocates the memory that all playbacks share. So start it before the measurement begins. */
  host_start(&me);
  host_check(usher_context_settle(me.context, 0, 0, 10000), "usher_context_settle");
  const int64_t allocated_before = allocated();
  const long resident_before = resident_kb();
  play_spread(&me, options.sessions - 1, (int64_t)options.spread * 1000000000);
  const int64_t allocated_held = allocated() - allocated_before;
  const long resident_held = resident_kb() - resident_before;
  const long before = atomic_load(&beats);
  const bench_clock start = bench_now();
  bench_sleep_until(start.wall_ns + (int64_t)options.seconds * 1000000000);
  bench_clock spent = {0};
  bench_add(&spent, start);
  struct timespec until;
  /* The time at which the measurement ends: held.py ignores later lines of the server's log. */
  clock_gettime(CLOCK_REALTIME, &until);
  const int64_t allocated_end = allocated() - allocated_before;
  const int active = host_active(&me);
  const int64_t operations =
      options.variant == 0 ? atomic_load(&beats) - before : (int64_t)options.sessions * options.seconds;
  printf("{\"operations\": %" PRId64 ", \"sessions\": %d, \"active\": %d, \"errors\": %ld, \"allocated\": %" PRId64
         ", \"resident_kb\": %ld, \"cpu_ns\": %" PRId64 ", \"wall_ns\": %" PRId64 ", \"waits\": %" PRId64
         ", \"allocated_end\": %" PRId64 ", \"until\": %.3f, \"late_ms\": {",
      operations, options.sessions, active, atomic_load(&errors), allocated_held, resident_held, spent.cpu_ns,
      spent.wall_ns, spent.waits, allocated_end, (double)until.tv_sec + (double)until.tv_nsec / 1e9);
  const char *comma = "";
  for (int ms = 0; ms <= most_late_ms; ms++) {
    const long found = atomic_load(&late[ms]);
    if (found) printf("%s\"%d\": %ld", comma, ms, found), comma = ", ";
  }
  printf("}}\n");
  host_close(&me);
  return 0;
}
