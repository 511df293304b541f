/*
 * free_races.c - a context is freed while other threads pump it, wait in it, or run callbacks that free another
 * context. No call deadlocks; when usher_context_free() has returned, each `destroy` has run and no callback runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>

#include "support.h"

/* ---- two pumped contexts free each other ------------------------------------------------------------------------- */

static usher_context *pair[2];
static int in_callback, pumps_ended;

static void frees_the_other(const usher_event *event, void *user_data) {
  if (event->type != USHER_EVENT_PLAYBACK_CLOSED) return;
  add(&in_callback, 1);
  reaches(&in_callback, 2, 5000);
  usher_context_free(pair[user_data == &pair[0]]);
}
static void *pumps_one(void *context) {
  usher_context *mine = *(usher_context **)context;
  while (usher_context_pump(mine, NULL) == USHER_OK) sleep_ms(1);
  add(&pumps_ended, 1);
  return NULL;
}
static void cross_free(void) {
  pthread_t threads[2];
  int index;
  for (index = 0; index < 2; index++) {
    usher_player *player;
    pair[index] = new_context(USHER_CALLBACKS_PUMPED);
    usher_context_add_observer(pair[index], frees_the_other, &pair[index], NULL, NULL);
    player = new_player(pair[index]);
    usher_playback_close(play(player, new_delegate(pair[index], license_url())), 0);
  }
  for (index = 0; index < 2; index++) pthread_create(&threads[index], NULL, pumps_one, &pair[index]);
  if (!tell(reaches(&pumps_ended, 2, 15000), "two pumped contexts free each other in callbacks: both pumps end"))
    exit(1);
  for (index = 0; index < 2; index++) pthread_join(threads[index], NULL);
  nothing_held("contexts that free each other");
}

/* A callback frees another context, which is in pumped mode and which no thread pumps. usher_context_free() returns at
   once, even if the teardown takes long. */
static usher_context *idle_one;
static int idle_destroyed, freed_ms = -1;

static void frees_the_idle_one(const usher_event *event, void *user_data) {
  double begun = now_s();
  (void)user_data;
  if (event->type != USHER_EVENT_PLAYBACK_CLOSED) return;
  usher_context_free(idle_one);
  add(&freed_ms, (int)((now_s() - begun) * 1000) + 1);
}
static void freed_elsewhere(int32_t callbacks) {
  usher_context *context = new_context(callbacks);
  freed_ms = -1, idle_destroyed = 0;
  idle_one = new_context(USHER_CALLBACKS_PUMPED);
  if (usher_playback_wait_session(play(new_player(idle_one), new_delegate(idle_one, license_url())), 0, NULL) !=
      USHER_OK)
    tell(0, "a session of a context that no thread pumps");
  {
    usher_playback_options options = USHER_PLAYBACK_OPTIONS_INIT;
    usher_default_options server = USHER_DEFAULT_OPTIONS_INIT;
    usher_playback *playback = NULL;
    server.license_url = license_url();
    usher_default_delegate_new(idle_one, &server, &options.delegate);
    options.user_data = &idle_destroyed;
    options.destroy = count_destroy;
    usher_player_play(new_player(idle_one), &options, &playback);
  }
  fault("{\"route\":\"teardown\",\"fault\":{\"kind\":\"delay\",\"ms\":700}}");
  usher_context_add_observer(context, frees_the_idle_one, NULL, NULL, NULL);
  usher_playback_close(play(new_player(context), new_delegate(context, license_url())), 0);
  tell(comes(context, callbacks, &freed_ms, 0, 8000) && get(&freed_ms) < 500 * patience(),
      "%s: a callback frees a pumped context that no thread pumps; the call returns at once (%d ms)",
      mode_name(callbacks), get(&freed_ms));
  tell(reaches(&idle_destroyed, 1, 8000), "%s: that context then ends", mode_name(callbacks));
  answers(USHER_OK, usher_context_free(context), "the context whose callback it was");
  tell(get(&idle_destroyed) == 1, "%s: its destroy runs once", mode_name(callbacks));
  nothing_held("a context freed elsewhere");
}

/* ---- no callback and no `destroy` after usher_context_free() has returned ---------------------------------------- */

static int has_returned, running, parallel, late, destroyed, given;

static void enter(void) {
  if (__atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST) > 0) add(&parallel, 1);
  if (get(&has_returned)) add(&late, 1);
}
static void leave(void) {
  if (get(&has_returned)) add(&late, 1);
  add(&running, -1);
}
static void on_destroy(void *user_data) {
  (void)user_data;
  enter();
  add(&destroyed, 1);
  leave();
}
static void on_event(const usher_event *event, void *user_data) {
  (void)event, (void)user_data;
  enter();
  leave();
}
static void on_license(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  (void)p, (void)r, (void)tag, (void)user_data;
  enter();
  leave();
}
static void on_token(usher_completion completion, usher_playback *p, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)user_data;
  enter();
  usher_complete_token(completion, content_token());
  leave();
}
static void never_answers(usher_completion completion, usher_playback *p, uint64_t tag, void *user_data) {
  (void)completion, (void)p, (void)tag, (void)user_data;
}
static void reset(void) { has_returned = running = parallel = late = destroyed = given = 0; }

static void pauses(int signal) {
  (void)signal;
  sleep_ms(20);
}

#define BLOCKED 12
static int waiting;
static void *waits_for_a_license(void *playback) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  usher_response *response = NULL;
  add(&waiting, 1);
  usher_playback_get_license((usher_playback *)playback, &request, &response);
  return NULL;
}
static void freed_under_waiting_threads(void) {
  int round, index, missing = 0, lates = 0;
  signal(SIGUSR1, pauses);
  for (round = 0; round < 10; round++) {
    usher_context *context = new_context(USHER_CALLBACKS_THREADED);
    pthread_t threads[BLOCKED];
    reset();
    waiting = 0;
    for (index = 0; index < BLOCKED; index++) {
      usher_playback_options options = USHER_PLAYBACK_OPTIONS_INIT;
      usher_delegate *delegate = new_delegate(context, license_url());
      usher_playback *playback = NULL;
      usher_delegate_set_token_callback(delegate, never_answers, NULL, on_destroy);
      options.delegate = delegate;
      usher_player_play(new_player(context), &options, &playback);
      usher_delegate_free(delegate);
      pthread_create(&threads[index], NULL, waits_for_a_license, playback);
    }
    reaches(&waiting, BLOCKED, 5000);
    sleep_ms(10);
    /* The signal makes each thread pause inside its call. These calls return when the context has been freed. */
    for (index = 0; index < BLOCKED; index++) pthread_kill(threads[index], SIGUSR1);
    usher_context_free(context);
    missing += BLOCKED - get(&destroyed);
    add(&has_returned, 1);
    for (index = 0; index < BLOCKED; index++) pthread_join(threads[index], NULL);
    lates += get(&late);
  }
  tell(missing == 0 && lates == 0, "%d threads wait for licences: each destroy has run when the free returns (%d not)",
      BLOCKED, missing);
}

static void *pumps(void *context) {
  int32_t status;
  do status = usher_context_pump((usher_context *)context, NULL);
  while (status == USHER_OK || status == USHER_E_STATE);
  return NULL;
}
static void freed_under_a_pump(void) {
  int round, index, parallels = 0, lates = 0, missing = 0;
  unsigned seed = 1;
  for (round = 0; round < 60; round++) {
    usher_context *context = new_context(USHER_CALLBACKS_PUMPED);
    usher_delegate *delegate = new_delegate(context, license_url());
    usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
    pthread_t thread;
    reset();
    for (index = 0; index < 5; index++, given++) usher_context_add_observer(context, on_event, NULL, on_destroy, NULL);
    usher_delegate_set_token_callback(delegate, on_token, NULL, on_destroy), given++;
    pthread_create(&thread, NULL, pumps, context);
    for (index = 0; index < 4; index++) {
      usher_playback_options options = USHER_PLAYBACK_OPTIONS_INIT;
      usher_playback *playback = NULL;
      options.delegate = delegate;
      options.destroy = on_destroy;
      usher_player_play(new_player(context), &options, &playback), given++;
      usher_playback_request_license(playback, &request, on_license, NULL, on_destroy), given++;
    }
    seed = seed * 1103515245u + 12345u;
    usleep(seed >> 16 & 2047);
    pthread_kill(thread, SIGUSR1); /* the signal makes the thread pause inside usher_context_pump() */
    usher_context_free(context);
    missing += given - get(&destroyed);
    parallels += get(&parallel);
    lates += get(&running);
    add(&has_returned, 1);
    pthread_join(thread, NULL);
    lates += get(&late);
  }
  tell(parallels == 0, "freed while a thread pumps: never two callbacks at once (%d)", parallels);
  tell(missing == 0, "freed while a thread pumps: each destroy has run when the free returns (%d not)", missing);
  tell(lates == 0, "freed while a thread pumps: no callback runs after the free (%d)", lates);
  nothing_held("freed while a thread pumps");
}

/* ---- the pumping thread ------------------------------------------------------------------------------------------ */

static usher_playback *asked;
static int32_t told_status;
static pthread_t pumped_by;
static int is_same;

static void *pumps_once(void *context) {
  pumped_by = pthread_self();
  usher_context_pump((usher_context *)context, NULL);
  return NULL;
}
static void *asks(void *unused) {
  is_same |= pthread_equal(pumped_by, pthread_self());
  told_status = usher_playback_wait_session(asked, 0, NULL);
  return unused;
}
static void thread_after_the_pumping_thread(void) {
  usher_context *context = new_context(USHER_CALLBACKS_PUMPED);
  int round, good = 1;
  pthread_t thread;
  asked = play(new_player(context), new_delegate(context, license_url()));
  for (round = 0; round < 3; round++) {
    pthread_create(&thread, NULL, pumps_once, context);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, asks, NULL);
    pthread_join(thread, NULL);
    good &= told_status == USHER_OK;
  }
  tell(good, "a thread that never pumped may wait, although it has the pthread_t of a pumping thread that ended (%d)",
      is_same);
  usher_context_free(context);
  nothing_held("the thread after the pumping thread");
}

/* ---- `destroy` of a call that failed ----------------------------------------------------------------------------- */

static usher_context *around;
static int32_t waited, closed;

static void waits_in_destroy(void *user_data) {
  (void)user_data;
  waited = usher_playback_wait_closed(asked, 200);
  closed = usher_context_close(around, 200, NULL);
}
static void destroy_of_a_failed_call(void) {
  usher_playback_options options = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *none = NULL;
  around = new_context(USHER_CALLBACKS_THREADED);
  asked = play(new_player(around), new_delegate(around, license_url()));
  answers(USHER_E_INVALID_ARGUMENT, usher_playback_request_license(asked, NULL, NULL, NULL, waits_in_destroy),
      "a request without a callback");
  answers(USHER_E_WOULD_DEADLOCK, waited, "its destroy may not wait");
  answers(USHER_E_WOULD_DEADLOCK, closed, "its destroy may not wait for the context either");
  waited = USHER_OK;
  options.destroy = waits_in_destroy;
  answers(USHER_E_INVALID_HANDLE, usher_player_play(NULL, &options, &none), "a wrong handle");
  answers(USHER_E_WOULD_DEADLOCK, waited, "its destroy may not wait");
  usher_context_free(around);
  nothing_held("destroy of a failed call");
}

/* ---- a context is freed while other threads close it ------------------------------------------------------------- */

#define CLOSERS 4

static usher_context *closing;
static int is_licensed;

static void gives_license(const usher_customer_request *request, void *user_data) {
  usher_customer_license made = USHER_CUSTOMER_LICENSE_INIT;
  (void)user_data;
  made.license = (const uint8_t *)"licence";
  made.license_size = 7;
  usher_complete_license(request->completion, &made);
}
static void on_licensed(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)response, (void)tag, (void)user_data;
  add(&is_licensed, 1);
}
static void *closes(void *may_wait) {
  while ((may_wait ? usher_context_close(closing, 1, NULL) : usher_context_begin_close(closing, 1)) !=
         USHER_E_INVALID_HANDLE) {}
  return NULL;
}
/* The teardown callback never answers, so the playback is still open when its context ends. nothing_left() counts the
   descriptor of the pump, which the library closes when it frees the memory of the context. */
static void freed_while_others_close(void) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_customer_options customer = USHER_CUSTOMER_OPTIONS_INIT;
  pthread_t threads[CLOSERS];
  int round, index;
  customer.license = gives_license;
  customer.teardown = never_answers;
  for (round = 0; round < 100; round++) {
    usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
    usher_playback *playback = NULL;
    closing = new_context(USHER_CALLBACKS_PUMPED);
    usher_customer_delegate_new(closing, &customer, &item.delegate);
    usher_player_play(new_player(closing), &item, &playback);
    usher_playback_request_license(playback, &request, on_licensed, NULL, NULL);
    if (!comes(closing, USHER_CALLBACKS_PUMPED, &is_licensed, round + 1, 5000)) tell(0, "a session is open");
    for (index = 0; index < CLOSERS; index++)
      pthread_create(&threads[index], NULL, closes, index == 0 ? &closing : NULL);
    sleep_ms(2);
    usher_context_free(closing);
    for (index = 0; index < CLOSERS; index++) pthread_join(threads[index], NULL);
  }
  nothing_left("contexts freed while other threads close them");
}

int main(void) {
  cross_free();
  freed_elsewhere(USHER_CALLBACKS_THREADED);
  freed_elsewhere(USHER_CALLBACKS_PUMPED);
  freed_under_waiting_threads();
  freed_under_a_pump();
  thread_after_the_pumping_thread();
  destroy_of_a_failed_call();
  freed_while_others_close();
  return failed != 0;
}
