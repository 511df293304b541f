/* mp4_key_ids.h - finds the key ids of an encrypted MP4. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_MP4_KEY_IDS_H
#define PLAYER_MP4_KEY_IDS_H

#include "keyring.h"

/**
 * Adds the key ids of a file to `ring`, with usher_read_mp4().
 * @return false if the file cannot be read; if it is malformed, the function prints why. A file without key ids leaves
 *         the ring as it was.
 */
bool mp4_key_ids(const char *path, struct keyring *ring);

#endif
