/*
 * keys.h - the keys of a session, and the Clear Key requests and licences for them.
 *
 * The caller of every function with a UsherKeys holds usher_lock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_GST_KEYS_H
#define USHER_GST_KEYS_H

#include <glib.h>
#include <usher/usher.h>

G_BEGIN_DECLS

/** The keys of a session by key id. */
typedef struct _GHashTable UsherKeys;

typedef enum {
  /** No element has asked for the key, or there are too many keys. */
  USHER_KEYS_UNKNOWN,
  /** A licence request for the key is in flight. */
  USHER_KEYS_PENDING,
  USHER_KEYS_READY,
  /** The licence request has ended, but the key has not arrived: the licence lacks it, or no licence has arrived. */
  USHER_KEYS_MISSING,
} UsherKeyState;

UsherKeys *usher_keys_new(void);
void usher_keys_free(UsherKeys *keys);
/** Wipes and removes all keys. */
void usher_keys_clear(UsherKeys *keys);

/** Adds a pending key. @return FALSE if the key id is already known, or if there are too many keys. */
gboolean usher_keys_expect(UsherKeys *keys, const guint8 *key_id);
/** Adds the keys of a licence. */
void usher_keys_add(UsherKeys *keys, const usher_clearkey_key *found, size_t count);
/** Marks as missing each of these keys that is still pending. */
void usher_keys_give_up(UsherKeys *keys, const guint8 *key_ids, guint count);
/** Returns the state of a key; copies the key if it is ready. */
UsherKeyState usher_keys_find(UsherKeys *keys, const guint8 *key_id, guint8 *key);
/** Returns all key ids; the caller frees the array. */
GByteArray *usher_keys_ids(UsherKeys *keys);

/** Makes a licence request. @return the request, which the caller frees; NULL if libusher refused the key ids. */
guint8 *usher_keys_request(const guint8 *key_ids, gsize count, size_t *size);
/** Reads a licence. @return its `*count` keys; free them with usher_keys_forget(), which also wipes them. If the
 * licence cannot be used, returns NULL; the caller then frees `*why`, which has the reason. */
usher_clearkey_key *usher_keys_read(const usher_response_info *license, size_t *count, gchar **why);
void usher_keys_forget(usher_clearkey_key *found, size_t count);

G_END_DECLS

#endif /* USHER_GST_KEYS_H */
