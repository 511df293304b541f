/* media.h - reads, decrypts and decodes a file, frame by frame. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_MEDIA_H
#define PLAYER_MEDIA_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include "cenc.h"
#include "frame_hash.h"
#include "keyring.h"

/* The results of decoding one picture or sound track, for all loops together. */
struct track_report {
  const char *codec; /* NULL: the file has no such track */
  int width, height, sample_rate;
  uint64_t frames;
  uint64_t packets_encrypted;
  uint64_t decode_errors; /* the number of errors; large if a key is wrong, because decoders continue after errors */
  char sha256[FRAME_HASH_TEXT];
};

struct media_report {
  struct track_report video, audio;
  double seconds; /* how many seconds of the clip were played, in all loops */
  char failure[160]; /* why playback ended early, or "" */
};

struct media_control {
  /** Called after every picture, or after every sound frame if the file has no pictures. `seconds`: how much was
   *  played; `whole`: the length of all loops together. Returns false to stop. */
  bool (*shown)(double seconds, double whole, const struct media_report *so_far, void *user_data);
  void *user_data;
  unsigned loops;
  double stop_after; /* 0: never */
};

enum media_end { MEDIA_WHOLE, MEDIA_STOPPED, MEDIA_FAILED };

/** Plays a file; `ring` holds the keys (empty for a clear file). @return how playback ended. */
enum media_end media_play(
    const char *path, const struct keyring *ring, const struct media_control *control, struct media_report *out);

#endif
