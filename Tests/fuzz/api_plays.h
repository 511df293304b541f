/*
 * api_plays.h - more steps of api.c, for players, playbacks, licences, loaders, contents and texts. api_steps.h
 * includes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_FUZZ_PLAYS_H
#define USHER_FUZZ_PLAYS_H

/* ---- players and playbacks --------------------------------------------------------------------------------------- */

static void make_player(struct program *p) {
  OUT(usher_player);
  TAKEN(PLAYERS, CALL(usher_player_new, (CONTEXT, TO_OUT)));
}
static void play(struct program *p) {
  usher_playback_options options = USHER_PLAYBACK_OPTIONS_INIT;
  struct watch *w = watch(at_usher_player_play, 0);
  const void *passed;
  int is_good;
  OUT(usher_playback);
  options.delegate = below(p, 3) ? (usher_delegate *)look(DELEGATES, byte(p)) : DELEGATE;
  options.content_token = below(p, 4) ? (const char *)pass(p, "token", 6) : some_text(p);
  if (below(p, 2)) options.content_id = some_bytes(p, &options.content_id_size);
  options.payload = below(p, 2) ? on_payload : NULL, options.renewed = below(p, 2) ? on_answer : NULL;
  options.clear = seldom(p) ? (int32_t)below(p, 3) : 0, options.tag = byte(p), options.user_data = w,
  options.destroy = on_destroy;
  passed = sized(p, &options, sizeof options, &is_good);
  w->may_be_lost = !is_good;
  TAKEN(PLAYBACKS, CALL(usher_player_play, (PLAYER, (const usher_playback_options *)passed, TO_OUT)));
}
static int32_t some_mode(struct program *p) { return is_strict ? USHER_CLOSE_TEARDOWN : (int32_t)below(p, 4); }
static void stop_player(struct program *p) { CALL(usher_player_stop, (PLAYER, some_mode(p))); }
static void free_player(struct program *p) { CALL(usher_player_free, (PLAYER)); }
static void close_playback(struct program *p) { CALL(usher_playback_close, (PLAYBACK, some_mode(p))); }
static void free_playback(struct program *p) { CALL(usher_playback_free, (PLAYBACK)); }
static void wait_session(struct program *p) {
  OUT(usher_response);
  TAKEN(RESPONSES, CALL(usher_playback_wait_session, (PLAYBACK, some_ms(p), TO_OUT)));
}
static void wait_closed(struct program *p) { CALL(usher_playback_wait_closed, (PLAYBACK, some_ms(p))); }
static void set_content_token(struct program *p) { CALL(usher_playback_set_content_token, (PLAYBACK, some_text(p))); }
static void suspend(struct program *p) { CALL(usher_playback_suspend, (PLAYBACK)); }
static void resume(struct program *p) { CALL(usher_playback_resume, (PLAYBACK)); }
static void session_state(struct program *p) {
  int32_t state = -1;
  int32_t status = CALL(usher_playback_session_state, (PLAYBACK, seldom(p) ? NULL : &state));
  MUST(status != USHER_OK || (state >= USHER_SESSION_NONE && state <= USHER_SESSION_ENDED), "a session's state is %d\n",
      (int)state);
}

/* ---- licences ---------------------------------------------------------------------------------------------------- */

static const void *license_request(struct program *p) {
  static const char *const systems[] = {
      USHER_KEY_SYSTEM_FAIRPLAY, USHER_KEY_SYSTEM_WIDEVINE, USHER_KEY_SYSTEM_PLAYREADY, USHER_KEY_SYSTEM_CLEARKEY};
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  int is_good;
  request.key_system = seldom(p) ? some_text(p) : systems[below(p, 4)];
  request.type = seldom(p) ? (int32_t)below(p, 3) : 0, request.timeout_ms = some_ms(p);
  request.payload = (const uint8_t *)pass(p, "challenge", 9), request.payload_size = 9;
  if (seldom(p)) request.payload = some_bytes(p, &request.payload_size);
  if (seldom(p)) request.asset_id = some_bytes(p, &request.asset_id_size);
  return sized(p, &request, sizeof request, &is_good);
}
static void request_license(struct program *p) {
  struct watch *w = watch(at_usher_playback_request_license, 1);
  const void *request = license_request(p);
  answered(w, CALL(usher_playback_request_license,
                  (PLAYBACK, (const usher_license_request *)request, seldom(p) ? NULL : on_answer, w, on_destroy)));
}
static void get_license(struct program *p) {
  const void *request = license_request(p);
  OUT(usher_response);
  TAKEN(RESPONSES, CALL(usher_playback_get_license, (PLAYBACK, (const usher_license_request *)request, TO_OUT)));
}
static void request_certificate(struct program *p) {
  struct watch *w = watch(at_usher_playback_request_certificate, 1);
  answered(w, CALL(usher_playback_request_certificate, (PLAYBACK, seldom(p) ? NULL : on_answer, w, on_destroy)));
}
static void get_certificate(struct program *p) {
  OUT(usher_response);
  TAKEN(RESPONSES, CALL(usher_playback_get_certificate, (PLAYBACK, some_ms(p), TO_OUT)));
}
static void request_content_id(struct program *p) {
  struct watch *w = watch(at_usher_playback_request_content_id, 1);
  size_t size;
  const uint8_t *url = some_bytes(p, &size);
  answered(
      w, CALL(usher_playback_request_content_id, (PLAYBACK, url, size, seldom(p) ? NULL : on_answer, w, on_destroy)));
}
static void get_content_id(struct program *p) {
  size_t size;
  const uint8_t *url = some_bytes(p, &size);
  OUT(usher_response);
  TAKEN(RESPONSES, CALL(usher_playback_get_content_id, (PLAYBACK, url, size, some_ms(p), TO_OUT)));
}
static void get_response(struct program *p) {
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  int is_good;
  CALL(usher_response_get, (RESPONSE, (usher_response_info *)(uintptr_t)sized(p, &info, sizeof info,
                                          &is_good))); /* `info` is not read: another thread may free the data */
}
static void free_response(struct program *p) { CALL(usher_response_free, (RESPONSE)); }

/* ---- loaders ----------------------------------------------------------------------------------------------------- */

static void add_loader(struct program *p) {
  usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
  struct watch *w = watch(at_usher_context_add_loader, 0);
  const void *passed;
  int is_good;
  OUT(usher_loader);
  options.scheme = seldom(p) ? some_text(p) : NULL, options.route = (int32_t)below(p, 3),
  options.content_id_rule = (int32_t)below(p, 8);
  options.license_url = some_url(p, "license"), options.entitlement_url = some_url(p, "entitlement"),
  options.certificate_url = some_url(p, "certificate");
  options.allowed_hosts = below(p, 2) ? "127.0.0.1:*" : some_text(p),
  options.derived_scheme = below(p, 2) ? "http" : NULL;
  if (seldom(p))
    options.certificate = some_bytes(p, &options.certificate_size), options.certificate_file = some_text(p);
  options.request_format = (int32_t)below(p, 5), options.spc_urlencode = (int32_t)below(p, 4),
  options.response_format = (int32_t)below(p, 6);
  if (seldom(p))
    options.extra_headers = some_text(p), options.spc_field = some_text(p), options.content_id_field = some_text(p),
    options.response_path = some_text(p);
  if (seldom(p)) options.device_binding = (int32_t)below(p, 2), options.customer_cookie = some_text(p);
  options.server = below(p, 3) ? NULL : on_server, options.token_url = below(p, 3) ? NULL : on_server;
  options.server_timeout_ms = some_ms(p), options.device_registered = seldom(p);
  options.spc = seldom(p) ? NULL : on_spc, options.spc_timeout_ms = some_ms(p), options.user_data = w,
  options.destroy = on_destroy;
  passed = sized(p, &options, sizeof options, &is_good);
  w->may_be_lost = !is_good;
  TAKEN(LOADERS, CALL(usher_context_add_loader, (CONTEXT, (const usher_loader_options *)passed, TO_OUT)));
}
static void free_loader(struct program *p) { CALL(usher_loader_free, (LOADER)); }
static const uint8_t *asset_url(struct program *p, size_t *size) {
  char url[128];
  if (seldom(p)) return some_bytes(p, size);
  if (below(p, 2)) return *size = 15, (const uint8_t *)pass(p, "skd://content-1", 15);
  make_url(url, sizeof url, server_port, "good", "license"), memcpy(url, "skd", 3),
      memmove(url + 3, url + 4, strlen(url + 3));
  return (const uint8_t *)pass(p, url, *size = strlen(url));
}
static void load_resource(struct program *p) {
  struct watch *w = watch(at_usher_playback_load_resource, 1);
  size_t size;
  const uint8_t *url = asset_url(p, &size);
  uint64_t id = 0;
  answered(w, CALL(usher_playback_load_resource, (PLAYBACK, url, size, some_ms(p), seldom(p) ? NULL : on_answer, w,
                                                     on_destroy, seldom(p) ? NULL : &id)));
  __atomic_store_n(&loads[below(p, SLOTS)], id, __ATOMIC_RELAXED);
}
static void cancel_load(struct program *p) {
  CALL(usher_playback_cancel_load, (PLAYBACK, __atomic_load_n(&loads[below(p, SLOTS)], __ATOMIC_RELAXED)));
}
static void get_resource(struct program *p) {
  size_t size;
  const uint8_t *url = asset_url(p, &size);
  OUT(usher_response);
  TAKEN(RESPONSES, CALL(usher_playback_get_resource, (PLAYBACK, url, size, some_ms(p), TO_OUT)));
}

/* ---- contents and words ------------------------------------------------------------------------------------------ */

struct bytes {
  const uint8_t *bytes;
  size_t size, most;
};
static int64_t on_read(uint64_t offset, uint8_t *buffer, size_t size, void *user_data) {
  const struct bytes *from = user_data;
  size_t count = 0;
  for (; count < size && count < from->most && offset + count < from->size; count++)
    buffer[count] = from->bytes[offset + count];
  return (int64_t)count;
}
static void on_part(const usher_protection *protection, void *user_data) {
  size_t sum = 0;
  on_protection(protection, &sum), (void)user_data;
}
static void read_file(struct program *p) {
  struct bytes from = {.most = seldom(p) ? 3 : 4096};
  char message[64];
  from.bytes = some_bytes(p, &from.size);
  if (!from.bytes || from.size > 64) from.size = 0; /* on_read() is the host's code: it needs bytes that exist */
  CALL(usher_read_mp4,
      (seldom(p) ? NULL : on_read, seldom(p) ? NULL : on_part, &from, seldom(p) ? NULL : message, below(p, 64)));
}
static void use_clear_keys(struct program *p) {
  size_t size, room = below(p, 80), count = below(p, 3);
  const uint8_t *bytes = some_bytes(p, &size);
  uint8_t *buffer = seldom(p) ? NULL : (uint8_t *)pass(p, garbage, room);
  usher_clearkey_key keys[3];
  char message[64];
  CALL(usher_clearkey_request, (bytes, size / 16, buffer, seldom(p) ? NULL : &room));
  CALL(usher_clearkey_keys, (bytes, size, seldom(p) ? NULL : keys, seldom(p) ? NULL : &count, message, below(p, 64)));
}
static void read_contents(struct program *p) {
  size_t size, count = 0, sum = 0;
  const uint8_t *bytes = some_bytes(p, &size);
  usher_protection_fn fn = seldom(p) ? NULL : on_protection;
  CALL(usher_read_pssh, (bytes, size, fn, &sum, &count)), CALL(usher_read_tenc, (bytes, size, fn, &sum, &count));
  CALL(usher_read_hls_keys, (bytes, size, fn, &sum, &count)),
      CALL(usher_read_dash_protection, (bytes, size, fn, &sum, &count));
  read_file(p);
}
static void write_contents(struct program *p) {
  size_t size, room = below(p, 80), told = room;
  const uint8_t *bytes = some_bytes(p, &size);
  uint8_t *buffer = seldom(p) ? NULL : (uint8_t *)pass(p, garbage, room);
  CALL(usher_content_id, (bytes, size, (int32_t)below(p, 9) - 1, buffer, seldom(p) ? NULL : &told));
  told = room;
  CALL(usher_rewrite_hls_keys, (bytes, size, some_text(p), some_text(p), buffer, seldom(p) ? NULL : &told));
  use_clear_keys(p);
}
/* Calls the functions that no other step calls, with simple arguments. Tests/fuzz/run writes plain_steps.h, which has
   the lines of functions.h for these functions. If this file is empty, the step reads no byte of the input, so that the
   stored inputs keep their meaning. */
#define KIND_OF_usher_context CONTEXTS
#define KIND_OF_usher_delegate DELEGATES
#define KIND_OF_usher_player PLAYERS
#define KIND_OF_usher_playback PLAYBACKS
#define KIND_OF_usher_response RESPONSES
#define KIND_OF_usher_loader LOADERS
static __attribute__((unused)) struct watch *watch_once(struct watch **w, int function) {
  /* If the call passes no `destroy`, the library does not destroy this user_data, so the user_data may be lost. If the
     call passes a `destroy`, it calls destroy_of(), which sets `may_be_lost` to 0. */
  if (!*w) *w = watch(function, 0), (*w)->may_be_lost = 1;
  return *w;
}
static __attribute__((unused)) usher_destroy_fn destroy_of(struct watch *w) {
  w->may_be_lost = 0;
  return on_destroy;
}
static void take_plain_steps(struct program *p) {
  struct plain arguments = plain_defaults, *plain = &arguments;
  struct watch *w = NULL;
  void *made = NULL;
  int kind = -1, function = 0;
  int32_t status = USHER_OK;
  (void)p, (void)plain, (void)w, (void)made, (void)kind, (void)function, (void)status;
#define ARG_HANDLE(type) ((type *)pick(p, KIND_OF_##type))
#define ARG_OUT_HANDLE(type) (kind = KIND_OF_##type, (type **)(void *)&made)
#define ARG_USER_DATA ((void *)watch_once(&w, function))
#define ARG_DESTROY destroy_of(watch_once(&w, function))
#define PLAIN_STATUS(name, arguments) status = CALL(name, arguments)
#define PLAIN_POINTER(name, arguments) noted(at_##name, name arguments ? USHER_OK : USHER_E_INVALID_ARGUMENT)
#define FUNCTION(name, result, takes, arguments) \
  w = NULL, made = NULL, kind = -1, function = at_##name; \
  PLAIN_##result(name, arguments); \
  if (kind >= 0) put(p, (enum kind)kind, status, made);
#include "plain_steps.h"
#undef FUNCTION
}
static void say_words(struct program *p) {
  usher_explanation words;
  usher_legacy_codes codes;
  usher_error error;
  memset(&error, 0, sizeof error);
  error.status = -(int32_t)byte(p), error.origin = (int32_t)below(p, 8) - 1,
  error.operation = (int32_t)below(p, 12) - 1, error.service_code = byte(p) * 20;
  error.http_status = byte(p) * 3, error.tls_fault = (int32_t)below(p, 9) - 1;
  CALL(usher_error_explain, (seldom(p) ? NULL : &error, seldom(p) ? NULL : &words));
  CALL(usher_error_legacy_codes, (seldom(p) ? NULL : &error, seldom(p) ? NULL : &codes));
#define SAYS(name, argument) noted(at_##name, name(argument)[0] ? USHER_OK : 1)
  noted(at_usher_version, usher_version()[0] ? USHER_OK : 1);
  SAYS(usher_status_name, error.status), SAYS(usher_status_message, error.status),
      SAYS(usher_origin_name, error.origin);
  SAYS(usher_operation_name, error.operation), SAYS(usher_event_name, error.operation);
  noted(at_usher_get_api, usher_get_api(below(p, 2)) ? USHER_OK : USHER_E_INVALID_ARGUMENT);
  take_plain_steps(p);
}

/* ---- which step -------------------------------------------------------------------------------------------------- */

static void (*const steps[])(struct program *) = {
    make_context,
    free_context,
    close_context,
    pump,
    pump,
    pump_fd,
    observe,
    unobserve,
    suspend_all,
    resume_all,
    change_network,
    advance,
    jump,
    settle,
    look_at_pending,
    make_ssp,
    make_ssp,
    make_ssp_v2,
    make_multi_instance,
    make_default,
    make_common,
    make_customer,
    set_delegate,
    set_header,
    set_token_callback,
    set_hooks,
    free_delegate,
    set_stream_token,
    get_stream_token,
    remove_stream_token,
    clear_stream_tokens,
    count_stream_tokens,
    answer_something,
    answer_something,
    make_player,
    play,
    play,
    play,
    stop_player,
    free_player,
    close_playback,
    free_playback,
    wait_session,
    wait_closed,
    set_content_token,
    suspend,
    resume,
    session_state,
    request_license,
    request_license,
    get_license,
    request_certificate,
    get_certificate,
    request_content_id,
    get_content_id,
    get_response,
    free_response,
    add_loader,
    free_loader,
    load_resource,
    load_resource,
    cancel_load,
    get_resource,
    read_contents,
    write_contents,
    say_words,
};
static void take_step(struct program *p) { steps[below(p, sizeof steps / sizeof *steps)](p); }

#endif
