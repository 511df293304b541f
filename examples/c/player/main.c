/*
 * main.c - usher-player: plays an encrypted MP4 as an operator's screen does.
 *
 * Sets a session up, gets the licence, decrypts, decodes and hashes every frame, tears the session down,
 * then prints a report for a support engineer. Only session.c uses a context of libusher; other files call only
 * functions of libusher that need no context.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <libavutil/log.h>
#include <stdio.h>

#include "mp4_key_ids.h"
#include "report.h"
#include "terminal.h"

struct screen {
  const struct options *options;
  struct timeline *timeline;
  struct stop *stop;
  uint64_t started_ms; /* the time of the first frame; 0: not yet shown */
  uint64_t progress_ms; /* when progress was last shown */
};

static void show_progress(struct screen *screen, double seconds, double whole, const struct media_report *so_far) {
  char line[200];
  snprintf(line, sizeof line, "  %s %02d:%02d / %02d:%02d   %" PRIu64 " frames   %s %" PRIu64, sign("▶", ">"),
      (int)seconds / 60, (int)seconds % 60, (int)whole / 60, (int)whole % 60, so_far->video.frames, sign("♥", "beats"),
      timeline_beats(screen->timeline));
  progress_show(line);
}

/* Receives each frame, as a screen would. If a speed is set, waits until the frame is due. Shows the progress. @return
   whether to continue. */
static bool on_shown(double seconds, double whole, const struct media_report *so_far, void *user_data) {
  struct screen *screen = user_data;
  if (screen->started_ms == 0) {
    screen->started_ms = clock_ms();
    timeline_step(screen->timeline, "first frame", "");
  }
  uint64_t due =
      screen->options->speed > 0 ? screen->started_ms + (uint64_t)(seconds * 1000 / screen->options->speed) : 0;
  enum stop_reason reason = stop_wait_until(screen->stop, due);
  if (clock_ms() - screen->progress_ms >= 100) {
    screen->progress_ms = clock_ms();
    show_progress(screen, seconds, whole, so_far);
  }
  return reason == STOP_NONE;
}

/* Finds the key ids: the id of --kid, or the ids in the file's boxes. A clear file needs none. @return false, after it
   has printed the mistake, if an encrypted file has no key id or an option is wrong. */
static bool find_key_ids(const struct options *options, struct keyring *ring) {
  uint8_t id[KEY_SIZE], key[KEY_SIZE];
  if (options->clear) return true;
  if (!options->kid_hex && !mp4_key_ids(options->file, ring))
    return fprintf(stderr, "usher-player: %s cannot be read\n", options->file), false;
  if (options->kid_hex && !hex_to_key(options->kid_hex, id))
    return fprintf(stderr, "usher-player: --kid takes 32 hex digits\n"), false;
  if (options->kid_hex) keyring_add(ring, id);
  if (ring->count == 0)
    return fprintf(stderr,
               "usher-player: %s has no key id (is it encrypted? --clear plays clear files, --kid names one)\n",
               options->file),
           false;
  if (options->key_hex) {
    if (!hex_to_key(options->key_hex, key)) return fprintf(stderr, "usher-player: --key takes 32 hex digits\n"), false;
    keyring_set(ring, ring->keys[0].kid, key);
  }
  ring->one_for_all = options->kid_hex || options->key_hex;
  return true;
}

/* Sets the session up and gets the licence. @return false if the player must not play; then `result` has the reason. */
static bool get_keys(struct session *session, struct result *result, struct keyring *ring, struct stop *stop) {
  int32_t status = session_start(session, result->options, ring, result->timeline, stop);
  if (status != USHER_OK) {
    timeline_failure(result->timeline, "playback not started", status);
    return false;
  }
  status = session_wait(session);
  if (status == USHER_E_LIMIT) result->outcome = OUTCOME_REFUSED;
  if (status != USHER_OK && status != USHER_E_TIMEOUT) return false;
  status = session_get_keys(session, ring, &result->licence);
  if (status == USHER_E_LIMIT) result->outcome = OUTCOME_REFUSED;
  if (status == USHER_OK && keyring_missing(ring) > 0)
    snprintf(result->why, sizeof result->why, "The licence has no key for this file.");
  return status == USHER_OK && keyring_missing(ring) == 0;
}

static void play(struct result *result, const struct keyring *ring, struct stop *stop) {
  struct screen screen = {result->options, result->timeline, stop, 0, 0};
  struct media_control control = {on_shown, &screen, result->options->loops, result->options->stop_after};
  enum media_end end = media_play(result->options->file, ring, &control, &result->media);
  uint64_t errors = result->media.video.decode_errors + result->media.audio.decode_errors;
  char detail[80];
  progress_clear();
  result->media_played = true;
  snprintf(detail, sizeof detail, "%" PRIu64 " frames, %.1f s of the clip", result->media.video.frames,
      result->media.seconds);
  timeline_step(result->timeline, end == MEDIA_WHOLE ? "played to the end" : "decoding stopped", detail);
  enum stop_reason reason = stop_now(stop);
  if (end == MEDIA_FAILED)
    snprintf(result->why, sizeof result->why, "%s: %s.", result->options->file, result->media.failure);
  else if (end == MEDIA_STOPPED && reason == STOP_EVENT) result->outcome = OUTCOME_STOPPED;
  else if (end == MEDIA_STOPPED && reason == STOP_SIGNAL) result->outcome = OUTCOME_INTERRUPTED;
  else if (errors > 0)
    snprintf(result->why, sizeof result->why, "The frames are broken: wrong key, or a damaged file.");
  else result->outcome = OUTCOME_PLAYED;
}

int main(int argc, char **argv) {
  struct options options;
  enum options_result parsed = options_parse(argc, argv, &options);
  if (parsed != OPTIONS_PLAY) return parsed == OPTIONS_DONE ? 0 : 2;
  terminal_init(options.colour);
  av_log_set_level(options.verbose ? AV_LOG_WARNING : AV_LOG_QUIET);

  struct keyring ring = {0};
  if (!find_key_ids(&options, &ring)) return 1;
  struct stop stop;
  struct timeline timeline;
  struct session session = {0};
  stop_init(&stop);
  timeline_init(&timeline);
  struct result result = {.options = &options, .ring = &ring, .timeline = &timeline, .outcome = OUTCOME_FAILED};
  report_head(&result);
  fflush(stdout);
  timeline_step(&timeline, "started", "");
  if (!options.license_url || get_keys(&session, &result, &ring, &stop)) play(&result, &ring, &stop);
  if (options.license_url) session_close(&session);
  result.heartbeats_sent = session.heartbeats_sent;
  timeline_step(&timeline, "finished", "");

  report_print(&result);
  int exit_code = result_exit_code(&result);
  if (options.summary_file && !report_write_json(&result, options.summary_file)) {
    fprintf(stderr, "usher-player: %s cannot be written\n", options.summary_file);
    exit_code = exit_code == 0 ? 1 : exit_code;
  }
  timeline_free(&timeline);
  keyring_wipe(&ring);
  return exit_code;
}
