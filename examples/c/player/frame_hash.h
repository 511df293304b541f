/* frame_hash.h - SHA-256 over decoded frames; equal hashes mean equal pictures. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_FRAME_HASH_H
#define PLAYER_FRAME_HASH_H

#include <libavutil/frame.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>

#define FRAME_HASH_TEXT 65

struct frame_hash {
  EVP_MD_CTX *digest;
  uint8_t *pixels; /* one frame without padding */
  int pixels_size;
};

bool frame_hash_start(struct frame_hash *hash);
/**
 * Adds a picture: its planes one after the other, rows without padding, as `ffmpeg -f rawvideo` would write them.
 * @return false on failure.
 */
bool frame_hash_add_video(struct frame_hash *hash, const AVFrame *frame);
/** Adds the samples of a sound frame, plane by plane. @return false on failure. */
bool frame_hash_add_audio(struct frame_hash *hash, const AVFrame *frame);
/** Writes the hash in hexadecimal ("" if hashing failed) and frees what `hash` holds. */
void frame_hash_finish(struct frame_hash *hash, char out[FRAME_HASH_TEXT]);

#endif
