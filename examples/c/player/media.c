/* media.c - see media.h. SPDX-License-Identifier: Apache-2.0 */
#include "media.h"

#include <stdio.h>

#include "media_file.h"

struct playing {
  struct media_file file;
  const struct keyring *ring;
  const struct media_control *control;
  struct media_report *report;
  struct frame_hash video_hash, audio_hash;
  AVPacket *packet;
  AVFrame *frame;
  double loop_start; /* seconds played in earlier loops */
  double whole;
};

/* Passes a picture (or a sound frame if the file has no pictures) to `shown`. @return false if playback must stop. */
static bool show(struct playing *playing, const struct track *track) {
  const struct track *leading = playing->file.video.stream ? &playing->file.video : &playing->file.audio;
  if (track != leading) return true;
  AVFrame *frame = playing->frame;
  int64_t start = track->stream->start_time == AV_NOPTS_VALUE ? 0 : track->stream->start_time;
  int64_t pts = frame->best_effort_timestamp == AV_NOPTS_VALUE ? start : frame->best_effort_timestamp;
  double seconds = playing->loop_start + (double)(pts - start) * av_q2d(track->stream->time_base);
  if (seconds > playing->report->seconds) playing->report->seconds = seconds;
  if (playing->control->stop_after > 0 && seconds >= playing->control->stop_after) return false;
  return playing->control->shown(seconds, playing->whole, playing->report, playing->control->user_data);
}

/* Decodes one packet; with NULL, decodes the frames left in the decoder. @return false if playback must stop. */
static bool decode(struct playing *playing, struct track *track, const AVPacket *packet) {
  int sent = avcodec_send_packet(track->decoder, packet);
  if (sent < 0 && sent != AVERROR_EOF) track->report->decode_errors++;
  for (;;) {
    int got = avcodec_receive_frame(track->decoder, playing->frame);
    if (got == AVERROR(EAGAIN) || got == AVERROR_EOF) return true;
    if (got < 0) {
      track->report->decode_errors++;
      return true;
    }
    if (playing->frame->decode_error_flags != 0 || (playing->frame->flags & AV_FRAME_FLAG_CORRUPT))
      track->report->decode_errors++;
    if (!track->hash_add(track->hash, playing->frame)) track->report->decode_errors++;
    track->report->frames++;
    bool go_on = show(playing, track);
    av_frame_unref(playing->frame);
    if (!go_on) return false;
  }
}

static struct track *track_of(struct playing *playing, const AVPacket *packet) {
  struct media_file *file = &playing->file;
  if (file->video.stream && packet->stream_index == file->video.stream->index) return &file->video;
  if (file->audio.stream && packet->stream_index == file->audio.stream->index) return &file->audio;
  return NULL;
}

/* Plays the open file to its end. @return how playback ended. */
static enum media_end play_once(struct playing *playing) {
  for (;;) {
    int read = av_read_frame(playing->file.format, playing->packet);
    if (read == AVERROR_EOF) break;
    if (read < 0) {
      snprintf(playing->report->failure, sizeof playing->report->failure, "the file cannot be read on");
      return MEDIA_FAILED;
    }
    struct track *track = track_of(playing, playing->packet);
    enum cenc_result result = track ? cenc_decrypt(playing->packet, playing->ring) : CENC_CLEAR;
    if (result == CENC_DECRYPTED) track->report->packets_encrypted++;
    bool usable = result == CENC_CLEAR || result == CENC_DECRYPTED;
    bool go_on = usable && (!track || decode(playing, track, playing->packet));
    av_packet_unref(playing->packet);
    if (!usable) {
      snprintf(playing->report->failure, sizeof playing->report->failure, "a packet is %s", cenc_result_text(result));
      return MEDIA_FAILED;
    }
    if (!go_on) return MEDIA_STOPPED;
  }
  if (playing->file.video.stream && !decode(playing, &playing->file.video, NULL)) return MEDIA_STOPPED;
  if (playing->file.audio.stream && !decode(playing, &playing->file.audio, NULL)) return MEDIA_STOPPED;
  return MEDIA_WHOLE;
}

/* Opens the file and plays it once, for one loop. Each loop opens the file again, because a seek to the start is not
   enough: libavformat passes some data only with the first packets after it has opened a file. @return how playback
   ended. */
static enum media_end play_loop(struct playing *playing, const char *path) {
  struct media_file *file = &playing->file;
  struct media_report *report = playing->report;
  const char *why = media_file_open(file, path);
  if (why) {
    snprintf(report->failure, sizeof report->failure, "%s", why);
    return MEDIA_FAILED;
  }
  file->video.report = &report->video;
  file->video.hash = &playing->video_hash;
  file->video.hash_add = frame_hash_add_video;
  file->audio.report = &report->audio;
  file->audio.hash = &playing->audio_hash;
  file->audio.hash_add = frame_hash_add_audio;
  if (file->video.stream) {
    report->video.codec = avcodec_get_name(file->video.decoder->codec_id);
    report->video.width = file->video.stream->codecpar->width;
    report->video.height = file->video.stream->codecpar->height;
  }
  if (file->audio.stream) {
    report->audio.codec = avcodec_get_name(file->audio.decoder->codec_id);
    report->audio.sample_rate = file->audio.stream->codecpar->sample_rate;
  }
  playing->whole = file->duration * playing->control->loops;
  enum media_end end = play_once(playing);
  playing->loop_start += file->duration;
  media_file_close(file);
  return end;
}

enum media_end media_play(
    const char *path, const struct keyring *ring, const struct media_control *control, struct media_report *out) {
  struct playing playing = {
      .ring = ring, .control = control, .report = out, .packet = av_packet_alloc(), .frame = av_frame_alloc()};
  enum media_end end = MEDIA_FAILED;
  *out = (struct media_report){0};
  if (!playing.packet || !playing.frame || !frame_hash_start(&playing.video_hash) ||
      !frame_hash_start(&playing.audio_hash)) {
    snprintf(out->failure, sizeof out->failure, "no memory");
  } else {
    unsigned loop = 0;
    do end = play_loop(&playing, path);
    while (end == MEDIA_WHOLE && ++loop < control->loops);
  }
  if (end == MEDIA_WHOLE) out->seconds = playing.loop_start;
  frame_hash_finish(&playing.video_hash, out->video.sha256);
  frame_hash_finish(&playing.audio_hash, out->audio.sha256);
  av_packet_free(&playing.packet);
  av_frame_free(&playing.frame);
  return end;
}
