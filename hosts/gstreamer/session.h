/*
 * session.h - one item that plays. The decryptors of all its streams share its usher playback and its keys.
 *
 * All decryptors below the same top element (the pipeline) that have the same `screen` share an usher_player. Those
 * that also have the same stream group and the same settings share a session. The session ends when the top element
 * goes from PAUSED to READY, when a new item begins on the screen, or three seconds after its last decryptor has left.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_GST_SESSION_H
#define USHER_GST_SESSION_H

#include "settings.h"

G_BEGIN_DECLS

typedef struct UsherSession UsherSession;

/** The answer of usher_session_key(). */
typedef enum {
  USHER_KEY_FOUND,
  /** The element flushes, or the session is closed. */
  USHER_KEY_FLUSHING,
  /** The session has failed; the error is on the bus. */
  USHER_KEY_FAILED,
  /** The session has failed; another element has posted the error. */
  USHER_KEY_FAILED_BEFORE,
} UsherKeyResult;

/**
 * Joins the session of the element's item, or begins it. Does not wait for a server. If the settings are wrong, the
 * session fails at once, with an error message on the bus.
 *
 * @param element  the decryptor.
 * @param asked    its settings; copied.
 * @param wrong    the reason why its settings cannot be used; NULL if they can be used.
 * @param group    the group id of its stream; 0: unknown.
 */
UsherSession *usher_session_join(GstElement *element, const UsherSettings *asked, const GError *wrong, guint group);
/** Leaves the session, and never waits. Afterwards the pointer is not valid any more. */
void usher_session_leave(UsherSession *session, GstElement *element);

/** Requests the licence for keys that the stream will need. Does not wait. */
void usher_session_announce(UsherSession *session, const guint8 *key_ids, gsize count);
/**
 * Gets a key. If no element has requested the licence for this key, requests it. Waits for the key; the wait also ends
 * when the session ends, or when `*halted` is not 0 (see usher_session_wake()). Returns USHER_KEY_FOUND, with the key
 * in `key`, or the reason why there is no key.
 */
UsherKeyResult usher_session_key(
    UsherSession *session, GstElement *element, const guint8 *key_id, const guint *halted, guint8 *key);
/** Returns USHER_KEY_FOUND if the stream may continue, otherwise the reason. The element calls this for each sample. */
UsherKeyResult usher_session_state(UsherSession *session, GstElement *element, const guint *halted);
/** Wakes the threads in usher_session_key(), so that they read `*halted` again. */
void usher_session_wake(UsherSession *session);
/**
 * Ends the session because the element cannot continue. Posts the error on the bus, unless the session has already
 * ended. Returns USHER_KEY_FAILED; USHER_KEY_FLUSHING if the session had already ended.
 */
UsherKeyResult usher_session_fail(
    UsherSession *session, GQuark domain, gint code, const gchar *text, const gchar *debug);

G_END_DECLS

#endif /* USHER_GST_SESSION_H */
