/*
 * customer_answers.c - which answers to the callbacks of a customer SSM the library accepts or refuses: answers that
 * are garbage, of the wrong kind, repeated, from another thread, too late, or after close and free.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

/* The newest question of each callback (licence, heartbeat, teardown); 0: no question. */
static usher_completion asked[3];
static int questions[3], renewals, told_count, told_before, events[32];
static int32_t told_status;
static int64_t told_code;

static void keep(int which, usher_completion completion) {
  __atomic_store_n(&asked[which], completion, __ATOMIC_SEQ_CST);
  add(&questions[which], 1);
}
static void on_license(const usher_customer_request *request, void *user_data) {
  (void)user_data;
  if (request->type == USHER_LICENSE_RENEWAL) add(&renewals, 1);
  keep(0, request->completion);
}
static void on_heartbeat(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  keep(1, completion);
}
static void on_teardown(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  keep(2, completion);
}
static void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  (void)playback, (void)key_system, (void)tag, (void)user_data;
  usher_complete_payload(completion, (const uint8_t *)"fresh", 5);
}
static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type > 0 && event->type < 32) add(&events[event->type], 1);
}
static void on_told(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  told_status = response->error.status;
  told_code = response->error.service_code;
  add(&told_count, 1);
}

struct scene {
  usher_context *context;
  usher_delegate *delegate;
  usher_playback *playback;
};
static struct scene scene(uint32_t license_timeout_ms, uint32_t teardown_timeout_ms) {
  struct scene s;
  usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  memset(&s, 0, sizeof s);
  memset(events, 0, sizeof events);
  s.context = new_context(USHER_CALLBACKS_THREADED);
  usher_context_add_observer(s.context, on_event, NULL, NULL, NULL);
  options.license = on_license;
  options.heartbeat = on_heartbeat;
  options.teardown = on_teardown;
  options.license_timeout_ms = license_timeout_ms;
  options.teardown_timeout_ms = teardown_timeout_ms;
  usher_customer_delegate_new(s.context, &options, &s.delegate);
  item.delegate = s.delegate;
  item.payload = on_payload;
  usher_player_play(new_player(s.context), &item, &s.playback);
  return s;
}
/* Returns the newest question of a callback that the test has not answered; waits for one if needed. */
static usher_completion take(int which, const char *what) {
  usher_completion id = 0;
  int tries;
  for (tries = 4000 * patience(); tries > 0 && !(id = __atomic_exchange_n(&asked[which], 0, __ATOMIC_SEQ_CST)); tries--)
    sleep_ms(2);
  if (!id) tell(0, "%s: asked", what);
  return id;
}
static usher_completion ask_license(const struct scene *s) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  told_before = get(&told_count);
  __atomic_store_n(&asked[0], 0, __ATOMIC_SEQ_CST);
  usher_playback_request_license(s->playback, &request, on_told, NULL, NULL);
  return take(0, "a licence");
}
static void ends(int32_t wanted, const char *what) {
  if (!reaches(&told_count, told_before + 1, 8000)) tell(0, "%s: told", what);
  answers(wanted, told_status, what);
}
static usher_customer_license good(double heartbeat_s, int32_t renew_type) {
  usher_customer_license license = USHER_CUSTOMER_LICENSE_INIT;
  license.license = (const uint8_t *)"licence";
  license.license_size = 7;
  license.heartbeat_s = heartbeat_s;
  license.renew_type = renew_type;
  return license;
}
/* Starts a playback with a licence and an open session; `renew_type` selects what keeps the session alive. @return the
   playback and the objects that belong to it. */
static struct scene playing(double heartbeat_s, int32_t renew_type, uint32_t teardown_timeout_ms) {
  struct scene s = scene(0, teardown_timeout_ms);
  usher_customer_license license = good(heartbeat_s, renew_type);
  __atomic_store_n(&asked[1], 0, __ATOMIC_SEQ_CST);
  answers(USHER_OK, usher_complete_license(ask_license(&s), &license), "a licence");
  ends(USHER_OK, "the request completes with the licence");
  return s;
}
static void none_of_the_others(int which, usher_completion id) {
  usher_customer_license license = good(0, 0);
  usher_response *response = NULL;
  int wrong = 0;
  wrong += usher_complete_token(id, "x") != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_payload(id, (const uint8_t *)"x", 1) != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_hook(id, (const uint8_t *)"x", 1) != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_headers(id, "") != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_builtin(id) != USHER_E_INVALID_COMPLETION;
  wrong += usher_hook_builtin(id, &response) != USHER_E_INVALID_COMPLETION;
  if (which) wrong += usher_complete_license(id, &license) != USHER_E_INVALID_COMPLETION;
  else wrong += usher_complete_call(id, USHER_OK) != USHER_E_INVALID_COMPLETION;
  tell(wrong == 0, "callback %d: answers of other kinds are refused (%d were not)", which, wrong);
}

static void licences(void) {
  static char text[1002];
  struct scene s = scene(0, 0);
  usher_customer_license bad;
  usher_completion id = ask_license(&s);
  const int teardowns = get(&questions[2]);
  memset(text, 'x', sizeof text - 1);
  none_of_the_others(0, id);
#define REFUSED(change, what) \
  bad = good(1, USHER_RENEW_HEARTBEAT); \
  change; \
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_license(id, &bad), what)
  REFUSED(bad.heartbeat_s = -0.001, "a period below 0");
  REFUSED(bad.heartbeat_s = 1.000001e9, "a period above 1e9");
  REFUSED(bad.heartbeat_s = strtod("nan", NULL), "a period of NaN");
  REFUSED(bad.heartbeat_s = strtod("inf", NULL), "an infinite period");
  REFUSED(bad.renew_type = USHER_RENEW_CDM, "renew type CDM");
  REFUSED(bad.renew_type = -1, "an unknown renew type");
  REFUSED(bad.license_size = 0, "a licence of no bytes");
  REFUSED(bad.license_size = (1u << 20) + 1, "a licence one byte longer than 1 MiB");
  REFUSED(bad.license = NULL, "a NULL licence of 7 bytes");
  REFUSED(bad.struct_size = 8, "a struct of size 8");
  REFUSED((bad.license = NULL, bad.license_size = 0, bad.message = text), "a message of 1001 bytes");
  bad = good(1, USHER_RENEW_HEARTBEAT);
  answers(USHER_OK, usher_complete_license(id, &bad), "the question is still open, and takes a good licence");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_license(id, &bad), "a second answer");
  ends(USHER_OK, "the request completes with the licence");
  usher_complete_call(take(1, "a heartbeat"), USHER_OK);
  usher_playback_close(s.playback, USHER_CLOSE_DEFAULT);
  id = take(2, "teardown");
  none_of_the_others(2, id);
  usher_complete_call(id, USHER_OK);
  usher_context_free(s.context);
  tell(get(&questions[2]) == teardowns + 1, "torn down once");

  s = scene(50, 0);
  id = ask_license(&s);
  ends(USHER_E_TIMEOUT, "no licence before the deadline");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_license(id, &bad), "a late licence is refused");
  answers(USHER_OK, usher_complete_license(ask_license(&s), NULL), "the answer: no licence");
  ends(USHER_E_CALLBACK, "the request fails without a licence");
  memset(&bad, 0, sizeof bad);
  bad.struct_size = sizeof bad;
  bad.service_code = 4711;
  bad.http_status = 403;
  bad.message = "two\nlines";
  answers(USHER_OK, usher_complete_license(ask_license(&s), &bad), "the answer: refused, with a code");
  ends(USHER_E_REFUSED, "the request fails as refused");
  tell(told_code == 4711, "the error has the code");
  usher_context_free(s.context);
  tell(get(&questions[2]) == teardowns + 1, "a playback without a licence is not torn down");
}

struct answer {
  usher_completion id;
  int32_t status;
};
static void *answer_call(void *user_data) {
  struct answer *answer = (struct answer *)user_data;
  answer->status = usher_complete_call(answer->id, USHER_OK);
  return NULL;
}
static void heartbeats(void) {
  struct scene s = playing(0.2, USHER_RENEW_HEARTBEAT, 200);
  struct answer answer = {take(1, "a heartbeat"), 1};
  pthread_t thread;
  none_of_the_others(1, answer.id);
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_call(answer.id, 7), "an unknown status is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_call(answer.id, -1000), "another");
  pthread_create(&thread, NULL, answer_call, &answer);
  pthread_join(thread, NULL);
  answers(USHER_OK, answer.status, "an answer from another thread");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_call(answer.id, USHER_OK), "a second answer");
  tell(reaches(&events[USHER_EVENT_KEPT_ALIVE], 1, 5000), "kept alive");
  answers(
      USHER_OK, usher_complete_call(take(1, "the next heartbeat"), USHER_E_TRANSPORT), "the answer: transport failed");
  answers(USHER_OK, usher_complete_call(take(1, "the retry"), USHER_OK), "the retry succeeds");
  tell(reaches(&events[USHER_EVENT_KEPT_ALIVE], 2, 5000), "kept alive");
  answers(USHER_OK, usher_complete_call(take(1, "the next heartbeat"), USHER_E_SESSION),
      "the answer: the server ended the session");
  tell(reaches(&events[USHER_EVENT_HEARTBEAT_ERROR], 1, 5000), "HEARTBEAT_ERROR");
  usher_context_free(s.context);
}

/* The host answers neither a heartbeat nor a teardown. The close waits for each answer for at most
   teardown_timeout_ms. */
static void unanswered(void) {
  struct scene s = playing(1, USHER_RENEW_HEARTBEAT, 100);
  const int teardowns = get(&questions[2]);
  usher_completion old = take(1, "a heartbeat");
  double began = now_s();
  usher_playback_close(s.playback, USHER_CLOSE_DEFAULT);
  answers(USHER_OK, usher_playback_wait_closed(s.playback, 20000), "closed while a heartbeat has no answer");
  tell(now_s() - began < 2 * patience(), "the close took %.3f s", now_s() - began);
  /* The library may accept this answer, or refuse it as too late; both are right. */
  usher_complete_call(old, USHER_OK);
  answers(USHER_E_INVALID_COMPLETION, usher_complete_call(take(2, "the teardown"), USHER_OK),
      "the teardown's answer is too late");
  tell(get(&questions[2]) == teardowns + 1, "the library asks for one teardown only (%d times)",
      get(&questions[2]) - teardowns);
  tell(get(&events[USHER_EVENT_TEARDOWN_ERROR]) == 1, "TEARDOWN_ERROR");
  usher_context_free(s.context);
}

static void renewed(void) {
  struct scene s = playing(0.2, USHER_RENEW_ENFORCED, 200);
  usher_customer_license license = good(0.2, USHER_RENEW_ENFORCED);
  answers(USHER_OK, usher_complete_license(take(0, "a renewal"), &license), "renewed");
  tell(get(&renewals) == 1, "the callback's request says that it is a renewal");
  tell(reaches(&events[USHER_EVENT_KEPT_ALIVE], 1, 5000), "kept alive");
  license = good(0, 0);
  license.license = NULL;
  license.license_size = 0;
  license.service_code = 1006;
  answers(USHER_OK, usher_complete_license(take(0, "the next"), &license), "the answer to the next renewal: refused");
  tell(reaches(&events[USHER_EVENT_HEARTBEAT_ERROR], 1, 8000), "HEARTBEAT_ERROR");
  usher_context_free(s.context);
}

static void after_free(void) {
  int what;
  for (what = 0; what < 4; what++) {
    struct scene s = scene(500, 200);
    usher_customer_license license = good(0, 0);
    usher_completion id = ask_license(&s);
    if (what == 0) usher_delegate_free(s.delegate);
    if (what == 1) usher_playback_free(s.playback);
    if (what == 2) usher_context_close(s.context, 0, NULL);
    if (what == 3) usher_context_free(s.context);
    if (what > 0) ends(USHER_E_CLOSED, what == 1 ? "playback freed" : what == 2 ? "context closed" : "context freed");
    if (what == 0 || what == 3)
      answers(what ? USHER_E_INVALID_COMPLETION : USHER_OK, usher_complete_license(id, &license), "the answer");
    else usher_complete_license(id, &license); /* if the library accepts this licence, it tears the session down */
    if (what == 0) ends(USHER_OK, "playbacks keep using a freed delegate");
    usher_context_free(s.context);
    answers(USHER_E_INVALID_COMPLETION, usher_complete_license(id, &license), "after context_free");
  }
}

/* In pumped mode usher_context_free() itself runs the callbacks that the close needs, since no thread pumps then. */
static int32_t teardown_status;
static void answer_license(const usher_customer_request *request, void *user_data) {
  usher_customer_license license = good(10, USHER_RENEW_HEARTBEAT);
  (void)user_data;
  usher_complete_license(request->completion, &license);
}
static void answer_teardown(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  teardown_status = usher_complete_call(completion, USHER_OK);
  add((int *)user_data, 1);
}
static void freed_pumped(int32_t clock, const char *what) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_customer_options customer = USHER_CUSTOMER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_context *context = NULL;
  usher_playback *playback = NULL;
  int teardowns = 0;
  double began;
  options.callbacks = USHER_CALLBACKS_PUMPED;
  options.clock = clock;
  usher_context_new(&options, &context);
  memset(events, 0, sizeof events);
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  customer.license = answer_license;
  customer.teardown = answer_teardown;
  customer.user_data = &teardowns;
  usher_customer_delegate_new(context, &customer, &item.delegate);
  usher_player_play(new_player(context), &item, &playback);
  told_before = get(&told_count);
  usher_playback_request_license(playback, &request, on_told, NULL, NULL);
  if (!comes(context, USHER_CALLBACKS_PUMPED, &told_count, told_before + 1, 5000)) tell(0, "%s: a licence", what);
  teardown_status = 1;
  began = now_s();
  usher_context_free(context);
  tell(teardowns == 1 && teardown_status == USHER_OK,
      "%s: context_free during playback tears the session down, and the answer is in time (%d times, %s)", what,
      teardowns, usher_status_name(teardown_status));
  tell(now_s() - began < 2 * patience(), "%s: in %.3f s", what, now_s() - began);
  tell(get(&events[USHER_EVENT_TEARDOWN_ERROR]) == 0 && get(&events[USHER_EVENT_PLAYBACK_CLOSED]) == 1,
      "%s: without an error", what);
}

/* A licence callback has no answer. The host closes the playback without a teardown, and frees playback and context
   before the deadline of that answer. The library then frees all memory of the context. nothing_left() checks this: it
   counts the descriptor of the pump, which the library closes last. */
static void freed_before_the_deadline(void) {
  usher_customer_options customer = USHER_CUSTOMER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_customer_license license = good(0, 0);
  usher_context *context = new_context(USHER_CALLBACKS_PUMPED);
  usher_playback *playback = NULL;
  const int before = get(&questions[0]);
  memset(events, 0, sizeof events);
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  customer.license = on_license;
  customer.license_timeout_ms = 600000;
  usher_customer_delegate_new(context, &customer, &item.delegate);
  usher_player_play(new_player(context), &item, &playback);
  usher_playback_request_license(playback, &request, on_told, NULL, NULL);
  tell(comes(context, USHER_CALLBACKS_PUMPED, &questions[0], before + 1, 5000), "the library asks for a licence");
  answers(USHER_OK, usher_complete_license(take(0, "a licence"), &license), "the licence opens the session");
  usher_playback_request_license(playback, &request, on_told, NULL, NULL);
  tell(comes(context, USHER_CALLBACKS_PUMPED, &questions[0], before + 2, 5000), "the library asks for another licence");
  usher_playback_close(playback, USHER_CLOSE_LEAVE);
  usher_playback_free(playback);
  tell(comes(context, USHER_CALLBACKS_PUMPED, &events[USHER_EVENT_PLAYBACK_CLOSED], 1, 8000),
      "the playback closes without an answer");
  usher_context_free(context);
  nothing_left("context freed before the deadline of its question");
}

int main(void) {
  licences();
  heartbeats();
  unanswered();
  renewed();
  after_free();
  freed_pumped(USHER_CLOCK_SYSTEM, "pumped");
  freed_pumped(USHER_CLOCK_MANUAL, "pumped, on the manual clock");
  freed_before_the_deadline();
  nothing_held("customers");
  return failed != 0;
}
