/*
 * stress.c - eight threads call random functions of the whole API with random, also stale, handles for USHER_TEST_SECONDS (5): no crash, no hang, no destroy
 * lost or doubled, no session left. USHER_TEST_SEED repeats a run as far as threads allow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

#define THREADS 8
#define SLOTS 12
/* The context on the manual clock. Its playbacks have no session: time that jumps past a reply under way loses that reply, and the token in it. */
#define MANUAL 3

/* Handles that anybody may use, free or find stale. */
static void *volatile contexts[4], *volatile delegates[SLOTS], *volatile players[SLOTS], *volatile playbacks[SLOTS], *volatile responses[SLOTS];
static volatile usher_completion completions[SLOTS];
static volatile uint64_t observers[SLOTS];
static int given, destroyed, calls[64], stop, ended, busy[THREADS];

struct dice {
  uint64_t state;
};
static uint32_t roll(struct dice *d, uint32_t below) {
  d->state ^= d->state << 13, d->state ^= d->state >> 7, d->state ^= d->state << 17;
  return (uint32_t)(d->state >> 33) % below;
}
static void put(struct dice *d, void *volatile *slots, uint32_t count, void *handle) {
  if (handle) __atomic_store_n(&slots[roll(d, count)], handle, __ATOMIC_RELAXED);
}
static void *pick(struct dice *d, void *volatile *slots, uint32_t count) {
  uint32_t kind = roll(d, 40);
  if (kind == 0) return NULL;
  if (kind == 1) return (void *)(uintptr_t)d->state;
  if (kind == 2) return __atomic_load_n(&players[roll(d, SLOTS)], __ATOMIC_RELAXED); /* of the wrong kind, perhaps */
  return __atomic_load_n(&slots[roll(d, count)], __ATOMIC_RELAXED);
}
#define CONTEXT ((usher_context *)pick(d, contexts, 4))
#define DELEGATE ((usher_delegate *)pick(d, delegates, SLOTS))
#define PLAYER ((usher_player *)pick(d, players, SLOTS))
#define PLAYBACK ((usher_playback *)pick(d, playbacks, SLOTS))
#define RESPONSE ((usher_response *)pick(d, responses, SLOTS))

static void keep(usher_completion completion) { __atomic_store_n(&completions[completion % SLOTS], completion, __ATOMIC_RELAXED); }
/* By the place that took it. */
static struct place {
  const char *name;
  int given, destroyed;
} log_sink = {"context_new", 0, 0}, observer = {"add_observer", 0, 0}, token = {"set_token_callback", 0, 0}, item_of = {"player_play", 0, 0},
  license = {"request_license", 0, 0}, certificate = {"request_certificate", 0, 0}, *const places[] = {&log_sink, &observer, &token, &item_of, &license, &certificate};
static void on_destroy(void *user_data) {
  add(&((struct place *)user_data)->destroyed, 1);
  add(&destroyed, 1);
}
static void *user(struct place *place) {
  add(&given, 1);
  add(&place->given, 1);
  return place;
}
static void step(struct dice *d, int in_callback);
static void in_callback(void *user_data, uint64_t seed) {
  struct dice d;
  (void)user_data;
  d.state = (seed + 1) * 0x9E3779B97F4A7C15u;
  if (!get(&stop) && roll(&d, 12) == 0) step(&d, 1); /* seldom: or callbacks beget more callbacks than can run */
}
static void on_log(int32_t level, const char *line, void *user_data) { in_callback(user_data, (uint64_t)level + strlen(line)); }
static void on_event(const usher_event *event, void *user_data) { in_callback(user_data, event->sequence); }
static void on_license(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  (void)p, (void)tag;
  in_callback(user_data, r->data_size + r->period_ms);
}
static void on_token(usher_completion completion, usher_playback *p, uint64_t tag, void *user_data) {
  (void)p, (void)tag;
  keep(completion);
  if (completion % 2) usher_complete_token(completion, content_token());
  in_callback(user_data, completion);
}
static void on_payload(usher_completion completion, usher_playback *p, const char *key_system, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)key_system;
  keep(completion);
  if (completion % 2) usher_complete_payload(completion, (const uint8_t *)"fresh", 5);
  in_callback(user_data, completion);
}

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
  usher_context_new(&options, &context);
  if (!__atomic_compare_exchange_n(&contexts[slot], &none, (void *)context, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) usher_context_free(context); /* another was quicker */
}

static void step(struct dice *d, int inside) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  usher_pending pending = USHER_PENDING_INIT;
  usher_explanation words;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_completion completion = __atomic_load_n(&completions[roll(d, SLOTS)], __ATOMIC_RELAXED);
  uint64_t id = 0;
  uint32_t number, slot;
  int32_t state;
  int fd;
  const uint32_t what = roll(d, 46);
  request.timeout_ms = 1 + roll(d, 300);
  add(&calls[what], 1);
  switch (what) {
    case 0: usher_version(), usher_status_name((int32_t)roll(d, 40) - 35), usher_status_message((int32_t)roll(d, 40) - 35); break;
    case 1: usher_origin_name((int32_t)roll(d, 6)), usher_operation_name((int32_t)roll(d, 9)), usher_event_name((int32_t)roll(d, 14)); break;
    case 2: usher_error_explain((int32_t)roll(d, 5), -(int32_t)roll(d, 31), (int64_t)roll(d, 6000), &words); break;
    case 3:
      if (roll(d, 30)) break;
      slot = roll(d, 4);
      if (inside) usher_context_free((usher_context *)__atomic_load_n(&contexts[slot], __ATOMIC_RELAXED)); /* stays there, stale */
      else usher_context_free((usher_context *)__atomic_exchange_n(&contexts[slot], NULL, __ATOMIC_RELAXED)), make_context(d, slot);
      break;
    case 4:
      if (roll(d, 60) == 0) usher_context_close(CONTEXT, 1 + roll(d, 200), &number);
      break;
    case 5: case 6: case 7: usher_context_pump(CONTEXT, &number); break;
    case 8: usher_context_pump_fd(CONTEXT, &fd); break;
    case 9:
      usher_context_add_observer(CONTEXT, on_event, user(&observer), on_destroy, &id);
      id = __atomic_exchange_n(&observers[roll(d, SLOTS)], id, __ATOMIC_RELAXED);
      for (slot = 0; slot < 4; slot++) usher_context_remove_observer((usher_context *)__atomic_load_n(&contexts[slot], __ATOMIC_RELAXED), id); /* they do not pile up */
      break;
    case 10: case 11: usher_context_remove_observer(CONTEXT, __atomic_load_n(&observers[roll(d, SLOTS)], __ATOMIC_RELAXED)); break;
    case 12: usher_context_set_delegate(CONTEXT, DELEGATE); break;
    case 13: case 14:
      ssp.license_url = enforced_url(); /* one key system: a reply read as another's would hide the newest token */
      slot = roll(d, 5);
      ssp.ssm_url = roll(d, 8) && slot != MANUAL ? ssm_url() : NULL;
      ssp.certificate_url = roll(d, 4) ? certificate_url() : NULL;
      ssp.sync_setup_teardown = roll(d, 12) == 0;
      ssp.token_timeout_ms = ssp.payload_timeout_ms = 1 + roll(d, 200);
      usher_ssp_delegate_new((usher_context *)__atomic_load_n(slot < 4 ? &contexts[slot] : &players[0], __ATOMIC_RELAXED), &ssp, &delegate);
      put(d, delegates, SLOTS, delegate);
      break;
    case 15: usher_delegate_set_token_callback(DELEGATE, roll(d, 4) ? on_token : NULL, user(&token), on_destroy); break;
    case 16: usher_delegate_free(DELEGATE); break;
    case 17: case 18: usher_complete_token(completion + roll(d, 2), roll(d, 4) ? content_token() : NULL); break;
    case 19: case 20: usher_complete_payload(completion, (const uint8_t *)"fresh", roll(d, 6)); break;
    case 21: case 22:
      usher_player_new(CONTEXT, &player);
      put(d, players, SLOTS, player);
      break;
    case 23: case 24: case 25: case 26: case 27:
      item.delegate = roll(d, 4) ? DELEGATE : NULL;
      item.content_token = roll(d, 3) ? content_token() : NULL;
      item.payload = roll(d, 2) ? on_payload : NULL;
      item.renewed = roll(d, 2) ? on_license : NULL;
      item.tag = roll(d, 100);
      item.user_data = user(&item_of);
      item.destroy = on_destroy;
      usher_player_play(PLAYER, &item, &playback);
      put(d, playbacks, SLOTS, playback);
      break;
    case 28: usher_player_stop(PLAYER, (int32_t)roll(d, 2)); break;
    case 29: usher_player_free(PLAYER); break;
    case 30: usher_playback_close(PLAYBACK, (int32_t)roll(d, 2)); break;
    case 31: usher_playback_free(PLAYBACK); break;
    case 32: usher_playback_wait_session(PLAYBACK, 1 + roll(d, 20)); break;
    case 33: usher_playback_wait_closed(PLAYBACK, 1 + roll(d, 20)); break;
    case 34: usher_playback_session_state(PLAYBACK, &state); break;
    case 35: case 36: usher_playback_request_license(PLAYBACK, &request, on_license, user(&license), on_destroy); break;
    case 37: case 38:
      usher_playback_get_license(PLAYBACK, &request, roll(d, 4) ? &response : NULL);
      put(d, responses, SLOTS, response);
      break;
    case 39:
      usher_playback_get_certificate(PLAYBACK, 1 + roll(d, 50), &response);
      put(d, responses, SLOTS, response);
      break;
    case 40: usher_playback_request_certificate(PLAYBACK, on_license, user(&certificate), on_destroy); break;
    case 41: usher_response_get(RESPONSE, &info); break; /* its pointers may be freed by others: not looked at */
    case 42: usher_response_free(RESPONSE); break;
    case 43: usher_context_advance(CONTEXT, roll(d, 500), roll(d, 2) * 5); break;
    case 44: usher_context_jump(CONTEXT, roll(d, 500)); break;
    default: usher_context_settle(CONTEXT, roll(d, 3), roll(d, 3), 1 + roll(d, 10)), usher_context_pending(CONTEXT, &pending); break;
  }
}

static void *work(void *index) {
  struct dice d;
  const char *seed = getenv("USHER_TEST_SEED");
  int me = (int)(intptr_t)index;
  d.state = (uint64_t)(me + 1) * 0x9E3779B97F4A7C15u + (seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL)) * 0x2545F4914F6CDD1Du;
  while (!get(&stop)) {
    step(&d, 0);
    add(&busy[me], 1);
  }
  add(&ended, 1);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  struct dice first;
  double until;
  int index, total = 0, never = 0, before[THREADS], stuck = 0;
  first.state = 4711;
  for (index = 0; index < 4; index++) make_context(&first, (uint32_t)index);
  for (index = 0; index < THREADS; index++) pthread_create(&threads[index], NULL, work, (void *)(intptr_t)index);
  until = now_s() + atof(told("USHER_TEST_SECONDS"));
  while (now_s() < until) sleep_ms(50);
  for (index = 0; index < THREADS; index++) before[index] = get(&busy[index]);
  until = now_s() + 13 * patience(); /* a sync play, and a free at its cap */
  do {
    sleep_ms(20);
    for (stuck = index = 0; index < THREADS; index++) stuck += get(&busy[index]) == before[index];
  } while (stuck > 0 && now_s() < until);
  add(&stop, 1);
  while (get(&ended) < THREADS) { /* who waits on a manual clock needs it moved */
    for (index = 0; index < 4; index++) usher_context_advance((usher_context *)__atomic_load_n(&contexts[index], __ATOMIC_RELAXED), 1000, 0);
    sleep_ms(2);
  }
  for (index = 0; index < THREADS; index++) pthread_join(threads[index], NULL);
  tell(stuck == 0, "every thread got on (%d did not)", stuck);
  for (index = 0; index < 4; index++) usher_context_free((usher_context *)contexts[index]);
  for (index = 0; index < SLOTS; index++) usher_response_free((usher_response *)responses[index]);
  for (index = 0; index < 46; index++) total += get(&calls[index]), never += get(&calls[index]) == 0;
  tell(total > 0 && (never == 0 || patience() > 1), "%d calls; %d kinds were never made", total, never);
  reaches(&destroyed, get(&given), 8000);
  sleep_ms(50);
  for (index = 0; index < (int)(sizeof places / sizeof *places); index++)
    tell(get(&places[index]->given) == get(&places[index]->destroyed), "%s: %d user_data given, %d destroyed", places[index]->name, get(&places[index]->given),
         get(&places[index]->destroyed));
  nothing_held("stress");
  return failed != 0;
}
