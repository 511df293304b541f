/*
 * common.c - plays an encrypted clip with a common delegate: hooks make its headers and the licence URL.
 *
 *   cc common.c $(pkg-config --cflags --libs usher libavformat libavcodec libavutil json-c) -o common
 *   ./common CLIP LICENSE_URL CONTENT_TOKEN KEY_ID DEVICE      (key id: 32 hex digits; DEVICE: name of this screen)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include "clip.h" /* decodes the clip; in your app, the player does this */
#include <usher/usher.h>

struct mine {
  const char *token, *device;
};

/* generateHTTPHeaders(assetID) of the SDKs. */
static void on_headers(const usher_hook_call *call, void *user_data) {
  const struct mine *mine = user_data;
  char lines[4096];
  snprintf(lines, sizeof lines, "nv-authorizations: %s\nX-Device: %s", mine->token, mine->device);
  usher_complete_headers(call->completion, lines);
}
/* getLicenseRequestUrl() of the SDKs. usher_hook_builtin() gives the URL that the superclass would return. */
static void on_license_url(const usher_hook_call *call, void *user_data) {
  const struct mine *mine = user_data;
  usher_response *builtin = NULL;
  usher_response_info url = USHER_RESPONSE_INFO_INIT;
  char text[4096] = "";
  if (!usher_hook_builtin(call->completion, &builtin) && !usher_response_get(builtin, &url))
    snprintf(text, sizeof text, "%.*s?device=%s", (int)url.data_size, (const char *)url.data, mine->device);
  /* NULL means that the hook has no URL; the licence request then fails. */
  usher_complete_hook(call->completion, text[0] ? (const uint8_t *)text : NULL, strlen(text));
  usher_response_free(builtin);
}

int main(int argc, char **argv) {
  if (argc != 6) return fprintf(stderr, "usage: %s CLIP LICENSE_URL CONTENT_TOKEN KEY_ID DEVICE\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info licence = USHER_RESPONSE_INFO_INIT;
  char challenge[128];
  if (!challenge_for(argv[4], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[4]), 2;
  struct mine mine = {.token = argv[3], .device = argv[5]};
  usher_default_options options = {.struct_size = sizeof options, .license_url = argv[2]};
  usher_delegate_hooks hooks = {.struct_size = sizeof hooks,
      .http_headers = on_headers,
      .license_url = on_license_url}; /* the other hooks: built-in behaviour */
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = {.struct_size = sizeof request,
      .key_system = USHER_KEY_SYSTEM_CLEARKEY,
      .payload = (const uint8_t *)challenge,
      .payload_size = strlen(challenge)};
  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_common_delegate_new(context, &options, &hooks, &mine, NULL, &delegate);
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  if (!status) status = usher_playback_get_license(playback, &request, &response);
  if (!status) status = usher_response_get(response, &licence);
  int failed = status ? fprintf(stderr, "%s\n", usher_status_message(status))
                      : clip_play(argv[1], licence.data, licence.data_size, playback);
  /* usher_context_free() frees everything in the context. After this call, no hook uses `mine` any more. */
  usher_context_free(context);
  return failed != 0;
}
