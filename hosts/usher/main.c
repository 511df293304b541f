/* main.c - usher: programs around libusher, as sub-commands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usher/usher.h>

enum { EXIT_MISSING = 127 };

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *summary;
} commands[] = {
    {"run", run_command, "plays an encrypted clip with any player, under a session"},
    {"gateway", gateway_command, "serves keys under a session to unmodified players: HLS, and web pages by EME"},
    {"trace", trace_command, "shows what libusher sent and received, as a timeline"},
};

/* Commands of the Python package, as bindings/python/src/usher/cli/registry.py lists them. */
static const struct {
  const char *name, *summary;
} python_commands[] = {
    {"probe", "plays once against a head-end, and says what is wrong"},
    {"check", "asks a head-end every statement of the protocol"},
    {"watch", "shows the sessions of a reference head-end, live"},
    {"explain", "says in words what an error code means"},
    {"headend", "runs the reference head-end, a server for tests"},
    {"load", "plays on many screens at once, and measures"},
    {"record", "records a player and its head-end, without secrets"},
    {"replay", "plays a recording back, and says where they differ"},
    {"completion", "prints the completion script for bash, zsh or fish"},
};

/* Runs a command of the Python package. Call this only for a command in `python_commands`: for the other commands, the
   package would start this program again. Returns only if Python cannot be started. */
static int python_command(int argc, char **argv) {
  static char script[] =
      "import sys\n"
      "try:\n"
      "    from usher.cli.main import main\n"
      "except ModuleNotFoundError as error:\n"
      "    if not (error.name or '').startswith('usher'):\n"
      "        raise\n"
      "    print(f\"usher {sys.argv[1]}: this command is in the Python package libusher, which is \"\n"
      "          \"not installed: pip install 'libusher[cli]'\", file=sys.stderr)\n"
      "    sys.exit(127)\n"
      "sys.exit(main())\n";
  const char *named = getenv("USHER_PYTHON");
  char *python = (char *)(named && *named ? named : "python3");
  char **arguments = calloc((size_t)argc + 4, sizeof *arguments);
  if (!arguments) return fprintf(stderr, "usher: %s\n", strerror(errno)), EXIT_MISSING;
  arguments[0] = python, arguments[1] = "-c", arguments[2] = script;
  for (int i = 1; i < argc; i++) arguments[i + 2] = argv[i];
  execvp(python, arguments);
  fprintf(stderr, "usher %s: this command needs Python, and %s cannot be run: %s\n", argv[1], python, strerror(errno));
  free(arguments);
  return EXIT_MISSING;
}

static void help(FILE *out) {
  fprintf(out, "usage: usher COMMAND ...\n\n");
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fprintf(out, "\nin the Python package libusher, with the extra cli:\n");
  for (size_t i = 0; i < sizeof python_commands / sizeof python_commands[0]; i++)
    fprintf(out, "  %-10s %s\n", python_commands[i].name, python_commands[i].summary);
  fprintf(out, "\n`usher COMMAND --help` explains a command; `usher --version` prints the version of the library.\n");
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "--version") == 0) return printf("usher %s\n", usher_version()) < 0;
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) return help(stdout), 0;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    if (strcmp(name, commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  for (size_t i = 0; i < sizeof python_commands / sizeof python_commands[0]; i++)
    if (strcmp(name, python_commands[i].name) == 0) return python_command(argc, argv);
  if (*name) fprintf(stderr, "usher: there is no command %s\n\n", name);
  return help(stderr), EXIT_USAGE;
}
