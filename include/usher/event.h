/** @file
 * event.h - events: what the library reports to the host.
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

/** The library has set the session up; `period_ms` is its keep-alive period (0: none). */
#define USHER_EVENT_SESSION_STARTED 1
/** Set-up failed: the playback gets no licence and must stop (OTVSSMSetupErrorNotification). */
#define USHER_EVENT_SETUP_ERROR 2
/** The library could not keep the session alive (OTVSSMHeartbeatErrorNotification). Stop playback; to continue, start
    the same item again. The library reports each outage once. */
#define USHER_EVENT_HEARTBEAT_ERROR 3
/** Teardown failed: the head-end may hold the slot until the session expires (OTVSSMTeardownErrorNotification).
    `must_stop` is 0, because the playback has stopped already. */
#define USHER_EVENT_TEARDOWN_ERROR 4
/** The server accepted a heartbeat, or a renewal that keeps the session alive. With customer SSM: the heartbeat
    callback or the renewal has succeeded. If there is no heartbeat callback, the library does not report this event for
    heartbeats. */
#define USHER_EVENT_KEPT_ALIVE 5
/** The outage that USHER_EVENT_HEARTBEAT_ERROR reported is over: the session is alive. */
#define USHER_EVENT_RECOVERED 6
/** A keep-alive is overdue, e.g. after the machine slept: the session may have ended. KEPT_ALIVE or HEARTBEAT_ERROR
    follows. */
#define USHER_EVENT_SESSION_DOUBTFUL 7
/** A renewal is due and the playback has no payload callback: call usher_playback_request_license() with
    USHER_LICENSE_RENEWAL. With customer SSM the library does not report this event. */
#define USHER_EVENT_RENEWAL_DUE 8
/** The library no longer holds the session: it tore the session down, or left it to expire (`left` = 1), or the
    server had ended it. If the teardown failed, USHER_EVENT_TEARDOWN_ERROR comes first. With customer SSM and no
    teardown callback, `left` is 1, because the session is still active at your servers. If you closed the playback
    during set-up, this event comes without an earlier SESSION_STARTED. */
#define USHER_EVENT_SESSION_ENDED 9
/** A licence arrived: the first one, a further one, or a renewal. */
#define USHER_EVENT_LICENSE 10
/** A licence request failed or could not be sent. The library does not report this event for requests that a close or a
    zap ended. */
#define USHER_EVENT_LICENSE_ERROR 11
/** The playback is closed, and the teardown with its retries has ended. No event of the playback follows, unless you
    later tear down a session that was left to expire (see usher_playback_close()). `error.status` is USHER_OK, or
    USHER_E_REPLACED if the player got a newer item before this one began. `error.orphan_possible` is 1 if the head-end
    may hold a session whose token never reached the library. In threaded mode usher_playback_wait_closed() returns
    after the observers have received this event; usher_context_close() waits for the observers at most one second. */
#define USHER_EVENT_PLAYBACK_CLOSED 12

/** SSP V2: the licence reply had no session token. Playback continues without a session: the library sends no
    keep-alives and no teardown. The library reports this event once per playback. If the reply to a later licence
    request has a session token, USHER_EVENT_SESSION_STARTED follows. */
#define USHER_EVENT_NO_SESSION 13
/** A resource loader has registered the device: the licence server accepted a token that registers the device. Store
    this fact, and set `device_registered` of usher_loader_options when the program starts again. */
#define USHER_EVENT_DEVICE_REGISTERED 14
/** The close that usher_context_begin_close() began has ended. `error.status` is USHER_OK if all playbacks are closed,
    or USHER_E_TIMEOUT if the time limit has passed; usher_context_free() then closes the
    playbacks that are still open. The event belongs to no playback. After this event, observers on other threads may
    still receive events of playbacks. */
#define USHER_EVENT_CONTEXT_CLOSED 15
/** The server refused set-up because the account has too many sessions, and the library repeats the set-up (option
    `slot_wait_ms` of the delegate). `error` describes the refusal, with `must_stop` = 0. SESSION_STARTED or SETUP_ERROR
    follows, unless you close the playback before. */
#define USHER_EVENT_WAITING_FOR_SLOT 16
/** A slot that was lost is free again (`error.status` is USHER_OK), or could not be given back (`error` says why the
    teardown failed). The event belongs to no playback. In the first case a process died while it held a session, and
    the library has tried to tear this session down with the record in the journal (option `journal_file` of the
    context). `error.orphan_possible` is 1 if the server does not know the recorded session token: the session has ended
    already, or the process died before it recorded a newer token. The library begins these teardowns when the context
    gets its first observer, or its first playback. In the second case a teardown of this context got no answer
    (TEARDOWN_ERROR), and the library has sent it again, with success. The library sends it before the next set-up at
    the same server, and when the network changes, until the lease of the session must have ended. If no such teardown
    succeeds, there is no event. */
#define USHER_EVENT_RECOVERED_SLOT 17
/** The library cannot use the journal, or a part of it: `error.message` says why. The context works without the
    journal, or without that part: if the process dies, the slots may stay taken until the sessions expire. The
    event belongs to no playback. The library reports what it found at the start when the context gets its first
    observer, or its first playback. */
#define USHER_EVENT_JOURNAL_ERROR 18

/** One event. The struct and everything it points to live until the observer returns. */
typedef struct usher_event {
  /** Size of this struct in the library. A newer library may have fields after those that your header knows. */
  size_t struct_size;
  /** USHER_EVENT_... */
  int32_t type;
  /** In a SESSION_ENDED event: 1 if the library did not tear the session down. Either the library left the session
   * to expire on purpose, or the customer SSM delegate has no teardown callback. 0 in all other cases, also if the
   * server had ended the session. */
  int32_t left;
  /** The number of this event, in the order in which the events of the context happened; the first event has 1. */
  uint64_t sequence;
  /** When the event happened: milliseconds on the context's clock, which starts at 0. */
  uint64_t time_ms;
  /** The playback; NULL in events that belong to no playback. Not owned; you may have freed it already. */
  usher_playback *playback;
  /** The player; NULL in events that belong to no playback. Not owned; you may have freed it already. */
  usher_player *player;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** In a SESSION_STARTED event: the keep-alive period in milliseconds; 0: the session has no keep-alives. */
  uint64_t period_ms;
  /** In a KEPT_ALIVE event: how late the library sent the keep-alive, in milliseconds. */
  uint64_t lateness_ms;
  /** The error. Its `status` is USHER_OK in events that report no error. */
  usher_error error;
} usher_event;

/**
 * Observer: receives every event of a context.
 * Threads: a callback thread; in order for one playback, in parallel for different playbacks. May call: every function
 * whose comment says "In callbacks: yes". Last call: before `destroy` of its `user_data`.
 *
 * @param event      valid until the callback returns.
 * @param user_data  as usher_context_add_observer() received it.
 */
typedef void (*usher_event_fn)(const usher_event *event, void *user_data);

/* Notices: what a viewer must know about the item that a player plays (see usher_player_add_observer()). */
/** The item may play. Either its first licence has arrived; or it had its licence, waited for a slot, and the library
    has set up its new session. */
#define USHER_NOTICE_READY 1
/** Too many devices play on the account. The library repeats the set-up (option `slot_wait_ms`). READY, REFUSED or LOST
    follows, unless you stop the item before. */
#define USHER_NOTICE_WAITING 2
/** The item cannot play. One of these has failed: set-up, the request for the first licence, or a keep-alive before the
    first licence arrived. READY follows if you request a licence again and get one, or if the session recovers. */
#define USHER_NOTICE_REFUSED 3
/** The item was ready and must stop: the session is lost, or a further licence was refused. RECOVERED may follow. */
#define USHER_NOTICE_LOST 4
/** The item may play again: the session is alive, or the licence has arrived. */
#define USHER_NOTICE_RECOVERED 5
/** The item is closed, and the head-end no longer holds its slot. */
#define USHER_NOTICE_TORN_DOWN 6
/** The item is closed. It never had a session, or the library left its session to expire, or the teardown failed. After
    a failed teardown, `error` says why it failed, and the head-end may hold the slot until the session expires. */
#define USHER_NOTICE_ENDED 7

/** One notice. The struct and everything it points to live until the observer returns. */
typedef struct usher_notice {
  /** Size of this struct in the library. A newer library may have fields after those that your header knows. */
  size_t struct_size;
  /** USHER_NOTICE_... */
  int32_t type;
  /** The playback. Not owned; you may have freed it already. */
  usher_playback *playback;
  /** The player. Not owned. */
  usher_player *player;
  /** The `tag` of the playback's options. */
  uint64_t tag;
  /** What has happened, in a sentence for the viewer: the summary of usher_error_explain() for `error`. Static
      storage. */
  const char *summary;
  /** What the viewer can do. Static storage. */
  const char *advice;
  /** For WAITING, REFUSED and LOST: the error that is the reason. For ENDED: why the teardown failed. If there is
      no error, its `status` is USHER_OK. */
  usher_error error;
} usher_notice;

/**
 * Observer of a player: receives the notices of the item that the player plays.
 * Threads: a callback thread, in order with the item's other callbacks. May call: every function whose comment says "In
 * callbacks: yes". Last call: before `destroy` of its `user_data`.
 *
 * @param notice     valid until the callback returns.
 * @param user_data  as usher_player_add_observer() received it.
 */
typedef void (*usher_notice_fn)(const usher_notice *notice, void *user_data);

/**
 * Returns the name of an event type, e.g. "SESSION_STARTED".
 *
 * @param type  USHER_EVENT_...
 * @return static storage; "UNKNOWN" for an unknown value.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_event_name(int32_t type);

#ifdef __cplusplus
}
#endif
#endif /* USHER_EVENT_H */
