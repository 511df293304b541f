/*
 * bench.h - what the benchmark programs in C share: their command line, clocks, the reply's JSON, the line they print.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

/** What a program is to do. Each understands all of it, or ends with a message. */
typedef struct bench_options {
  const char *base; /* URL up to and with "/v1" */
  const char *ca; /* PEM file of the authority to trust, or NULL */
  int sessions; /* how many are kept alive; all due at once, round after round */
  int in_flight; /* most requests under way at once; 0: as many as there are sessions (ours: the library's default) */
  int rounds; /* measured */
  int warm_up; /* rounds before */
  int variant; /* of the program's own */
  int seconds; /* measured, where a program runs on the real clock */
  int pace; /* most beats per second, evenly; 0: as fast as it goes */
  int spread; /* seconds over which set-ups are spread there */
} bench_options;

/** Reads `--base URL --sessions N ...`; ends the program with 2 on a mistake. */
bench_options bench_read(int argc, char **argv);

/** The start of what is measured. */
typedef struct bench_clock {
  int64_t cpu_ns;
  int64_t wall_ns;
} bench_clock;

/** Sleeps until that monotonic time. */
void bench_sleep_until(int64_t wall_ns);

/** CPU time of this process, all its threads, and monotonic time. */
bench_clock bench_now(void);

/** Adds what was spent since `start` to `sum`. */
void bench_add(bench_clock *sum, bench_clock start);

/** Prints the one line of the result: JSON. */
void bench_print(bench_clock spent, int64_t operations);

/** One failure ends a benchmark: a figure of a run with errors is none. */
void bench_fail(const char *what, const char *why) __attribute__((noreturn));

/** A growing body. */
typedef struct bench_body {
  char *bytes;
  size_t count, room;
} bench_body;

/** CURLOPT_WRITEFUNCTION for a bench_body. */
size_t bench_append(char *bytes, size_t size, size_t count, void *body);

#endif
