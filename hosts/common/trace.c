/* trace.c - see trace.h. SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void on_log(int32_t level, const char *line, void *user_data) {
  if (level != USHER_LOG_TRACE) return;
  fprintf(user_data, "%s\n", line);
  /* Write each line at once, so that the file is complete even if the process is killed. */
  fflush(user_data);
}

static void on_destroy(void *user_data) { fclose(user_data); }

bool trace_to_file(usher_context_options *options, const char *path) {
  if (!path) return true;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  if (!file && fd >= 0) close(fd);
  if (!file) return false;
  options->log = on_log, options->log_level = USHER_LOG_TRACE;
  options->log_user_data = file, options->log_destroy = on_destroy;
  return true;
}
