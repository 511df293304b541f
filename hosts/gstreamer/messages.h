/*
 * messages.h - makes the messages of the plug-in for the bus: one for each event of a session, and one error message
 * when an item must stop. The README describes their fields.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_GST_MESSAGES_H
#define USHER_GST_MESSAGES_H

#include <gst/gst.h>
#include <usher/usher.h>

G_BEGIN_DECLS

/** An error message that is not posted yet. */
typedef struct UsherFailure UsherFailure;

UsherFailure *usher_failure_new(GQuark domain, gint code, const gchar *text, const gchar *debug);
/** Returns the error message for an error that libusher reports. */
UsherFailure *usher_failure_of(const usher_error *error);
/** Posts the error message of an element, and frees it. */
void usher_failure_post(UsherFailure *failure, GstElement *element);
void usher_failure_free(UsherFailure *failure);

/** Returns the element message about an event. `item`: the number of the item; `screen` may be NULL. */
GstStructure *usher_message_new(const usher_event *event, guint64 item, const gchar *screen);

G_END_DECLS

#endif /* USHER_GST_MESSAGES_H */
