/*
 * cenc.h - decrypts samples of ISO Common Encryption (ISO/IEC 23001-7) with libcrypto: schemes cenc and cbcs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_GST_CENC_H
#define USHER_GST_CENC_H

#include <stddef.h>
#include <stdint.h>

/** AES-128-CTR. */
#define CENC_SCHEME_CENC 1
/** AES-128-CBC with a pattern of encrypted and clear blocks. */
#define CENC_SCHEME_CBCS 2

/** How one sample is encrypted. */
struct cenc_sample {
  /** CENC_SCHEME_... */
  int scheme;
  uint8_t key_id[16];
  uint8_t iv[16];
  /** 8 or 16. If it is 8, the other bytes of `iv` are 0. */
  size_t iv_size;
  /** The pattern of cbcs. If both numbers are 0, all blocks are encrypted. */
  uint32_t crypt_blocks, skip_blocks;
  /** Each subsample has 6 bytes: the length of the clear part (16 bits) and of the encrypted part (32 bits),
   * big-endian. */
  const uint8_t *subsamples;
  /** The number of subsamples. If it is 0, the whole sample is one encrypted part. */
  uint32_t subsample_count;
};

/** A cipher of libcrypto. It is set up again only when the key or the scheme changes. */
struct cenc_cipher;

/** Makes a cipher. Returns NULL if there is no memory. */
struct cenc_cipher *cenc_cipher_new(void);
/** Wipes the key and frees the cipher. Does nothing if `cipher` is NULL. */
void cenc_cipher_free(struct cenc_cipher *cipher);

/**
 * Decrypts a sample in place. Checks all lengths before it changes a byte.
 *
 * @return NULL on success, else why the sample cannot be decrypted (static text).
 */
const char *cenc_decrypt(
    struct cenc_cipher *cipher, const uint8_t key[16], const struct cenc_sample *sample, uint8_t *data, size_t size);

#endif /* USHER_GST_CENC_H */
