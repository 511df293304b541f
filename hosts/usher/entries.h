/* entries.h - everything that the gateway serves in one playback, by number.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_ENTRIES_H
#define USHER_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENTRIES_MAX 100000
#define ENTRIES_BYTES_MAX (64 * 1024 * 1024) /* the length of all URLs */
#define ENTRIES_NONE SIZE_MAX

/* Something that the gateway serves. */
struct served {
  char *url; /* the path or URL of a file, or the URI of a key */
  bool is_key;
  bool has_key_id; /* false: a key, but its line in the playlist names no key id */
  uint8_t key_id[16];

  /* entries_add() sets these. */
  size_t number;
  bool stays; /* it is a playlist, which players read again */
  struct served *newer;
};

/* A long live stream names new segments all the time, so the oldest entries make room for new ones. */
struct entries {
  void *by_content, *by_number; /* trees of tsearch() */
  struct served *oldest, *newest; /* a list of the entries that can make room */
  size_t count, stay_count, bytes, next_number;
};

/* Returns the number of the entry, which it adds if it is new. The first one has the number 0. ENTRIES_NONE: no memory,
 * or the URL is too long. An entry that has become old gets a new number, so that both are valid for some time. */
size_t entries_add(struct entries *entries, const struct served *entry);
/* Returns NULL if there is no such entry, or no longer. */
const struct served *entries_find(const struct entries *entries, size_t number);
/* Keeps an entry for the whole playback. */
void entries_keep(struct entries *entries, size_t number);
void entries_clear(struct entries *entries);

#endif
