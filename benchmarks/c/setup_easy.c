/*
 * setup_easy.c - set-up, licence and teardown of a plain C program. It sends one request after the other over one
 * connection that stays open. Variant 0: set-up and licence; 1: a zap (teardown, set-up, licence); 2: teardown; 3:
 * set-up and licence over a new connection. SPDX-License-Identifier: Apache-2.0
 */
#include "request.h"
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char challenge[] = "{\"kids\":[\"ABEiM0RVZneImaq7zN3u_w\"],\"type\":\"temporary\"}";

/** Sends a POST request; the reply is then in `body`. Ends the program if the status is not 200. */
static void post(CURL *easy, const char *url, const char *tokens, const char *sent, bench_body *body) {
  struct curl_slist *headers = request_headers(tokens);
  long status = 0;
  body->count = 0;
  curl_easy_setopt(easy, CURLOPT_URL, url);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, sent);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(sent));
  const CURLcode code = curl_easy_perform(easy);
  if (code != CURLE_OK) bench_fail(url, curl_easy_strerror(code));
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) bench_fail(url, "the status is not 200");
  curl_slist_free_all(headers);
}

static char *set_up_and_license(CURL *easy, const bench_options *options, bench_body *body) {
  char url[1024], tokens[4096];
  snprintf(url, sizeof url, "%.900s/sessions/setup", options->base);
  post(easy, url, "content.token", "{}", body);
  char *token = request_token(body);
  snprintf(url, sizeof url, "%.900s/licenses", options->base);
  snprintf(tokens, sizeof tokens, "content.token,%.4000s", token);
  post(easy, url, tokens, challenge, body);
  bench_append("", 1, 1, body);
  struct json_object *licence = json_tokener_parse(body->bytes), *keys;
  if (!licence || !json_object_object_get_ex(licence, "keys", &keys)) bench_fail("the licence", "has no keys");
  json_object_put(licence);
  return token;
}

static void tear_down(CURL *easy, const bench_options *options, bench_body *body, char **token) {
  char url[1024];
  snprintf(url, sizeof url, "%.900s/sessions/teardown", options->base);
  post(easy, url, *token, "{}", body);
  free(*token);
  *token = NULL;
}

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  bench_body body = {NULL, 0, 0};
  bench_clock spent = {0, 0};
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL *easy = request_handle(&options, &body);
  char *token = set_up_and_license(easy, &options, &body);
  for (int round = -options.warm_up; round < options.rounds; round++) {
    if (options.variant != 1 && token) tear_down(easy, &options, &body, &token);
    if (options.variant == 2) token = set_up_and_license(easy, &options, &body);
    if (options.variant == 3) curl_easy_cleanup(easy);
    const bench_clock start = bench_now();
    if (options.variant == 3) easy = request_handle(&options, &body);
    if (options.variant == 1 || options.variant == 2) tear_down(easy, &options, &body, &token);
    if (options.variant != 2) token = set_up_and_license(easy, &options, &body);
    if (round >= 0) bench_add(&spent, start);
  }
  bench_print(spent, options.rounds);
  free(token);
  free(body.bytes);
  curl_easy_cleanup(easy);
  curl_global_cleanup();
  return 0;
}
