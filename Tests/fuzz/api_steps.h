/*
 * api_steps.h - the steps of api.c's programs: one for every function of the headers, with any arguments.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_FUZZ_STEPS_H
#define USHER_FUZZ_STEPS_H
#include "api_input.h"

#define CONTEXT ((usher_context *)pick(p, CONTEXTS))
#define DELEGATE ((usher_delegate *)pick(p, DELEGATES))
#define PLAYER ((usher_player *)pick(p, PLAYERS))
#define PLAYBACK ((usher_playback *)pick(p, PLAYBACKS))
#define RESPONSE ((usher_response *)pick(p, RESPONSES))
#define LOADER ((usher_loader *)pick(p, LOADERS))
/* Declares `out` for a call. The called function must set `out`, unless the call passes NULL instead (is_given is 0).
   */
#define OUT(type) \
  type *out = (type *)(uintptr_t)16; \
  int is_given = !seldom(p)
#define TO_OUT (is_given ? &out : NULL)
#define TAKEN(kind, call) \
  do { \
    int32_t taken_ = (call); \
    MUST(!is_given || (uintptr_t)out != 16, "out is not set: %s\n", #call); \
    if (is_given) put(p, kind, taken_, (void *)out); \
  } while (0)

/* A strict input uses no short time-outs and no clock jumps, and leaves no session on purpose. When a strict input has
   ended, the server must hold no session. */
static int is_strict;
/* The part of the input whose steps run in callbacks. */
static struct program callback_program;
static void take_step(struct program *p);

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

static volatile usher_completion questions[SLOTS];
static usher_completion question(struct program *p) {
  uint8_t choice = byte(p);
  return choice < 250 ? __atomic_load_n(&questions[choice % SLOTS], __ATOMIC_RELAXED) : (usher_completion)choice;
}
enum answer { TOKEN, PAYLOAD, BYTES, HEADERS, BUILTIN, DONE, LICENSE, SERVER, ENTITLEMENT, LOOK, ANSWERS };
static void answer(struct program *p, usher_completion id, enum answer how) {
  usher_customer_license license = USHER_CUSTOMER_LICENSE_INIT;
  usher_entitlement entitlement = USHER_ENTITLEMENT_INIT;
  const uint8_t *bytes;
  size_t size;
  int is_good;
  OUT(usher_response);
  switch (how) {
  case TOKEN: CALL(usher_complete_token, (id, some_text(p))); break;
  case PAYLOAD: bytes = some_bytes(p, &size), CALL(usher_complete_payload, (id, bytes, size)); break;
  case BYTES: bytes = some_bytes(p, &size), CALL(usher_complete_hook, (id, bytes, size)); break;
  case HEADERS: CALL(usher_complete_headers, (id, some_text(p))); break;
  case BUILTIN: CALL(usher_complete_builtin, (id)); break;
  case DONE: CALL(usher_complete_call, (id, -(int32_t)below(p, 40))); break;
  case SERVER: CALL(usher_complete_server, (id, some_text(p), some_text(p))); break;
  case ENTITLEMENT:
    entitlement.url = some_text(p), entitlement.token_kind = (int32_t)below(p, 6),
    entitlement.content_id = some_bytes(p, &entitlement.content_id_size);
    CALL(usher_complete_entitlement,
        (id, (const usher_entitlement *)sized(p, &entitlement, sizeof entitlement, &is_good)));
    break;
  case LICENSE:
    license.license = some_bytes(p, &license.license_size), license.heartbeat_s = (double)byte(p) / 16 - 1,
    license.renew_type = (int32_t)below(p, 4);
    license.service_code = below(p, 2) ? 1007 : 0, license.message = some_text(p);
    CALL(usher_complete_license, (id, (const usher_customer_license *)sized(p, &license, sizeof license, &is_good)));
    break;
  default: TAKEN(RESPONSES, CALL(usher_hook_builtin, (id, TO_OUT)));
  }
}
/* Answers a question correctly or wrongly, or stores it for the first thread that takes it. */
static void in_callback(void *user_data, usher_completion id, enum answer how) {
  struct program own = callback_program, *p = &own;
  unsigned choice = below(p, 8);
  called(user_data);
  if (id) __atomic_store_n(&questions[id % SLOTS], id, __ATOMIC_RELAXED);
  if (id && how == BYTES && choice == 1) answer(p, id, LOOK), step_over(p);
  if (id && choice < 6) answer(p, id, how != BYTES || choice > 3 ? how : choice == 3 ? HEADERS : BUILTIN), step_over(p);
  if (id && choice == 6) answer(p, id, (enum answer)below(p, ANSWERS)), step_over(p);
  if (!over(p) && seldom(p)) take_step(p), step_over(p);
}
static void on_log(int32_t level, const char *line, void *user_data) {
  (void)level;
  MUST(!strpbrk(line, "\r\n"), "a log line is one line: %s\n", line);
  called(user_data);
}
static void on_event(const usher_event *event, void *user_data) {
  MUST(usher_event_name(event->type)[0] && event->error.message, "an event of type %d has a name and a message\n",
      (int)event->type);
  in_callback(user_data, 0, LOOK);
}
static void on_notice(const usher_notice *notice, void *user_data) {
  MUST(notice->type > 0 && notice->summary[0] && notice->advice && notice->error.message,
      "a notice of type %d has words\n", (int)notice->type);
  in_callback(user_data, 0, LOOK);
}
static void on_answer(usher_playback *playback, const usher_response_info *info, uint64_t tag, void *user_data) {
  size_t index, sum = 0;
  (void)playback, (void)tag;
  for (index = 0; index < info->data_size; index++) sum += info->data[index];
  MUST((info->error.status == USHER_OK) == (info->data != NULL) || sum > ~(size_t)0 / 2,
      "data, or the reason why not\n");
  in_callback(user_data, 0, LOOK);
}
static void on_token(usher_completion id, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, in_callback(user_data, id, TOKEN);
}
static void on_call(usher_completion id, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, in_callback(user_data, id, DONE);
}
static void on_payload(
    usher_completion id, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  MUST(strlen(key_system) == 36, "a key system is a UUID\n");
  in_callback(user_data, id, PAYLOAD);
}
static void on_hook(const usher_hook_call *call, void *user_data) { in_callback(user_data, call->completion, BYTES); }
static void on_license(const usher_customer_request *request, void *user_data) {
  in_callback(user_data, request->completion, LICENSE);
}
static void on_spc(const usher_spc_request *request, void *user_data) {
  in_callback(user_data, request->completion, PAYLOAD);
}
static void on_server(const usher_server_request *request, void *user_data) {
  in_callback(user_data, request->completion, request->tag % 3 == 0 ? ENTITLEMENT : SERVER);
}
static void on_protection(const usher_protection *protection, void *user_data) {
  size_t index;
  for (index = 0; index < protection->key_id_count * 16; index++) *(size_t *)user_data += protection->key_ids[index];
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

static void make_context(struct program *p) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  struct watch *w = watch(at_usher_context_new, 0);
  usher_context *made = (usher_context *)(uintptr_t)16;
  const void *passed;
  void *none = NULL;
  unsigned slot = below(p, SLOTS);
  int is_good;
  options.clock = is_strict ? USHER_CLOCK_SYSTEM : below(p, 4) ? USHER_CLOCK_MANUAL : (int32_t)below(p, 3);
  options.callbacks = below(p, 8) == 7 ? 9 : (int32_t)below(p, 2);
  options.callback_threads_max = below(p, 3);
  options.requests_per_origin_max = below(p, 3);
  options.proxy = seldom(p) ? some_text(p) : NULL;
  options.user_agent = seldom(p) ? some_text(p) : NULL;
  if (!is_strict)
    options.http_timeout_ms = options.connect_timeout_ms = 200 + some_ms(p),
    options.max_response_bytes = below(p, 2) ? 100 : 0;
  options.log_level = (int32_t)below(p, 6), options.log = on_log, options.log_user_data = w,
  options.log_destroy = on_destroy;
  passed = sized(p, &options, sizeof options, &is_good);
  w->may_be_lost = !is_good;
  if (CALL(usher_context_new, ((const usher_context_options *)passed, &made)) != USHER_OK) {
    MUST(!made, "no context and a handle\n");
  } else if (!__atomic_compare_exchange_n(
                 &handles[CONTEXTS][slot], &none, (void *)made, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    CALL(usher_context_free, (made));
  }
}
static void free_context(struct program *p) {
  if (below(p, 8) == 7) CALL(usher_context_free, (CONTEXT));
}
static void close_context(struct program *p) {
  uint32_t open;
  usher_context *context = CONTEXT;
  /* Few steps close a playback, because after a close most calls return USHER_E_CLOSED. */
  unsigned kind = below(p, 4);
  if (kind == 2) CALL(usher_context_begin_close, (context, 20));
  if (kind == 3) CALL(usher_context_close, (context, some_ms(p), below(p, 2) ? &open : NULL));
}
static void pump(struct program *p) {
  uint32_t ran;
  CALL(usher_context_pump, (CONTEXT, below(p, 4) ? &ran : NULL));
}
static void pump_fd(struct program *p) {
  int fd = 7, is_told = !seldom(p);
  int32_t status = CALL(usher_context_pump_fd, (CONTEXT, is_told ? &fd : NULL));
  MUST(!is_told || (status == USHER_OK ? fd >= 0 : fd == -1), "a descriptor, or -1\n");
}
static volatile uint64_t observers[SLOTS], loads[SLOTS];
static void observe(struct program *p) {
  struct watch *w = watch(at_usher_context_add_observer, 0);
  uint64_t id = 0;
  CALL(usher_context_add_observer, (CONTEXT, seldom(p) ? NULL : on_event, w, on_destroy, seldom(p) ? NULL : &id));
  __atomic_store_n(&observers[below(p, SLOTS)], id, __ATOMIC_RELAXED);
  /* Reads no byte of the input, so that the stored inputs keep their meaning. */
  w = watch(at_usher_player_add_observer, 0);
  CALL(usher_player_add_observer, ((usher_player *)look(PLAYERS, 0), on_notice, w, on_destroy, NULL));
}
static void unobserve(struct program *p) {
  CALL(usher_context_remove_observer, (CONTEXT, __atomic_load_n(&observers[below(p, SLOTS)], __ATOMIC_RELAXED)));
}
static void suspend_all(struct program *p) { CALL(usher_context_suspend, (CONTEXT)); }
static void resume_all(struct program *p) { CALL(usher_context_resume, (CONTEXT)); }
static void change_network(struct program *p) { CALL(usher_context_network_changed, (CONTEXT)); }
static void advance(struct program *p) { CALL(usher_context_advance, (CONTEXT, byte(p) * 16u, below(p, 3))); }
static void jump(struct program *p) { CALL(usher_context_jump, (CONTEXT, byte(p) * 64u)); }
static void settle(struct program *p) { CALL(usher_context_settle, (CONTEXT, below(p, 3), below(p, 3), below(p, 8))); }
static void look_at_pending(struct program *p) {
  usher_pending pending = USHER_PENDING_INIT;
  int is_good;
  CALL(usher_context_pending, (CONTEXT, (usher_pending *)(uintptr_t)sized(p, &pending, sizeof pending, &is_good)));
}

/* ---- delegates --------------------------------------------------------------------------------------------------- */

static usher_ssp_options ssp_options(struct program *p) {
  usher_ssp_options options = USHER_SSP_OPTIONS_INIT;
  options.license_url = some_url(p, "license");
  options.ssm_url = some_url(p, "sessions");
  options.certificate_url = some_url(p, "certificate");
  options.token_timeout_ms = options.payload_timeout_ms = options.hook_timeout_ms = options.token_wait_ms = some_ms(p);
  options.keep_alive = (int32_t)below(p, 3), options.resetup_on_extra_license = (int32_t)below(p, 3),
  options.wire_format = (int32_t)below(p, 2);
  options.heartbeat_start = (int32_t)below(p, 2), options.suspend = (int32_t)below(p, 2);
  if (is_strict) return options;
  options.sync_setup_teardown = seldom(p);
  options.setup_timeout_ms = options.teardown_timeout_ms = options.period_min_ms = options.keep_alive_timeout_ms =
      some_ms(p);
  if (seldom(p))
    options.setup_url = some_url(p, "setup"), options.heartbeat_url = some_url(p, "heartbeat"),
    options.teardown_url = some_url(p, "teardown");
  if (seldom(p))
    options.token_header = some_text(p), options.extra_headers = some_text(p), options.setup_body = some_text(p);
  if (seldom(p))
    options.ssm_append_version = (int32_t)below(p, 5), options.ssm_api_version = some_text(p),
    options.jitter_permille = byte(p) * 4u;
  if (seldom(p))
    options.retry_permille = byte(p) * 8u, options.teardown_retries = byte(p),
    options.lenient_numbers = (int32_t)below(p, 3);
  return options;
}
static void make_ssp(struct program *p) {
  usher_ssp_options options = ssp_options(p);
  int is_good;
  OUT(usher_delegate);
  TAKEN(DELEGATES, CALL(usher_ssp_delegate_new,
                       (CONTEXT, (const usher_ssp_options *)sized(p, &options, sizeof options, &is_good), TO_OUT)));
}
static void make_ssp_v2(struct program *p) {
  usher_ssp_options ssp = ssp_options(p);
  usher_ssp_v2_options options = USHER_SSP_V2_OPTIONS_INIT;
  int is_good;
  OUT(usher_delegate);
  options.ssp = (const usher_ssp_options *)sized(p, &ssp, sizeof ssp, &is_good);
  options.teardown_on_close = (int32_t)below(p, 2), options.leave_on_zap = (int32_t)below(p, 2),
  options.period_default_ms = some_ms(p);
  if (seldom(p))
    options.token_field = some_text(p), options.period_field = some_text(p), options.enforced_field = some_text(p),
    options.token_reply_header = "X-Token";
  TAKEN(DELEGATES, CALL(usher_ssp_v2_delegate_new,
                       (CONTEXT, (const usher_ssp_v2_options *)sized(p, &options, sizeof options, &is_good), TO_OUT)));
}
static void make_multi_instance(struct program *p) {
  usher_ssp_options options = ssp_options(p);
  usher_token_map_options map = USHER_TOKEN_MAP_OPTIONS_INIT;
  int is_good;
  const usher_token_map_options *passed;
  OUT(usher_delegate);
  map.tokens_max = below(p, 4), map.time_to_live_ms = byte(p);
  passed = below(p, 2) ? (const usher_token_map_options *)sized(p, &map, sizeof map, &is_good) : NULL;
  TAKEN(DELEGATES,
      CALL(usher_multi_instance_delegate_new,
          (CONTEXT, (const usher_ssp_options *)sized(p, &options, sizeof options, &is_good), passed, TO_OUT)));
}
static usher_default_options default_options(struct program *p) {
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  options.license_url = some_url(p, "license"), options.certificate_url = some_url(p, "certificate");
  options.hook_timeout_ms = some_ms(p), options.wire_format = (int32_t)below(p, 2);
  if (seldom(p)) options.extra_headers = some_text(p), options.token_header = some_text(p);
  return options;
}
static usher_delegate_hooks some_hooks(struct program *p) {
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  uint8_t which = byte(p);
  hooks.scheme = seldom(p) ? some_text(p) : NULL;
  if (which & 1) hooks.content_id = on_hook;
  if (which & 2) hooks.certificate = on_hook;
  if (which & 4) hooks.http_headers = on_hook;
  if (which & 8) hooks.license_url = on_hook;
  if (which & 16) hooks.license_body = on_hook;
  if (which & 32) hooks.license = on_hook;
  return hooks;
}
static void make_default(struct program *p) {
  usher_default_options options = default_options(p);
  int is_good;
  OUT(usher_delegate);
  TAKEN(DELEGATES, CALL(usher_default_delegate_new,
                       (CONTEXT, (const usher_default_options *)sized(p, &options, sizeof options, &is_good), TO_OUT)));
}
static void make_common(struct program *p) {
  usher_default_options options = default_options(p);
  usher_delegate_hooks hooks = some_hooks(p);
  struct watch *w = watch(at_usher_common_delegate_new, 0);
  const void *passed_options, *passed_hooks;
  int is_good, is_good_too;
  OUT(usher_delegate);
  passed_options = sized(p, &options, sizeof options, &is_good),
  passed_hooks = sized(p, &hooks, sizeof hooks, &is_good_too);
  TAKEN(DELEGATES,
      CALL(usher_common_delegate_new, (CONTEXT, (const usher_default_options *)passed_options,
                                          (const usher_delegate_hooks *)passed_hooks, w, on_destroy, TO_OUT)));
}
static void make_customer(struct program *p) {
  usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
  struct watch *w = watch(at_usher_customer_delegate_new, 0);
  const void *passed;
  int is_good;
  OUT(usher_delegate);
  options.certificate = some_bytes(p, &options.certificate_size);
  options.license = seldom(p) ? NULL : on_license, options.heartbeat = below(p, 2) ? on_call : NULL,
  options.teardown = below(p, 2) ? on_call : NULL;
  options.license_timeout_ms = options.heartbeat_timeout_ms = options.teardown_timeout_ms = options.payload_timeout_ms =
      some_ms(p);
  options.user_data = w, options.destroy = on_destroy;
  passed = sized(p, &options, sizeof options, &is_good);
  w->may_be_lost = !is_good;
  TAKEN(DELEGATES, CALL(usher_customer_delegate_new, (CONTEXT, (const usher_customer_options *)passed, TO_OUT)));
}
static void set_delegate(struct program *p) { CALL(usher_context_set_delegate, (CONTEXT, DELEGATE)); }
static void set_header(struct program *p) {
  CALL(usher_delegate_set_http_header, (DELEGATE, some_text(p), some_text(p)));
}
static void set_token_callback(struct program *p) {
  struct watch *w = watch(at_usher_delegate_set_token_callback, 0);
  CALL(usher_delegate_set_token_callback, (DELEGATE, below(p, 4) ? on_token : NULL, w, on_destroy));
}
static void set_hooks(struct program *p) {
  usher_delegate_hooks hooks = some_hooks(p);
  struct watch *w = watch(at_usher_delegate_set_hooks, 0);
  int is_good;
  CALL(usher_delegate_set_hooks,
      (DELEGATE, (const usher_delegate_hooks *)sized(p, &hooks, sizeof hooks, &is_good), w, on_destroy));
}
static void free_delegate(struct program *p) { CALL(usher_delegate_free, (DELEGATE)); }
static void set_stream_token(struct program *p) {
  size_t size;
  const uint8_t *id = some_bytes(p, &size);
  CALL(usher_delegate_set_stream_token, (DELEGATE, id, size, some_text(p)));
}
static void get_stream_token(struct program *p) {
  size_t size;
  const uint8_t *id = some_bytes(p, &size);
  OUT(usher_response);
  TAKEN(RESPONSES, CALL(usher_delegate_get_stream_token, (DELEGATE, id, size, TO_OUT)));
}
static void remove_stream_token(struct program *p) {
  size_t size;
  const uint8_t *id = some_bytes(p, &size);
  CALL(usher_delegate_remove_stream_token, (DELEGATE, id, size));
}
static void clear_stream_tokens(struct program *p) { CALL(usher_delegate_clear_stream_tokens, (DELEGATE)); }
static void count_stream_tokens(struct program *p) {
  size_t count;
  CALL(usher_delegate_count_stream_tokens, (DELEGATE, seldom(p) ? NULL : &count));
}
static void answer_something(struct program *p) {
  usher_completion id = question(p);
  answer(p, id, (enum answer)below(p, ANSWERS));
}

#include "api_plays.h"
#endif
