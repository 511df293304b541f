/* Limits how much libcurl stores of a reply's header lines: those of the reply, of interim (1xx) replies before it, and
 * of the trailers after a chunked body. */
#ifndef USHER_CCURL_HEADERS_H
#define USHER_CCURL_HEADERS_H

#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that a header line costs in addition to its length: libcurl's record of a short line is larger than the
 * line. */
#define CURL_SHIM_HEADER_LINE_COST 32

/* libcurl passes each header line to this function. `data` is the int64_t of what further lines may cost. */
static inline size_t curl_shim_count_header(char *line, size_t size, size_t count, void *data) {
  int64_t *left = (int64_t *)data;
  (void)line;
  *left -= (int64_t)(size * count) + CURL_SHIM_HEADER_LINE_COST;
  return *left < 0 ? 0 : size * count;
}
/* Makes transfers fail with CURLE_WRITE_ERROR when their header lines cost more than `*left`, which then is below 0. */
static inline CURLcode curl_shim_limit_headers(CURL *e, int64_t *left) {
  CURLcode result = curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, curl_shim_count_header);
  return result == CURLE_OK ? curl_easy_setopt(e, CURLOPT_HEADERDATA, left) : result;
}

/* libcurl calls `v` for each socket that it opens, before it connects it. */
typedef int (*curl_shim_socket_made_callback)(void *, curl_socket_t, curlsocktype);
static inline CURLcode curl_shim_set_socket_made_callback(CURL *e, curl_shim_socket_made_callback v, void *data) {
  CURLcode result = curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, v);
  return result == CURLE_OK ? curl_easy_setopt(e, CURLOPT_SOCKOPTDATA, data) : result;
}
/* Whether the last reply of the handle came over HTTP/2. */
static inline int curl_shim_was_http2(CURL *e) {
  long version = 0;
  return curl_easy_getinfo(e, CURLINFO_HTTP_VERSION, &version) == CURLE_OK && version == CURL_HTTP_VERSION_2_0;
}

#endif
