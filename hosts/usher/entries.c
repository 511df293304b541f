/* entries.c - see entries.h. SPDX-License-Identifier: Apache-2.0 */
#include "entries.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { STAY_MAX = 1000 };

static int compare_content(const void *first, const void *second) {
  const struct served *a = first, *b = second;
  if (a->is_key != b->is_key) return a->is_key ? 1 : -1;
  if (a->has_key_id != b->has_key_id) return a->has_key_id ? 1 : -1;
  int order = memcmp(a->key_id, b->key_id, 16);
  return order ? order : strcmp(a->url, b->url);
}

static int compare_number(const void *first, const void *second) {
  size_t a = ((const struct served *)first)->number, b = ((const struct served *)second)->number;
  return a < b ? -1 : a > b;
}

static void free_entry(void *entry) {
  free(((struct served *)entry)->url);
  free(entry);
}

/* Removes and frees an entry that is no longer in the list of `oldest` and `newest`. */
static void drop(struct entries *entries, struct served *entry) {
  struct served **known = tfind(entry, &entries->by_content, compare_content);
  if (known && *known == entry) tdelete(entry, &entries->by_content, compare_content);
  tdelete(entry, &entries->by_number, compare_number);
  entries->count--, entries->bytes -= entry->size;
  free_entry(entry);
}

static void make_room(struct entries *entries, size_t bytes) {
  while (entries->oldest && (entries->count >= ENTRIES_MAX || entries->bytes + bytes > ENTRIES_BYTES_MAX)) {
    struct served *entry = entries->oldest;
    entries->oldest = entry->newer;
    if (!entries->oldest) entries->newest = NULL;
    if (!entry->stays) drop(entries, entry);
  }
}

/* Whether the entry stays valid while ENTRIES_MAX / 2 further entries with ENTRIES_BYTES_MAX / 2 bytes are added: its
   `stays` is true, or fewer entries than ENTRIES_MAX / 2, with fewer bytes than
   ENTRIES_BYTES_MAX / 2, were added after it. */
static bool is_recent(const struct entries *entries, const struct served *entry) {
  return entry->stays || (entries->next_number - entry->number < ENTRIES_MAX / 2 &&
                             entries->added_bytes - entry->begin < ENTRIES_BYTES_MAX / 2);
}

size_t entries_add(struct entries *entries, const struct served *entry) {
  size_t bytes = strlen(entry->url);
  struct served **known = tfind(entry, &entries->by_content, compare_content);
  if (known && is_recent(entries, *known)) return (*known)->number;
  make_room(entries, bytes);
  if (entries->count >= ENTRIES_MAX || entries->bytes + bytes > ENTRIES_BYTES_MAX) return ENTRIES_NONE;
  struct served *copy = malloc(sizeof *copy), **place = NULL, **numbered = NULL;
  if (!copy) return ENTRIES_NONE;
  *copy = *entry, copy->number = entries->next_number, copy->stays = false, copy->newer = NULL;
  copy->begin = entries->added_bytes, copy->size = bytes;
  copy->url = strdup(entry->url);
  if (copy->url) numbered = tsearch(copy, &entries->by_number, compare_number);
  if (numbered) place = tsearch(copy, &entries->by_content, compare_content);
  if (!place) {
    if (numbered) tdelete(copy, &entries->by_number, compare_number);
    return free_entry(copy), ENTRIES_NONE;
  }
  *place = copy; /* replaces the older entry with the same content */
  if (entries->newest) entries->newest->newer = copy;
  else entries->oldest = copy;
  entries->newest = copy, entries->count++, entries->bytes += bytes, entries->added_bytes += bytes;
  return entries->next_number++;
}

const struct served *entries_find(const struct entries *entries, size_t number) {
  struct served **found = tfind(&(struct served){.number = number}, &entries->by_number, compare_number);
  return found ? *found : NULL;
}

void entries_keep(struct entries *entries, size_t number) {
  struct served **found = tfind(&(struct served){.number = number}, &entries->by_number, compare_number);
  if (!found || (*found)->stays || entries->stay_count == STAY_MAX) return;
  if (entries->stay_bytes + (*found)->size > ENTRIES_BYTES_MAX) return;
  (*found)->stays = true, entries->stay_count++, entries->stay_bytes += (*found)->size;
  entries->count--, entries->bytes -= (*found)->size;
}

static void forget(void *entry) { (void)entry; }

void entries_clear(struct entries *entries) {
  tdestroy(entries->by_content, forget);
  tdestroy(entries->by_number, free_entry);
  memset(entries, 0, sizeof *entries);
}
