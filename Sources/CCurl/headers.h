/* Limits how many bytes of header lines libcurl stores for one reply: the reply's own lines, those of interim (1xx)
 * replies before it, and the trailers after a chunked body. Also limits the codings of the body, and refuses a reply
 * whose first header line begins with a blank. */
#ifndef USHER_CCURL_HEADERS_H
#define USHER_CCURL_HEADERS_H

#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* For each header line, the library counts this many bytes more than the line has, because libcurl's record of a short
 * line is larger than the line. */
#define CURL_SHIM_HEADER_LINE_COST 32

/* What the callbacks of one transfer need to know: how many more bytes of header lines the reply may have, and how its
 * body is coded. */
struct curl_shim_headers {
  int64_t left;
  /* How many codings the body has, besides chunked. */
  int32_t codings;
  /* 1: the body has a coding that the library did not ask for, or more than one. libcurl must not decode it: a few
   * bytes with several codings can keep libcurl busy for minutes. */
  int32_t is_bad;
  /* How many seconds the connection may be idle, by the reply's `Keep-Alive: timeout=`; -1: the reply does not say. */
  int32_t idle_seconds;
  /* CURL_SHIM_LINE_... */
  int32_t first_line;
  /* The handle of the transfer. */
  CURL *easy;
  /* For each of the process's newest TLS connections: whether the server has asked for a client certificate (tls.h).
   * `asked`: the entry for this transfer's newest connection; NULL: the transfer has made no TLS connection. */
  struct curl_shim_handshakes *handshakes;
  uint8_t *asked;
};

/* libcurl 7.84 to 8.0 keep a pointer to the last header line of a handle's previous reply, although they have freed
 * that line. If the first header line of the next reply begins with a blank, these versions write to the freed
 * memory, as if the new line continued the freed one: a server could damage the host's heap. They write before they
 * pass the line to the header callback. But with CURLOPT_HEADER they first pass the line to the body callback,
 * which can stop the transfer. So libusher sets CURLOPT_HEADER at the start of each transfer, until libcurl has
 * stored one header line. */

/* The states of this check. CURL_SHIM_LINE_STORED: libcurl passes only the body to the body callback. */
#define CURL_SHIM_LINE_STORED 0
/* libcurl passes header lines to the body callback, too, and the next byte is the first one of a line. */
#define CURL_SHIM_LINE_BEGINS 1
/* libcurl passes header lines to the body callback, too, and the next byte continues a line that has begun. */
#define CURL_SHIM_LINE_GOES_ON 2
/* The body callback has stopped the transfer, because the first header line began with a blank. */
#define CURL_SHIM_LINE_REFUSED 3
static inline int curl_shim_must_check_first_line(void) {
  const unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
  return version >= 0x075400 && version < 0x080100;
}
/* Begins the check. Call it when a transfer starts, but only if curl_shim_must_check_first_line(). */
static inline CURLcode curl_shim_check_first_line(struct curl_shim_headers *headers) {
  headers->first_line = CURL_SHIM_LINE_BEGINS;
  return curl_easy_setopt(headers->easy, CURLOPT_HEADER, 1L);
}
/* The body callback calls this until a header line is stored. Returns 0 if the body callback must stop the
   transfer. */
static inline int curl_shim_may_store(struct curl_shim_headers *headers, const char *bytes, size_t size) {
  if (size == 0) return 1;
  const int begins = headers->first_line == CURL_SHIM_LINE_BEGINS;
  headers->first_line = bytes[size - 1] == '\n' ? CURL_SHIM_LINE_BEGINS : CURL_SHIM_LINE_GOES_ON;
  if (!begins || (bytes[0] != ' ' && bytes[0] != '\t')) return 1;
  headers->first_line = CURL_SHIM_LINE_REFUSED;
  return 0;
}
/* The header callback calls this until a header line is stored. libcurl passes some lines to this callback, but
 * does not store them: status lines in any spelling, the first line of a proxy's reply, and the empty line that
 * ends the headers. So this function asks libcurl whether libcurl has stored a header line of this transfer. If
 * libcurl has stored none, the check continues until the empty line after the final status: a body can follow only
 * that line. */
static __attribute__((noinline, unused)) void curl_shim_note_stored_line(
    struct curl_shim_headers *headers, const char *line, size_t size) {
  const unsigned all = CURLH_HEADER | CURLH_TRAILER | CURLH_CONNECT | CURLH_1XX | CURLH_PSEUDO;
  if (curl_easy_nextheader(headers->easy, all, -1, NULL) == NULL) {
    const int is_empty = size > 0 && (line[0] == '\r' || line[0] == '\n');
    long status = 0; /* 0: a proxy has replied, but the server has not. */
    if (!is_empty || curl_easy_getinfo(headers->easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status == 0 ||
        (status >= 100 && status < 200 && status != 101))
      return;
  }
  headers->first_line = CURL_SHIM_LINE_STORED;
  curl_easy_setopt(headers->easy, CURLOPT_HEADER, 0L);
}

/* Whether the header line has this name, in any letter case. `name` is in lower case and ends in a colon. */
static inline int curl_shim_is_header(const char *line, size_t size, const char *name, size_t length) {
  if (size < length) return 0;
  for (size_t i = 0; i < length; i++) {
    char c = line[i];
    if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != name[i]) return 0;
  }
  return 1;
}
/* Whether the value of a header line is this one word, in any letter case. */
static __attribute__((noinline, unused)) int curl_shim_has_value(const char *value, size_t size, const char *word) {
  while (size > 0 && (*value == ' ' || *value == '\t')) value++, size--;
  while (size > 0 && (unsigned char)value[size - 1] <= ' ') size--;
  return size == strlen(word) && curl_shim_is_header(value, size, word, size);
}
static __attribute__((noinline, unused)) void curl_shim_note_coding(
    struct curl_shim_headers *headers, const char *line, size_t size) {
  static const char content[] = "content-encoding:", transfer[] = "transfer-encoding:";
  const size_t length = sizeof content - 1;
  if (curl_shim_is_header(line, size, content, length)) {
    const char *value = line + length;
    size -= length;
    if (curl_shim_has_value(value, size, "gzip") || curl_shim_has_value(value, size, "x-gzip") ||
        curl_shim_has_value(value, size, "deflate"))
      headers->codings++;
    /* Some servers write a word here that is not a coding. libcurl ignores "none"; if the word is another one, such as
     * "utf-8", and the reply has a body, libcurl fails with CURLE_BAD_CONTENT_ENCODING. */
    if (curl_shim_has_value(value, size, "br") || curl_shim_has_value(value, size, "zstd") ||
        curl_shim_has_value(value, size, "compress") || memchr(value, ',', size) != NULL || headers->codings > 1)
      headers->is_bad = 1;
  } else if (curl_shim_is_header(line, size, transfer, length + 1)) {
    const char *value = line + length + 1;
    size -= length + 1;
    if (!curl_shim_has_value(value, size, "chunked") && !curl_shim_has_value(value, size, "identity"))
      headers->is_bad = 1;
  }
}

/* Reads the timeout from a line such as `Keep-Alive: timeout=5, max=100`. Ignores all other header lines. */
static __attribute__((noinline, unused)) void curl_shim_note_idle_time(
    struct curl_shim_headers *headers, const char *line, size_t size) {
  static const char name[] = "keep-alive:", word[] = "timeout=";
  if (!curl_shim_is_header(line, size, name, sizeof name - 1)) return;
  for (size_t at = sizeof name - 1; at < size; at++) {
    if (!curl_shim_is_header(line + at, size - at, word, sizeof word - 1)) continue;
    int32_t seconds = -1;
    for (at += sizeof word - 1; at < size && line[at] >= '0' && line[at] <= '9' && seconds < 1000000; at++)
      seconds = (seconds < 0 ? 0 : seconds * 10) + (line[at] - '0');
    headers->idle_seconds = seconds;
    return;
  }
}

/* libcurl passes each header line to this function. `data` is a struct curl_shim_headers. */
static __attribute__((noinline, unused)) size_t curl_shim_count_header(
    char *line, size_t size, size_t count, void *data) {
  struct curl_shim_headers *headers = (struct curl_shim_headers *)data;
  const size_t bytes = size * count;
  headers->left -= (int64_t)bytes + CURL_SHIM_HEADER_LINE_COST;
  if (headers->first_line != CURL_SHIM_LINE_STORED) curl_shim_note_stored_line(headers, line, bytes);
  if (bytes > 17 && (line[16] == ':' || line[17] == ':')) curl_shim_note_coding(headers, line, bytes);
  if (bytes > 11 && line[10] == ':') curl_shim_note_idle_time(headers, line, bytes);
  return headers->left < 0 || headers->is_bad ? 0 : bytes;
}
/* Makes a transfer fail with CURLE_WRITE_ERROR in two cases: its header lines have more bytes than `left` allows
 * (`left` is below 0 then), or its body has a bad coding. CURLOPT_HEADERDATA must be the transfer's struct
 * curl_shim_headers. */
static inline CURLcode curl_shim_limit_headers(CURL *e) {
  return curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, curl_shim_count_header);
}

/* libcurl calls `v` for each socket that it opens, before it connects the socket. */
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
