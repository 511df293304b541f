/* gateway_options.h - the options of usher gateway. SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_GATEWAY_OPTIONS_H
#define USHER_GATEWAY_OPTIONS_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATEWAY_ORIGINS_MAX 16
#define GATEWAY_TIMEOUT_S 20 /* the default of --timeout */

struct gateway_options {
  struct common_options common;
  const char *clip;
  const char *origins[GATEWAY_ORIGINS_MAX];
  size_t origin_count;
  bool once, has_default_key_id;
  uint8_t default_key_id[16];
  long idle_s, port;
  char **command; /* the player; NULL: none */
};

/* Reads the arguments. @return false if it has printed the help or an error; usher must then end with `*code`. */
bool gateway_options_read(int argc, char **argv, struct gateway_options *options, int *code);

#endif
