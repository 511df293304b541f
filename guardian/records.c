/* records.c - see records.h. SPDX-License-Identifier: Apache-2.0 */
#include "records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

bool records_open(struct records *records, int fd) {
  struct stat is;
  const usher_record_header *header = &records->header;
  int seals = fcntl(fd, F_GET_SEALS);
  /* Without this seal another process could make the area smaller, and a read beyond its end would raise SIGBUS. */
  if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &is) != 0 || is.st_size < (off_t)sizeof *header) return false;
  void *area = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (area == MAP_FAILED) return false;
  memcpy(&records->header, area, sizeof records->header);
  records->area = area;
  /* With larger numbers the sum of usher_record_area_size() could exceed 64 bits. */
  if (header->header_size > 1u << 20 || header->copy_size > 1u << 24 || header->slot_count > 1u << 20) return false;
  return header->magic == USHER_RECORD_MAGIC && header->version == USHER_RECORD_VERSION &&
         header->header_size >= sizeof *header && header->copy_size >= sizeof(usher_record_copy) &&
         header->copy_size % 8 == 0 && header->header_size % 8 == 0 &&
         usher_record_area_size(header) <= (size_t)is.st_size;
}

bool records_are_over(const struct records *records) {
  usher_record_header now;
  memcpy(&now, records->area, sizeof now);
  return now.state != USHER_AREA_IN_USE;
}

bool records_read(const struct records *records, int64_t slot, struct record *out) {
  const usher_record_header *header = &records->header;
  const size_t copy_size = header->copy_size;
  uint8_t *bytes = malloc(copy_size + USHER_RECORD_UPDATE_SIZE);
  uint64_t sequence;
  if (bytes == NULL) return false;
  const uint8_t *at = records->area + usher_record_offset(header, slot < 0 ? 0 : 1 + 2 * (size_t)slot);
  size_t length;
  if (slot < 0) length = usher_record_read(at, copy_size, bytes, &sequence);
  else
    length = usher_record_newest(at, copy_size, records->area + usher_record_update_offset(header, (size_t)slot, 0),
        records->area + usher_record_update_offset(header, (size_t)slot, 1), bytes);
  explicit_bzero(bytes + copy_size, USHER_RECORD_UPDATE_SIZE); /* wipes the updates, which the reader put here */
  /* The buffer has room for a whole copy and an update. Make it as small as the record. */
  uint8_t *kept = length >= sizeof out->fixed ? realloc(bytes, length) : NULL;
  if (kept == NULL) {
    free(bytes);
    return false;
  }
  memcpy(&out->fixed, kept, sizeof out->fixed);
  out->length = length;
  out->bytes = kept;
  return true;
}

void record_free(struct record *record) {
  if (record->bytes != NULL) explicit_bzero(record->bytes, record->length);
  free(record->bytes);
  record->bytes = NULL;
}

const char *record_text(const struct record *record, uint32_t kind) {
  usher_record_field field;
  size_t at = 0;
  const uint8_t *bytes;
  while ((bytes = usher_record_next(record->bytes, record->length, &at, &field)) != NULL)
    if (field.kind == kind && kind != USHER_FIELD_BODY) return (const char *)bytes;
  return NULL;
}
