/*
 * keys.c - see keys.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "keys.h"

#include <openssl/crypto.h>
#include <string.h>

#define KEYS_MAX 1024

typedef struct {
  guint8 key[16];
  UsherKeyState state;
} Key;

static guint hash_key_id(gconstpointer key_id) {
  guint hash = 0;
  memcpy(&hash, (const guint8 *)key_id + 12, sizeof hash);
  return hash;
}
static gboolean equal_key_ids(gconstpointer a, gconstpointer b) { return memcmp(a, b, 16) == 0; }
static void free_key(gpointer key) {
  OPENSSL_cleanse(key, sizeof(Key));
  g_free(key);
}

UsherKeys *usher_keys_new(void) { return g_hash_table_new_full(hash_key_id, equal_key_ids, g_free, free_key); }
void usher_keys_free(UsherKeys *keys) { g_hash_table_unref(keys); }
void usher_keys_clear(UsherKeys *keys) { g_hash_table_remove_all(keys); }

/* Returns the entry of a key. If there is none, makes a pending entry; returns NULL if there are too many entries. */
static Key *entry(UsherKeys *keys, const guint8 *key_id) {
  Key *key = g_hash_table_lookup(keys, key_id);
  if (key || g_hash_table_size(keys) >= KEYS_MAX) return key;
  key = g_new0(Key, 1);
  key->state = USHER_KEYS_PENDING;
  g_hash_table_insert(keys, g_memdup2(key_id, 16), key);
  return key;
}

gboolean usher_keys_expect(UsherKeys *keys, const guint8 *key_id) {
  return !g_hash_table_contains(keys, key_id) && entry(keys, key_id);
}

void usher_keys_add(UsherKeys *keys, const usher_clearkey_key *found, size_t count) {
  for (size_t i = 0; i < count; i++) {
    Key *key = entry(keys, found[i].key_id);
    if (!key) continue;
    memcpy(key->key, found[i].key, 16);
    key->state = USHER_KEYS_READY;
  }
}

void usher_keys_give_up(UsherKeys *keys, const guint8 *key_ids, guint count) {
  for (guint i = 0; i < count; i++) {
    Key *key = g_hash_table_lookup(keys, key_ids + 16 * (gsize)i);
    if (key && key->state == USHER_KEYS_PENDING) key->state = USHER_KEYS_MISSING;
  }
}

UsherKeyState usher_keys_find(UsherKeys *keys, const guint8 *key_id, guint8 *key) {
  const Key *found = g_hash_table_lookup(keys, key_id);
  if (found && found->state == USHER_KEYS_READY) memcpy(key, found->key, 16);
  return found ? found->state : USHER_KEYS_UNKNOWN;
}

GByteArray *usher_keys_ids(UsherKeys *keys) {
  GByteArray *key_ids = g_byte_array_new();
  GHashTableIter iterator;
  gpointer key_id;
  g_hash_table_iter_init(&iterator, keys);
  while (g_hash_table_iter_next(&iterator, &key_id, NULL)) g_byte_array_append(key_ids, key_id, 16);
  return key_ids;
}

guint8 *usher_keys_request(const guint8 *key_ids, gsize count, size_t *size) {
  *size = 0;
  if (usher_clearkey_request(key_ids, count, NULL, size) != USHER_E_TOO_LARGE) return NULL;
  guint8 *payload = g_malloc(*size);
  if (usher_clearkey_request(key_ids, count, payload, size) == USHER_OK) return payload;
  g_free(payload);
  return NULL;
}

usher_clearkey_key *usher_keys_read(const usher_response_info *license, size_t *count, gchar **why) {
  char words[256] = "";
  usher_clearkey_key *found = NULL;
  *count = 0;
  int32_t status = usher_clearkey_keys(license->data, license->data_size, NULL, count, words, sizeof words);
  if (status == USHER_E_TOO_LARGE) {
    found = g_new0(usher_clearkey_key, *count);
    status = usher_clearkey_keys(license->data, license->data_size, found, count, words, sizeof words);
    if (status == USHER_OK) return found;
  }
  usher_keys_forget(found, *count);
  *why = g_strdup(*words ? words : usher_status_message(status));
  return NULL;
}

void usher_keys_forget(usher_clearkey_key *found, size_t count) {
  if (found) OPENSSL_cleanse(found, count * sizeof *found);
  g_free(found);
}
