/* records.h - the recovery records that the host has written. SPDX-License-Identifier: Apache-2.0 */
#ifndef GUARDIAN_RECORDS_H
#define GUARDIAN_RECORDS_H

#include "../Sources/CGuard/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct records {
  const uint8_t *area; /* shared with the host, read-only */
  usher_record_header header; /* a copy of the header, made when the program started */
};

/* A copy of one record. */
struct record {
  usher_record fixed;
  size_t length;
  uint8_t *bytes; /* `fixed`, then the fields; allocated memory */
};

/* Maps the memory area of a descriptor. @return false if it is not an area of this version, or if another process could
 * make it smaller. */
bool records_open(struct records *records, int fd);
/* Whether the host has marked the area as ended. */
bool records_are_over(const struct records *records);
/* Reads the newest record of a slot; `slot` is -1 for the settings. @return false if there is none. */
bool records_read(const struct records *records, int64_t slot, struct record *out);
/* Wipes and frees a record. */
void record_free(struct record *record);
/* @return the first field of this kind, a text; NULL if the record has none. */
const char *record_text(const struct record *record, uint32_t kind);

#endif
