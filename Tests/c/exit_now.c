/*
 * exit_now.c - the process ends while the library works: main returns, or main, a callback or another thread calls
 * exit(). Meanwhile callbacks run, and requests wait for replies; an atexit handler or a destructor may still call the
 * library. The test does this in threaded and pumped mode. Each process must end at once, with its own exit code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"
#include <sys/wait.h>

static usher_context *context;
static usher_player *player;
static int started, exit_in_callback;

static void on_event(const usher_event *event, void *user_data) {
  (void)event, (void)user_data;
  add(&started, 1);
  if (exit_in_callback) exit(42);
  for (;;) sleep_ms(1000); /* a callback that never ends */
}
static void on_license(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  (void)p, (void)r, (void)tag, (void)user_data;
}
static void at_exit(void) {
  usher_player_stop(player, USHER_CLOSE_TEARDOWN);
  usher_context_free(context);
}
static void *exits(void *unused) { exit(unused ? 43 : 42); }
static void *plays(void *unused) {
  while (!unused) {
    usher_player *another = NULL;
    if (usher_player_new(context, &another) != USHER_OK) sleep_ms(1);
    usher_player_free(another);
  }
  return unused;
}

static const char *const ways[] = {"return", "exit", "exit-in-callback", "exit-in-thread", "atexit-frees",
    "busy-threads", "pumped-return", "pumped-exit-in-callback", "requests-stalled", "after-free"};

/* Runs in the child process, and ends this process in the way that `way` names. */
static int die(const char *way) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  pthread_t thread;
  int index, pumped = strncmp(way, "pumped", 6) == 0;
  context = new_context(pumped ? USHER_CALLBACKS_PUMPED : USHER_CALLBACKS_THREADED);
  exit_in_callback = strstr(way, "exit-in-callback") != NULL;
  if (strcmp(way, "atexit-frees") && strcmp(way, "after-free"))
    usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  player = new_player(context);
  {
    usher_delegate *delegate = new_delegate(context, license_url());
    usher_playback *playback = play(player, delegate);
    if (strcmp(way, "requests-stalled") == 0) fault("{\"route\":\"license\",\"fault\":{\"kind\":\"stall\"}}");
    if (strcmp(way, "requests-stalled") == 0)
      usher_playback_request_license(playback, &request, on_license, NULL, NULL);
    if (strcmp(way, "pumped-exit-in-callback") == 0)
      for (;;) usher_context_pump(context, NULL), sleep_ms(1);
    if (strcmp(way, "atexit-frees") == 0 || strcmp(way, "after-free") == 0 || pumped)
      usher_playback_wait_session(playback, 0, NULL);
    else reaches(&started, 1, 5000);
  }
  if (strcmp(way, "after-free") == 0) usher_context_free(context);
  if (strcmp(way, "busy-threads") == 0)
    for (index = 0; index < 4; index++) pthread_create(&thread, NULL, plays, NULL);
  if (strcmp(way, "atexit-frees") == 0) atexit(at_exit);
  if (strcmp(way, "exit-in-thread") == 0) {
    pthread_create(&thread, NULL, exits, NULL);
    for (;;) sleep_ms(1000);
  }
  if (exit_in_callback)
    for (;;) sleep_ms(1000);
  if (strcmp(way, "exit") == 0) exit(42);
  return 42;
}

int main(int argc, char **argv) {
  int index;
  if (argc == 2) return die(argv[1]);
  for (index = 0; index < (int)(sizeof ways / sizeof *ways); index++) {
    double since = now_s();
    int status = 0, limit = 15 * patience();
    pid_t child = fork();
    if (child == 0) {
      alarm((unsigned)limit);
      execl(argv[0], argv[0], ways[index], (char *)NULL); /* under valgrind /proc/self/exe is valgrind */
      _exit(127);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
      tell(0, "%s: ended by signal %d after %.1f s", ways[index], WTERMSIG(status), now_s() - since);
    else
      tell(WEXITSTATUS(status) == 42, "%s: exit code %d after %.1f s", ways[index], WEXITSTATUS(status),
          now_s() - since);
    if (index == 0) tell(held() == 1, "the process did not close its context, so the head-end holds the session");
  }
  return failed != 0;
}
