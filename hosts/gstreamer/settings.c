/*
 * settings.c - see settings.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "settings.h"

#include <openssl/crypto.h>
#include <string.h>

#define TOKEN_FILE_MAX (64 * 1024)

#define STRING(field, name, nick, blurb) \
  { name, nick, blurb, #field, G_STRUCT_OFFSET(UsherSettings, field), 0, 0, 0 }
#define NUMBER(field, name, nick, blurb, min, max, standard) \
  { name, nick, blurb, #field, G_STRUCT_OFFSET(UsherSettings, field), min, max, standard }

const UsherSetting usher_setting_list[] = {
    STRING(license_url, "license", "Licence URL", "URL of the licence server (Clear Key). Required."),
    STRING(
        ssm_url, "ssm", "SSM URL", "URL of the Secure Session Manager. Without it the item plays without a session."),
    STRING(content_token, "token", "Content token",
        "The operator's content token. Other programs can see it if it is on a command line: prefer token-file. Reads "
        "as NULL."),
    STRING(token_file, "token-file", "Content token file",
        "File with the operator's content token. It is read when the session begins."),
    STRING(token_header, "token-header", "Token header",
        "Name of the header that carries the tokens. Default: nv-authorizations"),
    STRING(extra_headers, "headers", "Extra headers",
        "Further headers for every request: \"Name: value\" lines. Reads as NULL."),
    STRING(ca_file, "ca-file", "CA file",
        "PEM file of the certificate authorities to trust. Default: those of the system"),
    STRING(screen, "screen", "Screen",
        "Name of the screen. A screen plays one item at a time: a new item ends the session of the old one first. "
        "Give items that play at the same time in one pipeline different names."),
    NUMBER(ssp_version, "ssp-version", "SSP version",
        "1: set the session up at the SSM before the licence request. 2: the licence request sets it up.", 1, 2, 1),
    NUMBER(allow_http, "allow-http", "Allow http",
        "1: allow http URLs of other machines. 0: only https, and http on this machine.", 0, 1, 0),
    NUMBER(license_timeout, "license-timeout", "Licence time limit",
        "How long a stream waits for its key, in ms, including the set-up of the session", 100, 600000, 20000),
    NUMBER(slot_wait, "slot-wait", "Wait for a slot",
        "How long an item waits until another device stops, in ms, if the limit of streams is reached", 0, 3600000, 0),
    NUMBER(close_timeout, "close-timeout", "Close time limit",
        "How long the end of the process may wait until sessions are torn down, in ms", 100, 600000, 3000),
};
const guint usher_setting_count = G_N_ELEMENTS(usher_setting_list);

static gchar **text_of(const UsherSettings *settings, const UsherSetting *setting) {
  return &G_STRUCT_MEMBER(gchar *, settings, setting->offset);
}
static gint *number_of(const UsherSettings *settings, const UsherSetting *setting) {
  return &G_STRUCT_MEMBER(gint, settings, setting->offset);
}
static gboolean is_text(const UsherSetting *setting) { return setting->max == 0; }
static gboolean is_secret(const UsherSetting *setting) {
  return strcmp(setting->name, "token") == 0 || strcmp(setting->name, "headers") == 0;
}
static gboolean is_set(const UsherSettings *settings, const UsherSetting *setting) {
  return is_text(setting) ? *text_of(settings, setting) != NULL : *number_of(settings, setting) >= 0;
}

static void replace_text(gchar **text, const gchar *with) {
  gchar *copy = g_strdup(with);
  if (*text) OPENSSL_cleanse(*text, strlen(*text));
  g_free(*text);
  *text = copy;
}

UsherSettings *usher_settings_new(void) {
  UsherSettings *settings = g_new0(UsherSettings, 1);
  for (guint i = 0; i < usher_setting_count; i++)
    if (!is_text(&usher_setting_list[i])) *number_of(settings, &usher_setting_list[i]) = -1;
  return settings;
}

void usher_settings_free(UsherSettings *settings) {
  if (!settings) return;
  for (guint i = 0; i < usher_setting_count; i++)
    if (is_text(&usher_setting_list[i])) replace_text(text_of(settings, &usher_setting_list[i]), NULL);
  g_free(settings);
}

gboolean usher_settings_equal(const UsherSettings *a, const UsherSettings *b) {
  for (guint i = 0; i < usher_setting_count; i++) {
    const UsherSetting *setting = &usher_setting_list[i];
    if (is_text(setting) && g_strcmp0(*text_of(a, setting), *text_of(b, setting)) != 0) return FALSE;
    if (!is_text(setting) && *number_of(a, setting) != *number_of(b, setting)) return FALSE;
  }
  return a->context == b->context && a->playback == b->playback;
}

void usher_settings_add(UsherSettings *to, const UsherSettings *from) {
  for (guint i = 0; i < usher_setting_count; i++) {
    const UsherSetting *setting = &usher_setting_list[i];
    if (is_set(to, setting)) continue;
    if (is_text(setting)) replace_text(text_of(to, setting), *text_of(from, setting));
    else *number_of(to, setting) = *number_of(from, setting);
  }
  if (!to->context) to->context = from->context;
  if (!to->playback) to->playback = from->playback;
}

static gboolean refuse(GError **error, const gchar *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean refuse(GError **error, const gchar *format, ...) {
  va_list values;
  va_start(values, format);
  gchar *words = g_strdup_vprintf(format, values);
  va_end(values);
  g_set_error_literal(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, words);
  g_free(words);
  return FALSE;
}

static const UsherSetting *find(const gchar *name) {
  for (guint i = 0; i < usher_setting_count; i++)
    if (strcmp(usher_setting_list[i].name, name) == 0) return &usher_setting_list[i];
  return NULL;
}

/* Sets a number, unless `to` has it already. First checks the limits of the number, since the property system has not
   checked them. Returns FALSE, with `error` set, if the number is not within its limits. */
static gboolean add_number(
    UsherSettings *to, const UsherSetting *setting, gint64 number, const gchar *where, GError **error) {
  if (number < setting->min || number > setting->max)
    return refuse(error, "%s: %s must be a number from %d to %d.", where, setting->name, setting->min, setting->max);
  if (!is_set(to, setting)) *number_of(to, setting) = (gint)number;
  return TRUE;
}

typedef struct {
  UsherSettings *to;
  GError **error;
} Reading;

static gboolean add_field(GQuark field, const GValue *value, gpointer user_data) {
  Reading *reading = user_data;
  const gchar *name = g_quark_to_string(field), *where = "GstContext " USHER_CONTEXT_TYPE;
  gboolean pointer = G_VALUE_HOLDS_POINTER(value);
  if (strcmp(name, "context") == 0 && pointer) {
    if (!reading->to->context) reading->to->context = g_value_get_pointer(value);
  } else if (strcmp(name, "playback") == 0 && pointer) {
    if (!reading->to->playback) reading->to->playback = g_value_get_pointer(value);
  } else {
    const UsherSetting *setting = find(name);
    if (!setting) return refuse(reading->error, "%s: there is no field %s.", where, name);
    if (is_text(setting) && G_VALUE_HOLDS_STRING(value)) {
      if (!is_set(reading->to, setting)) replace_text(text_of(reading->to, setting), g_value_get_string(value));
    } else if (!is_text(setting) && G_VALUE_HOLDS_INT(value)) {
      return add_number(reading->to, setting, g_value_get_int(value), where, reading->error);
    } else {
      return refuse(reading->error, "%s: field %s must be a %s.", where, name, is_text(setting) ? "string" : "int");
    }
  }
  return TRUE;
}

gboolean usher_settings_add_context(UsherSettings *to, GstContext *context, GError **error) {
  Reading reading = {to, error};
  return gst_structure_foreach(gst_context_get_structure(context), add_field, &reading);
}

static gboolean add_line(UsherSettings *to, const gchar *where, gchar *line, GError **error) {
  gchar *equals = strchr(g_strstrip(line), '=');
  if (*line == '\0' || *line == '#') return TRUE;
  if (!equals) return refuse(error, "%s: a line is not of the form name=value.", where);
  *equals = '\0';
  const gchar *name = g_strchomp(line), *value = g_strchug(equals + 1);
  const UsherSetting *setting = find(name);
  if (!setting) return refuse(error, "%s: there is no option %s.", where, name);
  if (is_text(setting)) {
    if (!is_set(to, setting)) replace_text(text_of(to, setting), value);
    return TRUE;
  }
  gint64 number = 0;
  if (!g_ascii_string_to_signed(value, 10, setting->min, setting->max, &number, NULL)) number = G_MININT64;
  return add_number(to, setting, number, where, error);
}

gboolean usher_settings_add_file(UsherSettings *to, GError **error) {
  const gchar *file = g_getenv(USHER_OPTIONS_VARIABLE);
  gchar *text = NULL;
  gsize size = 0;
  GError *wrong = NULL;
  if (!file || !*file) return TRUE;
  if (!g_file_get_contents(file, &text, &size, &wrong)) {
    refuse(error, "%s: %s.", USHER_OPTIONS_VARIABLE, wrong->message);
    g_error_free(wrong);
    return FALSE;
  }
  gchar **lines = g_strsplit(text, "\n", -1);
  gboolean good = TRUE;
  for (gchar **line = lines; good && *line; line++) good = add_line(to, file, *line, error);
  for (gchar **line = lines; *line; line++) OPENSSL_cleanse(*line, strlen(*line));
  OPENSSL_cleanse(text, size);
  g_strfreev(lines);
  g_free(text);
  return good;
}

static gboolean read_token(UsherSettings *settings, GError **error) {
  gchar *text = NULL;
  gsize size = 0;
  GError *wrong = NULL;
  if (!g_file_get_contents(settings->token_file, &text, &size, &wrong)) {
    refuse(error, "token-file: %s.", wrong->message);
    g_error_free(wrong);
    return FALSE;
  }
  g_strstrip(text);
  gboolean good = *text && strlen(text) <= TOKEN_FILE_MAX && !strpbrk(text, "\r\n");
  if (good) replace_text(&settings->content_token, text);
  else refuse(error, "token-file: %s has no token: it must have one line of text.", settings->token_file);
  OPENSSL_cleanse(text, size);
  g_free(text);
  return good;
}

gboolean usher_settings_complete(UsherSettings *settings, GError **error) {
  for (guint i = 0; i < usher_setting_count; i++) {
    const UsherSetting *setting = &usher_setting_list[i];
    if (!is_text(setting) && !is_set(settings, setting)) *number_of(settings, setting) = setting->standard;
  }
  if (settings->screen && !*settings->screen) replace_text(&settings->screen, NULL);
  if (settings->playback) return TRUE;
  if (!settings->license_url || !*settings->license_url)
    return refuse(error, "The option license is not set: the URL of the licence server.");
  if (settings->content_token && !*settings->content_token) return refuse(error, "The option token is empty.");
  if (!settings->content_token && settings->token_file && !read_token(settings, error)) return FALSE;
  if (settings->ssm_url && !settings->content_token)
    return refuse(error, "Neither the option token nor token-file is set: a session needs the operator's token.");
  return TRUE;
}

gchar *usher_settings_rename(const gchar *text) {
  gsize length = strcspn(text, ":");
  for (guint i = 0; i < usher_setting_count; i++) {
    const UsherSetting *setting = &usher_setting_list[i];
    if (strlen(setting->member) == length && strncmp(setting->member, text, length) == 0)
      return g_strconcat(setting->name, text + length, NULL);
  }
  return g_strdup(text);
}

void usher_settings_install(GObjectClass *klass) {
  const GParamFlags text = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;
  const GParamFlags flags = text | GST_PARAM_MUTABLE_READY;
  for (guint i = 0; i < usher_setting_count; i++) {
    const UsherSetting *s = &usher_setting_list[i];
    g_object_class_install_property(klass, i + 1,
        is_text(s) ? g_param_spec_string(s->name, s->nick, s->blurb, NULL, flags)
                   : g_param_spec_int(s->name, s->nick, s->blurb, s->min, s->max, s->standard, flags));
  }
}

void usher_settings_set(UsherSettings *settings, guint id, const GValue *value) {
  const UsherSetting *setting = &usher_setting_list[id - 1];
  if (is_text(setting)) replace_text(text_of(settings, setting), g_value_get_string(value));
  else *number_of(settings, setting) = g_value_get_int(value);
}

void usher_settings_get(const UsherSettings *settings, guint id, GValue *value) {
  const UsherSetting *setting = &usher_setting_list[id - 1];
  if (!is_text(setting))
    g_value_set_int(value, is_set(settings, setting) ? *number_of(settings, setting) : setting->standard);
  else if (!is_secret(setting)) g_value_set_string(value, *text_of(settings, setting));
}
