/* server.c - see server.h. SPDX-License-Identifier: Apache-2.0
 *
 * GET  /SECRET/NUMBER/NAME  an entry: a playlist (rewritten), a segment, or a key of 16 bytes
 * GET  /SECRET/page         a web page that plays the clip, an encrypted MP4 (page.html)
 * POST /SECRET/license      a Clear Key request; the reply is a Clear Key licence
 * GET  /SECRET/events       an event stream (EventSource), which lasts as long as the playback; its last event,
 *                           `ended`, says why the playback has ended
 *
 * The server closes connections from other users' processes. The Host header must be the gateway's address.
 * Otherwise a web page could send requests to the gateway under its own host name (DNS rebinding). The Origin header of
 * a page must be the gateway's, or one of --allow-origin. */
#include "server.h"

#include "../common/content.h"
#include "peer.h"
#include "player_page.h" /* page.html, as an array */

#include <arpa/inet.h>
#include <errno.h>
#include <json-c/json.h>
#include <libavformat/avio.h>
#include <libavutil/error.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  BODY_MAX = 65536, /* the largest body that the server reads */
  DISCARD_MAX = 1024 * 1024, /* how much of a larger body the server discards before it closes the connection */
  PLAYLIST_MAX = 4 * 1024 * 1024,
  BLOCK = 65536,
  CONNECTIONS_MAX = 200,
  STRANGER_S = 10 /* the longest idle time of a connection that has not named a playback yet */
};

struct server {
  struct gateway *gateway;
  struct MHD_Daemon *daemon;
  struct sockaddr_in address;
  /* How many threads serve a request or read a file now, and so may wait in a call. */
  atomic_uint busy;
};

/* One TCP connection. */
struct peer {
  uint64_t playback; /* the playback that the connection has joined; 0: none */
};

/* One request. */
struct request {
  struct server *server;
  struct MHD_Connection *connection;
  struct peer *peer;
  const char *method, *origin;
  char *body;
  size_t body_size; /* the size of the whole body, even if it is too large */
  bool is_joined; /* the request has named its playback, and may use it */
  uint64_t playback;
};

/* ---- replies ----------------------------------------------------------------------------------------------------- */

static enum MHD_Result reply(
    const struct request *request, unsigned status, const char *type, struct MHD_Response *response) {
  if (!response) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", type);
  MHD_add_response_header(response, "Cache-Control", "no-store");
  MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
  /* Close the connection after each reply to a web page. Otherwise the browser would keep it open after the viewer has
     closed the page, and the gateway would not notice that the player has gone. */
  if (!request->is_joined || request->origin) MHD_add_response_header(response, "Connection", "close");
  if (request->origin) {
    MHD_add_response_header(response, "Access-Control-Allow-Origin", request->origin);
    MHD_add_response_header(response, "Vary", "Origin");
  }
  enum MHD_Result result = MHD_queue_response(request->connection, status, response);
  MHD_destroy_response(response);
  return result;
}

static enum MHD_Result reply_bytes(
    const struct request *request, unsigned status, const char *type, const void *bytes, size_t size) {
  return reply(request, status, type, MHD_create_response_from_buffer(size, (void *)bytes, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result reply_words(const struct request *request, unsigned status, const char *words) {
  char line[WORDS_MAX + 1];
  int size = snprintf(line, sizeof line, "%s\n", words);
  return reply_bytes(request, status, "text/plain; charset=utf-8", line, (size_t)size);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* A file that the server reads while it sends the reply. `deadline_ms` is the time limit for the first bytes, and for a
   whole playlist. */
struct file {
  struct server *server;
  uint64_t playback;
  int64_t deadline_ms; /* 0: none */
  struct content_reading reading;
  AVIOContext *bytes;
  int64_t begin, position;
};

static bool is_over(void *user_data) {
  const struct file *file = user_data;
  return !gateway_is_current(file->server->gateway, file->playback) ||
         (file->deadline_ms && gateway_now_ms() >= file->deadline_ms);
}

static ssize_t read_file(void *user_data, uint64_t offset, char *buffer, size_t room) {
  struct file *file = user_data;
  int64_t position = file->begin + (int64_t)offset;
  if (is_over(file)) return MHD_CONTENT_READER_END_WITH_ERROR;
  file->server->busy++;
  bool is_there = file->position == position || avio_seek(file->bytes, position, SEEK_SET) >= 0;
  int size = (int)(room < BLOCK ? room : BLOCK);
  int count = is_there ? avio_read_partial(file->bytes, (unsigned char *)buffer, size) : AVERROR(EIO);
  file->server->busy--;
  if (count > 0) return file->position = position + count, count;
  return count == AVERROR_EOF || count == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void free_file(void *user_data) {
  struct file *file = user_data;
  content_close(file->bytes);
  free(file);
}

/* Reads "bytes=FIRST-LAST", "bytes=FIRST-" or "bytes=-COUNT". @return false for any other text; the server then sends
   the whole file. */
static bool read_range(const char *text, int64_t size, int64_t *first, int64_t *last) {
  if (!text || size <= 0 || strncmp(text, "bytes=", 6) != 0 || strchr(text, ',')) return false;
  const char *dash = strchr(text += 6, '-');
  if (!dash || strspn(text, "0123456789-") != strlen(text) || strchr(dash + 1, '-')) return false;
  if (!dash[1] && dash == text) return false;
  errno = 0;
  int64_t one = strtoll(text, NULL, 10), two = dash[1] ? strtoll(dash + 1, NULL, 10) : size - 1;
  if (errno) return false;
  if (dash == text) *first = two < size ? size - two : 0, *last = size - 1;
  else *first = one, *last = two < size ? two : size - 1;
  return true;
}

static const char *type_of(const char *url) {
  static const char *const types[][2] = {{".ts", "video/mp2t"}, {".mp4", "video/mp4"}, {".m4s", "video/mp4"},
      {".m4a", "audio/mp4"}, {".aac", "audio/aac"}, {".vtt", "text/vtt"}};
  size_t size = strcspn(url, "?#");
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    size_t length = strlen(types[i][0]);
    if (size > length && strncmp(url + size - length, types[i][0], length) == 0) return types[i][1];
  }
  return "application/octet-stream";
}

static enum MHD_Result send_range(const struct request *request, struct file *file, const char *url) {
  const char *range = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Range");
  int64_t size = avio_size(file->bytes), first = 0, last = size - 1;
  char words[100];
  bool has_parts = size > 0 && file->bytes->seekable & AVIO_SEEKABLE_NORMAL;
  bool is_part = has_parts && read_range(range, size, &first, &last);
  if (is_part && (first > last || first >= size)) {
    free_file(file);
    return reply_words(request, 416, "The file is shorter.");
  }
  file->begin = first;
  uint64_t length = size < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)(last - first + 1);
  struct MHD_Response *response = MHD_create_response_from_callback(length, BLOCK, read_file, file, free_file);
  if (!response) return free_file(file), MHD_NO;
  if (has_parts) MHD_add_response_header(response, "Accept-Ranges", "bytes");
  snprintf(words, sizeof words, "bytes %lld-%lld/%lld", (long long)first, (long long)last, (long long)size);
  if (is_part) MHD_add_response_header(response, "Content-Range", words);
  return reply(request, is_part ? 206 : 200, type_of(url), response);
}

/* Reads the rest of a file. @return its bytes and a NUL, which the caller frees; NULL if the file is too long or cannot
   be read. */
static char *read_text(AVIOContext *bytes) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  char block[4096];
  int count = AVERROR(ENOMEM);
  while (out && size <= PLAYLIST_MAX && (count = avio_read(bytes, (unsigned char *)block, sizeof block)) > 0) {
    if (fwrite(block, 1, (size_t)count, out) != (size_t)count || fflush(out) != 0) count = AVERROR(ENOMEM);
    if (count < 0) break;
  }
  bool is_closed = out && fclose(out) == 0;
  if (is_closed && size <= PLAYLIST_MAX && (count == 0 || count == AVERROR_EOF)) return text;
  return free(text), NULL;
}

static enum MHD_Result send_playlist(const struct request *request, struct file *file, const struct served *entry) {
  struct gateway *gateway = request->server->gateway;
  char *text = read_text(file->bytes), *url = content_location(file->bytes, entry->url), *rewritten = NULL;
  if (text && url) rewritten = gateway_rewrite(gateway, request->playback, entry->number, url, text);
  const char *words = text ? "The playlist names too much." : "The playlist is too long, or cannot be read.";
  free_file(file), free(text), free(url);
  if (!rewritten && !gateway_is_current(gateway, request->playback))
    return reply_words(request, 404, "The playback has ended.");
  if (!rewritten) return gateway_say(gateway, words), reply_words(request, 502, words);
  return reply(request, 200, "application/vnd.apple.mpegurl",
      MHD_create_response_from_buffer(strlen(rewritten), rewritten, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result send_file(const struct request *request, const struct served *entry) {
  struct gateway *gateway = request->server->gateway;
  char why[CONTENT_WHY_MAX], words[WORDS_MAX];
  struct file *file = calloc(1, sizeof *file);
  if (!file) return MHD_NO;
  file->server = request->server, file->playback = request->playback;
  file->deadline_ms = gateway_now_ms() + gateway_timeout_ms(request->server->gateway);
  file->reading = (struct content_reading){
      .cancelled = is_over, .user_data = file, .verifies = true, .ca_file = gateway_ca_file(gateway)};
  file->bytes = content_open(entry->url, &file->reading, why);
  if (!file->bytes) {
    char name[GATEWAY_NAME_MAX];
    snprintf(words, sizeof words, "%s: %s", gateway_name(entry->url, name), why);
    gateway_say(gateway, words);
    return free(file), reply_words(request, 502, words);
  }
  uint8_t begin[7];
  int size = avio_read(file->bytes, begin, sizeof begin);
  avio_seek(file->bytes, 0, SEEK_SET);
  if (playlist_is(begin, size > 0 ? (size_t)size : 0)) return send_playlist(request, file, entry);
  file->deadline_ms = 0;
  return send_range(request, file, entry->url);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* @return the socket of the connection; -1 if it has none. */
static int socket_of(const struct request *request) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

static enum MHD_Result send_key(const struct request *request, const struct served *entry) {
  char words[WORDS_MAX];
  usher_clearkey_key key = {{0}, {0}};
  if (strcmp(request->method, "GET") != 0) return reply_words(request, 405, "Only GET gets a key.");
  if (!entry->has_key_id) {
    char name[GATEWAY_NAME_MAX];
    snprintf(words, sizeof words,
        "The playlist names no key id for its key %s: use --key-id, or write KEYID=0x... into its line.",
        gateway_name(entry->url, name));
    return gateway_say(request->server->gateway, words), reply_words(request, 502, words);
  }
  unsigned status =
      gateway_keys(request->server->gateway, request->playback, socket_of(request), entry->key_id, 1, &key, words);
  enum MHD_Result result = status == 200
                               ? reply_bytes(request, 200, "application/octet-stream", key.key, sizeof key.key)
                               : reply_words(request, status, words);
  return explicit_bzero(&key, sizeof key), result;
}

static int value_of(char letter) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const char *found = letter ? strchr(letters, letter) : NULL;
  return found ? (int)(found - letters) : letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

/* Reads 16 bytes from base64url, also with padding, or from base64. @return false for any other text. */
static bool read_base64(const char *text, uint8_t out[16]) {
  unsigned bits = 0;
  size_t size = 0, count = 0;
  for (; *text && *text != '='; text++) {
    int value = value_of(*text);
    if (value < 0) return false;
    bits = (bits << 6 | (unsigned)value) & 0xffffff;
    if (++count % 4 != 1 && size < 16) out[size++] = (uint8_t)(bits >> (2 * (3 - (count - 1) % 4)));
  }
  return count == 22 && size == 16;
}

/* Writes 16 bytes as base64url without padding. */
static void write_base64(const uint8_t bytes[16], char out[23]) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (size_t i = 0; i < 22; i++) {
    size_t bit = 6 * i, at = bit / 8;
    unsigned pair = (unsigned)bytes[at] << 8 | (at < 15 ? bytes[at + 1] : 0);
    out[i] = letters[pair >> (10 - bit % 8) & 63];
  }
  out[22] = 0;
}

/* @return the number of key ids; 0 if this is no Clear Key request, or if it has too many key ids. */
static size_t read_request(const struct request *request, uint8_t key_ids[16 * GATEWAY_KEYS_MAX]) {
  struct json_object *whole = request->body ? json_tokener_parse(request->body) : NULL, *list = NULL;
  size_t count = 0;
  if (json_object_is_type(whole, json_type_object) && json_object_object_get_ex(whole, "kids", &list) &&
      json_object_is_type(list, json_type_array) && json_object_array_length(list) <= GATEWAY_KEYS_MAX)
    count = json_object_array_length(list);
  for (size_t i = 0; i < count; i++) {
    struct json_object *key_id = json_object_array_get_idx(list, i);
    bool is_read =
        json_object_is_type(key_id, json_type_string) && read_base64(json_object_get_string(key_id), key_ids + 16 * i);
    if (!is_read) count = 0;
  }
  return json_object_put(whole), count;
}

static enum MHD_Result send_license(const struct request *request) {
  uint8_t key_ids[16 * GATEWAY_KEYS_MAX];
  usher_clearkey_key keys[GATEWAY_KEYS_MAX];
  char words[WORDS_MAX], text[GATEWAY_KEYS_MAX * 100 + 100], key_id[23], key[23];
  if (strcmp(request->method, "POST") != 0) return reply_words(request, 405, "POST a Clear Key request here.");
  if (request->body_size > BODY_MAX) return reply_words(request, 413, "The request is too large.");
  size_t count = read_request(request, key_ids);
  if (count == 0) return reply_words(request, 400, "This is no Clear Key request with 1 to 32 key ids.");
  unsigned status =
      gateway_keys(request->server->gateway, request->playback, socket_of(request), key_ids, count, keys, words);
  if (status != 200) return reply_words(request, status, words);
  int size = sprintf(text, "{\"keys\":[");
  for (size_t i = 0; i < count; i++) {
    write_base64(keys[i].key_id, key_id), write_base64(keys[i].key, key);
    size += sprintf(text + size, "%s{\"kty\":\"oct\",\"kid\":\"%s\",\"k\":\"%s\"}", i ? "," : "", key_id, key);
  }
  size += sprintf(text + size, "],\"type\":\"temporary\"}");
  enum MHD_Result result = reply_bytes(request, 200, "application/json", text, (size_t)size);
  return explicit_bzero(keys, sizeof keys), explicit_bzero(text, sizeof text), explicit_bzero(key, sizeof key), result;
}

/* ---- the event stream -------------------------------------------------------------------------------------------- */

struct events {
  struct gateway *gateway;
  uint64_t playback;
  char secret[100];
  bool has_ended;
};

/* Writes the next piece of the event stream: a comment line every half second, so that the server notices when the page
   has gone, and the event `ended` when the playback has ended. @return the size of the piece, or the end of the
   stream. */
static ssize_t read_events(void *user_data, uint64_t offset, char *buffer, size_t room) {
  struct events *events = user_data;
  char words[WORDS_MAX];
  uint64_t playback;
  if (events->has_ended) return MHD_CONTENT_READER_END_OF_STREAM;
  for (int i = 0; i < 10 && offset > 0 && gateway_is_current(events->gateway, events->playback); i++)
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
  if (gateway_is_current(events->gateway, events->playback)) return snprintf(buffer, room, ":\n\n");
  gateway_find(events->gateway, events->secret, &playback, words);
  for (char *end = words; (end = strchr(end, '\n')) != NULL;) *end = ' ';
  int size = snprintf(buffer, room, "event: ended\ndata: %s\n\n", words);
  return events->has_ended = true, size;
}

static enum MHD_Result send_events(const struct request *request, const char *secret) {
  struct events *events = calloc(1, sizeof *events);
  if (!events) return MHD_NO;
  events->gateway = request->server->gateway, events->playback = request->playback;
  snprintf(events->secret, sizeof events->secret, "%s", secret);
  struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1024, read_events, events, free);
  return response ? reply(request, 200, "text/event-stream", response) : (free(events), MHD_NO);
}

/* ---- who may ask ------------------------------------------------------------------------------------------------- */

static enum MHD_Result on_accept(void *user_data, const struct sockaddr *address, socklen_t size) {
  struct server *server = user_data;
  struct sockaddr_in remote;
  bool is_ipv4 = address->sa_family == AF_INET && size >= sizeof remote;
  if (is_ipv4) memcpy(&remote, address, sizeof remote);
  if (is_ipv4 && peer_is_own(&remote, &server->address)) return MHD_YES;
  return gateway_say(server->gateway, "a process of another user was refused"), MHD_NO;
}

static bool is_host(const struct request *request, const char *host) {
  char known[40];
  unsigned port = server_port(request->server);
  for (size_t i = 0; host && i < 2; i++) {
    size_t size = (size_t)snprintf(known, sizeof known, "%s:%u", i ? "localhost" : "127.0.0.1", port);
    if (strcmp(host, known) == 0) return true;
    if (port == 80 && size == strlen(host) + 3 && strncmp(host, known, size - 3) == 0) return true;
  }
  return false;
}

/* Whether the request comes from the gateway's own page. */
static bool is_own_page(const struct request *request, const char *origin) {
  static const char scheme[] = "http://";
  return strncmp(origin, scheme, sizeof scheme - 1) == 0 && is_host(request, origin + sizeof scheme - 1);
}

/* Whether a page of another origin sends the request without an Origin header. Browsers request images and scripts in
   this way. */
static bool is_embedded(const struct request *request) {
  const char *site = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
  return !request->origin && site && strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0;
}

static enum MHD_Result reply_preflight(const struct request *request) {
  struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
  if (!response) return MHD_NO;
  MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST");
  MHD_add_response_header(response, "Access-Control-Allow-Headers", "Content-Type, Range");
  MHD_add_response_header(response, "Access-Control-Allow-Private-Network", "true");
  MHD_add_response_header(response, "Access-Control-Max-Age", "600");
  return reply(request, 204, "text/plain", response);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static enum MHD_Result serve_path(struct request *request, const char *secret, const char *rest) {
  if (strcmp(rest, "license") == 0) return send_license(request);
  if (strcmp(request->method, "POST") == 0) return reply_words(request, 405, "Only the licence takes POST.");
  if (strcmp(rest, "events") == 0) return send_events(request, secret);
  if (strcmp(rest, GATEWAY_PAGE) == 0)
    return reply_bytes(request, 200, "text/html; charset=utf-8", player_page, sizeof player_page - 1);
  char *end;
  struct served entry;
  size_t number = strspn(rest, "0123456789") > 0 ? strtoul(rest, &end, 10) : ENTRIES_NONE;
  if (number == ENTRIES_NONE || *end != '/' ||
      !gateway_entry(request->server->gateway, request->playback, number, &entry))
    return reply_words(request, 404, "There is nothing at this address.");
  enum MHD_Result result = entry.is_key ? send_key(request, &entry) : send_file(request, &entry);
  return free(entry.url), result;
}

static enum MHD_Result serve(struct request *request, const char *path) {
  const char *host = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Host");
  const char *origin = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Origin");
  char words[WORDS_MAX], secret[100] = "";
  struct gateway *gateway = request->server->gateway;
  if (!is_host(request, host)) return reply_words(request, 403, "The gateway has another name.");
  if (origin && (is_own_page(request, origin) || gateway_allows_origin(gateway, origin))) request->origin = origin;
  const char *slash = path[0] == '/' ? strchr(path + 1, '/') : NULL;
  if (slash && (size_t)(slash - path) < sizeof secret) memcpy(secret, path + 1, (size_t)(slash - path) - 1);
  unsigned status = gateway_find(gateway, secret, &request->playback, words);
  if (status != 200) return reply_words(request, status, words);
  /* Log the refusal of a page only here, after gateway_find(): the page knows the path of the playback. */
  if (origin && !request->origin) {
    snprintf(
        words, sizeof words, "a web page of %.200s was refused; --allow-origin %.200s would allow it", origin, origin);
    gateway_say(gateway, words);
  }
  if ((origin && !request->origin) || is_embedded(request))
    return reply_words(request, 403, "This web page may not use the gateway.");
  if (strcmp(request->method, "OPTIONS") == 0) return reply_preflight(request);
  if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0 &&
      strcmp(request->method, "POST") != 0)
    return reply_words(request, 405, "The gateway knows GET, HEAD and POST.");
  if (request->peer->playback != request->playback) {
    gateway_leave(gateway, request->peer->playback);
    gateway_join(gateway, request->peer->playback = request->playback);
    /* There is no time-out, because a viewer may pause. */
    MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
  }
  request->is_joined = true;
  return serve_path(request, secret, slash + 1);
}

static enum MHD_Result on_request(void *user_data, struct MHD_Connection *connection, const char *path,
    const char *method, const char *version, const char *data, size_t *size, void **mine) {
  struct request *request = *mine;
  (void)version;
  if (!request) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    *mine = request = calloc(1, sizeof *request);
    if (!request || !info || !info->socket_context) return MHD_NO;
    request->server = user_data, request->connection = connection, request->peer = info->socket_context;
    request->method = method;
    return MHD_YES;
  }
  if (*size == 0) {
    request->server->busy++;
    enum MHD_Result result = serve(request, path);
    request->server->busy--;
    return result;
  }
  if (!request->body && !(request->body = calloc(1, BODY_MAX + 1))) return MHD_NO;
  if (request->body_size <= BODY_MAX && *size <= BODY_MAX - request->body_size)
    memcpy(request->body + request->body_size, data, *size), request->body_size += *size;
  else request->body_size = (request->body_size > BODY_MAX ? request->body_size : BODY_MAX) + *size;
  return *size = 0, request->body_size > DISCARD_MAX ? MHD_NO : MHD_YES;
}

static void on_completed(
    void *user_data, struct MHD_Connection *connection, void **mine, enum MHD_RequestTerminationCode code) {
  struct request *request = *mine;
  (void)user_data, (void)connection, (void)code;
  if (request) free(request->body);
  free(request);
}

static void on_connection(void *user_data, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode code) {
  struct server *server = user_data;
  struct peer *peer = *socket_context;
  (void)connection;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    *socket_context = calloc(1, sizeof *peer);
  } else if (peer) {
    gateway_leave(server->gateway, peer->playback);
    free(peer);
  }
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

/* @return a socket that listens on 127.0.0.1; -1 on failure, with the reason in errno. Sets `address` to its
   address. */
static int listen_on(uint16_t port, struct sockaddr_in *address) {
  socklen_t size = sizeof *address;
  int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0) return -1;
  /* With SO_REUSEADDR, the gateway can use the port of an earlier gateway that has just ended. */
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  bool listens = bind(fd, (struct sockaddr *)address, size) == 0 && listen(fd, CONNECTIONS_MAX) == 0 &&
                 getsockname(fd, (struct sockaddr *)address, &size) == 0;
  if (listens && peer_is_own(address, &(struct sockaddr_in){.sin_family = AF_INET})) return fd;
  /* The socket listens, but peer_is_own() has not found it: this kernel does not tell which user has a socket. */
  int error = listens ? EPROTONOSUPPORT : errno;
  close(fd);
  errno = error;
  return -1;
}

struct server *server_start(struct gateway *gateway, uint16_t port) {
  struct server *server = calloc(1, sizeof *server);
  int fd = server ? listen_on(port, &server->address) : -1;
  if (fd >= 0) {
    server->gateway = gateway;
    errno = 0;
    server->daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC,
            0, on_accept, server, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED,
            on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_LIMIT,
            (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)STRANGER_S, MHD_OPTION_END);
    if (server->daemon) return server;
    close(fd);
    if (!errno) errno = ENOMEM;
  }
  int error = errno;
  free(server);
  errno = error;
  return NULL;
}

uint16_t server_port(const struct server *server) { return ntohs(server->address.sin_port); }

bool server_stop(struct server *server, int64_t deadline_ms) {
  MHD_socket fd = MHD_quiesce_daemon(server->daemon);
  if (fd != MHD_INVALID_SOCKET) close(fd);
  while (server->busy > 0 && gateway_now_ms() < deadline_ms) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  if (server->busy > 0) return false;
  MHD_stop_daemon(server->daemon);
  free(server);
  return true;
}
