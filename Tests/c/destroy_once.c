/*
 * destroy_once.c - the library runs each `destroy` exactly once, after the last callback with its user_data: after
 * success, after every failure, and when the host replaces, clears, removes, closes or frees the object. The test
 * does this in threaded and pumped mode.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "watched.h"

static void on_log(int32_t level, const char *line, void *user_data) { (void)level, (void)line, called(user_data); }
static void on_event(const usher_event *event, void *user_data) { (void)event, called(user_data); }
static void on_notice(const usher_notice *notice, void *user_data) { (void)notice, called(user_data); }
static void on_license(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  (void)p, (void)r, (void)tag, called(user_data);
}
static void on_token(usher_completion completion, usher_playback *p, uint64_t tag, void *user_data) {
  (void)p, (void)tag, called(user_data);
  usher_complete_token(completion, content_token());
}
static void on_payload(usher_completion completion, usher_playback *p, const char *k, uint64_t tag, void *user_data) {
  (void)p, (void)k, (void)tag, called(user_data);
  usher_complete_payload(completion, NULL, 0);
}

static void contexts(int32_t callbacks) {
  struct watched *w;
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  options.callbacks = callbacks;
  options.log = on_log;
  options.log_destroy = on_destroy;
  options.log_user_data = watch(&w);
  // The log gets one line, which says what is wrong.
  refused_after(1, w, USHER_E_INVALID_ARGUMENT, usher_context_new(&options, NULL), "context_new without an out");
  options.clock = 99;
  options.log_user_data = watch(&w);
  refused_after(
      1, w, USHER_E_INVALID_ARGUMENT, usher_context_new(&options, &context), "context_new with an unknown clock");
  tell(context == NULL, "no context");
  options.clock = 0;
  options.user_agent = "two\nlines";
  options.log_user_data = watch(&w);
  refused_after(1, w, USHER_E_INVALID_ARGUMENT, usher_context_new(&options, &context),
      "context_new with a user agent of two lines");
  options.user_agent = NULL;
  options.log_user_data = watch(&w);
  usher_context_new(&options, &context);
  usher_context_free(context);
  once(NULL, callbacks, w, -1, "the log of a freed context");
  options.log = NULL;
  options.log_user_data = watch(&w);
  usher_context_new(&options, &context);
  usher_context_free(context);
  once(NULL, callbacks, w, 0, "log_destroy without a log");
}

static void observers(int32_t callbacks) {
  struct watched *a, *b, *c, *d, *e, *f;
  uint64_t id = 0, second = 0;
  usher_context *context = new_context(callbacks);
  usher_delegate *delegate = new_delegate(context, license_url());
  usher_player *player = new_player(context);
  usher_playback *playback;
  at_once(a, USHER_E_INVALID_ARGUMENT, usher_context_add_observer(context, NULL, a, on_destroy, NULL),
      "add_observer without a function");
  at_once(a, USHER_E_INVALID_HANDLE, usher_context_add_observer(NULL, on_event, a, on_destroy, NULL),
      "add_observer with a NULL context");
  usher_context_add_observer(context, on_event, watch(&a), on_destroy, &id);
  usher_context_add_observer(context, on_event, watch(&b), on_destroy, &second);
  usher_context_add_observer(context, on_event, watch(&c), NULL, NULL); /* without a destroy */
  usher_context_remove_observer(context, id);
  once(context, callbacks, a, 0, "a removed observer");
  playback = play(player, delegate);
  while (requests("setup") == 0) sleep_ms(5);
  usher_context_remove_observer(context, second);
  once(context, callbacks, b, -1, "an observer removed while events are queued");
  usher_playback_free(playback);
  at_once(a, USHER_E_INVALID_ARGUMENT, usher_player_add_observer(player, NULL, a, on_destroy, NULL),
      "player_add_observer without a function");
  at_once(a, USHER_E_INVALID_HANDLE, usher_player_add_observer(NULL, on_notice, a, on_destroy, NULL),
      "player_add_observer with a NULL player");
  usher_player_add_observer(player, on_notice, watch(&e), on_destroy, &id);
  usher_player_add_observer(player, on_notice, watch(&f), on_destroy, &second);
  playback = play(player, delegate);
  answers(USHER_OK, usher_context_remove_observer(context, id), "remove an observer of a player");
  once(context, callbacks, e, -1, "a removed observer of a player");
  usher_playback_free(playback);
  usher_player_free(player);
  once(context, callbacks, f, -1, "an observer of a freed player");
  answers(USHER_E_INVALID_ARGUMENT, usher_context_remove_observer(context, second), "its id is then unknown");
  usher_context_add_observer(context, on_event, watch(&d), on_destroy, &id);
  if (callbacks == USHER_CALLBACKS_THREADED) {
    usher_context_close(context, 0, NULL);
    at_once(a, USHER_E_CLOSED, usher_context_add_observer(context, on_event, a, on_destroy, NULL),
        "add_observer after close");
  }
  tell(get(&d->destroyed) == 0, "an observer's user_data stays alive while an event may still arrive");
  usher_context_free(context);
  tell(get(&d->destroyed) == 1 && get(&d->late) == 0,
      "context_free has run the observer's destroy when it returns (%s)", mode_name(callbacks));
  forget(c);
}

static void tokens(int32_t callbacks) {
  struct watched *a, *b, *c, *d;
  usher_context *context = new_context(callbacks);
  usher_delegate *delegate = new_delegate(context, license_url()), *other = new_delegate(context, license_url());
  usher_player *player = new_player(context);
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  at_once(a, USHER_E_INVALID_HANDLE, usher_delegate_set_token_callback(NULL, on_token, a, on_destroy),
      "set_token_callback with a NULL delegate");
  usher_delegate_set_token_callback(delegate, on_token, watch(&a), on_destroy);
  usher_delegate_set_token_callback(delegate, on_token, watch(&b), on_destroy);
  once(context, callbacks, a, 0, "a replaced token callback");
  usher_delegate_set_token_callback(delegate, NULL, NULL, NULL);
  once(context, callbacks, b, 0, "a cleared token callback");
  usher_delegate_set_token_callback(delegate, NULL, watch(&b), on_destroy);
  once(context, callbacks, b, 0, "user_data of a set_token_callback call without a function");
  usher_delegate_set_token_callback(delegate, on_token, watch(&c), on_destroy);
  usher_delegate_set_token_callback(other, on_token, watch(&d), on_destroy);
  usher_delegate_free(other);
  once(context, callbacks, d, 0, "the token callback of a freed delegate");
  item.delegate = delegate;
  usher_player_play(player, &item, &playback);
  usher_delegate_free(delegate);
  comes(context, callbacks, &c->calls, 1, 5000);
  tell(get(&c->destroyed) == 0 && get(&c->calls) == 1,
      "the library still calls the token callback of a freed delegate that a playback uses (%s)", mode_name(callbacks));
  usher_playback_free(playback);
  usher_player_free(player);
  once(context, callbacks, c, 1, "the token callback of that delegate, once the playback is freed");
  usher_context_free(context);
  tell(get(&c->destroyed) == 1, "context_free does not destroy it again");
}

static void playbacks(int32_t callbacks) {
  struct watched *w;
  usher_context *context = new_context(callbacks), *foreign = new_context(callbacks);
  usher_delegate *delegate = new_delegate(context, license_url()), *stranger = new_delegate(foreign, license_url());
  usher_player *player = new_player(context);
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL, *second = NULL;
  item.payload = on_payload;
  item.renewed = on_license;
  item.destroy = on_destroy;
  item.user_data = watch(&w);
  refused(w, USHER_E_NO_DELEGATE, usher_player_play(player, &item, &playback), "play without a delegate");
  item.delegate = delegate;
  item.user_data = watch(&w);
  refused(w, USHER_E_INVALID_ARGUMENT, usher_player_play(player, &item, NULL), "play without an out");
  item.content_token = "a\nb";
  item.user_data = watch(&w);
  refused(w, USHER_E_INVALID_ARGUMENT, usher_player_play(player, &item, &playback), "play with a token of two lines");
  item.content_token = "";
  item.user_data = watch(&w);
  refused(w, USHER_E_INVALID_ARGUMENT, usher_player_play(player, &item, &playback), "play with an empty token");
  item.content_token = content_token();
  item.user_data = watch(&w);
  refused(w, USHER_E_INVALID_HANDLE, usher_player_play(NULL, &item, &playback), "play with a NULL player");
  item.delegate = stranger;
  item.user_data = watch(&w);
  usher_player_play(player, &item, &playback);
  tell(get(&w->destroyed) <= 1 && !playback, "play with a delegate of another context");
  item.delegate = delegate;
  item.struct_size = 8;
  item.user_data = watch(&w);
  usher_player_play(player, &item, &playback);
  tell(get(&w->destroyed) <= 1 && !playback,
      "play with a struct_size of 8: destroyed %d times (`destroy` is not within 8 bytes)", get(&w->destroyed));
  forget(w);
  item.struct_size = sizeof item;
  item.user_data = watch(&w);
  usher_player_play(player, &item, &playback);
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  once(context, callbacks, w, -1, "the user_data of a closed playback");
  usher_playback_free(playback);
  item.user_data = watch(&w);
  usher_player_play(player, &item, &playback);
  item.user_data = NULL;
  item.destroy = NULL;
  usher_player_play(player, &item, &second);
  once(context, callbacks, w, -1, "the user_data of a playback that a zap replaced");
  usher_player_free(player);
  item.user_data = watch(&w);
  item.destroy = on_destroy;
  player = new_player(context);
  usher_player_play(player, &item, &playback);
  usher_context_free(context);
  tell(get(&w->destroyed) == 1, "context_free has run the playback's destroy when it returns (%s)",
      mode_name(callbacks));
  item.user_data = watch(&w);
  refused(w, USHER_E_INVALID_HANDLE, usher_player_play(player, &item, &playback), "play after context_free");
  usher_context_free(foreign);
}

static void requests_of(int32_t callbacks) {
  struct watched *w, *many[8];
  int index;
  usher_context *context = new_context(callbacks);
  usher_delegate *delegate = new_delegate(context, license_url()), *bare = NULL;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_player *player = new_player(context), *another = new_player(context);
  usher_playback *playback = play(player, delegate), *plain;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE), bad = request;
  at_once(w, USHER_E_INVALID_ARGUMENT, usher_playback_request_license(playback, NULL, on_license, w, on_destroy),
      "request_license with a NULL request");
  at_once(w, USHER_E_INVALID_ARGUMENT, usher_playback_request_license(playback, &request, NULL, w, on_destroy),
      "request_license without a function");
  bad.key_system = NULL;
  at_once(w, USHER_E_INVALID_ARGUMENT, usher_playback_request_license(playback, &bad, on_license, w, on_destroy),
      "request_license without a key system");
  bad.key_system = "no such";
  at_once(w, USHER_E_INVALID_ARGUMENT, usher_playback_request_license(playback, &bad, on_license, w, on_destroy),
      "request_license with an unknown key system");
  bad = request;
  bad.payload = NULL;
  at_once(w, USHER_E_INVALID_ARGUMENT, usher_playback_request_license(playback, &bad, on_license, w, on_destroy),
      "request_license without a payload");
  at_once(w, USHER_E_INVALID_HANDLE, usher_playback_request_license(NULL, &request, on_license, w, on_destroy),
      "request_license with a NULL playback");
  at_once(w, USHER_E_INVALID_ARGUMENT, usher_playback_request_certificate(playback, NULL, w, on_destroy),
      "request_certificate without a function");
  at_once(w, USHER_E_INVALID_HANDLE, usher_playback_request_certificate(NULL, on_license, w, on_destroy),
      "request_certificate with a NULL playback");
  ssp.license_url = license_url();
  usher_ssp_delegate_new(context, &ssp, &bare);
  plain = play(another, bare);
  at_once(w, USHER_E_STATE, usher_playback_request_certificate(plain, on_license, w, on_destroy),
      "request_certificate without a certificate URL");
  usher_playback_free(plain);
  usher_playback_request_license(playback, &request, on_license, watch(&w), on_destroy);
  once(context, callbacks, w, 1, "an answered licence request");
  usher_playback_request_certificate(playback, on_license, watch(&w), on_destroy);
  once(context, callbacks, w, 1, "an answered certificate request");
  fault("{\"route\":\"license\",\"fault\":{\"kind\":\"stall\"},\"times\":8}");
  for (index = 0; index < 8; index++)
    usher_playback_request_license(playback, &request, on_license, watch(&many[index]), on_destroy);
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  comes(context, callbacks, &many[0]->calls, 1, 5000);
  release_held(); /* the library keeps the user_data of a request in flight until the reply arrives */
  for (index = 0; index < 8; index++)
    once(context, callbacks, many[index], 1,
        index ? "another licence request when its playback is closed"
              : "a licence request that was sent when its playback is closed");
  at_once(w, USHER_E_CLOSED, usher_playback_request_license(playback, &request, on_license, w, on_destroy),
      "request_license of a closed playback");
  at_once(w, USHER_E_CLOSED, usher_playback_request_certificate(playback, on_license, w, on_destroy),
      "request_certificate of a closed playback");
  usher_playback_free(playback);
  playback = play(player, delegate);
  for (index = 0; index < 8; index++)
    usher_playback_request_license(playback, &request, on_license, watch(&many[index]), on_destroy);
  usher_context_free(context);
  for (index = 0; index < 8; index++)
    once(NULL, callbacks, many[index], 1, "a licence request that was sent when its context is freed");
}

int main(void) {
  int32_t callbacks;
  for (callbacks = USHER_CALLBACKS_THREADED; callbacks <= USHER_CALLBACKS_PUMPED; callbacks++) {
    contexts(callbacks);
    observers(callbacks);
    tokens(callbacks);
    playbacks(callbacks);
    requests_of(callbacks);
    nothing_held(mode_name(callbacks));
    all_destroyed(callbacks);
  }
  tell(after_return == 0,
      "refused calls destroy their user_data on the calling thread, before they return: %d do, %d do not", at_return,
      after_return);
  return failed != 0;
}
