/*
 * wallclock.c - a preloaded library that moves the process's wall clock by `wall_clock_offset_s`. It does not change
 * monotonic clocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

_Atomic long long wall_clock_offset_s;

int clock_gettime(clockid_t clock, struct timespec *out) {
  static int (*_Atomic real)(clockid_t, struct timespec *);
  int (*call)(clockid_t, struct timespec *) = real;
  if (!call) {
    *(void **)&call = dlsym(RTLD_NEXT, "clock_gettime");
    real = call;
  }
  int result = call(clock, out);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    out->tv_sec += (time_t)wall_clock_offset_s;
  return result;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}
