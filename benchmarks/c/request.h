/*
 * request.h - an SSM request as plain libcurl programs make it: the same for the easy and the multi interface.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "bench.h"
#include <curl/curl.h>

/** An easy handle with what never changes; its replies go to `body`. */
CURL *request_handle(const bench_options *options, bench_body *body);

/** The headers of one request; the tokens' one is new each time. Free with curl_slist_free_all() when it ended. */
struct curl_slist *request_headers(const char *token);

/** Points the handle at a route ("setup", "heartbeat"). */
void request_route(CURL *easy, const bench_options *options, const char *route);

/** The "sessionToken" of a reply, parsed with json-c; to be freed. Ends the program where there is none. */
char *request_token(const bench_body *body);

/** Takes the new token out of an answered request, in place of `*token`; ends the program unless it was answered with 200. */
void request_answered(CURL *easy, CURLcode code, bench_body *body, char **token);

/** Sets a session up with a blocking call; answers its token. */
char *request_setup(CURL *easy, const bench_options *options, bench_body *body);

#endif
