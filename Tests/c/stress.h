/*
 * stress.h - data that the threads of stress.c share: random numbers, a counter for each function, slots with handles
 * that every thread may use or free, and callbacks. The counters and slots are relaxed atomics, which do not
 * synchronise threads. So ThreadSanitizer sees only the synchronisation that the library does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_STRESS_H
#define USHER_TEST_STRESS_H
#include "plain.h"
#include "support.h"

#define THREADS 8
#define CONTEXTS 4
#define SLOTS 32
/* The context with the manual clock. Its playbacks have no session: if a thread moved the clock past the deadline of a
   request, the reply with the session token would be lost. */
#define MANUAL 3

/* ---- dice and counters ------------------------------------------------------------------------------------------- */

/* Each function of the headers has a number. */
enum {
#define FUNCTION(name, ...) at_##name,
#include "functions.h"
#undef FUNCTION
  FUNCTION_COUNT
};
static const char *const names[] = {
#define FUNCTION(name, ...) #name,
#include "functions.h"
#undef FUNCTION
};
static int calls[THREADS + 1][FUNCTION_COUNT], went_well[FUNCTION_COUNT], seen[32], given, destroyed, callbacks, calm,
    stop;
static uint64_t seed;

struct dice {
  uint64_t state;
  int thread; /* the number of the thread; in a callback it is THREADS */
  int first; /* 1 in the first round, in which each step runs every branch */
};
static uint32_t roll(struct dice *d, uint32_t below) {
  d->state ^= d->state << 13, d->state ^= d->state >> 7, d->state ^= d->state << 17;
  return (uint32_t)(d->state >> 33) % below;
}
static int seldom(struct dice *d, uint32_t one_in) { return roll(d, one_in) == 0 || d->first; }

static void more(int *counter) { __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED); }
static int known(int *flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED); }
static void noted(struct dice *d, int function, int is_well) {
  more(&calls[d->thread][function]);
  if (is_well) more(&went_well[function]);
}
#define CALL(name, arguments) noted(d, at_##name, name arguments == USHER_OK)
#define TELLS(name, arguments) noted(d, at_##name, name arguments != NULL)

/* ---- handles and questions --------------------------------------------------------------------------------------- */

static void *volatile contexts[CONTEXTS],
    *volatile delegates[SLOTS], *volatile players[SLOTS], *volatile playbacks[SLOTS], *volatile responses[SLOTS],
                                                                                          *volatile loaders[SLOTS];
static volatile uint64_t observers[SLOTS], loads[SLOTS];

static void *look(void *volatile *slot) { return __atomic_load_n(slot, __ATOMIC_RELAXED); }
static void put(struct dice *d, void *volatile *slots, void *handle) {
  if (handle) __atomic_store_n(&slots[roll(d, SLOTS)], handle, __ATOMIC_RELAXED);
}
static void *pick(struct dice *d, void *volatile *slots, uint32_t count) {
  uint32_t kind = roll(d, 40);
  if (kind == 0) return NULL;
  if (kind == 1) return (void *)(uintptr_t)d->state;
  if (kind == 2) return look(&players[roll(d, SLOTS)]); /* this handle may be of the wrong kind */
  return look(&slots[roll(d, count)]);
}
#define CONTEXT ((usher_context *)pick(d, contexts, CONTEXTS))
#define DELEGATE ((usher_delegate *)pick(d, delegates, SLOTS))
#define PLAYER ((usher_player *)pick(d, players, SLOTS))
#define PLAYBACK ((usher_playback *)pick(d, playbacks, SLOTS))
#define RESPONSE ((usher_response *)pick(d, responses, SLOTS))
#define LOADER ((usher_loader *)pick(d, loaders, SLOTS))

/* The newest questions, one for each kind of answer. */
enum question { TOKEN, PAYLOAD, BYTES, HEADERS, LICENSE, CALLED, SERVER, QUESTIONS };
static volatile usher_completion questions[QUESTIONS][SLOTS];
static void keep(enum question kind, usher_completion id) {
  __atomic_store_n(&questions[kind][(id >> 3) % SLOTS], id, __ATOMIC_RELAXED);
}
static usher_completion question(struct dice *d, enum question kind) {
  usher_completion id =
      __atomic_load_n(&questions[roll(d, 20) ? (uint32_t)kind : roll(d, QUESTIONS)][roll(d, SLOTS)], __ATOMIC_RELAXED);
  return roll(d, 20) ? id : d->state;
}

/* For each function that takes a user_data: how often the test passed one, and how many the library destroyed. */
static struct place {
  const char *name;
  int given, destroyed;
} log_sink = {"context_new", 0, 0}, observer = {"add_observer", 0, 0}, token = {"set_token_callback", 0, 0},
  item_of = {"player_play", 0, 0}, license = {"request_license", 0, 0}, certificate = {"request_certificate", 0, 0},
  identifier = {"request_content_id", 0, 0}, hooks_of = {"set_hooks", 0, 0}, common = {"common_delegate_new", 0, 0},
  customer = {"customer_delegate_new", 0, 0}, loader_of = {"add_loader", 0, 0}, load = {"load_resource", 0, 0},
  customer_callbacks = {"set_customer_callbacks", 0, 0}, plain_of = {"plain steps", 0, 0};
static struct place *const places[] = {&log_sink, &observer, &token, &item_of, &license, &certificate, &identifier,
    &hooks_of, &common, &customer, &loader_of, &load, &customer_callbacks, &plain_of};
static void on_destroy(void *user_data) {
  more(&((struct place *)user_data)->destroyed);
  more(&destroyed);
}
static void *user(struct place *place) {
  more(&given);
  more(&place->given);
  return place;
}

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

static void take_any_step(struct dice *d);
static struct dice callback_dice(void) {
  struct dice d;
  d.state = seed + ((uint64_t)__atomic_add_fetch(&callbacks, 1, __ATOMIC_RELAXED) + THREADS) * 0x9E3779B97F4A7C15u;
  d.thread = THREADS, d.first = 0;
  roll(&d, 2);
  return d;
}
/* Runs a step inside a callback, but rarely: a step may cause more callbacks, and their number must not grow without
   end. */
static void do_more(struct dice *d) {
  if (!known(&stop) && roll(d, 12) == 0) take_any_step(d);
}
static void on_log(int32_t level, const char *line, void *user_data) {
  struct dice d = callback_dice();
  (void)level, (void)line, (void)user_data;
  do_more(&d);
}
static void on_event(const usher_event *event, void *user_data) {
  struct dice d = callback_dice();
  (void)user_data;
  if (event->type > 0 && event->type < (int)(sizeof seen / sizeof *seen)) more(&seen[event->type]);
  do_more(&d);
}
static void on_notice(const usher_notice *notice, void *user_data) {
  struct dice d = callback_dice();
  (void)notice, (void)user_data;
  do_more(&d);
}
static void on_answer(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  struct dice d = callback_dice();
  (void)p, (void)r, (void)tag, (void)user_data;
  do_more(&d);
}

static void answer_server(struct dice *d, usher_completion id) {
  usher_entitlement wanted = USHER_ENTITLEMENT_INIT;
  uint32_t kind = roll(d, 4);
  /* This is a licence URL, not the URL of an entitlement server, so the head-end refuses the request. */
  wanted.url = enforced_url();
  if (kind == 0) CALL(usher_complete_builtin, (id));
  else if (kind == 1) CALL(usher_complete_entitlement, (id, &wanted));
  else CALL(usher_complete_server, (id, kind == 2 ? enforced_url() : NULL, roll(d, 2) ? "X-Stress: 1" : NULL));
}

/* Answers a question with a random answer of the kind that it needs. */
static void answer(struct dice *d, enum question kind, usher_completion id) {
  usher_customer_license made = USHER_CUSTOMER_LICENSE_INIT;
  made.license = (const uint8_t *)"licence", made.license_size = roll(d, 8);
  made.heartbeat_s = roll(d, 4) * 0.5;
  made.renew_type = (int32_t)roll(d, 3);
  if (kind == TOKEN) CALL(usher_complete_token, (id, roll(d, 4) ? content_token() : NULL));
  if (kind == PAYLOAD) CALL(usher_complete_payload, (id, (const uint8_t *)"fresh", roll(d, 6)));
  if (kind == BYTES && roll(d, 4)) CALL(usher_complete_builtin, (id));
  else if (kind == BYTES) CALL(usher_complete_hook, (id, (const uint8_t *)"made", roll(d, 5)));
  if (kind == HEADERS && roll(d, 4)) CALL(usher_complete_builtin, (id));
  else if (kind == HEADERS) CALL(usher_complete_headers, (id, roll(d, 4) ? "X-Stress: 1" : roll(d, 2) ? "" : NULL));
  if (kind == LICENSE) CALL(usher_complete_license, (id, roll(d, 8) ? &made : NULL));
  if (kind == CALLED) CALL(usher_complete_call, (id, roll(d, 8) ? USHER_OK : USHER_E_TRANSPORT));
  if (kind == SERVER) answer_server(d, id);
}
static void asked(enum question kind, usher_completion id) {
  struct dice dice = callback_dice(), *d = &dice;
  usher_response *builtin = NULL;
  keep(kind, id);
  if ((kind == BYTES || kind == HEADERS) && roll(d, 4) == 0) {
    CALL(usher_hook_builtin, (id, &builtin));
    put(d, responses, builtin);
  }
  if (roll(d, 2)) answer(d, kind, id);
  do_more(d);
}
static void on_token(usher_completion id, usher_playback *p, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)user_data;
  asked(TOKEN, id);
}
static void on_payload(usher_completion id, usher_playback *p, const char *key_system, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)key_system, (void)user_data;
  asked(PAYLOAD, id);
}
static void on_hook(const usher_hook_call *call, void *user_data) {
  (void)user_data;
  asked(call->hook == USHER_HOOK_HEADERS ? HEADERS : BYTES, call->completion);
}
static void on_customer_license(const usher_customer_request *request, void *user_data) {
  (void)user_data;
  asked(LICENSE, request->completion);
}
static void on_customer_call(usher_completion id, usher_playback *p, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)user_data;
  asked(CALLED, id);
}
static void on_spc(const usher_spc_request *request, void *user_data) {
  (void)user_data;
  asked(PAYLOAD, request->completion);
}
static void on_server(const usher_server_request *request, void *user_data) {
  (void)user_data;
  asked(SERVER, request->completion);
}
static void on_protection(const usher_protection *protection, void *user_data) {
  *(size_t *)user_data += protection->key_id_count;
}

#endif
