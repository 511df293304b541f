/* gateway.h - the functions of the gateway for the threads of the HTTP server. A function that uses data that may
 * change takes the gateway's lock.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_GATEWAY_H
#define USHER_GATEWAY_H

#include "../common/words.h"
#include "playlist.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <usher/usher.h>

#define GATEWAY_KEYS_MAX 32 /* the most keys in one request; libusher can read licences of about 60 keys */
#define GATEWAY_NAME_MAX 300
#define GATEWAY_PAGE "page" /* the last part of the URL of the gateway's own web page */

struct gateway;

/* Finds the playback that a path names. @return the HTTP status: 200, and the number of the playback; 404 if there is
   no such playback; 410 if its session is lost, with the reason in `words`. */
unsigned gateway_find(struct gateway *gateway, const char *secret, uint64_t *playback, char words[WORDS_MAX]);
/* Whether the path of a playback is still valid: the playback has not ended, and its session is not lost. */
bool gateway_is_current(struct gateway *gateway, uint64_t playback);
/* gateway_join() and gateway_leave() count the connections of a playback. If there is no connection for some time, the
   gateway assumes that the player has ended. */
void gateway_join(struct gateway *gateway, uint64_t playback);
void gateway_leave(struct gateway *gateway, uint64_t playback);

/* Gets keys. Begins the session if there is none yet. Waits for the licence server, until the player closes its socket
   `connection`. `keys` has room for `count` keys; the caller wipes it. @return the HTTP status; if it is not 200,
   `words` has the reason. */
unsigned gateway_keys(struct gateway *gateway, uint64_t playback, int connection, const uint8_t *key_ids, size_t count,
    usher_clearkey_key *keys, char words[WORDS_MAX]);

/* Copies an entry; the caller frees its `url`. @return false if there is no such entry. */
bool gateway_entry(struct gateway *gateway, uint64_t playback, size_t number, struct served *out);
/* @return the result of playlist_rewrite() for the playlist that is the entry `number`. */
char *gateway_rewrite(struct gateway *gateway, uint64_t playback, size_t number, const char *url, const char *text);

bool gateway_allows_origin(struct gateway *gateway, const char *origin);
const char *gateway_ca_file(const struct gateway *gateway);
/* @return the time limit for the first bytes of a file, and for a whole playlist. gateway_keys() calculates the limit
   of its wait from it. */
int64_t gateway_timeout_ms(const struct gateway *gateway);
/* Prints words on standard error, unless it has printed the same words directly before. */
void gateway_say(struct gateway *gateway, const char *words);
/* Writes a URL without its query and its user name, which may be secret. @return `out`. */
const char *gateway_name(const char *url, char out[GATEWAY_NAME_MAX]);
/* @return the time of a monotonic clock, in ms. */
int64_t gateway_now_ms(void);

#endif
