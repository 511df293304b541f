/*
 * entries_rounds.c - adds playlists to the table of hosts/usher/entries.c, at its real limits. Each playlist has half
 * the limits: as many entries or as many bytes as the table promises to keep. About half of the entries were in one of
 * the playlists before. After each playlist, the program checks that the number of each entry still finds its URL.
 *
 * Arguments: the length of the URLs, the number of playlists, and how many of the first entries stay.
 * Prints how many entries all playlists have, and how many of these got an older number.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 1;

static size_t below(size_t limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(state >> 33) % limit;
}

static void write_url(char *url, size_t length, size_t name) {
  memset(url, 'x', length);
  url[snprintf(url, length, "https://server/%zu/", name)] = 'x';
  url[length] = 0;
}

int main(int count, char **words) {
  if (count != 4) return 2;
  const size_t length = strtoul(words[1], NULL, 10), rounds = strtoul(words[2], NULL, 10),
               stay = strtoul(words[3], NULL, 10);
  size_t size = ENTRIES_BYTES_MAX / 2 / length, names = 0, all = 0, again = 0;
  if (size > ENTRIES_MAX / 2) size = ENTRIES_MAX / 2;
  size_t *named = calloc(size, sizeof *named), *numbers = calloc(size, sizeof *numbers);
  char *url = malloc(length + 1);
  struct entries entries = {0};
  if (!named || !numbers || !url) return 1;
  for (size_t round = 0; round < rounds; round++) {
    for (size_t i = 0; i < size; i++) {
      const size_t back = below(3 * size);
      named[i] = below(2) && back < names ? names - 1 - back : names++;
      write_url(url, length, named[i]);
      const size_t before = entries.next_number;
      numbers[i] = entries_add(&entries, &(struct served){.url = url});
      if (numbers[i] == ENTRIES_NONE) return fprintf(stderr, "no room for entry %zu of playlist %zu\n", i, round), 1;
      all++, again += numbers[i] < before;
      if (numbers[i] < stay) entries_keep(&entries, numbers[i]);
    }
    for (size_t i = 0; i < size; i++) {
      const struct served *found = entries_find(&entries, numbers[i]);
      write_url(url, length, named[i]);
      if (!found || strcmp(found->url, url) != 0)
        return fprintf(stderr, "playlist %zu lost entry %zu of %zu\n", round, i, size), 1;
    }
  }
  for (size_t number = 0; number < stay; number++)
    if (!entries_find(&entries, number)) return fprintf(stderr, "entry %zu did not stay\n", number), 1;
  printf("%zu %zu\n", all, again);
  entries_clear(&entries);
  free(named), free(numbers), free(url);
  return 0;
}
