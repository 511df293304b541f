/*
 * host.c - see host.h.
 *
 * When the pipeline is freed, the host begins to close the context that it has made. When the sessions are torn down,
 * the host frees this context. If the process ends earlier, a handler of atexit() waits for the teardowns, at most
 * `close-timeout`. If the application has made the context, the host only frees its player and removes its observer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"

#include <stdlib.h>
#include <string.h>

#define GST_CAT_DEFAULT usher_decrypt_debug

GMutex usher_lock;
static GPrivate refusal = G_PRIVATE_INIT(g_free);
static GList *with_context; /* the hosts that have made a context which is not freed yet */
static gboolean exiting;

UsherHost *usher_host_ref(UsherHost *host) {
  g_atomic_int_inc(&host->refs);
  return host;
}

void usher_host_unref(UsherHost *host) {
  if (!host || !g_atomic_int_dec_and_test(&host->refs)) return;
  g_weak_ref_clear(&host->top);
  g_free(host->screen);
  g_free(host->ca_file);
  g_free(host);
}

void usher_host_post(UsherHost *host, GstStructure *structure) {
  GstElement *top = g_weak_ref_get(&host->top);
  if (!top) {
    gst_structure_free(structure);
    return;
  }
  gst_element_post_message(top, gst_message_new_element(GST_OBJECT(top), structure));
  gst_object_unref(top);
}

/* ---- the end of a context --------------------------------------------------------------------------------------- */

/* Removes the context from its host and returns it, so that only one thread frees it. */
static usher_context *take(UsherHost *host) {
  g_mutex_lock(&usher_lock);
  usher_context *context = host->context;
  host->context = NULL;
  with_context = g_list_remove(with_context, host);
  g_mutex_unlock(&usher_lock);
  return context;
}

static void begin_close(UsherHost *host) {
  g_mutex_lock(&usher_lock);
  usher_context *context = host->closing ? NULL : host->context;
  host->closing = TRUE;
  g_mutex_unlock(&usher_lock);
  if (!context) return;
  if (host->borrowed) {
    usher_player_free(host->player);
    usher_context_remove_observer(context, host->observer);
  } else {
    usher_context_begin_close(context, (uint32_t)host->close_timeout);
  }
}

/* Prints a warning once, if the server did not confirm the end of a stream while the host closes. At this time the
   pipeline is freed or the process ends, and nobody reads the bus. So the warning goes to standard error. */
static void warn_if_unconfirmed(UsherHost *host, const usher_event *event) {
  gboolean failed = event->type == USHER_EVENT_TEARDOWN_ERROR;
  gboolean lost = event->type == USHER_EVENT_PLAYBACK_CLOSED && event->error.orphan_possible;
  if (host->borrowed || (!failed && !lost)) return;
  g_mutex_lock(&usher_lock);
  gboolean warns = host->closing && !host->warned;
  host->warned = host->warned || warns;
  g_mutex_unlock(&usher_lock);
  if (warns)
    g_printerr("usher: the server did not confirm the end of a stream; it may count that stream for some time.\n");
}

static void on_event(const usher_event *event, void *user_data) {
  UsherHost *host = user_data;
  if (event->type != USHER_EVENT_CONTEXT_CLOSED) {
    usher_session_event(host, event);
    warn_if_unconfirmed(host, event);
  } else if (!host->borrowed) {
    g_mutex_lock(&usher_lock);
    gboolean leave = exiting;
    g_mutex_unlock(&usher_lock);
    if (event->error.status)
      GST_WARNING("a session may still be held: the server has not answered its teardown in time");
    /* This code runs in a callback, so usher_context_free() does not wait here. */
    if (!leave) usher_context_free(take(host));
  }
}

static void on_destroy(void *user_data) { usher_host_unref(user_data); }

static void on_log(int32_t level, const char *line, void *user_data) {
  (void)user_data;
  GstDebugLevel to = level <= USHER_LOG_ERROR     ? GST_LEVEL_ERROR
                     : level == USHER_LOG_WARNING ? GST_LEVEL_WARNING
                     : level == USHER_LOG_INFO    ? GST_LEVEL_INFO
                     : level == USHER_LOG_DEBUG   ? GST_LEVEL_DEBUG
                                                  : GST_LEVEL_TRACE;
  GST_CAT_LEVEL_LOG(usher_decrypt_debug, to, NULL, "%s", line);
}

/* Stores why the library has refused a call. The library calls this on the thread that called the refused function,
   before that function returns. */
static void on_refusal(int32_t status, const char *text, void *user_data) {
  (void)status, (void)user_data;
  g_private_replace(&refusal, usher_settings_rename(text));
}

gchar *usher_host_take_refusal(void) {
  gchar *text = g_strdup(g_private_get(&refusal));
  g_private_replace(&refusal, NULL);
  return text;
}

/* The exit handler of the plug-in. Exit handlers run in reverse order, so it runs before those that libcurl and OpenSSL
   registered when the first context was made. */
static void at_exit(void) {
  g_mutex_lock(&usher_lock);
  exiting = TRUE;
  GList *hosts = g_list_copy_deep(with_context, (GCopyFunc)(void (*)(void))usher_host_ref, NULL);
  g_mutex_unlock(&usher_lock);
  for (GList *each = hosts; each; each = each->next) begin_close(each->data);
  for (GList *each = hosts; each; each = each->next) usher_context_free(take(each->data));
  g_list_free_full(hosts, (GDestroyNotify)usher_host_unref);
}

/* ---- the hosts of a pipeline ------------------------------------------------------------------------------------ */

static GQuark hosts_quark(void) { return g_quark_from_static_string("usher-hosts"); }

static void end_hosts(gpointer list) {
  for (GList *each = list; each; each = each->next) begin_close(each->data);
  g_list_free_full(list, (GDestroyNotify)usher_host_unref);
}

static int32_t make_context(UsherHost *host, const UsherSettings *settings) {
  static gboolean registered;
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  options.ca_file = settings->ca_file;
  options.allow_insecure_http = settings->allow_http;
  options.log = on_log;
  options.refusal = on_refusal;
  GstDebugLevel wanted = gst_debug_category_get_threshold(usher_decrypt_debug);
  options.log_level = wanted >= GST_LEVEL_TRACE   ? USHER_LOG_TRACE
                      : wanted >= GST_LEVEL_DEBUG ? USHER_LOG_DEBUG
                                                  : USHER_LOG_INFO;
  int32_t status = usher_context_new(&options, &host->context);
  if (status) return status;
  g_mutex_lock(&usher_lock);
  with_context = g_list_prepend(with_context, host);
  g_mutex_unlock(&usher_lock);
  if (!registered) atexit(at_exit);
  registered = TRUE;
  return USHER_OK;
}

static UsherHost *make_host(GstElement *top, const UsherSettings *settings, int32_t *status) {
  UsherHost *host = g_new0(UsherHost, 1);
  host->refs = 1;
  g_weak_ref_init(&host->top, top);
  host->screen = g_strdup(settings->screen);
  host->ca_file = g_strdup(settings->ca_file);
  host->close_timeout = settings->close_timeout;
  host->allow_http = settings->allow_http;
  host->borrowed = settings->context != NULL;
  if (host->borrowed) host->context = settings->context;
  else *status = make_context(host, settings);
  if (!*status)
    *status = usher_context_add_observer(host->context, on_event, usher_host_ref(host), on_destroy, &host->observer);
  if (!*status) *status = usher_player_new(host->context, &host->player);
  if (!*status) return host;
  if (!host->borrowed) usher_context_free(take(host));
  else if (host->observer) usher_context_remove_observer(host->context, host->observer);
  usher_host_unref(host);
  return NULL;
}

/* The caller holds the lock. */
static UsherHost *find_host(GList *hosts, const UsherSettings *settings) {
  for (; hosts; hosts = hosts->next) {
    UsherHost *each = hosts->data;
    gboolean same_context = settings->context ? each->context == settings->context : !each->borrowed;
    if (!each->closing && same_context && g_strcmp0(each->screen, settings->screen) == 0 &&
        g_strcmp0(each->ca_file, settings->ca_file) == 0 && each->allow_http == settings->allow_http)
      return each;
  }
  return NULL;
}

UsherHost *usher_host_get(GstElement *top, const UsherSettings *settings, int32_t *status) {
  GList *hosts = g_object_steal_qdata(G_OBJECT(top), hosts_quark());
  *status = USHER_OK;
  g_mutex_lock(&usher_lock);
  UsherHost *host = find_host(hosts, settings);
  g_mutex_unlock(&usher_lock);
  if (!host && (host = make_host(top, settings, status))) hosts = g_list_prepend(hosts, host);
  if (host) host->close_timeout = settings->close_timeout;
  if (hosts) g_object_set_qdata_full(G_OBJECT(top), hosts_quark(), hosts, end_hosts);
  return host ? usher_host_ref(host) : NULL;
}
