/*
 * fail_calls.h - the functions with which a test controls the preloaded library of fail_calls.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_FAIL_CALLS_H
#define USHER_TEST_FAIL_CALLS_H

enum {
  FAIL_NOTHING,
  FAIL_PTHREAD_CREATE,
  FAIL_PTHREAD_KEY_CREATE,
  FAIL_EVENTFD,
  FAIL_EPOLL_CREATE,
  FAIL_EPOLL_CTL,
  FAIL_EPOLL_WAIT,
  FAIL_TIMERFD_CREATE,
  FAIL_TIMERFD_SETTIME,
  FAIL_GETRANDOM,
  FAIL_SOCKET,
  FAIL_SOCKETPAIR,
  FAIL_CONNECT,
  FAIL_GETSOCKNAME,
  FAIL_SETSOCKOPT,
  FAIL_GETSOCKOPT,
  FAIL_IOCTL,
  FAIL_READ,
  FAIL_SEND,
  FAIL_RECV,
  FAIL_WRITE,
  FAIL_FCNTL,
  FAIL_OPEN,
  FAIL_CURL_GLOBAL_INIT,
  FAIL_MEMORY,
  FAIL_KINDS,
  FAIL_OWN_MEMORY = FAIL_KINDS /* allocations of libusher itself; if one of them fails, libusher ends the process */
};
/* Makes the n-th of the next calls of a function (FAIL_...) fail; if `all_after` is 1, also all calls after it. */
void fail_nth(int call, int nth, int all_after) __attribute__((weak));
/* Lets every call succeed again. @return how many calls failed. */
int fail_stop(void) __attribute__((weak));
/* @return how many calls of a function (FAIL_...) the libraries made since fail_nth(). */
int fail_seen(int call) __attribute__((weak));

#endif
