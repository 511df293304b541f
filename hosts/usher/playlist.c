/* playlist.c - see playlist.h. SPDX-License-Identifier: Apache-2.0 */
#include "playlist.h"

#include "../common/content.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <usher/usher.h>

/* ---- key ids ----------------------------------------------------------------------------------------------------- */

/* Reads 32 hexadecimal digits at the beginning of a text. @return their length with hyphens; 0 if there are fewer
   digits. */
static size_t read_digits(const char *text, size_t size, uint8_t out[16]) {
  size_t at = 0, digits = 0;
  memset(out, 0, 16);
  for (; digits < 32 && at < size; at++) {
    bool is_hyphen = text[at] == '-' && (digits == 8 || digits == 12 || digits == 16 || digits == 20);
    if (is_hyphen && text[at - 1] != '-') continue;
    if (!isxdigit((unsigned char)text[at])) return 0;
    int letter = tolower((unsigned char)text[at]);
    uint8_t value = (uint8_t)(letter <= '9' ? letter - '0' : letter - 'a' + 10);
    out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | value);
    digits++;
  }
  return digits == 32 ? at : 0;
}

bool key_id_read(const char *text, uint8_t out[16]) {
  size_t size = strlen(text);
  return size > 0 && read_digits(text, size, out) == size;
}

/* Finds the first 32 hexadecimal digits with no further digit beside them, and writes their bytes to `out`. @return
   false if there are none. */
static bool find_key_id(const char *uri, size_t size, uint8_t out[16]) {
  for (size_t i = 0; i < size; i++) {
    if (i > 0 && isxdigit((unsigned char)uri[i - 1])) continue;
    size_t length = read_digits(uri + i, size - i, out);
    if (length > 0 && (i + length == size || !isxdigit((unsigned char)uri[i + length]))) return true;
  }
  return false;
}

static void on_key(const usher_protection *found, void *user_data) {
  struct served *entry = user_data;
  entry->has_key_id = found->key_id_count == 1;
  if (entry->has_key_id) memcpy(entry->key_id, found->key_ids, 16);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

struct rewriting {
  struct entries *entries; /* the table that gets the URIs; NULL: none, so each URI gets the number 0 */
  const char *url, *secret;
  const uint8_t *default_key_id;
  FILE *out;
  size_t count, bytes; /* the number and the length of the absolute URIs so far */
  bool failed;
};

static void put_entry(struct rewriting *rewriting, const struct served *entry) {
  size_t number = rewriting->entries ? entries_add(rewriting->entries, entry) : 0;
  size_t path = entry->is_key ? 0 : strcspn(entry->url, "?#"), name = path;
  rewriting->count++, rewriting->bytes += strlen(entry->url);
  /* All entries of a playlist must be valid at the same time, but in a full table a new entry replaces the oldest one.
     So refuse a playlist that has more than entries_add() promises to keep. */
  rewriting->failed |=
      number == ENTRIES_NONE || rewriting->count > ENTRIES_MAX / 2 || rewriting->bytes > ENTRIES_BYTES_MAX / 2;
  while (name > 0 && entry->url[name - 1] != '/') name--;
  fprintf(rewriting->out, "/%s/%zu/", rewriting->secret, number);
  if (entry->is_key) fputs("key", rewriting->out);
  for (; name < path; name++) {
    unsigned char byte = (unsigned char)entry->url[name];
    if (isalnum(byte) || strchr("-._~", byte)) fputc(byte, rewriting->out);
    else fprintf(rewriting->out, "%%%02X", byte);
  }
}

static void put_uri(struct rewriting *rewriting, const char *uri, size_t size) {
  struct served entry = {.url = content_resolve(rewriting->url, uri, size)};
  if (entry.url) put_entry(rewriting, &entry);
  /* Leave this URI as it is. The player will report that it cannot open it. */
  else fwrite(uri, 1, size, rewriting->out);
  free(entry.url);
}

static void put_key_uri(struct rewriting *rewriting, const char *line, size_t length, const char *uri, size_t size) {
  struct served entry = {.url = strndup(uri, size), .is_key = true};
  if (!entry.url) {
    rewriting->failed = true;
    return;
  }
  usher_read_hls_keys((const uint8_t *)line, length, on_key, &entry, NULL);
  if (!entry.has_key_id) entry.has_key_id = find_key_id(uri, size, entry.key_id);
  if (!entry.has_key_id && rewriting->default_key_id)
    memcpy(entry.key_id, rewriting->default_key_id, 16), entry.has_key_id = true;
  if (!entry.has_key_id) memset(entry.key_id, 0, 16);
  put_entry(rewriting, &entry);
  free(entry.url);
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Finds an attribute in a line of `length` bytes. @return its value, after the '='; NULL if the line does not have
   it. */
static const char *attribute(const char *line, size_t length, const char *name) {
  bool is_quoted = false;
  size_t size = strlen(name);
  for (size_t i = 1; i + size < length; i++) {
    if (line[i] == '"') is_quoted = !is_quoted;
    bool is_begin = !is_quoted && (line[i - 1] == ':' || line[i - 1] == ',' || line[i - 1] == ' ');
    if (is_begin && strncmp(line + i, name, size) == 0 && line[i + size] == '=') return line + i + size + 1;
  }
  return NULL;
}

static void put_line(struct rewriting *rewriting, const char *line, size_t length) {
  static const char *const tags[] = {"#EXT-X-MAP:", "#EXT-X-MEDIA:", "#EXT-X-I-FRAME-STREAM-INF:", "#EXT-X-PART:",
      "#EXT-X-PRELOAD-HINT:", "#EXT-X-RENDITION-REPORT:", "#EXT-X-SESSION-DATA:"};
  const char *uri = line[0] == '#' ? attribute(line, length, "URI") : NULL;
  size_t size = 0;
  bool is_key = begins(line, "#EXT-X-KEY:") || begins(line, "#EXT-X-SESSION-KEY:"), is_file = false;
  for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) is_file |= begins(line, tags[i]);
  if (uri && *uri++ == '"' && (is_key || is_file)) {
    const char *end = memchr(uri, '"', length - (size_t)(uri - line));
    const char *method = attribute(line, length, "METHOD"), *format = attribute(line, length, "KEYFORMAT");
    bool is_identity = method && (begins(method, "AES-128") || begins(method, "SAMPLE-AES")) &&
                       !begins(method, "SAMPLE-AES-") && (!format || begins(format, "\"identity\""));
    if (end && (is_file || is_identity)) size = (size_t)(end - uri);
  } else if (line[0] != '#' && length > 0) uri = line, size = length;
  size_t before = size > 0 ? (size_t)(uri - line) : length;
  fwrite(line, 1, before, rewriting->out);
  if (size > 0 && is_key) put_key_uri(rewriting, line, length, uri, size);
  else if (size > 0) put_uri(rewriting, uri, size);
  if (size > 0) fwrite(uri + size, 1, length - before - size, rewriting->out);
}

bool playlist_is(const uint8_t *bytes, size_t size) { return size >= 7 && memcmp(bytes, "#EXTM3U", 7) == 0; }

static char *rewrite(
    struct entries *entries, const char *url, const char *text, const char *secret, const uint8_t *default_key_id) {
  char *result = NULL;
  size_t size = 0;
  struct rewriting rewriting = {entries, url, secret, default_key_id, open_memstream(&result, &size), 0, 0, false};
  if (!rewriting.out) return NULL;
  while (*text && !rewriting.failed) {
    size_t length = strcspn(text, "\r\n"), ends = strspn(text + length, "\r\n");
    put_line(&rewriting, text, length);
    fwrite(text + length, 1, ends, rewriting.out);
    text += length + ends;
  }
  if (fclose(rewriting.out) != 0 || rewriting.failed) return free(result), NULL;
  return result;
}

char *playlist_rewrite(
    struct entries *entries, const char *url, const char *text, const char *secret, const uint8_t *default_key_id) {
  /* First rewrite the playlist without adding entries, only to find out whether it is refused. A refused playlist must
     add nothing: players ask for it again and again, and its entries would replace those of other playlists. */
  char *counted = rewrite(NULL, url, text, secret, default_key_id);
  free(counted);
  return counted ? rewrite(entries, url, text, secret, default_key_id) : NULL;
}
