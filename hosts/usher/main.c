/* main.c - usher: programs around libusher, as sub-commands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *summary;
} commands[] = {
    {"run", run_command, "plays an encrypted clip with any player, under a session"},
    {"gateway", gateway_command, "serves keys under a session to unmodified players: HLS, and web pages by EME"},
    {"trace", trace_command, "shows what libusher sent and received, as a timeline"},
};

static void help(FILE *out) {
  fprintf(out, "usage: usher COMMAND ...\n\n");
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fprintf(out, "\n`usher COMMAND --help` explains a command; `usher --version` prints the version of the library.\n");
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "--version") == 0) return printf("usher %s\n", usher_version()) < 0;
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) return help(stdout), 0;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    if (strcmp(name, commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  if (*name) fprintf(stderr, "usher: there is no command %s\n\n", name);
  return help(stderr), 2;
}
