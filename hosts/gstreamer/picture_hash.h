/* picture_hash.h - counts and hashes decoded pictures. SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_GST_PICTURE_HASH_H
#define USHER_GST_PICTURE_HASH_H

#include <gst/gst.h>
#include <gst/video/video.h>

typedef struct {
  GChecksum *checksum;
  guint count;
} Hash;

/* The bin description of a sink for picture_hash_take(). */
#define PICTURE_HASH_SINK "videoconvert ! video/x-raw,format=I420 ! fakesink name=hash"

/* The handler of the signal `handoff` of a fakesink; `user_data`: a Hash. Adds an I420 picture, without the padding of
   its rows. A streaming thread calls it. */
static inline void picture_hash_take(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer user_data) {
  Hash *hash = user_data;
  GstCaps *caps = gst_pad_get_current_caps(pad);
  GstVideoInfo info;
  GstVideoFrame frame;
  (void)sink;
  if (caps && gst_video_info_from_caps(&info, caps) && gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ)) {
    for (guint plane = 0; plane < 3; plane++) {
      const guint8 *row = GST_VIDEO_FRAME_PLANE_DATA(&frame, plane);
      for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, plane); y++) {
        g_checksum_update(hash->checksum, row, GST_VIDEO_FRAME_COMP_WIDTH(&frame, plane));
        row += GST_VIDEO_FRAME_PLANE_STRIDE(&frame, plane);
      }
    }
    gst_video_frame_unmap(&frame);
    hash->count++;
  }
  gst_clear_caps(&caps);
}

#endif
