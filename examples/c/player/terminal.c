/* terminal.c - see terminal.h. SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_terminal, has_colours, has_utf8;

void terminal_init(const char *colour) {
  setlocale(LC_CTYPE, "");
  const char *no_colour = getenv("NO_COLOR");
  is_terminal = isatty(STDOUT_FILENO) == 1;
  has_colours =
      strcmp(colour, "always") == 0 || (strcmp(colour, "auto") == 0 && is_terminal && !(no_colour && *no_colour));
  has_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

const char *paint(enum paint paint) {
  static const char *const escapes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[31m"};
  return has_colours ? escapes[paint] : "";
}

const char *sign(const char *utf8, const char *plain) { return has_utf8 ? utf8 : plain; }

void progress_show(const char *line) {
  if (!is_terminal) return;
  printf("\r\033[K%s", line);
  fflush(stdout);
}

void progress_clear(void) {
  if (is_terminal) printf("\r\033[K");
}
