/* clear_key.h - the messages of W3C Clear Key, the smallest CDM. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_CLEAR_KEY_H
#define PLAYER_CLEAR_KEY_H

#include "keyring.h"

#define CLEAR_KEY_REQUEST_MAX (64 + KEYRING_MAX * 25) /* 22 letters, quotes, comma */

/** Writes {"kids":["..."],"type":"temporary"} for every id in the ring; returns the length of the text. */
size_t clear_key_request(const struct keyring *ring, char out[CLEAR_KEY_REQUEST_MAX]);

/** Copies the keys of a licence into the ring. @return the number of copied keys; -1 if it is no Clear Key licence. */
int clear_key_licence(const uint8_t *licence, size_t size, struct keyring *ring);

#endif
