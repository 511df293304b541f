/*
 * stress.c - eight threads call random functions of the whole API with random, also stale, handles for USHER_TEST_SECONDS (5), and close and free at random:
 * no crash, no hang, no destroy lost or doubled, no session left; each of the threads called every function. USHER_TEST_SEED repeats a run as far as threads
 * allow. What the threads count is counted relaxed: it orders nothing, so ThreadSanitizer sees what the library orders by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

#define THREADS 8
#define KINDS 46 /* of steps */
#define CONTEXTS 4
#define SLOTS 32
/* The context on the manual clock. Its playbacks have no session: time that jumps past a reply under way loses that reply, and the token in it. */
#define MANUAL 3

/* Handles that anybody may use, free or find stale. */
static void *volatile contexts[CONTEXTS], *volatile delegates[SLOTS], *volatile players[SLOTS], *volatile playbacks[SLOTS], *volatile responses[SLOTS];
static volatile usher_completion completions[SLOTS];
static volatile uint64_t observers[SLOTS];
static uint64_t seed;
static int given, destroyed, callbacks, calm, stop, ended, busy[THREADS], seen[32];

/* Every function of the headers, by name: Tests/c/run makes functions.h of them, one FUNCTION(name) each. */
enum {
#define FUNCTION(name) at_##name,
#include "functions.h"
#undef FUNCTION
  FUNCTION_COUNT
};
static const char *const names[] = {
#define FUNCTION(name) #name,
#include "functions.h"
#undef FUNCTION
};
static int calls[THREADS + 1][FUNCTION_COUNT], went_well[FUNCTION_COUNT];

struct dice {
  uint64_t state;
  int thread; /* THREADS: a callback's */
  int first;  /* nothing is seldom yet */
};
static void more(int *counter) { __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED); }
static void noted(struct dice *d, int function, int is_well) {
  more(&calls[d->thread][function]);
  if (is_well) more(&went_well[function]);
}
#define CALL(name, arguments) noted(d, at_##name, name arguments == USHER_OK)
#define TELLS(name, arguments) noted(d, at_##name, name arguments != NULL)
static uint32_t roll(struct dice *d, uint32_t below) {
  d->state ^= d->state << 13, d->state ^= d->state >> 7, d->state ^= d->state << 17;
  return (uint32_t)(d->state >> 33) % below;
}
static int seldom(struct dice *d, uint32_t one_in) { return roll(d, one_in) == 0 || d->first; }
static void *look(void *volatile *slot) { return __atomic_load_n(slot, __ATOMIC_RELAXED); }
static void put(struct dice *d, void *volatile *slots, void *handle) {
  if (handle) __atomic_store_n(&slots[roll(d, SLOTS)], handle, __ATOMIC_RELAXED);
}
static void *pick(struct dice *d, void *volatile *slots, uint32_t count) {
  uint32_t kind = roll(d, 40);
  if (kind == 0) return NULL;
  if (kind == 1) return (void *)(uintptr_t)d->state;
  if (kind == 2) return look(&players[roll(d, SLOTS)]); /* of the wrong kind, perhaps */
  return look(&slots[roll(d, count)]);
}
#define CONTEXT ((usher_context *)pick(d, contexts, CONTEXTS))
#define DELEGATE ((usher_delegate *)pick(d, delegates, SLOTS))
#define PLAYER ((usher_player *)pick(d, players, SLOTS))
#define PLAYBACK ((usher_playback *)pick(d, playbacks, SLOTS))
#define RESPONSE ((usher_response *)pick(d, responses, SLOTS))

/* ---- callbacks ---------------------------------------------------------------------------------------------------------- */

/* A user_data, by the place that took it. */
static struct place {
  const char *name;
  int given, destroyed;
} log_sink = {"context_new", 0, 0}, observer = {"add_observer", 0, 0}, token = {"set_token_callback", 0, 0}, item_of = {"player_play", 0, 0},
  license = {"request_license", 0, 0}, certificate = {"request_certificate", 0, 0};
static struct place *const places[] = {&log_sink, &observer, &token, &item_of, &license, &certificate};
static void on_destroy(void *user_data) {
  more(&((struct place *)user_data)->destroyed);
  more(&destroyed);
}
static void *user(struct place *place) {
  more(&given);
  more(&place->given);
  return place;
}
static void step(struct dice *d, uint32_t what);
static void in_callback(void) {
  struct dice d;
  d.state = seed + ((uint64_t)__atomic_add_fetch(&callbacks, 1, __ATOMIC_RELAXED) + THREADS) * 0x9E3779B97F4A7C15u;
  d.thread = THREADS, d.first = 0;
  if (__atomic_load_n(&stop, __ATOMIC_RELAXED) || roll(&d, 12)) return; /* or callbacks beget more callbacks than can run */
  step(&d, roll(&d, KINDS));
}
static void on_log(int32_t level, const char *line, void *user_data) {
  (void)level, (void)line, (void)user_data;
  in_callback();
}
static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type > 0 && event->type < (int)(sizeof seen / sizeof *seen)) more(&seen[event->type]);
  in_callback();
}
static void on_license(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  (void)p, (void)r, (void)tag, (void)user_data;
  in_callback();
}
static void keep(usher_completion completion) { __atomic_store_n(&completions[completion % SLOTS], completion, __ATOMIC_RELAXED); }
static void on_token(usher_completion completion, usher_playback *p, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)user_data;
  keep(completion);
  if (completion % 3 == 0) usher_complete_token(completion, content_token());
  in_callback();
}
static void on_payload(usher_completion completion, usher_playback *p, const char *key_system, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)key_system, (void)user_data;
  keep(completion);
  if (completion % 3 == 0) usher_complete_payload(completion, (const uint8_t *)"fresh", 5);
  in_callback();
}

/* ---- one step of a thread ------------------------------------------------------------------------------------------------ */

static void make_context(struct dice *d, uint32_t slot) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  void *none = NULL;
  options.callbacks = roll(d, 3) == 0 ? USHER_CALLBACKS_PUMPED : USHER_CALLBACKS_THREADED;
  options.clock = slot == MANUAL ? USHER_CLOCK_MANUAL : USHER_CLOCK_SYSTEM;
  options.callback_threads_max = 1 + roll(d, 8);
  options.log_level = USHER_LOG_DEBUG;
  options.log = on_log;
  options.log_user_data = user(&log_sink);
  options.log_destroy = on_destroy;
  CALL(usher_context_new, (&options, &context));
  if (!__atomic_compare_exchange_n(&contexts[slot], &none, (void *)context, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) /* another was quicker */
    CALL(usher_context_free, (context));
}
static void replace_context(struct dice *d) {
  uint32_t slot = roll(d, CONTEXTS);
  if (d->thread == THREADS) { /* in a callback it may be the callback's own: it stays there, stale */
    CALL(usher_context_free, ((usher_context *)look(&contexts[slot])));
  } else {
    CALL(usher_context_free, ((usher_context *)__atomic_exchange_n(&contexts[slot], NULL, __ATOMIC_RELAXED)));
    make_context(d, slot);
  }
}
static void replace_observer(struct dice *d) {
  uint64_t id = 0;
  uint32_t slot;
  CALL(usher_context_add_observer, (CONTEXT, on_event, user(&observer), on_destroy, &id));
  id = __atomic_exchange_n(&observers[roll(d, SLOTS)], id, __ATOMIC_RELAXED);
  for (slot = 0; slot < CONTEXTS; slot++) CALL(usher_context_remove_observer, ((usher_context *)look(&contexts[slot]), id)); /* they do not pile up */
}
static void make_delegate(struct dice *d) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  uint32_t slot = roll(d, CONTEXTS + 1);
  ssp.license_url = enforced_url(); /* one key system: a reply read as another's would hide the newest token */
  ssp.ssm_url = roll(d, 8) && slot != MANUAL ? ssm_url() : NULL;
  ssp.certificate_url = roll(d, 4) ? certificate_url() : NULL;
  ssp.sync_setup_teardown = roll(d, 12) == 0;
  ssp.token_timeout_ms = ssp.payload_timeout_ms = 1 + roll(d, 200);
  CALL(usher_ssp_delegate_new, ((usher_context *)look(slot < CONTEXTS ? &contexts[slot] : &players[0]), &ssp, &delegate));
  put(d, delegates, delegate);
}
static void play_something(struct dice *d) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  item.delegate = roll(d, 4) ? DELEGATE : NULL;
  item.content_token = roll(d, 3) ? content_token() : NULL;
  item.payload = roll(d, 2) ? on_payload : NULL;
  item.renewed = roll(d, 2) ? on_license : NULL;
  item.tag = roll(d, 100);
  item.user_data = user(&item_of);
  item.destroy = on_destroy;
  CALL(usher_player_play, (PLAYER, &item, &playback));
  put(d, playbacks, playback);
}

/* In calm times one in how many steps of this kind is taken: few close, free or replace something, so that sessions live to be kept alive. */
static uint32_t calm_rate(uint32_t what) {
  if (what >= 23 && what <= 27) return 100; /* play */
  return what == 3 || what == 4 || what == 16 || (what >= 28 && what <= 31) ? 3000 : 1;
}

static void step(struct dice *d, uint32_t what) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  usher_pending pending = USHER_PENDING_INIT;
  usher_explanation words;
  usher_player *player = NULL;
  usher_response *response = NULL;
  usher_completion completion = __atomic_load_n(&completions[roll(d, SLOTS)], __ATOMIC_RELAXED);
  uint32_t number;
  int32_t state;
  int fd;
  request.timeout_ms = 1 + roll(d, 300);
  while (__atomic_load_n(&calm, __ATOMIC_RELAXED) && !seldom(d, calm_rate(what))) what = roll(d, KINDS);
  switch (what) {
    case 0: TELLS(usher_version, ()), TELLS(usher_status_name, ((int32_t)roll(d, 40) - 35)), TELLS(usher_status_message, ((int32_t)roll(d, 40) - 35)); break;
    case 1:
      TELLS(usher_origin_name, ((int32_t)roll(d, 6))), TELLS(usher_operation_name, ((int32_t)roll(d, 9)));
      TELLS(usher_event_name, ((int32_t)roll(d, 14)));
      break;
    case 2:
      CALL(usher_error_explain, ((int32_t)roll(d, 5), -(int32_t)roll(d, 31), (int64_t)roll(d, 6000), &words));
      TELLS(usher_get_api, (USHER_VERSION_MAJOR));
      break;
    case 3:
      if (seldom(d, 30)) replace_context(d);
      break;
    case 4:
      if (seldom(d, 60)) CALL(usher_context_close, (CONTEXT, 1 + roll(d, 200), &number));
      break;
    case 5: case 6: case 7: CALL(usher_context_pump, (CONTEXT, &number)); break;
    case 8: CALL(usher_context_pump_fd, (CONTEXT, &fd)); break;
    case 9: replace_observer(d); break;
    case 10: case 11: CALL(usher_context_remove_observer, (CONTEXT, __atomic_load_n(&observers[roll(d, SLOTS)], __ATOMIC_RELAXED))); break;
    case 12: CALL(usher_context_set_delegate, (CONTEXT, DELEGATE)); break;
    case 13: case 14: make_delegate(d); break;
    case 15: CALL(usher_delegate_set_token_callback, (DELEGATE, roll(d, 4) ? on_token : NULL, user(&token), on_destroy)); break;
    case 16: CALL(usher_delegate_free, (DELEGATE)); break;
    case 17: case 18: CALL(usher_complete_token, (completion + (roll(d, 4) == 0), roll(d, 4) ? content_token() : NULL)); break;
    case 19: case 20: CALL(usher_complete_payload, (completion, (const uint8_t *)"fresh", roll(d, 6))); break;
    case 21: case 22:
      CALL(usher_player_new, (CONTEXT, &player));
      put(d, players, player);
      break;
    case 23: case 24: case 25: case 26: case 27: play_something(d); break;
    case 28: CALL(usher_player_stop, (PLAYER, (int32_t)roll(d, 2))); break;
    case 29: CALL(usher_player_free, (PLAYER)); break;
    case 30: CALL(usher_playback_close, (PLAYBACK, (int32_t)roll(d, 2))); break;
    case 31: CALL(usher_playback_free, (PLAYBACK)); break;
    case 32: CALL(usher_playback_wait_session, (PLAYBACK, 1 + roll(d, 20))); break;
    case 33: CALL(usher_playback_wait_closed, (PLAYBACK, 1 + roll(d, 20))); break;
    case 34: CALL(usher_playback_session_state, (PLAYBACK, &state)); break;
    case 35: case 36: CALL(usher_playback_request_license, (PLAYBACK, &request, on_license, user(&license), on_destroy)); break;
    case 37: case 38:
      CALL(usher_playback_get_license, (PLAYBACK, &request, roll(d, 4) ? &response : NULL));
      put(d, responses, response);
      break;
    case 39:
      CALL(usher_playback_get_certificate, (PLAYBACK, 1 + roll(d, 50), &response));
      put(d, responses, response);
      break;
    case 40: CALL(usher_playback_request_certificate, (PLAYBACK, on_license, user(&certificate), on_destroy)); break;
    case 41: CALL(usher_response_get, (RESPONSE, &info)); break; /* its pointers may be freed by others: not looked at */
    case 42: CALL(usher_response_free, (RESPONSE)); break;
    case 43: CALL(usher_context_advance, (CONTEXT, roll(d, 500), roll(d, 2) * 5)); break;
    case 44: CALL(usher_context_jump, (CONTEXT, roll(d, 500))); break;
    default: CALL(usher_context_settle, (CONTEXT, roll(d, 3), roll(d, 3), 1 + roll(d, 10))), CALL(usher_context_pending, (CONTEXT, &pending)); break;
  }
}

/* First each kind of step once, in an order of its own; then any. */
static void *work(void *index) {
  struct dice d;
  uint32_t order[KINDS], at, other, kept;
  d.thread = (int)(intptr_t)index, d.first = 1;
  d.state = (uint64_t)(d.thread + 1) * 0x9E3779B97F4A7C15u + seed * 0x2545F4914F6CDD1Du;
  for (at = 0; at < KINDS; at++) order[at] = at;
  for (at = KINDS - 1; at > 0; at--) other = roll(&d, at + 1), kept = order[at], order[at] = order[other], order[other] = kept;
  for (at = 0; at < KINDS; at++) step(&d, order[at]), more(&busy[d.thread]);
  for (d.first = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); more(&busy[d.thread])) step(&d, roll(&d, KINDS));
  add(&ended, 1);
  return NULL;
}

/* ---- the threads and what is claimed of them ------------------------------------------------------------------------------ */

static void run_threads(void) {
  pthread_t threads[THREADS];
  int index, stuck, before[THREADS];
  double since = now_s(), until = since + atof(told("USHER_TEST_SECONDS"));
  for (index = 0; index < THREADS; index++) pthread_create(&threads[index], NULL, work, (void *)(intptr_t)index);
  for (; now_s() < until; sleep_ms(20)) {
    __atomic_store_n(&calm, (int)((now_s() - since) * 2) % 7 > 1, __ATOMIC_RELAXED); /* a second of storm, then a calm */
    usher_context_advance((usher_context *)look(&contexts[MANUAL]), 20, 0);          /* or all threads might wait on it for each other */
  }
  for (index = 0; index < THREADS; index++) before[index] = get(&busy[index]);
  until = now_s() + 13 * patience(); /* a sync play, and a free at its cap */
  do {
    sleep_ms(20);
    for (stuck = index = 0; index < THREADS; index++) stuck += get(&busy[index]) == before[index];
  } while (stuck > 0 && now_s() < until);
  add(&stop, 1);
  while (get(&ended) < THREADS) { /* who waits on a manual clock needs it moved */
    for (index = 0; index < CONTEXTS; index++) usher_context_advance((usher_context *)look(&contexts[index]), 1000, 0);
    sleep_ms(2);
  }
  for (index = 0; index < THREADS; index++) pthread_join(threads[index], NULL);
  tell(stuck == 0, "every thread got on (%d did not)", stuck);
}

/*
 * Function by function: by how many threads it was called, how often, and how often it was answered as wished rather than with, say, "a stale handle". In
 * half a minute each must have been, also those that need a session some seconds old.
 */
static void claim_calls(int is_long) {
  int function, index, total = 0;
  for (function = 0; function < FUNCTION_COUNT; function++) {
    int by_threads = 0, times = get(&calls[THREADS][function]), in_callbacks = times;
    for (index = 0; index < THREADS; index++) by_threads += get(&calls[index][function]) > 0, times += get(&calls[index][function]);
    tell(by_threads == THREADS && (!is_long || get(&went_well[function]) > 0), "%s: %d times by %d threads, %d of them in callbacks; %d went well", names[function],
         times, by_threads, in_callbacks, get(&went_well[function]));
    total += times;
  }
  for (index = 1; index < (int)(sizeof seen / sizeof *seen); index++)
    if (get(&seen[index])) printf("%s was told %d times\n", usher_event_name(index), get(&seen[index]));
  tell(get(&seen[USHER_EVENT_SESSION_STARTED]) > 0, "%d sessions were seen to start", get(&seen[USHER_EVENT_SESSION_STARTED]));
  tell(total > 0, "%d calls of %d functions by %d threads", total, FUNCTION_COUNT, THREADS);
}

int main(void) {
  struct dice first;
  const char *text = getenv("USHER_TEST_SEED");
  int index;
  seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
  printf("USHER_TEST_SEED=%llu\n", (unsigned long long)seed);
  first.state = seed + 4711, first.thread = 0, first.first = 0;
  for (index = 0; index < CONTEXTS; index++) make_context(&first, (uint32_t)index);
  run_threads();
  for (index = 0; index < CONTEXTS; index++) usher_context_free((usher_context *)look(&contexts[index]));
  for (index = 0; index < SLOTS; index++) usher_response_free((usher_response *)look(&responses[index]));
  claim_calls(atof(told("USHER_TEST_SECONDS")) >= 30);
  reaches(&destroyed, get(&given), 8000);
  sleep_ms(50);
  for (index = 0; index < (int)(sizeof places / sizeof *places); index++)
    tell(get(&places[index]->given) == get(&places[index]->destroyed), "%s: %d user_data given, %d destroyed", places[index]->name, get(&places[index]->given),
         get(&places[index]->destroyed));
  nothing_held("stress");
  return failed != 0;
}
