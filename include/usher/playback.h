/** @file
 * playback.h - one play of one item (OTVAVPlayerItem): its session, and how it ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_PLAYBACK_H
#define USHER_PLAYBACK_H

#include "base.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the delegate does by itself: SSM v1 and customer SSM tear down, SSP V2 leaves (but tears down on a zap; see its options). */
#define USHER_CLOSE_DEFAULT 0
/** Tear the session down. */
#define USHER_CLOSE_TEARDOWN 1
/** Leave the session to expire at the head-end. */
#define USHER_CLOSE_LEAVE 2

/** The playback has no session and never will: its delegate has no SSM. */
#define USHER_SESSION_NONE 0
/** Waiting for its turn on the player, or being set up. */
#define USHER_SESSION_PENDING 1
/** It was set up and is kept alive. */
#define USHER_SESSION_ACTIVE 2
/** A keep-alive is overdue or failing; the session may be gone. */
#define USHER_SESSION_DOUBTFUL 3
/** Set-up or keep-alive failed for good: playback must stop. */
#define USHER_SESSION_FAILED 4
/** Closed, or closing. */
#define USHER_SESSION_ENDED 5

/**
 * Closes a playback: "playback stops". Its waiting licence requests complete with USHER_E_CLOSED; a set-up or keep-alive still under way is waited
 * for, at most the teardown cap, since its reply may carry the only (or a newer) token; then the session is torn down or left. Closing again
 * is a success and does nothing. Returns at once; with `sync_setup_teardown` waits until closed, at most `teardown_timeout_ms`, and answers USHER_OK
 * also when that ran out (it goes on in the background). The end is told as USHER_EVENT_PLAYBACK_CLOSED.
 *
 * @param playback  the playback to close.
 * @param mode      USHER_CLOSE_...
 * @return USHER_OK, USHER_E_INVALID_HANDLE or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes (never waits there). Waits: with a sync delegate. Pumping thread: yes (never waits
 * there). Since: 0.1
 */
USHER_API int32_t usher_playback_close(usher_playback *playback, int32_t mode);

/**
 * Frees the handle; closes with USHER_CLOSE_DEFAULT if not closed yet, without waiting. NULL is a no-op.
 * @param playback  stale from now on.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_free(usher_playback *playback);

/**
 * Waits until set-up has ended. Of a session that failed later it says why.
 *
 * @param playback    whose set-up.
 * @param timeout_ms  longest wait on the context's clock. 0: the delegate's `setup_timeout_ms`.
 * @return USHER_OK: the session is active, or there is none to set up. USHER_E_TIMEOUT: still pending. Otherwise why set-up failed or the playback ended:
 *         USHER_E_LIMIT, USHER_E_REFUSED, USHER_E_HTTP, USHER_E_TRANSPORT, USHER_E_TLS, USHER_E_PROTOCOL, USHER_E_TOO_LARGE, USHER_E_REDIRECT,
 *         USHER_E_NO_TOKEN, USHER_E_REPLACED, USHER_E_CLOSED; USHER_E_INVALID_HANDLE, USHER_E_WOULD_DEADLOCK.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: no. Since: 0.1
 */
USHER_API int32_t usher_playback_wait_session(usher_playback *playback, uint32_t timeout_ms);

/**
 * Waits until a playback is closed, and in threaded mode until its observers were told so (USHER_EVENT_PLAYBACK_CLOSED); a pump is not waited for. Does
 * not close it.
 * @param playback    whose end.
 * @param timeout_ms  longest wait on the context's clock; USHER_OFF: no limit.
 * @return USHER_OK, USHER_E_TIMEOUT, USHER_E_INVALID_HANDLE, USHER_E_WOULD_DEADLOCK.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: no. Since: 0.1
 */
USHER_API int32_t usher_playback_wait_closed(usher_playback *playback, uint32_t timeout_ms);

/**
 * Gives the content token of a playback that was started without one and still waits for it. Once: a token that is known is not replaced.
 *
 * @param playback  that waits.
 * @param token     a header value: not empty, no CR, LF or NUL, at most 64 kB. Not NULL.
 * @return USHER_OK; USHER_E_STATE when it has a token, or gave up waiting; USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, USHER_E_CLOSED.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_set_content_token(usher_playback *playback, const char *token);

/**
 * Says that the host is going to sleep, or that this item will not be shown for a while (not needed for background or picture-in-picture, where sessions go
 * on as usual). With the delegate's `suspend` option KEEP nothing changes; with PAUSE no keep-alives are sent until usher_playback_resume().
 *
 * @param playback  which.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_suspend(usher_playback *playback);

/**
 * Says that it is back. A keep-alive that fell due meanwhile is sent at once; until it is answered the session is doubtful (USHER_EVENT_SESSION_DOUBTFUL), and
 * if it fails, USHER_EVENT_HEARTBEAT_ERROR says so.
 *
 * @param playback  which.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_resume(usher_playback *playback);

/**
 * Says how its session stands.
 * @param playback   whose session.
 * @param out_state  USHER_SESSION_... Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_session_state(usher_playback *playback, int32_t *out_state);

#ifdef __cplusplus
}
#endif
#endif /* USHER_PLAYBACK_H */
