/*
 * bench.h - parts that the benchmark programs in C share: the command line, clocks, bodies of replies, and the line of
 * results. SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

/** The options of the command line. If a program cannot handle an option, it ends with a message. */
typedef struct bench_options {
  const char *base; /* URL including "/v1" */
  const char *ca; /* the PEM file of the authority to trust, or NULL */
  const char *journal; /* the path of the journal, or NULL */
  int sessions; /* the number of sessions; in each round all their heartbeats are due at once */
  int in_flight; /* the largest number of requests in flight; 0: one per session (libusher: the library's default) */
  int rounds; /* rounds measured */
  int warm_up; /* rounds before the measurement */
  int variant; /* the comment at the top of each program explains its variants */
  int seconds; /* the duration in seconds of a run on the real clock */
  int pace; /* heartbeats per second, at equal intervals; 0: as many as possible */
  int spread; /* the program spreads the set-ups over this many seconds */
  int ahead; /* 1: libusher opens its connections before the first play */
  int prepare; /* 1: the content token comes from a callback that takes 50 ms; 2: libusher also prepares each item */
  int at_once; /* 1: a zap of libusher does not wait for the teardown */
  int turns; /* the rounds of one turn; the program waits before each turn (bench_await_turn()). 0: no turns */
} bench_options;

/**
 * Returns the options `--base URL --sessions N ...` of the command line. If an option is wrong, ends the program with
 * exit code 2.
 */
bench_options bench_read(int argc, char **argv);

/** The CPU time, the monotonic time and the waits of this process at one moment, or sums of them. */
typedef struct bench_clock {
  int64_t cpu_ns;
  int64_t wall_ns;
  int64_t waits; /* how many times a thread of the process has gone to sleep */
} bench_clock;

/** Sleeps until a monotonic time. */
void bench_sleep_until(int64_t wall_ns);

/** Returns the CPU time and the waits of this process with all its threads, and the monotonic time. */
bench_clock bench_now(void);

/** Adds the time since `start` to `sum`. */
void bench_add(bench_clock *sum, bench_clock start);

/** Waits for the turn of this program: one byte on the standard input. The CPU time since `start` counts for the turn,
    because other threads may work while this thread waits. The real time of the wait does not count. */
void bench_await_turn(bench_clock *start);

/** Prints the result as one line of JSON. */
void bench_print(bench_clock spent, int64_t operations);

/** Ends the program with a message, since a run with an error has no valid figures. */
void bench_fail(const char *what, const char *why) __attribute__((noreturn));

/** The body of a reply. Its memory grows when needed. */
typedef struct bench_body {
  char *bytes;
  size_t count, room;
} bench_body;

/** CURLOPT_WRITEFUNCTION for a bench_body. */
size_t bench_append(char *bytes, size_t size, size_t count, void *body);

#endif
