/* run.c - usher run: a session and a licence around the process of any player.
 *
 * One thread waits in one poll() for signals and for libusher's callbacks. SPDX-License-Identifier: Apache-2.0 */
#include "../common/content.h"
#include "../common/session.h"
#include "../common/words.h"
#include "commands.h"
#include "options.h"
#include "player.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_REFUSED = 3, EXIT_LOST = 4, EXIT_NO_PLAYER = 127 };

struct run {
  struct common_options options;
  const char *clip;
  long kill_after_s;
  enum player_kind kind;
  char **command;

  struct session session;
  struct content content;
  sigset_t mask; /* the signal mask that this process had at its start */
  sigset_t caught; /* the signals that `signals` reads */
  int signals;
  pid_t pid; /* the process id of the player; 0: not started yet */
  bool ended; /* usher has nothing left to do */
  int code; /* the exit code of usher */
  bool lost; /* the session is lost; the player gets SIGTERM, and SIGKILL at `kill_at_ms` */
  int64_t kill_at_ms; /* 0: never */
  char words[WORDS_MAX];
};

static const char help[] =
    "usage: usher run --license URL [--ssm URL] --token-file FILE [options] CLIP -- PLAYER ...\n"
    "\n"
    "Gets a session and a licence for CLIP, runs PLAYER with its key, keeps the session alive while PLAYER runs, and\n"
    "gives the slot back as soon as PLAYER has ended, in whatever way. CLIP: an encrypted MP4 or a DASH manifest.\n"
    "\n"
    "  usher run ... film.mp4 -- mpv --fs                            mpv gets the clip as its last argument\n"
    "  usher run ... film.mp4 -- ffmpeg -i {clip} -c copy clear.mkv  {clip}: the clip; also for ffplay, ffprobe\n"
    "  usher run ... film.mp4 -- my-player {clip} {keys-file}        {keys-file}: a file with lines KEY_ID:KEY\n"
    "\n"
    "No argument of PLAYER shows a key or a token: the key is in a file without a name, which PLAYER inherits.\n"
    "\n"
    "  --license URL        the licence server\n"
    "  --ssm URL            the session manager; without this option there is no session\n"
    "  --token-file FILE    a file whose first line is the content token\n"
    "  --token-header NAME  the header that carries the tokens (nv-authorizations)\n"
    "  --header LINE        a further header for each request, \"Name: value\"\n"
    "  --ca-file FILE       the certificate authorities to trust\n"
    "  --allow-http         allow http URLs to other machines\n"
    "  --timeout S          longest wait for the licence (20)\n"
    "  --slot-wait S        longest wait until another device frees a slot, if the limit is reached (0)\n"
    "  --quit-timeout S     longest wait for the teardown, after PLAYER has ended (2)\n"
    "  --kill-after S       when the session is lost, PLAYER gets SIGTERM, and S seconds later SIGKILL (5)\n"
    "  --trace FILE         writes a trace, without tokens and keys, for `usher trace`\n"
    "  --player KIND        which player PLAYER is, if its name does not show this: mpv, ffmpeg or other\n"
    "\n"
    "Exit code: that of PLAYER; 128 + N if signal N ended it; 2: wrong arguments; 3: no licence, and the reason is\n"
    "printed; 4: the session was lost, and the reason is printed; 127: PLAYER cannot be run.\n";

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what libusher reports --------------------------------------------------------------------------------------- */

static void finish(struct run *run, int code) {
  session_stop(&run->session);
  run->ended = true, run->code = code;
}

static void refuse(struct run *run, const char *words) {
  fprintf(stderr, "usher: %s\n", words);
  finish(run, EXIT_REFUSED);
}

static void start(struct run *run, const usher_clearkey_key *keys, size_t count) {
  sigaddset(&run->caught, SIGCHLD);
  signalfd(run->signals, &run->caught, SFD_NONBLOCK | SFD_CLOEXEC);
  run->pid = player_start(run->kind, run->command, run->clip, &run->content, keys, count, &run->mask);
  if (run->pid > 0) return;
  fprintf(stderr, "usher: %s: %s\n", run->command[0], strerror(errno));
  finish(run, EXIT_NO_PLAYER);
}

static void on_licensed(const usher_clearkey_key *keys, size_t count, void *user_data) {
  struct run *run = user_data;
  if (run->ended || run->pid) return;
  char *value = content_option_value(&run->content, keys, count);
  bool complete = value != NULL;
  if (value) explicit_bzero(value, strlen(value));
  free(value);
  if (complete) start(run, keys, count);
  else refuse(run, WORDS_OTHER_KEYS);
}

static void on_waiting(const usher_notice *notice, void *user_data) {
  const struct run *run = user_data;
  char words[WORDS_MAX];
  words_of_wait(&notice->error, run->options.slot_wait_s, words);
  fprintf(stderr, "usher: %s\n", words);
}

static void on_failed(const usher_notice *notice, void *user_data) {
  struct run *run = user_data;
  if (run->ended || run->lost) return;
  words_of_error(&notice->error, run->words);
  if (!run->pid) {
    refuse(run, run->words);
    return;
  }
  fprintf(stderr, "usher: %s\n", run->words);
  run->lost = true;
  run->kill_at_ms = now_ms() + run->kill_after_s * 1000;
  kill(run->pid, SIGTERM);
}

static void on_unconfirmed(const char *why, void *user_data) {
  (void)user_data;
  fprintf(stderr, "usher: the server did not confirm the end of the stream; it may count it for some time: %s\n", why);
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

static void on_child(struct run *run) {
  int status;
  if (!run->pid || waitpid(run->pid, &status, WNOHANG) != run->pid) return;
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  finish(run, run->lost ? EXIT_LOST : code);
}

static void on_signal(struct run *run) {
  struct signalfd_siginfo info;
  while (read(run->signals, &info, sizeof info) == sizeof info) {
    int number = (int)info.ssi_signo;
    if (number == SIGCHLD) on_child(run);
    else if (run->ended) continue;
    else if (!run->pid) finish(run, 128 + number);
    else if (info.ssi_code != SI_KERNEL)
      /* Forward the signal to the player, unless its code is SI_KERNEL: the terminal has then also sent it to the
         player. */
      kill(run->pid, number);
  }
}

static void loop(struct run *run) {
  while (!run->ended) {
    struct pollfd due[] = {{run->signals, POLLIN, 0}, {run->session.fd, POLLIN, 0}};
    int64_t wait_ms = run->kill_at_ms ? run->kill_at_ms - now_ms() : -1;
    if (run->kill_at_ms && wait_ms <= 0) kill(run->pid, SIGKILL), run->kill_at_ms = 0, wait_ms = -1;
    poll(due, 2, (int)wait_ms);
    if (due[0].revents) on_signal(run);
    if (due[1].revents) usher_context_pump(run->session.context, NULL);
  }
}

static void catch_signals(struct run *run) {
  static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  sigemptyset(&run->caught);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) sigaddset(&run->caught, numbers[i]);
  /* Block the signals before libusher starts threads: these threads then inherit the signal mask. */
  sigprocmask(SIG_BLOCK, &run->caught, &run->mask);
  /* Until the player starts, SIGCHLD can only come from a child that this process had before exec(): ignore it. */
  sigdelset(&run->caught, SIGCHLD);
  /* If SIGCHLD were ignored, waitpid() would not return the exit code of the player. So set the default action. */
  signal(SIGCHLD, SIG_DFL);
  run->signals = signalfd(-1, &run->caught, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int wrong(const char *words) {
  fprintf(stderr, "usher run: %s\nusher run --help explains the arguments.\n", words);
  return EXIT_USAGE;
}

/* @return 0 on success, -1 after it has printed the help, otherwise the exit code. */
static int read_options(struct run *run, int argc, char **argv) {
  enum { KILL_AFTER = COMMON_END, PLAYER, HELP };
  static const struct option known[] = {COMMON_OPTIONS, {"kill-after", 1, NULL, KILL_AFTER},
      {"player", 1, NULL, PLAYER}, {"help", 0, NULL, HELP}, {NULL, 0, NULL, 0}};
  const char *kind = NULL, *problem = NULL;
  int option;
  while (!problem && (option = getopt_long(argc, argv, "+", known, NULL)) != -1) switch (option) {
    case KILL_AFTER:
      if (!option_number(optarg, 3600, &run->kill_after_s)) problem = "--kill-after is a number of seconds, 0 to 3600";
      break;
    case PLAYER: kind = optarg; break;
    case HELP: return fputs(help, stdout), -1;
    case '?': return EXIT_USAGE; /* getopt_long() has printed why */
    default: problem = common_take(&run->options, option, optarg);
    }
  if (problem) return wrong(problem);
  if (optind >= argc) return wrong("which clip?");
  run->clip = argv[optind++];
  if (optind < argc && strcmp(argv[optind], "--") == 0) optind++;
  if (optind >= argc) return wrong("which player? Write it after --");
  run->command = argv + optind;
  run->kind = player_kind_of(run->command[0]);
  if (kind) {
    if (strcmp(kind, "mpv") == 0) run->kind = PLAYER_MPV;
    else if (strcmp(kind, "ffmpeg") == 0) run->kind = PLAYER_FFMPEG;
    else if (strcmp(kind, "other") == 0) run->kind = PLAYER_OTHER;
    else return wrong("--player is mpv, ffmpeg or other");
  }
  problem = common_missing(&run->options);
  if (!problem) problem = player_obstacle(run->kind, run->command);
  return problem ? wrong(problem) : 0;
}

/* Sets up the session and requests the licence. */
static void ask(struct run *run) {
  run->session.user_data = run, run->session.licensed = on_licensed;
  run->session.waiting = on_waiting, run->session.failed = on_failed, run->session.unconfirmed = on_unconfirmed;
  const char *why = common_open(&run->options, &run->session, run->words);
  const struct content *content = &run->content;
  if (!why) why = common_play(&run->options, &run->session, content->key_ids[0], content->key_id_count, run->words);
  if (why) refuse(run, why);
}

static bool is_signalled(void *user_data) {
  const struct run *run = user_data;
  return poll(&(struct pollfd){run->signals, POLLIN, 0}, 1, 0) > 0;
}

int run_command(int argc, char **argv) {
  struct run run = {.options = {.timeout_s = 20, .quit_timeout_s = 2}, .kill_after_s = 5, .session = {.fd = -1}};
  int wrong_options = read_options(&run, argc, argv);
  if (wrong_options) return wrong_options < 0 ? 0 : wrong_options;
  catch_signals(&run);
  struct content_reading reading = {.cancelled = is_signalled, .user_data = &run};
  content_read(run.clip, &reading, &run.content);
  bool encrypted = run.content.kind == CONTENT_MP4 || run.content.kind == CONTENT_DASH;
  const char *obstacle = encrypted && run.kind != PLAYER_OTHER ? content_obstacle(&run.content) : NULL;
  /* If a signal has come, start no player: loop() reads the signal, and then ends. */
  if (is_signalled(&run)) obstacle = NULL;
  else if (run.content.kind == CONTENT_UNREADABLE) {
    snprintf(run.words, WORDS_MAX, "%.300s: %.300s", run.clip, run.content.why);
    refuse(&run, run.words);
  } else if (run.content.kind == CONTENT_UNUSABLE || run.content.kind == CONTENT_UNSUPPORTED)
    refuse(&run, run.content.why);
  else if (obstacle) refuse(&run, obstacle);
  else if (encrypted) ask(&run);
  else {
    fprintf(
        stderr, "usher: %s is not encrypted, or no MP4 and no DASH manifest: it plays without a session\n", run.clip);
    start(&run, NULL, 0);
  }
  loop(&run);
  session_close(&run.session, (uint32_t)run.options.quit_timeout_s * 1000);
  return run.code;
}
