/* mp4_key_ids.c - see mp4_key_ids.h. SPDX-License-Identifier: Apache-2.0 */
#include "mp4_key_ids.h"

#include <stdio.h>
#include <usher/usher.h>

struct scan {
  FILE *file;
  struct keyring *ring;
};

static int64_t read_file(uint64_t offset, uint8_t *buffer, size_t size, void *user_data) {
  FILE *file = ((struct scan *)user_data)->file;
  if (fseeko(file, (off_t)offset, SEEK_SET) != 0) return -1;
  size_t count = fread(buffer, 1, size, file);
  return ferror(file) ? -1 : (int64_t)count;
}

static void on_part(const usher_protection *part, void *user_data) {
  if (part->part != USHER_PART_FILE) return;
  for (size_t i = 0; i < part->key_id_count; i++)
    keyring_add(((struct scan *)user_data)->ring, part->key_ids + i * KEY_SIZE);
}

bool mp4_key_ids(const char *path, struct keyring *ring) {
  char message[256];
  struct scan scan = {fopen(path, "rb"), ring};
  if (!scan.file) return false;
  int32_t status = usher_read_mp4(read_file, on_part, &scan, message, sizeof message);
  if (status != USHER_OK) fprintf(stderr, "usher-player: %s: %s\n", path, message);
  fclose(scan.file);
  return status == USHER_OK;
}
