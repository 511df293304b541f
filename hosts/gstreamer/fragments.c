/*
 * fragments.c - see fragments.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fragments.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BOXES_MAX 1000

static uint64_t number(const guint8 *bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; i++) value = value << 8 | bytes[i];
  return value;
}

/* Reads the header of the box at `offset`. @return its size; 0 at the end of the file and for a malformed box. */
static uint64_t read_box(FILE *file, uint64_t offset, char type[5]) {
  guint8 header[16] = {0};
  if (offset > INT64_MAX || fseeko(file, (off_t)offset, SEEK_SET) != 0) return 0;
  size_t got = fread(header, 1, sizeof header, file);
  uint64_t size = number(header, 4);
  if (got < 8) return 0;
  memcpy(type, header + 4, 4);
  if (size == 1) size = got == 16 ? number(header + 8, 8) : 0;
  return size < 8 ? 0 : size;
}

gboolean usher_is_progressive(const gchar *uri) {
  gchar *path = g_filename_from_uri(uri, NULL, NULL), type[5] = "";
  FILE *file = path ? fopen(path, "rb") : NULL;
  gboolean moov = FALSE, moof = FALSE;
  uint64_t offset = 0, size;
  for (int i = 0; file && !moof && i < BOXES_MAX && (size = read_box(file, offset, type)) > 0; i++) {
    moov = moov || strcmp(type, "moov") == 0;
    moof = strcmp(type, "moof") == 0;
    offset = size > UINT64_MAX - offset ? UINT64_MAX : offset + size;
  }
  if (file) fclose(file);
  g_free(path);
  return moov && !moof;
}
