/** @file
 * event.h - what the library tells the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_EVENT_H
#define USHER_EVENT_H

#include "base.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The session was set up; `period_ms` is its keep-alive period (0: none). */
#define USHER_EVENT_SESSION_STARTED 1
/** Set-up failed: no licence, no playback (OTVSSMSetupErrorNotification). */
#define USHER_EVENT_SETUP_ERROR 2
/** Keeping the session alive failed: stop playback; zap to the same item to go on (OTVSSMHeartbeatErrorNotification). Once per outage. */
#define USHER_EVENT_HEARTBEAT_ERROR 3
/** Teardown failed: the slot is held until it expires (OTVSSMTeardownErrorNotification). */
#define USHER_EVENT_TEARDOWN_ERROR 4
/** A heartbeat or enforced renewal was answered. */
#define USHER_EVENT_KEPT_ALIVE 5
/** The outage told by USHER_EVENT_HEARTBEAT_ERROR is over; the session lives. */
#define USHER_EVENT_RECOVERED 6
/** A keep-alive is overdue, e.g. after the machine slept: the session may be gone; the answer follows as KEPT_ALIVE or HEARTBEAT_ERROR. */
#define USHER_EVENT_SESSION_DOUBTFUL 7
/** A renewal is due and the playback has no payload callback: call usher_playback_request_license() with USHER_LICENSE_RENEWAL. */
#define USHER_EVENT_RENEWAL_DUE 8
/** The session ended: torn down, or left to expire (`left` = 1). */
#define USHER_EVENT_SESSION_ENDED 9
/** A licence arrived, first or renewed. */
#define USHER_EVENT_LICENSE 10
/** A licence request failed, or could not be sent; not told for requests that closing or a zap ended. */
#define USHER_EVENT_LICENSE_ERROR 11
/** The playback is closed: nothing more will be told about it. `error.status` says why: USHER_OK, or USHER_E_REPLACED; `error.orphan_possible` is set where
    a session may be held whose token never reached us. Told when the teardown has ended, its retries included; in threaded mode before
    usher_playback_wait_closed() returns, and before usher_context_close() does unless observers take longer than a second. */
#define USHER_EVENT_PLAYBACK_CLOSED 12

/** SSP V2: the licence reply brought no session. Playback goes on without one: nothing is kept alive, nothing torn down. Once per playback. */
#define USHER_EVENT_NO_SESSION 13

/** One event. The struct and all its pointers live until the observer returns. */
typedef struct usher_event {
  /** Size of this struct in the library; fields beyond the one you know may be added. */
  size_t struct_size;
  /** USHER_EVENT_... */
  int32_t type;
  /** 1 for SESSION_ENDED of a session that was left at the head-end on purpose. */
  int32_t left;
  /** Counts the events of this context from 1; order of happening. */
  uint64_t sequence;
  /** When it happened, milliseconds on the context's own clock (starts at 0). */
  uint64_t time_ms;
  /** The playback's handle; may be freed already. Not owned. */
  usher_playback *playback;
  /** The player's handle; may be freed already. Not owned. */
  usher_player *player;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** Keep-alive period in milliseconds; SESSION_STARTED. */
  uint64_t period_ms;
  /** How long after it was due the keep-alive was sent, in milliseconds; KEPT_ALIVE. */
  uint64_t lateness_ms;
  /** The error; `status` USHER_OK for events that are none. */
  usher_error error;
} usher_event;

/**
 * Observer. Threads: a callback thread; in order for one playback, in parallel for different ones. May call: everything but blocking functions. Last
 * call: before `destroy` of its `user_data`.
 *
 * @param event      lives until return.
 * @param user_data  as usher_context_add_observer() was given it.
 */
typedef void (*usher_event_fn)(const usher_event *event, void *user_data);

/**
 * The name of an event type, e.g. "SESSION_STARTED".
 * @param type  USHER_EVENT_...
 * @return static storage; "UNKNOWN" for a value that is none.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_event_name(int32_t type);

#ifdef __cplusplus
}
#endif
#endif /* USHER_EVENT_H */
