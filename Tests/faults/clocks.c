/*
 * clocks.c - a preloaded library that moves the process's wall clock by `wall_clock_offset_s`, and imitates a machine
 * that sleeps: `machine_slept(ms)` moves the boot-time clock ahead, and makes the timers readable that the wake-up of
 * the machine cancels (TFD_TIMER_CANCEL_ON_SET). It does not change monotonic clocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

_Atomic long long wall_clock_offset_s;
static _Atomic long long slept_ms;
/* The timer that the wake-up of the machine cancels. */
static _Atomic int resume_fd = -1;

static void add_ms(struct timespec *time, long long ms) {
  long long ns = time->tv_nsec + ms % 1000 * 1000000;
  time->tv_sec += (time_t)(ms / 1000 + (ns < 0 ? -1 : ns / 1000000000));
  time->tv_nsec = (long)(ns < 0 ? ns + 1000000000 : ns % 1000000000);
}

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
  if (result == 0 && clock == CLOCK_BOOTTIME) add_ms(out, slept_ms);
  return result;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
  static int (*_Atomic real)(int, int, const struct itimerspec *, struct itimerspec *);
  int (*call)(int, int, const struct itimerspec *, struct itimerspec *) = real;
  if (!call) {
    *(void **)&call = dlsym(RTLD_NEXT, "timerfd_settime");
    real = call;
  }
  if (flags & TFD_TIMER_CANCEL_ON_SET) resume_fd = fd;
  return call(fd, flags, new, old);
}

/* Imitates a sleep of `ms` milliseconds: moves the boot-time clock ahead, and lets the timer `resume_fd` fire at once.
   There is only one such timer, because the test's program has one context. */
void machine_slept(long long ms) {
  const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};
  slept_ms += ms;
  if (resume_fd >= 0) timerfd_settime(resume_fd, 0, &at_once, NULL);
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
