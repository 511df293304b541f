/*
 * stress_steps.h - the steps that the threads of stress.c run; together they call every function of the headers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_STRESS_STEPS_H
#define USHER_TEST_STRESS_STEPS_H
#include "film.h"
#include "stress.h"

/* ---- functions that take no handle ------------------------------------------------------------------------------- */

static void say_words(struct dice *d) {
  usher_explanation words;
  usher_legacy_codes codes;
  usher_error error;
  memset(&error, 0, sizeof error);
  error.status = -(int32_t)roll(d, 34), error.origin = (int32_t)roll(d, 6), error.operation = (int32_t)roll(d, 9),
  error.service_code = (int32_t)roll(d, 6000);
  TELLS(usher_version, ()), TELLS(usher_get_api, (USHER_VERSION_MAJOR));
  TELLS(usher_status_name, ((int32_t)roll(d, 40) - 35)), TELLS(usher_status_message, ((int32_t)roll(d, 40) - 35));
  TELLS(usher_origin_name, ((int32_t)roll(d, 6))), TELLS(usher_operation_name, ((int32_t)roll(d, 9))),
      TELLS(usher_event_name, ((int32_t)roll(d, 16)));
  error.http_status = (int32_t)roll(d, 600), error.tls_fault = (int32_t)roll(d, 8);
  CALL(usher_error_explain, (&error, &words));
  CALL(usher_error_legacy_codes, (&error, &codes));
}
static int64_t read_film(uint64_t offset, uint8_t *buffer, size_t size, void *user_data) {
  size_t count = 0;
  (void)user_data;
  for (; count < size && offset + count < sizeof film; count++) buffer[count] = film[offset + count];
  return (int64_t)count;
}
static void read_contents(struct dice *d) {
  static const uint8_t pssh[] = {0, 0, 0, 52, 'p', 's', 's', 'h', 1, 0, 0, 0, 0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d,
      0x02, 0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b, 0, 0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
      14, 15, 0, 0, 0, 0};
  static const uint8_t tenc[] = {
      0, 0, 0, 32, 't', 'e', 'n', 'c', 0, 0, 0, 0, 0, 0, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  static const char keys[] =
      "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://one\",KEYFORMAT=\"com.apple.streamingkeydelivery\"\n";
  static const char mpd[] = "<ContentProtection schemeIdUri=\"urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b\"/>";
  uint8_t buffer[256];
  size_t count, size = 1 + roll(d, sizeof buffer), ids = 0, key_count = 1;
  usher_clearkey_key key;
  CALL(usher_read_pssh, (pssh, sizeof pssh - roll(d, 2), on_protection, &ids, &count));
  CALL(usher_read_tenc, (tenc, sizeof tenc - roll(d, 2), on_protection, &ids, &count));
  CALL(usher_read_hls_keys, ((const uint8_t *)keys, strlen(keys), on_protection, &ids, &count));
  CALL(usher_read_dash_protection, ((const uint8_t *)mpd, strlen(mpd), on_protection, &ids, &count));
  CALL(usher_rewrite_hls_keys, ((const uint8_t *)keys, strlen(keys), NULL, "http://x/", buffer, &size));
  CALL(usher_read_mp4, (read_film, on_protection, &ids, NULL, 0));
  CALL(usher_clearkey_keys, ((const uint8_t *)film_license, strlen(film_license), &key, &key_count, NULL, 0));
  size = 1 + roll(d, sizeof buffer);
  CALL(usher_content_id, ((const uint8_t *)"skd://host/x", 12, (int32_t)roll(d, 8), buffer, &size));
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

static void make_context(struct dice *d, uint32_t slot) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  void *none = NULL;
  options.callbacks = roll(d, 3) == 0 ? USHER_CALLBACKS_PUMPED : USHER_CALLBACKS_THREADED;
  options.clock = slot == MANUAL ? USHER_CLOCK_MANUAL : USHER_CLOCK_SYSTEM;
  options.callback_threads_max = 1 + roll(d, 8);
  options.log_level = USHER_LOG_TRACE;
  options.log = on_log;
  options.log_user_data = user(&log_sink);
  options.log_destroy = on_destroy;
  CALL(usher_context_new, (&options, &context));
  if (!__atomic_compare_exchange_n(&contexts[slot], &none, (void *)context, 0, __ATOMIC_RELAXED,
          __ATOMIC_RELAXED)) /* another thread has filled the slot */
    CALL(usher_context_free, (context));
}
static void renew_context(struct dice *d, uint32_t slot) {
  CALL(usher_context_free, ((usher_context *)__atomic_exchange_n(&contexts[slot], NULL, __ATOMIC_RELAXED)));
  make_context(d, slot);
}
static void replace_context(struct dice *d) {
  uint32_t slot = roll(d, CONTEXTS);
  if (d->thread == THREADS) { /* in a callback the step may free its own context; the slot then keeps a stale handle */
    CALL(usher_context_free, ((usher_context *)look(&contexts[slot])));
  } else {
    renew_context(d, slot);
  }
}
static void close_context(struct dice *d) {
  uint32_t open;
  int kind = d->first ? 2 : (int)roll(d, 2);
  if (kind != 0) CALL(usher_context_begin_close, (CONTEXT, 1 + roll(d, 200)));
  if (kind != 1) CALL(usher_context_close, (CONTEXT, 1 + roll(d, 200), &open));
}
static void pump(struct dice *d) {
  uint32_t ran;
  int fd;
  CALL(usher_context_pump, (CONTEXT, &ran)), CALL(usher_context_pump, (CONTEXT, &ran)),
      CALL(usher_context_pump, (CONTEXT, &ran));
  CALL(usher_context_pump_fd, (CONTEXT, &fd));
}
static void observe(struct dice *d) {
  uint64_t id = 0;
  uint32_t slot;
  if (roll(d, 2) || d->first) CALL(usher_context_add_observer, (CONTEXT, on_event, user(&observer), on_destroy, &id));
  if (id == 0 || d->first) CALL(usher_player_add_observer, (PLAYER, on_notice, user(&observer), on_destroy, &id));
  id = __atomic_exchange_n(&observers[roll(d, SLOTS)], id, __ATOMIC_RELAXED);
  for (slot = 0; slot < CONTEXTS; slot++)
    CALL(usher_context_remove_observer,
        ((usher_context *)look(&contexts[slot]), id)); /* otherwise the number of observers would grow */
}
static void sleep_and_wake(struct dice *d) {
  if (roll(d, 2)) CALL(usher_context_suspend, (CONTEXT));
  if (roll(d, 2) || d->first) CALL(usher_context_resume, (CONTEXT)), CALL(usher_context_network_changed, (CONTEXT));
  if (roll(d, 2) || d->first) CALL(usher_playback_suspend, (PLAYBACK));
  CALL(usher_playback_resume, (PLAYBACK));
  if (d->first) CALL(usher_context_suspend, (CONTEXT));
}
static void move_time(struct dice *d) {
  usher_pending pending = USHER_PENDING_INIT;
  usher_metrics metrics = USHER_METRICS_INIT;
  uint8_t page[16384];
  size_t size = roll(d, 2) || d->first ? sizeof page : 0;
  CALL(usher_context_advance, (CONTEXT, roll(d, 500), roll(d, 2) * 5));
  CALL(usher_context_jump, (CONTEXT, roll(d, 500)));
  CALL(usher_context_settle, (CONTEXT, roll(d, 3), roll(d, 3), 1 + roll(d, 10)));
  CALL(usher_context_pending, (CONTEXT, &pending));
  CALL(usher_context_metrics, (CONTEXT, &metrics));
  CALL(usher_metrics_text, (&metrics, NULL, page, &size));
}

/* ---- delegates --------------------------------------------------------------------------------------------------- */

static usher_delegate_hooks some_hooks(struct dice *d) {
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  hooks.content_id = roll(d, 2) ? on_hook : NULL;
  hooks.certificate = roll(d, 2) ? on_hook : NULL;
  /* This hook is rare, because most licence requests need the built-in headers to succeed. */
  hooks.http_headers = roll(d, 3) ? NULL : on_hook;
  hooks.license_url = roll(d, 3) ? NULL : on_hook;
  hooks.license_body = roll(d, 2) ? on_hook : NULL;
  hooks.license = roll(d, 2) ? on_hook : NULL;
  return hooks;
}
/* Makes a delegate with sessions at the head-end. This delegate uses one key system only: if the library read a
   reply as that of another key system, it would miss the newest token. */
static void make_session_delegate(struct dice *d) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_ssp_v2_options v2 = USHER_SSP_V2_OPTIONS_INIT;
  usher_token_map_options map = USHER_TOKEN_MAP_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  uint32_t slot = roll(d, CONTEXTS + 1), kind = roll(d, 3);
  usher_context *context = (usher_context *)look(slot < CONTEXTS ? &contexts[slot] : &players[0]);
  ssp.license_url = enforced_url();
  ssp.ssm_url = roll(d, 8) && slot != MANUAL ? ssm_url() : NULL;
  ssp.certificate_url = roll(d, 4) ? certificate_url() : NULL;
  ssp.sync_setup_teardown = roll(d, 12) == 0;
  ssp.token_timeout_ms = ssp.payload_timeout_ms = ssp.hook_timeout_ms = ssp.token_wait_ms = 1 + roll(d, 200);
  ssp.suspend = roll(d, 4) ? USHER_SUSPEND_KEEP : USHER_SUSPEND_PAUSE;
  map.tokens_max = roll(d, 4);
  map.time_to_live_ms = roll(d, 2) * 500;
  if (kind == 0 || d->first)
    CALL(usher_multi_instance_delegate_new, (context, &ssp, &map, &delegate)), put(d, delegates, delegate);
  if (kind == 1 || d->first) CALL(usher_ssp_delegate_new, (context, &ssp, &delegate)), put(d, delegates, delegate);
  if ((kind == 2 && slot != MANUAL) || d->first) {
    v2.ssp = &ssp;
    v2.teardown_on_close = 1; /* without this option SSP V2 would leave the session to expire */
    ssp.license_url = slot == MANUAL ? enforced_url() : v2_enforced_url();
    CALL(usher_ssp_v2_delegate_new, (context, &v2, &delegate)), put(d, delegates, delegate);
  }
}
static void make_plain_delegate(struct dice *d) {
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  usher_customer_options own = USHER_CUSTOMER_OPTIONS_INIT;
  usher_delegate_hooks hooks = some_hooks(d);
  usher_delegate *delegate = NULL;
  uint32_t kind = roll(d, 3);
  options.license_url = enforced_url();
  options.certificate_url = roll(d, 4) ? certificate_url() : NULL;
  options.hook_timeout_ms = 1 + roll(d, 200);
  own.license = on_customer_license;
  own.heartbeat = roll(d, 4) ? on_customer_call : NULL;
  own.teardown = roll(d, 4) ? on_customer_call : NULL;
  own.license_timeout_ms = own.heartbeat_timeout_ms = own.teardown_timeout_ms = own.payload_timeout_ms =
      1 + roll(d, 200);
  own.destroy = on_destroy;
  if (kind == 0 || d->first)
    CALL(usher_default_delegate_new, (CONTEXT, &options, &delegate)), put(d, delegates, delegate);
  if (kind == 1 || d->first)
    CALL(usher_common_delegate_new, (CONTEXT, &options, &hooks, user(&common), on_destroy, &delegate)),
        put(d, delegates, delegate);
  if (kind != 2 && !d->first) return;
  own.user_data = user(&customer);
  CALL(usher_customer_delegate_new, (CONTEXT, &own, &delegate)), put(d, delegates, delegate);
}
static void set_delegate(struct dice *d) { CALL(usher_context_set_delegate, (CONTEXT, DELEGATE)); }
static void change_delegate(struct dice *d) {
  usher_delegate_hooks hooks = some_hooks(d);
  usher_customer_callbacks own = USHER_CUSTOMER_CALLBACKS_INIT;
  CALL(usher_delegate_set_token_callback, (DELEGATE, roll(d, 4) ? on_token : NULL, user(&token), on_destroy));
  CALL(usher_delegate_set_hooks, (DELEGATE, roll(d, 4) ? NULL : &hooks, user(&hooks_of), on_destroy));
  CALL(usher_delegate_set_http_header, (DELEGATE, "X-Stress", roll(d, 4) ? "yes" : NULL));
  own.license = on_customer_license;
  own.heartbeat = roll(d, 4) ? on_customer_call : NULL;
  own.teardown = roll(d, 4) ? on_customer_call : NULL;
  CALL(usher_delegate_set_customer_callbacks,
      (DELEGATE, roll(d, 8) ? &own : NULL, user(&customer_callbacks), on_destroy));
}
static const uint8_t *content(struct dice *d) { return (const uint8_t *)"one\0two\0ten" + 4 * roll(d, 3); }
static void use_token_map(struct dice *d) {
  usher_delegate *delegate = DELEGATE;
  usher_response *response = NULL;
  size_t count;
  CALL(usher_delegate_set_stream_token, (delegate, content(d), 3, content_token()));
  CALL(usher_delegate_get_stream_token, (delegate, content(d), 3, roll(d, 4) ? &response : NULL));
  put(d, responses, response);
  CALL(usher_delegate_count_stream_tokens, (delegate, &count));
  if (roll(d, 4) == 0 || d->first) CALL(usher_delegate_remove_stream_token, (delegate, content(d), 3));
  if (roll(d, 8) == 0 || d->first) CALL(usher_delegate_clear_stream_tokens, (delegate));
}
static void free_delegate(struct dice *d) { CALL(usher_delegate_free, (DELEGATE)); }

/* ---- questions --------------------------------------------------------------------------------------------------- */

static void answer_something(struct dice *d) {
  uint32_t kind, wanted = roll(d, QUESTIONS);
  usher_response *response = NULL;
  for (kind = 0; kind < QUESTIONS; kind++)
    if (kind == wanted || d->first) answer(d, (enum question)kind, question(d, (enum question)kind));
  if (d->first) {
    CALL(usher_complete_hook, (question(d, BYTES), (const uint8_t *)"made", 4)),
        CALL(usher_complete_headers, (question(d, HEADERS), ""));
    CALL(usher_complete_builtin, (question(d, BYTES)));
    CALL(usher_complete_server, (question(d, SERVER), enforced_url(), NULL));
    CALL(usher_complete_entitlement, (question(d, SERVER), NULL));
  }
  if (roll(d, 4) == 0 || d->first) CALL(usher_hook_builtin, (question(d, BYTES), &response));
  put(d, responses, response);
}

/* ---- loaders ----------------------------------------------------------------------------------------------------- */

static void add_loader(struct dice *d) {
  static const char scheme[] = "skd\0one";
  usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
  usher_loader *loader = NULL;
  char header[8192];
  snprintf(header, sizeof header, "nv-authorizations: %s", free_token());
  options.scheme = scheme + 4 * (roll(d, 4) == 0);
  options.content_id_rule = USHER_CONTENT_ID_AFTER_SCHEME;
  options.license_url = enforced_url();
  options.certificate_url = roll(d, 2) ? certificate_url() : NULL;
  options.extra_headers = header;
  options.spc = on_spc;
  options.server = roll(d, 4) == 0 ? on_server : NULL;
  options.spc_timeout_ms = options.server_timeout_ms = 1 + roll(d, 200);
  options.user_data = user(&loader_of);
  options.destroy = on_destroy;
  CALL(usher_context_add_loader, (CONTEXT, &options, &loader));
  put(d, loaders, loader);
}
static void free_loader(struct dice *d) { CALL(usher_loader_free, (LOADER)); }
static void load_something(struct dice *d) {
  usher_playback *playback = PLAYBACK;
  usher_response *response = NULL;
  uint64_t id = 0;
  CALL(usher_playback_load_resource,
      (playback, (const uint8_t *)"skd://one", 9, roll(d, 300), on_answer, user(&load), on_destroy, &id));
  if (roll(d, 2)) id = __atomic_exchange_n(&loads[roll(d, SLOTS)], id, __ATOMIC_RELAXED); /* a load of another thread */
  if (roll(d, 2) || d->first) CALL(usher_playback_cancel_load, (playback, id));
  if (roll(d, 4) == 0 || d->first)
    CALL(usher_playback_get_resource, (PLAYBACK, (const uint8_t *)"skd://one", 9, 1 + roll(d, 50), &response));
  put(d, responses, response);
}

/* ---- players and playbacks --------------------------------------------------------------------------------------- */

static void make_player(struct dice *d) {
  usher_player *player = NULL;
  CALL(usher_player_new, (CONTEXT, &player));
  put(d, players, player);
}
static void play_something(struct dice *d) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  item.delegate = roll(d, 4) ? DELEGATE : NULL;
  item.content_token = roll(d, 3) ? content_token() : NULL;
  if (roll(d, 2)) item.content_id = content(d), item.content_id_size = 3;
  item.payload = roll(d, 2) ? on_payload : NULL;
  item.renewed = roll(d, 2) ? on_answer : NULL;
  item.clear = roll(d, 20) == 0;
  item.tag = roll(d, 100);
  item.user_data = user(&item_of);
  item.destroy = on_destroy;
  CALL(usher_player_play, (PLAYER, &item, &playback));
  put(d, playbacks, playback);
}
static void stop_player(struct dice *d) { CALL(usher_player_stop, (PLAYER, (int32_t)roll(d, 2))); }
static void free_player(struct dice *d) { CALL(usher_player_free, (PLAYER)); }
static void close_playback(struct dice *d) { CALL(usher_playback_close, (PLAYBACK, (int32_t)roll(d, 2))); }
static void free_playback(struct dice *d) { CALL(usher_playback_free, (PLAYBACK)); }
static void late_token(struct dice *d) { CALL(usher_playback_set_content_token, (PLAYBACK, content_token())); }
static void wait_for_it(struct dice *d) {
  int32_t state;
  CALL(usher_playback_wait_session, (PLAYBACK, 1 + roll(d, 20), NULL));
  CALL(usher_playback_session_state, (PLAYBACK, &state));
  if (roll(d, 2) || d->first) CALL(usher_playback_wait_closed, (PLAYBACK, 1 + roll(d, 20)));
}
static usher_license_request license_request(struct dice *d) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  request.timeout_ms = 1 + roll(d, 300);
  if (roll(d, 2)) request.asset_id = content(d), request.asset_id_size = 3;
  return request;
}
static void want_license(struct dice *d) {
  usher_license_request request = license_request(d);
  CALL(usher_playback_request_license, (PLAYBACK, &request, on_answer, user(&license), on_destroy));
}
static void wait_for_license(struct dice *d) {
  usher_license_request request = license_request(d);
  usher_response *response = NULL;
  CALL(usher_playback_get_license, (PLAYBACK, &request, roll(d, 4) ? &response : NULL));
  put(d, responses, response);
}
static void want_certificate(struct dice *d) {
  CALL(usher_playback_request_certificate, (PLAYBACK, on_answer, user(&certificate), on_destroy));
}
static void want_content_id(struct dice *d) {
  CALL(usher_playback_request_content_id,
      (PLAYBACK, (const uint8_t *)"skd://one", 9, on_answer, user(&identifier), on_destroy));
}
static void wait_for_the_rest(struct dice *d) {
  usher_response *response = NULL;
  CALL(usher_playback_get_certificate, (PLAYBACK, 1 + roll(d, 50), &response));
  put(d, responses, response);
  response = NULL;
  CALL(usher_playback_get_content_id, (PLAYBACK, (const uint8_t *)"skd://one", 9, 1 + roll(d, 50), &response));
  put(d, responses, response);
}
static void use_response(struct dice *d) {
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  /* Do not read what `info` points to: another thread may free the response at any time. */
  CALL(usher_response_get, (RESPONSE, &info));
  CALL(usher_response_free, (RESPONSE));
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

/* Calls the functions that no step above calls, with simple arguments. Tests/c/runner.py writes plain_steps.h, which
   has the lines of functions.h for these functions. */
#define SLOTS_OF_usher_context contexts, CONTEXTS
#define SLOTS_OF_usher_delegate delegates, SLOTS
#define SLOTS_OF_usher_player players, SLOTS
#define SLOTS_OF_usher_playback playbacks, SLOTS
#define SLOTS_OF_usher_response responses, SLOTS
#define SLOTS_OF_usher_loader loaders, SLOTS
static __attribute__((unused)) void *volatile *first_slot(void *volatile *slots, uint32_t count) {
  (void)count;
  return slots;
}
static __attribute__((unused)) void *keep_made(struct dice *d, void *volatile *into, void *made) {
  /* The new context was not stored, because all slots for contexts are in use. So free it. */
  if (made && into == contexts) usher_context_free((usher_context *)made);
  else if (made) put(d, into, made);
  return NULL;
}
static void take_plain_steps(struct dice *d) {
  struct plain arguments = plain_defaults, *plain = &arguments;
  void *made = NULL, *volatile *into = NULL;
  (void)d, (void)plain, (void)made, (void)into;
#define ARG_HANDLE(type) ((type *)pick(d, SLOTS_OF_##type))
#define ARG_OUT_HANDLE(type) (into = first_slot(SLOTS_OF_##type), (type **)(void *)&made)
#define ARG_USER_DATA ((void *)&plain_of)
#define ARG_DESTROY (user(&plain_of), on_destroy)
#define PLAIN_STATUS CALL
#define PLAIN_POINTER TELLS
#define FUNCTION(name, result, takes, arguments) \
  if (roll(d, 2) || d->first) PLAIN_##result(name, arguments), made = keep_made(d, into, made);
#include "plain_steps.h"
#undef FUNCTION
}

/* ---- which step -------------------------------------------------------------------------------------------------- */

/* `weight`: how often a thread chooses the step. The test has two phases, storm and calm. In the storm the threads call
   without a pause, and a chosen step runs with the probability 1/`storm`. In the calm phase each thread rests for 1 ms
   after each step, so that the library's threads and the head-end get time also on a slow machine; and all threads
   together run a step at most once in `calm_ms`. So objects live for some seconds, however fast the machine is. Each
   calm phase begins with new contexts, because the storm closes contexts. */
static const struct step {
  void (*take)(struct dice *);
  uint32_t weight, storm, calm_ms;
} steps[] = {
    {say_words, 1, 1, 0},
    {read_contents, 1, 1, 0},
    {replace_context, 1, 30, 8000},
    {close_context, 1, 60, 16000},
    {pump, 2, 1, 0},
    {observe, 2, 1, 0},
    {sleep_and_wake, 1, 1, 200},
    {move_time, 1, 1, 0},
    {make_session_delegate, 3, 1, 20},
    {make_plain_delegate, 1, 1, 30},
    {set_delegate, 1, 1, 0},
    {change_delegate, 1, 1, 50},
    {use_token_map, 3, 1, 0},
    {free_delegate, 1, 1, 500},
    {answer_something, 12, 1, 0},
    {add_loader, 1, 1, 50},
    {free_loader, 1, 2, 500},
    {load_something, 1, 1, 0},
    {make_player, 2, 1, 20},
    {play_something, 5, 1, 10},
    {stop_player, 1, 1, 500},
    {free_player, 1, 1, 500},
    {close_playback, 1, 1, 500},
    {free_playback, 1, 1, 500},
    {late_token, 1, 1, 0},
    {wait_for_it, 1, 1, 0},
    {want_license, 2, 1, 0},
    {wait_for_license, 2, 1, 0},
    {want_certificate, 1, 1, 0},
    {want_content_id, 1, 1, 0},
    {wait_for_the_rest, 1, 1, 0},
    {use_response, 4, 1, 0},
    {take_plain_steps, 1, 1, 500},
};
#define STEPS (sizeof steps / sizeof *steps)

/* In the calm phase: @return 1 if no thread has run this step in the last `calm_ms`. */
static int is_due(const struct step *step) {
  static int64_t last_ms[STEPS];
  int64_t now_ms = (int64_t)(now_s() * 1e3), *last = &last_ms[step - steps],
          before = __atomic_load_n(last, __ATOMIC_RELAXED);
  return now_ms - before >= (int64_t)step->calm_ms &&
         __atomic_compare_exchange_n(last, &before, now_ms, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void take_any_step(struct dice *d) {
  static const uint32_t most = 64; /* the weights of all steps together are at most this */
  for (;;) {
    const struct step *step = steps;
    uint32_t at = roll(d, most);
    int is_calm = known(&calm);
    for (; step < steps + STEPS && at >= step->weight; step++) at -= step->weight;
    if (step == steps + STEPS) continue;
    if (is_calm ? step->calm_ms > 0 && !is_due(step) : !seldom(d, step->storm)) continue;
    step->take(d);
    if (is_calm) sleep_ms(1);
    return;
  }
}

#endif
