/*
 * threads_end.c - before usher_context_free() returns, all callback threads of the context have ended and have
 * destroyed the host's thread-local data. This includes threads that are ending at that moment and idle threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

#define PLAYERS 4

static pthread_key_t key;
static int begun, ended, told_of;

static void on_thread_end(void *attached) {
  (void)attached;
  /* Makes the destructor of the thread-local data slow. */
  sleep_ms(2);
  add(&ended, 1);
}
static void on_event(const usher_event *event, void *user_data) {
  (void)event;
  if (!pthread_getspecific(key)) {
    pthread_setspecific(key, user_data);
    add(&begun, 1);
  }
  /* Keep this thread busy for a moment, so that the library needs other threads for other playbacks. */
  sleep_ms(1);
  add(&told_of, 1);
}

static usher_context *playing(void) {
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_playback_options clear = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback;
  int index;
  clear.delegate = new_delegate(context, license_url());
  clear.clear = 1;
  usher_context_add_observer(context, on_event, &key, NULL, NULL);
  for (index = 0; index < PLAYERS; index++)
    if (usher_player_play(new_player(context), &clear, &playback) != USHER_OK) tell(0, "a clear item is played");
  return context;
}

static void freed_at_once(void) {
  int round, late = 0;
  for (round = 0; round < 100; round++) {
    usher_context_free(playing());
    late += get(&begun) != get(&ended);
  }
  tell(get(&begun) >= 100, "%d threads called back", get(&begun));
  tell(late == 0, "after %d of 100 frees a thread was still running", late);
}

static void after_a_rest(void) {
  usher_context *rested = playing(), *other = playing();
  int before;
  usher_context_close(rested, 0, NULL);
  tell(reaches(&ended, get(&begun), 20000), "idle threads end");
  before = get(&begun);
  /* This call queues the last events of the playbacks, which need callback threads. */
  usher_context_free(other);
  tell(get(&begun) > before && get(&ended) == get(&begun), "%d more threads called back, %d still run",
      get(&begun) - before, get(&begun) - get(&ended));
  usher_context_free(rested);
  tell(get(&ended) == get(&begun), "no thread of the idle context runs after its free");
}

int main(void) {
  pthread_key_create(&key, on_thread_end);
  freed_at_once();
  after_a_rest();
  tell(get(&told_of) >= 100 * PLAYERS, "%d events arrived", get(&told_of));
  nothing_held("threads end");
  return failed != 0;
}
