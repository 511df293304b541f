/*
 * poll_loop.c - a player with its own main loop: every callback runs on the player's thread, between poll() and the
 * next frame.
 *
 *   cc poll_loop.c $(pkg-config --cflags --libs usher) -o poll_loop
 *   ./poll_loop LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID      (key id: 32 hex digits)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

static int frames_left = 20, must_stop, closed, failed; /* no lock: one thread */

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  printf("%s %s\n", usher_event_name(event->type), event->error.status ? event->error.message : "");
  must_stop |= event->error.must_stop;
  closed |= event->type == USHER_EVENT_PLAYBACK_CLOSED;
}
static void on_license(usher_playback *playback, const usher_response_info *licence, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  failed = licence->error.status;
  printf("a licence of %zu bytes %s\n", licence->data_size, failed ? licence->error.message : "");
}

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  char challenge[128];
  if (!challenge_for(argv[4], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[4]), 2;
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  options.callbacks = USHER_CALLBACKS_PUMPED;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  ssp.license_url = argv[1], ssp.ssm_url = argv[2];
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  item.content_token = argv[3];
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  request.key_system = USHER_KEY_SYSTEM_CLEARKEY, request.payload = (const uint8_t *)challenge,
  request.payload_size = strlen(challenge);

  struct pollfd due = {-1, POLLIN, 0};
  int32_t status = usher_context_new(&options, &context);
  if (!status) status = usher_context_pump_fd(context, &due.fd);
  if (!status) status = usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  if (!status) status = usher_ssp_delegate_new(context, &ssp, &delegate);
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  if (!status) status = usher_playback_request_license(playback, &request, on_license, NULL, NULL);
  while (!status && !closed) {
    if (poll(&due, 1, 40) == 1) usher_context_pump(context, NULL); /* runs the callbacks */
    else if (--frames_left == 0 || must_stop)
      usher_playback_close(playback, USHER_CLOSE_DEFAULT); /* no callback was due for 40 ms: show a frame here */
  }
  usher_context_free(context);
  return status || failed;
}
