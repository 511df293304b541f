/* content.h - finds out whether a file or manifest is encrypted, and with which keys, before a player opens it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTS_CONTENT_H
#define HOSTS_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <usher/usher.h>

#define CONTENT_KEYS_MAX 64
#define CONTENT_WHY_MAX 300

enum content_kind {
  CONTENT_OTHER, /* another kind of file: the player decides what to do with it */
  CONTENT_NOT_OPENED, /* a pipe, a device, or a URL of an unknown scheme: the player decides; `why` has the reason */
  CONTENT_UNREADABLE, /* `why` has the reason */
  CONTENT_CLEAR,
  CONTENT_MP4, /* encrypted: progressive or fragmented MP4 */
  CONTENT_DASH, /* encrypted: a DASH manifest */
  CONTENT_UNSUPPORTED, /* encrypted in a way that libavformat cannot decrypt: HLS with encrypted samples */
  CONTENT_UNUSABLE /* the MP4 or manifest is damaged or names no key; `why` has the reason */
};

struct content {
  enum content_kind kind;
  uint8_t key_ids[CONTENT_KEYS_MAX][16];
  size_t key_id_count;
  char why[CONTENT_WHY_MAX];
};

/* Options for reading a URL. A pointer that is NULL means the default. */
struct content_reading {
  const char *user_agent;
  const char *headers; /* "Name: value\r\n" lines */
  bool (*cancelled)(void *user_data); /* the reader calls it often; if it returns true, reading stops */
  void *user_data;
  bool verifies; /* whether to check https certificates; libavformat's default is not to check */
  const char *ca_file; /* a file of authorities to trust in addition to the system's; NULL: none */
};

/* Reads the content at a path, or at a file:, http: or https: URL. Reads at most 1 MB of each manifest or playlist, and
   only a small part of another file, even if it is large. */
void content_read(const char *url, const struct content_reading *reading, struct content *out);

/* Opens a path or URL, as content_read() does. `reading` must live until content_close(). If this fails, returns NULL,
   and `why` has the reason. */
struct AVIOContext *content_open(const char *url, const struct content_reading *reading, char why[CONTENT_WHY_MAX]);
void content_close(struct AVIOContext *file);

/* Returns the URL of an open file after redirects; the caller frees it. `url`: the URL that was opened. */
char *content_location(struct AVIOContext *file, const char *url);

/* Makes a URI of a playlist absolute. Returns it; the caller frees it. Returns NULL if there is no memory, or if the
   playlist comes from a web server and the URI is not the URL of a web server. */
char *content_resolve(const char *playlist, const char *uri, size_t size);

/* Returns why the installed libavformat cannot decrypt the content, or NULL if it can. Before version 62 libavformat
   accepts only one key. */
const char *content_obstacle(const struct content *content);

/* Returns the name of libavformat's option for the keys: "decryption_key", "cenc_decryption_keys" ... */
const char *content_option(const struct content *content);

/* Returns the value of that option; the caller wipes and frees it. Returns NULL if `keys` lacks a key of the
   content. */
char *content_option_value(const struct content *content, const usher_clearkey_key *keys, size_t count);

#endif
