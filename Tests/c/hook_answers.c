/*
 * hook_answers.c - which answers to hooks the library accepts or refuses: answers that are garbage, of the wrong kind,
 * repeated, from another thread, too late, or after close and free. If a hook gives no valid answer, the library does
 * not send the request: the request fails, and its error has the reason.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

static usher_completion asked;
static int32_t asked_hook;
static int questions, told_count, told_before;
static int32_t told_status;
static char huge[65 * 1024 + 1];

static void keep(const usher_hook_call *call, void *user_data) {
  (void)user_data;
  asked_hook = call->hook;
  __atomic_store_n(&asked, call->completion, __ATOMIC_SEQ_CST);
  add(&questions, 1);
}
static void on_license(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  told_status = response->error.status;
  add(&told_count, 1);
}

struct scene {
  usher_context *context;
  usher_delegate *delegate;
  usher_player *player;
  usher_playback *playback;
};
/* Starts a playback with a common delegate that has one hook. @return the playback and the objects that belong to
   it. */
static struct scene scene(int hook, uint32_t hook_timeout_ms) {
  struct scene s;
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  memset(&s, 0, sizeof s);
  s.context = new_context(USHER_CALLBACKS_THREADED);
  s.player = new_player(s.context);
  options.license_url = enforced_url();
  options.certificate_url = certificate_url();
  options.hook_timeout_ms = hook_timeout_ms;
  if (hook == USHER_HOOK_CONTENT_ID) hooks.content_id = keep;
  if (hook == USHER_HOOK_CERTIFICATE) hooks.certificate = keep;
  if (hook == USHER_HOOK_HEADERS) hooks.http_headers = keep;
  if (hook == USHER_HOOK_LICENSE_URL) hooks.license_url = keep;
  if (hook == USHER_HOOK_LICENSE_BODY) hooks.license_body = keep;
  if (hook == USHER_HOOK_LICENSE) hooks.license = keep;
  usher_common_delegate_new(s.context, &options, &hooks, NULL, NULL, &s.delegate);
  item.delegate = s.delegate;
  item.content_token = free_token();
  usher_player_play(s.player, &item, &s.playback);
  return s;
}
/* Makes the request that calls the hook, and waits for that call. */
static void ask_it(const struct scene *s, int hook) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  const int before = get(&questions);
  told_before = get(&told_count);
  if (hook == USHER_HOOK_CONTENT_ID)
    usher_playback_request_content_id(s->playback, (const uint8_t *)"skd://one", 9, on_license, NULL, NULL);
  else if (hook == USHER_HOOK_CERTIFICATE) usher_playback_request_certificate(s->playback, on_license, NULL, NULL);
  else usher_playback_request_license(s->playback, &request, on_license, NULL, NULL);
  if (!reaches(&questions, before + 1, 5000) || asked_hook != hook) tell(0, "hook %d is called", hook);
}
static void ends(int32_t wanted, const char *what) {
  if (!reaches(&told_count, told_before + 1, 8000)) tell(0, "%s: told", what);
  answers(wanted, told_status, what);
}

static int32_t hook(const char *text) {
  return usher_complete_hook(asked, (const uint8_t *)text, text ? strlen(text) : 0);
}
static void *hook_on_thread(void *result) {
  *(int32_t *)result = hook("bytes");
  return NULL;
}

static void none_of_the_others(int hook_kind) {
  usher_customer_license license = USHER_CUSTOMER_LICENSE_INIT;
  int wrong = 0;
  license.license = (const uint8_t *)"x";
  license.license_size = 1;
  wrong += usher_complete_token(asked, "x") != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_payload(asked, (const uint8_t *)"x", 1) != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_payload(asked, NULL, 0) != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_license(asked, &license) != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_license(asked, NULL) != USHER_E_INVALID_COMPLETION;
  wrong += usher_complete_call(asked, USHER_OK) != USHER_E_INVALID_COMPLETION;
  if (hook_kind == USHER_HOOK_HEADERS)
    wrong += hook("x") != USHER_E_INVALID_COMPLETION || hook(NULL) != USHER_E_INVALID_COMPLETION;
  else
    wrong += usher_complete_headers(asked, "A: b") != USHER_E_INVALID_COMPLETION ||
             usher_complete_headers(asked, NULL) != USHER_E_INVALID_COMPLETION;
  tell(wrong == 0, "hook %d: answers of other kinds are refused (%d were not)", hook_kind, wrong);
}

/* Tests the answers of the content identifier hook, which are bytes. */
static void bytes(void) {
  struct scene s = scene(USHER_HOOK_CONTENT_ID, 0);
  usher_response *response = (usher_response *)&s;
  int32_t status = 1;
  pthread_t thread;
  ask_it(&s, USHER_HOOK_CONTENT_ID);
  none_of_the_others(USHER_HOOK_CONTENT_ID);
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_hook(asked, (const uint8_t *)"x", 0), "no bytes");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_hook(asked, (const uint8_t *)"x", (1u << 20) + 1),
      "an answer of 1 MiB and a byte is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_hook(asked, (const uint8_t *)"x", SIZE_MAX), "SIZE_MAX bytes");
  answers(USHER_E_INVALID_ARGUMENT, usher_hook_builtin(asked, NULL), "the built-in answer without an out");
  answers(USHER_E_INVALID_COMPLETION, usher_hook_builtin(12345, &response), "of nothing");
  tell(response == NULL, "no response");
  answers(USHER_OK, usher_hook_builtin(asked, &response), "the built-in answer, requested twice");
  usher_response_free(response);
  answers(USHER_OK, usher_hook_builtin(asked, &response), "requesting it leaves the question open");
  usher_response_free(response);
  pthread_create(&thread, NULL, hook_on_thread, &status);
  pthread_join(thread, NULL);
  answers(USHER_OK, status, "an answer from another thread");
  answers(USHER_E_INVALID_COMPLETION, hook("bytes"), "a second answer");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_builtin(asked), "a third answer");
  answers(USHER_E_INVALID_COMPLETION, usher_hook_builtin(asked, &response),
      "the built-in answer, requested after the answer");
  ends(USHER_OK, "the request completes with the first answer");
  ask_it(&s, USHER_HOOK_CONTENT_ID);
  answers(USHER_OK, hook(NULL), "the answer: no content identifier");
  ends(USHER_E_CALLBACK, "the request fails without a content identifier");
  ask_it(&s, USHER_HOOK_CONTENT_ID);
  answers(USHER_OK, usher_complete_builtin(asked), "the answer: the built-in one");
  answers(USHER_E_INVALID_COMPLETION, hook("bytes"), "another answer after it");
  ends(USHER_OK, "the request completes with the built-in answer");
  usher_context_free(s.context);
}

static void headers(void) {
  static const char *const bad[] = {"no colon", ": x", "A b: c", "A: b\r\nC: d", "A: b\nno colon", "A\n: b", huge};
  struct scene s = scene(USHER_HOOK_HEADERS, 0);
  int index, wrong = 0, before = requests("license");
  ask_it(&s, USHER_HOOK_HEADERS);
  none_of_the_others(USHER_HOOK_HEADERS);
  for (index = 0; index < (int)(sizeof bad / sizeof *bad); index++) {
    int32_t status = usher_complete_headers(asked, bad[index]);
    if (status == USHER_E_INVALID_ARGUMENT) continue;
    wrong++;
    tell(0, "headers number %d: %s", index, usher_status_name(status));
    ask_it(&s, USHER_HOOK_HEADERS);
  }
  tell(wrong == 0, "invalid header lines are refused, and the question stays open");
  answers(USHER_OK, usher_complete_headers(asked, NULL), "the answer: do not send the request");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_headers(asked, ""), "after all?");
  ends(USHER_E_DECLINED, "the request fails as declined");
  tell(requests("license") == before, "no request was sent");
  ask_it(&s, USHER_HOOK_HEADERS);
  answers(USHER_OK, usher_complete_headers(asked, ""), "the answer: no headers, and so no token");
  ends(USHER_E_REFUSED, "the server refuses the request without a token");
  ask_it(&s, USHER_HOOK_HEADERS);
  answers(USHER_OK, usher_complete_builtin(asked), "the answer: the built-in headers");
  ends(USHER_OK, "a licence");
  usher_context_free(s.context);
}

static void urls(void) {
  static const char *const bad[] = {"no URL", "/path", "//host/path", "ftp://127.0.0.1/", "http://",
      "http://192.0.2.1/plain", "http://127.0.0.1:99999/", "http://127.0.0.1/a b", "http://127.0.0.1/a\r\nX: y",
      "file:///etc/passwd", huge};
  struct scene s = scene(USHER_HOOK_LICENSE_URL, 0);
  int index, wrong = 0;
  ask_it(&s, USHER_HOOK_LICENSE_URL);
  none_of_the_others(USHER_HOOK_LICENSE_URL);
  for (index = 0; index < (int)(sizeof bad / sizeof *bad); index++) {
    int32_t status = hook(bad[index]);
    if (status == USHER_E_INVALID_ARGUMENT) continue;
    wrong++;
    tell(0, "\"%.40s\": %s", bad[index], usher_status_name(status));
    ask_it(&s, USHER_HOOK_LICENSE_URL);
  }
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_hook(asked, (const uint8_t *)"http://127.0.0.1/\0x", 19),
      "a URL with a NUL in it");
  tell(wrong == 0, "URLs that the library does not use are refused, and the question stays open");
  answers(USHER_OK, hook(enforced_url()), "a URL");
  ends(USHER_OK, "a licence from the URL of the hook");
  usher_context_free(s.context);
}

/* Tests the hook that reads licence replies. The library does not call it for an error reply. If the hook gives no
   licence, the request fails. */
static void replies(void) {
  struct scene s = scene(USHER_HOOK_LICENSE, 0);
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  const int before = get(&questions);
  fault("{\"route\":\"license\",\"fault\":{\"kind\":\"status\",\"status\":503}}");
  told_before = get(&told_count);
  usher_playback_request_license(s.playback, &request, on_license, NULL, NULL);
  ends(USHER_E_HTTP, "a reply with an HTTP error fails");
  tell(get(&questions) == before, "the library does not call the hook for it");
  ask_it(&s, USHER_HOOK_LICENSE);
  none_of_the_others(USHER_HOOK_LICENSE);
  answers(USHER_OK, hook(NULL), "the answer: no licence in this reply");
  ends(USHER_E_CALLBACK, "the request fails without a licence");
  fault("{\"route\":\"license\",\"fault\":{\"kind\":\"html_page\"}}");
  ask_it(&s, USHER_HOOK_LICENSE);
  answers(USHER_OK, hook("a licence all the same"), "the hook makes a licence of a web page");
  ends(USHER_OK, "the request gets that licence");
  usher_context_free(s.context);
}

static void too_late(void) {
  int hook_kind, before = requests("license");
  for (hook_kind = USHER_HOOK_CONTENT_ID; hook_kind <= USHER_HOOK_LICENSE; hook_kind++) {
    struct scene s = scene(hook_kind, 50);
    usher_completion old;
    usher_response *response = NULL;
    ask_it(&s, hook_kind);
    ends(USHER_E_TIMEOUT, "no answer before the deadline");
    old = asked;
    answers(USHER_E_INVALID_COMPLETION,
        hook_kind == USHER_HOOK_HEADERS ? usher_complete_headers(old, "") : hook("late"), "a late answer is refused");
    answers(USHER_E_INVALID_COMPLETION, usher_complete_builtin(old), "the built-in answer as a late answer is refused");
    answers(USHER_E_INVALID_COMPLETION, usher_hook_builtin(old, &response),
        "the late request for the built-in answer is refused");
    ask_it(&s, hook_kind);
    tell(asked != old, "the library never reuses an id");
    if (hook_kind != USHER_HOOK_HEADERS)
      answers(USHER_E_INVALID_COMPLETION, usher_complete_hook(old, (const uint8_t *)"x", 1),
          "the new question is still open after an answer to the old id");
    usher_playback_close(s.playback, USHER_CLOSE_DEFAULT);
    ends(USHER_E_CLOSED, "closed while the question is open");
    answers(USHER_E_INVALID_COMPLETION, usher_complete_builtin(asked), "an answer after close is refused");
    usher_context_free(s.context);
  }
  tell(requests("license") == before + 2, "no request was sent, except those whose replies the hook read: %d",
      requests("license") - before);
}

static void after_free(void) {
  int what, hook_kind;
  for (what = 0; what < 4; what++)
    for (hook_kind = USHER_HOOK_CONTENT_ID; hook_kind <= USHER_HOOK_LICENSE; hook_kind++) {
      struct scene s = scene(hook_kind, 0);
      ask_it(&s, hook_kind);
      if (what == 0) usher_delegate_free(s.delegate), usher_delegate_set_hooks(s.delegate, NULL, NULL, NULL);
      if (what == 1) usher_playback_free(s.playback);
      if (what == 2) usher_player_free(s.player);
      if (what == 3) usher_context_free(s.context);
      if (what > 0) ends(USHER_E_CLOSED, what == 1 ? "playback freed" : what == 2 ? "player freed" : "context freed");
      answers(what ? USHER_E_INVALID_COMPLETION : USHER_OK, usher_complete_builtin(asked), "the answer");
      if (what == 0) ends(USHER_OK, "playbacks keep using a freed delegate");
      usher_context_free(s.context);
    }
}

/* When the host removes the hooks, an open question of these hooks can still be answered. Then the host passes hooks of
   several sizes; the library refuses wrong ones. */
static void replaced(void) {
  struct scene s = scene(USHER_HOOK_HEADERS, 0);
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  ask_it(&s, USHER_HOOK_HEADERS);
  answers(USHER_OK, usher_delegate_set_hooks(s.delegate, NULL, NULL, NULL), "hooks cleared while a question is open");
  answers(USHER_OK, usher_complete_builtin(asked), "the library takes the answer to it");
  ends(USHER_OK, "a licence");
  hooks.struct_size = 0;
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(s.delegate, &hooks, NULL, NULL), "hooks of size 0");
  hooks.struct_size = sizeof hooks - 1;
  answers(
      USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(s.delegate, &hooks, NULL, NULL), "hooks that are too small");
  hooks.struct_size = SIZE_MAX;
  answers(
      USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(s.delegate, &hooks, NULL, NULL), "hooks of SIZE_MAX bytes");
  {
    struct {
      usher_delegate_hooks hooks;
      char more[16];
    } later;
    memset(&later, 0, sizeof later);
    later.hooks.struct_size = sizeof later;
    answers(USHER_OK, usher_delegate_set_hooks(s.delegate, &later.hooks, NULL, NULL),
        "hooks of a later release, whose new members are zero");
    later.more[15] = 1;
    answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(s.delegate, &later.hooks, NULL, NULL),
        "hooks of a later release, with a new member set");
  }
  usher_context_free(s.context);
}

int main(void) {
  memset(huge, 'x', sizeof huge - 1);
  memcpy(huge, "http://127.0.0.1:", 17);
  bytes();
  headers();
  urls();
  replies();
  too_late();
  after_free();
  replaced();
  nothing_held("hooks");
  return failed != 0;
}
