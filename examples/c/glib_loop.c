/*
 * glib_loop.c - a GLib main loop (GTK, GStreamer, WPE ...) has the context's descriptor as a source and runs callbacks.
 *
 *   cc glib_loop.c $(pkg-config --cflags --libs usher glib-2.0) -o glib_loop
 *   ./glib_loop LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID      (key id: 32 hex digits)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include <glib-unix.h>
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

static int32_t failed;

static gboolean pump(gint fd, GIOCondition condition, gpointer context) {
  (void)fd, (void)condition;
  usher_context_pump(context, NULL);
  return G_SOURCE_CONTINUE;
}
static gboolean stop(gpointer playback) { return usher_playback_close(playback, USHER_CLOSE_DEFAULT), G_SOURCE_REMOVE; }
static void on_event(const usher_event *event, void *loop) {
  printf("%s %s\n", usher_event_name(event->type), event->error.status ? event->error.message : "");
  if (event->error.must_stop) usher_playback_close(event->playback, USHER_CLOSE_DEFAULT);
  if (event->type == USHER_EVENT_PLAYBACK_CLOSED) g_main_loop_quit(loop);
}
static void on_license(usher_playback *playback, const usher_response_info *licence, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  failed = licence->error.status;
  printf("a licence of %zu bytes %s\n", licence->data_size, failed ? licence->error.message : "");
}

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", argv[0]), 2;
  GMainLoop *loop = g_main_loop_new(NULL, FALSE);
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  char challenge[128];
  if (!challenge_for(argv[4], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[4]), 2;
  usher_context_options options = {.struct_size = sizeof options, .callbacks = USHER_CALLBACKS_PUMPED};
  usher_ssp_options ssp = {.struct_size = sizeof ssp, .license_url = argv[1], .ssm_url = argv[2]};
  usher_playback_options item = {.struct_size = sizeof item, .content_token = argv[3]};
  usher_license_request request = {.struct_size = sizeof request,
      .key_system = USHER_KEY_SYSTEM_CLEARKEY,
      .payload = (const uint8_t *)challenge,
      .payload_size = strlen(challenge)};
  int fd = -1;
  if (usher_context_new(&options, &context) || usher_context_pump_fd(context, &fd) ||
      usher_context_add_observer(context, on_event, loop, NULL, NULL) ||
      usher_ssp_delegate_new(context, &ssp, &delegate) || usher_context_set_delegate(context, delegate) ||
      usher_player_new(context, &player) || usher_player_play(player, &item, &playback) ||
      usher_playback_request_license(playback, &request, on_license, NULL, NULL))
    return fprintf(stderr, "libusher refused an argument\n"), 1;
  guint source = g_unix_fd_add(fd, G_IO_IN, pump, context);
  g_timeout_add(1500, stop, playback); /* the viewer stops */
  g_main_loop_run(loop);
  /* Remove the source before usher_context_free(), which closes its descriptor. */
  g_source_remove(source);
  usher_context_free(context);
  return g_main_loop_unref(loop), failed != 0;
}
