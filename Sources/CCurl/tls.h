/* Does for TLS what libcurl's options cannot do, with calls of OpenSSL. OpenSSL is usually libcurl's TLS library,
 * and is then loaded with libcurl. The declarations are weak: if libcurl uses another TLS library, the declared
 * functions are NULL, and the functions below do nothing. */
#ifndef USHER_CCURL_TLS_H
#define USHER_CCURL_TLS_H

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headers.h"

#define CURL_SHIM_WEAK __attribute__((weak))
extern void SSL_CTX_set_keylog_callback(void *context, void *callback) CURL_SHIM_WEAK;
extern const void *TLS_client_method(void) CURL_SHIM_WEAK;
extern void *SSL_CTX_new(const void *method) CURL_SHIM_WEAK;
extern void SSL_CTX_free(void *context) CURL_SHIM_WEAK;
extern int SSL_CTX_load_verify_locations(void *context, const char *file, const char *folder) CURL_SHIM_WEAK;
extern int SSL_CTX_use_certificate_chain_file(void *context, const char *file) CURL_SHIM_WEAK;
extern int SSL_CTX_use_PrivateKey_file(void *context, const char *file, int type) CURL_SHIM_WEAK;
extern int SSL_CTX_check_private_key(const void *context) CURL_SHIM_WEAK;
extern void SSL_CTX_set_default_passwd_cb(void *context, int (*callback)(char *, int, int, void *)) CURL_SHIM_WEAK;
extern void SSL_CTX_set_default_passwd_cb_userdata(void *context, void *data) CURL_SHIM_WEAK;
extern void SSL_CTX_set_cert_cb(void *context, int (*callback)(void *, void *), void *data) CURL_SHIM_WEAK;
extern void *SSL_CTX_get_ciphers(const void *context) CURL_SHIM_WEAK;
extern int OPENSSL_sk_num(const void *stack) CURL_SHIM_WEAK;
extern void *OPENSSL_sk_value(const void *stack, int index) CURL_SHIM_WEAK;
extern int SSL_CIPHER_get_kx_nid(const void *cipher) CURL_SHIM_WEAK;
extern const char *SSL_CIPHER_get_name(const void *cipher) CURL_SHIM_WEAK;
extern int SSL_CTX_set_cipher_list(void *context, const char *names) CURL_SHIM_WEAK;
extern long SSL_CTX_ctrl(void *context, int command, long number, void *data) CURL_SHIM_WEAK;
extern int ERR_set_mark(void) CURL_SHIM_WEAK;
extern int ERR_pop_to_mark(void) CURL_SHIM_WEAK;
extern int OPENSSL_init_crypto(uint64_t options, const void *settings) CURL_SHIM_WEAK;
extern int OPENSSL_atexit(void (*handler)(void)) CURL_SHIM_WEAK;
extern void OPENSSL_thread_stop(void) CURL_SHIM_WEAK;

/* OpenSSL usually frees its memory in an exit handler. OpenSSL must not do this here: threads of the library may
 * use OpenSSL until the process ends, and an exit handler of the host may still close a context. If the host
 * initialised OpenSSL before, this call changes nothing. Call it before libcurl is initialised. */
static inline void curl_shim_keep_openssl_at_exit(void) {
  const uint64_t without_exit_handler = 0x00080000; /* OPENSSL_INIT_NO_ATEXIT */
  if (OPENSSL_init_crypto != NULL) OPENSSL_init_crypto(without_exit_handler, NULL);
}
/* Lets OpenSSL call `handler` when OpenSSL begins to free its memory. Returns 0 if the system is short of memory. */
static inline int curl_shim_before_openssl_ends(void (*handler)(void)) {
  return OPENSSL_atexit == NULL || OPENSSL_atexit(handler) == 1;
}
/* Frees what OpenSSL keeps for the calling thread. Otherwise OpenSSL frees it when the system ends the thread. */
static inline void curl_shim_end_thread(void) {
  if (OPENSSL_thread_stop != NULL) OPENSSL_thread_stop();
}

/* Leaves out the key exchanges whose size the server chooses: Diffie-Hellman over prime fields. A server that chooses
 * primes of 8,192 bits or more would keep the I/O thread busy for a large part of a second. The ciphers that the
 * system's configuration has excluded stay excluded. */
static inline void curl_shim_limit_key_exchange(void *context) {
  enum { kx_dhe = 1039, set_groups_list = 92, room = 8192 };
  if (SSL_CTX_ctrl == NULL || SSL_CTX_get_ciphers == NULL || OPENSSL_sk_num == NULL || OPENSSL_sk_value == NULL ||
      SSL_CIPHER_get_kx_nid == NULL || SSL_CIPHER_get_name == NULL || SSL_CTX_set_cipher_list == NULL ||
      ERR_set_mark == NULL || ERR_pop_to_mark == NULL)
    return;
  char names[room];
  size_t used = 0;
  void *ciphers = SSL_CTX_get_ciphers(context);
  int count = ciphers == NULL ? 0 : OPENSSL_sk_num(ciphers), left_out = 0;
  for (int index = 0; index < count; index++) {
    const void *cipher = OPENSSL_sk_value(ciphers, index);
    const char *name = SSL_CIPHER_get_name(cipher);
    size_t size = name == NULL ? 0 : strlen(name);
    /* The names of TLS 1.3 ciphers begin with "TLS_"; OpenSSL keeps these ciphers in a separate list. */
    if (size == 0 || strncmp(name, "TLS_", 4) == 0) continue;
    if (SSL_CIPHER_get_kx_nid(cipher) == kx_dhe) {
      left_out++;
      continue;
    }
    if (used + size + 2 > sizeof names) return;
    if (used > 0) names[used++] = ':';
    memcpy(names + used, name, size);
    used += size;
  }
  names[used] = 0;
  ERR_set_mark();
  if (left_out > 0 && used > 0) SSL_CTX_set_cipher_list(context, names);
  /* OpenSSL refuses a list with a name that it does not know. So if it refuses the whole list, try shorter lists. */
  static const char all[] = "X25519MLKEM768:X25519:P-256:P-384:P-521";
  enum { after_hybrid = 15, after_x25519 = 22 };
  if (SSL_CTX_ctrl(context, set_groups_list, 0, (void *)all) != 1 &&
      SSL_CTX_ctrl(context, set_groups_list, 0, (void *)(all + after_hybrid)) != 1)
    SSL_CTX_ctrl(context, set_groups_list, 0, (void *)(all + after_x25519));
  ERR_pop_to_mark();
}

/* For each of the newest connections of the process: whether the server has asked for a client certificate. The library
 * never frees this memory, because a connection may live longer than its transfer. */
typedef struct curl_shim_handshakes {
  uint32_t next;
  uint8_t asked[1024];
} curl_shim_handshakes;

/* OpenSSL calls this function when the server asks for a client certificate. Returns 1, so that OpenSSL continues. */
static int curl_shim_on_certificate_request(void *ssl, void *asked) {
  (void)ssl;
  __atomic_store_n((uint8_t *)asked, 1, __ATOMIC_RELAXED);
  return 1;
}

/* libcurl calls this function for the TLS context of each new connection. `data`: the struct curl_shim_headers of the
 * transfer, or NULL. By default libcurl writes the keys of a connection to the file that SSLKEYLOGFILE names; this
 * function prevents that. */
static CURLcode curl_shim_on_tls_context(CURL *e, void *context, void *data) {
  struct curl_shim_headers *transfer = (struct curl_shim_headers *)data;
  (void)e;
  if (SSL_CTX_set_keylog_callback != NULL) SSL_CTX_set_keylog_callback(context, NULL);
  if (transfer != NULL && SSL_CTX_set_cert_cb != NULL) {
    curl_shim_handshakes *all = transfer->handshakes;
    transfer->asked = all->asked + __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED) % sizeof all->asked;
    __atomic_store_n(transfer->asked, 0, __ATOMIC_RELAXED);
    SSL_CTX_set_cert_cb(context, curl_shim_on_certificate_request, transfer->asked);
  }
  curl_shim_limit_key_exchange(context);
  return CURLE_OK;
}
/* Whether libcurl has a file with the system's certificate authorities. If so, the library does not use the folder of
 * authorities: with both, libcurl would parse the file again for each connection. */
static inline int curl_shim_has_authorities_file(void) {
  const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
  return version->age >= CURLVERSION_SEVENTH && version->cainfo != NULL && access(version->cainfo, R_OK) == 0;
}
static int curl_shim_pass_phrase(char *target, int room, int is_writing, void *phrase) {
  size_t size = phrase == NULL ? 0 : strlen((const char *)phrase);
  (void)is_writing;
  if (room < 0 || size > (size_t)room) return -1;
  if (size > 0) memcpy(target, phrase, size);
  return (int)size;
}
/* Which servers a handle trusts, and which certificate the client shows: three files, a pin, and the pass phrase of the
 * key. Each text may be NULL. */
typedef struct curl_shim_tls {
  const char *authorities, *certificate, *key, *pin, *phrase;
} curl_shim_tls;

/* Sets the TLS options of a handle. `has_authorities_file`: the result of curl_shim_has_authorities_file(). Returns 0
 * on success. */
static inline int curl_shim_set_tls(CURL *e, const curl_shim_tls *tls, int has_authorities_file) {
  int failed = curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) != CURLE_OK;
  CURLcode result = curl_easy_setopt(e, CURLOPT_SSL_CTX_FUNCTION, curl_shim_on_tls_context);
  /* libcurl with another TLS library than OpenSSL returns CURLE_NOT_BUILT_IN, which is no failure here. */
  failed |= result != CURLE_OK && result != CURLE_NOT_BUILT_IN;
  /* Always set a pass phrase, if necessary an empty one: otherwise OpenSSL would ask for one on the terminal. */
  failed |= curl_easy_setopt(e, CURLOPT_KEYPASSWD, tls->phrase != NULL ? tls->phrase : "") != CURLE_OK;
  if (tls->pin != NULL) failed |= curl_easy_setopt(e, CURLOPT_PINNEDPUBLICKEY, tls->pin) != CURLE_OK;
  if (tls->certificate != NULL) failed |= curl_easy_setopt(e, CURLOPT_SSLCERT, tls->certificate) != CURLE_OK;
  if (tls->key != NULL) failed |= curl_easy_setopt(e, CURLOPT_SSLKEY, tls->key) != CURLE_OK;
  if (tls->authorities != NULL) {
    failed |= curl_easy_setopt(e, CURLOPT_CAINFO, tls->authorities) != CURLE_OK;
    failed |= curl_easy_setopt(e, CURLOPT_PROXY_CAINFO, tls->authorities) != CURLE_OK;
  } else if (!has_authorities_file) {
    return failed;
  }
  /* By default libcurl also trusts the authorities in the system's folder. Make this handle ignore that folder. */
  result = curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
  failed |= result != CURLE_OK && result != CURLE_NOT_BUILT_IN;
  result = curl_easy_setopt(e, CURLOPT_PROXY_CAPATH, NULL);
  return failed | (result != CURLE_OK && result != CURLE_NOT_BUILT_IN);
}

#define CURL_SHIM_TLS_REFUSED 1
#define CURL_SHIM_TLS_INVALID 2
#define CURL_SHIM_TLS_SHORT 3
#define CURL_SHIM_TLS_AUTHORITIES 4
#define CURL_SHIM_TLS_CERTIFICATE 5
#define CURL_SHIM_TLS_KEY 6
#define CURL_SHIM_TLS_PIN 7

/* Returns 0 if the path is NULL or names a regular, readable file that is not empty. Otherwise returns
 * CURL_SHIM_TLS_SHORT if no file descriptor is left, else CURL_SHIM_TLS_INVALID. */
static inline int curl_shim_check_file(const char *path) {
  struct stat is;
  if (path == NULL) return 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno == EMFILE || errno == ENFILE ? CURL_SHIM_TLS_SHORT : CURL_SHIM_TLS_INVALID;
  int is_good = fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && is.st_size > 0;
  close(fd);
  return is_good ? 0 : CURL_SHIM_TLS_INVALID;
}
/* Whether the text is a list of pins; otherwise it is the name of a file. */
static inline int curl_shim_is_pin(const char *pin) { return strncmp(pin, "sha256//", 8) == 0; }
/* Returns an absolute path of the same file, which the caller frees with curl_shim_free_text(); NULL if the path is
 * absolute already, or if the system refuses. */
static inline char *curl_shim_absolute(const char *path) {
  char *folder, *whole;
  if (path[0] == '/' || (folder = getcwd(NULL, 0)) == NULL) return NULL;
  size_t size = strlen(folder) + strlen(path) + 2;
  if ((whole = (char *)malloc(size)) != NULL) snprintf(whole, size, "%s/%s", folder, path);
  free(folder);
  return whole;
}
static inline void curl_shim_free_text(char *text) { free(text); }
/* Checks a pin: the name of a file with the public key, or a list whose elements are "sha256//" and the base64 of 32
 * bytes. Returns the same as curl_shim_check_file(). */
static inline int curl_shim_check_pin(const char *pin) {
  static const char mark[] = "sha256//", digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  enum { mark_size = sizeof mark - 1, digits_size = 43 };
  if (pin == NULL || strncmp(pin, mark, mark_size) != 0) return curl_shim_check_file(pin);
  for (;; pin++) {
    if (strncmp(pin, mark, mark_size) != 0) return CURL_SHIM_TLS_INVALID;
    pin += mark_size;
    if (strspn(pin, digits) != digits_size || pin[digits_size] != '=') return CURL_SHIM_TLS_INVALID;
    pin += digits_size + 1;
    if (*pin == 0) return 0;
    if (*pin != ';') return CURL_SHIM_TLS_INVALID;
  }
}
/* Lets OpenSSL read the files, as libcurl does for each connection. Returns 0 if OpenSSL accepts the files, or if
 * libcurl uses another TLS library; otherwise CURL_SHIM_TLS_REFUSED or CURL_SHIM_TLS_SHORT. */
static inline int curl_shim_load_files(const curl_shim_tls *tls) {
  if (SSL_CTX_new == NULL || TLS_client_method == NULL || SSL_CTX_free == NULL ||
      SSL_CTX_load_verify_locations == NULL || SSL_CTX_use_certificate_chain_file == NULL ||
      SSL_CTX_use_PrivateKey_file == NULL || SSL_CTX_check_private_key == NULL ||
      SSL_CTX_set_default_passwd_cb == NULL || SSL_CTX_set_default_passwd_cb_userdata == NULL || ERR_set_mark == NULL ||
      ERR_pop_to_mark == NULL)
    return 0;
  enum { pem = 1 };
  int is_good = 1;
  ERR_set_mark(); /* The host may use OpenSSL on this thread, so keep the host's entries in OpenSSL's error queue. */
  void *context = SSL_CTX_new(TLS_client_method());
  if (context != NULL && tls->authorities != NULL)
    is_good = SSL_CTX_load_verify_locations(context, tls->authorities, NULL) == 1;
  if (context != NULL && tls->certificate != NULL) {
    SSL_CTX_set_default_passwd_cb(context, curl_shim_pass_phrase);
    SSL_CTX_set_default_passwd_cb_userdata(context, (void *)tls->phrase);
    is_good = is_good && SSL_CTX_use_certificate_chain_file(context, tls->certificate) == 1 &&
              SSL_CTX_use_PrivateKey_file(context, tls->key != NULL ? tls->key : tls->certificate, pem) == 1 &&
              SSL_CTX_check_private_key(context) == 1;
  }
  SSL_CTX_free(context);
  ERR_pop_to_mark();
  return context == NULL ? CURL_SHIM_TLS_SHORT : is_good ? 0 : CURL_SHIM_TLS_REFUSED;
}
/* Returns 0 if libcurl can use the options. CURL_SHIM_TLS_AUTHORITIES to CURL_SHIM_TLS_PIN name the option that is
 * wrong: its file cannot be read, the pin is malformed, or there is a key or pass phrase but no certificate.
 * CURL_SHIM_TLS_REFUSED: the TLS library cannot use the content of a file. CURL_SHIM_TLS_SHORT: the system is short of
 * memory or descriptors. */
static inline int curl_shim_check_tls(const curl_shim_tls *tls) {
  if (tls->certificate == NULL && (tls->key != NULL || tls->phrase != NULL)) return CURL_SHIM_TLS_CERTIFICATE;
  const char *files[] = {tls->authorities, tls->certificate, tls->key};
  int result = 0, at = 0;
  for (; at < 3 && result == 0; at++) result = curl_shim_check_file(files[at]);
  if (result == 0) at++, result = curl_shim_check_pin(tls->pin);
  if (result == CURL_SHIM_TLS_INVALID) return CURL_SHIM_TLS_AUTHORITIES + at - 1;
  if (result != 0 || (tls->authorities == NULL && tls->certificate == NULL)) return result;
  return curl_shim_load_files(tls);
}

static inline void curl_shim_free_tls(curl_shim_tls *tls) {
  if (tls->phrase != NULL) explicit_bzero((char *)tls->phrase, strlen(tls->phrase));
  const char *texts[] = {tls->authorities, tls->certificate, tls->key, tls->pin, tls->phrase};
  for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) free((char *)texts[at]);
}
/* Copies the texts. Returns 0 if the system is short of memory. */
static inline int curl_shim_copy_tls(curl_shim_tls *copy, const curl_shim_tls *tls) {
  const char *from[] = {tls->authorities, tls->certificate, tls->key, tls->pin, tls->phrase};
  const char **to[] = {&copy->authorities, &copy->certificate, &copy->key, &copy->pin, &copy->phrase};
  int is_whole = 1;
  for (size_t at = 0; at < sizeof from / sizeof *from; at++) {
    *to[at] = from[at] == NULL ? NULL : strdup(from[at]);
    is_whole &= (*to[at] == NULL) == (from[at] == NULL);
  }
  return is_whole;
}

/* Returns the name of the TLS alert in an error text of libcurl, for example "certificate required", or NULL. */
static inline const char *curl_shim_tls_alert(const char *text) {
  const char *found = strstr(text, " alert ");
  return found == NULL ? NULL : found + 7;
}
/* Whether the alert says that the server got no client certificate, or that the server refuses the client's
 * certificate. In this case the server has not read the request. In TLS 1.2 a server that got no certificate sends
 * "handshake failure", but such a server sends "handshake failure" for many other reasons too. So "handshake
 * failure" counts only if the server has asked for a certificate. */
static inline int curl_shim_refuses_certificate(const char *alert, const struct curl_shim_headers *transfer) {
  return strstr(alert, "certificate") != NULL || strncmp(alert, "unknown ca", 10) == 0 ||
         (strncmp(alert, "handshake failure", 17) == 0 && transfer->asked != NULL &&
             __atomic_load_n(transfer->asked, __ATOMIC_RELAXED) != 0);
}

#endif
