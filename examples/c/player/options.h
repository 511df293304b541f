/* options.h - the command line. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_OPTIONS_H
#define PLAYER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
  const char *file;
  const char *license_url;
  const char *ssm_url;
  const char *token;
  const char *ca_file;
  const char *name;
  const char *kid_hex;
  const char *key_hex;
  const char *summary_file;
  const char *colour; /* "auto", "always" or "never" */
  uint64_t tag;
  double speed; /* the speed, a multiple of real time; 0: as fast as possible */
  double stop_after; /* how many seconds of the clip to play; 0: all */
  unsigned loops;
  bool clear;
  bool verbose;
};

enum options_result { OPTIONS_PLAY, OPTIONS_DONE, OPTIONS_WRONG };

/**
 * Reads the command line. @return OPTIONS_PLAY; OPTIONS_DONE if it has printed the help or the version; OPTIONS_WRONG
 * if it has printed a mistake.
 */
enum options_result options_parse(int argc, char **argv, struct options *out);

#endif
