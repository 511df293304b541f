/*
 * busy_callers.c - two threads call functions without a pause. Heartbeats of another playback stay on time, the
 * process needs only a limited amount of memory, and a callback may call the same functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>

#include "support.h"

#define SECONDS 4.0
#define HEARTBEATS 3

static int started, kept, errors, stopping, calls, latest_ms;
static usher_playback *busy;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type == USHER_EVENT_SESSION_STARTED) add(&started, 1);
  if (event->type == USHER_EVENT_HEARTBEAT_ERROR) add(&errors, 1);
  if (event->type != USHER_EVENT_KEPT_ALIVE) return;
  if ((int)event->lateness_ms > get(&latest_ms)) add(&latest_ms, (int)event->lateness_ms - get(&latest_ms));
  add(&kept, 1);
  /* If the queue of commands is full, this call waits, also in a callback. */
  usher_playback_resume(busy);
}
static void *call(void *context) {
  while (!get(&stopping)) {
    int round;
    for (round = 0; round < 1000; round++) usher_playback_resume(busy);
    usher_context_resume((usher_context *)context);
    add(&calls, 1001);
  }
  return NULL;
}
/* @return the resident memory of this process, in kB. */
static long resident_kb(void) {
  long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (file) fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(void) {
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_delegate *delegate = new_delegate(context, license_url());
  pthread_t threads[2];
  double begun, ended;
  long before, grown;
  int index;
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  busy = play(new_player(context), delegate);
  play(new_player(context), delegate);
  tell(reaches(&started, 2, 20000), "two sessions start");
  before = resident_kb();
  begun = now_s();
  for (index = 0; index < 2; index++) pthread_create(&threads[index], NULL, call, context);
  while (now_s() - begun < SECONDS) sleep_ms(10);
  grown = resident_kb() - before;
  add(&stopping, 1);
  for (index = 0; index < 2; index++) pthread_join(threads[index], NULL);
  ended = now_s();
  tell(get(&calls) > 10000, "%d calls in %.1f s", get(&calls), ended - begun);
  tell(get(&kept) >= 2 * HEARTBEATS * 3 / 4 && get(&errors) == 0, "heartbeats continue: %d, errors: %d", get(&kept),
      get(&errors));
  tell(get(&latest_ms) < 100 * patience(), "the latest heartbeat was %d ms late", get(&latest_ms));
  /* AddressSanitizer keeps freed memory for some time, so under this tool the test cannot judge the growth of the
     memory. */
  if (dlsym(RTLD_DEFAULT, "__asan_init") == NULL)
    tell(grown < 16384L * patience(), "the process grew by %ld kB", grown);
  usher_context_free(context);
  nothing_held("busy callers");
  return failed != 0;
}
