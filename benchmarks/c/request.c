/* request.c - see request.h. SPDX-License-Identifier: Apache-2.0 */
#include "request.h"
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CURL *request_handle(const bench_options *options, bench_body *body) {
  CURL *easy = curl_easy_init();
  if (!easy) bench_fail("curl_easy_init", "no handle");
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{}");
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 2L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, bench_append);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
  if (options->ca) curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca);
  return easy;
}

struct curl_slist *request_headers(const char *token) {
  char line[8192];
  if (snprintf(line, sizeof line, "nv-authorizations: %s", token) >= (int)sizeof line)
    bench_fail("the token", "too long");
  struct curl_slist *list = curl_slist_append(NULL, line);
  list = curl_slist_append(list, "Content-Type: application/json; charset=utf-8");
  return curl_slist_append(list, "Accept: application/json");
}

void request_route(CURL *easy, const bench_options *options, const char *route) {
  char url[1024];
  if (snprintf(url, sizeof url, "%s/sessions/%s", options->base, route) >= (int)sizeof url)
    bench_fail("the URL", "too long");
  curl_easy_setopt(easy, CURLOPT_URL, url);
}

char *request_token(const bench_body *body) {
  struct json_tokener *tokener = json_tokener_new();
  struct json_object *reply = json_tokener_parse_ex(tokener, body->bytes, (int)body->count), *token = NULL;
  if (!reply || !json_object_object_get_ex(reply, "sessionToken", &token) ||
      !json_object_is_type(token, json_type_string)) {
    bench_fail("the reply", "has no sessionToken");
  }
  char *copy = strdup(json_object_get_string(token));
  json_object_put(reply);
  json_tokener_free(tokener);
  return copy;
}

void request_answered(CURL *easy, CURLcode code, bench_body *body, char **token) {
  long status = 0;
  if (code != CURLE_OK) bench_fail("a request", curl_easy_strerror(code));
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) bench_fail("a request", "the status is not 200");
  free(*token);
  *token = request_token(body);
  body->count = 0;
}

char *request_setup(CURL *easy, const bench_options *options, bench_body *body) {
  char *token = strdup("content.token");
  struct curl_slist *headers = request_headers(token);
  request_route(easy, options, "setup");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  request_answered(easy, curl_easy_perform(easy), body, &token);
  curl_slist_free_all(headers);
  return token;
}
