/* clear_key.c - see clear_key.h. SPDX-License-Identifier: Apache-2.0 */
#include "clear_key.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

size_t clear_key_request(const struct keyring *ring, char out[CLEAR_KEY_REQUEST_MAX]) {
  uint8_t ids[KEYRING_MAX * KEY_SIZE];
  size_t size = CLEAR_KEY_REQUEST_MAX;
  for (size_t i = 0; i < ring->count; i++) memcpy(ids + i * KEY_SIZE, ring->keys[i].kid, KEY_SIZE);
  return usher_clearkey_request(ids, ring->count, (uint8_t *)out, &size) == USHER_OK ? size : 0;
}

int clear_key_licence(const uint8_t *licence, size_t size, struct keyring *ring) {
  usher_clearkey_key keys[4 * KEYRING_MAX];
  size_t count = 4 * KEYRING_MAX;
  char message[128];
  int taken = 0;
  int32_t status = usher_clearkey_keys(licence, size, keys, &count, message, sizeof message);
  if (status != USHER_OK) return fprintf(stderr, "usher-player: %s\n", message), -1;
  for (size_t i = 0; i < count; i++) taken += keyring_set(ring, keys[i].key_id, keys[i].key);
  OPENSSL_cleanse(keys, sizeof keys);
  return taken;
}
