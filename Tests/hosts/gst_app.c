/*
 * gst_app.c - an application that uses libusher itself and shares its objects with the GStreamer plug-in.
 *   gst_app context|playback URI LICENSE_URL SSM_URL TOKEN
 * With "context" the plug-in makes its session in the application's context; with "playback" it requests its licences
 * from the application's playback. The application gives its objects as the answer to GST_MESSAGE_NEED_CONTEXT.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <gst/gst.h>
#include <string.h>
#include <usher/usher.h>

static GstContext *shared;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  g_print("app %s\n", usher_event_name(event->type));
}

static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, gpointer user_data) {
  const gchar *type = NULL;
  (void)bus, (void)user_data;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_NEED_CONTEXT && gst_message_parse_context_type(message, &type) &&
      strcmp(type, "usher.session") == 0) {
    gst_element_set_context(GST_ELEMENT(GST_MESSAGE_SRC(message)), shared);
  } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT && gst_message_has_name(message, "usher-session")) {
    g_print("bus %s\n", gst_structure_get_string(gst_message_get_structure(message), "event"));
  }
  return GST_BUS_PASS;
}

static void on_picture(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer pictures) {
  (void)sink, (void)buffer, (void)pad;
  g_atomic_int_inc((gint *)pictures);
}

int main(int argc, char **argv) {
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  gint pictures = 0;
  gst_init(&argc, &argv);
  if (argc != 6) return 2;
  gboolean own = strcmp(argv[1], "playback") == 0;
  usher_ssp_options ssp = {.struct_size = sizeof ssp, .license_url = argv[3], .ssm_url = argv[4]};
  usher_playback_options item = {.struct_size = sizeof item, .content_token = argv[5]};
  if (usher_context_new(NULL, &context) || usher_context_add_observer(context, on_event, NULL, NULL, NULL) ||
      usher_ssp_delegate_new(context, &ssp, &delegate) || usher_context_set_delegate(context, delegate) ||
      usher_player_new(context, &player) || (own && usher_player_play(player, &item, &playback)))
    return 3;
  shared = gst_context_new("usher.session", FALSE);
  GstStructure *fields = gst_context_writable_structure(shared);
  gst_structure_set(fields, "context", G_TYPE_POINTER, context, NULL);
  if (own) gst_structure_set(fields, "playback", G_TYPE_POINTER, playback, NULL);
  else
    gst_structure_set(fields, "license", G_TYPE_STRING, argv[3], "ssm", G_TYPE_STRING, argv[4], "token", G_TYPE_STRING,
        argv[5], NULL);

  GstElement *playbin = gst_object_ref_sink(gst_element_factory_make("playbin", NULL));
  GstElement *screen = gst_element_factory_make("fakesink", NULL),
             *speaker = gst_element_factory_make("fakesink", NULL);
  g_object_set(screen, "signal-handoffs", TRUE, NULL);
  g_signal_connect(screen, "handoff", G_CALLBACK(on_picture), &pictures);
  g_object_set(playbin, "uri", argv[2], "video-sink", screen, "audio-sink", speaker, NULL);
  GstBus *bus = gst_element_get_bus(playbin);
  gst_bus_set_sync_handler(bus, on_message, NULL, NULL);
  gst_element_set_state(playbin, GST_STATE_PLAYING);
  GstMessage *message = gst_bus_timed_pop_filtered(bus, 15 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  g_print("%s, %d pictures\n", message ? GST_MESSAGE_TYPE_NAME(message) : "nothing", g_atomic_int_get(&pictures));
  gst_clear_message(&message);
  gst_element_set_state(playbin, GST_STATE_NULL);
  gst_bus_set_sync_handler(bus, NULL, NULL, NULL);
  gst_object_unref(bus);
  gst_object_unref(playbin);
  gst_context_unref(shared);

  int32_t state = USHER_SESSION_NONE;
  if (own) usher_playback_session_state(playback, &state);
  g_print("the application's session is %s\n", state == USHER_SESSION_ACTIVE ? "active" : "not active");
  usher_context_close(context, 0, NULL);
  usher_context_free(context);
  return 0;
}
