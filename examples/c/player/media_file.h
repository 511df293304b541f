/* media_file.h - an open file and its decoders; media.c uses it. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_MEDIA_FILE_H
#define PLAYER_MEDIA_FILE_H

#include "media.h"

struct track {
  AVStream *stream; /* NULL: the file has no such track */
  AVCodecContext *decoder;
  struct track_report *report;
  struct frame_hash *hash;
  bool (*hash_add)(struct frame_hash *hash, const AVFrame *frame);
};

struct media_file {
  AVFormatContext *format;
  struct track video, audio;
  double duration; /* seconds; 0 if not known */
};

/** Opens the file and a decoder for its first picture and sound track. @return NULL, or the error in one line. */
const char *media_file_open(struct media_file *file, const char *path);
void media_file_close(struct media_file *file);

#endif
