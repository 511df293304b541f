/*
 * request.h - SSM requests of plain libcurl programs, with the easy or the multi interface. They are written to cost as
 * little as possible: handles, header lists, buffers and the json-c parser are used again for each request, and a token
 * is copied once, from the reply to the header line of the next request. SPDX-License-Identifier: Apache-2.0
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "bench.h"
#include <curl/curl.h>

/** The header lines of the requests of one handle. libcurl reads them in place. */
typedef struct request_headers {
  struct curl_slist token, type, accept;
} request_headers;

/** Makes an easy handle with the options that never change, and returns it. libcurl writes the replies to `body`. */
CURL *request_handle(const bench_options *options, bench_body *body);

/** Gives the handle these header lines. Call once for each handle. */
void request_use_headers(CURL *easy, request_headers *headers);

/** Sets the token line of the next requests. The headers do not copy it. */
void request_set_line(request_headers *headers, char *line);

/** Sets the URL of the handle to a route ("setup", "heartbeat"). */
void request_route(CURL *easy, const bench_options *options, const char *route);

/** Returns the token line of these tokens; the caller frees it. */
char *request_line(const char *tokens, size_t count);

/**
 * Parses a reply with json-c. Returns the token line of the reply's "sessionToken". The line is in the memory of
 * `line`, which may be NULL and may move. Ends the program if the reply has no token.
 */
char *request_token_line(const bench_body *body, char *line);

/** Replaces `*line` by the token line of the reply. Ends the program if the status is not 200. */
void request_answered(CURL *easy, CURLcode code, bench_body *body, char **line);

/** Sets up a session with a blocking call. Returns the token line of its session. */
char *request_setup(CURL *easy, const bench_options *options, request_headers *headers, bench_body *body);

#endif
