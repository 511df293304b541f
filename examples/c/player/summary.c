/* summary.c - the report as JSON. SPDX-License-Identifier: Apache-2.0 */
#include <json-c/json.h>
#include <string.h>

#include "report.h"

static struct json_object *text(const char *value) { return value ? json_object_new_string(value) : NULL; }
static struct json_object *number(int64_t value) { return json_object_new_int64(value); }

static struct json_object *failure_json(const struct failure *failure) {
  if (!failure || failure->status == USHER_OK) return NULL;
  struct json_object *out = json_object_new_object();
  json_object_object_add(out, "status", number(failure->status));
  json_object_object_add(out, "status_name", text(usher_status_name(failure->status)));
  json_object_object_add(out, "origin", number(failure->origin));
  json_object_object_add(out, "origin_name", text(origin_name(failure->origin)));
  json_object_object_add(out, "operation", text(operation_name(failure->operation)));
  json_object_object_add(out, "http_status", number(failure->http_status));
  json_object_object_add(out, "service_code", number(failure->service_code));
  json_object_object_add(out, "message", text(failure->message));
  json_object_object_add(out, "must_stop", json_object_new_boolean(failure->must_stop));
  json_object_object_add(out, "orphan_possible", json_object_new_boolean(failure->orphan_possible));
  json_object_object_add(out, "summary", text(failure->summary));
  json_object_object_add(out, "advice", text(failure->advice));
  return out;
}

static struct json_object *track_json(const struct track_report *track) {
  if (!track->codec) return NULL;
  struct json_object *out = json_object_new_object();
  json_object_object_add(out, "codec", text(track->codec));
  json_object_object_add(out, "frames", number((int64_t)track->frames));
  json_object_object_add(out, "packets_decrypted", number((int64_t)track->packets_encrypted));
  json_object_object_add(out, "decode_errors", number((int64_t)track->decode_errors));
  json_object_object_add(out, "sha256", track->frames > 0 ? text(track->sha256) : NULL);
  return out;
}

static struct json_object *moment_json(const struct moment *moment) {
  struct json_object *out = json_object_new_object();
  json_object_object_add(out, "ms", number((int64_t)moment->ms));
  json_object_object_add(out, "event", moment->event ? text(usher_event_name(moment->event)) : NULL);
  json_object_object_add(out, "what", text(moment->what));
  json_object_object_add(out, "detail", text(moment->detail));
  json_object_object_add(out, "count", number(moment->count));
  json_object_object_add(out, "last_ms", number((int64_t)moment->last_ms));
  json_object_object_add(out, "period_ms", number((int64_t)moment->period_ms));
  json_object_object_add(out, "lateness_ms", number((int64_t)moment->lateness_ms));
  json_object_object_add(out, "error", failure_json(&moment->failure));
  return out;
}

bool report_write_json(const struct result *result, const char *path) {
  struct json_object *out = json_object_new_object(), *timeline = json_object_new_array(),
                     *kids = json_object_new_array();
  char kid[2 * KEY_SIZE + 1];
  json_object_object_add(out, "name", text(result->options->name));
  json_object_object_add(out, "tag", number((int64_t)result->options->tag));
  json_object_object_add(out, "file", text(result->options->file));
  for (size_t i = 0; i < result->ring->count; i++) {
    bytes_to_hex(result->ring->keys[i].kid, KEY_SIZE, kid);
    json_object_array_add(kids, text(kid));
  }
  json_object_object_add(out, "kids", kids);
  json_object_object_add(out, "outcome", text(outcome_name(result->outcome)));
  json_object_object_add(out, "exit_code", number(result_exit_code(result)));
  json_object_object_add(out, "why", text(result->why));
  json_object_object_add(out, "error", failure_json(timeline_worst(result->timeline)));
  json_object_object_add(out, "licence_size", number((int64_t)result->licence.size));
  json_object_object_add(out, "beats", number((int64_t)timeline_beats(result->timeline)));
  json_object_object_add(out, "heartbeats_sent", number((int64_t)result->heartbeats_sent));
  json_object_object_add(out, "seconds", json_object_new_double(result->media.seconds));
  json_object_object_add(out, "video", track_json(&result->media.video));
  json_object_object_add(out, "audio", track_json(&result->media.audio));
  for (size_t i = 0; i < result->timeline->count; i++)
    json_object_array_add(timeline, moment_json(&result->timeline->moments[i]));
  json_object_object_add(out, "timeline", timeline);
  bool written = json_object_to_file_ext(path, out, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE) == 0;
  json_object_put(out);
  return written;
}
