/*
 * late.c - a preloaded library that makes the I/O thread late. If `late_ms` is set, the next call of epoll_wait returns
 * that many milliseconds later, and then three calls with the time-out 0 fail with EINTR. No other thread of the test's
 * program calls epoll_wait.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <time.h>

_Atomic int late_ms;
_Atomic int interrupted;

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
  static int (*_Atomic real)(int, struct epoll_event *, int, int);
  int (*call)(int, struct epoll_event *, int, int) = real;
  if (!call) {
    *(void **)&call = dlsym(RTLD_NEXT, "epoll_wait");
    real = call;
  }
  if (timeout == 0 && interrupted > 0) {
    interrupted--;
    errno = EINTR;
    return -1;
  }
  int count = call(epoll, events, most, timeout);
  int ms = atomic_exchange(&late_ms, 0);
  if (ms > 0) {
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000L};
    nanosleep(&pause, NULL);
    interrupted = 3;
  }
  return count;
}
