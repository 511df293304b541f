/* mp4_key_ids.h - finds the key ids of an encrypted MP4. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_MP4_KEY_IDS_H
#define PLAYER_MP4_KEY_IDS_H

#include "keyring.h"

/**
 * Adds the key ids of a file to `ring`, with usher_read_mp4().
 * @return true if the file was read, also if it has no key ids; then `ring` stays as it was. false if the file cannot
 *         be opened or read, or is malformed. If it was opened, the function prints what is wrong.
 */
bool mp4_key_ids(const char *path, struct keyring *ring);

#endif
