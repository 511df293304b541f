/* cenc.h - decrypts packets of Common Encryption, scheme `cenc` (AES-CTR). SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_CENC_H
#define PLAYER_CENC_H

#include <libavcodec/packet.h>

#include "keyring.h"

enum cenc_result {
  CENC_CLEAR, /* the packet was not encrypted */
  CENC_DECRYPTED, /* the packet is decrypted now */
  CENC_NO_KEY, /* the ring does not have the packet's key id */
  CENC_SCHEME, /* the packet has another scheme than `cenc` (e.g. `cbcs`) */
  CENC_MALFORMED /* the encryption data do not fit the packet's size, or libcrypto failed */
};

/**
 * Decrypts a packet in place. The packet's side data (AV_PKT_DATA_ENCRYPTION_INFO) has the id of the key. @return
 * whether the packet was decrypted or clear, or why it cannot be decrypted.
 */
enum cenc_result cenc_decrypt(AVPacket *packet, const struct keyring *ring);

/** @return a description of a result, in one line. */
const char *cenc_result_text(enum cenc_result result);

#endif
