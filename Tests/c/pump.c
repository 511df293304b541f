/*
 * pump.c - in pumped mode callbacks run only inside usher_context_pump(), on the thread that calls it. The host pumps
 * in different ways: inside callbacks, on two threads, rarely, never. It also waits for the descriptor, calls functions
 * that wait on the pumping thread, and frees the context inside a pump.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"
#include <poll.h>

static int events, started, strange, nested = 1, blocked = 1, beats, slow;
static pthread_t pumping;
static usher_context *context;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  add(&events, 1);
  if (!pthread_equal(pthread_self(), pumping)) add(&strange, 1);
  if (event->type == USHER_EVENT_KEPT_ALIVE) add(&beats, 1);
  if (event->type != USHER_EVENT_SESSION_STARTED) return;
  nested = usher_context_pump(context, NULL);
  blocked = usher_playback_wait_closed(event->playback, 10);
  add(&started, 1);
  if (get(&slow)) sleep_ms(300);
}
static int readable(int fd, int ms) {
  struct pollfd watched;
  watched.fd = fd;
  watched.events = POLLIN;
  return poll(&watched, 1, ms * patience()) == 1;
}
/* Does what a host's main loop does: waits for the descriptor, and then pumps, again and again. Ends when the counter
   is at least `wanted`, or after `ms` times patience(). @return 1 if the counter is at least `wanted`, otherwise 0. */
static int loop_until(int fd, int *counter, int wanted, int ms) {
  double end = now_s() + ms * patience() / 1000.0;
  while (get(counter) < wanted && now_s() < end)
    if (readable(fd, 50)) usher_context_pump(context, NULL);
  return get(counter) >= wanted;
}
static void *pump_once(void *result) {
  *(int32_t *)result = usher_context_pump(context, NULL);
  return NULL;
}
static int32_t pump_elsewhere(void) {
  pthread_t thread;
  int32_t status = 1;
  pthread_create(&thread, NULL, pump_once, &status);
  pthread_join(thread, NULL);
  return status;
}
static void *close_elsewhere(void *result) {
  __atomic_store_n((int32_t *)result, usher_context_close(context, 0, NULL), __ATOMIC_SEQ_CST);
  return NULL;
}
static void *pump_slowly(void *unused) {
  (void)unused;
  pumping = pthread_self();
  while (get(&started) < 2) usher_context_pump(context, NULL), sleep_ms(2);
  return NULL;
}

static usher_playback *waited;
static int waited_for;
static void *wait_closed(void *result) {
  __atomic_store_n((int32_t *)result, usher_playback_wait_closed(waited, 50), __ATOMIC_SEQ_CST);
  add(&waited_for, 1);
  return NULL;
}
/* The playback is closed, but no thread runs its callbacks. So a wait with a limit of 50 ms returns after 50 ms. */
static void waits_have_an_end(void) {
  static int32_t status;
  pthread_t thread;
  int tries;
  context = new_context(USHER_CALLBACKS_PUMPED);
  waited = play(new_player(context), new_delegate(context, license_url()));
  usher_playback_wait_session(waited, 0, NULL);
  usher_playback_close(waited, USHER_CLOSE_DEFAULT);
  for (tries = 0; held() != 0 && tries < 250; tries++) sleep_ms(20);
  sleep_ms(50);
  pthread_create(&thread, NULL, wait_closed, &status);
  tell(reaches(&waited_for, 1, 3000), "wait_closed of 50 ms ends while no thread pumps");
  usher_context_pump(context, NULL);
  pthread_join(thread, NULL);
  usher_context_free(context);
  nothing_held("waits");
}

static void story(void) {
  usher_delegate *delegate;
  usher_player *player;
  usher_playback *playback;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  pthread_t thread;
  uint32_t ran = 99;
  int32_t status = 1;
  int fd = -1, before, tries;
  pumping = pthread_self();
  context = new_context(USHER_CALLBACKS_PUMPED);
  answers(USHER_OK, usher_context_pump_fd(context, &fd), "the descriptor");
  answers(USHER_E_INVALID_ARGUMENT, usher_context_pump_fd(context, NULL), "pump_fd without an out");
  tell(fd >= 0 && !readable(fd, 0), "it is not readable while nothing is due");
  answers(USHER_OK, usher_context_pump(context, &ran), "a pump with nothing due");
  tell(ran == 0, "runs nothing");
  answers(USHER_OK, usher_context_pump(context, NULL), "a pump without a count");
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  delegate = new_delegate(context, license_url());
  player = new_player(context);
  playback = play(player, delegate);
  tell(readable(fd, 5000) && readable(fd, 0), "it is readable while callbacks are due");
  tell(get(&events) == 0, "nothing ran outside the pump");
  tell(loop_until(fd, &started, 1, 5000), "a poll loop receives the events");
  answers(USHER_E_WOULD_DEADLOCK, nested, "a pump inside a callback");
  answers(USHER_E_WOULD_DEADLOCK, blocked, "a wait inside a callback");
  answers(USHER_E_WOULD_DEADLOCK, usher_playback_wait_closed(playback, 10), "wait_closed on the pumping thread");
  answers(
      USHER_E_WOULD_DEADLOCK, usher_playback_wait_session(playback, 10, NULL), "wait_session on the pumping thread");
  answers(USHER_E_WOULD_DEADLOCK, usher_playback_get_license(playback, &request, NULL),
      "get_license on the pumping thread");
  answers(USHER_E_WOULD_DEADLOCK, usher_playback_get_certificate(playback, 10, NULL),
      "get_certificate on the pumping thread");

  before = get(&events);
  for (tries = 0; requests("heartbeat") < 2 && tries < 100 * patience(); tries++) sleep_ms(50);
  tell(requests("heartbeat") >= 2 && get(&events) == before, "the library sends heartbeats while no thread pumps");
  tell(loop_until(fd, &beats, 2, 5000), "the events of those heartbeats arrive in the next pump");
  tell(get(&strange) == 0, "every callback ran on the pumping thread");

  answers(USHER_OK, pump_elsewhere(), "another thread may pump, one at a time");
  slow = 1;
  usher_playback_free(playback);
  pthread_create(&thread, NULL, pump_slowly, NULL);
  playback = play(player, delegate);
  reaches(&started, 2, 5000);
  answers(USHER_E_STATE, usher_context_pump(context, NULL), "two threads at once");
  pthread_join(thread, NULL);
  pumping = pthread_self();
  usher_context_pump(context, NULL);

  pthread_create(&thread, NULL, close_elsewhere, &status);
  for (tries = 0; __atomic_load_n(&status, __ATOMIC_SEQ_CST) == 1 && tries < 3000 * patience(); tries++)
    usher_context_pump(context, NULL), sleep_ms(2);
  pthread_join(thread, NULL);
  answers(USHER_OK, status, "usher_context_close on another thread while this one pumps");
  answers(USHER_OK, usher_context_free(context), "freed");
  nothing_held("pumped");
}

static void never_pumped(void) {
  usher_delegate *delegate;
  usher_playback *playback;
  int closed = 0, waited = 0;
  double since;
  context = new_context(USHER_CALLBACKS_PUMPED);
  usher_context_add_observer(context, on_event, &closed, count_destroy, NULL);
  delegate = new_delegate(context, license_url());
  playback = play(new_player(context), delegate);
  answers(USHER_OK, usher_playback_wait_session(playback, 5000, NULL),
      "a thread that never pumped may wait for the session");
  waited = held();
  tell(waited == 1, "a session is held");
  pumping = pthread_self();
  since = now_s();
  answers(USHER_OK, usher_context_free(context), "usher_context_free of a context that was never pumped");
  tell(now_s() - since < 5 * patience(), "within %.3f s", now_s() - since);
  tell(get(&closed) == 1, "the free ran its callbacks, and its destroy after them");
  answers(USHER_E_INVALID_HANDLE, usher_context_pump(context, NULL), "a pump after the free");
  nothing_held("never pumped");
}

static usher_context *victim;
static int victim_destroyed;
static void free_it(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type == USHER_EVENT_SESSION_STARTED) usher_context_free(victim);
}
static void freed_inside(void) {
  int tries;
  victim = new_context(USHER_CALLBACKS_PUMPED);
  usher_context_add_observer(victim, free_it, &victim_destroyed, count_destroy, NULL);
  play(new_player(victim), new_delegate(victim, license_url()));
  for (tries = 0; tries < 2500 * patience() && usher_context_pump(victim, NULL) == USHER_OK && !get(&victim_destroyed);
       tries++)
    sleep_ms(2);
  tell(get(&victim_destroyed) == 1, "a context freed inside a pump is gone when that pump returns");
  answers(USHER_E_INVALID_HANDLE, usher_context_pump(victim, NULL), "its handle is stale");
  tell(held() == 0, "its session is torn down");
  nothing_held("freed inside");
}

int main(void) {
  story();
  never_pumped();
  freed_inside();
  waits_have_an_end();
  return failed != 0;
}
