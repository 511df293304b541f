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

typedef int (*uc_prereq_fn)(void *, char *, char *, int, int);
static inline CURLcode uc_set_prereq_fn(CURL *e, uc_prereq_fn v) {
  return curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, v);
}
typedef int (*uc_close_fn)(void *, curl_socket_t);
static inline CURLcode uc_set_close_fn(CURL *e, uc_close_fn v, void *data) {
  CURLcode result = curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, v);
  return result == CURLE_OK ? curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, data) : result;
}
/* The socket of the connection that was made for the transfer that ended well; -1: none was made. */
static inline curl_socket_t uc_new_socket(CURL *e) {
  long made = 0;
  curl_socket_t found = CURL_SOCKET_BAD;
  if (curl_easy_getinfo(e, CURLINFO_NUM_CONNECTS, &made) != CURLE_OK || made == 0) return CURL_SOCKET_BAD;
  return curl_easy_getinfo(e, CURLINFO_ACTIVESOCKET, &found) == CURLE_OK ? found : CURL_SOCKET_BAD;
}
/* The body of a POST, read where it is; NULL: none. */
static inline CURLcode uc_set_body(CURL *e, const void *bytes, int64_t size) {
  CURLcode result = curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
  return result == CURLE_OK ? curl_easy_setopt(e, CURLOPT_POSTFIELDS, bytes == NULL ? "" : bytes) : result;
}

typedef int (*uc_socket_fn)(CURL *, curl_socket_t, int, void *, void *);
typedef int (*uc_timer_fn)(CURLM *, long, void *);
static inline CURLMcode uc_multi_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode uc_multi_pointer(CURLM *m, CURLMoption o, void *v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode uc_multi_socket_fn(CURLM *m, uc_socket_fn v) {
  return curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, v);
}
static inline CURLMcode uc_multi_timer_fn(CURLM *m, uc_timer_fn v) {
  return curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, v);
}

static inline long uc_response_code(CURL *e) {
  long code = 0;
  curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &code);
  return code;
}
/* Bytes of requests sent for the transfer under way, those to a proxy among them. */
static inline long uc_request_size(CURL *e) {
  long size = 0;
  curl_easy_getinfo(e, CURLINFO_REQUEST_SIZE, &size);
  return size;
}
/* From when the connection was ready for the request to the end of the answer, in microseconds. */
static inline int64_t uc_reply_time(CURL *e) {
  curl_off_t ready = 0, end = 0;
  curl_easy_getinfo(e, CURLINFO_PRETRANSFER_TIME_T, &ready);
  curl_easy_getinfo(e, CURLINFO_TOTAL_TIME_T, &end);
  return end > ready ? end - ready : 0;
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
/* One line of a header list, NUL-terminated; libcurl only reads it. */
static inline void uc_list_line(struct curl_slist *at, const void *line, struct curl_slist *next) {
  at->data = (char *)line;
  at->next = next;
}
static inline void uc_list_no_expect(struct curl_slist *at) { uc_list_line(at, "Expect:", NULL); }
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
  if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
      curl_url_get(url, CURLUPART_SCHEME, &part, 0) == CURLUE_OK) {
    *https = strcmp(part, "https") == 0;
    ok = *https || strcmp(part, "http") == 0 ? 0 : -1;
    curl_free(part);
    part = NULL;
    if (ok == 0 && curl_url_get(url, CURLUPART_HOST, &part, 0) == CURLUE_OK && strlen(part) < 256) strcpy(host, part);
    else ok = -1;
    curl_free(part);
    part = NULL;
    if (ok == 0 && curl_url_get(url, CURLUPART_PORT, &part, CURLU_DEFAULT_PORT) == CURLUE_OK)
      *port = (int)strtol(part, NULL, 10);
    curl_free(part);
  }
  curl_url_cleanup(url);
  return ok;
}

#endif
