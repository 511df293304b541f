/*
 * setup_usher.c - set-up, licence, zap and close with libusher. Measures the time from the host's call to the result,
 * on the real clock. The variants are those of setup_easy.c, but variant 4 is a zap with SSP V2: the new playback
 * replaces the earlier one. Variants 3 and 5 make a new context, and so new connections; with --ahead this happens
 * before the measurement. With --at-once a zap does not wait for the teardown. With --prepare the content token comes
 * from a callback that takes 50 ms; with --prepare 2 the host prepares the next item before the measurement.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char challenge[] = "{\"kids\":[\"ABEiM0RVZneImaq7zN3u_w\"],\"type\":\"temporary\"}";

/** Answers like a host that asks its own server for the token. */
static void on_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  bench_sleep_until(bench_now().wall_ns + 50000000);
  host_check(usher_complete_token(completion, "content.token"), "usher_complete_token");
}

static usher_playback_options next_item(const bench_options *options) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  if (!options->prepare) item.content_token = "content.token";
  return item;
}

static void prepare(const host *me, const bench_options *options, usher_player *player) {
  const usher_playback_options item = next_item(options);
  host_check(usher_player_prepare(player, &item, 0), "usher_player_prepare");
  host_check(usher_context_settle(me->context, 0, 0, 10000), "usher_context_settle");
}

static usher_playback *play_and_license(const bench_options *options, usher_player *player) {
  const usher_playback_options item = next_item(options);
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  usher_playback *playback = NULL;
  request.key_system = USHER_KEY_SYSTEM_CLEARKEY;
  request.payload = (const uint8_t *)challenge;
  request.payload_size = strlen(challenge);
  host_check(usher_player_play(player, &item, &playback), "usher_player_play");
  host_check(usher_playback_get_license(playback, &request, NULL), "usher_playback_get_license");
  return playback;
}

static void end(usher_playback *playback) {
  host_check(usher_playback_close(playback, USHER_CLOSE_DEFAULT), "usher_playback_close");
  host_check(usher_playback_wait_closed(playback, 10000), "usher_playback_wait_closed");
}

static void open_host(host *me, const bench_options *options, usher_player **player) {
  const usher_context_options context = USHER_CONTEXT_OPTIONS_INIT;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  ssp.zap_without_waiting = options->at_once;
  me->is_v2 = options->variant >= 4;
  host_open(me, options, context, ssp);
  if (options->prepare)
    host_check(
        usher_delegate_set_token_callback(me->delegate, on_token, NULL, NULL), "usher_delegate_set_token_callback");
  host_check(usher_player_new(me->context, player), "usher_player_new");
  if (!options->ahead) return;
  host_check(usher_delegate_connect_ahead(me->delegate, 60000), "usher_delegate_connect_ahead");
  host_check(usher_context_settle(me->context, 0, 0, 10000), "usher_context_settle");
  /* The library sends a set-up over a kept connection only if the connection has stayed open for some time after
     its first reply. */
  bench_sleep_until(bench_now().wall_ns + 200000000);
}

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  const int is_cold = options.variant == 3 || options.variant == 5;
  host me = {0};
  usher_player *player = NULL;
  bench_clock spent = {0};
  open_host(&me, &options, &player);
  usher_playback *playback = play_and_license(&options, player);
  for (int round = -options.warm_up; round < options.rounds; round++) {
    usher_playback *before = playback;
    if (options.variant == 0 || is_cold) end(playback);
    if (is_cold) host_close(&me);
    if (is_cold && options.ahead) open_host(&me, &options, &player);
    if (options.prepare == 2) prepare(&me, &options, player);
    const bench_clock start = bench_now();
    if (is_cold && !options.ahead) open_host(&me, &options, &player);
    if (options.variant == 2) end(playback);
    else playback = play_and_license(&options, player);
    if (round >= 0) bench_add(&spent, start);
    if (options.variant == 2) playback = play_and_license(&options, player);
    if (!is_cold) host_check(usher_playback_free(before), "usher_playback_free");
  }
  bench_print(spent, options.rounds);
  end(playback);
  host_close(&me);
  return 0;
}
