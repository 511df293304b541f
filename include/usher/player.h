/** @file
 * player.h - one screen of the host (OTVAVPlayer).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_PLAYER_H
#define USHER_PLAYER_H

#include "base.h"
#include "license.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Payload callback: the library itself needs a licence renewal and asks for a fresh payload (FairPlay SPC, PlayReady or Clear Key challenge). Answer with
 * usher_complete_payload(), now or later, within the delegate's `payload_timeout_ms`.
 * Threads: a callback thread, in the order of the playback. May call: everything but blocking functions. Last call: before `destroy`.
 *
 * @param completion  the question, for usher_complete_payload().
 * @param playback    whose licence; may be freed already. Not owned.
 * @param key_system  USHER_KEY_SYSTEM_... of the playback's licence; lives until return.
 * @param tag         the `tag` of the playback's options.
 * @param user_data   the `user_data` of the playback's options.
 */
typedef void (*usher_payload_fn)(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data);

/** One item to play. 0 or NULL: the default. Copied before return. */
typedef struct usher_playback_options {
  /** USHER_PLAYBACK_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** How its licences are asked for. Default: the context's delegate. */
  usher_delegate *delegate;
  /** The content token of the operator: a header value, not empty, no CR, LF or NUL, at most 64 kB; may hold commas. Default: the delegate's token
      callback is asked; without one, usher_playback_set_content_token() may still give it for `token_wait_ms`. */
  const char *content_token;
  /** The content's identifier: bytes, up to 64 kB. A multi-instance delegate finds the content token by it. Default: none; the first licence request then
      says it by its asset_id. */
  const uint8_t *content_id;
  /** Its length in bytes. */
  size_t content_id_size;
  /** Yours; comes back in every event and callback. */
  uint64_t tag;
  /** Fresh payloads for renewals. Default: none; USHER_EVENT_RENEWAL_DUE is raised instead. */
  usher_payload_fn payload;
  /** Licences that renewals of the library brought; not told of renewals that failed. Default: none; USHER_EVENT_LICENSE alone tells. */
  usher_license_fn renewed;
  /** Given to `payload` and `renewed`. */
  void *user_data;
  /** Last call for `user_data`: after observers were told USHER_EVENT_PLAYBACK_CLOSED, or when usher_player_play() failed. */
  usher_destroy_fn destroy;
  /** 1: the item is not encrypted. It has no session and needs no token; what played before is torn down as ever. Default 0. */
  int32_t clear;
} usher_playback_options;

/** All defaults. */
#define USHER_PLAYBACK_OPTIONS_INIT \
  { sizeof(usher_playback_options), NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0 }

/**
 * Makes a player.
 * @param context  whose playbacks it plays.
 * @param out      on USHER_OK a handle to free with usher_player_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT or USHER_E_CLOSED.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_player_new(usher_context *context, usher_player **out);

/**
 * Starts the next item on a player: a zap if one is playing. The earlier playback is closed first, and its session torn down before the
 * new one is set up (waiting for that at most the teardown cap). With an SSM delegate, set-up starts as soon as that is done. The result arrives as
 * USHER_EVENT_SESSION_STARTED or USHER_EVENT_SETUP_ERROR. An item that is replaced before its turn came is closed with USHER_E_REPLACED.
 * Returns at once; with `sync_setup_teardown` it first waits for set-up as usher_playback_wait_session() does, and answers USHER_OK however that ended.
 *
 * @param player   the screen that plays it.
 * @param options  copied before return. Not NULL.
 * @param out      on USHER_OK a handle to free with usher_playback_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, USHER_E_NO_DELEGATE, USHER_E_CLOSED after usher_context_close() began;
 *         with a sync delegate USHER_E_WOULD_DEADLOCK in callbacks (nothing was started).
 * Threads: any. In callbacks: yes; with a sync delegate no (USHER_E_WOULD_DEADLOCK). Waits: with a sync delegate.
 * Pumping thread: yes; with a sync delegate no (USHER_E_WOULD_DEADLOCK). Since: 0.1
 */
USHER_API int32_t usher_player_play(usher_player *player, const usher_playback_options *options, usher_playback **out);

/**
 * Stops what the player plays: closes its playback (and one still waiting for its turn) as usher_playback_close() does, but never waits.
 * @param player  the screen.
 * @param mode    USHER_CLOSE_...
 * @return USHER_OK (also when nothing plays), USHER_E_INVALID_HANDLE or USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_player_stop(usher_player *player, int32_t mode);

/**
 * Frees a player: stops it with USHER_CLOSE_DEFAULT, without waiting. Handles of its playbacks stay yours to free. NULL is a no-op.
 * @param player  stale from now on.
 * @return USHER_OK or USHER_E_INVALID_HANDLE.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_player_free(usher_player *player);

/**
 * Answers a payload callback.
 *
 * @param completion  the id the callback was given.
 * @param payload     the CDM's fresh challenge. NULL: there is none; the renewal fails with USHER_E_CALLBACK.
 * @param size        its length in bytes, 1 to 1 MiB.
 * @return USHER_OK; USHER_E_INVALID_COMPLETION when answered before, too late, or unknown; USHER_E_INVALID_ARGUMENT for a size that fits not (the
 *         question stays open).
 * Threads: any. In callbacks: yes, also in the asking one. Since: 0.1
 */
USHER_API int32_t usher_complete_payload(usher_completion completion, const uint8_t *payload, size_t size);

#ifdef __cplusplus
}
#endif
#endif /* USHER_PLAYER_H */
