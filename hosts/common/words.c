/* words.c - see words.h. SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void words_of_error(const usher_error *error, char out[WORDS_MAX]) {
  usher_explanation found;
  if (usher_error_explain(error, &found) != USHER_OK)
    found = (usher_explanation){.summary = usher_status_message(error->status), .advice = ""};
  int size = snprintf(out, WORDS_MAX, "%s\n%s", found.summary, found.advice);
  if (error->service_code && size > 0 && size < WORDS_MAX)
    snprintf(out + size, WORDS_MAX - (size_t)size, "\n(%s, code %lld)", usher_origin_name(error->origin),
        (long long)error->service_code);
}

void words_of_wait(const usher_error *error, long seconds, char out[WORDS_MAX]) {
  words_of_error(error, out);
  size_t size = strlen(out);
  snprintf(out + size, WORDS_MAX - size, "\nWaiting for at most %ld s until another device stops.", seconds);
}

void words_of_refusal(
    int32_t status, const char *text, const struct words_option *options, const char *before, char out[WORDS_MAX]) {
  size_t length = strcspn(text, ":");
  while (options->field && (strlen(options->field) != length || strncmp(options->field, text, length) != 0)) options++;
  snprintf(out, WORDS_MAX, "%s%s%s (%s)", before, options->field ? options->option : "",
      options->field ? text + length : text, usher_status_name(status));
}

char *words_first_line(const char *path) {
  char *line = NULL;
  size_t room = 0;
  FILE *file = fopen(path, "re");
  if (!file) return NULL;
  errno = ENODATA; /* for an empty file */
  ssize_t size = getline(&line, &room, file);
  int error = errno;
  fclose(file);
  if (size > 0) line[strcspn(line, "\r\n")] = 0;
  if (size > 0 && line[0]) return line;
  free(line);
  errno = error ? error : ENODATA;
  return NULL;
}
