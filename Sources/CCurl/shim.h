/* Typed shims over libcurl's variadic calls. */
#ifndef USHER_CCURL_SHIM_H
#define USHER_CCURL_SHIM_H

#include <curl/curl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline CURLcode uc_set_long(CURL *e, CURLoption o, long v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode uc_set_off(CURL *e, CURLoption o, int64_t v) { return curl_easy_setopt(e, o, (curl_off_t)v); }
static inline CURLcode uc_set_string(CURL *e, CURLoption o, const char *v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode uc_set_pointer(CURL *e, CURLoption o, const void *v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode uc_set_list(CURL *e, CURLoption o, struct curl_slist *v) { return curl_easy_setopt(e, o, v); }
typedef size_t (*uc_data_fn)(char *, size_t, size_t, void *);
static inline CURLcode uc_set_data_fn(CURL *e, CURLoption o, uc_data_fn v) { return curl_easy_setopt(e, o, v); }

typedef int (*uc_socket_fn)(CURL *, curl_socket_t, int, void *, void *);
typedef int (*uc_timer_fn)(CURLM *, long, void *);
static inline CURLMcode uc_multi_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode uc_multi_pointer(CURLM *m, CURLMoption o, void *v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode uc_multi_socket_fn(CURLM *m, uc_socket_fn v) { return curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, v); }
static inline CURLMcode uc_multi_timer_fn(CURLM *m, uc_timer_fn v) { return curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, v); }

static inline long uc_response_code(CURL *e) {
  long code = 0;
  curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &code);
  return code;
}
/* Microseconds until the request itself was about to be sent: the connection, with all TLS and proxies of it, stood. 0: it never did. */
static inline int64_t uc_ready_after(CURL *e) {
  curl_off_t time = 0;
  curl_easy_getinfo(e, CURLINFO_PRETRANSFER_TIME_T, &time);
  return time;
}
static inline void *uc_private(CURL *e) {
  void *p = NULL;
  curl_easy_getinfo(e, CURLINFO_PRIVATE, &p);
  return p;
}
/* One finished transfer: its handle and result, or NULL. */
static inline CURL *uc_next_done(CURLM *m, CURLcode *result) {
  int left = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(m, &left)) != NULL) {
    if (message->msg == CURLMSG_DONE) {
      *result = message->data.result;
      return message->easy_handle;
    }
  }
  return NULL;
}
static inline void uc_list_wipe(struct curl_slist *list) {
  for (struct curl_slist *at = list; at != NULL; at = at->next) explicit_bzero(at->data, strlen(at->data));
  curl_slist_free_all(list);
}
/* Value of a response header, or NULL; lives until the next transfer of the handle. */
static inline const char *uc_response_header(CURL *e, const char *name) {
  struct curl_header *header = NULL;
  if (curl_easy_header(e, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return NULL;
  return header->value;
}
/* Splits a URL: 0 when it is an absolute http or https URL. `host` has room for 256 bytes. */
static inline int uc_url_check(const char *text, int *https, char *host, int *port) {
  CURLU *url = curl_url();
  char *part = NULL;
  int ok = -1;
  if (url == NULL) return -1;
  if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK && curl_url_get(url, CURLUPART_SCHEME, &part, 0) == CURLUE_OK) {
    *https = strcmp(part, "https") == 0;
    ok = *https || strcmp(part, "http") == 0 ? 0 : -1;
    curl_free(part);
    part = NULL;
    if (ok == 0 && curl_url_get(url, CURLUPART_HOST, &part, 0) == CURLUE_OK && strlen(part) < 256) strcpy(host, part);
    else ok = -1;
    curl_free(part);
    part = NULL;
    if (ok == 0 && curl_url_get(url, CURLUPART_PORT, &part, CURLU_DEFAULT_PORT) == CURLUE_OK) *port = (int)strtol(part, NULL, 10);
    curl_free(part);
  }
  curl_url_cleanup(url);
  return ok;
}

#endif
