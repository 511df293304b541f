/** @file
 * clearkey.h - the two messages of W3C Clear Key: the licence request for key ids, and the keys in a licence. With
 * these functions a player needs no CDM. Pure functions: no context, no thread, no I/O.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_CLEARKEY_H
#define USHER_CLEARKEY_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One key of a Clear Key licence. This struct never changes. */
typedef struct usher_clearkey_key {
  /** The key id, in the byte order of the UUID's text. */
  uint8_t key_id[16];
  /** The AES-128 key. Overwrite it when you no longer need it. */
  uint8_t key[16];
} usher_clearkey_key;

/**
 * Makes the licence request for some key ids: `{"kids":["..."],"type":"temporary"}`. Pass it as `payload` of a
 * usher_license_request whose `key_system` is USHER_KEY_SYSTEM_CLEARKEY.
 *
 * @param key_ids       the key ids, 16 bytes each, for example those of usher_read_mp4(). Not NULL.
 * @param key_id_count  how many key ids, 1 to 1024.
 * @param buffer        receives the request, which has no NUL at its end; NULL to ask for its length.
 * @param size          set it to the length of `buffer` in bytes; on return it is the length of the request. Not NULL.
 * @return USHER_OK; USHER_E_TOO_LARGE if the buffer is too small or NULL (`size` is then the needed length);
 *         USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_clearkey_request(const uint8_t *key_ids, size_t key_id_count, uint8_t *buffer, size_t *size);

/**
 * Reads the keys in a Clear Key licence (a JSON Web Key set). The function skips members that it does not know, and
 * keys whose "kty" is not "oct". The function accepts base64url and base64, with and without padding. The library keeps
 * no copy of the keys.
 *
 * @param license       `data` of the usher_response_info, 1 byte to 1 MiB. Not NULL.
 * @param license_size  its length in bytes.
 * @param keys          receives the keys in the order of the licence; all 0 on failure. NULL to ask for their number.
 * @param count         set it to the number of keys that `keys` has room for, at most 1048576. On return it is the
 *                      number of keys in the licence; 0 on failure, except after USHER_E_TOO_LARGE. If `count` was
 *                      larger than 1048576, the function changes neither `count` nor `keys`. Not NULL.
 * @param message       receives one line that says why the function failed, for example `keys[1].k: 15 bytes, but key
 *                      ids and keys have 16`; empty on success. The line shows nothing of the licence. At most
 *                      `message_size` bytes with the NUL, cut if it is longer; 128 bytes are always enough. NULL: no
 *                      message.
 * @param message_size  the length of `message` in bytes.
 * @return USHER_OK; USHER_E_TOO_LARGE if `keys` has no room for all keys or is NULL; USHER_E_PROTOCOL if the text is
 *         not a Clear Key licence, if one of the keys is malformed, or if there are no keys; USHER_E_INVALID_ARGUMENT.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_clearkey_keys(const uint8_t *license, size_t license_size, usher_clearkey_key *keys,
    size_t *count, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif
#endif /* USHER_CLEARKEY_H */
