/*
 * settings.h - the settings of a session: servers, token, time limits. The same names serve as properties of the
 * element, as fields of the GstContext and as lines of the options file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_GST_SETTINGS_H
#define USHER_GST_SETTINGS_H

#include <gst/gst.h>

G_BEGIN_DECLS

/** The type of the GstContext with which an application configures all decryptors of a pipeline. */
#define USHER_CONTEXT_TYPE "usher.session"
/** The environment variable that names the options file. */
#define USHER_OPTIONS_VARIABLE "USHER_GSTREAMER_OPTIONS"

/** All settings, with the names that libusher's structures have. A string that is NULL is not set. A number that is
 * negative is not set. */
typedef struct {
  gchar *license_url, *ssm_url, *content_token, *token_file, *token_header, *extra_headers, *ca_file, *screen;
  gint ssp_version, allow_http, license_timeout, slot_wait, close_timeout;
  /** Only a GstContext can set these: objects that the application has made, or 0. */
  gpointer context, playback;
} UsherSettings;

/** One setting. */
typedef struct {
  const gchar *name, *nick, *blurb;
  /** The name of the member of UsherSettings. */
  const gchar *member;
  /** The offset of the setting in UsherSettings. */
  gsize offset;
  /** The limits of a number; `max` is 0 if the setting is a string. */
  gint min, max, standard;
} UsherSetting;

extern const UsherSetting usher_setting_list[];
extern const guint usher_setting_count;

UsherSettings *usher_settings_new(void);
void usher_settings_free(UsherSettings *settings);
/** Whether two items have the same settings. */
gboolean usher_settings_equal(const UsherSettings *a, const UsherSettings *b);

/** Copies to `to` the settings that `to` does not have. */
void usher_settings_add(UsherSettings *to, const UsherSettings *from);
/** Copies to `to` those settings of a GstContext that `to` does not have. @return FALSE, with `error` set, if a field
 * is unknown or has a wrong type or value. */
gboolean usher_settings_add_context(UsherSettings *to, GstContext *context, GError **error);
/** Copies to `to` those settings of the options file that `to` does not have. @return FALSE, with `error` set, if the
 * file cannot be used. */
gboolean usher_settings_add_file(UsherSettings *to, GError **error);
/** Checks that no setting is missing, reads the token file, and sets the default values. @return FALSE, with an `error`
 * that names the setting, if a session cannot begin. */
gboolean usher_settings_complete(UsherSettings *settings, GError **error);

/** Returns why libusher has refused an option, with the name of the setting in place of the name of libusher's field.
 * `text` begins with the name of the field and a colon. Free the result. */
gchar *usher_settings_rename(const gchar *text);

void usher_settings_install(GObjectClass *klass);
void usher_settings_set(UsherSettings *settings, guint id, const GValue *value);
void usher_settings_get(const UsherSettings *settings, guint id, GValue *value);

G_END_DECLS

#endif /* USHER_GST_SETTINGS_H */
