/*
 * http.h - the HTTP requests that the hosts of this folder send themselves, with libcurl.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef HTTP_H
#define HTTP_H

#include <curl/curl.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" { /* FFmpeg's headers have no extern "C" of their own */
#endif
#include <libavutil/base64.h>
#ifdef __cplusplus
}
#endif

/* A reply. `status` is 0 if there is no reply. `json` is NULL if the body is not JSON; free it with json_object_put().
   */
typedef struct http_reply {
  long status;
  size_t size;
  uint8_t body[32768];
  json_object *json;
} http_reply;

static inline size_t http_read(char *bytes, size_t one, size_t size, void *reply) {
  http_reply *it = (http_reply *)reply;
  const size_t room = sizeof it->body - 1 - it->size;
  if (one * size > room) return 0; /* too large: the request fails */
  memcpy(it->body + it->size, bytes, one * size);
  it->size += one * size;
  return one * size;
}

/* Sends a POST, or a GET without a body, and waits for the reply. `path` follows `url`. */
static inline void http_ask(
    http_reply *reply, const char *url, const char *path, const char *tokens, const void *body, size_t size) {
  char whole[2048], line[16384];
  struct curl_slist *headers = NULL;
  CURL *curl = curl_easy_init();
  memset(reply, 0, sizeof *reply);
  snprintf(whole, sizeof whole, "%s%s", url, path);
  snprintf(line, sizeof line, "nv-authorizations: %s", tokens);
  headers = curl_slist_append(headers, "Content-Type: application/octet-stream");
  if (tokens[0]) headers = curl_slist_append(headers, line);
  curl_easy_setopt(curl, CURLOPT_URL, whole);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 5000L);
  if (body) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)size);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
  }
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, http_read);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
  if (curl_easy_perform(curl) == CURLE_OK) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply->status);
  curl_easy_cleanup(curl);
  curl_slist_free_all(headers);
  if (reply->size && reply->body[0] == '{') reply->json = json_tokener_parse((const char *)reply->body);
}

/* Returns a member of the JSON; NULL if there is no such member. */
static inline json_object *http_member(const http_reply *reply, const char *name) {
  json_object *value = NULL;
  return json_object_object_get_ex(reply->json, name, &value) ? value : NULL;
}

/* Decodes a member that is base64. Returns the number of bytes. */
static inline size_t http_bytes(const http_reply *reply, const char *name, uint8_t *bytes, size_t size) {
  json_object *text = http_member(reply, name);
  const int decoded = text ? av_base64_decode(bytes, json_object_get_string(text), (int)size) : -1;
  return decoded > 0 ? (size_t)decoded : 0;
}

#endif /* HTTP_H */
