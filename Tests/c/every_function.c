/*
 * every_function.c - calls all functions that one playback with an SSP delegate can use. every_delegate.c tests the
 * other delegates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plain.h"
#include "support.h"

static int licences, certificates, events, gone;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (usher_event_name(event->type)[0]) add(&events, 1);
}
static void on_license(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)user_data;
  if (response->error.status == USHER_OK && response->data_size > 0 && tag == 7) add(&licences, 1);
}
static void on_certificate(
    usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  if (response->error.status == USHER_OK && response->data_size > 0) add(&certificates, 1);
}
static void on_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  usher_complete_token(completion, content_token());
}
static void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data, (void)key_system;
  usher_complete_payload(completion, (const uint8_t *)"fresh", 5);
}

static void story(void) {
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_delegate *delegate = new_delegate(context, license_url());
  usher_player *player = new_player(context);
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  usher_response *response = NULL, *certificate = NULL;
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  usher_explanation words;
  usher_error error;
  usher_pending pending = USHER_PENDING_INIT;
  uint64_t id = 0;
  int32_t state = -1;
  uint32_t open_playbacks = 9, ran = 9;
  int fd = -1;

  tell(strcmp(usher_version(), "0") > 0, "usher_version: %s", usher_version());
  tell(strcmp(usher_status_name(USHER_E_LIMIT), "USHER_E_LIMIT") == 0, "usher_status_name");
  tell(usher_status_message(USHER_E_LIMIT)[0] != 0, "usher_status_message");
  tell(usher_origin_name(USHER_ORIGIN_SSM)[0] != 0 && strcmp(usher_origin_name(99), "unknown") == 0,
      "usher_origin_name");
  tell(usher_operation_name(USHER_OPERATION_SETUP)[0] != 0 && strcmp(usher_operation_name(-1), "unknown") == 0,
      "usher_operation_name");
  memset(&error, 0, sizeof error);
  error.origin = USHER_ORIGIN_SSM, error.status = USHER_E_LIMIT, error.service_code = 1007;
  answers(USHER_OK, usher_error_explain(&error, &words), "usher_error_explain");
  tell(words.known == 1 && words.summary[0] && words.advice[0], "1007 of the session manager is explained");
  answers(USHER_E_INVALID_ARGUMENT, usher_error_explain(&error, NULL), "usher_error_explain without an out");

  answers(
      USHER_OK, usher_context_add_observer(context, on_event, &gone, count_destroy, &id), "usher_context_add_observer");
  answers(USHER_OK, usher_context_set_delegate(context, delegate), "usher_context_set_delegate");
  answers(USHER_OK, usher_delegate_set_token_callback(delegate, on_token, &gone, count_destroy),
      "usher_delegate_set_token_callback");
  item.tag = 7;
  item.payload = on_payload;
  item.content_id = (const uint8_t *)"content-1";
  item.content_id_size = 9;
  item.user_data = &gone;
  item.destroy = count_destroy;
  answers(USHER_OK, usher_player_play(player, &item, &playback), "usher_player_play, its token from the callback");
  answers(USHER_OK, usher_playback_wait_session(playback, 0, NULL), "usher_playback_wait_session");
  answers(USHER_OK, usher_playback_session_state(playback, &state), "usher_playback_session_state");
  tell(state == USHER_SESSION_ACTIVE, "the session is active");
  tell(held() == 1, "one session is held");
  answers(USHER_OK, usher_playback_get_license(playback, &request, &response), "usher_playback_get_license");
  answers(USHER_OK, usher_response_get(response, &info), "usher_response_get");
  tell(info.data_size == 36 && memcmp(info.data, "WVL1", 4) == 0, "the licence's bytes");
  answers(USHER_OK, usher_playback_get_certificate(playback, 0, &certificate), "usher_playback_get_certificate");
  answers(USHER_OK, usher_playback_request_certificate(playback, on_certificate, &gone, count_destroy),
      "usher_playback_request_certificate");
  answers(USHER_OK, usher_playback_request_license(playback, &request, on_license, &gone, count_destroy),
      "usher_playback_request_license");
  tell(reaches(&certificates, 1, 5000), "a certificate arrives");
  tell(reaches(&licences, 1, 5000), "a licence arrives");
  answers(USHER_OK, usher_context_settle(context, 0, 0, 5000), "usher_context_settle");
  answers(USHER_OK, usher_context_pending(context, &pending), "usher_context_pending");
  answers(USHER_E_STATE, usher_context_advance(context, 1, 0), "usher_context_advance on the system clock");
  answers(USHER_E_STATE, usher_context_jump(context, 1), "usher_context_jump on the system clock");
  answers(USHER_E_STATE, usher_context_pump(context, &ran), "usher_context_pump in threaded mode");
  answers(USHER_E_STATE, usher_context_pump_fd(context, &fd), "usher_context_pump_fd in threaded mode");
  tell(fd == -1, "usher_context_pump_fd sets no descriptor");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_token(12345, "x"), "usher_complete_token of an unknown id");
  answers(USHER_E_INVALID_COMPLETION, usher_complete_payload(12345, (const uint8_t *)"x", 1),
      "usher_complete_payload of an unknown id");
  answers(USHER_OK, usher_playback_close(playback, USHER_CLOSE_DEFAULT), "usher_playback_close");
  answers(USHER_OK, usher_playback_wait_closed(playback, 5000), "usher_playback_wait_closed");
  tell(held() == 0, "no session is held when it is closed");
  answers(USHER_OK, usher_player_stop(player, USHER_CLOSE_DEFAULT), "usher_player_stop");
  answers(USHER_OK, usher_context_remove_observer(context, id), "usher_context_remove_observer");
  answers(USHER_E_INVALID_ARGUMENT, usher_context_remove_observer(context, id), "an observer removed twice");
  answers(USHER_OK, usher_response_free(response), "usher_response_free");
  answers(USHER_OK, usher_response_free(certificate), "usher_response_free of the certificate");
  answers(USHER_OK, usher_playback_free(playback), "usher_playback_free");
  answers(USHER_OK, usher_player_free(player), "usher_player_free");
  answers(USHER_OK, usher_delegate_free(delegate), "usher_delegate_free");
  answers(USHER_OK, usher_context_begin_close(context, 0), "usher_context_begin_close");
  answers(USHER_OK, usher_context_close(context, 0, &open_playbacks), "usher_context_close");
  tell(open_playbacks == 0, "no playback stays open");
  answers(USHER_OK, usher_context_free(context), "usher_context_free");
  tell(get(&gone) == 5, "each of the five destroys ran once (%d)", get(&gone));
  tell(get(&events) >= 5, "events arrived (%d)", get(&events));
  nothing_held("story");
}

static char refused[200];
static pthread_t refused_on;
static void on_refusal(int32_t status, const char *text, void *user_data) {
  refused_on = pthread_self();
  snprintf(refused, sizeof refused, "%s: %s", usher_status_name(status), text);
  tell(user_data == refused, "the user data of the refusal");
}

/* The library calls the refusal callback on the calling thread, before the function returns. */
static void tell_refusals(void) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_default_options wrong = USHER_DEFAULT_OPTIONS_INIT;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  options.refusal = on_refusal;
  options.refusal_user_data = refused;
  answers(USHER_OK, usher_context_new(&options, &context), "a context with a refusal callback");
  wrong.license_url = "foo";
  answers(USHER_E_INVALID_ARGUMENT, usher_default_delegate_new(context, &wrong, &delegate), "a licence URL of foo");
  tell(strcmp(refused, "USHER_E_INVALID_ARGUMENT: license_url: not an absolute http or https URL") == 0,
      "the refusal says why: %s", refused);
  tell(pthread_equal(refused_on, pthread_self()), "the refusal callback runs on the calling thread");
  answers(USHER_OK, usher_context_free(context), "the context is freed");
  options.client_key_file = "/nonexistent";
  answers(USHER_E_INVALID_ARGUMENT, usher_context_new(&options, &context), "a key without a certificate");
  tell(strstr(refused, "client_certificate_file: missing") != NULL, "a refused context says why: %s", refused);
}

/* Calls every function that no other C test calls, with simple arguments and valid handles; each call must succeed. If
   a function needs other arguments, call it in another C test; then it is not called here. Tests/c/runner.py writes
   plain_calls.h, which has the lines of functions.h for these functions. */
static void call_the_rest(void) {
  usher_context *live_usher_context = new_context(USHER_CALLBACKS_THREADED);
  usher_delegate *live_usher_delegate = new_delegate(live_usher_context, license_url());
  usher_player *live_usher_player = new_player(live_usher_context);
  usher_playback *live_usher_playback = play(live_usher_player, live_usher_delegate);
  usher_response *live_usher_response = NULL;
  usher_loader *live_usher_loader = NULL;
  struct plain arguments = plain_defaults, *plain = &arguments;
  void *made = NULL;
  static int destroyed;
  plain->of_usher_license_request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  plain->of_usher_loader_options.license_url = license_url();
  plain->of_usher_loader_options.spc = plain_usher_spc_fn;
  usher_playback_get_license(live_usher_playback, &plain->of_usher_license_request, &live_usher_response);
  usher_context_add_loader(live_usher_context, &plain->of_usher_loader_options, &live_usher_loader);
#define ARG_HANDLE(type) live_##type
#define ARG_OUT_HANDLE(type) ((type **)(void *)&made)
#define ARG_USER_DATA ((void *)&destroyed)
#define ARG_DESTROY count_destroy
#define CALL_STATUS(name, arguments) answers(USHER_OK, name arguments, #name " with plain arguments")
#define CALL_POINTER(name, arguments) tell(name arguments != NULL, #name " with plain arguments")
#define FUNCTION(name, result, takes, arguments) CALL_##result(name, arguments);
#include "plain_calls.h"
#undef FUNCTION
  (void)made, (void)destroyed;
  usher_response_free(live_usher_response);
  usher_context_free(live_usher_context);
  nothing_held("the rest");
}

int main(void) {
  story();
  call_the_rest();
  tell_refusals();
  return failed != 0;
}
