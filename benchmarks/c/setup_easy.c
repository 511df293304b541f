/*
 * setup_easy.c - set-up, licence and teardown of a plain C program. It sends one request after the other over one
 * connection that stays open. Variant 0: set-up and licence; 1: a zap (teardown, set-up, licence); 2: teardown; 3:
 * set-up and licence over a new connection; 4: a licence that opens the session, as with SSP V2; 5: the same over a new
 * connection. SPDX-License-Identifier: Apache-2.0
 */
#include "request.h"
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char challenge[] = "{\"kids\":[\"ABEiM0RVZneImaq7zN3u_w\"],\"type\":\"temporary\"}";

/** Sends a POST request with this token line; the reply is then in `body`. Ends the program if the status is not 200.
 */
static void post(CURL *easy, const char *url, char *line, const char *sent, bench_body *body) {
  static request_headers headers;
  long status = 0;
  body->count = 0;
  request_use_headers(easy, &headers);
  request_set_line(&headers, line);
  curl_easy_setopt(easy, CURLOPT_URL, url);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, sent);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(sent));
  const CURLcode code = curl_easy_perform(easy);
  if (code != CURLE_OK) bench_fail(url, curl_easy_strerror(code));
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) bench_fail(url, "the status is not 200");
}

/** Gets a licence with these tokens; the reply is then in `body`. */
static void get_license(
    CURL *easy, const bench_options *options, const char *path, const char *tokens, bench_body *body) {
  char url[1024];
  char *line = request_line(tokens, strlen(tokens));
  snprintf(url, sizeof url, "%.900s/%s", options->base, path);
  post(easy, url, line, challenge, body);
  bench_append("", 1, 1, body);
  struct json_object *licence = json_tokener_parse(body->bytes), *keys;
  if (!licence || !json_object_object_get_ex(licence, "keys", &keys)) bench_fail("the licence", "has no keys");
  json_object_put(licence);
  free(line);
}

/** Sets a session up and gets a licence. Returns the token line of the session. */
static char *set_up_and_license(CURL *easy, const bench_options *options, bench_body *body) {
  char url[1024], tokens[4096];
  if (options->variant >= 4) {
    get_license(easy, options, "licenses-v2", "content.token", body);
    body->count--; /* without the NUL */
    return request_token_line(body, NULL);
  }
  char *line = request_line("content.token", strlen("content.token"));
  snprintf(url, sizeof url, "%.900s/sessions/setup", options->base);
  post(easy, url, line, "{}", body);
  line = request_token_line(body, line);
  snprintf(tokens, sizeof tokens, "content.token,%.4000s", strchr(line, ' ') + 1);
  get_license(easy, options, "licenses", tokens, body);
  return line;
}

static void tear_down(CURL *easy, const bench_options *options, bench_body *body, char **line) {
  char url[1024];
  snprintf(url, sizeof url, "%.900s/sessions/teardown", options->base);
  post(easy, url, *line, "{}", body);
  free(*line);
  *line = NULL;
}

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  const int is_cold = options.variant == 3 || options.variant == 5;
  bench_body body = {NULL, 0, 0};
  bench_clock spent = {0};
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL *easy = request_handle(&options, &body);
  char *line = set_up_and_license(easy, &options, &body);
  for (int round = -options.warm_up; round < options.rounds; round++) {
    if (options.variant != 1 && line) tear_down(easy, &options, &body, &line);
    if (options.variant == 2) line = set_up_and_license(easy, &options, &body);
    if (is_cold) curl_easy_cleanup(easy);
    const bench_clock start = bench_now();
    if (is_cold) easy = request_handle(&options, &body);
    if (options.variant == 1 || options.variant == 2) tear_down(easy, &options, &body, &line);
    if (options.variant != 2) line = set_up_and_license(easy, &options, &body);
    if (round >= 0) bench_add(&spent, start);
  }
  bench_print(spent, options.rounds);
  free(line);
  free(body.bytes);
  curl_easy_cleanup(easy);
  curl_global_cleanup();
  return 0;
}
