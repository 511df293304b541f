/* timeline.h - events and steps with their times, for the report. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_TIMELINE_H
#define PLAYER_TIMELINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <usher/usher.h>

/* A copy of a usher_error, with its explanation. It stays valid after the event. */
struct failure {
  int32_t status, origin, operation, http_status, must_stop, orphan_possible;
  int64_t service_code;
  char message[256];
  const char *summary, *advice;
};

struct moment {
  uint64_t ms; /* since the player started */
  int32_t event; /* USHER_EVENT_..., 0: a step of the player */
  const char *what; /* title; static */
  char detail[120]; /* details, or "" */
  uint32_t count; /* the number of consecutive keep-alives that this moment stands for */
  uint64_t last_ms; /* the time of the last of these keep-alives */
  uint64_t period_ms;
  uint64_t lateness_ms; /* the largest lateness of these keep-alives */
  struct failure failure; /* status USHER_OK: no failure */
};

struct timeline {
  pthread_mutex_t mutex;
  struct moment *moments; /* in order of time */
  size_t count, room;
  uint64_t start_ms; /* clock_ms() when the player started */
  uint64_t context_start_ms; /* the value of clock_ms() when the context's clock was 0 */
  uint64_t beats;
};

void timeline_init(struct timeline *timeline);
/** Adds a step of the player. */
void timeline_step(struct timeline *timeline, const char *what, const char *detail);
/** Adds a failed step that has no event. */
void timeline_failure(struct timeline *timeline, const char *what, int32_t status);
/** Adds an event of the library. Threads: any. */
void timeline_event(struct timeline *timeline, const usher_event *event);
uint64_t timeline_beats(struct timeline *timeline);
/** @return the first failure that ended the playback; otherwise the first failure; NULL if there was no failure. */
const struct failure *timeline_worst(const struct timeline *timeline);
void timeline_free(struct timeline *timeline);

const char *origin_name(int32_t origin);
const char *operation_name(int32_t operation);

#endif
