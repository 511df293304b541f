/* content.c - see content.h. SPDX-License-Identifier: Apache-2.0 */
#include "content.h"

#include <libavformat/avformat.h>
#include <libavformat/avio.h>
#include <libavutil/opt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <usher/usher.h>

#define MANIFEST_MAX (1024 * 1024)

static int interrupted(void *user_data) {
  const struct content_reading *reading = user_data;
  return reading && reading->cancelled && reading->cancelled(reading->user_data);
}

static bool is_web(const char *url) { return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0; }

/* @return the name that libavformat opens: "file:" and a path, or the URL itself. Returns NULL if the scheme of the URL
   is not file, http or https. Also returns NULL for a pipe or a device, because the player would not
   get the bytes that this program has read. */
static char *name_for_libavformat(const char *url) {
  bool is_file = strncmp(url, "file://", 7) == 0;
  if (is_web(url)) return strdup(url);
  if (!is_file && (strstr(url, "://") || strcmp(url, "-") == 0)) return NULL;
  char *name = malloc(strlen(url) + sizeof "file:");
  if (!name) return NULL;
  char *end = name + sprintf(name, "file:");
  for (const char *from = is_file ? url + 7 : url; *from; from++) {
    unsigned code;
    if (is_file && from[0] == '%' && strspn(from + 1, "0123456789abcdefABCDEF") >= 2 && sscanf(from + 1, "%2x", &code))
      *end++ = (char)code, from += 2;
    else *end++ = *from;
  }
  *end = 0;
  struct stat local;
  if (stat(name + strlen("file:"), &local) != 0 || S_ISREG(local.st_mode)) return name;
  return free(name), NULL;
}

/* Opens a path or URL. @return NULL on failure; then `content` has the kind, and the reason in `why`. */
static AVIOContext *open_url(const char *url, const struct content_reading *reading, struct content *content) {
  char *name = name_for_libavformat(url);
  AVIOContext *file = NULL;
  AVDictionary *options = NULL;
  AVIOInterruptCB interrupt = {interrupted, (void *)reading};
  if (!name) {
    content->kind = CONTENT_NOT_OPENED;
    snprintf(content->why, sizeof content->why, "this kind of URL cannot be read");
    return NULL;
  }
  if (reading && reading->user_agent) av_dict_set(&options, "user_agent", reading->user_agent, 0);
  if (reading && reading->headers) av_dict_set(&options, "headers", reading->headers, 0);
  if (reading && reading->verifies) av_dict_set(&options, "tls_verify", "1", 0);
  if (reading && reading->verifies && reading->ca_file) av_dict_set(&options, "ca_file", reading->ca_file, 0);
  av_dict_set(&options, "rw_timeout", "10000000", 0); /* microseconds */
  int error = avio_open2(&file, name, AVIO_FLAG_READ, &interrupt, &options);
  if (error < 0) content->kind = CONTENT_UNREADABLE, av_strerror(error, content->why, sizeof content->why), file = NULL;
  return av_dict_free(&options), free(name), file;
}

AVIOContext *content_open(const char *url, const struct content_reading *reading, char why[CONTENT_WHY_MAX]) {
  struct content content;
  AVIOContext *file = open_url(url, reading, &content);
  if (!file) memcpy(why, content.why, CONTENT_WHY_MAX);
  return file;
}

void content_close(AVIOContext *file) { avio_closep(&file); }

char *content_location(AVIOContext *file, const char *url) {
  uint8_t *found = NULL;
  if (is_web(url)) av_opt_get(file, "location", AV_OPT_SEARCH_CHILDREN, &found);
  char *copy = strdup(found && is_web((char *)found) ? (char *)found : url);
  return av_free(found), copy;
}

/* What the callbacks of libusher's readers use: the file that they read, and the results. */
struct scan {
  AVIOContext *file;
  struct content *content;
  bool encrypted;
};

static int64_t read_at(uint64_t offset, uint8_t *buffer, size_t size, void *user_data) {
  AVIOContext *file = ((struct scan *)user_data)->file;
  if (avio_seek(file, (int64_t)offset, SEEK_SET) < 0) return -1;
  int count = avio_read(file, buffer, (int)size);
  return count == AVERROR_EOF ? 0 : count;
}

static void on_protection(const usher_protection *found, void *user_data) {
  struct scan *scan = user_data;
  struct content *content = scan->content;
  if (found->scheme || found->key_id_count > 0 || found->part == USHER_PART_ELEMENT) scan->encrypted = true;
  for (size_t i = 0; i < found->key_id_count; i++) {
    const uint8_t *key_id = found->key_ids + 16 * i;
    size_t at = 0;
    while (at < content->key_id_count && memcmp(content->key_ids[at], key_id, 16) != 0) at++;
    if (at == content->key_id_count && at < CONTENT_KEYS_MAX)
      memcpy(content->key_ids[content->key_id_count++], key_id, 16);
  }
}

static void unusable(struct content *content, const char *why) {
  content->kind = CONTENT_UNUSABLE;
  snprintf(content->why, sizeof content->why, "%s", why);
}

static void read_mp4(struct scan *scan) {
  char why[256];
  int32_t status = usher_read_mp4(read_at, on_protection, scan, why, sizeof why);
  scan->content->kind = scan->encrypted ? CONTENT_MP4 : CONTENT_CLEAR;
  if (status != USHER_OK) {
    unusable(scan->content, "");
    snprintf(scan->content->why, sizeof scan->content->why, "the file is damaged: %s", why);
  }
}

static void read_manifest(struct scan *scan, const uint8_t *bytes, size_t size) {
  if (size == MANIFEST_MAX || usher_read_dash_protection(bytes, size, on_protection, scan, NULL) != USHER_OK)
    unusable(scan->content, "the manifest is too long or damaged");
  else scan->content->kind = scan->encrypted ? CONTENT_DASH : CONTENT_CLEAR;
}

/* ---- HLS --------------------------------------------------------------------------------------------------------- */

char *content_resolve(const char *playlist, const char *uri, size_t size) {
  const char *host = strstr(playlist, "://"), *root = host ? strchr(host + 3, '/') : playlist;
  size_t base = strcspn(playlist, host ? "?#" : "");
  if (host && size > 1 && uri[0] == '/' && uri[1] == '/') base = (size_t)(host + 1 - playlist); /* another host */
  else if (size > 0 && uri[0] == '/') base = host ? root ? (size_t)(root - playlist) : base : 0;
  else
    while (base > 0 && playlist[base - 1] != '/') base--;
  for (size_t i = 0; i < size && uri[i] != '/'; i++)
    if (uri[i] == ':') base = 0; /* the URI has a scheme */
  char *whole = malloc(base + size + 1);
  if (whole) memcpy(whole, playlist, base), memcpy(whole + base, uri, size), whole[base + size] = 0;
  bool is_outside = whole && is_web(playlist) && !is_web(whole);
  return is_outside ? free(whole), NULL : whole;
}

/* Finds the URI of the first variant or, if `tag` is EXT-X-MAP, the URI of the init segment. @return NULL if there is
   none. */
static const char *find_uri(const char *text, const char *tag, size_t *size) {
  const char *line = strstr(text, tag);
  bool is_map = strcmp(tag, "#EXT-X-MAP:") == 0;
  const char *uri = line && is_map ? strstr(line, "URI=\"") : line;
  if (!uri || (is_map && uri > line + strcspn(line, "\r\n"))) return NULL;
  if (is_map) return uri += 5, *size = strcspn(uri, "\""), uri;
  do uri += strcspn(uri, "\n"), uri += strspn(uri, "\r\n");
  while (*uri == '#');
  return *size = strcspn(uri, "\r\n"), *size > 0 ? uri : NULL;
}

static void on_hls_key(const usher_protection *found, void *user_data) {
  struct content *content = user_data;
  if (found->uri_size >= 4 && memcmp(found->uri, "skd:", 4) == 0) content->kind = CONTENT_UNSUPPORTED;
}

/* Whether the init segment of a playlist has encrypted samples. */
static bool is_map_encrypted(const char *url, const struct content_reading *reading) {
  struct content inner = {0};
  struct scan scan = {open_url(url, reading, &inner), &inner, false};
  if (scan.file) read_mp4(&scan);
  avio_closep(&scan.file);
  return scan.encrypted;
}

/* Finds out whether libavformat cannot decrypt the content of a playlist. `text`: the playlist, `size` bytes and a NUL,
   in a buffer of MANIFEST_MAX + 1 bytes. If the playlist has variants, also reads the first one, into this buffer. */
static void read_playlist(const char *url, const struct content_reading *reading, char *text, size_t size,
    bool is_variant, struct content *content) {
  size_t length = 0;
  usher_read_hls_keys((const uint8_t *)text, size, on_hls_key, content, NULL);
  const char *uri = find_uri(text, "#EXT-X-MAP:", &length);
  char *whole = uri ? content_resolve(url, uri, length) : NULL;
  if (whole && is_map_encrypted(whole, reading)) content->kind = CONTENT_UNSUPPORTED;
  free(whole), whole = NULL;
  uri = is_variant ? NULL : find_uri(text, "#EXT-X-STREAM-INF:", &length);
  if (uri && content->kind != CONTENT_UNSUPPORTED) whole = content_resolve(url, uri, length);
  struct content ignored;
  AVIOContext *file = whole ? open_url(whole, reading, &ignored) : NULL;
  int more = file ? avio_read(file, (uint8_t *)text, MANIFEST_MAX) : 0;
  avio_closep(&file);
  if (more > 0) text[more] = 0, read_playlist(whole, reading, text, (size_t)more, true, content);
  free(whole);
  if (content->kind == CONTENT_UNSUPPORTED)
    snprintf(content->why, sizeof content->why,
        "This content cannot be played: libavformat cannot decrypt HLS with "
        "encrypted samples.");
}

/* Whether the file begins with a box that MP4 files begin with. */
static bool is_mp4(const uint8_t *bytes, size_t size) {
  static const char types[][5] = {
      "ftyp", "styp", "moov", "moof", "sidx", "mdat", "free", "skip", "wide", "uuid", "pnot"};
  for (size_t i = 0; size >= 8 && i < sizeof types / sizeof types[0]; i++)
    if (memcmp(bytes + 4, types[i], 4) == 0) return true;
  return false;
}

static bool is_manifest(const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i + 4 <= size; i++)
    if (memcmp(bytes + i, "<MPD", 4) == 0) return true;
  return false;
}

void content_read(const char *url, const struct content_reading *reading, struct content *out) {
  memset(out, 0, sizeof *out);
  struct scan scan = {open_url(url, reading, out), out, false};
  uint8_t *bytes = malloc(MANIFEST_MAX + 1);
  if (scan.file && bytes) {
    int size = avio_read(scan.file, bytes, 2048);
    if (size > 0 && is_mp4(bytes, (size_t)size)) read_mp4(&scan);
    else if (size >= 7 && (is_manifest(bytes, (size_t)size) || memcmp(bytes, "#EXTM3U", 7) == 0)) {
      int more = avio_read(scan.file, bytes + size, MANIFEST_MAX - size);
      size_t all = (size_t)size + (more > 0 ? (size_t)more : 0);
      bytes[all] = 0;
      if (bytes[0] != '#') read_manifest(&scan, bytes, all);
      else read_playlist(url, reading, (char *)bytes, all, false, out);
    }
    if (scan.encrypted && out->key_id_count == 0 && out->kind != CONTENT_UNUSABLE)
      unusable(out, "the content is encrypted but names no key");
  }
  avio_closep(&scan.file), free(bytes);
}

const char *content_obstacle(const struct content *content) {
  const AVInputFormat *mov = av_find_input_format("mov");
  bool takes_several = mov && mov->priv_class &&
                       av_opt_find((void *)&mov->priv_class, "decryption_keys", NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
  if (content->key_id_count <= 1 || takes_several) return NULL;
  return "This content has several keys; this version of libavformat decrypts with one key only.";
}

const char *content_option(const struct content *content) {
  bool several = content->key_id_count > 1;
  if (content->kind == CONTENT_DASH) return several ? "cenc_decryption_keys" : "cenc_decryption_key";
  return several ? "decryption_keys" : "decryption_key";
}

static char *hexadecimal(char *out, const uint8_t bytes[16]) {
  for (int i = 0; i < 16; i++) sprintf(out + 2 * i, "%02x", bytes[i]);
  return out + 32;
}

char *content_option_value(const struct content *content, const usher_clearkey_key *keys, size_t count) {
  char *value = calloc(content->key_id_count + 1, 2 * 33), *end = value; /* KEY, or KEY_ID=KEY:KEY_ID=KEY ... */
  for (size_t i = 0; value && i < content->key_id_count; i++) {
    size_t at = 0;
    while (at < count && memcmp(keys[at].key_id, content->key_ids[i], 16) != 0) at++;
    if (at == count) return explicit_bzero(value, (size_t)(end - value)), free(value), NULL;
    if (i > 0) *end++ = ':';
    if (content->key_id_count > 1) end = hexadecimal(end, content->key_ids[i]), *end++ = '=';
    end = hexadecimal(end, keys[at].key);
  }
  return value;
}
