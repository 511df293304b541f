/* The format of the journal: a file with recovery records, which survive the process and the machine's loss of power.
 *
 * The file has up to USHER_JOURNAL_PAGES pages of USHER_JOURNAL_PAGE_SIZE bytes. Each context uses one page. As long as
 * the context uses this page, it holds the lock of the page's first byte (F_OFD_SETLK). So a page without a lock is
 * free, or has the records of a dead process. A page has, in this order:
 *   1. the header (usher_journal_header) in USHER_JOURNAL_HEADER_SIZE bytes; zeros: the page is free,
 *   2. USHER_JOURNAL_SLOTS slots of two copies each, for records: slot i has the copies 2 i and 2 i + 1. Each copy
 *      takes USHER_JOURNAL_COPY_SIZE bytes: usher_journal_copy, then `length` bytes of the record in the format of
 *      record.h (usher_record and its fields),
 *   3. for each slot two small copies, for updates: usher_record_update and the token in place of the record. Each
 *      takes USHER_JOURNAL_UPDATE_SIZE bytes. With n = 2 * USHER_JOURNAL_SLOTS, slot i has the small copies n + 2 i and
 *      n + 2 i + 1.
 * The writer never changes the copy that has the newest record, or the small copy that has its newest update; it
 * changes the other one. So if a copy was written only in part, its tag is wrong, and the other copy still has what was
 * written before.
 *
 * In clear (USHER_JOURNAL_CLEAR), a tag is a checksum. Otherwise the key of the page is HMAC-SHA256 of the host's key
 * over USHER_JOURNAL_PURPOSE and the page's salt; the records are encrypted with AES-256-GCM, whose nonce is the number
 * of the copy divided by 2 and rounded down (4 bytes), and the sequence (8 bytes). Each use of a page has a new salt,
 * and each write of a slot a new sequence, so no nonce is used twice with one key. No copy is valid in the place of
 * another slot, and no update in the place of a record.
 *
 * All numbers are in the byte order of the machine. Readers must treat the file as untrusted. */
#ifndef USHER_CGUARD_JOURNAL_H
#define USHER_CGUARD_JOURNAL_H

#include "record.h"

/* "UsherJnl" in memory. */
#define USHER_JOURNAL_MAGIC 0x6c6e4a7265687355ull
#define USHER_JOURNAL_VERSION 4u
#define USHER_JOURNAL_PURPOSE "usher journal, page key"

#define USHER_JOURNAL_PAGES 16
#define USHER_JOURNAL_SLOTS 64
#define USHER_JOURNAL_HEADER_SIZE 4096
#define USHER_JOURNAL_COPY_SIZE 8192
/* The two small copies of a slot are not in the same block of the disk. */
#define USHER_JOURNAL_UPDATE_SIZE 4096
#define USHER_JOURNAL_COPIES_SIZE (2 * USHER_JOURNAL_SLOTS * USHER_JOURNAL_COPY_SIZE)
#define USHER_JOURNAL_PAGE_SIZE \
  (USHER_JOURNAL_HEADER_SIZE + USHER_JOURNAL_COPIES_SIZE + 2 * USHER_JOURNAL_SLOTS * USHER_JOURNAL_UPDATE_SIZE)

/* Flags of a page: the records are not encrypted. */
#define USHER_JOURNAL_CLEAR 1u

typedef struct usher_journal_header {
  uint64_t magic;
  uint32_t version;
  uint32_t flags;
  /* The number of the page in its file; the process that has taken the page, and the user of this process. */
  uint32_t page;
  int32_t process;
  uint32_t user;
  uint32_t unused;
  /* Identifies the machine and the file: a checksum of /etc/machine-id (0: there is none), and the inode with the
   * instant at which the file was made (0: unknown). A copy of the file has another inode. */
  uint64_t machine;
  uint64_t inode;
  int64_t born_ns;
  /* The text of /proc/sys/kernel/random/boot_id, which changes when the system boots; zeros if it is unknown. */
  uint8_t boot_id[40];
  uint8_t salt[32];
  /* HMAC-SHA256 of the bytes before it with the key of the page; in clear: zeros. A page with a good checksum and a
   * wrong tag was written with another key. */
  uint8_t tag[32];
  /* usher_record_checksum() of the bytes before it. */
  uint64_t checksum;
} usher_journal_header;

typedef struct usher_journal_copy {
  /* The number of the write. Each write to a slot, of a record or of an update, has a higher number than the write
   * before it. Of two valid copies, the one with the higher number is the newer one. */
  uint64_t sequence;
  uint64_t length;
  /* The tag of AES-GCM; in clear: usher_journal_checksum(), and zeros. */
  uint8_t tag[16];
} usher_journal_copy;

/* How many bytes of a header its tag covers. */
static inline size_t usher_journal_tagged_size(void) { return offsetof(usher_journal_header, tag); }

static inline uint64_t usher_journal_header_checksum(const usher_journal_header *header) {
  return usher_record_checksum(0, header, offsetof(usher_journal_header, checksum));
}

/* The checksum of a record or update in clear; `pair` is the number of the copy divided by 2 and rounded down. The
 * checksum covers the salt and `pair` too, so a record of an earlier use of the page, or of another slot, is not valid.
 * `length` is a multiple of 8. */
static inline uint64_t usher_journal_checksum(
    const uint8_t *salt, uint32_t pair, uint64_t sequence, const void *bytes, uint64_t length) {
  return usher_record_checksum(usher_record_checksum(sequence, salt, 32) + pair, bytes, length);
}

#endif
