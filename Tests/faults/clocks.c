/*
 * clocks.c - a preloaded library that moves the process's wall clock by `wall_clock_offset_s`, and imitates a machine
 * that sleeps: `machine_slept(ms)` moves the boot-time clock ahead, and with it the timers of this clock. It does not
 * change monotonic clocks.
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
/* The timer that was set last, and when it fires on the moved clock. */
static int timer_fd = -1;
static struct itimerspec timer_set;

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
  timer_fd = fd;
  timer_set = *new;
  struct itimerspec moved = *new;
  if (flags == TFD_TIMER_ABSTIME && moved.it_value.tv_sec > slept_ms / 1000) add_ms(&moved.it_value, -slept_ms);
  return call(fd, flags, &moved, old);
}

/* The test's program has one context, so it has one timer. */
void machine_slept(long long ms) {
  slept_ms += ms;
  if (timer_fd >= 0) timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &timer_set, NULL);
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
