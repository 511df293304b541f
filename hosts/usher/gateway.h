/* gateway.h - what the threads of the HTTP server ask the gateway for. Each function takes the gateway's lock.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_GATEWAY_H
#define USHER_GATEWAY_H

#include "../common/words.h"
#include "playlist.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <usher/usher.h>

#define GATEWAY_KEYS_MAX 32 /* that one request can ask for: libusher reads licences of about 60 keys */
#define GATEWAY_NAME_MAX 300

struct gateway;

/* Finds the playback that a path names. @return 200, and the playback's number; 404: there is no such playback; 410:
 * its session is lost, `words` says why. */
unsigned gateway_find(struct gateway *gateway, const char *secret, uint64_t *playback, char words[WORDS_MAX]);
/* Whether a playback still has its path: its session is not lost, and it has not ended. */
bool gateway_is_current(struct gateway *gateway, uint64_t playback);
/* Counts the connections of a playback: without one, the player is gone. */
void gateway_join(struct gateway *gateway, uint64_t playback);
void gateway_leave(struct gateway *gateway, uint64_t playback);

/* Gets keys; begins the session if there is none yet, and waits for the licence server, unless the player closes
 * `connection`, its socket. `keys` has room for `count` keys; wipe it. @return the HTTP status; unless it is 200,
 * `words` says why. */
unsigned gateway_keys(struct gateway *gateway, uint64_t playback, int connection, const uint8_t *key_ids, size_t count,
    usher_clearkey_key *keys, char words[WORDS_MAX]);

/* Copies an entry, whose `url` is from malloc(). @return false: there is none. */
bool gateway_entry(struct gateway *gateway, uint64_t playback, size_t number, struct served *out);
/* As playlist_rewrite(), for the playlist that is the entry `number`. */
char *gateway_rewrite(struct gateway *gateway, uint64_t playback, size_t number, const char *url, const char *text);

bool gateway_allows_origin(struct gateway *gateway, const char *origin);
const char *gateway_ca_file(const struct gateway *gateway);
/* How long to wait for the first bytes of a file, and for a whole playlist. */
int64_t gateway_timeout_ms(const struct gateway *gateway);
/* Prints words on standard error, but the same words only once in a row. */
void gateway_say(struct gateway *gateway, const char *words);
/* Writes a URL without its query and its user, which may be secret. @return `out`. */
const char *gateway_name(const char *url, char out[GATEWAY_NAME_MAX]);
/* The time of a clock that never goes back. */
int64_t gateway_now_ms(void);

#endif
