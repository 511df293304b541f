/* stop.h - lets any thread stop the player: at a fatal event, or at Ctrl-C. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_STOP_H
#define PLAYER_STOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum stop_reason { STOP_NONE, STOP_EVENT, STOP_SIGNAL };

struct stop {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  enum stop_reason reason;
};

/** Prepares `stop`, and handles SIGINT and SIGTERM, so that an interrupted player still tears its session down. */
void stop_init(struct stop *stop);
void stop_set(struct stop *stop, enum stop_reason reason);
enum stop_reason stop_now(struct stop *stop);
/** Sleeps until clock_ms() reaches `deadline_ms` or a stop was requested. @return the reason to stop, if any. */
enum stop_reason stop_wait_until(struct stop *stop, uint64_t deadline_ms);

/** @return the time in milliseconds, on a clock that never goes back. */
uint64_t clock_ms(void);

#endif
