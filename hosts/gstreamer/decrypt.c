/*
 * decrypt.c - the element usherdecrypt: decrypts one stream with the keys of its session.
 *
 * The streaming thread waits only for a key whose licence has not arrived yet; a flush or a change of state ends this
 * wait.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "decrypt.h"

#include "cenc.h"
#include "fragments.h"
#include "host.h"
#include "session.h"

#include <gst/gstprotection.h>
#include <openssl/crypto.h>
#include <string.h>

GST_DEBUG_CATEGORY(usher_decrypt_debug);
#define GST_CAT_DEFAULT usher_decrypt_debug

/** The system id of W3C's Common PSSH box. The library's name for it is USHER_KEY_SYSTEM_CLEARKEY. */
#define SYSTEM_COMMON "1077efec-c0b2-4d02-ace3-3c1e52e2fb4b"
/** DASH-IF's identifier of Clear Key. */
#define SYSTEM_CLEARKEY "e2719d58-a985-b3c9-781a-b030af78d30e"
#define PREFERRED_SYSTEM "drm-preferred-decryption-system-id"

/* The reasons for which the streaming thread must not wait. Each reason has its own bit, because a flush may end while
   the element stops. */
enum { STOPPING = 1, FLUSHING = 2 };

struct _UsherDecrypt {
  GstBaseTransform parent;
  /** Protects `settings`, `context` and `session`. */
  GMutex lock;
  UsherSettings *settings;
  GstContext *context;
  UsherSession *session;
  /** The bits STOPPING and FLUSHING. While one of them is set, the streaming thread must not wait. */
  guint halted;

  /* Only the streaming thread uses the members below. */
  guint group;
  struct cenc_cipher *cipher;
  int scheme;
  /** The key ids of the newest fragment's pssh box. If the key changes with each fragment, only this box names the new
   * key. */
  GByteArray *fragment_key_ids;
  /** Whether samples without encryption data may pass: a sample with encryption data has arrived, or may_be_clear() has
   * allowed samples without such data. New caps set this to FALSE. */
  gboolean checked;
};

G_DEFINE_FINAL_TYPE(UsherDecrypt, usher_decrypt, GST_TYPE_BASE_TRANSFORM)

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS("application/x-cenc, protection-system=(string)" SYSTEM_COMMON
                    "; application/x-cenc, protection-system=(string)" SYSTEM_CLEARKEY "; application/x-cenc"));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

/* ---- session ---------------------------------------------------------------------------------------------------- */


/* Asks the neighbouring elements for the context with the settings. If none has it, asks the application. */
static void find_context(UsherDecrypt *self) {
  g_mutex_lock(&self->lock);
  gboolean known = self->context != NULL;
  g_mutex_unlock(&self->lock);
  if (known) return;
  GstBaseTransform *transform = GST_BASE_TRANSFORM(self);
  GstQuery *query = gst_query_new_context(USHER_CONTEXT_TYPE);
  GstContext *found = NULL;
  if (gst_pad_peer_query(transform->srcpad, query) || gst_pad_peer_query(transform->sinkpad, query))
    gst_query_parse_context(query, &found);
  if (found) gst_element_set_context(GST_ELEMENT(self), found);
  else gst_element_post_message(GST_ELEMENT(self), gst_message_new_need_context(GST_OBJECT(self), USHER_CONTEXT_TYPE));
  gst_query_unref(query);
}

/* Returns the session of the stream, and joins it first if the element has none. */
static UsherSession *session_of(UsherDecrypt *self) {
  GError *wrong = NULL;
  g_mutex_lock(&self->lock);
  UsherSession *session = self->session;
  g_mutex_unlock(&self->lock);
  if (session) return session;
  find_context(self);
  UsherSettings *settings = usher_settings_new();
  g_mutex_lock(&self->lock);
  usher_settings_add(settings, self->settings);
  if (self->context) usher_settings_add_context(settings, self->context, &wrong);
  g_mutex_unlock(&self->lock);
  if (!wrong) usher_settings_add_file(settings, &wrong);
  session = usher_session_join(GST_ELEMENT(self), settings, wrong, self->group);
  g_clear_error(&wrong);
  usher_settings_free(settings);
  g_mutex_lock(&self->lock);
  self->session = session;
  g_mutex_unlock(&self->lock);
  return session;
}

static void leave_session(UsherDecrypt *self) {
  g_mutex_lock(&self->lock);
  UsherSession *session = self->session;
  self->session = NULL;
  g_mutex_unlock(&self->lock);
  if (session) usher_session_leave(session, GST_ELEMENT(self));
}

static void halt(UsherDecrypt *self, guint cause) {
  g_atomic_int_or(&self->halted, cause);
  g_mutex_lock(&self->lock);
  if (self->session) usher_session_wake(self->session);
  g_mutex_unlock(&self->lock);
}

static void proceed(UsherDecrypt *self, guint causes) { g_atomic_int_and(&self->halted, ~causes); }

/* ---- protection data -------------------------------------------------------------------------------------------- */

static void add_key_ids(const usher_protection *protection, void *user_data) {
  if (protection->key_id_count)
    g_byte_array_append(user_data, protection->key_ids, 16 * (guint)protection->key_id_count);
}

/* Returns the key ids of a protection event. Its data is a pssh box, or a ContentProtection element of a DASH
   manifest. */
static GByteArray *read_key_ids(GstBuffer *data) {
  GByteArray *key_ids = g_byte_array_new();
  GstMapInfo map;
  if (!data || !gst_buffer_map(data, &map, GST_MAP_READ)) return key_ids;
  usher_read_pssh(map.data, map.size, add_key_ids, key_ids, NULL);
  gst_buffer_unmap(data, &map);
  return key_ids;
}

static void take_protection(UsherDecrypt *self, GstEvent *event) {
  const gchar *system = NULL, *origin = NULL;
  GstBuffer *data = NULL;
  gst_event_parse_protection(event, &system, &data, &origin);
  GST_DEBUG_OBJECT(self, "protection data of system %s from %s", system, origin);
  if (g_ascii_strcasecmp(system, SYSTEM_COMMON) != 0 && g_ascii_strcasecmp(system, SYSTEM_CLEARKEY) != 0) return;
  GByteArray *key_ids = read_key_ids(data);
  if (key_ids->len) usher_session_announce(session_of(self), key_ids->data, key_ids->len / 16);
  if (g_strcmp0(origin, "isobmff/moof") == 0) {
    g_byte_array_unref(self->fragment_key_ids);
    self->fragment_key_ids = g_byte_array_ref(key_ids);
  }
  g_byte_array_unref(key_ids);
}

static gboolean sink_event(GstBaseTransform *transform, GstEvent *event) {
  UsherDecrypt *self = USHER_DECRYPT(transform);
  switch (GST_EVENT_TYPE(event)) {
  case GST_EVENT_STREAM_START: gst_event_parse_group_id(event, &self->group); break;
  case GST_EVENT_PROTECTION:
    take_protection(self, event);
    gst_event_unref(event);
    return TRUE;
  case GST_EVENT_FLUSH_START: halt(self, FLUSHING); break;
  case GST_EVENT_FLUSH_STOP: proceed(self, FLUSHING); break;
  default: break;
  }
  return GST_BASE_TRANSFORM_CLASS(usher_decrypt_parent_class)->sink_event(transform, event);
}

static gboolean answer_query(GstBaseTransform *transform, GstPadDirection direction, GstQuery *query) {
  UsherDecrypt *self = USHER_DECRYPT(transform);
  const gchar *type = NULL;
  GstContext *context = NULL;
  if (GST_QUERY_TYPE(query) == GST_QUERY_CONTEXT && gst_query_parse_context_type(query, &type)) {
    if (strcmp(type, PREFERRED_SYSTEM) == 0) {
      context = gst_context_new(PREFERRED_SYSTEM, FALSE);
      gst_structure_set(
          gst_context_writable_structure(context), "decryption-system-id", G_TYPE_STRING, SYSTEM_COMMON, NULL);
    } else if (strcmp(type, USHER_CONTEXT_TYPE) == 0) {
      g_mutex_lock(&self->lock);
      if (self->context) context = gst_context_ref(self->context);
      g_mutex_unlock(&self->lock);
    }
    if (context) {
      gst_query_set_context(query, context);
      gst_context_unref(context);
      return TRUE;
    }
  }
  return GST_BASE_TRANSFORM_CLASS(usher_decrypt_parent_class)->query(transform, direction, query);
}

/* ---- caps ------------------------------------------------------------------------------------------------------- */

static GstCaps *to_clear(GstCaps *caps) {
  GstCaps *clear = gst_caps_new_empty();
  for (guint i = 0; i < gst_caps_get_size(caps); i++) {
    GstStructure *each = gst_structure_copy(gst_caps_get_structure(caps, i));
    const gchar *type = gst_structure_get_string(each, "original-media-type");
    if (!type) {
      gst_structure_free(each);
      gst_caps_unref(clear);
      return gst_caps_new_any();
    }
    gst_structure_set_name(each, type);
    gst_structure_remove_fields(each, "original-media-type", "protection-system", "cipher-mode", NULL);
    gst_caps_append_structure(clear, each);
  }
  return clear;
}

static GstCaps *to_encrypted(GstCaps *caps) {
  static const gchar *const systems[] = {SYSTEM_COMMON, SYSTEM_CLEARKEY, NULL};
  if (gst_caps_is_any(caps)) return gst_static_pad_template_get_caps(&sink_template);
  GstCaps *encrypted = gst_caps_new_empty();
  for (guint i = 0; i < gst_caps_get_size(caps); i++) {
    for (guint system = 0; system < G_N_ELEMENTS(systems); system++) {
      GstStructure *each = gst_structure_copy(gst_caps_get_structure(caps, i));
      gst_structure_set(each, "original-media-type", G_TYPE_STRING, gst_structure_get_name(each), NULL);
      if (systems[system]) gst_structure_set(each, "protection-system", G_TYPE_STRING, systems[system], NULL);
      gst_structure_set_name(each, "application/x-cenc");
      gst_caps_append_structure(encrypted, each);
    }
  }
  return encrypted;
}

static GstCaps *transform_caps(GstBaseTransform *transform, GstPadDirection direction, GstCaps *caps, GstCaps *filter) {
  (void)transform;
  GstCaps *other = direction == GST_PAD_SINK ? to_clear(caps) : to_encrypted(caps);
  if (filter) {
    GstCaps *both = gst_caps_intersect_full(filter, other, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(other);
    other = both;
  }
  return other;
}

static int scheme_of(const GstStructure *structure, int otherwise) {
  const gchar *mode = gst_structure_get_string(structure, "cipher-mode");
  if (!mode) return otherwise;
  return strcmp(mode, "cenc") == 0 ? CENC_SCHEME_CENC : strcmp(mode, "cbcs") == 0 ? CENC_SCHEME_CBCS : 0;
}

static gboolean set_caps(GstBaseTransform *transform, GstCaps *in, GstCaps *out) {
  UsherDecrypt *self = USHER_DECRYPT(transform);
  (void)out;
  self->scheme = scheme_of(gst_caps_get_structure(in, 0), CENC_SCHEME_CENC);
  self->checked = FALSE;
  /* Begin the session now, before the first sample, so that the stream waits less. */
  session_of(self);
  return TRUE;
}

/* ---- samples ---------------------------------------------------------------------------------------------------- */

static GstFlowReturn flow_of(UsherKeyResult result) {
  switch (result) {
  case USHER_KEY_FOUND: return GST_FLOW_OK;
  case USHER_KEY_FAILED: return GST_FLOW_ERROR;
  case USHER_KEY_FLUSHING:
  /* The first error message has the reason. A second one would hide it, so post none. */
  case USHER_KEY_FAILED_BEFORE: break;
  }
  return GST_FLOW_FLUSHING;
}

static GstFlowReturn refuse(UsherDecrypt *self, const gchar *text, const gchar *why) {
  return flow_of(usher_session_fail(session_of(self), GST_STREAM_ERROR, GST_STREAM_ERROR_DECRYPT, text, why));
}

static gboolean copy_bytes(const GstStructure *info, const gchar *name, guint8 *to, gsize max, gsize *size) {
  const GValue *value = gst_structure_get_value(info, name);
  GstBuffer *buffer = value && G_VALUE_HOLDS(value, GST_TYPE_BUFFER) ? gst_value_get_buffer(value) : NULL;
  *size = buffer ? gst_buffer_get_size(buffer) : 0;
  return *size > 0 && *size <= max && gst_buffer_extract(buffer, 0, to, *size) == *size;
}

/* If the fragment's pssh box has one key id, and this is not `key_id`, copies it to `key_id`. This is necessary for
 * files that change their key with sample groups, which the demuxer of GStreamer 1.22 does not read: it gives their
 * samples the default key id of the track (often 0). */
static void find_fragment_key_id(UsherDecrypt *self, guint8 *key_id) {
  const GByteArray *ids = self->fragment_key_ids;
  for (guint i = 0; i + 16 <= ids->len; i += 16)
    if (memcmp(ids->data + i, key_id, 16) == 0) return;
  if (ids->len == 16) memcpy(key_id, ids->data, 16);
}

/* @return NULL, or the reason why the sample's description cannot be used. */
static const gchar *read_sample(UsherDecrypt *self, const GstStructure *info, struct cenc_sample *sample) {
  gsize size;
  sample->scheme = scheme_of(info, self->scheme);
  if (!copy_bytes(info, "kid", sample->key_id, 16, &size) || size != 16) return "a sample has no key id";
  find_fragment_key_id(self, sample->key_id);
  if (!copy_bytes(info, "iv", sample->iv, 16, &sample->iv_size)) return "a sample has no initialisation vector";
  gst_structure_get_uint(info, "crypt_byte_block", &sample->crypt_blocks);
  gst_structure_get_uint(info, "skip_byte_block", &sample->skip_blocks);
  gst_structure_get_uint(info, "subsample_count", &sample->subsample_count);
  return NULL;
}

static const gchar *decrypt(
    UsherDecrypt *self, const GstStructure *info, struct cenc_sample *sample, const guint8 *key, GstBuffer *buffer) {
  const GValue *value = sample->subsample_count ? gst_structure_get_value(info, "subsamples") : NULL;
  GstBuffer *subsamples = value && G_VALUE_HOLDS(value, GST_TYPE_BUFFER) ? gst_value_get_buffer(value) : NULL;
  GstMapInfo data, list = GST_MAP_INFO_INIT;
  if (sample->subsample_count && !(subsamples && gst_buffer_map(subsamples, &list, GST_MAP_READ)))
    return "the list of subsamples is missing";
  const gchar *wrong = "the list of subsamples is cut";
  if (list.size / 6 >= sample->subsample_count) {
    sample->subsamples = list.data;
    wrong = "the sample cannot be changed";
    if (gst_buffer_map(buffer, &data, GST_MAP_READWRITE)) {
      wrong = cenc_decrypt(self->cipher, key, sample, data.data, data.size);
      gst_buffer_unmap(buffer, &data);
    }
  }
  if (subsamples) gst_buffer_unmap(subsamples, &list);
  return wrong;
}

/* Whether a sample without encryption data may be a clear one. Encrypted items may begin with clear samples. But the
   demuxer of GStreamer 1.22 finds encryption data only in fragments. So in other files encrypted samples look like
   clear ones. */
static gboolean may_be_clear(UsherDecrypt *self) {
  GstPad *pad = GST_BASE_TRANSFORM_SINK_PAD(self);
  GstCaps *caps = gst_pad_get_current_caps(pad);
  GstQuery *query = gst_query_new_uri();
  gchar *uri = NULL;
  gboolean clear = caps && gst_structure_has_field(gst_caps_get_structure(caps, 0), "protection-system");
  if (clear && gst_pad_peer_query(pad, query)) gst_query_parse_uri(query, &uri);
  if (uri && usher_is_progressive(uri)) clear = FALSE;
  g_free(uri);
  gst_query_unref(query);
  gst_clear_caps(&caps);
  return clear;
}

static GstFlowReturn pass_clear(UsherDecrypt *self) {
  if (!self->checked && !may_be_clear(self))
    return refuse(self, "The item is encrypted in a way that this player cannot decrypt.",
        "The demuxer found no encryption data for the samples. It finds them in fragmented files only.");
  self->checked = TRUE;
  return GST_FLOW_OK;
}

static GstFlowReturn transform_ip(GstBaseTransform *transform, GstBuffer *buffer) {
  UsherDecrypt *self = USHER_DECRYPT(transform);
  GstProtectionMeta *meta = gst_buffer_get_protection_meta(buffer);
  struct cenc_sample sample = {0};
  guint8 key[16];
  gboolean encrypted = TRUE;
  UsherKeyResult result = usher_session_state(session_of(self), GST_ELEMENT(self), &self->halted);
  if (result != USHER_KEY_FOUND) return flow_of(result);
  if (!meta) return pass_clear(self);
  self->checked = TRUE;
  GST_LOG_OBJECT(self, "%" GST_PTR_FORMAT, (void *)meta->info);
  if (gst_structure_get_boolean(meta->info, "encrypted", &encrypted) && !encrypted) return pass_clear(self);
  const gchar *wrong = read_sample(self, meta->info, &sample);
  if (!wrong) {
    result = usher_session_key(session_of(self), GST_ELEMENT(self), sample.key_id, &self->halted, key);
    if (result != USHER_KEY_FOUND) return flow_of(result);
    wrong = decrypt(self, meta->info, &sample, key, buffer);
    OPENSSL_cleanse(key, sizeof key);
  }
  if (wrong) return refuse(self, "The item is damaged: a part of it cannot be decrypted.", wrong);
  gst_buffer_remove_meta(buffer, (GstMeta *)meta);
  return GST_FLOW_OK;
}

/* ---- the element ------------------------------------------------------------------------------------------------ */

static GstStateChangeReturn change_state(GstElement *element, GstStateChange transition) {
  UsherDecrypt *self = USHER_DECRYPT(element);
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) proceed(self, STOPPING | FLUSHING);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) halt(self, STOPPING);
  GstStateChangeReturn result = GST_ELEMENT_CLASS(usher_decrypt_parent_class)->change_state(element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) leave_session(self);
  return result;
}

static gboolean stop(GstBaseTransform *transform) {
  UsherDecrypt *self = USHER_DECRYPT(transform);
  self->group = 0;
  g_byte_array_set_size(self->fragment_key_ids, 0);
  cenc_cipher_free(self->cipher);
  self->cipher = NULL;
  return TRUE;
}

static gboolean start(GstBaseTransform *transform) {
  UsherDecrypt *self = USHER_DECRYPT(transform);
  self->cipher = cenc_cipher_new();
  return self->cipher != NULL;
}

static void set_context(GstElement *element, GstContext *context) {
  UsherDecrypt *self = USHER_DECRYPT(element);
  if (gst_context_has_context_type(context, USHER_CONTEXT_TYPE)) {
    g_mutex_lock(&self->lock);
    gst_context_replace(&self->context, context);
    g_mutex_unlock(&self->lock);
  }
  GST_ELEMENT_CLASS(usher_decrypt_parent_class)->set_context(element, context);
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
  UsherDecrypt *self = USHER_DECRYPT(object);
  (void)spec;
  g_mutex_lock(&self->lock);
  usher_settings_set(self->settings, id, value);
  g_mutex_unlock(&self->lock);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  UsherDecrypt *self = USHER_DECRYPT(object);
  (void)spec;
  g_mutex_lock(&self->lock);
  usher_settings_get(self->settings, id, value);
  g_mutex_unlock(&self->lock);
}

static void finalize(GObject *object) {
  UsherDecrypt *self = USHER_DECRYPT(object);
  leave_session(self);
  usher_settings_free(self->settings);
  gst_context_replace(&self->context, NULL);
  cenc_cipher_free(self->cipher);
  g_byte_array_unref(self->fragment_key_ids);
  g_mutex_clear(&self->lock);
  G_OBJECT_CLASS(usher_decrypt_parent_class)->finalize(object);
}

static void usher_decrypt_init(UsherDecrypt *self) {
  g_mutex_init(&self->lock);
  self->settings = usher_settings_new();
  self->fragment_key_ids = g_byte_array_new();
  gst_base_transform_set_in_place(GST_BASE_TRANSFORM(self), TRUE);
  gst_base_transform_set_passthrough(GST_BASE_TRANSFORM(self), FALSE);
  gst_base_transform_set_gap_aware(GST_BASE_TRANSFORM(self), FALSE);
}

static void usher_decrypt_class_init(UsherDecryptClass *klass) {
  GObjectClass *object = G_OBJECT_CLASS(klass);
  GstElementClass *element = GST_ELEMENT_CLASS(klass);
  GstBaseTransformClass *transform = GST_BASE_TRANSFORM_CLASS(klass);
  GST_DEBUG_CATEGORY_INIT(usher_decrypt_debug, "usherdecrypt", 0, "decryption under a concurrent-stream session");
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  usher_settings_install(object);
  element->change_state = change_state;
  element->set_context = set_context;
  transform->sink_event = sink_event;
  transform->query = answer_query;
  transform->transform_caps = transform_caps;
  transform->set_caps = set_caps;
  transform->transform_ip = transform_ip;
  transform->start = start;
  transform->stop = stop;
  transform->transform_ip_on_passthrough = FALSE;
  gst_element_class_add_static_pad_template(element, &sink_template);
  gst_element_class_add_static_pad_template(element, &src_template);
  gst_element_class_set_static_metadata(element, "Usher decryptor", "Generic/Decryptor",
      "Decrypts Common Encryption (cenc, cbcs) with Clear Key licences under a concurrent-stream session",
      "The usher project");
}
