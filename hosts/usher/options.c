/* options.c - see options.h. SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool option_number(const char *text, long most, long *out) {
  char *end;
  errno = 0;
  *out = strtol(text, &end, 10);
  return !errno && end != text && !*end && *out >= 0 && *out <= most;
}

bool option_header(const char *line, const char **headers) {
  static char all[16384];
  if (strlen(all) + strlen(line) + 2 >= sizeof all) return false;
  sprintf(all + strlen(all), "%s%s", *all ? "\n" : "", line);
  *headers = all;
  return true;
}

void option_refusal(int32_t status, const char *text, char out[WORDS_MAX]) {
  static const struct words_option options[] = {{"license_url", "--license"}, {"ssm_url", "--ssm"},
      {"content_token", "--token-file"}, {"token_header", "--token-header"}, {"extra_headers", "--header"},
      {"ca_file", "--ca-file"}, {NULL, NULL}};
  words_of_refusal(status, text, options, "an option is wrong: ", out);
}
