/*
 * ends.c - a host over https whose process ends while the library works. See test_ends.py.
 *
 *   ends WAY BASE_URL CA_FILE
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <usher/usher.h>

static usher_context *context;
static volatile int has_freed;

static void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}
static void frees(void) {
  printf("close: %s\n", usher_status_name(usher_context_close(context, 0, NULL)));
  printf("free: %s\n", usher_status_name(usher_context_free(context)));
  fflush(stdout);
}
static void waits(void) { sleep_ms(300); }
static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type != USHER_EVENT_SESSION_STARTED) return;
  usher_context_free(context);
  has_freed = 1;
}

int main(int argc, char **argv) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_ssp_options server = USHER_SSP_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  const char *way;
  int tries;
  if (argc != 4) return 2;
  way = argv[1];
  /* Exit handlers run in reverse order. If OpenSSL registers its exit handler after this handler, OpenSSL frees its
     memory before this handler runs. */
  atexit(strstr(way, "handler-frees") ? frees : waits);
  if (strstr(way, "host-uses-openssl")) {
    int (*initialise)(uint64_t, const void *) =
        (int (*)(uint64_t, const void *))(uintptr_t)dlsym(RTLD_DEFAULT, "OPENSSL_init_ssl");
    if (!initialise || initialise(0, NULL) != 1) return 3;
  }
  options.ca_file = argv[3];
  options.wipe_freed_memory = strstr(way, "wiping") != NULL;
  server.license_url = server.ssm_url = argv[2];
  server.period_min_ms = 20;
  if (usher_context_new(&options, &context) != USHER_OK) return 4;
  if (strstr(way, "callback-frees")) usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  if (usher_ssp_delegate_new(context, &server, &delegate) != USHER_OK) return 5;
  usher_player_new(context, &player);
  item.delegate = delegate;
  item.content_token = "content-token";
  if (usher_player_play(player, &item, &playback) != USHER_OK) return 6;
  if (strstr(way, "callback-frees"))
    for (tries = 0; tries < 10000 && !has_freed; tries++) sleep_ms(1);
  else if (usher_playback_wait_session(playback, 0, NULL) != USHER_OK) return 7;
  if (strstr(way, "ends-openssl")) {
    void (*clean_up)(void) = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "OPENSSL_cleanup");
    if (!clean_up) return 3;
    clean_up();
    sleep_ms(100);
    frees();
  }
  return 42;
}
