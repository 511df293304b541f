/* clear_key.c - see clear_key.h. SPDX-License-Identifier: Apache-2.0 */
#include "clear_key.h"

#include <json-c/json.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

size_t clear_key_request(const struct keyring *ring, char out[CLEAR_KEY_REQUEST_MAX]) {
  char kid[BASE64URL_KEY_SIZE];
  size_t length = (size_t)sprintf(out, "{\"kids\":[");
  for (size_t i = 0; i < ring->count; i++) {
    key_to_base64url(ring->keys[i].kid, kid);
    length += (size_t)sprintf(out + length, "%s\"%s\"", i > 0 ? "," : "", kid);
  }
  return length + (size_t)sprintf(out + length, "],\"type\":\"temporary\"}");
}

/* Reads one {"kty":"oct","kid":"...","k":"..."}. */
static bool take_key(struct json_object *item, struct keyring *ring) {
  struct json_object *kid_text, *key_text;
  uint8_t kid[KEY_SIZE], key[KEY_SIZE];
  bool taken = json_object_object_get_ex(item, "kid", &kid_text) && json_object_object_get_ex(item, "k", &key_text) &&
               json_object_is_type(kid_text, json_type_string) && json_object_is_type(key_text, json_type_string) &&
               base64url_to_key(json_object_get_string(kid_text), kid) &&
               base64url_to_key(json_object_get_string(key_text), key) && keyring_set(ring, kid, key);
  OPENSSL_cleanse(key, sizeof key);
  return taken;
}

int clear_key_licence(const uint8_t *licence, size_t size, struct keyring *ring) {
  if (size > INT_MAX) return -1;
  struct json_tokener *tokener = json_tokener_new();
  if (!tokener) return -1;
  struct json_object *root = json_tokener_parse_ex(tokener, (const char *)licence, (int)size);
  json_tokener_free(tokener);
  struct json_object *keys;
  int taken = -1;
  if (json_object_object_get_ex(root, "keys", &keys) && json_object_is_type(keys, json_type_array)) {
    taken = 0;
    for (size_t i = 0; i < json_object_array_length(keys); i++) {
      struct json_object *item = json_object_array_get_idx(keys, i);
      if (json_object_is_type(item, json_type_object) && take_key(item, ring)) taken++;
    }
  }
  json_object_put(root);
  return taken;
}
