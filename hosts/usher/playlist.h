/* playlist.h - rewrites an HLS playlist, so that a player asks the gateway for everything that the playlist names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_PLAYLIST_H
#define USHER_PLAYLIST_H

#include "entries.h"

bool playlist_is(const uint8_t *bytes, size_t size);

/* Reads 32 hexadecimal digits, also with the hyphens of a UUID, which must be the whole text. */
bool key_id_read(const char *text, uint8_t out[16]);

/* Returns a playlist, from malloc(), in which each URI is "/SECRET/NUMBER/NAME": NUMBER is that of its entry, NAME the
 * last part of its path. Only identity keys (AES-128, SAMPLE-AES) get another URI; key lines of DRM systems stay. The
 * key id of a line is its KEYID, or the first 32 hexadecimal digits of its URI, or `default_key_id` unless NULL.
 * NULL: no memory, or the playlist names too much.
 *
 * url: that of the playlist; text: the playlist, with a NUL. */
char *playlist_rewrite(
    struct entries *entries, const char *url, const char *text, const char *secret, const uint8_t *default_key_id);

#endif
