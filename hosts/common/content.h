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
  CONTENT_OTHER, /* neither MP4 nor DASH manifest, or a URL of another scheme: the player decides what to do with it */
  CONTENT_UNREADABLE, /* `why` has the reason */
  CONTENT_CLEAR,
  CONTENT_MP4, /* encrypted: progressive or fragmented MP4 */
  CONTENT_DASH, /* encrypted: a DASH manifest */
  CONTENT_UNSUPPORTED, /* encrypted in a way that libavformat cannot decrypt: HLS with encrypted samples */
  CONTENT_UNUSABLE /* an MP4 or a manifest that is damaged, or names no key; `why` has the reason */
};

struct content {
  enum content_kind kind;
  uint8_t key_ids[CONTENT_KEYS_MAX][16];
  size_t key_id_count;
  char why[CONTENT_WHY_MAX];
};

/* How to read a URL. NULL: nothing special. */
struct content_reading {
  const char *user_agent;
  const char *headers; /* "Name: value\r\n" lines */
  bool (*cancelled)(void *user_data); /* asked often; true: stop reading */
  void *user_data;
  bool verifies; /* the certificates of https servers; libavformat's default is not to */
  const char *ca_file; /* trusted besides those of the system; NULL: none */
};

/* Reads a path, or a file:, http: or https: URL. Reads a few kB, also of a large file. */
void content_read(const char *url, const struct content_reading *reading, struct content *out);

/* Opens what content_read() reads. `reading` must live until content_close(). NULL: `why` says it. */
struct AVIOContext *content_open(const char *url, const struct content_reading *reading, char why[CONTENT_WHY_MAX]);
void content_close(struct AVIOContext *file);

/* Returns the URL of an open file, after redirects, from malloc(). `url`: the URL that was opened. */
char *content_location(struct AVIOContext *file, const char *url);

/* Returns a URI of a playlist, made absolute, from malloc(). NULL: no memory, or a playlist that comes from a web
 * server names something else than a URL of a web server. */
char *content_resolve(const char *playlist, const char *uri, size_t size);

/* Why the installed libavformat cannot decrypt the content; NULL: it can. Before version 62 it takes one key only. */
const char *content_obstacle(const struct content *content);

/* Returns the name of libavformat's option for the keys: "decryption_key", "cenc_decryption_keys" ... */
const char *content_option(const struct content *content);

/* Returns the value of that option, from malloc(); wipe it. NULL: `keys` do not have all keys of the content. */
char *content_option_value(const struct content *content, const usher_clearkey_key *keys, size_t count);

#endif
