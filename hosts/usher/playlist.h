/* playlist.h - rewrites an HLS playlist, so that a player asks the gateway for everything that the playlist names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_PLAYLIST_H
#define USHER_PLAYLIST_H

#include "entries.h"

bool playlist_is(const uint8_t *bytes, size_t size);

/* Reads 32 hexadecimal digits, also with the hyphens of a UUID. @return false if the text has anything else. */
bool key_id_read(const char *text, uint8_t out[16]);

/* Returns a playlist in which each URI is "/SECRET/NUMBER/NAME"; the caller frees it. NUMBER is the number of the
   entry, NAME the last part of the path; for a key NAME is "key". Of the keys only identity keys (AES-128, SAMPLE-AES)
   get another URI; key lines of DRM systems do not change. The key id of a line is its KEYID, or the first 32
   hexadecimal digits of its URI, or `default_key_id` if that is not NULL. Returns NULL if there is no memory, or if the
   playlist names too many URIs.
 *
 * url: the URL of the playlist; text: the playlist, with a NUL at its end. */
char *playlist_rewrite(
    struct entries *entries, const char *url, const char *text, const char *secret, const uint8_t *default_key_id);

#endif
