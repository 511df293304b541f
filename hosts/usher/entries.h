/* entries.h - the files and keys that the gateway serves in one playback; each entry has a number.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_ENTRIES_H
#define USHER_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many entries the table has, and the length of all their URLs together; not counting the entries that stay. The
   URLs of the entries that stay have at most the same length. */
#define ENTRIES_MAX 100000
#define ENTRIES_BYTES_MAX (64 * 1024 * 1024)
#define ENTRIES_NONE SIZE_MAX

/* A file or a key that the gateway serves. */
struct served {
  char *url; /* the path or URL of a file, or the URI of a key */
  bool is_key;
  bool has_key_id; /* false if it is a key whose line in the playlist names no key id */
  uint8_t key_id[16];

  /* entries_add() sets these. */
  size_t number;
  size_t size; /* the length of `url` */
  size_t begin; /* the total length of the URLs of all entries that were added before this one */
  bool stays; /* set by entries_keep() */
  struct served *newer;
};

/* The table of entries. A long live stream names new segments all the time, so new entries replace the oldest ones. */
struct entries {
  void *by_content, *by_number; /* trees of tsearch() */
  struct served *oldest, *newest; /* a list in the order of the numbers; make_room() takes entries from its beginning */
  size_t count, bytes; /* number and length of the entries that do not stay */
  size_t stay_count, stay_bytes;
  size_t next_number, added_bytes; /* number and length of all entries that were ever added */
};

/* Adds the entry if it is new. Returns its number; the first entry has the number 0. Returns ENTRIES_NONE if there is
   no memory or the URL is too long. If the caller adds an old entry again, after many other entries, the entry gets a
   second number, and both numbers are valid for some time. A number stays valid while the caller adds at most
   ENTRIES_MAX / 2 further entries, with at most ENTRIES_BYTES_MAX / 2 bytes of URLs. */
size_t entries_add(struct entries *entries, const struct served *entry);
/* Returns the entry with this number; NULL if there is none, or if a newer entry has replaced it. */
const struct served *entries_find(const struct entries *entries, size_t number);
/* Keeps an entry for the whole playback: no other entry replaces it. Does nothing if 1000 entries stay already,
   or if the URLs of those that stay would have more than ENTRIES_BYTES_MAX bytes. */
void entries_keep(struct entries *entries, size_t number);
void entries_clear(struct entries *entries);

#endif
