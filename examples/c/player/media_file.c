/* media_file.c - see media_file.h. SPDX-License-Identifier: Apache-2.0 */
#include "media_file.h"

/* Opens a decoder for the best track of a type, if the file has one. Does not need avformat_find_stream_info(), which
   would decode encrypted packets: the header of an MP4 has all that decoders need. @return NULL, or the error in one
   line. */
static const char *open_track(struct track *track, AVFormatContext *format, enum AVMediaType type) {
  int index = av_find_best_stream(format, type, -1, -1, NULL, 0);
  if (index < 0) return NULL;
  AVStream *stream = format->streams[index];
  const AVCodec *codec = avcodec_find_decoder(stream->codecpar->codec_id);
  if (!codec) return "no decoder for a track of this file";
  track->decoder = avcodec_alloc_context3(codec);
  if (!track->decoder || avcodec_parameters_to_context(track->decoder, stream->codecpar) < 0)
    return "no memory for a decoder";
  track->decoder->pkt_timebase = stream->time_base;
  if (avcodec_open2(track->decoder, codec, NULL) < 0) return "the decoder does not open";
  track->stream = stream;
  return NULL;
}

const char *media_file_open(struct media_file *file, const char *path) {
  *file = (struct media_file){0};
  if (avformat_open_input(&file->format, path, NULL, NULL) < 0) return "cannot be opened as a media file";
  const char *why = open_track(&file->video, file->format, AVMEDIA_TYPE_VIDEO);
  if (!why) why = open_track(&file->audio, file->format, AVMEDIA_TYPE_AUDIO);
  if (!why && !file->video.stream && !file->audio.stream) why = "has neither picture nor sound";
  if (file->format->duration > 0) file->duration = (double)file->format->duration / AV_TIME_BASE;
  if (why) media_file_close(file);
  return why;
}

void media_file_close(struct media_file *file) {
  avcodec_free_context(&file->video.decoder);
  avcodec_free_context(&file->audio.decoder);
  avformat_close_input(&file->format);
}
