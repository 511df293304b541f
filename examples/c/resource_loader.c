/*
 * resource_loader.c - plays HLS with `skd:` key URLs: a FairPlay resource loader gets each key from a key server.
 *
 *   cc resource_loader.c $(pkg-config --cflags --libs usher libavformat libavcodec libavutil libcrypto json-c) \
 *      -o resource_loader
 *   ./resource_loader PLAYLIST KEY_SERVER_URL CERTIFICATE_URL      (a media playlist of fragmented MP4, in a file)
 *
 * make_spc() and open_ckc() replace the CDM: they make and read test data that the reference head-end understands.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "clip.h" /* decodes the clip; in your app, the player does this */
#include <libavutil/avstring.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <usher/usher.h>

/* ---- the CDM ----------------------------------------------------------------------------------------------------- */

typedef struct cdm {
  uint8_t spc[72 + 1024];
  size_t spc_size;
  char key[33]; /* the key in the newest CKC, in hexadecimal, as libavformat wants it */
} cdm;

static void make_spc(const usher_spc_request *request, void *user_data) {
  cdm *c = user_data;
  c->spc_size = 72 + request->content_id_size;
  if (c->spc_size > sizeof c->spc || RAND_bytes(c->spc + 40, 16) != 1) {
    usher_complete_payload(request->completion, NULL, 0); /* no SPC */
    return;
  }
  memcpy(c->spc, "\0\0\0\1USPC", 8);
  SHA256(request->certificate, request->certificate_size, c->spc + 8);
  memcpy(c->spc + 72, request->content_id, request->content_id_size);
  usher_complete_payload(request->completion, c->spc, c->spc_size);
}

static int open_ckc(cdm *c, const uint8_t *ckc, size_t size) {
  uint8_t hash[32];
  if (size != 68 || memcmp(ckc, "CKC1", 4) || memcmp(ckc + 4, SHA256(c->spc, c->spc_size, hash), 32)) return 0;
  SHA256(c->spc + 40, 16, hash);
  for (int i = 0; i < 16; i++) snprintf(c->key + 2 * i, 3, "%02x", ckc[52 + i] ^ hash[i]);
  return 1;
}

/* ---- the player -------------------------------------------------------------------------------------------------- */

typedef struct screen {
  const char *folder;
  char init[256]; /* EXT-X-MAP */
  usher_playback *playback;
  cdm cdm;
  struct AVSHA *seen;
  int frames;
  int32_t status;
} screen;

/* Loads the CKC of one EXT-X-KEY tag with the resource loader. usher_read_hls_keys() calls this for each tag. */
static void load_key(const usher_protection *protection, void *user_data) {
  screen *s = user_data;
  usher_response *response = NULL;
  usher_response_info ckc = USHER_RESPONSE_INFO_INIT;
  s->status = usher_playback_get_resource(s->playback, protection->uri, protection->uri_size, 0, &response);
  usher_response_get(response, &ckc); /* after an error, `ckc` has the server's message */
  if (!s->status && !open_ckc(&s->cdm, ckc.data, ckc.data_size)) s->status = USHER_E_PROTOCOL;
  const char *words = ckc.error.status ? ckc.error.message : usher_status_message(s->status);
  if (s->status) fprintf(stderr, "%.*s: %s\n", (int)protection->uri_size, (const char *)protection->uri, words);
  usher_response_free(response);
}

/* Plays one segment, after its initialisation segment. @return 0 if the key does not fit. */
static int show_segment(screen *s, const char *name) {
  AVFormatContext *clip = NULL;
  AVCodecContext *decoder = NULL;
  char *url = av_asprintf("concat:%s/%s|%s/%s", s->folder, s->init, s->folder, name);
  AVStream *stream = clip_open(url, s->cdm.key, &clip, &decoder);
  AVPacket *packet = av_packet_alloc();
  AVFrame *frame = av_frame_alloc();
  for (int more = stream != NULL; more; av_packet_unref(packet)) {
    more = av_read_frame(clip, packet) == 0;
    avcodec_send_packet(decoder, more ? packet : NULL);
    for (; avcodec_receive_frame(decoder, frame) == 0; s->frames++)
      clip_show(frame, stream, 0, s->seen); /* due at once */
  }
  av_frame_free(&frame);
  av_packet_free(&packet);
  avcodec_free_context(&decoder);
  avformat_close_input(&clip);
  av_free(url);
  return stream != NULL;
}

/* Plays a media playlist. @return 0: played to the end. */
static int play(screen *s, const char *file) {
  char line[4096], folder[512] = ".";
  FILE *playlist = fopen(file, "r");
  if (!playlist) return perror(file), 1;
  const char *slash = strrchr(file, '/');
  if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - file), file);
  s->folder = folder;
  int good = 1;
  while (good && fgets(line, sizeof line, playlist)) {
    line[strcspn(line, "\r\n")] = '\0';
    if (strncmp(line, "#EXT-X-KEY:", 11) == 0) {
      const int32_t status = usher_read_hls_keys((const uint8_t *)line, strlen(line), load_key, s, NULL);
      good = !status && !s->status;
    } else if (line[0] == '#') {
      sscanf(line, "#EXT-X-MAP:URI=\"%255[^\"]", s->init);
    } else if (line[0]) {
      good = show_segment(s, line);
    }
  }
  fclose(playlist);
  return !good;
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: %s PLAYLIST KEY_SERVER_URL CERTIFICATE_URL\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_loader *loader = NULL;
  usher_player *player = NULL;
  screen s = {.seen = av_sha_alloc()};
  uint8_t digest[32];
  usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
  options.license_url = argv[2];
  options.certificate_url = argv[3];
  options.spc = make_spc;
  options.user_data = &s.cdm;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  av_sha_init(s.seen, 256);

  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_context_add_loader(context, &options, &loader);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &s.playback); /* the item has no delegate, and so no session */
  int failed = status ? fprintf(stderr, "%s\n", usher_status_message(status)) : play(&s, argv[1]);
  usher_context_close(context, 0, NULL);
  usher_context_free(context);

  av_sha_final(s.seen, digest);
  av_free(s.seen);
  printf("%d frames, sha256 ", s.frames);
  for (size_t i = 0; i < sizeof digest; i++) printf("%02x", digest[i]);
  printf("\n");
  return failed != 0;
}
