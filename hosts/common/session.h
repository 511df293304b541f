/* session.h - the calls of libusher in a host: a session and a Clear Key licence for the item that a player plays.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTS_SESSION_H
#define HOSTS_SESSION_H

#include <stdbool.h>
#include <usher/usher.h>

#define SESSION_KEYS_MAX 64

/* The objects of libusher that a host needs, and the host's callbacks. The context is pumped (USHER_CALLBACKS_PUMPED),
   so all callbacks run on the host's thread. */
struct session {
  usher_context *context; /* NULL before session_open() */
  usher_player *player;
  usher_playback *playback; /* NULL: nothing plays */
  uint64_t tag; /* the tag of the newest playback; no two playbacks have the same tag */
  int fd; /* a descriptor, readable while callbacks are due; -1 before session_open() */
  uint8_t request[4096]; /* the newest Clear Key licence request */
  size_t request_size;
  bool closed; /* the context has closed */
  /* The tag of the newest playback for which this object has called `unconfirmed`. */
  uint64_t unconfirmed_tag;

  /* Set these before session_open(). */
  void *user_data;
  /* The licence of the current item has arrived. `count` is 0 if libusher can read no key in the licence. */
  void (*licensed)(const usher_clearkey_key *keys, size_t count, void *user_data);
  /* A licence request of the current item has failed. If the item cannot play, this object also calls `failed`. Can be
     NULL. */
  void (*unlicensed)(const usher_error *error, void *user_data);
  /* Too many devices play on the account, and libusher waits for a slot (USHER_NOTICE_WAITING). */
  void (*waiting)(const usher_notice *notice, void *user_data);
  /* The current item cannot play (USHER_NOTICE_REFUSED), or must stop (USHER_NOTICE_LOST). */
  void (*failed)(const usher_notice *notice, void *user_data);
  /* For some time the server may still count the stream of this item or of an earlier one: a teardown has failed, or
     the session token of the stream did not arrive. Called at most once for each item. */
  void (*unconfirmed)(const char *why, void *user_data);
};

int32_t session_open(struct session *session, const usher_context_options *options);
/* Tears down the session of the earlier item, sets up a new session, and requests a licence. This object later calls
   `licensed` or `failed`. @return USHER_OK, or why this failed at once. */
int32_t session_play(struct session *session, const usher_ssp_options *ssp, const char *token, const uint8_t *key_ids,
    size_t count, uint32_t timeout_ms);
/* Requests a licence for further keys of the newest item; `licensed` gets the keys. @return USHER_OK, or why this
   failed at once. */
int32_t session_request(struct session *session, const uint8_t *key_ids, size_t count, uint32_t timeout_ms);
/* Begins the teardown, and returns at once. */
void session_stop(struct session *session);
/* Waits for teardowns, at most `timeout_ms`, and frees everything. */
void session_close(struct session *session, uint32_t timeout_ms);

#endif
