/* stop.c - see stop.h. SPDX-License-Identifier: Apache-2.0 */
#include "stop.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t signalled;

static void on_signal(int number) {
  (void)number;
  signalled = 1;
}

static uint64_t to_ms(struct timespec time) { return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000; }

uint64_t clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return to_ms(now);
}

void stop_init(struct stop *stop) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&stop->mutex, NULL);
  pthread_cond_init(&stop->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  stop->reason = STOP_NONE;
  /* With SA_RESETHAND, the second Ctrl-C has its default action and ends the process. */
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

void stop_set(struct stop *stop, enum stop_reason reason) {
  pthread_mutex_lock(&stop->mutex);
  if (stop->reason == STOP_NONE) stop->reason = reason;
  pthread_cond_broadcast(&stop->changed);
  pthread_mutex_unlock(&stop->mutex);
}

enum stop_reason stop_now(struct stop *stop) { return stop_wait_until(stop, 0); }

enum stop_reason stop_wait_until(struct stop *stop, uint64_t deadline_ms) {
  pthread_mutex_lock(&stop->mutex);
  for (;;) {
    if (signalled && stop->reason == STOP_NONE) stop->reason = STOP_SIGNAL;
    uint64_t now = clock_ms();
    if (stop->reason != STOP_NONE || now >= deadline_ms) break;
    /* SIGINT does not wake pthread_cond_timedwait(), so look at `signalled` every 100 ms. */
    uint64_t until = deadline_ms - now > 100 ? now + 100 : deadline_ms;
    struct timespec at = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000};
    pthread_cond_timedwait(&stop->changed, &stop->mutex, &at);
  }
  enum stop_reason reason = stop->reason;
  pthread_mutex_unlock(&stop->mutex);
  return reason;
}
