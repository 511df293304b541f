/*
 * gst_flush.c - stops usherdecrypt at the moment when another thread ends a flush and pushes an encrypted sample.
 *   gst_flush LICENSE_URL SSM_URL TOKEN
 * The licence server must not reply. Prints how long the change of state took.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <gst/gst.h>
#include <gst/gstprotection.h>
#include <string.h>

static GstPad *source; /* pushes into usherdecrypt */
static GstPad *sink; /* of usherdecrypt */
static gint returned;

static GstBuffer *bytes(gsize size) {
  GstBuffer *buffer = gst_buffer_new_allocate(NULL, size, NULL);
  gst_buffer_memset(buffer, 0, 1, size);
  return buffer;
}

static void push(void) {
  GstBuffer *sample = bytes(64), *key_id = bytes(16), *iv = bytes(8);
  gst_buffer_add_protection_meta(
      sample, gst_structure_new("application/x-cenc", "encrypted", G_TYPE_BOOLEAN, TRUE, "kid", GST_TYPE_BUFFER, key_id,
                  "iv", GST_TYPE_BUFFER, iv, "iv_size", G_TYPE_UINT, 8, "subsample_count", G_TYPE_UINT, 0, NULL));
  gst_buffer_unref(key_id);
  gst_buffer_unref(iv);
  g_print("push: %s\n", gst_flow_get_name(gst_pad_push(source, sample)));
}

static gpointer flush_and_push(gpointer user_data) {
  (void)user_data;
  gst_pad_send_event(sink, gst_event_new_flush_start());
  gst_pad_send_event(sink, gst_event_new_flush_stop(TRUE));
  push();
  g_atomic_int_set(&returned, 1);
  return NULL;
}

/* The element has begun its change of state, and deactivates its source pad; its sink pad is still active. Returns when
 * the other thread waits in the element, or has returned from it. */
static gboolean on_deactivation(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active) {
  (void)pad, (void)parent, (void)mode;
  if (active) return TRUE;
  GThread *thread = g_thread_new("flush", flush_and_push, NULL);
  gint64 end = g_get_monotonic_time() + G_TIME_SPAN_SECOND;
  while (!g_atomic_int_get(&returned) && g_get_monotonic_time() < end) g_thread_yield();
  g_thread_unref(thread);
  return TRUE;
}

int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  if (argc != 4) return 2;
  GstElement *decrypt = gst_element_factory_make("usherdecrypt", NULL);
  if (!decrypt) return 3;
  gst_object_ref_sink(decrypt);
  g_object_set(decrypt, "license", argv[1], "ssm", argv[2], "token", argv[3], "license-timeout", 5000, NULL);
  source = gst_pad_new("source", GST_PAD_SRC);
  sink = gst_element_get_static_pad(decrypt, "sink");
  GstPad *out = gst_element_get_static_pad(decrypt, "src");
  gst_pad_set_activatemode_function(out, on_deactivation);
  gst_pad_link(source, sink);
  gst_pad_set_active(source, TRUE);
  gst_element_set_state(decrypt, GST_STATE_PLAYING);
  gst_pad_push_event(source, gst_event_new_stream_start("stream"));
  GstCaps *caps = gst_caps_from_string("application/x-cenc, original-media-type=(string)video/x-h264, "
                                       "protection-system=(string)1077efec-c0b2-4d02-ace3-3c1e52e2fb4b");
  gst_pad_push_event(source, gst_event_new_caps(caps));
  gst_caps_unref(caps);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_pad_push_event(source, gst_event_new_segment(&segment));
  gint64 begin = g_get_monotonic_time();
  gst_element_set_state(decrypt, GST_STATE_NULL);
  g_print("stopped in %d ms\n", (int)((g_get_monotonic_time() - begin) / 1000));
  gst_object_unref(out);
  gst_object_unref(sink);
  gst_object_unref(source);
  gst_object_unref(decrypt);
  return 0;
}
