/*
 * cenc.c - see cenc.h.
 *
 * This player gives libavformat no key. So libavformat leaves encrypted packets as they are, and attaches to each
 * packet the data for its decryption. Therefore no key is in an option string, every key id can have a different key,
 * and the player reports a missing key as an error instead of decoding noise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cenc.h"

#include <libavutil/encryption_info.h>
#include <openssl/evp.h>
#include <string.h>

#define SCHEME_CENC 0x63656e63u /* "cenc" */

/* Decrypts a packet in place. One key stream covers all protected bytes of the packet, one range after the other; clear
   bytes use no key stream. @return CENC_DECRYPTED or CENC_MALFORMED. */
static enum cenc_result run(EVP_CIPHER_CTX *cipher, uint8_t *data, size_t size, const AVEncryptionInfo *info) {
  int done;
  if (info->subsample_count == 0)
    return EVP_DecryptUpdate(cipher, data, &done, data, (int)size) == 1 ? CENC_DECRYPTED : CENC_MALFORMED;
  for (uint32_t i = 0; i < info->subsample_count; i++) {
    size_t clear = info->subsamples[i].bytes_of_clear_data, encrypted = info->subsamples[i].bytes_of_protected_data;
    if (clear > size || encrypted > size - clear) return CENC_MALFORMED;
    if (encrypted > 0 && EVP_DecryptUpdate(cipher, data + clear, &done, data + clear, (int)encrypted) != 1)
      return CENC_MALFORMED;
    data += clear + encrypted;
    size -= clear + encrypted;
  }
  return CENC_DECRYPTED;
}

static enum cenc_result decrypt(AVPacket *packet, const AVEncryptionInfo *info, const struct keyring *ring) {
  uint8_t counter[16] = {0}; /* the IV; after an IV of 8 bytes, 8 bytes with a block counter, which starts at 0 */
  if (info->scheme != SCHEME_CENC) return CENC_SCHEME;
  if (info->iv_size > sizeof counter || info->iv_size == 0) return CENC_MALFORMED;
  const uint8_t *key = keyring_find(ring, info->key_id, info->key_id_size);
  if (!key) return CENC_NO_KEY;
  if (av_packet_make_writable(packet) < 0) return CENC_MALFORMED;
  memcpy(counter, info->iv, info->iv_size);
  EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
  enum cenc_result result = CENC_MALFORMED;
  if (cipher && EVP_DecryptInit_ex(cipher, EVP_aes_128_ctr(), NULL, key, counter) == 1)
    result = run(cipher, packet->data, (size_t)packet->size, info);
  EVP_CIPHER_CTX_free(cipher);
  return result;
}

enum cenc_result cenc_decrypt(AVPacket *packet, const struct keyring *ring) {
  size_t size = 0;
  const uint8_t *side = av_packet_get_side_data(packet, AV_PKT_DATA_ENCRYPTION_INFO, &size);
  if (!side) return CENC_CLEAR;
  AVEncryptionInfo *info = av_encryption_info_get_side_data(side, size);
  if (!info) return CENC_MALFORMED;
  enum cenc_result result = decrypt(packet, info, ring);
  av_encryption_info_free(info);
  return result;
}

const char *cenc_result_text(enum cenc_result result) {
  switch (result) {
  case CENC_CLEAR: return "not encrypted";
  case CENC_DECRYPTED: return "decrypted";
  case CENC_NO_KEY: return "encrypted with a key id the licence has no key for";
  case CENC_SCHEME: return "encrypted with another scheme than cenc (AES-CTR)";
  case CENC_MALFORMED: return "malformed: its encryption data do not fit its size";
  }
  return "unknown";
}
