/*
 * plugin.c - the GStreamer plug-in "usher".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "decrypt.h"

#include <usher/usher.h>

static gboolean plugin_init(GstPlugin *plugin) {
  return gst_element_register(plugin, "usherdecrypt", GST_RANK_PRIMARY, usher_decrypt_get_type());
}

#define PACKAGE "usher"
#define TEXT(number) #number
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, usher,
    "Plays encrypted items under a concurrent-stream session", plugin_init,
    VERSION(USHER_VERSION_MAJOR, USHER_VERSION_MINOR, USHER_VERSION_PATCH), "Apache 2.0", "usher",
    "Unknown package origin")
