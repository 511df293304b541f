/* Memory functions for libcurl and OpenSSL that wipe a block before they free it. */
#ifndef USHER_CCURL_WIPING_H
#define USHER_CCURL_WIPING_H

#include "tls.h"

#include <curl/curl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* A function of OpenSSL; NULL if libcurl uses another TLS library (see tls.h). */
extern int CRYPTO_set_mem_functions(void *(*allocate)(size_t, const char *, int),
    void *(*resize)(void *, size_t, const char *, int), void (*release)(void *, const char *, int))
    __attribute__((weak));

/* Returns the address of a number: 1 if libcurl has allocated a block with these functions, otherwise 0. */
static int *curl_shim_wiping_used(void) {
  static int used = 0;
  return &used;
}
static void *curl_shim_wiping_malloc(size_t size) {
  __atomic_store_n(curl_shim_wiping_used(), 1, __ATOMIC_RELAXED);
  return malloc(size);
}
static void *curl_shim_wiping_calloc(size_t count, size_t size) { return calloc(count, size); }
static char *curl_shim_wiping_strdup(const char *text) { return strdup(text); }
static void curl_shim_wiping_free(void *block) {
  if (block != NULL) explicit_bzero(block, malloc_usable_size(block));
  free(block);
}
static void *curl_shim_wiping_realloc(void *block, size_t size) {
  size_t had = block == NULL ? 0 : malloc_usable_size(block);
  void *grown = malloc(size);
  if (grown == NULL || block == NULL) return grown;
  memcpy(grown, block, had < size ? had : size);
  curl_shim_wiping_free(block);
  return grown;
}
static void *curl_shim_openssl_malloc(size_t size, const char *file, int line) {
  (void)file, (void)line;
  return malloc(size);
}
static void *curl_shim_openssl_realloc(void *block, size_t size, const char *file, int line) {
  (void)file, (void)line;
  return curl_shim_wiping_realloc(block, size);
}
static void curl_shim_openssl_free(void *block, const char *file, int line) {
  (void)file, (void)line;
  curl_shim_wiping_free(block);
}
/* Makes libcurl and OpenSSL use these functions in the whole process. Returns 0 if one of the two was in use before. */
static inline int curl_shim_wipe_freed_memory(void) {
  if (CRYPTO_set_mem_functions != NULL &&
      CRYPTO_set_mem_functions(curl_shim_openssl_malloc, curl_shim_openssl_realloc, curl_shim_openssl_free) != 1)
    return 0;
  curl_shim_keep_openssl_at_exit();
  if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_shim_wiping_malloc, curl_shim_wiping_free,
          curl_shim_wiping_realloc, curl_shim_wiping_strdup, curl_shim_wiping_calloc) != CURLE_OK)
    return 0;
  /* If some code has used libcurl before, libcurl keeps its own memory functions, and this call does not set `used`. */
  curl_slist_free_all(curl_slist_append(NULL, ""));
  return __atomic_load_n(curl_shim_wiping_used(), __ATOMIC_RELAXED);
}

#endif
