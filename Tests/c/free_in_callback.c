/*
 * free_in_callback.c - every kind of callback frees the playback, its player, its delegate or the whole context, in
 * threaded and in pumped mode. The call that frees returns, each `destroy` runs exactly once, and the head-end holds no
 * session.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "stage.h"

enum kind { OBSERVER, TOKEN, PAYLOAD, RENEWED, LICENSE, CERTIFICATE, LOG, KINDS };
static const char *const kind_names[] = {"observer", "token", "payload", "renewed", "licence", "certificate", "log"};

static void on_event(const usher_event *event, void *user_data) {
  struct stage *s = (struct stage *)user_data;
  if (event->type == USHER_EVENT_SESSION_STARTED) act(s, OBSERVER);
}
static void on_log(int32_t level, const char *line, void *user_data) {
  struct stage *s = (struct stage *)user_data;
  (void)level, (void)line;
  if (__atomic_load_n(&s->playback, __ATOMIC_SEQ_CST)) act(s, LOG);
}
static void on_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  act((struct stage *)user_data, TOKEN);
  usher_complete_token(completion, content_token()); /* this call fails if act() has closed the playback */
}
static void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)key_system;
  act((struct stage *)user_data, PAYLOAD);
  usher_complete_payload(completion, (const uint8_t *)"fresh", 5);
}
static void on_renewed(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)response;
  act((struct stage *)user_data, RENEWED);
}
static void on_license(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)response;
  act((struct stage *)user_data, LICENSE);
}
static void on_certificate(
    usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)response;
  act((struct stage *)user_data, CERTIFICATE);
}

static void story(int32_t callbacks, enum kind kind, enum action action) {
  struct stage s;
  char what[128];
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_playback *playback = NULL;
  snprintf(what, sizeof what, "%s in %s, %s", action_names[action], kind_names[kind], mode_name(callbacks));
  memset(&s, 0, sizeof s);
  s.kind = kind;
  s.action = action;
  options.callbacks = callbacks;
  options.log = on_log;
  options.log_level = USHER_LOG_DEBUG;
  options.log_user_data = &s;
  options.log_destroy = on_destroy;
  usher_context_new(&options, &s.context);
  s.given++;
  s.given += usher_context_add_observer(s.context, on_event, &s, on_destroy, NULL) == USHER_OK;
  ssp.license_url = enforced_url();
  ssp.ssm_url = ssm_url();
  ssp.certificate_url = certificate_url();
  usher_ssp_delegate_new(s.context, &ssp, &s.delegate);
  s.given += usher_delegate_set_token_callback(s.delegate, on_token, &s, on_destroy) == USHER_OK;
  s.player = new_player(s.context);
  item.delegate = s.delegate;
  item.content_token = kind == TOKEN ? NULL : content_token();
  item.payload = on_payload;
  item.renewed = on_renewed;
  item.user_data = &s;
  item.destroy = on_destroy;
  s.given += usher_player_play(s.player, &item, &playback) == USHER_OK;
  /* The callback under test may free the playback before these calls. In this case the calls fail, but still run
     `destroy`. */
  usher_playback_request_license(playback, &request, on_license, &s, on_destroy);
  usher_playback_request_certificate(playback, on_certificate, &s, on_destroy);
  s.given += 2;
  __atomic_store_n(&s.playback, playback, __ATOMIC_SEQ_CST);
  finish(&s, callbacks, what);
}

int main(void) {
  int32_t callbacks;
  int kind, action;
  for (callbacks = USHER_CALLBACKS_THREADED; callbacks <= USHER_CALLBACKS_PUMPED; callbacks++)
    for (kind = 0; kind < KINDS; kind++) {
      for (action = 0; action < ACTIONS; action++) story(callbacks, (enum kind)kind, (enum action)action);
      nothing_held(kind_names[kind]);
    }
  return failed != 0;
}
