/* gateway_options.c - see gateway_options.h. SPDX-License-Identifier: Apache-2.0 */
#include "gateway_options.h"

#include "playlist.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: usher gateway --license URL [--ssm URL] --token-file FILE [options] [CLIP [-- PLAYER ...]]\n"
    "\n"
    "Serves the keys of encrypted content to unmodified players on this machine, under a session. CLIP: an HLS\n"
    "playlist with AES-128 keys, or for a web browser an encrypted fragmented MP4: a path or a URL. The gateway\n"
    "prints the URL to give to the player, or runs PLAYER with it:\n"
    "\n"
    "  usher gateway ... film.m3u8                              prints http://127.0.0.1:PORT/SECRET/0/film.m3u8\n"
    "  usher gateway ... film.m3u8 -- vlc                       vlc gets the URL as its last argument\n"
    "  usher gateway ... film.m3u8 -- ffmpeg -i {clip} out.mkv  {clip}: the URL\n"
    "  usher gateway ... film.mp4 -- chromium                   a web page of the gateway plays the film\n"
    "  usher gateway ... --allow-origin https://tv.example      prints the URL of Clear Key licences, for a web page\n"
    "\n"
    "The session begins when the player asks for the first key. It ends when the player is gone: when it has had no\n"
    "connection to the gateway for the time of --idle, or when PLAYER has ended. The URL is then no longer valid, and\n"
    "the gateway prints another one. When the operator ends the session, keys and segments stop.\n"
    "\n"
    "  --license URL          the licence server, which answers Clear Key requests\n"
    "  --ssm URL              the session manager; without this option there is no session\n"
    "  --token-file FILE      a file whose first line is the content token\n"
    "  --token-header NAME    the header that carries the tokens (nv-authorizations)\n"
    "  --header LINE          a further header for each request, \"Name: value\"\n"
    "  --ca-file FILE         the certificate authorities to trust; for CLIP, besides those of the system\n"
    "  --allow-http           allow http URLs to other machines\n"
    "  --key-id HEX           the key id of key lines that name none, neither by KEYID nor in their URI\n"
    "  --allow-origin ORIGIN  a web page that may use the gateway: scheme://host[:port]; may be repeated\n"
    "  --port N               the port on 127.0.0.1 (a free one)\n"
    "  --idle S               how many seconds a player may have no connection (300)\n"
    "  --once                 end after the first playback\n"
    "  --timeout S            longest wait for a licence, and for a playlist (20)\n"
    "  --slot-wait S          longest wait until another device frees a slot, if the limit is reached (0)\n"
    "  --quit-timeout S       longest wait for the teardown at the end (2)\n"
    "  --trace FILE           writes a trace, without tokens and keys, for `usher trace`\n"
    "\n"
    "Exit code: that of PLAYER; 0 after SIGTERM, SIGINT or SIGHUP without PLAYER, and with --once after the playback;\n"
    "2: wrong arguments; 3: the gateway cannot start, and the reason is printed; 4: the session was lost (--once or\n"
    "PLAYER), and the reason is printed; 127: PLAYER cannot be run.\n";

static int wrong(const char *words) {
  fprintf(stderr, "usher gateway: %s\nusher gateway --help explains the arguments.\n", words);
  return EXIT_USAGE;
}

/* @return 0 on success, -1 after it has printed the help, otherwise the exit code. */
static int read_options(int argc, char **argv, struct gateway_options *options) {
  enum { IDLE = COMMON_END, PORT, ONCE, KEY_ID, ORIGIN, HELP };
  static const struct option known[] = {COMMON_OPTIONS, {"idle", 1, NULL, IDLE}, {"port", 1, NULL, PORT},
      {"once", 0, NULL, ONCE}, {"key-id", 1, NULL, KEY_ID}, {"allow-origin", 1, NULL, ORIGIN}, {"help", 0, NULL, HELP},
      {NULL, 0, NULL, 0}};
  const char *problem;
  int option;
  while ((option = getopt_long(argc, argv, "+", known, NULL)) != -1) switch (option) {
    case IDLE:
      if (!option_number(optarg, 86400, &options->idle_s)) return wrong("--idle is a number of seconds, 0 to 86400");
      break;
    case PORT:
      if (!option_number(optarg, 65535, &options->port)) return wrong("--port is a number, 0 to 65535");
      break;
    case ONCE: options->once = true; break;
    case KEY_ID:
      options->has_default_key_id = key_id_read(optarg, options->default_key_id);
      if (!options->has_default_key_id) return wrong("--key-id has 32 hexadecimal digits");
      break;
    case ORIGIN: {
      const char *host = strstr(optarg, "://");
      if (!host || host == optarg || !host[3] || strchr(host + 3, '/'))
        return wrong("--allow-origin has the form scheme://host or scheme://host:port, without a path");
      if (options->origin_count == GATEWAY_ORIGINS_MAX) return wrong("--allow-origin can be repeated 16 times");
      options->origins[options->origin_count++] = optarg;
      break;
    }
    case HELP: return fputs(help, stdout), -1;
    case '?': return EXIT_USAGE; /* getopt_long() has printed why */
    default:
      if ((problem = common_take(&options->common, option, optarg))) return wrong(problem);
    }
  if (optind < argc && strcmp(argv[optind - 1], "--") != 0) options->clip = argv[optind++];
  if (options->clip && optind < argc && strcmp(argv[optind], "--") == 0) optind++;
  if (optind < argc) options->command = argv + optind;
  if (options->command && !options->clip) return wrong("which clip? Write it before --");
  problem = common_missing(&options->common);
  return problem ? wrong(problem) : 0;
}

bool gateway_options_read(int argc, char **argv, struct gateway_options *options, int *code) {
  *options = (struct gateway_options){.common = {.timeout_s = GATEWAY_TIMEOUT_S, .quit_timeout_s = 2}, .idle_s = 300};
  int status = read_options(argc, argv, options);
  *code = status > 0 ? status : 0;
  return status == 0;
}
