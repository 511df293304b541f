/*
 * hook_races.c - one thread answers hooks while another thread closes or frees the playback, or replaces the hooks.
 * Each request completes exactly once, each blocked thread returns, and each destroy runs exactly once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

#define ROUNDS 1000
#define CONTEXTS 60

static usher_completion asked; /* the newest question, or 0 */
static int questions, answering, told_ok, told_error, destroyed, waited, returned;

static void on_hook(const usher_hook_call *call, void *user_data) {
  (void)user_data;
  __atomic_store_n(&asked, call->completion, __ATOMIC_SEQ_CST);
  add(&questions, 1);
}
/* A certificate hook that asks for the built-in answer, and waits until this answer has come from the server. */
static void on_certificate(const usher_hook_call *call, void *user_data) {
  usher_response *response = NULL;
  int32_t status = usher_hook_builtin(call->completion, &response);
  if ((status == USHER_OK) != (response != NULL) && status != USHER_E_CLOSED)
    tell(0, "usher_hook_builtin: %s", usher_status_name(status));
  usher_response_free(response);
  on_hook(call, user_data);
}
/* The work of the answering thread: answers each question as soon as the question is known. @return NULL. */
static void *answer(void *unused) {
  (void)unused;
  while (get(&answering)) {
    usher_completion id = __atomic_exchange_n(&asked, 0, __ATOMIC_SEQ_CST);
    if (!id) continue;
    if (id & 8) usher_complete_hook(id, (const uint8_t *)"bytes", 5);
    else usher_complete_builtin(id);
  }
  return NULL;
}
static void on_answer(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  add(response->error.status == USHER_OK ? &told_ok : &told_error, 1);
}
static void *wait_for_it(void *playback) {
  usher_response *response = NULL;
  usher_playback_get_content_id((usher_playback *)playback, (const uint8_t *)"skd://one", 9, 0, &response);
  usher_response_free(response);
  add(&returned, 1);
  return NULL;
}
static usher_delegate *hooked(usher_context *context) {
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  usher_delegate *delegate = NULL;
  options.license_url = enforced_url();
  options.certificate_url = certificate_url();
  options.hook_timeout_ms = 60000;
  hooks.content_id = hooks.http_headers = hooks.license_body = on_hook;
  hooks.certificate = on_certificate;
  usher_common_delegate_new(context, &options, &hooks, &destroyed, count_destroy, &delegate);
  return delegate;
}

/* Requests a content identifier, and a licence or in every 16th round a certificate. `gone` counts the `destroy` of
   these requests.
   @return the number of requests that the library accepted. */
static int ask_for_all(usher_playback *playback, int round, int *gone) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  int accepted = usher_playback_request_content_id(
                     playback, (const uint8_t *)"skd://one", 9, on_answer, gone, count_destroy) == USHER_OK;
  if (round % 16 == 0)
    accepted += usher_playback_request_certificate(playback, on_answer, gone, count_destroy) == USHER_OK;
  else accepted += usher_playback_request_license(playback, &request, on_answer, gone, count_destroy) == USHER_OK;
  return accepted;
}
/* Waits for a question, and then for a short random time. So the caller acts at a random moment while another thread
   answers the question. */
static void linger(int before, int round) {
  volatile int spins = round % 97 * 97;
  while (get(&questions) == before && spins > -200000) spins--;
  while (spins-- > 0) {}
}

static void playbacks(void) {
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_delegate *delegate = hooked(context);
  usher_player *player = new_player(context);
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  pthread_t waiter;
  int round, accepted = 0, gone = 0;
  item.delegate = delegate;
  item.content_token = free_token();
  /* On a busy machine the answering thread may not run in any of the rounds. Then more rounds follow, with a pause. */
  for (round = 0; round < ROUNDS || (get(&told_ok) == 0 && round < 2 * ROUNDS); round++) {
    usher_playback *playback = NULL;
    int waits = round % 8 == 0, before = get(&questions);
    usher_player_play(player, &item, &playback);
    if (waits) pthread_create(&waiter, NULL, wait_for_it, playback), waited++;
    accepted += ask_for_all(playback, round, &gone);
    linger(before, round);
    if (round >= ROUNDS) sleep_ms(5);
    if (round % 3) usher_playback_close(playback, USHER_CLOSE_DEFAULT);
    usher_playback_free(playback);
    if (waits) pthread_join(waiter, NULL);
  }
  reaches(&gone, 2 * round, 5000);
  tell(accepted == 2 * round && get(&told_ok) + get(&told_error) == accepted,
      "playbacks closed and freed: of %d requests %d completed with answers, %d with errors", accepted, get(&told_ok),
      get(&told_error));
  tell(get(&told_ok) > 0 && get(&told_error) > 0, "some completed with answers, some with errors");
  tell(get(&gone) == 2 * round, "%d of %d user_data destroyed", get(&gone), 2 * round);
  tell(get(&returned) == waited, "all %d blocked calls returned", waited);
  usher_context_free(context);
  tell(get(&destroyed) == 1, "context_free destroyed the hooks' user_data (%d)", get(&destroyed));
}

static void contexts(void) {
  int round, accepted = 0, gone = 0, told_before = get(&told_ok) + get(&told_error), destroyed_before = get(&destroyed);
  for (round = 0; round < CONTEXTS; round++) {
    usher_context *context = new_context(USHER_CALLBACKS_THREADED);
    usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
    usher_playback *playback = NULL;
    pthread_t waiter;
    int before = get(&questions);
    item.delegate = hooked(context);
    item.content_token = free_token();
    usher_player_play(new_player(context), &item, &playback);
    pthread_create(&waiter, NULL, wait_for_it, playback), waited++;
    accepted += ask_for_all(playback, round % 2, &gone);
    linger(before, round * 5);
    usher_context_free(context);
    pthread_join(waiter, NULL);
  }
  tell(get(&told_ok) + get(&told_error) - told_before == accepted, "contexts freed: %d requests, all completed",
      accepted);
  tell(get(&gone) == 2 * CONTEXTS && get(&destroyed) - destroyed_before == CONTEXTS,
      "when context_free returned, %d of %d user_data were destroyed, and %d of %d of hooks", get(&gone), 2 * CONTEXTS,
      get(&destroyed) - destroyed_before, CONTEXTS);
  tell(get(&returned) == waited, "all %d blocked calls returned", waited);
}

int main(void) {
  pthread_t helper;
  add(&answering, 1);
  pthread_create(&helper, NULL, answer, NULL);
  playbacks();
  contexts();
  add(&answering, -1);
  pthread_join(helper, NULL);
  nothing_held("races");
  return failed != 0;
}
