/*
 * cenc.c - see cenc.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cenc.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 16

struct cenc_cipher {
  EVP_CIPHER_CTX *evp;
  int scheme;
  uint8_t key[16];
};

/* The position in the key stream with which a sample of scheme cenc is encrypted. */
struct counter {
  uint8_t block[16];
  /** The number of bytes of key stream until the lower 64 bits of the counter overflow. */
  uint64_t bytes_left;
};

struct cenc_cipher *cenc_cipher_new(void) {
  struct cenc_cipher *cipher = calloc(1, sizeof *cipher);
  if (cipher) cipher->evp = EVP_CIPHER_CTX_new();
  if (cipher && !cipher->evp) {
    free(cipher);
    return NULL;
  }
  return cipher;
}

void cenc_cipher_free(struct cenc_cipher *cipher) {
  if (!cipher) return;
  EVP_CIPHER_CTX_free(cipher->evp);
  OPENSSL_cleanse(cipher, sizeof *cipher);
  free(cipher);
}

static int set_up(struct cenc_cipher *cipher, int scheme, const uint8_t key[16]) {
  if (cipher->scheme == scheme && memcmp(cipher->key, key, 16) == 0) return 1;
  const EVP_CIPHER *kind = scheme == CENC_SCHEME_CENC ? EVP_aes_128_ctr() : EVP_aes_128_cbc();
  cipher->scheme = 0;
  if (EVP_DecryptInit_ex(cipher->evp, kind, NULL, key, NULL) != 1) return 0;
  memcpy(cipher->key, key, 16);
  cipher->scheme = scheme;
  return 1;
}

static int set_iv(struct cenc_cipher *cipher, const uint8_t iv[16]) {
  return EVP_DecryptInit_ex(cipher->evp, NULL, NULL, NULL, iv) == 1 && EVP_CIPHER_CTX_set_padding(cipher->evp, 0) == 1;
}

static int update(struct cenc_cipher *cipher, uint8_t *data, size_t size) {
  while (size > 0) {
    int part = size > (1u << 30) ? 1 << 30 : (int)size, done;
    if (EVP_DecryptUpdate(cipher->evp, data, &done, data, part) != 1 || done != part) return 0;
    data += part;
    size -= (size_t)part;
  }
  return 1;
}

/* ---- cenc ------------------------------------------------------------------------------------------------------- */

static int counter_begin(struct counter *counter, struct cenc_cipher *cipher, const struct cenc_sample *sample) {
  uint64_t low = 0;
  memcpy(counter->block, sample->iv, 16);
  for (int i = 8; i < 16; i++) low = low << 8 | sample->iv[i];
  uint64_t blocks_left = low == 0 ? UINT64_MAX : UINT64_MAX - low + 1;
  counter->bytes_left = blocks_left > UINT64_MAX / BLOCK ? UINT64_MAX : blocks_left * BLOCK;
  return set_iv(cipher, counter->block);
}

/* Decrypts the next encrypted part of a sample of scheme cenc. One key stream covers all encrypted parts of the sample.
   Common Encryption counts only in the lower 64 bits of the counter block, but libcrypto counts in all 128 bits. So
   this code sets the counter again where the lower half overflows. @return 0 on failure. */
static int counter_update(struct counter *counter, struct cenc_cipher *cipher, uint8_t *data, size_t size) {
  if (size > counter->bytes_left) {
    size_t first = (size_t)counter->bytes_left;
    if (!update(cipher, data, first)) return 0;
    memset(counter->block + 8, 0, 8);
    if (!set_iv(cipher, counter->block)) return 0;
    counter->bytes_left = UINT64_MAX;
    data += first;
    size -= first;
  }
  counter->bytes_left -= size;
  return update(cipher, data, size);
}

/* ---- cbcs ------------------------------------------------------------------------------------------------------- */

/* Decrypts one encrypted part of a sample of scheme cbcs. The decryption of each part begins with the IV. A rest of
   less than one block is clear. @return 0 on failure. */
static int pattern_update(struct cenc_cipher *cipher, const struct cenc_sample *sample, uint8_t *data, size_t size) {
  size_t whole = size - size % BLOCK, crypt = sample->crypt_blocks * (size_t)BLOCK;
  size_t skip = sample->skip_blocks * (size_t)BLOCK;
  if (!set_iv(cipher, sample->iv)) return 0;
  if (crypt == 0 || skip == 0) return update(cipher, data, whole);
  while (whole > 0) {
    size_t part = whole < crypt ? whole : crypt;
    if (!update(cipher, data, part)) return 0;
    data += part;
    whole -= part;
    part = whole < skip ? whole : skip;
    data += part;
    whole -= part;
  }
  return 1;
}

/* ---- samples ---------------------------------------------------------------------------------------------------- */

static uint32_t clear_size(const uint8_t *subsample) { return (uint32_t)subsample[0] << 8 | subsample[1]; }
static uint32_t encrypted_size(const uint8_t *subsample) {
  return (uint32_t)subsample[2] << 24 | (uint32_t)subsample[3] << 16 | (uint32_t)subsample[4] << 8 | subsample[5];
}

static const char *check(const struct cenc_sample *sample, size_t size) {
  uint64_t sum = 0;
  if (sample->scheme != CENC_SCHEME_CENC && sample->scheme != CENC_SCHEME_CBCS)
    return "the encryption scheme is neither cenc nor cbcs";
  if (sample->iv_size != 8 && sample->iv_size != 16) return "the initialisation vector has neither 8 nor 16 bytes";
  if (sample->subsample_count > 0 && !sample->subsamples) return "the list of subsamples is missing";
  for (uint32_t i = 0; i < sample->subsample_count; i++)
    sum +=
        (uint64_t)clear_size(sample->subsamples + 6 * (size_t)i) + encrypted_size(sample->subsamples + 6 * (size_t)i);
  if (sum > size) return "the subsamples are longer than the sample";
  if (sample->subsample_count > 0 && sum < size) return "the subsamples are shorter than the sample";
  return NULL;
}

const char *cenc_decrypt(
    struct cenc_cipher *cipher, const uint8_t key[16], const struct cenc_sample *sample, uint8_t *data, size_t size) {
  struct counter counter = {{0}, 0};
  const char *wrong = check(sample, size);
  if (wrong) return wrong;
  int ctr = sample->scheme == CENC_SCHEME_CENC;
  int good = set_up(cipher, sample->scheme, key) && (!ctr || counter_begin(&counter, cipher, sample));
  uint32_t parts = sample->subsample_count ? sample->subsample_count : 1;
  for (uint32_t i = 0; good && i < parts; i++) {
    const uint8_t *subsample = sample->subsample_count ? sample->subsamples + 6 * (size_t)i : NULL;
    size_t clear = subsample ? clear_size(subsample) : 0, encrypted = subsample ? encrypted_size(subsample) : size;
    data += clear;
    good = ctr ? counter_update(&counter, cipher, data, encrypted) : pattern_update(cipher, sample, data, encrypted);
    data += encrypted;
  }
  return good ? NULL : "libcrypto could not decrypt the sample";
}
