/* Encryption of the journal, with OpenSSL. As in tls.h, the declarations are weak: if libcurl uses another TLS
 * library, the declared functions are NULL, curl_shim_can_encrypt() returns 0, and the other functions fail. */
#ifndef USHER_CCURL_CRYPTO_H
#define USHER_CCURL_CRYPTO_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tls.h"

extern void *EVP_CIPHER_CTX_new(void) CURL_SHIM_WEAK;
extern void EVP_CIPHER_CTX_free(void *context) CURL_SHIM_WEAK;
extern const void *EVP_aes_256_gcm(void) CURL_SHIM_WEAK;
extern const void *EVP_sha256(void) CURL_SHIM_WEAK;
extern int EVP_CipherInit_ex(void *context, const void *cipher, void *engine, const uint8_t *key, const uint8_t *nonce,
    int encrypts) CURL_SHIM_WEAK;
extern int EVP_CipherUpdate(void *context, uint8_t *out, int *out_size, const uint8_t *in, int size) CURL_SHIM_WEAK;
extern int EVP_CipherFinal_ex(void *context, uint8_t *out, int *out_size) CURL_SHIM_WEAK;
extern int EVP_CIPHER_CTX_ctrl(void *context, int command, int number, void *data) CURL_SHIM_WEAK;
extern uint8_t *HMAC(const void *digest, const void *key, int key_size, const uint8_t *data, size_t size, uint8_t *out,
    unsigned int *out_size) CURL_SHIM_WEAK;

#define CURL_SHIM_KEY_SIZE 32
#define CURL_SHIM_TAG_SIZE 16

/* Whether libcurl has brought OpenSSL into the process. */
static inline int curl_shim_can_encrypt(void) {
  return EVP_CIPHER_CTX_new != NULL && EVP_CIPHER_CTX_free != NULL && EVP_aes_256_gcm != NULL && EVP_sha256 != NULL &&
         EVP_CipherInit_ex != NULL && EVP_CipherUpdate != NULL && EVP_CipherFinal_ex != NULL &&
         EVP_CIPHER_CTX_ctrl != NULL && HMAC != NULL && ERR_set_mark != NULL && ERR_pop_to_mark != NULL;
}
/* Writes the HMAC-SHA256 of `bytes` to `out`, which has room for 32 bytes. Returns 0 on success. */
static inline int curl_shim_hmac(const uint8_t *key, const void *bytes, size_t size, uint8_t *out) {
  unsigned int out_size = 0;
  if (!curl_shim_can_encrypt()) return -1;
  return HMAC(EVP_sha256(), key, CURL_SHIM_KEY_SIZE, (const uint8_t *)bytes, size, out, &out_size) == NULL ? -1 : 0;
}
/* Makes a cipher for AES-256-GCM; NULL if the system is short of memory. */
static inline void *curl_shim_cipher_new(const uint8_t *key) {
  if (!curl_shim_can_encrypt()) return NULL;
  void *cipher = EVP_CIPHER_CTX_new();
  if (cipher == NULL || EVP_CipherInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, NULL, 1) == 1) return cipher;
  EVP_CIPHER_CTX_free(cipher);
  return NULL;
}
/* Frees a cipher, which may be NULL; OpenSSL wipes its key. */
static inline void curl_shim_cipher_free(void *cipher) {
  if (cipher != NULL) EVP_CIPHER_CTX_free(cipher);
}
/* Encrypts `bytes` in place and writes the tag, or decrypts them and checks the tag. The nonce has 12 bytes. Returns 0
 * on success. */
static inline int curl_shim_crypt(
    void *cipher, const uint8_t *nonce, void *bytes, int size, uint8_t *tag, int encrypts) {
  enum { get_tag = 0x10, set_tag = 0x11 };
  uint8_t *at = (uint8_t *)bytes, rest[CURL_SHIM_TAG_SIZE];
  int done = 0;
  ERR_set_mark(); /* The host may use OpenSSL on this thread, so keep the host's entries in OpenSSL's error queue. */
  int is_good = EVP_CipherInit_ex(cipher, NULL, NULL, NULL, nonce, encrypts) == 1 &&
                (encrypts || EVP_CIPHER_CTX_ctrl(cipher, set_tag, CURL_SHIM_TAG_SIZE, tag) == 1) &&
                (size == 0 || EVP_CipherUpdate(cipher, at, &done, at, size) == 1) &&
                EVP_CipherFinal_ex(cipher, rest, &done) == 1 &&
                (!encrypts || EVP_CIPHER_CTX_ctrl(cipher, get_tag, CURL_SHIM_TAG_SIZE, tag) == 1);
  ERR_pop_to_mark();
  return is_good ? 0 : -1;
}

#endif
