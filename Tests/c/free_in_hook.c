/*
 * free_in_hook.c - every hook, customer callback and SPC callback frees the playback, its player, its delegate or the
 * whole context, as in free_in_callback.c. The callback then answers its question, which may be too late.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "stage.h"

/* The kinds 1 to 6 are the hooks: each has the number USHER_HOOK_... from the header. */
enum kind {
  BUILTIN_CERTIFICATE = USHER_HOOK_LICENSE + 1,
  CUSTOMER_LICENSE,
  CUSTOMER_RENEWAL,
  CUSTOMER_HEARTBEAT,
  CUSTOMER_TEARDOWN,
  SPC,
  KINDS
};
static const char *const kind_names[] = {"none", "content id hook", "certificate hook", "headers hook", "URL hook",
    "body hook", "licence hook", "certificate hook before the built-in one", "customer licence", "customer renewal",
    "customer heartbeat", "customer teardown", "SPC"};

static void on_hook(const usher_hook_call *call, void *user_data) {
  usher_response *response = NULL;
  act((struct stage *)user_data,
      call->hook == USHER_HOOK_CERTIFICATE && ((struct stage *)user_data)->kind == BUILTIN_CERTIFICATE
          ? BUILTIN_CERTIFICATE
          : call->hook);
  usher_hook_builtin(call->completion, &response); /* this call may wait; it fails if act() has freed the playback */
  usher_response_free(response);
  usher_complete_builtin(call->completion);
}
static void on_license(const usher_customer_request *request, void *user_data) {
  struct stage *s = (struct stage *)user_data;
  usher_customer_license license = USHER_CUSTOMER_LICENSE_INIT;
  act(s, request->type == USHER_LICENSE_RENEWAL ? CUSTOMER_RENEWAL : CUSTOMER_LICENSE);
  license.license = request->payload;
  license.license_size = request->payload_size;
  license.heartbeat_s = 0.05;
  license.renew_type = s->kind == CUSTOMER_RENEWAL ? USHER_RENEW_ENFORCED : USHER_RENEW_HEARTBEAT;
  usher_complete_license(request->completion, &license);
}
static void on_heartbeat(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  act((struct stage *)user_data, CUSTOMER_HEARTBEAT);
  usher_complete_call(completion, USHER_OK);
}
static void on_teardown(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  act((struct stage *)user_data, CUSTOMER_TEARDOWN);
  usher_complete_call(completion, USHER_OK);
}
static void on_spc(const usher_spc_request *request, void *user_data) {
  act((struct stage *)user_data, SPC);
  usher_complete_payload(request->completion, (const uint8_t *)"SPC", 3);
}
static void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)key_system, (void)user_data;
  usher_complete_payload(completion, (const uint8_t *)"fresh", 5);
}
static int told_of;
static void on_answer(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)response, (void)tag, (void)user_data;
  add(&told_of, 1);
}

static void add_delegate(struct stage *s) {
  if (s->kind < CUSTOMER_LICENSE) {
    usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
    s->delegate = new_delegate(s->context, enforced_url());
    hooks.content_id = hooks.certificate = hooks.http_headers = hooks.license_url = hooks.license_body = hooks.license =
        on_hook;
    s->given += usher_delegate_set_hooks(s->delegate, &hooks, s, on_destroy) == USHER_OK;
  } else if (s->kind < SPC) {
    usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
    options.license = on_license;
    options.heartbeat = on_heartbeat;
    options.teardown = on_teardown;
    options.user_data = s;
    options.destroy = on_destroy;
    s->given += usher_customer_delegate_new(s->context, &options, &s->delegate) == USHER_OK;
  } else {
    usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
    options.license_url = enforced_url();
    options.certificate_url = certificate_url();
    options.spc = on_spc;
    options.user_data = s;
    options.destroy = on_destroy;
    s->given += usher_context_add_loader(s->context, &options, &s->loader) == USHER_OK;
  }
}

static void story(int32_t callbacks, int kind, enum action action) {
  struct stage s;
  char what[128];
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_playback *playback = NULL;
  const uint8_t *url = (const uint8_t *)"skd://one";
  const int told_before = get(&told_of);
  snprintf(what, sizeof what, "%s in %s, %s", action_names[action], kind_names[kind], mode_name(callbacks));
  memset(&s, 0, sizeof s);
  s.kind = kind;
  s.action = action;
  s.context = new_context(callbacks);
  add_delegate(&s);
  s.player = new_player(s.context);
  item.delegate = s.delegate;
  item.content_token = content_token();
  item.payload = on_payload;
  item.user_data = &s;
  item.destroy = on_destroy;
  s.given += usher_player_play(s.player, &item, &playback) == USHER_OK;
  /* The callback under test may free the playback before these calls. In this case the calls fail, but still run
     `destroy`. */
  if (kind == USHER_HOOK_CONTENT_ID) usher_playback_request_content_id(playback, url, 9, on_answer, &s, on_destroy);
  else if (kind == USHER_HOOK_CERTIFICATE || kind == BUILTIN_CERTIFICATE)
    usher_playback_request_certificate(playback, on_answer, &s, on_destroy);
  else if (kind == SPC) usher_playback_load_resource(playback, url, 9, 0, on_answer, &s, on_destroy, NULL);
  else usher_playback_request_license(playback, &request, on_answer, &s, on_destroy);
  s.given++;
  __atomic_store_n(&s.playback, playback, __ATOMIC_SEQ_CST);
  if (kind == CUSTOMER_TEARDOWN) { /* close calls it */
    comes(s.context, callbacks, &told_of, told_before + 1, 5000);
    usher_playback_close(playback, USHER_CLOSE_TEARDOWN);
  }
  finish(&s, callbacks, what);
}

int main(void) {
  int32_t callbacks;
  int kind, action;
  for (callbacks = USHER_CALLBACKS_THREADED; callbacks <= USHER_CALLBACKS_PUMPED; callbacks++)
    for (kind = USHER_HOOK_CONTENT_ID; kind < KINDS; kind++) {
      for (action = 0; action < ACTIONS; action++) story(callbacks, kind, (enum action)action);
      nothing_held(kind_names[kind]);
    }
  return failed != 0;
}
