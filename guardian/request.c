/* request.c - see request.h. SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include "../Sources/CCurl/tls.h"

#include <stdio.h>

enum { BODY_MOST = 65536, HEADERS_MOST = 65536, LONGEST_WAIT_S = 86400, LONGEST_REQUEST_MS = 60000 };

/* Returns the limit `ms`, but at most LONGEST_REQUEST_MS. For 0 it returns LONGEST_REQUEST_MS, because libcurl would
   read 0 as "no limit" or as its own default. */
static long limited(uint32_t ms) { return ms == 0 || ms > LONGEST_REQUEST_MS ? LONGEST_REQUEST_MS : (long)ms; }

/* Discards a piece of a reply's body. @return the size of the piece; 0, which stops the transfer, if the body is too
   long or the first header line begins with a blank. */
static size_t take_body(char *bytes, size_t size, size_t count, void *request) {
  struct request *own = request;
  if (own->headers.first_line != CURL_SHIM_LINE_STORED)
    return curl_shim_may_store(&own->headers, bytes, size * count) ? size * count : 0;
  if (count > 0 && size * count > own->body_left) return 0;
  own->body_left -= size * count;
  return size * count;
}

static bool set_tls(CURL *easy, const struct record *settings) {
  const curl_shim_tls tls = {record_text(settings, USHER_FIELD_AUTHORITIES),
      record_text(settings, USHER_FIELD_CERTIFICATE), record_text(settings, USHER_FIELD_KEY),
      record_text(settings, USHER_FIELD_PIN), record_text(settings, USHER_FIELD_PHRASE)};
  return curl_shim_set_tls(easy, &tls, curl_shim_has_authorities_file()) == 0;
}

/* Sets the options that every request needs; without some of them libcurl would reveal a secret or repeat a request.
   libusher sets the same options for its own requests, except three: the time limit of the whole request, PIPEWAIT with
   HTTP/2, and take_body(). @return false if libcurl refuses an option without which the request would not be safe. */
static bool set_safety(CURL *easy, const struct record *record, const struct record *settings) {
  const char *proxy = record_text(settings, USHER_FIELD_PROXY), *agent = record_text(settings, USHER_FIELD_USER_AGENT);
  const bool avoids_proxy = (record->fixed.flags & USHER_RECORD_LOOPBACK) != 0 && proxy == NULL;
  const bool is_http2 = (settings->fixed.flags & USHER_RECORD_HTTP2) != 0;
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, is_http2 ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
  if (is_http2) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
  /* With GSS-API, libcurl would wait for a SOCKS 5 proxy without a time limit. */
  curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_BASIC);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, limited(settings->fixed.connect_timeout_ms));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, limited(record->fixed.timeout_ms));
  return curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
         curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
         curl_easy_setopt(easy, CURLOPT_NETRC, 0L) == CURLE_OK &&
         curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK && set_tls(easy, settings) &&
         (proxy == NULL || curl_easy_setopt(easy, CURLOPT_PROXY, proxy) == CURLE_OK) &&
         (!avoids_proxy || curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK) &&
         (agent == NULL || curl_easy_setopt(easy, CURLOPT_USERAGENT, agent) == CURLE_OK) &&
         curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
         curl_shim_limit_headers(easy) == CURLE_OK;
}

static bool add_line(struct curl_slist **list, const void *text) {
  struct curl_slist *longer = curl_slist_append(*list, text);
  if (longer != NULL) *list = longer;
  return longer != NULL;
}

/* Sets the URL, the header lines, the body, the addresses and the cookies of the record. @return false on failure. */
static bool set_fields(struct request *request, const struct record *record) {
  CURL *easy = request->easy;
  usher_record_field field;
  size_t at = 0, body_size = 0;
  const uint8_t *bytes;
  const void *body = "";
  bool is_good = add_line(&request->lines, "Expect:");
  while (is_good && (bytes = usher_record_next(record->bytes, record->length, &at, &field)) != NULL)
    switch (field.kind) {
    case USHER_FIELD_URL: is_good = curl_easy_setopt(easy, CURLOPT_URL, bytes) == CURLE_OK; break;
    case USHER_FIELD_HEADER: is_good = add_line(&request->lines, bytes); break;
    case USHER_FIELD_BODY: body = bytes, body_size = field.length; break;
    case USHER_FIELD_ADDRESSES: is_good = add_line(&request->addresses, bytes); break;
    case USHER_FIELD_COOKIE:
      is_good = curl_easy_setopt(easy, CURLOPT_COOKIEFILE, "") == CURLE_OK &&
                curl_easy_setopt(easy, CURLOPT_COOKIELIST, bytes) == CURLE_OK;
      break;
    default: break; /* a field of a newer library */
    }
  if (is_good && (record->fixed.flags & USHER_RECORD_POST) != 0)
    is_good = curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_size) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body) == CURLE_OK;
  if (is_good && request->addresses != NULL)
    is_good = curl_easy_setopt(easy, CURLOPT_RESOLVE, request->addresses) == CURLE_OK;
  return is_good && curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->lines) == CURLE_OK;
}

bool request_make(struct request *request, const struct record *record, const struct record *settings) {
  *request = (struct request){.easy = curl_easy_init()};
  if (request->easy == NULL) return false;
  if (set_safety(request->easy, record, settings) && set_fields(request, record)) return true;
  request_free(request);
  return false;
}

void request_prepare(struct request *request, void *owner) {
  request->headers = (struct curl_shim_headers){.left = HEADERS_MOST, .easy = request->easy};
  request->body_left = BODY_MOST;
  if (curl_shim_must_check_first_line()) curl_shim_check_first_line(&request->headers);
  curl_easy_setopt(request->easy, CURLOPT_HEADERDATA, &request->headers);
  curl_easy_setopt(request->easy, CURLOPT_WRITEDATA, request);
  curl_easy_setopt(request->easy, CURLOPT_PRIVATE, owner);
}

void *request_owner(CURL *easy) {
  void *owner = NULL;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
  return owner;
}

/* Makes libcurl look the name up itself from now on. request_result() calls this when an attempt could not send the
   request: the addresses that the host had looked up may be wrong. */
static void forget_addresses(struct request *request) {
  if (request->addresses == NULL) return;
  /* Change the entry "HOST:PORT:ADDRESSES" to "-HOST:PORT": with this text libcurl forgets the addresses. */
  const char *entry = request->addresses->data, *port = strchr(entry, ':');
  const char *end = port == NULL ? NULL : strchr(port + 1, ':');
  char name[300];
  if (entry[0] == '-' || end == NULL || end - entry > 280) return;
  snprintf(name, sizeof name, "-%.*s", (int)(end - entry), entry);
  struct curl_slist *forgotten = curl_slist_append(NULL, name);
  if (forgotten == NULL || curl_easy_setopt(request->easy, CURLOPT_RESOLVE, forgotten) != CURLE_OK) {
    curl_slist_free_all(forgotten);
    return;
  }
  curl_slist_free_all(request->addresses);
  request->addresses = forgotten;
}

enum request_result request_result(struct request *request, CURLcode code, int64_t *asked_ms) {
  long status = 0, sent = 0;
  curl_off_t wait_s = 0;
  curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(request->easy, CURLINFO_REQUEST_SIZE, &sent);
  if (code != CURLE_OK && sent == 0) {
    forget_addresses(request);
    return REQUEST_NOT_SENT;
  }
  /* A proxy asks for a password (407), the request took too long (408) or came too early (425), there were too many
     requests (429), or the server has a fault: the same request may succeed later. */
  if (status == 407 || status == 408 || status == 425 || status == 429 || status >= 500) {
    curl_easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &wait_s);
    *asked_ms = (wait_s < LONGEST_WAIT_S ? wait_s : LONGEST_WAIT_S) * 1000;
    return REQUEST_FAILED;
  }
  /* If the status arrived, the rest of the reply does not matter. */
  if ((status >= 200 && status < 300) || (status >= 400 && status < 500)) return REQUEST_ANSWERED;
  return REQUEST_FAILED;
}

void request_free(struct request *request) {
  for (struct curl_slist *at = request->lines; at != NULL; at = at->next) explicit_bzero(at->data, strlen(at->data));
  curl_easy_cleanup(request->easy);
  curl_slist_free_all(request->lines);
  curl_slist_free_all(request->addresses);
  *request = (struct request){0};
}
