/* report.c - see report.h. SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "terminal.h"

int result_exit_code(const struct result *result) {
  switch (result->outcome) {
  case OUTCOME_PLAYED: return 0;
  case OUTCOME_REFUSED: return 3;
  case OUTCOME_STOPPED: return 4;
  case OUTCOME_INTERRUPTED:
  case OUTCOME_FAILED: break;
  }
  return 1;
}

const char *outcome_name(enum outcome outcome) {
  static const char *const names[] = {"played", "refused", "stopped", "interrupted", "failed"};
  return names[outcome];
}

static void row(const char *name, const char *value) {
  printf("  %s%-9s%s %s\n", paint(PAINT_DIM), name, paint(PAINT_OFF), value);
}

/* Prints a URL without its query, which may have a token. */
static void url_row(const char *name, const char *url) {
  char shown[1024];
  snprintf(shown, sizeof shown, "%.*s", (int)strcspn(url, "?"), url);
  row(name, shown);
}

void report_head(const struct result *result) {
  const struct options *options = result->options;
  char kid[2 * KEY_SIZE + 1];
  printf("%susher-player%s %s %s%s%s\n", paint(PAINT_BOLD), paint(PAINT_OFF), sign("·", "-"), paint(PAINT_BOLD),
      options->name, paint(PAINT_OFF));
  row("file", options->file);
  for (size_t i = 0; i < result->ring->count; i++) {
    bytes_to_hex(result->ring->keys[i].kid, KEY_SIZE, kid);
    row("key id", kid);
  }
  if (options->clear) row("keys", "none: an unencrypted file, no session");
  if (options->key_hex) row("keys", "from the command line: no licence, no session");
  if (options->license_url) url_row("licence", options->license_url);
  if (options->license_url) url_row("session", options->ssm_url ? options->ssm_url : "none");
}

/* Prints the error in words for a viewer. */
static void print_words(const struct failure *failure, const char *indent) {
  printf("%s%s%s%s\n", indent, paint(PAINT_BOLD), failure->summary, paint(PAINT_OFF));
  if (failure->advice[0]) printf("%s%s\n", indent, failure->advice);
}

/* Prints the details for a support desk: (HTTP 400, code 1007 from the session manager during set-up: "...";
   USHER_E_LIMIT) */
static void print_facts(const struct failure *failure, const char *indent) {
  printf("%s%s(", indent, paint(PAINT_DIM));
  if (failure->http_status > 0) printf("HTTP %d, ", (int)failure->http_status);
  if (failure->service_code != 0) printf("code %" PRId64 " ", failure->service_code);
  printf("from %s during %s", origin_name(failure->origin), operation_name(failure->operation));
  if (failure->message[0]) printf(": \"%s\"", failure->message);
  printf("; %s)%s\n", usher_status_name(failure->status), paint(PAINT_OFF));
  if (failure->orphan_possible)
    printf("%sThe head-end may hold a session that has no token here; it will expire.\n", indent);
}

static void print_outcome(const struct result *result) {
  static const char *const words[] = {
      "Played as asked.", "This screen may not play now.", "Playback was stopped.", "Interrupted.", "Playback failed."};
  bool good = result->outcome == OUTCOME_PLAYED;
  printf("\n%s%s %s%s", paint(good ? PAINT_GOOD : PAINT_BAD), good ? sign("✓", "ok:") : sign("✗", "no:"),
      words[result->outcome], paint(PAINT_OFF));
  printf("%s%s\n", result->why[0] ? " " : "", result->why);
  const struct failure *failure = timeline_worst(result->timeline);
  if (!failure) return;
  print_words(failure, "  ");
  print_facts(failure, "  ");
}

static void print_track(const char *name, const struct track_report *track) {
  char line[200];
  if (!track->codec) return;
  int size = snprintf(line, sizeof line, "%" PRIu64 " frames, %s", track->frames, track->codec);
  if (track->width > 0)
    size += snprintf(line + size, sizeof line - (size_t)size, " %dx%d", track->width, track->height);
  if (track->sample_rate > 0) size += snprintf(line + size, sizeof line - (size_t)size, " %d Hz", track->sample_rate);
  if (track->packets_encrypted > 0)
    snprintf(line + size, sizeof line - (size_t)size, ", %" PRIu64 " packets decrypted", track->packets_encrypted);
  row(name, line);
  if (track->frames > 0) row("  sha256", track->sha256);
  if (track->decode_errors > 0)
    printf("  %s%-9s %" PRIu64 " decode errors: the key does not fit, or the file is damaged%s\n", paint(PAINT_BAD), "",
        track->decode_errors, paint(PAINT_OFF));
}

static void print_moment(const struct moment *moment, const struct failure *told_above) {
  bool bad = moment->failure.status != USHER_OK;
  enum paint colour = bad                                             ? PAINT_BAD
                      : moment->event == USHER_EVENT_SESSION_DOUBTFUL ? PAINT_WARN
                      : moment->event != 0                            ? PAINT_GOOD
                                                                      : PAINT_OFF;
  bool more = moment->detail[0] || moment->event == USHER_EVENT_KEPT_ALIVE;
  printf("  %s%9.3f s%s  %s%s%s %-*s%s", paint(PAINT_DIM), (double)moment->ms / 1000, paint(PAINT_OFF), paint(colour),
      bad                                       ? sign("✗", "x")
      : moment->event == USHER_EVENT_KEPT_ALIVE ? sign("♥", "*")
      : moment->event != 0                      ? sign("●", "+")
                                                : sign("○", "-"),
      paint(PAINT_OFF), more ? 22 : 0, moment->what, moment->detail);
  if (moment->event == USHER_EVENT_KEPT_ALIVE) {
    if (moment->count > 1)
      printf("%u times, the last at %.3f s; ", (unsigned)moment->count, (double)moment->last_ms / 1000);
    printf("at most %" PRIu64 " ms late", moment->lateness_ms);
  }
  printf("\n");
  if (!bad) return;
  if (&moment->failure != told_above) print_words(&moment->failure, "                 ");
  print_facts(&moment->failure, "                 ");
}

void report_print(const struct result *result) {
  print_outcome(result);
  if (result->licence.size > 0) {
    char line[120];
    static const char *const renew[] = {
        "", ", kept alive by heartbeats", ", kept alive by licence renewals", ", renewed by the CDM", ""};
    int32_t type = result->licence.renew_type;
    snprintf(line, sizeof line, "%zu bytes, %d %s%s", result->licence.size, result->licence.keys,
        result->licence.keys == 1 ? "key" : "keys", type >= 0 && type <= USHER_RENEW_NONE ? renew[type] : "");
    row("licence", line);
  }
  if (result->media_played) {
    print_track("picture", &result->media.video);
    print_track("sound", &result->media.audio);
  }
  printf("\n  %sTimeline%s\n", paint(PAINT_BOLD), paint(PAINT_OFF));
  const struct failure *told_above = timeline_worst(result->timeline);
  for (size_t i = 0; i < result->timeline->count; i++) print_moment(&result->timeline->moments[i], told_above);
}
