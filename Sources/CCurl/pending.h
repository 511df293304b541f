/* Finds bytes that OpenSSL has decrypted and libcurl has not read. The server sent these bytes after the end of a
 * reply, and no system call shows them. */
#ifndef USHER_CCURL_PENDING_H
#define USHER_CCURL_PENDING_H

#include <curl/curl.h>
#include <dlfcn.h>
#include <stddef.h>

typedef int (*curl_shim_ssl_pending)(const void *);
/* Returns OpenSSL's function SSL_pending, which the process has loaded together with libcurl. Returns NULL if libcurl
 * uses another TLS library. */
static inline curl_shim_ssl_pending curl_shim_find_ssl_pending(void) {
  union {
    void *address;
    curl_shim_ssl_pending function;
  } found;
  found.address = dlsym(RTLD_DEFAULT, "SSL_pending");
  return found.function;
}
/* Call it in the write callback. Returns whether OpenSSL has more bytes of the connection than libcurl has read. */
static inline int curl_shim_has_pending(CURL *e, curl_shim_ssl_pending pending) {
  struct curl_tlssessioninfo *tls = NULL;
  if (pending == NULL || curl_easy_getinfo(e, CURLINFO_TLS_SSL_PTR, &tls) != CURLE_OK || tls == NULL) return 0;
  return tls->backend == CURLSSLBACKEND_OPENSSL && tls->internals != NULL && pending(tls->internals) > 0;
}

#endif
