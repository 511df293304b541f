/* frame_hash.c - see frame_hash.h. SPDX-License-Identifier: Apache-2.0 */
#include "frame_hash.h"

#include <libavutil/imgutils.h>
#include <libavutil/mem.h>
#include <libavutil/samplefmt.h>

#include "keyring.h"

bool frame_hash_start(struct frame_hash *hash) {
  *hash = (struct frame_hash){.digest = EVP_MD_CTX_new()};
  return hash->digest && EVP_DigestInit_ex(hash->digest, EVP_sha256(), NULL) == 1;
}

bool frame_hash_add_video(struct frame_hash *hash, const AVFrame *frame) {
  int size = av_image_get_buffer_size(frame->format, frame->width, frame->height, 1);
  if (size <= 0) return false;
  if (size > hash->pixels_size) {
    av_freep(&hash->pixels);
    hash->pixels = av_malloc((size_t)size);
    hash->pixels_size = hash->pixels ? size : 0;
    if (!hash->pixels) return false;
  }
  int copied = av_image_copy_to_buffer(hash->pixels, size, (const uint8_t *const *)frame->data, frame->linesize,
      frame->format, frame->width, frame->height, 1);
  return copied == size && EVP_DigestUpdate(hash->digest, hash->pixels, (size_t)size) == 1;
}

bool frame_hash_add_audio(struct frame_hash *hash, const AVFrame *frame) {
  int channels = frame->ch_layout.nb_channels, width = av_get_bytes_per_sample(frame->format);
  bool planar = av_sample_fmt_is_planar(frame->format) == 1;
  size_t plane_size = (size_t)frame->nb_samples * (size_t)width * (size_t)(planar ? 1 : channels);
  for (int plane = 0; plane < (planar ? channels : 1); plane++)
    if (EVP_DigestUpdate(hash->digest, frame->extended_data[plane], plane_size) != 1) return false;
  return true;
}

void frame_hash_finish(struct frame_hash *hash, char out[FRAME_HASH_TEXT]) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  out[0] = '\0';
  if (hash->digest && EVP_DigestFinal_ex(hash->digest, digest, &size) == 1 && size == 32)
    bytes_to_hex(digest, size, out);
  EVP_MD_CTX_free(hash->digest);
  av_freep(&hash->pixels);
  *hash = (struct frame_hash){0};
}
