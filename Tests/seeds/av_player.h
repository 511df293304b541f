/*
 * av_player.h - replaces Apple's player and the viewer in the C and C++ hosts of this folder. The file has a test CDM,
 * a decoder, and the main queue, which gets the viewer's actions from standard input.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef AV_PLAYER_H
#define AV_PLAYER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../../examples/c/clip.h"
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

/* ---- the main queue: actions of the viewer, and actions that the application posts ---- */

/* One action: a line of words that are separated by blanks. */
typedef struct action {
  char line[8192];
  size_t at[5];
} action;

/* The word with this number (the first word has the number 0); "" if the line has fewer words. */
static inline const char *word(const action *it, int number) { return it->line + it->at[number]; }
static inline int is(const action *it, const char *name) { return strcmp(word(it, 0), name) == 0; }

static int main_queue[2];

/* The test reads the lines at once, so standard output must not keep them in a buffer. */
static inline int main_queue_open(void) { return setvbuf(stdout, NULL, _IOLBF, 0) == 0 && pipe(main_queue) == 0; }

/* Adds an action to the main queue. Any thread may call it. */
static inline void main_queue_post(const char *line) {
  if (write(main_queue[1], line, strlen(line)) < 0) perror("main queue");
}

/* Waits for the next action. Returns 0 at the end of standard input. */
static inline int main_queue_next(action *it) {
  struct pollfd ready[2] = {{0, POLLIN, 0}, {0, POLLIN, 0}};
  size_t size = 0, end = 0;
  int i;
  ready[1].fd = main_queue[0];
  if (poll(ready, 2, -1) < 0) return 0;
  while (size < sizeof it->line - 1 && read(ready[1].revents ? main_queue[0] : 0, it->line + size, 1) == 1)
    if (it->line[size++] == '\n') break;
  if (size == 0) return 0;
  it->line[--size] = 0;
  for (i = 0; i < 5; i++) {
    it->at[i] = end;
    while (end < size && it->line[end] != ' ') end++;
    if (end < size) it->line[end++] = 0;
  }
  return 1;
}

/* ---- the test CDM and the decoder ---- */

typedef struct spc {
  uint8_t bytes[4096];
  size_t size;
} spc;

static inline void sha256(const uint8_t *bytes, size_t size, uint8_t digest[32]) {
  struct AVSHA *sha = av_sha_alloc();
  av_sha_init(sha, 256);
  av_sha_update(sha, bytes, size);
  av_sha_final(sha, digest);
  av_free(sha);
}

/* Makes an SPC for this content, as Apple's streamingContentKeyRequestData(forApp:contentIdentifier:) does. The SPC has
   the form that the head-end reads. */
static inline void cdm_make_spc(
    spc *it, const uint8_t *certificate, size_t certificate_size, const uint8_t *content_id, size_t content_id_size) {
  const size_t head = 72, room = sizeof it->bytes - head;
  memset(it, 0, sizeof *it);
  memcpy(it->bytes, "\0\0\0\1USPC", 8);
  if (certificate_size) sha256(certificate, certificate_size, it->bytes + 8);
  memcpy(it->bytes + 40, "sixteen bytes nr", 16);
  it->size = head + (content_id_size < room ? content_id_size : room);
  memcpy(it->bytes + head, content_id, it->size - head);
}

/* Decodes the pictures of a clip; `key` is in hexadecimal, or "" for a clear clip. Prints the number of the
   pictures and their hash. */
static inline void decode(const char *clip, const char *key) {
  AVFormatContext *file = NULL;
  AVCodecContext *decoder = NULL;
  AVStream *stream = clip_open(clip, key, &file, &decoder);
  AVPacket *packet = av_packet_alloc();
  AVFrame *frame = av_frame_alloc();
  struct AVSHA *seen = av_sha_alloc();
  int frames = 0, more = stream != NULL, i;
  uint8_t digest[32];
  char text[65] = "";
  av_sha_init(seen, 256);
  for (; more; av_packet_unref(packet)) {
    more = av_read_frame(file, packet) == 0;
    if (more && packet->stream_index != stream->index) continue;
    avcodec_send_packet(decoder, more ? packet : NULL);
    for (; avcodec_receive_frame(decoder, frame) == 0; frames++)
      clip_show(frame, stream, INT64_MIN / 2, seen); /* with this start time every picture is due immediately */
  }
  av_sha_final(seen, digest);
  for (i = 0; i < 32; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  printf("%d frames, sha256 %s\n", frames, text);
  av_free(seen);
  av_frame_free(&frame);
  av_packet_free(&packet);
  avcodec_free_context(&decoder);
  avformat_close_input(&file);
}

/* Opens the CKC, and decodes the pictures of the clip with its key. */
static inline void cdm_play(const char *clip, const spc *asked, const uint8_t *ckc, size_t size) {
  uint8_t digest[32];
  char key[33] = "";
  int i;
  sha256(asked->bytes, asked->size, digest);
  if (size != 68 || memcmp(ckc, "CKC1", 4) != 0 || memcmp(ckc + 4, digest, 32) != 0) {
    printf("not the CKC for this SPC: %d bytes\n", (int)size);
    return;
  }
  sha256(asked->bytes + 40, 16, digest);
  for (i = 0; i < 16; i++) snprintf(key + 2 * i, 3, "%02x", ckc[52 + i] ^ digest[i]);
  decode(clip, key);
}

#endif /* AV_PLAYER_H */
