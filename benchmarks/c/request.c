/* request.c - see request.h. SPDX-License-Identifier: Apache-2.0 */
#include "request.h"
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "nv-authorizations: ";
static char sent_type[] = "Content-Type: application/json; charset=utf-8", sent_accept[] = "Accept: application/json";

CURL *request_handle(const bench_options *options, bench_body *body) {
  CURL *easy = curl_easy_init();
  if (!easy) bench_fail("curl_easy_init", "no handle");
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{}");
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 2L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, bench_append);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
  if (options->ca) curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca);
  return easy;
}

void request_use_headers(CURL *easy, request_headers *headers) {
  headers->token.next = &headers->type;
  headers->type = (struct curl_slist){sent_type, &headers->accept};
  headers->accept = (struct curl_slist){sent_accept, NULL};
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, &headers->token);
}

void request_set_line(request_headers *headers, char *line) { headers->token.data = line; }

void request_route(CURL *easy, const bench_options *options, const char *route) {
  char url[1024];
  if (snprintf(url, sizeof url, "%s/sessions/%s", options->base, route) >= (int)sizeof url)
    bench_fail("the URL", "too long");
  curl_easy_setopt(easy, CURLOPT_URL, url);
}

/**
 * Writes a token line to the memory of `line`, which may be NULL. Returns the line, which may have moved to other
 * memory.
 */
static char *written_line(char *line, const char *tokens, size_t count) {
  char *grown = realloc(line, sizeof name + count);
  if (!grown) bench_fail("realloc", "no memory");
  memcpy(grown, name, sizeof name - 1);
  memcpy(grown + sizeof name - 1, tokens, count);
  grown[sizeof name - 1 + count] = 0;
  return grown;
}

char *request_line(const char *tokens, size_t count) { return written_line(NULL, tokens, count); }

char *request_token_line(const bench_body *body, char *line) {
  static struct json_tokener *tokener;
  if (!tokener) tokener = json_tokener_new();
  else json_tokener_reset(tokener);
  struct json_object *reply = json_tokener_parse_ex(tokener, body->bytes, (int)body->count), *token = NULL;
  if (!reply || !json_object_object_get_ex(reply, "sessionToken", &token) ||
      !json_object_is_type(token, json_type_string)) {
    bench_fail("the reply", "has no sessionToken");
  }
  line = written_line(line, json_object_get_string(token), (size_t)json_object_get_string_len(token));
  json_object_put(reply);
  return line;
}

void request_answered(CURL *easy, CURLcode code, bench_body *body, char **line) {
  long status = 0;
  if (code != CURLE_OK) bench_fail("a request", curl_easy_strerror(code));
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) bench_fail("a request", "the status is not 200");
  *line = request_token_line(body, *line);
  body->count = 0;
}

char *request_setup(CURL *easy, const bench_options *options, request_headers *headers, bench_body *body) {
  char *line = request_line("content.token", strlen("content.token"));
  request_route(easy, options, "setup");
  request_set_line(headers, line);
  request_answered(easy, curl_easy_perform(easy), body, &line);
  return line;
}
