/*
 * messages.c - see messages.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "messages.h"

/** The name of the element messages on the bus. */
#define USHER_MESSAGE "usher-session"

struct UsherFailure {
  GQuark domain;
  gint code;
  gchar *text, *debug;
  GstStructure *details;
};

UsherFailure *usher_failure_new(GQuark domain, gint code, const gchar *text, const gchar *debug) {
  UsherFailure *failure = g_new0(UsherFailure, 1);
  failure->domain = domain;
  failure->code = code;
  failure->text = g_strdup(text);
  failure->debug = g_strdup(debug);
  return failure;
}

void usher_failure_free(UsherFailure *failure) {
  if (!failure) return;
  g_free(failure->text);
  g_free(failure->debug);
  if (failure->details) gst_structure_free(failure->details);
  g_free(failure);
}

void usher_failure_post(UsherFailure *failure, GstElement *element) {
  gst_element_message_full_with_details(element, GST_MESSAGE_ERROR, failure->domain, failure->code,
      g_steal_pointer(&failure->text), g_steal_pointer(&failure->debug), "messages.c", GST_FUNCTION, __LINE__,
      g_steal_pointer(&failure->details));
  usher_failure_free(failure);
}

static gint code_of(const usher_error *error) {
  switch (error->status) {
  case USHER_E_LIMIT: return GST_RESOURCE_ERROR_BUSY;
  case USHER_E_REFUSED:
  case USHER_E_SESSION:
  case USHER_E_NO_TOKEN:
  case USHER_E_RENEWAL_MISSED:
  case USHER_E_CLOSED:
  case USHER_E_REPLACED:
  case USHER_E_NOT_ALLOWED: return GST_RESOURCE_ERROR_NOT_AUTHORIZED;
  case USHER_E_INVALID_ARGUMENT: return GST_RESOURCE_ERROR_SETTINGS;
  default: return GST_RESOURCE_ERROR_OPEN_READ;
  }
}

/* Adds the fields that describe an error to `structure`, which becomes a bus message. */
static void describe(GstStructure *structure, const usher_error *error, const usher_explanation *words) {
  gst_structure_set(structure, "status", G_TYPE_INT, error->status, "status-name", G_TYPE_STRING,
      usher_status_name(error->status), "origin", G_TYPE_STRING, usher_origin_name(error->origin), "operation",
      G_TYPE_STRING, usher_operation_name(error->operation), "http-status", G_TYPE_INT, error->http_status,
      "service-code", G_TYPE_INT64, error->service_code, "message", G_TYPE_STRING, error->message ? error->message : "",
      "must-stop", G_TYPE_BOOLEAN, error->must_stop != 0, "summary", G_TYPE_STRING, words->summary, "advice",
      G_TYPE_STRING, words->advice, NULL);
}

UsherFailure *usher_failure_of(const usher_error *error) {
  usher_explanation words = {"", "", 0, ""};
  usher_error_explain(error, &words);
  gchar *text = g_strdup_printf("%s %s", words.summary, words.advice);
  gchar *debug = g_strdup_printf("%s: %s, %s, HTTP %d, code %" G_GINT64_FORMAT ": %s", usher_status_name(error->status),
      usher_origin_name(error->origin), usher_operation_name(error->operation), error->http_status,
      (gint64)error->service_code, error->message ? error->message : "");
  UsherFailure *failure = usher_failure_new(GST_RESOURCE_ERROR, code_of(error), text, debug);
  failure->details = gst_structure_new_empty(USHER_MESSAGE);
  describe(failure->details, error, &words);
  g_free(text);
  g_free(debug);
  return failure;
}

GstStructure *usher_message_new(const usher_event *event, guint64 item, const gchar *screen) {
  usher_explanation words = {"", "", 0, ""};
  GstStructure *structure = gst_structure_new(USHER_MESSAGE, "event", G_TYPE_STRING, usher_event_name(event->type),
      "type", G_TYPE_INT, event->type, "item", G_TYPE_UINT64, item, "time-ms", G_TYPE_UINT64, (guint64)event->time_ms,
      "period-ms", G_TYPE_UINT64, (guint64)event->period_ms, "screen", G_TYPE_STRING, screen ? screen : "", NULL);
  if (!event->error.status) return structure;
  usher_error_explain(&event->error, &words);
  describe(structure, &event->error, &words);
  return structure;
}
