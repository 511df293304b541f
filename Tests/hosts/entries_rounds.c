/*
 * entries_rounds.c - tests the table of hosts/usher/entries.c at its real limits. The argument names the test:
 *
 *   numbers   adds an old entry again, and then as many new entries as the table allows: ENTRIES_MAX / 2
 *   bytes     does the same with long URLs: the new entries have ENTRIES_BYTES_MAX / 2 bytes
 *   rounds    adds playlists with long URLs, one after another; about half of their URLs were added before
 *
 * In the first two tests, 100 entries stay. For each number that does not find its entry, prints a line and fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MAX 400000

static struct entries entries;

static size_t add(size_t name, size_t length) {
  static char url[LENGTH_MAX + 1];
  memset(url, 'x', length);
  url[snprintf(url, length, "https://server/%zu/", name)] = 'x';
  url[length] = 0;
  return entries_add(&entries, &(struct served){.url = url});
}

static int lost(size_t number, size_t name) {
  const struct served *found = entries_find(&entries, number);
  const char *text = found ? strrchr(found->url, '/') : NULL;
  while (text && text > found->url && text[-1] != '/') text--;
  if (text && strtoul(text, NULL, 10) == name) return 0;
  fprintf(stderr, "number %zu does not find entry %zu\n", number, name);
  return 1;
}

/* Adds `fill` entries of `length` bytes; the first 100 stay. Then adds the oldest of the last `recent` entries again,
   which must keep its number. Then adds `most` new entries of `new_length` bytes. Returns 1 if one of these three kinds
   of entries is lost. */
static int use_again(size_t length, size_t fill, size_t recent, size_t most, size_t new_length) {
  size_t name = 0;
  for (; name < 100; name++) entries_keep(&entries, add(name, length));
  for (; name < fill; name++) add(name, length);
  const size_t used = name - recent, number = add(used, length);
  if (number != used) return fprintf(stderr, "entry %zu got the new number %zu\n", used, number), 1;
  for (size_t i = 0; i < most; i++) {
    const size_t new_name = name++;
    if (lost(add(new_name, new_length), new_name) || lost(number, used)) return 1;
  }
  for (size_t stays = 0; stays < 100; stays++)
    if (lost(stays, stays)) return 1;
  return 0;
}

static size_t below(size_t limit) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(state >> 33) % limit;
}

/* Adds `count` playlists, one after another. Each has as many URLs of `length` bytes as the table allows. Returns 1 if
   a number does not find its entry at the end of its playlist, or if no entry got its old number again. */
static int rounds(size_t length, size_t count) {
  size_t size = ENTRIES_BYTES_MAX / 2 / length, names = 0, again = 0, result = 0;
  size_t *named = calloc(size, sizeof *named), *numbers = calloc(size, sizeof *numbers);
  for (size_t round = 0; named && numbers && round < count; round++) {
    for (size_t i = 0; i < size; i++) {
      const size_t back = below(3 * size), before = entries.next_number;
      named[i] = below(2) && back < names ? names - 1 - back : names++;
      numbers[i] = add(named[i], length);
      again += numbers[i] < before;
    }
    for (size_t i = 0; i < size; i++) result |= (size_t)lost(numbers[i], named[i]);
  }
  free(named), free(numbers);
  if (again == 0) fprintf(stderr, "no entry was used again\n");
  return result || again == 0;
}

int main(int count, char **words) {
  const char *test = count == 2 ? words[1] : "";
  int result = 2;
  if (strcmp(test, "numbers") == 0) result = use_again(60, ENTRIES_MAX, ENTRIES_MAX / 2 - 1, ENTRIES_MAX / 2, 60);
  else if (strcmp(test, "bytes") == 0)
    /* 4096 entries of 16 kB fill the table. The 128 new entries together have half of the table's bytes. */
    result = use_again(16384, 4096, 2047, 128, 262144);
  else if (strcmp(test, "rounds") == 0) result = rounds(200000, 12);
  entries_clear(&entries);
  return result;
}
