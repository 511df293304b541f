/* keyring.c - see keyring.h. SPDX-License-Identifier: Apache-2.0 */
#include "keyring.h"

#include <openssl/crypto.h>
#include <string.h>

static struct content_key *entry(struct keyring *ring, const uint8_t *kid) {
  for (size_t i = 0; i < ring->count; i++)
    if (memcmp(ring->keys[i].kid, kid, KEY_SIZE) == 0) return &ring->keys[i];
  return NULL;
}

bool keyring_add(struct keyring *ring, const uint8_t kid[KEY_SIZE]) {
  if (entry(ring, kid)) return true;
  if (ring->count == KEYRING_MAX) return false;
  struct content_key *added = &ring->keys[ring->count++];
  memset(added, 0, sizeof *added);
  memcpy(added->kid, kid, KEY_SIZE);
  return true;
}

bool keyring_set(struct keyring *ring, const uint8_t kid[KEY_SIZE], const uint8_t key[KEY_SIZE]) {
  struct content_key *found = entry(ring, kid);
  if (!found) return false;
  memcpy(found->key, key, KEY_SIZE);
  found->known = true;
  return true;
}

const uint8_t *keyring_find(const struct keyring *ring, const uint8_t *kid, size_t kid_size) {
  if (ring->one_for_all) return ring->keys[0].known ? ring->keys[0].key : NULL;
  if (kid_size != KEY_SIZE) return NULL;
  for (size_t i = 0; i < ring->count; i++)
    if (ring->keys[i].known && memcmp(ring->keys[i].kid, kid, KEY_SIZE) == 0) return ring->keys[i].key;
  return NULL;
}

size_t keyring_missing(const struct keyring *ring) {
  size_t missing = 0;
  for (size_t i = 0; i < ring->count; i++) missing += !ring->keys[i].known;
  return missing;
}

void keyring_wipe(struct keyring *ring) { OPENSSL_cleanse(ring, sizeof *ring); }

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool hex_to_key(const char *hex, uint8_t out[KEY_SIZE]) {
  size_t digits = 0;
  memset(out, 0, KEY_SIZE);
  for (; *hex; hex++) {
    if (*hex == '-') continue;
    int value = hex_digit(*hex);
    if (value < 0 || digits == 2 * KEY_SIZE) return false;
    out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | value);
    digits++;
  }
  return digits == 2 * KEY_SIZE;
}

void bytes_to_hex(const uint8_t *bytes, size_t size, char *out) {
  for (size_t i = 0; i < size; i++) {
    *out++ = "0123456789abcdef"[bytes[i] >> 4];
    *out++ = "0123456789abcdef"[bytes[i] & 15];
  }
  *out = '\0';
}
