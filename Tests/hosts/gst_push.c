/*
 * gst_push.c - pushes encrypted samples into usherdecrypt at chosen moments.
 *   gst_push stop LICENSE_URL SSM_URL TOKEN
 *     stops the element while another thread ends a flush and pushes a sample; prints how long the stop took
 *   gst_push twice LICENSE_URL SSM_URL TOKEN
 *     pushes a sample into an element, then into another one whose SSM URL is wrong, while the application's log
 *     function is slow; prints their error messages
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <gst/gst.h>
#include <gst/gstprotection.h>
#include <string.h>

static char **places; /* the command-line arguments after the first one */
static gint returned;

static GstBuffer *bytes(gsize size) {
  GstBuffer *buffer = gst_buffer_new_allocate(NULL, size, NULL);
  gst_buffer_memset(buffer, 0, 1, size);
  return buffer;
}

static void push(GstPad *source) {
  GstBuffer *sample = bytes(64), *key_id = bytes(16), *iv = bytes(8);
  gst_buffer_add_protection_meta(
      sample, gst_structure_new("application/x-cenc", "encrypted", G_TYPE_BOOLEAN, TRUE, "kid", GST_TYPE_BUFFER, key_id,
                  "iv", GST_TYPE_BUFFER, iv, "iv_size", G_TYPE_UINT, 8, "subsample_count", G_TYPE_UINT, 0, NULL));
  gst_buffer_unref(key_id);
  gst_buffer_unref(iv);
  g_print("push: %s\n", gst_flow_get_name(gst_pad_push(source, sample)));
}

/* Adds an element to the pipeline, and begins its stream. @return the pad that pushes into it. */
static GstPad *add_element(GstElement *pipeline, const char *ssm) {
  GstElement *decrypt = gst_element_factory_make("usherdecrypt", NULL);
  GstPad *source = gst_pad_new("source", GST_PAD_SRC), *sink = gst_element_get_static_pad(decrypt, "sink");
  GstSegment segment;
  g_object_set(decrypt, "license", places[0], "ssm", ssm, "token", places[2], "license-timeout", 5000, NULL);
  gst_bin_add(GST_BIN(pipeline), decrypt);
  gst_pad_link(source, sink);
  gst_pad_set_active(source, TRUE);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  gst_pad_push_event(source, gst_event_new_stream_start("stream"));
  GstCaps *caps = gst_caps_from_string("application/x-cenc, original-media-type=(string)video/x-h264, "
                                       "protection-system=(string)1077efec-c0b2-4d02-ace3-3c1e52e2fb4b");
  gst_pad_push_event(source, gst_event_new_caps(caps));
  gst_caps_unref(caps);
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_pad_push_event(source, gst_event_new_segment(&segment));
  gst_object_unref(sink);
  return source;
}

/* ---- stop ------------------------------------------------------------------------------------------------------- */

static gpointer flush_and_push(gpointer source) {
  GstPad *sink = gst_pad_get_peer(source);
  gst_pad_send_event(sink, gst_event_new_flush_start());
  gst_pad_send_event(sink, gst_event_new_flush_stop(TRUE));
  push(source);
  gst_object_unref(sink);
  g_atomic_int_set(&returned, 1);
  return NULL;
}

/* GStreamer calls this function while the element stops, to deactivate the source pad; the sink pad is still active.
   The function starts another thread, which ends a flush and pushes a sample into the element. The function returns
   when that thread has returned from the element, or after one second, because it then waits in the element. */
static gboolean on_deactivation(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active) {
  (void)parent, (void)mode;
  if (active) return TRUE;
  GThread *thread = g_thread_new("flush", flush_and_push, g_object_get_data(G_OBJECT(pad), "source"));
  gint64 end = g_get_monotonic_time() + G_TIME_SPAN_SECOND;
  while (!g_atomic_int_get(&returned) && g_get_monotonic_time() < end) g_thread_yield();
  g_thread_unref(thread);
  return TRUE;
}

static void stop(GstElement *pipeline) {
  GstPad *source = add_element(pipeline, places[1]), *sink = gst_pad_get_peer(source);
  GstElement *decrypt = gst_pad_get_parent_element(sink);
  GstPad *out = gst_element_get_static_pad(decrypt, "src");
  g_object_set_data(G_OBJECT(out), "source", source);
  gst_pad_set_activatemode_function(out, on_deactivation);
  gint64 begin = g_get_monotonic_time();
  gst_element_set_state(pipeline, GST_STATE_NULL);
  g_print("stopped in %d ms\n", (int)((g_get_monotonic_time() - begin) / 1000));
  gst_object_unref(out);
  gst_object_unref(decrypt);
  gst_object_unref(sink);
  gst_object_unref(source);
}

/* ---- twice ------------------------------------------------------------------------------------------------------ */

static void print_error(GstElement *pipeline) {
  GstBus *bus = gst_element_get_bus(pipeline);
  GstMessage *message = gst_bus_timed_pop_filtered(bus, 5 * GST_SECOND, GST_MESSAGE_ERROR);
  GError *error = NULL;
  if (message) gst_message_parse_error(message, &error, NULL);
  g_print("error: %s\n", error ? error->message : "none");
  g_clear_error(&error);
  gst_clear_message(&message);
  gst_object_unref(bus);
}

/* The log function of this application, which is slow on purpose: it waits for half a second at a line about
   `ssm_url`. */
static void on_log(GstDebugCategory *category, GstDebugLevel level, const gchar *file, const gchar *function, gint line,
    GObject *object, GstDebugMessage *message, gpointer user_data) {
  (void)category, (void)level, (void)file, (void)function, (void)line, (void)object, (void)user_data;
  if (strstr(gst_debug_message_get(message), "ssm_url")) g_usleep(G_USEC_PER_SEC / 2);
}

static void twice(GstElement *pipeline) {
  gst_debug_add_log_function(on_log, NULL, NULL);
  const char *urls[] = {places[1], "foo"};
  for (int i = 0; i < 2; i++) {
    GstPad *source = add_element(pipeline, urls[i]);
    push(source);
    print_error(pipeline);
    gst_object_unref(source);
  }
  gst_element_set_state(pipeline, GST_STATE_NULL);
}

int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  if (argc != 5) return 2;
  places = argv + 2;
  GstElement *pipeline = gst_object_ref_sink(gst_pipeline_new(NULL));
  if (strcmp(argv[1], "stop") == 0) stop(pipeline);
  else twice(pipeline);
  gst_object_unref(pipeline);
  return 0;
}
