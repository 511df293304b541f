/** @file
 * player.h - a player: it plays one item at a time on one screen of the host (OTVAVPlayer in the SDKs).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_PLAYER_H
#define USHER_PLAYER_H

#include "base.h"
#include "event.h"
#include "license.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Payload callback: the library must renew a licence itself and asks for a fresh payload (FairPlay SPC, PlayReady or
 * Clear Key challenge). Answer with usher_complete_payload(), in the callback or later, within the delegate's
 * `payload_timeout_ms`.
 * Threads: a callback thread, in order with the playback's other callbacks. May call: every function whose comment says
 * "In callbacks: yes". Last call: before `destroy`.
 *
 * @param completion  the question, for usher_complete_payload().
 * @param playback    the playback whose licence must be renewed. Not owned; you may have freed it already.
 * @param key_system  USHER_KEY_SYSTEM_... of the playback's licence; valid until the callback returns.
 * @param tag         the `tag` of the playback's options.
 * @param user_data   the `user_data` of the playback's options.
 */
typedef void (*usher_payload_fn)(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data);

/** One item to play. A field that is 0 or NULL has the default that its comment states. usher_player_play() copies the
    struct before it returns. */
typedef struct usher_playback_options {
  /** USHER_PLAYBACK_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** The licence delegate of this item. Default: the context's delegate. A clear item needs no delegate. */
  usher_delegate *delegate;
  /** The operator's content token: a header value, not only blanks, no control character except tab, at most 64 kB;
      it may contain commas.
      Default: the library asks the delegate's token callback. Without a token callback, the playback waits
      `token_wait_ms` for usher_playback_set_content_token(). Default, common and customer SSM delegates need no token,
      so with them the playback does not wait. */
  const char *content_token;
  /** The content's identifier: bytes, up to 64 kB. A multi-instance delegate uses it to find the content token.
      Default: none; the `asset_id` of the first licence request identifies the content. */
  const uint8_t *content_id;
  /** Its length in bytes. */
  size_t content_id_size;
  /** A number that you choose; every event and callback of the playback carries it. */
  uint64_t tag;
  /** The callback that supplies fresh payloads for renewals. Default: none; the library then reports
      USHER_EVENT_RENEWAL_DUE (with customer SSM it calls the licence callback with the last payload instead). */
  usher_payload_fn payload;
  /** The callback that receives each licence that the library itself renewed. It does not run for a failed renewal.
      Default: none; the host sees such a licence only as USHER_EVENT_LICENSE. */
  usher_license_fn renewed;
  /** Passed to `payload` and `renewed`. */
  void *user_data;
  /** Releases `user_data`: the last call with it. This is also the last callback of the playback (with customer
      SSM, the teardown callback may run later). It runs after the observers have received
      USHER_EVENT_PLAYBACK_CLOSED. If usher_player_play() fails, `destroy` runs inside that function. Default: none. */
  usher_destroy_fn destroy;
  /** 1: the item is not encrypted. It has no session and needs no token. If another item plays on the player, the
      library tears the session of that item down as usual. Default 0. */
  int32_t clear;
} usher_playback_options;

/** All defaults. */
#define USHER_PLAYBACK_OPTIONS_INIT \
  { sizeof(usher_playback_options), NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0 }

/**
 * Makes a player.
 *
 * @param context  the context of its playbacks.
 * @param out      on USHER_OK a handle to free with usher_player_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_player_new(usher_context *context, usher_player **out);

/**
 * Starts the next item on a player; if another item plays there, this is a zap. The library first closes the earlier
 * playback and tears down its session, and waits for that teardown at most `teardown_timeout_ms`. Then the library sets
 * up the session of the new item, if its delegate has an SSM. With the option `zap_without_waiting` of the new item's
 * delegate the library does not wait: it sends the teardown and then, at once, the set-up. With customer SSM the
 * library calls the teardown callback and waits for its answer. Without that callback the library does not wait, and
 * your servers may refuse the next session (1007) because they still hold the earlier one. USHER_EVENT_SESSION_STARTED
 * or USHER_EVENT_SETUP_ERROR reports the result. If the player gets a newer item before this one could start, the
 * library closes this one with USHER_E_REPLACED.
 *
 * With most delegates this function returns at once. With a sync delegate (option `sync_setup_teardown`) it first waits
 * for set-up as usher_playback_wait_session() does, and returns USHER_OK whether set-up succeeded or failed. It does
 * not wait if the first licence request begins the set-up (SSP V2; a multi-instance delegate without `content_id` and
 * `content_token`). On the pumping thread it runs callbacks while it waits, as usher_context_pump() does. Before the
 * first pump, this function treats the thread that made the context as the pumping thread.
 *
 * @param player   the screen that plays the item.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_playback_free(); NULL on failure. Not NULL.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT; USHER_E_NO_DELEGATE; USHER_E_CLOSED after
 *         usher_context_close() began; USHER_E_WOULD_DEADLOCK with a sync delegate, in a callback or on the pumping
 *         thread. On the pumping thread the function returns this error only if the content token is not known:
 *         `content_token` is NULL, and the delegate's token map has no token for `content_id`. After an error, the
 *         function has started no playback.
 * Threads: any. In callbacks: yes; with a sync delegate no (USHER_E_WOULD_DEADLOCK). Waits: with a sync delegate.
 * Pumping thread: yes; with a sync delegate only if the content token is known (otherwise USHER_E_WOULD_DEADLOCK).
 * Since: 0.1
 */
USHER_API int32_t usher_player_play(usher_player *player, const usher_playback_options *options, usher_playback **out);

/**
 * Prepares the item that usher_player_play() will probably play next on a player, while another item may still play
 * there. The library does for this item what takes no slot:
 * - it opens connections as usher_delegate_connect_ahead() does, for `keep_ms`;
 * - it downloads the certificate of the delegate, if the delegate has a certificate URL and no certificate hook;
 * - it asks the token callback for the content token, if the item has none.
 * With customer SSM, and for a clear item, there is nothing to prepare.
 *
 * If usher_player_play() then plays the same item, the playback has the content token. If the token callback has not
 * answered yet, the playback waits for this answer, and does not ask again; if it answered NULL or too late, the
 * playback asks again. The item is the same if `delegate`, `content_token`, `content_id` and `clear` are the same. If
 * usher_player_play() plays another item, or fails, the library drops the prepared item. Each player has at most one
 * prepared item: a second call for another item replaces it; a second call for the same item begins `keep_ms` again,
 * and does not ask the token callback again.
 *
 * No event reports a prepared item. If its preparation fails, this changes nothing for a later usher_player_play(). The
 * token callback gets the handle that usher_player_play() will return for the item, and the `tag` of this call. When
 * the library drops the item, this handle becomes invalid; usher_playback_close() with this handle drops the item.
 *
 * @param player   the screen that will play the item.
 * @param options  as for usher_player_play(), copied before return; the library ignores `payload` and `renewed`. Not
 *                 NULL. `destroy` runs when the library has dropped the item, when usher_player_play() plays it, or if
 *                 this function fails.
 * @param keep_ms  after this time the library drops the item, because its token may be too old, ms on the context's
 *                 clock. 0: the default, 60000.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT; USHER_E_NO_DELEGATE; USHER_E_CLOSED after
 *         usher_context_close() began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_player_prepare(usher_player *player, const usher_playback_options *options, uint32_t keep_ms);

/**
 * Adds an observer of a player, which receives one notice for each thing that a viewer must know, with words for the
 * screen. The observer receives notices only about the current item: the newest item that usher_player_play() has
 * started after this call. After usher_player_play() has returned for the next item, the library calls no observer
 * about an earlier item; a call that another thread has begun may still run. If one failure leads to several events
 * (SETUP_ERROR and LICENSE_ERROR), the observer receives one notice. For a clear item there is no READY.
 *
 * @param player     the screen.
 * @param fn         the observer. Not NULL.
 * @param user_data  passed to every call.
 * @param destroy    releases `user_data`: the last call with it; runs also if this function fails. May be NULL.
 * @param out_id     an id for usher_context_remove_observer(). May be NULL. usher_player_free() removes the observer
 *                   too, so to receive TORN_DOWN or ENDED of the last item, first call usher_player_stop(), and free
 *                   the player after the notice.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_player_add_observer(
    usher_player *player, usher_notice_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);

/**
 * Stops a player: closes the item that plays, and the item that waits to start, as usher_playback_close() does. If
 * nothing plays and the session of the last item was left to expire, USHER_CLOSE_TEARDOWN tears that session down. If
 * the newest item has a sync delegate (option `sync_setup_teardown`), this function waits at most
 * `teardown_timeout_ms`. It waits until the item is closed, or until the session that was left is torn down.
 *
 * @param player  the screen.
 * @param mode    USHER_CLOSE_...
 * @return USHER_OK (also when nothing plays); USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT; USHER_E_STATE if you
 *         ask to tear down a session that was left to expire, but the library does not have its token: it never
 *         received the token, or you have freed the playback.
 * Threads: any. In callbacks: yes (never waits there). Waits: with a sync delegate. Since: 0.1
 */
USHER_API int32_t usher_player_stop(usher_player *player, int32_t mode);

/**
 * Frees a player and stops it with USHER_CLOSE_DEFAULT, as usher_player_stop() does. The handles of its playbacks stay
 * valid; free them yourself. NULL is a no-op.
 *
 * @param player  invalid after this call.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes (never waits there). Waits: with a sync delegate. Since: 0.1
 */
USHER_API int32_t usher_player_free(usher_player *player);

/**
 * Answers a payload callback, or the SPC callback of a loader.
 *
 * @param completion  the id that the callback received.
 * @param payload     the CDM's fresh challenge or SPC. NULL: the CDM made none; the request fails with
 *                    USHER_E_CALLBACK.
 * @param size        its length in bytes, 1 to 1 MiB.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION if the question was answered before, its deadline has passed, its
 *         playback closes, or the id is unknown; USHER_E_INVALID_ARGUMENT for a wrong size (the question stays open).
 * Threads: any. In callbacks: yes, also in the callback that asked. Since: 0.1
 */
USHER_API int32_t usher_complete_payload(usher_completion completion, const uint8_t *payload, size_t size);

#ifdef __cplusplus
}
#endif
#endif /* USHER_PLAYER_H */
