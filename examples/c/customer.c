/*
 * customer.c - plays an encrypted clip under the operator's own session management: portal.c, a plug-in.
 *
 *   cc -pthread customer.c $(pkg-config --cflags --libs usher libavformat libavcodec libavutil json-c) -ldl -o customer
 *   ./customer PLUG_IN CLIP BACKEND_URL KEY_ID      (key id: 32 hex digits)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include "clip.h" /* decodes the clip; in your app, the player does this */
#include <dlfcn.h>

static void on_payload(usher_completion id, usher_playback *p, const char *key_system, uint64_t tag,
    void *challenge) { /* the CDM's payload for a renewal */
  (void)p, (void)key_system, (void)tag, usher_complete_payload(id, challenge, strlen(challenge));
}

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s PLUG_IN CLIP BACKEND_URL KEY_ID\n", argv[0]), 2;
  int32_t (*portal_delegate_new)(usher_context *, const char *, usher_delegate **) = NULL;
  void *plug_in = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plug_in) *(void **)&portal_delegate_new = dlsym(plug_in, "portal_delegate_new");
  if (!portal_delegate_new) return fprintf(stderr, "%s\n", dlerror()), 1;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info licence = USHER_RESPONSE_INFO_INIT;
  char challenge[128];
  if (!challenge_for(argv[4], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[4]), 2;
  usher_playback_options item = {sizeof item, .payload = on_payload, .user_data = challenge};
  usher_license_request request = {.struct_size = sizeof request,
      .key_system = USHER_KEY_SYSTEM_CLEARKEY,
      .payload = (const uint8_t *)challenge,
      .payload_size = strlen(challenge)};
  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = portal_delegate_new(context, argv[3], &delegate);
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  if (!status) status = usher_playback_get_license(playback, &request, &response);
  if (!status) status = usher_response_get(response, &licence);
  int failed = status ? fprintf(stderr, "%s\n", usher_status_message(status))
                      : clip_play(argv[2], licence.data, licence.data_size, playback);
  /* usher_context_free() waits for the answer of the teardown callback. After this call, the plug-in runs no code. */
  usher_context_free(context);
  dlclose(plug_in);
  return failed != 0;
}
