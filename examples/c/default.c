/*
 * default.c - plays an encrypted clip with a default delegate: a licence URL and a header with the token. No session.
 *
 *   cc default.c $(pkg-config --cflags --libs usher libavformat libavcodec libavutil json-c) -o default
 *   ./default CLIP LICENSE_URL CONTENT_TOKEN KEY_ID      (key id: 32 hex digits)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include "clip.h" /* decodes the clip; in your app, the player does this */
#include <usher/usher.h>

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s CLIP LICENSE_URL CONTENT_TOKEN KEY_ID\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info licence = USHER_RESPONSE_INFO_INIT;
  char challenge[128];
  if (!challenge_for(argv[4], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[4]), 2;
  usher_default_options options = {.struct_size = sizeof options, .license_url = argv[2]};
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = {.struct_size = sizeof request,
      .key_system = USHER_KEY_SYSTEM_CLEARKEY,
      .payload = (const uint8_t *)challenge,
      .payload_size = strlen(challenge)};

  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_default_delegate_new(context, &options, &delegate);
  if (!status)
    status = usher_delegate_set_http_header(delegate, "nv-authorizations", argv[3]); /* for every licence request */
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  if (!status) status = usher_playback_get_license(playback, &request, &response);
  if (!status) status = usher_response_get(response, &licence);
  int failed = status ? fprintf(stderr, "%s\n", usher_status_message(status))
                      : clip_play(argv[1], licence.data, licence.data_size, playback);
  usher_context_free(context); /* frees everything in the context */
  return failed != 0;
}
