/*
 * host.c - a host that plays a session with a session manager. Then a test searches its memory for secrets.
 *
 *   stdin: license_url, ssm_url, ca_file, a header, content token, payload
 *   arguments: with "held" the host frees nothing, so that the search must find secrets; with "wiping" it sets
 *   wipe_freed_memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"

static void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *payload) {
  (void)playback, (void)key_system, (void)tag;
  usher_complete_payload(completion, (const uint8_t *)payload, strlen((const char *)payload));
}

static int play(char *at, int is_held) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  int wrong = 0;
  char *payload, *token, *header;

  options.clock = USHER_CLOCK_MANUAL;
  options.wipe_freed_memory = is_wiping;
  options.proxy = "";
  ssp.license_url = line(&at);
  ssp.ssm_url = line(&at);
  options.ca_file = line(&at);
  if (options.ca_file && !*options.ca_file) options.ca_file = NULL;
  ssp.extra_headers = header = line(&at);
  item.content_token = token = line(&at);
  payload = line(&at);
  if (!payload || !line(&at)) return 1;
  ssp.jitter_permille = USHER_OFF;
  item.payload = on_payload;
  item.user_data = payload;
  request.key_system = USHER_KEY_SYSTEM_FAIRPLAY;
  request.payload = (const uint8_t *)payload;
  request.payload_size = strlen(payload);
  wrong |= check(usher_context_new(&options, &context), "context");
  wrong |= check(usher_ssp_delegate_new(context, &ssp, &delegate), "delegate");
  wrong |= check(usher_context_set_delegate(context, delegate), "default delegate");
  wrong |= check(usher_player_new(context, &player), "player");
  wrong |= check(usher_player_play(player, &item, &playback), "play");
  explicit_bzero(token, strlen(token));
  explicit_bzero(header, strlen(header));
  wrong |= check(usher_playback_wait_session(playback, 0, NULL), "session");
  for (int count = 0; count < 3; count++) {
    usher_response *response = NULL;
    wrong |= check(usher_playback_get_license(playback, &request, &response), "licence");
    wrong |= check(usher_response_free(response), "response");
    wrong |= check(usher_context_advance(context, 60000, 10000), "a period");
  }
  if (is_held) return wrong;
  wrong |= check(usher_playback_close(playback, USHER_CLOSE_DEFAULT), "close");
  wrong |= check(usher_context_settle(context, 0, 0, 10000), "settle");
  wrong |= check(usher_playback_free(playback), "playback");
  wrong |= check(usher_player_free(player), "player");
  wrong |= check(usher_delegate_free(delegate), "delegate");
  wrong |= check(usher_context_free(context), "context");
  return wrong;
}
