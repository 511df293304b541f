/* session.h - one playback with its session. Only this part uses a context of libusher; the other parts call only
   functions that need no context. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_SESSION_H
#define PLAYER_SESSION_H

#include <usher/usher.h>

#include "clear_key.h"
#include "options.h"
#include "stop.h"
#include "timeline.h"

struct session {
  usher_context *context;
  usher_delegate *delegate;
  usher_player *player;
  usher_playback *playback;
  struct timeline *timeline;
  struct stop *stop;
  bool verbose;
  uint64_t heartbeats_sent; /* repeated ones are included; 0 until session_close() sets the number */
  char challenge[CLEAR_KEY_REQUEST_MAX]; /* a Clear Key CDM's request */
  size_t challenge_size;
};

struct licence_facts {
  size_t size; /* bytes; 0: no licence */
  int keys;
  uint64_t period_ms;
  int32_t renew_type;
};

/**
 * Starts a playback and its session set-up. Events go to `timeline`; an event with must_stop also sets `stop`.
 * @return USHER_OK, or the error if no playback started. Call session_close() in both cases.
 */
int32_t session_start(struct session *session, const struct options *options, const struct keyring *ring,
    struct timeline *timeline, struct stop *stop);
/** Waits until set-up has succeeded or failed. @return USHER_OK, or the error. */
int32_t session_wait(struct session *session);
/** Gets the licence and puts its keys into `ring`. @return USHER_OK, or the error. */
int32_t session_get_keys(struct session *session, struct keyring *ring, struct licence_facts *facts);
/** Closes the playback, waits until its session is torn down, counts its heartbeats, frees everything. */
void session_close(struct session *session);

#endif
