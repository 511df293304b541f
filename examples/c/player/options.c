/* options.c - see options.h. SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <usher/usher.h>

static const char help[] =
    "usher-player - plays a CENC-encrypted MP4 under a concurrent-stream session\n"
    "\n"
    "  usher-player --license-url URL [--ssm-url URL] --token TOKEN encrypted.mp4\n"
    "  usher-player --key HEX encrypted.mp4      with a key that you have; no licence, no session\n"
    "  usher-player --clear clear.mp4            an unencrypted file, to compare the frame hashes\n"
    "\n"
    "Servers\n"
    "  --license-url URL    Clear Key licence server\n"
    "  --ssm-url URL        Secure Session Manager; without it there is no session\n"
    "  --token TOKEN        content token of the operator (or in the environment: USHER_TOKEN)\n"
    "  --ca-file FILE       certificate authorities to trust (PEM)\n"
    "  --kid HEX            request this key id instead of the ids in the file\n"
    "\n"
    "Playing\n"
    "  --realtime           play in real time, as a screen does (same as --speed 1)\n"
    "  --speed N            play N times as fast as real time; default: as fast as possible\n"
    "  --stop-after SECONDS stop at this time of the clip\n"
    "  --loop N             play the file N times under one session\n"
    "\n"
    "Output\n"
    "  --name NAME          name of this screen in the output\n"
    "  --tag N              tag of the playback; its events carry it\n"
    "  --summary-json FILE  also write the report to FILE as JSON\n"
    "  --colour WHEN        auto, always or never\n"
    "  --verbose            log lines of libusher and of the decoders, on stderr\n"
    "\n"
    "Exit code: 0 played as asked, 1 failed, 2 wrong usage, 3 refused because of the stream limit, 4 stopped by an\n"
    "event.\n";

enum {
  OPT_LICENSE = 256,
  OPT_SSM,
  OPT_TOKEN,
  OPT_CA,
  OPT_NAME,
  OPT_TAG,
  OPT_REALTIME,
  OPT_SPEED,
  OPT_STOP,
  OPT_LOOP,
  OPT_KID,
  OPT_KEY,
  OPT_SUMMARY,
  OPT_COLOUR,
  OPT_CLEAR,
  OPT_VERBOSE,
  OPT_VERSION,
  OPT_HELP
};

static const struct option table[] = {{"license-url", required_argument, NULL, OPT_LICENSE},
    {"ssm-url", required_argument, NULL, OPT_SSM}, {"token", required_argument, NULL, OPT_TOKEN},
    {"ca-file", required_argument, NULL, OPT_CA}, {"name", required_argument, NULL, OPT_NAME},
    {"tag", required_argument, NULL, OPT_TAG}, {"realtime", no_argument, NULL, OPT_REALTIME},
    {"speed", required_argument, NULL, OPT_SPEED}, {"stop-after", required_argument, NULL, OPT_STOP},
    {"loop", required_argument, NULL, OPT_LOOP}, {"kid", required_argument, NULL, OPT_KID},
    {"key", required_argument, NULL, OPT_KEY}, {"summary-json", required_argument, NULL, OPT_SUMMARY},
    {"colour", required_argument, NULL, OPT_COLOUR}, {"color", required_argument, NULL, OPT_COLOUR},
    {"clear", no_argument, NULL, OPT_CLEAR}, {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"version", no_argument, NULL, OPT_VERSION}, {"help", no_argument, NULL, OPT_HELP}, {NULL, 0, NULL, 0}};

static bool number(const char *text, double least, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == '\0' && *out >= least && *out <= 1e9;
}

static enum options_result wrong(const char *why) {
  fprintf(stderr, "usher-player: %s (see --help)\n", why);
  return OPTIONS_WRONG;
}

/* Checks that the options fit together: --clear, --key and --license-url exclude each other, and one of them is
   required. @return OPTIONS_PLAY, or OPTIONS_WRONG after it has printed the mistake. */
static enum options_result check(const struct options *o) {
  if (o->clear && (o->key_hex || o->license_url || o->ssm_url))
    return wrong("--clear plays without key, licence and session");
  if (o->key_hex && (o->license_url || o->ssm_url)) return wrong("--key plays without licence and session");
  if (!o->clear && !o->key_hex && !o->license_url) return wrong("--license-url is missing (or --key, or --clear)");
  if (o->license_url && !o->token) return wrong("--token is missing");
  if (strcmp(o->colour, "auto") != 0 && strcmp(o->colour, "always") != 0 && strcmp(o->colour, "never") != 0)
    return wrong("--colour takes auto, always or never");
  return OPTIONS_PLAY;
}

enum options_result options_parse(int argc, char **argv, struct options *out) {
  struct options o = {.token = getenv("USHER_TOKEN"), .name = "player", .colour = "auto", .loops = 1};
  double value;
  for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;) {
    switch (option) {
    case OPT_LICENSE: o.license_url = optarg; break;
    case OPT_SSM: o.ssm_url = optarg; break;
    case OPT_TOKEN: o.token = optarg; break;
    case OPT_CA: o.ca_file = optarg; break;
    case OPT_NAME: o.name = optarg; break;
    case OPT_KID: o.kid_hex = optarg; break;
    case OPT_KEY: o.key_hex = optarg; break;
    case OPT_SUMMARY: o.summary_file = optarg; break;
    case OPT_COLOUR: o.colour = optarg; break;
    case OPT_CLEAR: o.clear = true; break;
    case OPT_VERBOSE: o.verbose = true; break;
    case OPT_REALTIME: o.speed = 1; break;
    case OPT_SPEED:
      if (!number(optarg, 0.01, &o.speed)) return wrong("--speed takes a number, e.g. 2");
      break;
    case OPT_STOP:
      if (!number(optarg, 0.001, &o.stop_after)) return wrong("--stop-after takes seconds");
      break;
    case OPT_TAG:
      if (!number(optarg, 0, &value)) return wrong("--tag takes a number");
      o.tag = (uint64_t)value;
      break;
    case OPT_LOOP:
      if (!number(optarg, 1, &value)) return wrong("--loop takes a count");
      o.loops = (unsigned)value;
      break;
    case OPT_HELP: fputs(help, stdout); return OPTIONS_DONE;
    case OPT_VERSION: printf("usher-player, libusher %s\n", usher_version()); return OPTIONS_DONE;
    default: return wrong("unknown option, or its value is missing");
    }
  }
  if (optind + 1 != argc) return wrong(optind == argc ? "which file?" : "one file at a time");
  o.file = argv[optind];
  *out = o;
  return check(out);
}
