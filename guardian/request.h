/* request.h - one teardown request with libcurl. SPDX-License-Identifier: Apache-2.0 */
#ifndef GUARDIAN_REQUEST_H
#define GUARDIAN_REQUEST_H

#include "records.h"

#include "../Sources/CCurl/headers.h"

#include <curl/curl.h>

struct request {
  CURL *easy;
  struct curl_slist *lines; /* the header lines */
  struct curl_slist *addresses; /* for CURLOPT_RESOLVE */
  struct curl_shim_headers headers; /* the limits of the reply's header lines, and how many bytes are left of them */
  size_t body_left; /* how many more bytes of the reply's body are accepted; a longer body fails the request */
};

enum request_result {
  REQUEST_ANSWERED, /* the server tore the session down, or refused this for good (HTTP 400 to 499, not 429) */
  REQUEST_FAILED, /* no usable reply, or HTTP 429 or 500 and more; the server may have read the request */
  REQUEST_NOT_SENT /* libcurl sent no byte of the request, for example because it got no connection to the server */
};

/* Makes the request of a record. @return false if libcurl refuses an option without which the request would not be
   safe; then the request must not be sent. The record must live as long as the request. */
bool request_make(struct request *request, const struct record *record, const struct record *settings);
/* Call this before each attempt: it sets the limits of the reply and the pointers to `request`, which may have moved in
   memory. request_owner() returns `owner`. */
void request_prepare(struct request *request, void *owner);
void *request_owner(CURL *easy);
/* @return how an attempt has ended. Sets `asked_ms` after HTTP 429 or 500 and more: how long the server asks the client
   to wait (Retry-After). */
enum request_result request_result(struct request *request, CURLcode code, int64_t *asked_ms);
void request_free(struct request *request);

#endif
