/*
 * clip.h - decodes an encrypted clip, which your player does already. libavformat decrypts; a hash replaces the screen.
 * The examples that play a clip share this file, so that they contain only the use of libusher.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>
#ifdef __cplusplus
extern "C" {
#endif
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libavutil/sha.h>
#include <libavutil/time.h>
#ifdef __cplusplus
}
#endif

/* Writes the first key of a Clear Key licence in hexadecimal, as libavformat wants it. @return 1; 0 if the licence has
   no key. */
static inline int clip_key(const uint8_t *licence, size_t size, char hex[33]) {
  usher_clearkey_key keys[8];
  size_t count = 8;
  if (usher_clearkey_keys(licence, size, keys, &count, NULL, 0) != USHER_OK) return 0;
  for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", keys[0].key[i]);
  return 1;
}

/* Opens the clip and a decoder for its pictures. @return the stream of the pictures, or NULL. */
static inline AVStream *clip_open(const char *file, const char *key, AVFormatContext **clip, AVCodecContext **decoder) {
  AVDictionary *options = NULL;
  const AVCodec *codec = NULL;
  av_dict_set(&options, "decryption_key", key, 0);
  int number = avformat_open_input(clip, file, NULL, &options);
  av_dict_free(&options);
  if (number == 0) number = av_find_best_stream(*clip, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  *decoder = number < 0 ? NULL : avcodec_alloc_context3(codec);
  if (!*decoder || avcodec_parameters_to_context(*decoder, (*clip)->streams[number]->codecpar) < 0 ||
      avcodec_open2(*decoder, codec, NULL) < 0)
    return NULL;
  return (*clip)->streams[number];
}

/* Waits until a picture is due, then hashes it. */
static inline void clip_show(const AVFrame *frame, const AVStream *stream, int64_t start, struct AVSHA *seen) {
  const enum AVPixelFormat format = (enum AVPixelFormat)frame->format;
  const int size = av_image_get_buffer_size(format, frame->width, frame->height, 1);
  const int64_t due =
      start + (int64_t)((double)frame->best_effort_timestamp * av_q2d(stream->time_base) * 1e6) - av_gettime_relative();
  uint8_t *pixels = (uint8_t *)av_malloc((size_t)size);
  if (due > 0) av_usleep((unsigned)due);
  av_image_copy_to_buffer(
      pixels, size, (const uint8_t *const *)frame->data, frame->linesize, format, frame->width, frame->height, 1);
  av_sha_update(seen, pixels, (size_t)size);
  av_free(pixels);
}

/* Plays the clip in real time while the session is alive, with the licence's key. @return 0: played to the end. */
static inline int clip_play(const char *file, const uint8_t *licence, size_t size, usher_playback *playback) {
  AVFormatContext *clip = NULL;
  AVCodecContext *decoder = NULL;
  char key[33] = "", hash[65];
  uint8_t digest[32];
  int32_t session = USHER_SESSION_NONE;
  int frames = 0;
  AVStream *stream = clip_key(licence, size, key) ? clip_open(file, key, &clip, &decoder) : NULL;
  if (!stream) return fprintf(stderr, "%s: cannot be played with this licence\n", file), 1;
  AVPacket *packet = av_packet_alloc();
  AVFrame *frame = av_frame_alloc();
  struct AVSHA *seen = av_sha_alloc();
  av_sha_init(seen, 256);
  const int64_t start = av_gettime_relative();
  for (int more = 1; more && session != USHER_SESSION_FAILED; av_packet_unref(packet)) {
    more = av_read_frame(clip, packet) == 0;
    if (more && packet->stream_index != stream->index) continue;
    avcodec_send_packet(decoder, more ? packet : NULL);
    for (; session != USHER_SESSION_FAILED && avcodec_receive_frame(decoder, frame) == 0; frames++) {
      clip_show(frame, stream, start, seen);
      usher_playback_session_state(playback, &session);
    }
  }
  av_sha_final(seen, digest);
  for (size_t i = 0; i < sizeof digest; i++) snprintf(hash + 2 * i, 3, "%02x", digest[i]);
  printf("%d frames, sha256 %s\n", frames, hash);
  av_free(seen);
  av_frame_free(&frame);
  av_packet_free(&packet);
  avcodec_free_context(&decoder);
  avformat_close_input(&clip);
  return session == USHER_SESSION_FAILED;
}
