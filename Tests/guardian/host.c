/*
 * host.c - a host with a guardian; a test kills this host. The host plays two items, one after the other (a zap), with
 * heartbeats on the manual clock, and writes a line to standard output when something has happened.
 *
 *   host WAY LICENSE_URL SSM_URL TOKEN TOKEN2 [NAME=VALUE ...]
 *
 * WAY: "v1" (set-up, then a licence), "v2" (the licence request opens the session), "enforced" (renewals keep the
 * session alive). NAME=VALUE: ca_file, client_certificate_file, client_key_file, client_key_passphrase, guardian_path,
 * proxy, journal_file (in clear); cookies=1; http2=1; guardian=0 (none); sessions=N (N playbacks at the same time,
 * instead of the zap); beats=N; stays=1: waits for a line of standard input after the heartbeats; ends=WAY_OF_ENDING;
 * exit_ms=N (close_at_exit_ms); openssl=1: the host initialises OpenSSL before the library does, and uses it in two
 * exit handlers, one of which runs before that of the library and one after it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usher/usher.h>

enum { PERIOD_MS = 10000, SESSIONS_MOST = 1000 };

static const char *way, *license_url, *ssm_url;
static usher_context *context;
static usher_delegate *delegate;
static usher_player *players[SESSIONS_MOST];
static usher_playback *playbacks[SESSIONS_MOST];
static usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
static long sessions = 1, beats = 2, stays;
static const char *ends = "frees";

static void say(const char *what, unsigned long number) {
  char line[100];
  int size = snprintf(line, sizeof line, "%s %lu\n", what, number);
  if (write(1, line, (size_t)size) != size) _exit(70);
}
static void check(int32_t status, const char *what) {
  if (status == USHER_OK) return;
  fprintf(stderr, "%s: %s\n", what, usher_status_name(status));
  _exit(71);
}
static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type == USHER_EVENT_SESSION_STARTED) say("started", (unsigned long)event->tag);
  if (event->type == USHER_EVENT_KEPT_ALIVE) say("beat", (unsigned long)event->tag);
  if (event->type == USHER_EVENT_SESSION_ENDED) say("ended", (unsigned long)event->tag);
  if (event->error.status != USHER_OK)
    fprintf(stderr, "%s: %s\n", usher_event_name(event->type), event->error.message ? event->error.message : "");
}
static void on_log(int32_t level, const char *line, void *user_data) {
  (void)user_data;
  if (level <= USHER_LOG_WARNING) fprintf(stderr, "log: %s\n", line);
}
static void on_refusal(int32_t status, const char *text, void *user_data) {
  (void)user_data;
  fprintf(stderr, "refused: %s: %s\n", usher_status_name(status), text);
}
static void on_payload(
    usher_completion id, usher_playback *playback, const char *system, uint64_t tag, void *user_data) {
  (void)playback, (void)system, (void)tag, (void)user_data;
  usher_complete_payload(id, (const uint8_t *)"renewal", 7);
}

static void play(long index, const char *token, uint64_t tag) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  usher_response *license = NULL;
  usher_playback *before = playbacks[index];
  item.delegate = delegate;
  item.content_token = token;
  item.tag = tag;
  item.payload = on_payload;
  check(usher_player_play(players[index], &item, &playbacks[index]), "usher_player_play");
  usher_playback_free(before);
  request.key_system = strcmp(way, "enforced") == 0 ? USHER_KEY_SYSTEM_FAIRPLAY : USHER_KEY_SYSTEM_WIDEVINE;
  request.payload = (const uint8_t *)"challenge";
  request.payload_size = 9;
  if (strcmp(way, "v2") != 0) check(usher_playback_wait_session(playbacks[index], 0, NULL), "wait_session");
  if (sessions > 1) return;
  check(usher_playback_get_license(playbacks[index], &request, &license), "get_license");
  usher_response_free(license);
  for (long beat = 0; beat < beats; beat++)
    if (options.clock == USHER_CLOCK_MANUAL) check(usher_context_advance(context, PERIOD_MS, 10000), "advance");
}

/* ---- a host that uses OpenSSL itself ---- */

static int (*random_bytes)(unsigned char *bytes, int size);

static void use_openssl(const char *where) {
  unsigned char bytes[16];
  say(where, random_bytes(bytes, sizeof bytes) == 1);
}
static void in_first_handler(void) { use_openssl("first handler"); }
static void in_last_handler(void) { use_openssl("last handler"); }

/* Initialises OpenSSL, which registers an exit handler that frees its memory. Then registers an exit handler of the
 * host. This handler runs before OpenSSL's handler, and after the library's. */
static void initialise_openssl(void) {
  void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_GLOBAL);
  int (*initialise)(uint64_t, const void *) = NULL;
  if (library) *(void **)&initialise = dlsym(library, "OPENSSL_init_ssl");
  if (library) *(void **)&random_bytes = dlsym(library, "RAND_bytes");
  if (!initialise || initialise(0, NULL) != 1 || !random_bytes || atexit(in_last_handler) != 0) _exit(73);
}

static void set(const char *name, const char *value) {
  const struct {
    const char *name, **field;
  } texts[] = {{"ca_file", &options.ca_file}, {"client_certificate_file", &options.client_certificate_file},
      {"client_key_file", &options.client_key_file}, {"client_key_passphrase", &options.client_key_passphrase},
      {"guardian_path", &options.guardian_path}, {"proxy", &options.proxy}, {"journal_file", &options.journal_file},
      {"ends", &ends}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(name, texts[i].name) == 0) *texts[i].field = value;
  if (strcmp(name, "journal_file") == 0) options.journal_in_clear = 1;
  if (strcmp(name, "cookies") == 0) options.keep_cookies = 1;
  if (strcmp(name, "openssl") == 0) initialise_openssl();
  if (strcmp(name, "http2") == 0) options.http2 = 1;
  if (strcmp(name, "guardian") == 0) options.guardian = atoi(value);
  if (strcmp(name, "exit_ms") == 0) options.close_at_exit_ms = (uint32_t)atoi(value);
  if (strcmp(name, "sessions") == 0) sessions = atol(value);
  if (strcmp(name, "beats") == 0) beats = atol(value);
  if (strcmp(name, "stays") == 0) stays = 1;
  if (strcmp(name, "clock") == 0) options.clock = atoi(value);
}

int main(int argc, char **argv) {
  char byte;
  if (argc < 6) return 2;
  way = argv[1], license_url = argv[2], ssm_url = argv[3];
  options.clock = USHER_CLOCK_MANUAL;
  options.guardian = USHER_GUARDIAN_REQUIRED;
  options.proxy = "";
  options.log = on_log;
  options.refusal = on_refusal;
  for (int i = 6; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (!value) return 2;
    *value = 0;
    set(argv[i], value + 1);
  }
  check(usher_context_new(&options, &context), "usher_context_new");
  if (random_bytes && atexit(in_first_handler) != 0) _exit(74);
  check(usher_context_add_observer(context, on_event, NULL, NULL, NULL), "usher_context_add_observer");
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_ssp_v2_options v2 = USHER_SSP_V2_OPTIONS_INIT;
  ssp.license_url = license_url;
  ssp.ssm_url = ssm_url;
  ssp.jitter_permille = USHER_OFF;
  v2.ssp = &ssp;
  v2.teardown_on_close = 1;
  if (strcmp(way, "v2") == 0) check(usher_ssp_v2_delegate_new(context, &v2, &delegate), "usher_ssp_v2_delegate_new");
  else check(usher_ssp_delegate_new(context, &ssp, &delegate), "usher_ssp_delegate_new");
  say("ready", (unsigned long)getpid());
  for (long i = 0; i < sessions && i < SESSIONS_MOST; i++) {
    check(usher_player_new(context, &players[i]), "usher_player_new");
    play(i, argv[4], (uint64_t)i + 1);
  }
  if (sessions == 1) play(0, argv[5], 2);
  say("played", (unsigned long)sessions);
  if (stays && read(0, &byte, 1) != 1) return 72;
  if (strcmp(ends, "returns") == 0) return 5;
  if (strcmp(ends, "exits") == 0) exit(5);
  if (strcmp(ends, "_exits") == 0) _exit(5);
  if (strcmp(ends, "aborts") == 0) abort();
  if (strcmp(ends, "execs") == 0) execl("/bin/sleep", "sleep", "30", (char *)NULL);
  if (strcmp(ends, "forks") == 0) { /* the child keeps copies of all descriptors */
    pid_t child = fork();
    if (child == 0) {
      sleep(60);
      _exit(0);
    }
    say("forked", (unsigned long)child);
    _exit(5);
  }
  if (strcmp(ends, "child-exits") == 0) {
    if (fork() == 0) exit(6);
    say("forked", 0);
    if (read(0, &byte, 1) != 1) return 72;
  }
  check(usher_context_close(context, 0, NULL), "usher_context_close");
  check(usher_context_free(context), "usher_context_free");
  say("freed", 0);
  if (stays && read(0, &byte, 1) != 1) return 72;
  return 0;
}
