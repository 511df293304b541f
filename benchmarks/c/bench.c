/* bench.c - see bench.h. SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

bench_options bench_read(int argc, char **argv) {
  bench_options options = {.sessions = 1, .rounds = 1, .warm_up = 1};
  struct {
    const char *name;
    int *number;
    const char **text;
  } known[] = {
      {"--base", NULL, &options.base},
      {"--ca", NULL, &options.ca},
      {"--journal", NULL, &options.journal},
      {"--sessions", &options.sessions, NULL},
      {"--in-flight", &options.in_flight, NULL},
      {"--rounds", &options.rounds, NULL},
      {"--warm-up", &options.warm_up, NULL},
      {"--variant", &options.variant, NULL},
      {"--seconds", &options.seconds, NULL},
      {"--spread", &options.spread, NULL},
      {"--pace", &options.pace, NULL},
      {"--ahead", &options.ahead, NULL},
      {"--prepare", &options.prepare, NULL},
      {"--at-once", &options.at_once, NULL},
      {"--turns", &options.turns, NULL},
  };
  const size_t count = sizeof known / sizeof *known;
  for (int i = 1; i < argc; i += 2) {
    size_t k = 0;
    while (k < count && strcmp(argv[i], known[k].name) != 0) k++;
    if (k == count || i + 1 == argc) fprintf(stderr, "%s: no such option, or nothing after it\n", argv[i]), exit(2);
    if (known[k].text) *known[k].text = argv[i + 1];
    else *known[k].number = atoi(argv[i + 1]);
  }
  if (!options.base || options.sessions < 1 || options.rounds < 1 || options.in_flight < 0) {
    fprintf(stderr,
        "usage: %s --base URL [--sessions N] [--in-flight N] [--rounds N] [--warm-up N] [--ca FILE] [--seconds N]\n"
        "       [--spread N] [--pace N] [--variant N] [--journal FILE] [--ahead N] [--prepare N]\n"
        "       [--at-once N] [--turns N]\n",
        argv[0]);
    exit(2);
  }
  return options;
}

static int64_t read_clock(clockid_t which) {
  struct timespec now;
  clock_gettime(which, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bench_clock bench_now(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  const bench_clock now = {read_clock(CLOCK_PROCESS_CPUTIME_ID), read_clock(CLOCK_MONOTONIC), used.ru_nvcsw};
  return now;
}

void bench_sleep_until(int64_t wall_ns) {
  const struct timespec time = {wall_ns / 1000000000, wall_ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {}
}

void bench_add(bench_clock *sum, bench_clock start) {
  const bench_clock end = bench_now();
  sum->cpu_ns += end.cpu_ns - start.cpu_ns;
  sum->wall_ns += end.wall_ns - start.wall_ns;
  sum->waits += end.waits - start.waits;
}

void bench_await_turn(bench_clock *start) {
  if (getchar() == EOF) bench_fail("the standard input", "ended before the last turn");
  start->wall_ns = read_clock(CLOCK_MONOTONIC);
}

void bench_print(bench_clock spent, int64_t operations) {
  printf("{\"operations\": %" PRId64 ", \"cpu_ns\": %" PRId64 ", \"wall_ns\": %" PRId64 ", \"waits\": %" PRId64 "}\n",
      operations, spent.cpu_ns, spent.wall_ns, spent.waits);
  fflush(stdout);
}

void bench_fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

size_t bench_append(char *bytes, size_t size, size_t count, void *data) {
  bench_body *body = data;
  const size_t more = size * count;
  if (body->count + more > body->room) {
    const size_t room = 2 * (body->count + more);
    char *grown = realloc(body->bytes, room);
    if (!grown) return 0;
    body->bytes = grown;
    body->room = room;
  }
  memcpy(body->bytes + body->count, bytes, more);
  body->count += more;
  return more;
}
