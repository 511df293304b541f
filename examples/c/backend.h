/*
 * backend.h - sends requests to the operator's own servers, as an operator's app already does. portal.c uses it.
 * The reply to a POST to BACKEND/WHAT/SESSION is JSON: the session, its period in seconds, whether renewals keep it
 * alive, and the licence; or an error code and a message.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <curl/curl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct backend_reply {
  json_object *json;
  int status;
};

static size_t backend_read(char *bytes, size_t one, size_t size, void *text) {
  /* A reply that is longer is cut here. Then it is no valid JSON, and reading it fails. */
  const size_t have = strlen(text), room = 65535 - have;
  strncat(text, bytes, one * size < room ? one * size : room);
  return one * size;
}

/* Sends a request, waits for the reply and returns it. If there is no reply, `status` is 0. */
static struct backend_reply backend_ask(
    const char *backend, const char *what, const char *session, const void *body, size_t size) {
  char url[1024];
  char *text = calloc(1, 65536);
  long status = 0;
  CURL *curl = curl_easy_init();
  snprintf(url, sizeof url, "%s/%s/%s", backend, what, session);
  curl_easy_setopt(curl, CURLOPT_URL, url);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body ? body : "");
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)size);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, backend_read);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, text);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 5000L);
  if (curl_easy_perform(curl) == CURLE_OK) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_cleanup(curl);
  struct backend_reply reply = {.json = json_tokener_parse(text), .status = (int)status};
  free(text);
  return reply;
}
static const char *backend_text(const struct backend_reply *reply, const char *name) {
  json_object *value = NULL;
  return json_object_object_get_ex(reply->json, name, &value) ? json_object_get_string(value) : NULL;
}
static double backend_number(const struct backend_reply *reply, const char *name) {
  json_object *value = NULL;
  return json_object_object_get_ex(reply->json, name, &value) ? json_object_get_double(value) : 0;
}
