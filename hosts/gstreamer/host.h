/*
 * host.h - makes, shares and ends the usher context and player of one screen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_GST_HOST_H
#define USHER_GST_HOST_H

#include "settings.h"

#include <usher/usher.h>

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN(usher_decrypt_debug);

/** One screen. It belongs to the top element of a pipeline. If it has made its usher context, it lives at least as long
 * as this context. */
typedef struct {
  gint refs;
  /** The pipeline. */
  GWeakRef top;
  gchar *screen, *ca_file;
  usher_context *context;
  /** When `closing` is TRUE, this handle is stale: use it only to compare it with the player of an event. */
  usher_player *player;
  /** Whether the application has made the context. */
  gboolean borrowed;
  gboolean closing;
  /** Whether standard error has a warning about a stream whose end the server did not confirm. */
  gboolean warned;
  uint64_t observer;
  gint close_timeout, allow_http;
} UsherHost;

/** One lock for all hosts and sessions. No thread holds it during a call that waits or posts a message. */
extern GMutex usher_lock;

/** The host calls this function for each event of its context, on a callback thread. */
void usher_session_event(UsherHost *host, const usher_event *event);

UsherHost *usher_host_ref(UsherHost *host);
void usher_host_unref(UsherHost *host);

/** Finds or makes the host of a screen. Only one thread at a time may call this, and it must not hold usher_lock. If
 * this call fails, the next call tries again. @return a new reference; NULL on failure, with the reason in `status`. */
UsherHost *usher_host_get(GstElement *top, const UsherSettings *settings, int32_t *status);

/** Returns why libusher has refused a call of this thread since the last call of this function: "setting: reason".
 * Returns NULL if it has refused no call, or if the context is the application's own. Free the result. */
gchar *usher_host_take_refusal(void);

/** Posts an element message on the bus of the top element. Takes ownership of `structure`. */
void usher_host_post(UsherHost *host, GstStructure *structure);

G_END_DECLS

#endif /* USHER_GST_HOST_H */
