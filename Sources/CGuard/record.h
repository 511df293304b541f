/* The format of recovery records: for each session that a context holds, all that another process needs to tear the
 * session down after the host has died. libusher writes the records; usher-guardian reads them.
 *
 * Most replies of a server change only the session token. For such a reply the library does not write the whole record
 * again, but an update (usher_record_update): the new token, and the new end of the lease. A reader takes the newest
 * record of a slot, and puts the newest update of this record into it.
 *
 * An area is one block of memory, in this order:
 *   1. the header (usher_record_header),
 *   2. one copy with the settings of the context (usher_record_copy, fields USHER_FIELD_AUTHORITIES and following),
 *   3. `slot_count` slots of two copies each, for records: slot i has the copies 1 + 2 i and 2 + 2 i,
 *   4. for each slot two small copies, for updates: first one of each slot, then the other one of each slot.
 * A copy takes `copy_size` bytes, a small copy USHER_RECORD_UPDATE_SIZE. With this order of the small copies, the
 * updates of many sessions are in few pages of memory. The writer never changes the copy that has the newest record, or
 * the small copy that has its newest update; it changes the other one. So if the host dies while it writes a copy, the
 * checksum of this copy is wrong, and the other copy still has what was written before.
 *
 * All numbers are in the byte order of the machine. Readers must treat the bytes as untrusted: usher_record_read()
 * checks the length and the checksum, and usher_record_next() never reads beyond the record. */
#ifndef USHER_CGUARD_RECORD_H
#define USHER_CGUARD_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* "UsherRec" in memory. */
#define USHER_RECORD_MAGIC 0x6365527265687355ull
#define USHER_RECORD_VERSION 5u

/* The size of a small copy, which stores an update. If a token is too long for a small copy, the writer writes the
   whole record. */
#define USHER_RECORD_UPDATE_SIZE 2048u

/* States of an area. */
#define USHER_AREA_IN_USE 1u
/* The context was freed: no record may be used any more. */
#define USHER_AREA_ENDED 2u

typedef struct usher_record_header {
  uint64_t magic;
  uint32_t version;
  /* The sizes of this header and of one copy, and the number of slots. */
  uint32_t header_size;
  uint32_t copy_size;
  uint32_t slot_count;
  /* The process of the host, in its own PID namespace. */
  int32_t process;
  /* USHER_AREA_... */
  uint32_t state;
  /* When the area was made, in milliseconds since 1970. */
  int64_t made_at_ms;
  /* The text of /proc/sys/kernel/random/boot_id, which changes when the system boots; zeros if it is unknown. */
  uint8_t boot_id[40];
} usher_record_header;

/* The head of a copy; `length` bytes follow: usher_record and its fields, or usher_record_update and the token. */
typedef struct usher_record_copy {
  /* The number of the write. Each write to a slot, of a record or of an update, has a higher number than the write
   * before it. Of two valid copies, the one with the higher number is the newer one. */
  uint64_t sequence;
  /* Covers `sequence`, `length` and the bytes; see usher_record_checksum(). */
  uint64_t checksum;
  /* 0: the copy has no record, or the record was cleared. */
  uint64_t length;
} usher_record_copy;

/* The fixed part of a record; the fields follow. In the settings only `connect_timeout_ms` and `flags` are set. */
typedef struct usher_record {
  /* The number of the playback in its context. */
  uint64_t playback;
  /* The instant after which the library assumes that the server has ended the session: first in milliseconds of
   * CLOCK_BOOTTIME, then in milliseconds since 1970. */
  int64_t expires_boot_ms;
  int64_t expires_wall_ms;
  /* The time limit of one teardown request, and the time limit for making a connection. */
  uint32_t timeout_ms;
  uint32_t connect_timeout_ms;
  /* How many times the teardown request may be repeated. */
  uint32_t retries;
  /* USHER_RECORD_... */
  uint32_t flags;
} usher_record;

/* The request is a POST; without this flag it is a GET. */
#define USHER_RECORD_POST 1u
/* The server is this machine. If the settings name no proxy, the request uses none, not even one of the environment. */
#define USHER_RECORD_LOOPBACK 2u
/* Only in the settings: https requests may use HTTP/2. */
#define USHER_RECORD_HTTP2 4u

/* An update of a record. The bytes of the token follow, and zeros up to a multiple of 8. */
typedef struct usher_record_update {
  /* The `sequence` of the record that it changes. */
  uint64_t record;
  /* The new end of the lease. These two numbers replace those of the same name in the record. */
  int64_t expires_boot_ms;
  int64_t expires_wall_ms;
  /* Where the token begins in the record, and how many bytes it has. */
  uint32_t token_at;
  uint32_t token_size;
} usher_record_update;

/* The fields of a record. All texts end with a NUL, which `length` counts. */
#define USHER_FIELD_URL 1u
/* A header line "Name: value"; a record has several. */
#define USHER_FIELD_HEADER 2u
#define USHER_FIELD_BODY 3u
/* The server's addresses that the library has looked up, as CURLOPT_RESOLVE reads them. */
#define USHER_FIELD_ADDRESSES 4u
/* A cookie, as CURLINFO_COOKIELIST writes it; a record may have several. */
#define USHER_FIELD_COOKIE 5u
/* The fields of the settings. Each has the value of an option of the context; context.h explains these options. */
#define USHER_FIELD_AUTHORITIES 16u
#define USHER_FIELD_CERTIFICATE 17u
#define USHER_FIELD_KEY 18u
#define USHER_FIELD_PHRASE 19u
#define USHER_FIELD_PIN 20u
#define USHER_FIELD_PROXY 21u
#define USHER_FIELD_USER_AGENT 22u

/* The head of a field; its bytes follow, and zeros up to a multiple of 8. */
typedef struct usher_record_field {
  uint32_t kind;
  uint32_t length;
} usher_record_field;

static inline size_t usher_record_padded(size_t length) { return (length + 7) & ~(size_t)7; }

/* Where copy `index` of an area begins; 0 is the settings. */
static inline size_t usher_record_offset(const usher_record_header *area, size_t index) {
  return (size_t)area->header_size + index * area->copy_size;
}
/* Where small copy `which` (0 or 1) of slot `slot` begins. */
static inline size_t usher_record_update_offset(const usher_record_header *area, size_t slot, size_t which) {
  const size_t slot_count = area->slot_count;
  return usher_record_offset(area, 1 + 2 * slot_count) + (which * slot_count + slot) * USHER_RECORD_UPDATE_SIZE;
}
static inline size_t usher_record_area_size(const usher_record_header *area) {
  return usher_record_update_offset(area, 0, 2);
}

static inline void usher_record_end(void *area) { ((usher_record_header *)area)->state = USHER_AREA_ENDED; }

__extension__ typedef unsigned __int128 usher_record_product;

/* Mixes a word and its offset in the record. XORs the two halves of the product: if the function added the halves,
 * opposite changes in two words could cancel in the sum. */
static inline uint64_t usher_record_mixed(size_t at, uint64_t word) {
  const usher_record_product product =
      (usher_record_product)(word + at * 0x9E3779B97F4A7C15ull) * 0xBF58476D1CE4E5B9ull;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Returns the sum of the mixed words of `length` bytes, which begin at offset `at` of the record. `length` is a
 * multiple of 8. */
__attribute__((noinline, unused)) static uint64_t usher_record_sum(size_t at, const void *bytes, size_t length) {
  uint64_t sum = 0;
  for (const uint8_t *next = (const uint8_t *)bytes, *end = next + length; next < end; next += 8, at += 8) {
    uint64_t word;
    memcpy(&word, next, sizeof word);
    sum += usher_record_mixed(at, word);
  }
  return sum;
}

/* Returns the checksum of a copy. `sum`: the result of usher_record_sum() for its bytes; `sequence` and `length`: those
 * of the copy. */
static inline uint64_t usher_record_sum_end(uint64_t sum, uint64_t sequence, uint64_t length) {
  sum += (sequence ^ USHER_RECORD_MAGIC) * 0x9E3779B97F4A7C15ull + length;
  sum = (sum ^ (sum >> 32)) * 0x94D049BB133111EBull;
  return sum ^ (sum >> 29);
}

/* Returns the checksum of a copy. It shows that a copy was written only in part; it does not protect against an
 * attacker. `length` is a multiple of 8. */
static inline uint64_t usher_record_checksum(uint64_t sequence, const void *bytes, uint64_t length) {
  return usher_record_sum_end(usher_record_sum(0, bytes, (size_t)length & ~(size_t)7), sequence, length);
}

/* Ends the write of a copy whose `length` bytes are in place. */
static inline void usher_record_seal(void *copy, uint64_t sequence, uint64_t length) {
  usher_record_copy *head = (usher_record_copy *)copy;
  head->sequence = sequence;
  head->length = length;
  head->checksum = usher_record_checksum(sequence, (const uint8_t *)copy + sizeof *head, length);
}

/* Returns where a record of `length` bytes has its token, the `size` bytes of `token`: at the end of the first header
 * line, which follows the URL. Returns 0 if the token is not there. Another process may write to the record, so this
 * function uses no length from it without a check. */
static inline size_t usher_record_token_at(const uint8_t *record, size_t length, const void *token, size_t size) {
  usher_record_field url, line;
  if (length % 8 != 0 || length < sizeof(usher_record) + 2 * sizeof url) return 0;
  memcpy(&url, record + sizeof(usher_record), sizeof url);
  size_t at = sizeof(usher_record) + sizeof url + usher_record_padded(url.length);
  if (at > length - sizeof line) return 0;
  memcpy(&line, record + at, sizeof line);
  at += sizeof line;
  if (line.kind != USHER_FIELD_HEADER || line.length <= size || line.length > length - at) return 0;
  at += line.length - 1 - size;
  return memcmp(record + at, token, size) == 0 ? at : 0;
}

static inline size_t usher_record_update_length(size_t token_size) {
  return sizeof(usher_record_update) + usher_record_padded(token_size);
}

/* Writes an update and its token, which has at least one byte, behind the head of a small copy. */
static inline void usher_record_write_update(void *body, const usher_record_update *update, const void *token) {
  uint8_t *bytes = (uint8_t *)body + sizeof *update;
  memcpy(body, update, sizeof *update);
  memset(bytes + usher_record_padded(update->token_size) - 8, 0, 8);
  memcpy(bytes, token, update->token_size);
}

/* Ends the write of a small copy that has this update. Does not read the update in the copy, because the processor may
 * wait long for that memory. */
__attribute__((noinline, unused)) static void usher_record_seal_update(
    void *copy, uint64_t sequence, const usher_record_update *update, const void *token) {
  usher_record_copy *head = (usher_record_copy *)copy;
  const size_t whole = update->token_size & ~(size_t)7, rest = update->token_size - whole;
  uint64_t sum = usher_record_sum(0, update, sizeof *update) + usher_record_sum(sizeof *update, token, whole);
  if (rest > 0) {
    uint64_t word = 0;
    memcpy(&word, (const uint8_t *)token + whole, rest);
    sum += usher_record_mixed(sizeof *update + whole, word);
  }
  head->sequence = sequence;
  head->length = usher_record_update_length(update->token_size);
  head->checksum = usher_record_sum_end(sum, sequence, head->length);
}

/* Puts an update of `size` bytes into the record of `length` bytes, whose number is `sequence`. Returns 0, and changes
 * nothing, if the update does not belong to this record. */
static inline int usher_record_apply(
    uint8_t *record, size_t length, uint64_t sequence, const uint8_t *update, size_t size) {
  usher_record_update new;
  if (size < sizeof new || length < sizeof(usher_record)) return 0;
  memcpy(&new, update, sizeof new);
  if (new.record != sequence || new.token_size > size - sizeof new || new.token_at < sizeof(usher_record) ||
      new.token_at > length || new.token_size > length - new.token_at)
    return 0;
  memcpy(record + new.token_at, update + sizeof new, new.token_size);
  memcpy(record + offsetof(usher_record, expires_boot_ms), &new.expires_boot_ms, sizeof new.expires_boot_ms);
  memcpy(record + offsetof(usher_record, expires_wall_ms), &new.expires_wall_ms, sizeof new.expires_wall_ms);
  return 1;
}

/* Copies the record or update of a copy to `out`, which has room for `copy_size` bytes. Returns its length; 0 if the
 * copy was cleared or was written only in part. Sets `sequence` to the number of the write; 0 if the copy is not valid.
 * This function is safe while another process writes the copy. */
static inline size_t usher_record_read(const void *copy, size_t copy_size, void *out, uint64_t *sequence) {
  usher_record_copy head;
  memcpy(&head, copy, sizeof head);
  *sequence = 0;
  if (copy_size < sizeof head || head.length > copy_size - sizeof head || head.length % 8 != 0) return 0;
  memcpy(out, (const uint8_t *)copy + sizeof head, (size_t)head.length);
  if (usher_record_checksum(head.sequence, out, head.length) != head.checksum) return 0;
  *sequence = head.sequence;
  return (size_t)head.length;
}

/* Reads the newest valid record of a slot, as usher_record_read() does, and puts its newest valid update into it. The
 * slot has two copies, which begin at `copies`, and two small copies, `update_0` and `update_1`. `out` has room for
 * `copy_size` + USHER_RECORD_UPDATE_SIZE bytes. Returns 0 if the slot has no record. */
static inline size_t usher_record_newest(
    const void *copies, size_t copy_size, const void *update_0, const void *update_1, void *out) {
  const uint8_t *other = (const uint8_t *)copies + copy_size;
  uint8_t *record = (uint8_t *)out, *update = record + copy_size;
  uint64_t number, second, last = 0;
  (void)usher_record_read(other, copy_size, record, &second);
  size_t length = usher_record_read(copies, copy_size, record, &number);
  if (second > number) length = usher_record_read(other, copy_size, record, &number);
  if (length < sizeof(usher_record)) return 0;
  for (size_t index = 0; index < 2; index++) {
    uint64_t sequence;
    size_t size = usher_record_read(index == 0 ? update_0 : update_1, USHER_RECORD_UPDATE_SIZE, update, &sequence);
    if (sequence > last && usher_record_apply(record, length, number, update, size)) last = sequence;
  }
  return length;
}

/* Walks through the fields of a record of `length` bytes that usher_record_read() has copied. `at` is 0 for the first
 * call. Returns the bytes of the next field and sets `field`; NULL after the last field, or if a field is malformed. A
 * text field without a NUL at its end counts as malformed. */
static inline const uint8_t *usher_record_next(
    const void *record, size_t length, size_t *at, usher_record_field *field) {
  size_t start = *at == 0 ? sizeof(usher_record) : *at;
  if (start > length || length - start < sizeof *field) return NULL;
  memcpy(field, (const uint8_t *)record + start, sizeof *field);
  start += sizeof *field;
  if (field->length > length - start) return NULL;
  const uint8_t *bytes = (const uint8_t *)record + start;
  if (field->kind != USHER_FIELD_BODY && (field->length == 0 || bytes[field->length - 1] != 0)) return NULL;
  *at = start + usher_record_padded(field->length);
  return bytes;
}

/* Returns the bytes of a field, and sets `size`; NULL if the record has no such field. `index` counts only the fields
 * of this `kind`, from 0. */
static inline const uint8_t *usher_record_find(
    const void *record, size_t length, uint32_t kind, size_t index, size_t *size) {
  size_t at = 0;
  usher_record_field field;
  const uint8_t *bytes;
  while ((bytes = usher_record_next(record, length, &at, &field)) != NULL)
    if (field.kind == kind && index-- == 0) return *size = field.length, bytes;
  return NULL;
}

/* Writes a header line "Cookie: name=value; ..." with all cookies of the record and a NUL. A cookie has seven fields
 * with tabs between them; the last two are name and value. `out` has room for `length` bytes, which is enough. Returns
 * the size of the line; 0 if the record has no cookie. */
static inline size_t usher_record_cookies(const void *record, size_t length, uint8_t *out) {
  static const char head[] = "Cookie: ";
  size_t used = 0, size = 0;
  const uint8_t *line;
  for (size_t index = 0; (line = usher_record_find(record, length, USHER_FIELD_COOKIE, index, &size)) != NULL;
       index++) {
    const uint8_t *from = line;
    int tabs = 0;
    while (tabs < 5 && *from != 0) tabs += *from++ == '\t';
    size_t rest = size - 1 - (size_t)(from - line);
    if (tabs < 5 || memchr(from, '\t', rest) == NULL) continue;
    memcpy(out + used, used == 0 ? head : "; ", used == 0 ? 8 : 2);
    used += used == 0 ? 8 : 2;
    memcpy(out + used, from, rest);
    *(uint8_t *)memchr(out + used, '\t', rest) = '=';
    used += rest;
  }
  if (used > 0) out[used++] = 0;
  return used;
}

#endif
