/** @file
 * playback.h - one item that plays on a player (OTVAVPlayerItem): its session, and how it closes.
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

/** The default, which depends on the kind of delegate. With SSM v1 the library tears the session down. With customer
    SSM it calls the teardown callback, if you set one. With SSP V2 it leaves the session to expire, but tears it down
    on a zap (see usher_ssp_v2_options). */
#define USHER_CLOSE_DEFAULT 0
/** Tear the session down. */
#define USHER_CLOSE_TEARDOWN 1
/** Leave the session to expire at the head-end. With customer SSM the library does not call the teardown callback. */
#define USHER_CLOSE_LEAVE 2

/** The playback has no session: its delegate has no SSM, the item is clear, or (SSP V2) the last licence reply had no
    session token (USHER_EVENT_NO_SESSION). */
#define USHER_SESSION_NONE 0
/** There is no session yet: set-up is under way, or the playback waits. It may wait for a content token, for its first
    licence (SSP V2, customer SSM), or until the player has closed the earlier playback. */
#define USHER_SESSION_PENDING 1
/** The session is set up, and the library keeps it alive. */
#define USHER_SESSION_ACTIVE 2
/** The session may have ended: a keep-alive is overdue (USHER_EVENT_SESSION_DOUBTFUL), or the outage that
    USHER_EVENT_HEARTBEAT_ERROR reported continues. While the library retries a failed keep-alive before that event, the
    state stays ACTIVE. */
#define USHER_SESSION_DOUBTFUL 3
/** Set-up or keep-alive failed for good: stop playback. */
#define USHER_SESSION_FAILED 4
/** The playback is closed or closing. */
#define USHER_SESSION_ENDED 5

/**
 * Closes a playback. Call this function when playback stops. Its pending requests complete with USHER_E_CLOSED.
 * After the return, functions that make a request of the playback return USHER_E_CLOSED, and functions that answer a
 * question of the playback return USHER_E_INVALID_COMPLETION (except usher_complete_license() and
 * usher_complete_call()). If a set-up or keep-alive is under way, the library waits for the server's reply, at most
 * `teardown_timeout_ms`, since the reply may carry the only session token, or a newer one. Then the library tears the
 * session down or leaves it to expire, and reports USHER_EVENT_PLAYBACK_CLOSED. If the server has ended the session
 * already, the library sends no teardown.
 *
 * A second call succeeds and does nothing, with one exception: USHER_CLOSE_TEARDOWN tears down a session that was left
 * to expire. When this teardown has ended, USHER_EVENT_SESSION_ENDED follows again, now with `left` = 0. If the
 * teardown failed, or no reply brought the session token, USHER_EVENT_TEARDOWN_ERROR comes first.
 *
 * With most delegates this function returns at once. With a sync delegate (option `sync_setup_teardown`) it waits until
 * the playback is closed, at most `teardown_timeout_ms`. If the call tears down a session that was left to expire,
 * the function waits until that teardown has ended. If `teardown_timeout_ms` passes first, it returns USHER_OK too, and
 * closing continues in the background.
 *
 * @param playback  the playback to close.
 * @param mode      USHER_CLOSE_...
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT; USHER_E_STATE if you ask to tear down a session
 *         that was left to expire, but the library never received its token: the session stays until it expires.
 * Threads: any. In callbacks: yes (never waits there). Waits: with a sync delegate. Since: 0.1
 */
USHER_API int32_t usher_playback_close(usher_playback *playback, int32_t mode);

/**
 * Frees the handle. If the playback is not closed yet, closes it with USHER_CLOSE_DEFAULT; with a sync delegate (option
 * `sync_setup_teardown`) it waits as usher_playback_close() does. NULL is a no-op.
 *
 * @param playback  invalid after this call.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes (never waits there). Waits: with a sync delegate. Since: 0.1
 */
USHER_API int32_t usher_playback_free(usher_playback *playback);

/**
 * Waits for the end of set-up. If the session has already failed, returns the status of that failure. With SSP V2, with
 * customer SSM, and with a multi-instance delegate and no `content_id`, the session begins with the first licence
 * request: first call usher_playback_request_license(), which does not wait.
 *
 * @param playback    the playback whose set-up it waits for.
 * @param timeout_ms  longest wait on the context's clock, ms. 0: the delegate's `setup_timeout_ms` (customer
 *                    SSM: 5000).
 * @param out         a response without data, whose `error` has HTTP status, code and message of the server; free it
 *                    with usher_response_free(). You get it also on USHER_OK and on USHER_E_TIMEOUT. NULL if the
 *                    function refuses the call. May be NULL.
 * @return USHER_OK: the session is active, or the playback needs none. USHER_E_TIMEOUT: set-up is still under way.
 *         USHER_E_STATE: the session begins with the first licence request, and you have not made one yet.
 *         USHER_E_INVALID_HANDLE. USHER_E_WOULD_DEADLOCK: in a callback or on the pumping thread. Otherwise the reason
 *         why set-up failed or the playback ended: USHER_E_LIMIT, USHER_E_REFUSED, USHER_E_HTTP, USHER_E_TRANSPORT,
 *         USHER_E_TLS, USHER_E_PROTOCOL, USHER_E_TOO_LARGE, USHER_E_REDIRECT, USHER_E_NO_TOKEN, USHER_E_REPLACED,
 *         USHER_E_CLOSED.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: no. Since: 0.1
 */
USHER_API int32_t usher_playback_wait_session(usher_playback *playback, uint32_t timeout_ms, usher_response **out);

/**
 * Waits until a playback is closed, and in threaded mode until all its callbacks have returned, including those that
 * receive USHER_EVENT_PLAYBACK_CLOSED. In pumped mode this event may still wait for usher_context_pump() when the
 * function returns. The function does not close the playback.
 *
 * @param playback    the playback.
 * @param timeout_ms  longest wait on the context's clock, ms; USHER_OFF: no limit.
 * @return USHER_OK; USHER_E_TIMEOUT; USHER_E_INVALID_HANDLE; USHER_E_WOULD_DEADLOCK in a callback or on the pumping
 *         thread.
 * Threads: any. In callbacks: no. Waits: yes. Pumping thread: no. Since: 0.1
 */
USHER_API int32_t usher_playback_wait_closed(usher_playback *playback, uint32_t timeout_ms);

/**
 * Gives a content token to a playback that started without a token and still waits for one. A playback takes only one
 * token: a second token does not replace the first.
 *
 * @param playback  the playback that waits.
 * @param token     a header value: not only blanks, no control character except tab, at most 64 kB.
 *                  Not NULL.
 * @return USHER_OK; USHER_E_STATE if the playback has a token or no longer waits for one; USHER_E_INVALID_HANDLE;
 *         USHER_E_INVALID_ARGUMENT; USHER_E_CLOSED if the playback is closed.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_set_content_token(usher_playback *playback, const char *token);

/**
 * Tells the library that the host is going to sleep, or will not show this item for a while. Do not call this function
 * for background playback or picture-in-picture: sessions continue there as usual. With the delegate's `suspend` option
 * KEEP nothing changes; with PAUSE the library sends no keep-alives until usher_playback_resume().
 *
 * @param playback  the playback.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_suspend(usher_playback *playback);

/**
 * Tells the library that the host shows the item again after usher_playback_suspend(). If a keep-alive became due
 * meanwhile, the library sends it at once. If it is then at least one second late, and at least a tenth of the period,
 * the session is doubtful (USHER_EVENT_SESSION_DOUBTFUL) until the server replies. If the keep-alive and its retries
 * fail, USHER_EVENT_HEARTBEAT_ERROR follows.
 *
 * @param playback  the playback.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_resume(usher_playback *playback);

/**
 * Returns the state of a playback's session in `out_state`.
 *
 * @param playback   the playback.
 * @param out_state  USHER_SESSION_... Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_playback_session_state(usher_playback *playback, int32_t *out_state);

#ifdef __cplusplus
}
#endif
#endif /* USHER_PLAYBACK_H */
