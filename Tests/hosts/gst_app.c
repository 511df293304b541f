/*
 * gst_app.c - an application that uses libusher itself and shares its objects with the GStreamer plug-in. It gives
 * these objects to the plug-in as its answer to GST_MESSAGE_NEED_CONTEXT.
 *
 *   gst_app context|playback|closed URI LICENSE_URL SSM_URL TOKEN...
 *
 * With "context", the plug-in makes its sessions in the application's context; each TOKEN gets a separate pipeline.
 * With "playback", the plug-in requests licences from the application's playback, and a line of standard input closes
 * this playback. With "closed", the application closes its playback before the item plays.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../../hosts/gstreamer/picture_hash.h"

#include <gst/gst.h>
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

#define SCREENS_MAX 4

typedef struct {
  int number;
  GstContext *shared;
  GstElement *playbin;
  Hash pictures;
} Screen;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  g_print("app %s\n", usher_event_name(event->type));
}

static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data) {
  const Screen *screen = user_data;
  const gchar *type = NULL;
  (void)bus;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_NEED_CONTEXT && gst_message_parse_context_type(message, &type) &&
      strcmp(type, "usher.session") == 0) {
    gst_element_set_context(GST_ELEMENT(GST_MESSAGE_SRC(message)), screen->shared);
  } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT && gst_message_has_name(message, "usher-session")) {
    const GstStructure *fields = gst_message_get_structure(message);
    guint64 item = 0;
    gst_structure_get_uint64(fields, "item", &item);
    g_print("bus %d %s of item %u\n", screen->number, gst_structure_get_string(fields, "event"), (guint)item);
  }
  return GST_BUS_PASS;
}

static gpointer close_at_line(gpointer playback) {
  if (getchar() != EOF) usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  return NULL;
}

static void start(Screen *screen, const char *uri) {
  GstElement *pictures = gst_parse_bin_from_description(PICTURE_HASH_SINK " signal-handoffs=true", TRUE, NULL);
  GstElement *sound = gst_element_factory_make("fakesink", NULL);
  GstElement *sink = gst_bin_get_by_name(GST_BIN(pictures), "hash");
  screen->pictures.checksum = g_checksum_new(G_CHECKSUM_SHA256);
  screen->playbin = gst_object_ref_sink(gst_element_factory_make("playbin", NULL));
  g_signal_connect(sink, "handoff", G_CALLBACK(picture_hash_take), &screen->pictures);
  gst_object_unref(sink);
  g_object_set(screen->playbin, "uri", uri, "video-sink", pictures, "audio-sink", sound, NULL);
  GstBus *bus = gst_element_get_bus(screen->playbin);
  gst_bus_set_sync_handler(bus, on_message, screen, NULL);
  gst_object_unref(bus);
  gst_element_set_state(screen->playbin, GST_STATE_PLAYING);
}

static void end(Screen *screen) {
  GstBus *bus = gst_element_get_bus(screen->playbin);
  GstMessage *message = gst_bus_timed_pop_filtered(bus, 10 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  GError *error = NULL;
  if (message && GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) gst_message_parse_error(message, &error, NULL);
  /* Go to NULL before reading the pictures: in this state no thread of the pipeline adds another picture. */
  gst_element_set_state(screen->playbin, GST_STATE_NULL);
  const Hash *hash = &screen->pictures;
  g_print("%s, %u pictures\n", message ? GST_MESSAGE_TYPE_NAME(message) : "nothing", hash->count);
  if (hash->count > 0) g_print("sha256 %s\n", g_checksum_get_string(hash->checksum));
  if (error) g_print("error %s/%d: %s\n", g_quark_to_string(error->domain), error->code, error->message);
  g_clear_error(&error);
  gst_clear_message(&message);
  gst_bus_set_sync_handler(bus, NULL, NULL, NULL);
  gst_object_unref(bus);
  gst_object_unref(screen->playbin);
  gst_context_unref(screen->shared);
  g_checksum_free(screen->pictures.checksum);
}

int main(int argc, char **argv) {
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  Screen screens[SCREENS_MAX] = {0};
  gst_init(&argc, &argv);
  int count = argc - 5;
  if (count < 1 || count > SCREENS_MAX) return 2;
  gboolean own = strcmp(argv[1], "context") != 0;
  usher_ssp_options ssp = {.struct_size = sizeof ssp, .license_url = argv[3], .ssm_url = argv[4]};
  usher_playback_options item = {.struct_size = sizeof item, .content_token = argv[5]};
  if (usher_context_new(NULL, &context) || usher_context_add_observer(context, on_event, NULL, NULL, NULL) ||
      usher_ssp_delegate_new(context, &ssp, &delegate) || usher_context_set_delegate(context, delegate) ||
      usher_player_new(context, &player) || (own && usher_player_play(player, &item, &playback)))
    return 3;
  if (strcmp(argv[1], "closed") == 0) usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  if (own) g_thread_unref(g_thread_new("line", close_at_line, playback));
  for (int i = 0; i < count; i++) {
    screens[i].number = i + 1;
    screens[i].shared = gst_context_new("usher.session", FALSE);
    GstStructure *fields = gst_context_writable_structure(screens[i].shared);
    gst_structure_set(fields, "context", G_TYPE_POINTER, context, NULL);
    if (own) gst_structure_set(fields, "playback", G_TYPE_POINTER, playback, NULL);
    else
      gst_structure_set(fields, "license", G_TYPE_STRING, argv[3], "ssm", G_TYPE_STRING, argv[4], "token",
          G_TYPE_STRING, argv[5 + i], NULL);
    start(&screens[i], argv[2]);
  }
  for (int i = 0; i < count; i++) end(&screens[i]);
  int32_t state = USHER_SESSION_NONE;
  if (own) usher_playback_session_state(playback, &state);
  g_print("the application's session is %s\n", state == USHER_SESSION_ACTIVE ? "active" : "not active");
  usher_context_close(context, 0, NULL);
  usher_context_free(context);
  return 0;
}
