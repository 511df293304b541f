/*
 * completions.c - how the library handles answers to the token and payload callbacks: correct answers, and answers that
 * are repeated, late, after close and free, from other threads, of the wrong kind, with unknown ids or with invalid
 * values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

static usher_completion asked;
static int tokens, payloads, renewals, missed;

static void keep(usher_completion completion, int *counter) {
  __atomic_store_n(&asked, completion, __ATOMIC_SEQ_CST);
  add(counter, 1);
}
static void on_token(usher_completion completion, usher_playback *p, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)user_data;
  keep(completion, &tokens);
}
static void on_payload(
    usher_completion completion, usher_playback *p, const char *key_system, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)user_data;
  if (strcmp(key_system, USHER_KEY_SYSTEM_FAIRPLAY) == 0) keep(completion, &payloads);
}
static void on_renewed(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)user_data;
  if (r->error.status == USHER_OK && r->type == USHER_LICENSE_RENEWAL) add(&renewals, 1);
}
static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type == USHER_EVENT_HEARTBEAT_ERROR) add(&missed, 1);
}

static void *answer_token(void *result) {
  *(int32_t *)result = usher_complete_token(asked, content_token());
  return NULL;
}
static int32_t from_other_thread(void) {
  pthread_t thread;
  int32_t status = 1;
  pthread_create(&thread, NULL, answer_token, &status);
  pthread_join(thread, NULL);
  return status;
}

static void garbage(void) {
  static const usher_completion ids[] = {
      0, 1, 2, 3, 255, 4096, UINT32_MAX, (usher_completion)UINT32_MAX + 1, INT64_MAX, UINT64_MAX, UINT64_MAX - 1};
  int index, wrong = 0;
  uint64_t random = 88172645463325252u;
  for (index = 0; index < (int)(sizeof ids / sizeof *ids); index++) {
    wrong += usher_complete_token(ids[index], "x") != USHER_E_INVALID_COMPLETION;
    wrong += usher_complete_payload(ids[index], (const uint8_t *)"x", 1) != USHER_E_INVALID_COMPLETION;
    wrong += usher_complete_token(ids[index], NULL) != USHER_E_INVALID_COMPLETION;
    wrong += usher_complete_payload(ids[index], NULL, 0) != USHER_E_INVALID_COMPLETION;
  }
  for (index = 0; index < 10000; index++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    wrong += usher_complete_token(random, "x") != USHER_E_INVALID_COMPLETION;
  }
  tell(wrong == 0, "ids that the library never gave out are refused (%d were not)", wrong);
}

static usher_playback *play_without_token(usher_player *player, usher_delegate *delegate) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  item.delegate = delegate;
  usher_player_play(player, &item, &playback);
  return playback;
}
static usher_delegate *asking_delegate(usher_context *context, uint32_t token_timeout_ms) {
  usher_ssp_options options = USHER_SSP_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  options.license_url = license_url();
  options.ssm_url = ssm_url();
  options.token_timeout_ms = token_timeout_ms;
  usher_ssp_delegate_new(context, &options, &delegate);
  usher_delegate_set_token_callback(delegate, on_token, NULL, NULL);
  return delegate;
}

static void token_story(void) {
  static char huge[65 * 1024 + 1];
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_delegate *delegate = asking_delegate(context, 0), *hasty = asking_delegate(context, 100);
  usher_player *player = new_player(context);
  usher_playback *playback = play_without_token(player, delegate);
  usher_completion old;
  int before;
  memset(huge, 'x', sizeof huge - 1);
  tell(reaches(&tokens, 1, 5000), "the library asks for a token");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_payload(asked, (const uint8_t *)"x", 1),
      "a token question refuses a payload");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_token(asked + 1, "x"),
      "an id that the library has not given out yet is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_token(asked, ""), "an empty token is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_token(asked, "a\r\nb: c"), "a token with CR LF is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_token(asked, huge), "a token of 65 kB is refused");
  tell(requests("setup") == 0, "no set-up request was sent yet");
  answers(USHER_OK, from_other_thread(), "the question is still open; another thread answers it");
  answers(USHER_E_INVALID_COMPLETION, from_other_thread(), "a second answer is refused");
  answers(USHER_OK, usher_playback_wait_session(playback, 0, NULL), "the session is set up with that token");
  usher_playback_free(playback);

  playback = play_without_token(player, delegate);
  reaches(&tokens, 2, 5000);
  answers(USHER_OK, usher_complete_token(asked, NULL), "the answer: no token");
  answers(USHER_E_NO_TOKEN, usher_playback_wait_session(playback, 0, NULL), "the set-up fails without a token");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_token(asked, content_token()),
      "a token for a question that was answered with none");
  usher_playback_free(playback);

  playback = play_without_token(player, hasty);
  reaches(&tokens, 3, 5000);
  answers(USHER_E_NO_TOKEN, usher_playback_wait_session(playback, 0, NULL),
      "the set-up fails: no token came before the deadline");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_token(asked, content_token()), "a late token is refused");
  usher_playback_free(playback);

  playback = play_without_token(player, delegate);
  reaches(&tokens, 4, 5000);
  old = asked;
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  answers(USHER_OK, usher_playback_wait_closed(playback, 5000), "the playback closes while a token question is open");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_token(old, content_token()),
      "after close the token for that question is refused");
  usher_playback_free(playback);

  playback = play_without_token(player, delegate);
  reaches(&tokens, 5, 5000);
  old = asked;
  usher_playback_free(playback);
  before = get(&tokens);
  playback = play_without_token(player, delegate);
  reaches(&tokens, before + 1, 5000);
  tell(asked != old, "the library never reuses an id");
  usher_complete_token(old, content_token());
  answers(USHER_OK, usher_complete_token(asked, content_token()),
      "the new question is still open after an answer to an old id");
  answers(USHER_OK, usher_playback_wait_session(playback, 0, NULL), "the new answer sets the session up");
  before = get(&tokens);
  usher_playback_free(playback);
  playback = play_without_token(player, delegate);
  reaches(&tokens, before + 1, 5000);
  usher_context_free(context);
  answers(USHER_E_INVALID_COMPLETION, usher_complete_token(asked, content_token()),
      "a token after usher_context_free is refused");
  nothing_held("tokens");
}

static void payload_story(void) {
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_delegate *delegate = new_delegate(context, enforced_url());
  usher_player *player = new_player(context);
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  item.delegate = delegate;
  item.content_token = content_token();
  item.payload = on_payload;
  item.renewed = on_renewed;
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  usher_player_play(player, &item, &playback);
  answers(USHER_OK, usher_playback_get_license(playback, &request, NULL),
      "usher_playback_get_license accepts NULL for the response");
  tell(reaches(&payloads, 1, 8000), "the library asks for a fresh payload");
  answers(
      USHER_E_INVALID_COMPLETION, usher_complete_token(asked, content_token()), "a payload question refuses a token");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_payload(asked, (const uint8_t *)"x", 0),
      "a payload of no bytes is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_payload(asked, (const uint8_t *)"x", (size_t)2 << 20),
      "a payload of 2 MiB is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_payload(asked, (const uint8_t *)"x", SIZE_MAX),
      "a payload of SIZE_MAX bytes is refused");
  answers(USHER_OK, usher_complete_payload(asked, (const uint8_t *)"fresh", 5),
      "the question is still open, and takes a good payload");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_payload(asked, (const uint8_t *)"fresh", 5),
      "a second answer is refused");
  tell(reaches(&renewals, 1, 8000), "the renewed licence arrives");
  tell(reaches(&payloads, 2, 8000), "the library asks for the next payload");
  answers(USHER_OK, usher_complete_payload(asked, NULL, 0), "the answer: no payload");
  tell(reaches(&missed, 1, 8000), "the renewal fails without a payload");
  usher_context_free(context);
  answers(USHER_E_INVALID_COMPLETION, usher_complete_payload(asked, (const uint8_t *)"late", 4),
      "a payload after usher_context_free is refused");
  nothing_held("payloads");
}

int main(void) {
  garbage();
  token_story();
  payload_story();
  return failed != 0;
}
