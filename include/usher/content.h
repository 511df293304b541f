/** @file
 * content.h - reads protection data out of content: key systems, key ids and content identifiers in MP4 files, pssh and
 * tenc boxes, HLS playlists, DASH manifests and `skd:` URLs. Pure functions: no context, no thread, and no I/O except
 * through a callback of the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_CONTENT_H
#define USHER_CONTENT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rule */
/** If the text after the scheme is base64 (any variant) of JSON: the decoded JSON. Otherwise: the text itself. */
#define USHER_CONTENT_ID_DECODED_JSON 0
/** If the text after the scheme is base64: the decoded bytes. Otherwise: the text itself. */
#define USHER_CONTENT_ID_DECODED_BASE64 1
/** The host of the URL. */
#define USHER_CONTENT_ID_HOST 2
/** Everything after the scheme. */
#define USHER_CONTENT_ID_AFTER_SCHEME 3
/** Everything after the last ';'. */
#define USHER_CONTENT_ID_AFTER_SEMICOLON 4
/** The whole URL. */
#define USHER_CONTENT_ID_WHOLE_URL 5
/** The member "ContentId" of the decoded JSON: the content identifier that the token map uses. Without such a member:
    the text after the scheme. */
#define USHER_CONTENT_ID_SSP 6

/* part */
/** From all functions except usher_read_mp4(): one box, line or element. */
#define USHER_PART_ELEMENT 0
/** From usher_read_mp4(): the whole file. */
#define USHER_PART_FILE 1
/** From usher_read_mp4(): one encrypted track. */
#define USHER_PART_TRACK 2
/** From usher_read_mp4(): one pssh box. */
#define USHER_PART_PSSH 3

/** One way in which the content is protected. The struct and everything it points to live until the callback returns.
    */
typedef struct usher_protection {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** USHER_KEY_SYSTEM_...; NULL: the content names no key system, or one that has no such constant. */
  const char *key_system;
  /** The 16 bytes of the key system's id; NULL: the content does not have the id. */
  const uint8_t *system_id;
  /** Key ids, 16 bytes each, in the byte order of their UUID's text. NULL: none. */
  const uint8_t *key_ids;
  /** How many key ids. */
  size_t key_id_count;
  /** The content identifier; NULL: none. */
  const uint8_t *content_id;
  /** Its length in bytes. */
  size_t content_id_size;
  /** The pssh box, which the CDM takes as init data. NULL: none. */
  const uint8_t *init_data;
  /** Its length in bytes. */
  size_t init_data_size;
  /** URI of the key (HLS) or URL of the licence server (DASH, PlayReady); bytes. NULL: none. */
  const uint8_t *uri;
  /** Its length in bytes. */
  size_t uri_size;
  /** Initialisation vector, 8 or 16 bytes; NULL: none. */
  const uint8_t *iv;
  /** Its length in bytes. */
  size_t iv_size;
  /** Encryption scheme as a four-letter code: "cenc", "cbcs", ..., "aes1" for whole segments; NULL: the content does
      not name the scheme. */
  const char *scheme;
  /** From tenc boxes with pattern encryption: this many encrypted blocks and then `skip_blocks` clear blocks
      repeat. 0: the track has no such pattern. */
  uint32_t crypt_blocks;
  /** From tenc boxes with pattern encryption: how many clear blocks follow the `crypt_blocks` encrypted blocks. 0:
      none. */
  uint32_t skip_blocks;
  /** 1: the key applies to the whole presentation (HLS EXT-X-SESSION-KEY). Otherwise 0. */
  int32_t is_session;
  /** USHER_PART_... */
  int32_t part;
  /** If `part` is USHER_PART_TRACK: the number of the track in the file. Otherwise 0. */
  uint32_t track_id;
} usher_protection;

/**
 * Receives each protection that the function finds, in order.
 * Threads: the calling thread, before the function returns. May call: any function. Last call: before the function
 * returns.
 *
 * @param protection  valid until the callback returns.
 * @param user_data   as the host passed it to the function.
 */
typedef void (*usher_protection_fn)(const usher_protection *protection, void *user_data);

/**
 * Reads one or more pssh boxes, as bytes or as base64 text. It also reads the Widevine and PlayReady data in the boxes.
 *
 * @param bytes      the boxes, up to 1 MiB.
 * @param size       their length in bytes.
 * @param fn         receives each box. Not NULL.
 * @param user_data  passed to `fn`.
 * @param out_count  how many boxes the function found. May be NULL.
 * @return USHER_OK, also if it found none; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_pssh(
    const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);

/**
 * Reads tenc boxes, alone or inside an init segment (moov). For a file use usher_read_mp4().
 *
 * @param bytes      the boxes, up to 1 MiB.
 * @param size       their length in bytes.
 * @param fn         receives each box. Not NULL.
 * @param user_data  passed to `fn`.
 * @param out_count  how many boxes the function found. May be NULL.
 * @return USHER_OK, also if it found none; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_tenc(
    const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);

/**
 * Reads bytes of a file for usher_read_mp4().
 * Threads: the calling thread, before usher_read_mp4() returns. May call: any function. Last call: before
 * usher_read_mp4() returns.
 *
 * @param offset     where the bytes begin, counted from the beginning of the file; at most INT64_MAX. It may be beyond
 *                   the end of the file.
 * @param buffer     receives the bytes.
 * @param size       the length of `buffer` in bytes, at most 4096.
 * @param user_data  as the host passed it to usher_read_mp4().
 * @return how many bytes it read, at most `size`. Fewer than `size` are allowed; 0 only at and beyond the end of the
 *         file. A negative number: reading failed.
 */
typedef int64_t (*usher_read_fn)(uint64_t offset, uint8_t *buffer, size_t size, void *user_data);

/**
 * Reads how an MP4 file (also QuickTime, fragmented MP4, CMAF) is protected. It finds the moov box anywhere in the file
 * and skips all data, so it reads only a few kB, even if the file is large. If the file is fragmented, it also reads
 * the first fragment of each encrypted track, in at most 8 fragments. It accepts at most 32768 boxes, and needs less
 * than 2 MiB of memory, whatever sizes the boxes claim.
 *
 * When the function has read everything, it calls `fn` in this order:
 * - Once with USHER_PART_FILE, which is enough for most hosts. `key_ids` has the key ids of all tracks; if the tracks
 *   have none, those of the pssh boxes. `init_data` has all pssh boxes one after another. `scheme`, `crypt_blocks` and
 *   `skip_blocks` are those of the first encrypted track. `content_id` is that of the first pssh box that has one. A
 *   file without encryption has no key ids and no `scheme`.
 * - With USHER_PART_TRACK for each encrypted track. If a track is encrypted by default, its first key id is the default
 *   one; the other key ids come from further sample entries and from sample groups (`seig`).
 * - With USHER_PART_PSSH for each pssh box in moov and in these fragments, without duplicates.
 * Later fragments may introduce more key ids: read these fragments with usher_read_pssh().
 *
 * With a `FILE *` as `user_data`, this is the callback:
 *
 *     static int64_t read_file(uint64_t offset, uint8_t *buffer, size_t size, void *user_data) {
 *       if (fseeko(user_data, (off_t)offset, SEEK_SET) != 0) return -1;
 *       size_t count = fread(buffer, 1, size, user_data);
 *       return ferror(user_data) ? -1 : (int64_t)count;
 *     }
 *
 * @param read          reads bytes of the file. Not NULL.
 * @param fn            receives each protection; on failure the function does not call it. Not NULL.
 * @param user_data     passed to `read` and `fn`.
 * @param message       receives one line that says why the function failed: the path of the malformed box and what is
 *                      wrong, for example `moov/trak[1]/mdia/minf/stbl/stsd/encv/sinf: no tenc box`; empty on success.
 *                      The first `trak` has the number 1. At most `message_size` bytes with the NUL, cut if it is
 *                      longer; 256 bytes are always enough. NULL: no message.
 * @param message_size  the length of `message` in bytes.
 * @return USHER_OK, also for a file without encryption; USHER_E_CALLBACK if `read` failed; USHER_E_PROTOCOL if this is
 *         no MP4 file, or if a box is malformed; USHER_E_TOO_LARGE for a file with too many boxes, with more than 256
 *         encrypted tracks, or with pssh boxes of more than 256 KiB in all; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_mp4(
    usher_read_fn read, usher_protection_fn fn, void *user_data, char *message, size_t message_size);

/**
 * Reads one EXT-X-KEY or EXT-X-SESSION-KEY line, or all such lines of a playlist. A line with METHOD=NONE has neither
 * key system nor URI. If the URI is a `skd:` URL, the function finds its content identifier by the rule
 * USHER_CONTENT_ID_DECODED_JSON, and its key id if the decoded JSON has one.
 *
 * @param bytes      text, up to 1 MiB.
 * @param size       its length in bytes.
 * @param fn         receives each line. Not NULL.
 * @param user_data  passed to `fn`.
 * @param out_count  how many lines the function found. May be NULL.
 * @return USHER_OK, also if it found none; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_hls_keys(
    const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);

/**
 * Reads the ContentProtection elements of a DASH manifest, or one such element.
 *
 * @param bytes      XML, up to 1 MiB.
 * @param size       its length in bytes.
 * @param fn         receives each element. Not NULL.
 * @param user_data  passed to `fn`.
 * @param out_count  how many elements the function found. May be NULL.
 * @return USHER_OK, also if it found none; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_dash_protection(
    const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);

/**
 * Finds the content identifier in a `skd:` URL or asset ID, and copies it to `buffer`.
 *
 * @param url       1 byte to 64 kB. Not NULL.
 * @param url_size  its length in bytes.
 * @param rule      USHER_CONTENT_ID_...
 * @param buffer    receives the identifier; NULL to ask for its length.
 * @param size      set it to the length of `buffer` in bytes; on return it is the length of the identifier. Not NULL.
 * @return USHER_OK; USHER_E_TOO_LARGE if the buffer is too small or NULL (`size` is then the needed length);
 *         USHER_E_INVALID_ARGUMENT for a URL that names no content.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_content_id(const uint8_t *url, size_t url_size, int32_t rule, uint8_t *buffer, size_t *size);

/**
 * Rewrites a playlist for a demuxer that refuses a scheme. In each EXT-X-KEY and EXT-X-SESSION-KEY line whose URI has
 * that scheme, it replaces the URI by `uri_prefix` followed by a number. The first URI with that scheme gets the number
 * 0, the next different URI gets 1, and so on; equal URIs get the same number. All other bytes stay as they are.
 *
 * @param playlist       text, up to 1 MiB. Not NULL.
 * @param playlist_size  its length in bytes.
 * @param scheme         the scheme to replace. NULL: "skd".
 * @param uri_prefix     e.g. "http://127.0.0.1:8000/key/"; no '"', blanks or control characters. Not NULL.
 * @param buffer         receives the rewritten playlist; NULL to ask for its length.
 * @param size           as in usher_content_id().
 * @return USHER_OK; USHER_E_TOO_LARGE if the buffer is too small or NULL; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_rewrite_hls_keys(const uint8_t *playlist, size_t playlist_size, const char *scheme,
    const char *uri_prefix, uint8_t *buffer, size_t *size);

#ifdef __cplusplus
}
#endif
#endif /* USHER_CONTENT_H */
