/* report.h - the report at the end, for people and for programs. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_REPORT_H
#define PLAYER_REPORT_H

#include "media.h"
#include "options.h"
#include "session.h"
#include "timeline.h"

enum outcome { OUTCOME_PLAYED, OUTCOME_REFUSED, OUTCOME_STOPPED, OUTCOME_INTERRUPTED, OUTCOME_FAILED };

struct result {
  const struct options *options;
  const struct keyring *ring;
  struct timeline *timeline;
  enum outcome outcome;
  char why[200]; /* why the playback failed, if no event says it; otherwise "" */
  struct licence_facts licence;
  uint64_t heartbeats_sent; /* repeated heartbeats are included */
  bool media_played; /* `media` is valid */
  struct media_report media;
};

int result_exit_code(const struct result *result);
const char *outcome_name(enum outcome outcome);

/** Prints what is about to be played. */
void report_head(const struct result *result);
/** Prints the result: the outcome in words, the frame hashes, the timeline. */
void report_print(const struct result *result);
/** Writes the result as JSON. @return false if the file cannot be written. */
bool report_write_json(const struct result *result, const char *path);

#endif
