/** @file
 * tokens.h - the multi-instance delegate: several streams at once, each with the content token of its own content
 * identifier (MultiInstanceDelegate.tokenIDMap).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TOKENS_H
#define USHER_TOKENS_H

#include "base.h"
#include "delegate.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of the token map. 0: the default written here. */
typedef struct usher_token_map_options {
  /** USHER_TOKEN_MAP_OPTIONS_INIT sets it. */
  size_t struct_size;
  /** How many tokens the map holds at most. When the map is full, a new token replaces the oldest token that no
      playback holds. Default 0: no limit. */
  size_t tokens_max;
  /** The map removes a token that no playback holds when this time has passed since the token was set; ms on the
      context's clock. Default 0: never. */
  uint64_t time_to_live_ms;
} usher_token_map_options;

/** All defaults. */
#define USHER_TOKEN_MAP_OPTIONS_INIT \
  { sizeof(usher_token_map_options), 0, 0 }

/**
 * Makes a multi-instance delegate: an SSP delegate whose playbacks find their content token in a map, by the
 * `content_id` of their options or the asset ID of their licence requests. Each playback has its own session. A
 * playback without `content_id` starts its session with its first licence request; a clear stream requests no licence
 * and needs no token.
 *
 * @param context  the context of its playbacks.
 * @param options  as in usher_ssp_delegate_new(). Not NULL.
 * @param map      NULL: all defaults.
 * @param out      on USHER_OK a handle to free with usher_delegate_free(); NULL on failure. Not NULL.
 * @return USHER_OK, USHER_E_INVALID_HANDLE, USHER_E_INVALID_ARGUMENT, or USHER_E_CLOSED after usher_context_close()
 *         began.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_multi_instance_delegate_new(
    usher_context *context, const usher_ssp_options *options, const usher_token_map_options *map, usher_delegate **out);

/**
 * Sets or replaces the content token of a content identifier (setStreamToken). Playbacks that wait for this token
 * continue; playbacks of this content that already play use the new token for further licence requests.
 *
 * @param delegate         a multi-instance delegate.
 * @param content_id       bytes, compared as they are; 1 byte to 64 kB. Not NULL.
 * @param content_id_size  its length in bytes.
 * @param token            a header value: not only blanks, no control character except tab, at most 64 kB.
 *                         Not NULL.
 * @return USHER_OK; USHER_E_FULL if the map is full and playbacks hold every token in it; USHER_E_INVALID_HANDLE;
 *         USHER_E_INVALID_ARGUMENT; USHER_E_STATE for a delegate without a map.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_set_stream_token(
    usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size, const char *token);

/**
 * Returns in `out` the token of a content identifier.
 *
 * @param delegate         a multi-instance delegate.
 * @param content_id       as in usher_delegate_set_stream_token().
 * @param content_id_size  its length in bytes.
 * @param out              on USHER_OK a response to free with usher_response_free(), whose `data` is the token. NULL:
 *                         only the status says whether the map has a token.
 * @return USHER_OK; USHER_E_NO_TOKEN if the map has none; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT;
 *         USHER_E_STATE for a delegate without a map.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_get_stream_token(
    usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size, usher_response **out);

/**
 * Removes a token from the map. A playback that uses the token keeps it.
 *
 * @param delegate         a multi-instance delegate.
 * @param content_id       as in usher_delegate_set_stream_token().
 * @param content_id_size  its length in bytes.
 * @return USHER_OK; USHER_E_NO_TOKEN if the map has none; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT;
 *         USHER_E_STATE for a delegate without a map.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_remove_stream_token(
    usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size);

/**
 * Removes all tokens from the map. A playback that uses one of them keeps it.
 *
 * @param delegate  a multi-instance delegate.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_STATE for a delegate without a map.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_clear_stream_tokens(usher_delegate *delegate);

/**
 * Counts the tokens in the map.
 *
 * @param delegate   a multi-instance delegate.
 * @param out_count  how many. Not NULL.
 * @return USHER_OK; USHER_E_INVALID_HANDLE; USHER_E_INVALID_ARGUMENT; USHER_E_STATE for a delegate without a map.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API int32_t usher_delegate_count_stream_tokens(usher_delegate *delegate, size_t *out_count);

#ifdef __cplusplus
}
#endif
#endif /* USHER_TOKENS_H */
