/*
 * destroy_delegates.c - each `destroy` runs exactly once: after success, after every failure, and when the host
 * replaces, clears or frees the object. This file tests the user_data of hooks, customer callbacks and resource
 * loaders; destroy_once.c tests all others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "watched.h"

static void on_hook(const usher_hook_call *call, void *user_data) {
  called(user_data);
  usher_complete_builtin(call->completion);
}
static void on_customer_license(const usher_customer_request *request, void *user_data) {
  usher_customer_license license = USHER_CUSTOMER_LICENSE_INIT;
  called(user_data);
  license.license = request->payload;
  license.license_size = request->payload_size;
  usher_complete_license(request->completion, &license);
}
static void on_call(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, called(user_data);
  usher_complete_call(completion, USHER_OK);
}
static void on_spc(const usher_spc_request *request, void *user_data) {
  called(user_data);
  usher_complete_payload(request->completion, (const uint8_t *)"SPC", 3);
}
static void on_answer(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  (void)p, (void)r, (void)tag, called(user_data);
}

static void hooks(int32_t callbacks) {
  struct watched *a, *b, *c;
  usher_context *context = new_context(callbacks), *other = new_context(callbacks);
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT, nowhere = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks set = USHER_DELEGATE_HOOKS_INIT, bad = USHER_DELEGATE_HOOKS_INIT;
  usher_customer_options customer = USHER_CUSTOMER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_delegate *delegate = NULL, *theirs = NULL;
  usher_player *player = new_player(context);
  usher_playback *playback = NULL;
  options.license_url = enforced_url();
  set.http_headers = set.content_id = on_hook;
  bad.content_id = on_hook;
  bad.scheme = "no scheme";
  at_once(a, USHER_E_INVALID_ARGUMENT, usher_common_delegate_new(context, &options, NULL, a, on_destroy, &delegate),
      "common_delegate_new without hooks");
  at_once(a, USHER_E_INVALID_ARGUMENT, usher_common_delegate_new(context, NULL, &set, a, on_destroy, &delegate),
      "common_delegate_new without options");
  at_once(a, USHER_E_INVALID_ARGUMENT, usher_common_delegate_new(context, &nowhere, &set, a, on_destroy, &delegate),
      "common_delegate_new without a URL");
  at_once(a, USHER_E_INVALID_ARGUMENT, usher_common_delegate_new(context, &options, &bad, a, on_destroy, &delegate),
      "common_delegate_new with an invalid scheme");
  at_once(a, USHER_E_INVALID_ARGUMENT, usher_common_delegate_new(context, &options, &set, a, on_destroy, NULL),
      "common_delegate_new without an out");
  at_once(a, USHER_E_INVALID_HANDLE, usher_common_delegate_new(NULL, &options, &set, a, on_destroy, &delegate),
      "common_delegate_new with a NULL context");
  bad.scheme = NULL;
  bad.struct_size = 8;
  at_once(a, USHER_E_INVALID_ARGUMENT, usher_common_delegate_new(context, &options, &bad, a, on_destroy, &delegate),
      "common_delegate_new with hooks of size 8");
  tell(delegate == NULL, "no delegate");
  usher_common_delegate_new(context, &options, &set, watch(&a), on_destroy, &delegate);
  usher_delegate_free(delegate);
  once(context, callbacks, a, 0, "the hooks of a freed delegate");
  usher_common_delegate_new(context, &options, &set, watch(&a), on_destroy, &delegate);
  at_once(b, USHER_E_INVALID_ARGUMENT, usher_delegate_set_hooks(delegate, &bad, b, on_destroy), "set_hooks of size 8");
  at_once(
      b, USHER_E_INVALID_HANDLE, usher_delegate_set_hooks(NULL, &set, b, on_destroy), "set_hooks with a NULL delegate");
  customer.license = on_customer_license;
  customer.user_data = watch(&c);
  customer.destroy = on_destroy;
  usher_customer_delegate_new(other, &customer, &theirs);
  at_once(b, USHER_E_STATE, usher_delegate_set_hooks(theirs, &set, b, on_destroy), "set_hooks of a customer delegate");
  tell(get(&a->destroyed) == 0, "the first hooks are still set");
  usher_delegate_set_hooks(delegate, &set, watch(&b), on_destroy);
  once(context, callbacks, a, 0, "replaced hooks");
  usher_delegate_set_hooks(delegate, NULL, NULL, NULL);
  once(context, callbacks, b, 0, "cleared hooks");
  usher_delegate_set_hooks(delegate, NULL, watch(&b), on_destroy);
  once(context, callbacks, b, 0, "user_data of a set_hooks call without hooks");
  usher_delegate_set_hooks(delegate, &set, watch(&a), on_destroy);
  item.delegate = delegate;
  usher_player_play(player, &item, &playback);
  usher_playback_request_content_id(playback, (const uint8_t *)"skd://one", 9, on_answer, watch(&b), on_destroy);
  once(context, callbacks, b, 1, "an answered content identifier request");
  usher_delegate_free(delegate);
  sleep_ms(20);
  tell(get(&a->destroyed) == 0 && get(&a->calls) == 1, "hooks of a freed delegate that a playback uses stay (%s)",
      mode_name(callbacks));
  usher_playback_free(playback);
  usher_player_free(player);
  once(context, callbacks, a, 1, "the hooks are destroyed with the playback");
  at_once(b, USHER_E_INVALID_HANDLE,
      usher_playback_request_content_id(NULL, (const uint8_t *)"x", 1, on_answer, b, on_destroy),
      "request_content_id with a NULL playback");
  usher_common_delegate_new(context, &options, &set, watch(&a), on_destroy, &delegate);
  usher_context_free(context);
  tell(get(&a->destroyed) == 1, "context_free has run the hooks' destroy when it returns (%s)", mode_name(callbacks));
  at_once(b, USHER_E_INVALID_HANDLE, usher_delegate_set_hooks(delegate, &set, b, on_destroy),
      "set_hooks after context_free");
  usher_context_free(other);
  tell(get(&c->destroyed) == 1, "context_free has run the customer callbacks' destroy when it returns (%s)",
      mode_name(callbacks));
}

static void customers(int32_t callbacks) {
  struct watched *w;
  usher_context *context = new_context(callbacks);
  usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_delegate *delegate = NULL;
  usher_player *player = new_player(context);
  usher_playback *playback = NULL;
  int answered = 0;
  options.destroy = on_destroy;
#define CUSTOMER(wanted, context, out, what) \
  options.user_data = watch(&w); \
  refused(w, wanted, usher_customer_delegate_new(context, &options, out), what)
  options.heartbeat = on_call;
  CUSTOMER(USHER_E_INVALID_ARGUMENT, context, &delegate, "customer_delegate_new with a heartbeat callback alone");
  options.license = on_customer_license;
  options.teardown = options.heartbeat = on_call;
  CUSTOMER(USHER_E_INVALID_ARGUMENT, context, NULL, "customer_delegate_new without an out");
  CUSTOMER(USHER_E_INVALID_HANDLE, NULL, &delegate, "customer_delegate_new with a NULL context");
  options.certificate_size = 3;
  CUSTOMER(USHER_E_INVALID_ARGUMENT, context, &delegate, "customer_delegate_new with a NULL certificate of 3 bytes");
  options.certificate = (const uint8_t *)"certificate";
  options.certificate_size = (size_t)2 << 20;
  CUSTOMER(USHER_E_INVALID_ARGUMENT, context, &delegate, "customer_delegate_new with a certificate of 2 MiB");
  options.certificate = NULL;
  options.certificate_size = 0;
  options.suspend = 9;
  CUSTOMER(USHER_E_INVALID_ARGUMENT, context, &delegate, "customer_delegate_new with an unknown suspend rule");
  options.suspend = 0;
  options.jitter_permille = 501;
  CUSTOMER(USHER_E_INVALID_ARGUMENT, context, &delegate, "customer_delegate_new with too much jitter");
  options.jitter_permille = 0;
  options.user_data = watch(&w);
  usher_customer_delegate_new(context, &options, &delegate);
  usher_delegate_free(delegate);
  once(context, callbacks, w, 0, "the callbacks of a freed delegate");
  options.user_data = watch(&w);
  usher_customer_delegate_new(context, &options, &delegate);
  item.delegate = delegate;
  usher_player_play(player, &item, &playback);
  usher_delegate_free(delegate);
  usher_playback_request_license(playback, &request, on_answer, watch(&(struct watched *){NULL}), on_destroy);
  answered = comes(context, callbacks, &w->calls, 1, 5000);
  usher_playback_free(playback);
  usher_player_free(player);
  once(context, callbacks, w, 2, "callbacks of a freed delegate that a playback uses: one licence, one teardown");
  tell(answered, "asked");
  usher_context_free(context);
  options.user_data = watch(&w);
  refused(w, USHER_E_INVALID_HANDLE, usher_customer_delegate_new(context, &options, &delegate),
      "customer_delegate_new after context_free");
}

static void loaders(int32_t callbacks) {
  struct watched *w, *v;
  usher_context *context = new_context(callbacks);
  usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
  usher_loader *loader = NULL, *second = NULL;
  usher_player *player = new_player(context);
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  options.license_url = enforced_url();
  options.destroy = on_destroy;
#define LOADER(wanted, context, out, what) \
  options.user_data = watch(&w); \
  refused(w, wanted, usher_context_add_loader(context, &options, out), what)
  LOADER(USHER_E_INVALID_ARGUMENT, context, &loader, "add_loader without an SPC callback");
  options.spc = on_spc;
  LOADER(USHER_E_INVALID_ARGUMENT, context, NULL, "add_loader without an out");
  LOADER(USHER_E_INVALID_HANDLE, NULL, &loader, "add_loader with a NULL context");
  options.certificate_file = "/no/such/file";
  LOADER(USHER_E_INVALID_ARGUMENT, context, &loader, "add_loader with a certificate file that does not exist");
  options.certificate_file = NULL;
  options.route = 9;
  LOADER(USHER_E_INVALID_ARGUMENT, context, &loader, "add_loader with an unknown route");
  options.route = 0;
  tell(loader == NULL, "no loader");
  options.user_data = watch(&w);
  usher_context_add_loader(context, &options, &loader);
  options.user_data = watch(&v);
  usher_context_add_loader(context, &options, &second);
  usher_loader_free(loader);
  once(context, callbacks, w, 0, "a freed loader; a newer one for the same scheme had replaced it");
  usher_player_play(player, &item, &playback);
  usher_playback_load_resource(playback, (const uint8_t *)"skd://one", 9, 0, on_answer, watch(&w), on_destroy, NULL);
  once(context, callbacks, w, 1, "an answered loading request");
  usher_loader_free(second);
  once(context, callbacks, v, 1, "a freed loader");
  at_once(w, USHER_E_DECLINED,
      usher_playback_load_resource(playback, (const uint8_t *)"skd://one", 9, 0, on_answer, w, on_destroy, NULL),
      "load_resource without a loader");
  at_once(w, USHER_E_INVALID_HANDLE,
      usher_playback_load_resource(NULL, (const uint8_t *)"skd://one", 9, 0, on_answer, w, on_destroy, NULL),
      "load_resource with a NULL playback");
  at_once(w, USHER_E_INVALID_ARGUMENT,
      usher_playback_load_resource(playback, NULL, 9, 0, on_answer, w, on_destroy, NULL),
      "load_resource with a NULL URL");
  options.user_data = watch(&v);
  usher_context_add_loader(context, &options, &second);
  usher_context_free(context);
  tell(get(&v->destroyed) == 1, "context_free has run the loader's destroy when it returns (%s)", mode_name(callbacks));
}

int main(void) {
  int32_t callbacks;
  for (callbacks = USHER_CALLBACKS_THREADED; callbacks <= USHER_CALLBACKS_PUMPED; callbacks++) {
    hooks(callbacks);
    customers(callbacks);
    loaders(callbacks);
    nothing_held(mode_name(callbacks));
    all_destroyed(callbacks);
  }
  tell(after_return == 0,
      "refused calls destroy their user_data on the calling thread, before they return: %d do, %d do not", at_return,
      after_return);
  return failed != 0;
}
