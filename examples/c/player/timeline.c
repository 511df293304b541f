/* timeline.c - see timeline.h. SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "stop.h"

const char *origin_name(int32_t origin) {
  switch (origin) {
  case USHER_ORIGIN_SSM: return "the session manager";
  case USHER_ORIGIN_LICENSE: return "the licence server";
  case USHER_ORIGIN_CERTIFICATE: return "the certificate server";
  default: return "this player";
  }
}

const char *operation_name(int32_t operation) {
  switch (operation) {
  case USHER_OPERATION_SETUP: return "set-up";
  case USHER_OPERATION_HEARTBEAT: return "heartbeat";
  case USHER_OPERATION_TEARDOWN: return "teardown";
  case USHER_OPERATION_LICENSE: return "licence";
  case USHER_OPERATION_RENEWAL: return "renewal";
  case USHER_OPERATION_CERTIFICATE: return "certificate";
  default: return "playback";
  }
}

static const char *event_words(const usher_event *event) {
  switch (event->type) {
  case USHER_EVENT_SESSION_STARTED: return "session set up";
  case USHER_EVENT_SETUP_ERROR:
    return event->error.status == USHER_E_LIMIT ? "session refused" : "session set-up failed";
  case USHER_EVENT_HEARTBEAT_ERROR: return "session lost";
  case USHER_EVENT_TEARDOWN_ERROR: return "teardown failed";
  case USHER_EVENT_KEPT_ALIVE: return "session kept alive";
  case USHER_EVENT_RECOVERED: return "session recovered";
  case USHER_EVENT_SESSION_DOUBTFUL: return "session in doubt";
  case USHER_EVENT_RENEWAL_DUE: return "renewal due";
  case USHER_EVENT_SESSION_ENDED: return event->left ? "session left to expire" : "session torn down";
  case USHER_EVENT_LICENSE: return "licence received";
  case USHER_EVENT_LICENSE_ERROR: return "licence failed";
  case USHER_EVENT_PLAYBACK_CLOSED: return "playback closed";
  default: return usher_event_name(event->type);
  }
}

static void copy_failure(struct failure *out, const usher_error *error) {
  usher_explanation words = {.summary = usher_status_message(error->status), .advice = "", .source = ""};
  usher_error_explain(error, &words);
  *out = (struct failure){.status = error->status,
      .origin = error->origin,
      .operation = error->operation,
      .http_status = error->http_status,
      .must_stop = error->must_stop,
      .orphan_possible = error->orphan_possible,
      .service_code = error->service_code,
      .summary = words.summary,
      .advice = words.advice};
  snprintf(out->message, sizeof out->message, "%s", error->message ? error->message : "");
}

/* Inserts a moment so that the list stays in order of time. The observer may get an event only after the player has
   added a step that happened later than the event. */
static void insert(struct timeline *timeline, const struct moment *moment) {
  if (timeline->count == timeline->room) {
    size_t room = timeline->room ? 2 * timeline->room : 32;
    struct moment *more = realloc(timeline->moments, room * sizeof *more);
    /* If there is no memory for this moment, the report does not show it. */
    if (!more) return;
    timeline->moments = more;
    timeline->room = room;
  }
  size_t at = timeline->count++;
  for (; at > 0 && timeline->moments[at - 1].ms > moment->ms; at--) timeline->moments[at] = timeline->moments[at - 1];
  timeline->moments[at] = *moment;
}

/* Adds a keep-alive to the last row, if that row is also about keep-alives. @return false if the keep-alive needs a new
   row. */
static bool join(struct timeline *timeline, const struct moment *beat) {
  struct moment *last = timeline->count > 0 ? &timeline->moments[timeline->count - 1] : NULL;
  if (!last || last->event != USHER_EVENT_KEPT_ALIVE) return false;
  last->count++;
  last->last_ms = beat->ms;
  if (beat->lateness_ms > last->lateness_ms) last->lateness_ms = beat->lateness_ms;
  return true;
}

static void add(struct timeline *timeline, const struct moment *moment) {
  pthread_mutex_lock(&timeline->mutex);
  if (moment->event == USHER_EVENT_KEPT_ALIVE) timeline->beats++;
  if (moment->event != USHER_EVENT_KEPT_ALIVE || !join(timeline, moment)) insert(timeline, moment);
  pthread_mutex_unlock(&timeline->mutex);
}

void timeline_init(struct timeline *timeline) {
  *timeline = (struct timeline){.start_ms = clock_ms()};
  pthread_mutex_init(&timeline->mutex, NULL);
}

void timeline_step(struct timeline *timeline, const char *what, const char *detail) {
  struct moment moment = {.ms = clock_ms() - timeline->start_ms, .what = what, .count = 1};
  moment.last_ms = moment.ms;
  snprintf(moment.detail, sizeof moment.detail, "%s", detail);
  add(timeline, &moment);
}

void timeline_failure(struct timeline *timeline, const char *what, int32_t status) {
  struct moment moment = {.ms = clock_ms() - timeline->start_ms, .what = what, .count = 1};
  usher_error error = {.status = status, .http_status = -1, .message = usher_status_message(status), .must_stop = 1};
  moment.last_ms = moment.ms;
  copy_failure(&moment.failure, &error);
  add(timeline, &moment);
}

void timeline_event(struct timeline *timeline, const usher_event *event) {
  struct moment moment = {.ms = timeline->context_start_ms - timeline->start_ms + event->time_ms,
      .event = event->type,
      .what = event_words(event),
      .count = 1,
      .period_ms = event->period_ms,
      .lateness_ms = event->lateness_ms};
  moment.last_ms = moment.ms;
  if (event->error.status != USHER_OK) copy_failure(&moment.failure, &event->error);
  if (event->type == USHER_EVENT_SESSION_STARTED && event->period_ms > 0)
    snprintf(moment.detail, sizeof moment.detail, "to be kept alive every %.1f s", (double)event->period_ms / 1000);
  add(timeline, &moment);
}

uint64_t timeline_beats(struct timeline *timeline) {
  pthread_mutex_lock(&timeline->mutex);
  uint64_t beats = timeline->beats;
  pthread_mutex_unlock(&timeline->mutex);
  return beats;
}

const struct failure *timeline_worst(const struct timeline *timeline) {
  const struct failure *first = NULL;
  for (size_t i = 0; i < timeline->count; i++) {
    const struct failure *failure = &timeline->moments[i].failure;
    if (failure->status == USHER_OK) continue;
    if (failure->must_stop) return failure;
    if (!first) first = failure;
  }
  return first;
}

void timeline_free(struct timeline *timeline) {
  pthread_mutex_destroy(&timeline->mutex);
  free(timeline->moments);
}
