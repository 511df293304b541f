/*
 * session.c - see session.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "session.h"

#include "host.h"
#include "keys.h"
#include "messages.h"

#include <string.h>

#define GST_CAT_DEFAULT usher_decrypt_debug
/* How long a session continues after its last decryptor has left. If the key or the DASH period has changed, new
   decryptors can join the session during this time. */
#define LINGER (3 * GST_SECOND)

struct UsherSession {
  gint refs;
  gconstpointer top; /* the pipeline; used only for comparison */
  UsherHost *host; /* NULL if the session could not begin, or uses the application's playback */
  UsherSettings *asked, *used;
  guint group;
  guint64 tag;
  usher_playback *playback;
  GList *users; /* the decryptors that have joined */
  UsherKeys *keys;
  GCond changed;
  GstClockID linger;
  /* closed: the playback of the session is closed. replaced: a newer item plays on the screen; the session keeps its
     keys, so that elements can decrypt the last samples of this item. failed: the session has ended with an error,
     which it has posted or keeps in `unposted`. */
  gboolean closed, replaced, failed;
  /* The users of the session that have received a sample. decodebin may suppress the error messages of an element that
     has received no sample yet. So if no user has received a sample, the error stays in `unposted` until a user
     receives one. */
  GList *streams;
  UsherFailure *unposted;
};

static GMutex join_lock; /* held while an element joins; lock it before usher_lock */
static GList *sessions; /* the open sessions, and the failed ones that still have users */
/* The tags of the plug-in's playbacks begin here, so that they differ from the tags of an application that shares its
   context. */
#define FIRST_TAG G_GUINT64_CONSTANT(0x7573686572000000)
static guint64 last_tag = FIRST_TAG;

/* ---- life ------------------------------------------------------------------------------------------------------- */

static UsherSession *session_ref(UsherSession *session) {
  g_atomic_int_inc(&session->refs);
  return session;
}

static void session_unref(void *user_data) {
  UsherSession *session = user_data;
  if (!g_atomic_int_dec_and_test(&session->refs)) return;
  usher_keys_free(session->keys);
  usher_failure_free(session->unposted);
  usher_settings_free(session->asked);
  usher_settings_free(session->used);
  usher_host_unref(session->host);
  g_cond_clear(&session->changed);
  g_free(session);
}

/* Marks the session as closed. Returns the playback that must be closed, or NULL. The caller holds the lock, and calls
   close_playback() after it has released the lock. */
static usher_playback *take_playback(UsherSession *session) {
  usher_playback *playback = session->used && session->used->playback ? NULL : session->playback;
  session->playback = NULL;
  session->closed = TRUE;
  usher_keys_clear(session->keys);
  g_cond_broadcast(&session->changed);
  return playback;
}

/* Returns at once: the library tears the session down in the background. */
static void close_playback(usher_playback *playback) {
  if (!playback) return;
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  usher_playback_free(playback);
}

/* Removes the session from the list. The caller holds the lock, and has another reference to the session. */
static void forget(UsherSession *session) {
  GList *link = g_list_find(sessions, session);
  if (!link) return;
  sessions = g_list_delete_link(sessions, link);
  session_unref(session);
}

static GstElement *top_of(GstElement *element) {
  GstObject *top = gst_object_ref(element), *parent;
  while ((parent = gst_object_get_parent(top))) {
    gst_object_unref(top);
    top = parent;
  }
  return GST_ELEMENT(top);
}

/* ---- failing ---------------------------------------------------------------------------------------------------- */

/* Ends the session with an error, unless the session has already ended. Posts the error on the bus as soon as decodebin
   would not suppress it. Returns TRUE if this call has ended the session. */
static gboolean fail_with(UsherSession *session, UsherFailure *failure) {
  usher_playback *playback = NULL;
  GstElement *element = NULL;
  g_mutex_lock(&usher_lock);
  gboolean fails = !session->failed && !session->closed && !session->replaced;
  if (fails) {
    session->failed = TRUE;
    playback = take_playback(session);
    if (session->streams) element = gst_object_ref(session->streams->data);
    else session->unposted = g_steal_pointer(&failure);
  }
  g_mutex_unlock(&usher_lock);
  close_playback(playback);
  if (element) usher_failure_post(g_steal_pointer(&failure), element);
  g_clear_object(&element);
  usher_failure_free(failure);
  return fails;
}

UsherKeyResult usher_session_fail(
    UsherSession *session, GQuark domain, gint code, const gchar *text, const gchar *debug) {
  return fail_with(session, usher_failure_new(domain, code, text, debug)) ? USHER_KEY_FAILED : USHER_KEY_FLUSHING;
}

/* Ends the session because of an error that libusher reports. */
static void fail(UsherSession *session, const usher_error *error) { fail_with(session, usher_failure_of(error)); }

/* ---- events ----------------------------------------------------------------------------------------------------- */

/* The caller holds the lock. */
static UsherSession *find_by_event(const UsherHost *host, const usher_event *event) {
  for (GList *each = sessions; each; each = each->next) {
    UsherSession *session = each->data;
    gboolean same = session->playback ? session->playback == event->playback : session->tag == event->tag;
    if (session->host == host && same) return session_ref(session);
  }
  return NULL;
}

void usher_session_event(UsherHost *host, const usher_event *event) {
  g_mutex_lock(&usher_lock);
  UsherSession *session = find_by_event(host, event);
  gboolean ours = session || event->player == host->player;
  g_mutex_unlock(&usher_lock);
  if (!ours) return; /* this event belongs to another user of the context: the application or another host */
  guint64 item = event->tag - (event->tag < FIRST_TAG ? 0 : FIRST_TAG);
  usher_host_post(host, usher_message_new(event, item, host->screen));
  if (!session) return;
  if (event->error.must_stop) fail(session, &event->error);
  session_unref(session);
}

/* ---- licences --------------------------------------------------------------------------------------------------- */

/* A licence request that is in flight. */
typedef struct {
  UsherSession *session;
  guint count;
  guint8 key_ids[];
} Request;

static void free_request(void *user_data) {
  Request *request = user_data;
  session_unref(request->session);
  g_free(request);
}

/* Stores the keys of a licence. @return NULL, or the reason why the licence cannot be used. */
static gchar *take_keys(UsherSession *session, const usher_response_info *response) {
  size_t count;
  gchar *why = NULL;
  usher_clearkey_key *found = usher_keys_read(response, &count, &why);
  if (!found) return why;
  g_mutex_lock(&usher_lock);
  if (!session->closed) usher_keys_add(session->keys, found, count);
  g_mutex_unlock(&usher_lock);
  usher_keys_forget(found, count);
  return NULL;
}

/* Marks as missing those keys of a request that have not arrived, so that no thread waits for them any more. */
static void end_wait(UsherSession *session, const guint8 *key_ids, guint count) {
  g_mutex_lock(&usher_lock);
  usher_keys_give_up(session->keys, key_ids, count);
  g_cond_broadcast(&session->changed);
  g_mutex_unlock(&usher_lock);
}

static void on_license(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  Request *request = user_data;
  UsherSession *session = request->session;
  usher_error error = response->error;
  gchar *why = error.status ? NULL : take_keys(session, response);
  if (why) {
    error = (usher_error){0};
    error.status = USHER_E_PROTOCOL, error.origin = USHER_ORIGIN_LICENSE, error.operation = USHER_OPERATION_LICENSE;
    error.http_status = -1, error.message = why, error.must_stop = 1;
  }
  if (error.status) fail(session, &error);
  end_wait(session, request->key_ids, request->count);
  g_free(why);
}

/* The library calls this with each licence that it has renewed itself. */
static void on_renewed(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  gchar *why = response->error.status ? NULL : take_keys(user_data, response);
  if (why) GST_WARNING("a renewed licence cannot be used: %s", why);
  g_free(why);
}

/* The payload callback: the library must renew the licence, and asks for a request for all keys of the session. */
static void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  (void)playback, (void)key_system, (void)tag;
  UsherSession *session = user_data;
  size_t size;
  g_mutex_lock(&usher_lock);
  GByteArray *key_ids = usher_keys_ids(session->keys);
  g_mutex_unlock(&usher_lock);
  guint8 *payload = key_ids->len ? usher_keys_request(key_ids->data, key_ids->len / 16, &size) : NULL;
  usher_complete_payload(completion, payload, payload ? size : 0);
  g_free(payload);
  g_byte_array_unref(key_ids);
}

/* Requests the licence for keys that the caller has marked as pending. */
static void request_license(UsherSession *session, usher_playback *playback, const guint8 *key_ids, guint count) {
  usher_license_request asked = USHER_LICENSE_REQUEST_INIT;
  size_t size;
  guint8 *payload = usher_keys_request(key_ids, count, &size);
  Request *request = g_malloc(sizeof *request + 16 * (gsize)count);
  request->session = session_ref(session);
  request->count = count;
  memcpy(request->key_ids, key_ids, 16 * (gsize)count);
  asked.key_system = USHER_KEY_SYSTEM_CLEARKEY;
  asked.payload = payload;
  asked.payload_size = payload ? size : 0;
  asked.timeout_ms = (uint32_t)session->used->license_timeout;
  session_ref(session);
  int32_t status = usher_playback_request_license(playback, &asked, on_license, request, free_request);
  if (status) {
    usher_error error = {0};
    error.status = status, error.http_status = -1, error.operation = USHER_OPERATION_LICENSE, error.must_stop = 1;
    error.message = usher_status_message(status);
    /* The call also fails if another thread of the plug-in has just closed the playback. In this case fail() does
       nothing. */
    fail(session, &error);
    end_wait(session, key_ids, count);
  }
  session_unref(session);
  g_free(payload);
}

void usher_session_announce(UsherSession *session, const guint8 *key_ids, gsize count) {
  GByteArray *fresh = g_byte_array_new();
  g_mutex_lock(&usher_lock);
  usher_playback *playback = session->closed || session->replaced ? NULL : session->playback;
  for (const guint8 *each = key_ids; playback && each < key_ids + 16 * count; each += 16)
    if (usher_keys_expect(session->keys, each)) g_byte_array_append(fresh, each, 16);
  g_mutex_unlock(&usher_lock);
  if (fresh->len) request_license(session, playback, fresh->data, fresh->len / 16);
  g_byte_array_unref(fresh);
}

static UsherKeyResult no_key(UsherSession *session, const guint8 *key_id) {
  GString *debug = g_string_new("The licence has no key for key id ");
  for (int i = 0; i < 16; i++) g_string_append_printf(debug, "%02x", key_id[i]);
  UsherKeyResult result = usher_session_fail(session, GST_STREAM_ERROR, GST_STREAM_ERROR_DECRYPT_NOKEY,
      "The licence does not have the key of this item. It cannot be played.", debug->str);
  g_string_free(debug, TRUE);
  return result;
}

/* Returns USHER_KEY_FOUND if the stream may continue, otherwise the reason. If the caller must post an error, moves the
   error to `*unposted`. The caller holds the lock. */
static UsherKeyResult stops(UsherSession *session, GstElement *element, const guint *halted, UsherFailure **unposted) {
  *unposted = NULL;
  if (!g_list_find(session->streams, element)) session->streams = g_list_prepend(session->streams, element);
  if (session->failed) *unposted = g_steal_pointer(&session->unposted);
  if (*unposted) return USHER_KEY_FAILED;
  if (session->failed) return USHER_KEY_FAILED_BEFORE;
  return session->closed || g_atomic_int_get(halted) ? USHER_KEY_FLUSHING : USHER_KEY_FOUND;
}

UsherKeyResult usher_session_state(UsherSession *session, GstElement *element, const guint *halted) {
  UsherFailure *unposted;
  g_mutex_lock(&usher_lock);
  UsherKeyResult result = stops(session, element, halted, &unposted);
  g_mutex_unlock(&usher_lock);
  if (unposted) usher_failure_post(unposted, element);
  return result;
}

UsherKeyResult usher_session_key(
    UsherSession *session, GstElement *element, const guint8 *key_id, const guint *halted, guint8 *key) {
  UsherFailure *unposted;
  UsherKeyResult result;
  gboolean missing = FALSE;
  usher_session_announce(session, key_id, 1);
  g_mutex_lock(&usher_lock);
  while ((result = stops(session, element, halted, &unposted)) == USHER_KEY_FOUND) {
    UsherKeyState state = usher_keys_find(session->keys, key_id, key);
    if (state == USHER_KEYS_PENDING) {
      g_cond_wait(&session->changed, &usher_lock);
      continue;
    }
    if (state == USHER_KEYS_READY) break;
    if (session->replaced) result = USHER_KEY_FLUSHING;
    else missing = TRUE;
    break;
  }
  g_mutex_unlock(&usher_lock);
  if (unposted) usher_failure_post(unposted, element);
  return missing ? no_key(session, key_id) : result;
}

void usher_session_wake(UsherSession *session) {
  g_mutex_lock(&usher_lock);
  g_cond_broadcast(&session->changed);
  g_mutex_unlock(&usher_lock);
}

/* ---- beginning -------------------------------------------------------------------------------------------------- */

static int32_t make_delegate(usher_context *context, const UsherSettings *settings, usher_delegate **delegate) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  ssp.license_url = settings->license_url;
  ssp.ssm_url = settings->ssm_url;
  ssp.token_header = settings->token_header;
  ssp.extra_headers = settings->extra_headers;
  ssp.slot_wait_ms = (uint32_t)settings->slot_wait;
  if (settings->ssp_version == 2) {
    usher_ssp_v2_options v2 = USHER_SSP_V2_OPTIONS_INIT;
    v2.ssp = &ssp;
    v2.teardown_on_close = 1;
    return usher_ssp_v2_delegate_new(context, &v2, delegate);
  }
  if (settings->ssm_url) return usher_ssp_delegate_new(context, &ssp, delegate);
  usher_default_options plain = USHER_DEFAULT_OPTIONS_INIT;
  plain.license_url = settings->license_url;
  plain.token_header = settings->token_header;
  plain.extra_headers = settings->extra_headers;
  return usher_default_delegate_new(context, &plain, delegate);
}

/* Starts the playback; the library sets the session up in the background. The caller does not hold the lock. Returns
   USHER_OK, or why this failed. */
static int32_t begin(UsherSession *session, usher_context *context, usher_player *player, usher_playback **playback) {
  usher_delegate *delegate = NULL;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  int32_t status = make_delegate(context, session->used, &delegate);
  if (status) return status;
  item.delegate = delegate;
  item.content_token = session->used->content_token;
  item.tag = session->tag;
  item.payload = on_payload;
  item.renewed = on_renewed;
  item.user_data = session_ref(session);
  item.destroy = session_unref;
  status = usher_player_play(player, &item, playback);
  usher_delegate_free(delegate);
  return status;
}

static UsherSession *session_new(const UsherSettings *asked, guint group, gconstpointer top) {
  UsherSession *session = g_new0(UsherSession, 1);
  session->refs = 1;
  session->asked = usher_settings_new();
  usher_settings_add(session->asked, asked);
  session->group = group;
  session->top = top;
  session->tag = ++last_tag;
  session->keys = usher_keys_new();
  g_cond_init(&session->changed);
  return session;
}

static void fail_settings(UsherSession *session, const GError *wrong) {
  usher_session_fail(session, wrong->domain, wrong->code, wrong->message, "See the README of the plug-in.");
}

/* Ends the session because libusher refused a call that start() made on this thread. */
static void fail_status(UsherSession *session, int32_t status) {
  gchar *refusal = usher_host_take_refusal();
  gchar *text = g_strdup_printf("The session cannot begin: %s.", refusal ? refusal : usher_status_message(status));
  gint code = status == USHER_E_INVALID_ARGUMENT ? GST_RESOURCE_ERROR_SETTINGS : GST_RESOURCE_ERROR_FAILED;
  usher_session_fail(session, GST_RESOURCE_ERROR, code, text, usher_status_name(status));
  g_free(text);
  g_free(refusal);
}

static gboolean shares(const UsherSession *session, const UsherSettings *asked, guint group, GstElement *top) {
  gboolean alive = !session->closed || (session->failed && session->users);
  gboolean same_top = session->top == top && !(session->host && session->host->closing);
  return alive && same_top && !session->replaced && session->group == group &&
         usher_settings_equal(session->asked, asked);
}

static UsherSession *find_shared(GstElement *element, const UsherSettings *asked, guint group, GstElement *top) {
  UsherSession *session = NULL;
  g_mutex_lock(&usher_lock);
  for (GList *each = sessions; each && !session; each = each->next)
    if (shares(each->data, asked, group, top)) session = session_ref(each->data);
  if (session) session->users = g_list_prepend(session->users, element);
  g_mutex_unlock(&usher_lock);
  return session;
}

/* Makes the session's host and playback, and adds the session to the list. Returns USHER_OK, or why this failed. */
static int32_t start(UsherSession *session, GstElement *element, GstElement *top) {
  usher_playback *playback = NULL;
  int32_t status = USHER_OK;
  /* Remove the refusal of an earlier session, so that it does not appear in an error of this session. */
  g_free(usher_host_take_refusal());
  if (session->used->context || !session->used->playback) session->host = usher_host_get(top, session->used, &status);
  g_mutex_lock(&usher_lock);
  session->playback = session->used->playback;
  for (GList *each = sessions; each && !session->playback; each = each->next) {
    UsherSession *older = each->data;
    if (session->host && older->host == session->host) older->replaced = TRUE;
  }
  session->users = g_list_prepend(NULL, element);
  sessions = g_list_prepend(sessions, session_ref(session));
  usher_context *context = session->host ? session->host->context : NULL;
  usher_player *player = session->host ? session->host->player : NULL;
  g_mutex_unlock(&usher_lock);
  if (status || session->used->playback) return status;
  status = begin(session, context, player, &playback);
  g_mutex_lock(&usher_lock);
  if (!session->closed) session->playback = playback, playback = NULL;
  g_mutex_unlock(&usher_lock);
  close_playback(playback);
  return status;
}

UsherSession *usher_session_join(GstElement *element, const UsherSettings *asked, const GError *wrong, guint group) {
  GError *error = wrong ? g_error_copy(wrong) : NULL;
  int32_t status = USHER_OK;
  GstElement *top = top_of(element);
  g_mutex_lock(&join_lock);
  UsherSession *session = find_shared(element, asked, group, top);
  gboolean shared = session != NULL;
  if (!shared) {
    session = session_new(asked, group, top);
    session->used = usher_settings_new();
    usher_settings_add(session->used, asked);
    if (!error && usher_settings_complete(session->used, &error)) {
      status = start(session, element, top);
    } else {
      g_mutex_lock(&usher_lock);
      session->users = g_list_prepend(NULL, element);
      sessions = g_list_prepend(sessions, session_ref(session));
      g_mutex_unlock(&usher_lock);
    }
    /* The keys must be in the session before other elements join it. The session has no stream yet, so no error is
       posted here. */
    if (error) fail_settings(session, error);
    else if (status) fail_status(session, status);
  }
  g_mutex_unlock(&join_lock);
  gst_object_unref(top);
  if (shared && error) fail_settings(session, error);
  g_clear_error(&error);
  return session;
}

/* ---- ending ----------------------------------------------------------------------------------------------------- */

static gboolean on_linger(GstClock *clock, GstClockTime time, GstClockID id, gpointer user_data) {
  (void)clock, (void)time;
  UsherSession *session = user_data;
  usher_playback *playback = NULL;
  g_mutex_lock(&usher_lock);
  if (session->linger == id && !session->users) {
    playback = take_playback(session);
    forget(session);
  }
  g_mutex_unlock(&usher_lock);
  close_playback(playback);
  return TRUE;
}

void usher_session_leave(UsherSession *session, GstElement *element) {
  usher_playback *playback = NULL;
  GstElement *top = session->host ? g_weak_ref_get(&session->host->top) : NULL; /* decodebin removes elements first */
  gboolean stops = !top || GST_STATE_TARGET(top) < GST_STATE_PAUSED;
  GstClock *clock = gst_system_clock_obtain();
  GstClockID linger = NULL;
  g_mutex_lock(&usher_lock);
  session->users = g_list_remove(session->users, element);
  session->streams = g_list_remove(session->streams, element);
  if (!session->users) {
    if (stops || session->replaced || session->closed) {
      playback = take_playback(session);
      forget(session);
    } else {
      linger = gst_clock_new_single_shot_id(clock, gst_clock_get_time(clock) + LINGER);
      session->linger = linger;
    }
  }
  g_mutex_unlock(&usher_lock);
  close_playback(playback);
  if (linger) {
    gst_clock_id_wait_async(linger, on_linger, session_ref(session), session_unref);
    gst_clock_id_unref(linger);
  }
  gst_object_unref(clock);
  g_clear_object(&top);
  session_unref(session);
}
