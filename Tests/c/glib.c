/*
 * glib.c - a GLib main loop pumps contexts. Events arrive, several contexts share one loop, and the host destroys the
 * source of a context before or after the context.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"
#include <glib-unix.h>

static GMainLoop *loop;
static int closed, wanted, destroyed, pumps;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type == USHER_EVENT_SESSION_STARTED) usher_playback_close(event->playback, USHER_CLOSE_DEFAULT);
  if (event->type == USHER_EVENT_PLAYBACK_CLOSED && ++closed == wanted) g_main_loop_quit(loop);
}
static gboolean pump(gint fd, GIOCondition condition, gpointer context) {
  (void)fd, (void)condition;
  pumps++;
  return usher_context_pump((usher_context *)context, NULL) == USHER_OK ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}
static gboolean too_late(gpointer unused) {
  (void)unused;
  tell(0, "the loop ends in time");
  g_main_loop_quit(loop);
  return G_SOURCE_REMOVE;
}
static guint watched(usher_context *context) {
  int fd = -1;
  usher_context_pump_fd(context, &fd);
  usher_context_add_observer(context, on_event, &destroyed, count_destroy, NULL);
  play(new_player(context), new_delegate(context, license_url()));
  return g_unix_fd_add(fd, G_IO_IN, pump, context);
}
static void run(int until) {
  guint limit = g_timeout_add(10000 * (guint)patience(), too_late, NULL);
  wanted = until;
  if (closed < wanted) g_main_loop_run(loop);
  g_source_remove(limit);
}

int main(void) {
  usher_context *contexts[3];
  guint sources[3];
  int index;
  loop = g_main_loop_new(NULL, FALSE);
  /* Count the descriptors again, because GLib has opened one that it never closes. */
  count_at_start();
  for (index = 0; index < 3; index++)
    contexts[index] = new_context(USHER_CALLBACKS_PUMPED), sources[index] = watched(contexts[index]);
  run(3);
  tell(closed == 3, "three contexts in one loop: each reports its playback closed");
  tell(pumps < 100, "the loop did not spin: %d pumps", pumps);
  for (index = 0; index < 3; index++) g_source_remove(sources[index]), usher_context_free(contexts[index]);
  tell(destroyed == 3, "each context freed after its source was destroyed");

  contexts[0] = new_context(USHER_CALLBACKS_PUMPED);
  sources[0] = watched(contexts[0]);
  /* No loop pumps this context any more, so usher_context_free() must run its callbacks. */
  g_source_remove(sources[0]);
  usher_playback_wait_closed(NULL, 1);
  answers(USHER_OK, usher_context_free(contexts[0]), "the source destroyed first, then the context with callbacks due");
  tell(destroyed == 4 && closed == 4, "usher_context_free ran its callbacks");

  contexts[0] = new_context(USHER_CALLBACKS_PUMPED);
  sources[0] = watched(contexts[0]);
  g_main_loop_unref(loop);
  loop = NULL;
  g_source_remove(sources[0]);
  wanted = -1;
  answers(USHER_OK, usher_context_free(contexts[0]), "the loop itself destroyed first");
  tell(destroyed == 5 && closed == 5, "usher_context_free ran its callbacks without the loop");
  nothing_held("glib");
  return failed != 0;
}
