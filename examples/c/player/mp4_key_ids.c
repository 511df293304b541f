/* mp4_key_ids.c - see mp4_key_ids.h. Checks every length against the outer box. SPDX-License-Identifier: Apache-2.0 */
#include "mp4_key_ids.h"

#include <stdio.h>
#include <string.h>

#define TYPE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))
#define DEPTH_MAX 12

struct scan {
  FILE *file;
  struct keyring tenc;
  struct keyring pssh;
};

static uint32_t be32(const uint8_t *p) { return TYPE(p[0], p[1], p[2], p[3]); }

static bool read_at(FILE *file, uint64_t at, uint8_t *out, size_t size) {
  return at <= INT64_MAX / 2 && fseeko(file, (off_t)at, SEEK_SET) == 0 && fread(out, 1, size, file) == size;
}

/* @return the bytes between a box's header and its first child, or -1 if the box has no child with key ids. */
static int bytes_before_children(FILE *file, uint32_t type, uint64_t body) {
  uint8_t version[2];
  switch (type) {
  case TYPE('m', 'o', 'o', 'v'):
  case TYPE('t', 'r', 'a', 'k'):
  case TYPE('m', 'd', 'i', 'a'):
  case TYPE('m', 'i', 'n', 'f'):
  case TYPE('s', 't', 'b', 'l'):
  case TYPE('s', 'i', 'n', 'f'):
  case TYPE('s', 'c', 'h', 'i'):
  case TYPE('m', 'o', 'o', 'f'): return 0;
  case TYPE('s', 't', 's', 'd'): return 8;
  case TYPE('e', 'n', 'c', 'v'): return 78;
  case TYPE('e', 'n', 'c', 't'): return 8;
  case TYPE('e', 'n', 'c', 'a'): /* QuickTime's sound description, versions 1 and 2, is longer */
    if (!read_at(file, body + 8, version, sizeof version)) return -1;
    return version[1] == 1 ? 28 + 16 : version[1] == 2 ? 28 + 36 : 28;
  default: return -1;
  }
}

/* A tenc box has version, flags, 2 bytes (reserved or pattern), isProtected, IV size, KID. */
static void read_tenc(struct scan *scan, uint64_t body, uint64_t end) {
  uint8_t box[24];
  if (end - body >= sizeof box && read_at(scan->file, body, box, sizeof box) && box[6] != 0)
    keyring_add(&scan->tenc, box + 8);
}

/* A pssh box has version, flags, system id; in version 1 also a count and as many KIDs. */
static void read_pssh(struct scan *scan, uint64_t body, uint64_t end) {
  uint8_t head[24], kid[KEY_SIZE];
  if (end - body < sizeof head || !read_at(scan->file, body, head, sizeof head) || head[0] == 0) return;
  uint64_t at = body + sizeof head;
  for (uint32_t left = be32(head + 20); left > 0 && end - at >= KEY_SIZE; left--, at += KEY_SIZE)
    if (!read_at(scan->file, at, kid, KEY_SIZE) || !keyring_add(&scan->pssh, kid)) return;
}

static void scan_boxes(struct scan *scan, uint64_t at, uint64_t end, int depth) {
  uint8_t head[16];
  while (end - at >= 8 && read_at(scan->file, at, head, 8)) {
    uint64_t size = be32(head), header = 8;
    uint32_t type = be32(head + 4);
    if (size == 1) { /* the 64-bit size follows */
      if (end - at < 16 || !read_at(scan->file, at + 8, head + 8, 8)) return;
      size = (uint64_t)be32(head + 8) << 32 | be32(head + 12);
      header = 16;
    } else if (size == 0) {
      size = end - at; /* the box extends to the end of the file or of the outer box */
    }
    if (size < header || size > end - at) return;
    uint64_t body = at + header, box_end = at + size;
    if (type == TYPE('t', 'e', 'n', 'c')) read_tenc(scan, body, box_end);
    else if (type == TYPE('p', 's', 's', 'h')) read_pssh(scan, body, box_end);
    else if (depth < DEPTH_MAX) {
      int skip = bytes_before_children(scan->file, type, body);
      if (skip >= 0 && box_end - body >= (uint64_t)skip) scan_boxes(scan, body + (uint64_t)skip, box_end, depth + 1);
    }
    at = box_end;
  }
}

bool mp4_key_ids(const char *path, struct keyring *ring) {
  struct scan scan = {.file = fopen(path, "rb")};
  if (!scan.file) return false;
  bool ok = fseeko(scan.file, 0, SEEK_END) == 0;
  off_t size = ok ? ftello(scan.file) : -1;
  if (size >= 0) scan_boxes(&scan, 0, (uint64_t)size, 0);
  fclose(scan.file);
  const struct keyring *found = scan.tenc.count > 0 ? &scan.tenc : &scan.pssh;
  for (size_t i = 0; i < found->count; i++) keyring_add(ring, found->keys[i].kid);
  return size >= 0;
}
