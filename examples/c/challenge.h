/*
 * challenge.h - the Clear Key licence request for a key id on the command line. In your app, the CDM makes the request.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

/* Makes the request, as a text, for a key id of 32 hex digits. @return 0: this is no key id. */
static inline int challenge_for(const char *key_id, char challenge[128]) {
  uint8_t bytes[16];
  size_t size = 127;
  if (strlen(key_id) != 32) return 0;
  for (int i = 0; i < 16; i++)
    if (sscanf(key_id + 2 * i, "%2hhx", &bytes[i]) != 1) return 0;
  if (usher_clearkey_request(bytes, 1, (uint8_t *)challenge, &size) != USHER_OK) return 0;
  challenge[size] = '\0';
  return 1;
}
