/*
 * ssp_v2.c - plays an encrypted clip with an SSP V2 delegate: the licence request also opens the session.
 *
 *   cc ssp_v2.c $(pkg-config --cflags --libs usher libavformat libavcodec libavutil json-c) -o ssp_v2
 *   ./ssp_v2 CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID      (key id: 32 hex digits)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include "clip.h" /* decodes the clip; in your app, the player does this */
#include <usher/usher.h>

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  printf("%6.3f s  %s %s\n", (double)event->time_ms / 1000, usher_event_name(event->type),
      event->error.status ? event->error.message : "");
}

int main(int argc, char **argv) {
  if (argc != 6) return fprintf(stderr, "usage: %s CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info licence = USHER_RESPONSE_INFO_INIT;
  char challenge[128];
  if (!challenge_for(argv[5], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[5]), 2;
  usher_ssp_options ssp = {.struct_size = sizeof ssp, .license_url = argv[2], .ssm_url = argv[3]};
  usher_ssp_v2_options v2 = {.struct_size = sizeof v2, .ssp = &ssp};
  usher_playback_options item = {.struct_size = sizeof item, .content_token = argv[4]};
  usher_license_request request = {.struct_size = sizeof request,
      .key_system = USHER_KEY_SYSTEM_CLEARKEY,
      .payload = (const uint8_t *)challenge,
      .payload_size = strlen(challenge)};

  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  if (!status) status = usher_ssp_v2_delegate_new(context, &v2, &delegate);
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback); /* sends no request yet */
  if (!status) status = usher_playback_get_license(playback, &request, &response); /* opens the session */
  if (!status) status = usher_response_get(response, &licence);
  int failed = status ? fprintf(stderr, "%s\n", usher_status_message(status))
                      : clip_play(argv[1], licence.data, licence.data_size, playback);
  usher_playback_close(playback, USHER_CLOSE_TEARDOWN); /* by default SSP V2 leaves the session to expire */
  usher_context_close(context, 0, NULL); /* waits until the session is torn down */
  usher_context_free(context);
  return failed != 0;
}
