/*
 * minimal.c - one playback under a concurrent-stream session: session set-up, licence, heartbeats, teardown.
 *
 *   cc minimal.c $(pkg-config --cflags --libs usher) -o minimal
 *   ./minimal LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID      (key id: 32 hex digits)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  printf("%6.3f s  %s %s\n", (double)event->time_ms / 1000, usher_event_name(event->type),
      event->error.status ? event->error.message : "");
}

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  char challenge[128];
  if (!challenge_for(argv[4], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[4]), 2;

  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  ssp.license_url = argv[1];
  ssp.ssm_url = argv[2];
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  item.content_token = argv[3];
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  request.key_system = USHER_KEY_SYSTEM_CLEARKEY;
  request.payload = (const uint8_t *)challenge;
  request.payload_size = strlen(challenge);

  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  if (!status) status = usher_ssp_delegate_new(context, &ssp, &delegate);
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  /* Returns at once; the library sets the session up in the background. */
  if (!status) status = usher_player_play(player, &item, &playback);
  /* Waits for the session, then for the licence. */
  if (!status) status = usher_playback_get_license(playback, &request, &response);
  if (!status) {
    usher_response_info licence = USHER_RESPONSE_INFO_INIT;
    usher_response_get(response, &licence);
    printf("key id %s: a licence of %zu bytes\n", argv[4], licence.data_size);
    /* ... pass it to your CDM and decode; the library sends heartbeats; stop when an event has `must_stop` ... */
  } else {
    printf("%s: %s\n", usher_status_name(status), usher_status_message(status));
  }
  usher_response_free(response);
  usher_context_close(context, 0, NULL); /* closes the playback and waits until its session is torn down */
  usher_context_free(context); /* frees everything in the context */
  return status != USHER_OK;
}
