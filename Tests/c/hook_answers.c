/*
 * hook_answers.c - what hooks may answer and what not: garbage, the wrong kind, twice, from another thread, too late, after close and free. What was asked for
 * fails then, says why, and nothing of it is sent.
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
/* A common delegate with one hook. */
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
/* Asks for what makes the hook be asked, and waits until it is. */
static void ask_it(const struct scene *s, int hook) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  const int before = get(&questions);
  told_before = get(&told_count);
  if (hook == USHER_HOOK_CONTENT_ID)
    usher_playback_request_content_id(s->playback, (const uint8_t *)"skd://one", 9, on_license, NULL, NULL);
  else if (hook == USHER_HOOK_CERTIFICATE) usher_playback_request_certificate(s->playback, on_license, NULL, NULL);
  else usher_playback_request_license(s->playback, &request, on_license, NULL, NULL);
  if (!reaches(&questions, before + 1, 5000) || asked_hook != hook) tell(0, "hook %d is asked", hook);
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

/* Bytes: the content identifier. */
static void bytes(void) {
  struct scene s = scene(USHER_HOOK_CONTENT_ID, 0);
  usher_response *response = (usher_response *)&s;
  int32_t status = 1;
  pthread_t thread;
  ask_it(&s, USHER_HOOK_CONTENT_ID);
  none_of_the_others(USHER_HOOK_CONTENT_ID);
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_hook(asked, (const uint8_t *)"x", 0), "no bytes");
  answers(USHER_E_INVALID_ARGUMENT, usher_complete_hook(asked, (const uint8_t *)"x", (1u << 20) + 1),
      "a byte more than 1 MiB");
  answers(
      USHER_E_INVALID_ARGUMENT, usher_complete_hook(asked, (const uint8_t *)"x", SIZE_MAX), "all the bytes there are");
  answers(USHER_E_INVALID_ARGUMENT, usher_hook_builtin(asked, NULL), "the built-in answer to nowhere");
  answers(USHER_E_INVALID_COMPLETION, usher_hook_builtin(12345, &response), "of nothing");
  tell(response == NULL, "no response");
  answers(USHER_OK, usher_hook_builtin(asked, &response), "the built-in answer, twice");
  usher_response_free(response);
  answers(USHER_OK, usher_hook_builtin(asked, &response), "which leaves the question open");
  usher_response_free(response);
  pthread_create(&thread, NULL, hook_on_thread, &status);
  pthread_join(thread, NULL);
  answers(USHER_OK, status, "answered, from another thread");
  answers(USHER_E_INVALID_COMPLETION, hook("bytes"), "a second time");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_builtin(asked), "a third");
  answers(
      USHER_E_INVALID_COMPLETION, usher_hook_builtin(asked, &response), "what would the built-in answer have been?");
  ends(USHER_OK, "it comes");
  ask_it(&s, USHER_HOOK_CONTENT_ID);
  answers(USHER_OK, hook(NULL), "there is none");
  ends(USHER_E_CALLBACK, "it fails for that");
  ask_it(&s, USHER_HOOK_CONTENT_ID);
  answers(USHER_OK, usher_complete_builtin(asked), "the built-in one");
  answers(USHER_E_INVALID_COMPLETION, hook("bytes"), "another after it");
  ends(USHER_OK, "the built-in one comes");
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
  tell(wrong == 0, "lines that are no headers are refused, and the question stays open");
  answers(USHER_OK, usher_complete_headers(asked, NULL), "the request is not to be sent");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_headers(asked, ""), "after all?");
  ends(USHER_E_DECLINED, "it fails for that");
  tell(requests("license") == before, "nothing was sent");
  ask_it(&s, USHER_HOOK_HEADERS);
  answers(USHER_OK, usher_complete_headers(asked, ""), "no headers: no token");
  ends(USHER_E_REFUSED, "the server refuses that");
  ask_it(&s, USHER_HOOK_HEADERS);
  answers(USHER_OK, usher_complete_builtin(asked), "the built-in ones");
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
  tell(wrong == 0, "texts that are no URL of ours are refused, and the question stays open");
  answers(USHER_OK, hook(enforced_url()), "a URL");
  ends(USHER_OK, "a licence from there");
  usher_context_free(s.context);
}

/* The reply's hook: not for refusals; and what it does not make is no licence. */
static void replies(void) {
  struct scene s = scene(USHER_HOOK_LICENSE, 0);
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  const int before = get(&questions);
  fault("{\"route\":\"license\",\"fault\":{\"kind\":\"status\",\"status\":503}}");
  told_before = get(&told_count);
  usher_playback_request_license(s.playback, &request, on_license, NULL, NULL);
  ends(USHER_E_HTTP, "a reply with an HTTP error fails");
  tell(get(&questions) == before, "and the hook is not asked");
  ask_it(&s, USHER_HOOK_LICENSE);
  none_of_the_others(USHER_HOOK_LICENSE);
  answers(USHER_OK, hook(NULL), "no licence in a reply");
  ends(USHER_E_CALLBACK, "the request fails for that");
  fault("{\"route\":\"license\",\"fault\":{\"kind\":\"html_page\"}}");
  ask_it(&s, USHER_HOOK_LICENSE);
  answers(USHER_OK, hook("a licence all the same"), "a licence out of a web page");
  ends(USHER_OK, "is one");
  usher_context_free(s.context);
}

static void too_late(void) {
  int hook_kind, before = requests("license");
  for (hook_kind = USHER_HOOK_CONTENT_ID; hook_kind <= USHER_HOOK_LICENSE; hook_kind++) {
    struct scene s = scene(hook_kind, 50);
    usher_completion old;
    usher_response *response = NULL;
    ask_it(&s, hook_kind);
    ends(USHER_E_TIMEOUT, "not answered in time");
    old = asked;
    answers(USHER_E_INVALID_COMPLETION,
        hook_kind == USHER_HOOK_HEADERS ? usher_complete_headers(old, "") : hook("late"), "a late answer");
    answers(USHER_E_INVALID_COMPLETION, usher_complete_builtin(old), "the built-in one, late");
    answers(USHER_E_INVALID_COMPLETION, usher_hook_builtin(old, &response), "asked for late");
    ask_it(&s, hook_kind);
    tell(asked != old, "ids are not used again");
    if (hook_kind != USHER_HOOK_HEADERS)
      answers(USHER_E_INVALID_COMPLETION, usher_complete_hook(old, (const uint8_t *)"x", 1),
          "the old id does not disturb the new question");
    usher_playback_close(s.playback, USHER_CLOSE_DEFAULT);
    ends(USHER_E_CLOSED, "closed while asked");
    answers(USHER_E_INVALID_COMPLETION, usher_complete_builtin(asked), "an answer after close");
    usher_context_free(s.context);
  }
  tell(requests("license") == before + 2, "only what the hook of the reply was asked about was sent: %d",
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
      if (what == 0) ends(USHER_OK, "a freed delegate goes on for its playbacks");
      usher_context_free(s.context);
    }
}

/* Hooks replaced while one is asked: that question goes on. */
static void replaced(void) {
  struct scene s = scene(USHER_HOOK_HEADERS, 0);
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  ask_it(&s, USHER_HOOK_HEADERS);
  answers(USHER_OK, usher_delegate_set_hooks(s.delegate, NULL, NULL, NULL), "hooks cleared while one is asked");
  answers(USHER_OK, usher_complete_builtin(asked), "its answer is taken");
  ends(USHER_OK, "a licence");
  hooks.struct_size = 0;
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(s.delegate, &hooks, NULL, NULL), "hooks of size 0");
  hooks.struct_size = sizeof hooks - 1;
  answers(
      USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(s.delegate, &hooks, NULL, NULL), "hooks that are too small");
  hooks.struct_size = SIZE_MAX;
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(s.delegate, &hooks, NULL, NULL),
      "hooks of all the bytes there are");
  {
    struct {
      usher_delegate_hooks hooks;
      char more[16];
    } later;
    memset(&later, 0, sizeof later);
    later.hooks.struct_size = sizeof later;
    answers(USHER_OK, usher_delegate_set_hooks(s.delegate, &later.hooks, NULL, NULL),
        "hooks of a later release, with nothing new in them");
    later.more[15] = 1;
    answers(
        USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(s.delegate, &later.hooks, NULL, NULL), "with something new");
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
