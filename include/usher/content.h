/** @file
 * content.h - what a player reads out of its content: key systems, key ids and content identifiers in pssh and tenc boxes, HLS playlists, DASH manifests
 * and `skd:` URLs. Pure functions: no context, no thread, no I/O.
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
/** The JSON that stands after the scheme in base64 (any variant); where it is none, the text. */
#define USHER_CONTENT_ID_DECODED_JSON 0
/** What stands there in base64, whatever it is; where it is no base64, the text. */
#define USHER_CONTENT_ID_DECODED_BASE64 1
/** The host. */
#define USHER_CONTENT_ID_HOST 2
/** Everything after the scheme. */
#define USHER_CONTENT_ID_AFTER_SCHEME 3
/** Everything after the last ';'. */
#define USHER_CONTENT_ID_AFTER_SEMICOLON 4
/** The whole URL. */
#define USHER_CONTENT_ID_WHOLE_URL 5
/** The member "ContentId" of the JSON: what the token map knows it by; where there is none, the text. */
#define USHER_CONTENT_ID_SSP 6

/** One way a content is protected. The struct and all its pointers live until the callback returns. */
typedef struct usher_protection {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** USHER_KEY_SYSTEM_...; NULL: another one, or none is named. */
  const char *key_system;
  /** 16 bytes of the system's id; NULL: none is named. */
  const uint8_t *system_id;
  /** Key ids, 16 bytes each, in the order of their UUID's text. NULL: none. */
  const uint8_t *key_ids;
  /** How many. */
  size_t key_id_count;
  /** The content identifier; NULL: none. */
  const uint8_t *content_id;
  /** Its length in bytes. */
  size_t content_id_size;
  /** What the CDM takes as init data: the pssh box. NULL: none. */
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
  /** Encryption scheme as a four-letter code: "cenc", "cbcs", ..., "aes1" for whole segments; NULL: not said. */
  const char *scheme;
  /** tenc: blocks encrypted in a pattern; 0: no pattern. */
  uint32_t crypt_blocks;
  /** tenc: blocks left clear in a pattern. */
  uint32_t skip_blocks;
  /** 1: for the whole presentation (HLS EXT-X-SESSION-KEY). */
  int32_t is_session;
} usher_protection;

/**
 * Told each protection that was found, in order, on the calling thread, before the function returns.
 * @param protection  lives until return.
 * @param user_data   as the function was given it.
 */
typedef void (*usher_protection_fn)(const usher_protection *protection, void *user_data);

/**
 * Reads pssh boxes: one, several after each other, or base64 of them; Widevine and PlayReady data in them is looked into.
 *
 * @param bytes      up to 1 MiB.
 * @param size       their length.
 * @param fn         told each box. Not NULL.
 * @param user_data  given to `fn`.
 * @param out_count  how many; may be NULL.
 * @return USHER_OK, also when there is none; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_pssh(
    const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);

/**
 * Reads tenc boxes, bare or inside an init segment (moov).
 *
 * @param bytes      up to 1 MiB.
 * @param size       their length.
 * @param fn         told each box. Not NULL.
 * @param user_data  given to `fn`.
 * @param out_count  how many; may be NULL.
 * @return USHER_OK, also when there is none; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_tenc(
    const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);

/**
 * Reads EXT-X-KEY and EXT-X-SESSION-KEY lines: one, or those of a whole playlist. METHOD=NONE is told without key system and URI. Out of a `skd:` URL the
 * content identifier is told as USHER_CONTENT_ID_DECODED_JSON has it, and the key id that may stand in that JSON.
 *
 * @param bytes      text, up to 1 MiB.
 * @param size       its length.
 * @param fn         told each line. Not NULL.
 * @param user_data  given to `fn`.
 * @param out_count  how many; may be NULL.
 * @return USHER_OK, also when there is none; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_hls_keys(
    const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);

/**
 * Reads the ContentProtection elements of a DASH manifest, or one such element.
 *
 * @param bytes      XML, up to 1 MiB.
 * @param size       its length.
 * @param fn         told each element. Not NULL.
 * @param user_data  given to `fn`.
 * @param out_count  how many; may be NULL.
 * @return USHER_OK, also when there is none; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_read_dash_protection(
    const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);

/**
 * The content identifier in a `skd:` URL or asset ID.
 *
 * @param url       1 byte to 64 kB. Not NULL.
 * @param url_size  its length in bytes.
 * @param rule      USHER_CONTENT_ID_...
 * @param buffer    where it goes; NULL to ask for its length.
 * @param size      length of `buffer`; on return that of the identifier. Not NULL.
 * @return USHER_OK; USHER_E_TOO_LARGE when the buffer is too small (or NULL), `size` then says what is needed; USHER_E_INVALID_ARGUMENT for a URL that names
 *         nothing.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_content_id(const uint8_t *url, size_t url_size, int32_t rule, uint8_t *buffer, size_t *size);

/**
 * Rewrites a playlist for a demuxer that refuses a scheme: in each EXT-X-KEY and EXT-X-SESSION-KEY line whose URI has that scheme the URI is replaced by
 * `uri_prefix` and the number of the URI in the playlist, from 0, the same for the same URI. Everything else is left as it is, byte for byte.
 *
 * @param playlist       text, up to 1 MiB. Not NULL.
 * @param playlist_size  its length in bytes.
 * @param scheme         NULL: "skd".
 * @param uri_prefix     e.g. "http://127.0.0.1:8000/key/"; no '"' or control characters. Not NULL.
 * @param buffer         where the rewritten playlist goes; NULL to ask for its length.
 * @param size           as usher_content_id().
 * @return USHER_OK, USHER_E_TOO_LARGE, USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_rewrite_hls_keys(const uint8_t *playlist, size_t playlist_size, const char *scheme,
    const char *uri_prefix, uint8_t *buffer, size_t *size);

#ifdef __cplusplus
}
#endif
#endif /* USHER_CONTENT_H */
