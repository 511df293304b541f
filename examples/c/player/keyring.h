/* keyring.h - the content keys of a file by key id, and keys as text. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_KEYRING_H
#define PLAYER_KEYRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_SIZE 16
#define KEYRING_MAX 8

struct content_key {
  uint8_t kid[KEY_SIZE];
  uint8_t key[KEY_SIZE];
  bool known; /* `key` is filled */
};

struct keyring {
  struct content_key keys[KEYRING_MAX];
  size_t count;
  bool one_for_all; /* use the first key for every key id (--key, --kid) */
};

/** Adds a key id, unless the ring has it already. @return false if the ring is full. */
bool keyring_add(struct keyring *ring, const uint8_t kid[KEY_SIZE]);
/** Sets the key of an id. @return false if the id is not in the ring. */
bool keyring_set(struct keyring *ring, const uint8_t kid[KEY_SIZE], const uint8_t key[KEY_SIZE]);
/** Returns the key of an id; NULL if the key is not known. */
const uint8_t *keyring_find(const struct keyring *ring, const uint8_t *kid, size_t kid_size);
/** Returns how many ids have no key yet. */
size_t keyring_missing(const struct keyring *ring);
void keyring_wipe(struct keyring *ring);

/** Reads a key or key id from 32 hex digits; dashes as in a UUID are allowed. @return false for any other text. */
bool hex_to_key(const char *hex, uint8_t out[KEY_SIZE]);
void bytes_to_hex(const uint8_t *bytes, size_t size, char *out /* 2 * size + 1 */);

#endif
