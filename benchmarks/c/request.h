/*
 * request.h - SSM requests of plain libcurl programs, with the easy or the multi interface.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "bench.h"
#include <curl/curl.h>

/** Makes an easy handle with the options that never change. Its replies are written to `body`. */
CURL *request_handle(const bench_options *options, bench_body *body);

/** Makes the headers of one request, with its tokens. Free with curl_slist_free_all() after the request. */
struct curl_slist *request_headers(const char *token);

/** Sets the URL of the handle to a route ("setup", "heartbeat"). */
void request_route(CURL *easy, const bench_options *options, const char *route);

/** Parses a reply with json-c. @return its "sessionToken", to be freed. Ends the program if it has none. */
char *request_token(const bench_body *body);

/** Replaces `*token` by the token in the reply. Ends the program if the status is not 200. */
void request_answered(CURL *easy, CURLcode code, bench_body *body, char **token);

/** Sets up a session with a blocking call. Returns the session token. */
char *request_setup(CURL *easy, const bench_options *options, bench_body *body);

#endif
