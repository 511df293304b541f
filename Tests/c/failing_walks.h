/*
 * failing_walks.h - walks through the whole interface for failing_calls.c, in which any call may fail. Each walk makes
 * a context, plays, and frees the context. Together the walks call every function in a way that succeeds if no system
 * call fails; check_walked() checks this.
 *
 * The test defines `now`, `given`, `destroyed` and `played`, and the functions on_event() and on_log().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_FAILING_WALKS_H
#define USHER_TEST_FAILING_WALKS_H
#include "film.h"
#include "plain.h"
#include "support.h"

/* ---- which functions have succeeded ------------------------------------------------------------------------------ */

static struct {
  const char *name;
  int worked;
} walked[] = {
#define FUNCTION(name, result, takes, arguments) {#name, 0},
#include "functions.h"
#undef FUNCTION
};
enum { WALKED = sizeof walked / sizeof *walked };

static void worked(const char *name) {
  int index;
  for (index = 0; index < WALKED; index++)
    if (strcmp(walked[index].name, name) == 0) __atomic_store_n(&walked[index].worked, 1, __ATOMIC_RELAXED);
}
/* Fails the test if the headers do not name the status. @return the status. */
static int32_t known(const char *name, int32_t status) {
  if (strcmp(usher_status_name(status), "unknown") == 0) tell(0, "%s: %s returns %d", now, name, (int)status);
  if (status == USHER_OK) worked(name);
  return status;
}
#define KNOWN(name, arguments) known(#name, name arguments)
static void check_walked(void) {
  char missing[1024] = "";
  int index;
  for (index = 0; index < WALKED; index++) {
    if (walked[index].worked) continue;
    snprintf(missing + strlen(missing), sizeof missing - strlen(missing), " %s", walked[index].name);
  }
  tell(!missing[0], "if no call fails, every function succeeds in a walk%s%s", missing[0] ? "; not:" : "", missing);
}
/* The macro for an argument `destroy`. The library must call this `destroy` once, also if the function fails. */
#define DESTROY (add(&given, 1), count_destroy)

/* ---- parts of the walks ------------------------------------------------------------------------------------------ */

static usher_context *opened_as(int32_t callbacks, int32_t clock) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  int32_t status;
  options.callbacks = callbacks;
  options.clock = clock;
  options.http_timeout_ms = 800 * (uint32_t)patience();
  options.log = on_log;
  options.log_user_data = &destroyed;
  options.log_destroy = DESTROY;
  status = KNOWN(usher_context_new, (&options, &context));
  if ((status == USHER_OK) != (context != NULL)) tell(0, "%s: usher_context_new gives no context", now);
  if (context && usher_context_add_observer(context, on_event, &destroyed, DESTROY, NULL) != USHER_OK)
    tell(0, "%s: usher_context_add_observer", now);
  return context;
}
static usher_context *opened(void) { return opened_as(USHER_CALLBACKS_THREADED, USHER_CLOCK_SYSTEM); }
static usher_playback *started(usher_context *context, usher_delegate *delegate, const char *token, const char *id) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  KNOWN(usher_player_new, (context, &player));
  item.delegate = delegate;
  item.content_token = token;
  item.content_id = (const uint8_t *)id;
  item.content_id_size = id ? strlen(id) : 0;
  item.user_data = &destroyed;
  item.destroy = DESTROY;
  played += KNOWN(usher_player_play, (player, &item, &playback)) == USHER_OK;
  return playback; /* the context frees the player */
}
static void licensed(usher_playback *playback, const char *key_system) {
  usher_license_request request = a_request(key_system);
  usher_response *response = NULL;
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  request.timeout_ms = 1000;
  request.asset_id = ARG_BYTES;
  request.asset_id_size = ARG_SIZE;
  KNOWN(usher_playback_get_license, (playback, &request, &response));
  KNOWN(usher_response_get, (response, &info));
  KNOWN(usher_response_free, (response));
}
static void ended(usher_playback *playback) {
  KNOWN(usher_playback_close, (playback, USHER_CLOSE_TEARDOWN));
  KNOWN(usher_playback_wait_closed, (playback, 3000));
  KNOWN(usher_playback_free, (playback));
}

/* ---- a playback with SSP, and every function once, with simple arguments ----------------------------------------- */

/* Calls every function, except those in `skipped` and the ..._free() functions, with simple arguments and valid
   handles. The other walks call the functions of `skipped`. */
static void call_all(usher_context *live_usher_context, usher_delegate *live_usher_delegate,
    usher_player *live_usher_player, usher_playback *live_usher_playback) {
  static const char skipped[] =
      " usher_context_new usher_context_close usher_context_begin_close usher_playback_close usher_player_stop "
      "usher_player_play usher_context_settle usher_playback_set_content_token usher_context_remove_observer ";
  usher_response *live_usher_response = NULL;
  usher_loader *live_usher_loader = NULL;
  struct plain arguments = plain_defaults, *plain = &arguments;
  void *made = NULL;
  plain->of_usher_license_request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  plain->of_usher_license_request.timeout_ms = 200;
  plain->of_usher_loader_options.license_url = license_url();
  plain->of_usher_loader_options.spc = plain_usher_spc_fn;
  plain->of_usher_ssp_options.license_url = license_url();
  plain->of_usher_ssp_options.ssm_url = ssm_url();
#define ARG_HANDLE(type) live_##type
#define ARG_OUT_HANDLE(type) ((type **)(void *)&made)
#define ARG_USER_DATA ((void *)&destroyed)
#define ARG_DESTROY DESTROY
#define CALL_HANDLE(name, arguments) \
  if (!strstr(skipped, " " #name " ")) known(#name, name arguments);
#define CALL_FREES(name, arguments)
#define CALL_NOTHING CALL_HANDLE
#define KIND_STATUS(takes, name, arguments) CALL_##takes(name, arguments)
#define KIND_POINTER(takes, name, arguments) \
  if (name arguments) worked(#name); \
  else if (strcmp(#name, "usher_get_api") != 0) tell(0, "%s: %s", now, #name);
#define FUNCTION(name, result, takes, arguments) KIND_##result(takes, name, arguments)
#include "functions.h"
#undef FUNCTION
  (void)made, (void)live_usher_response, (void)live_usher_loader;
}
static int64_t read_film(uint64_t offset, uint8_t *buffer, size_t size, void *user_data) {
  size_t count = 0;
  (void)user_data;
  for (; count < size && offset + count < sizeof film; count++) buffer[count] = film[offset + count];
  return (int64_t)count;
}
static void read_contents(void) {
  static const char playlist[] =
      "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://one\",KEYFORMAT=\"com.apple.streamingkeydelivery\"\n";
  uint8_t buffer[256];
  size_t size = sizeof buffer, count = 1;
  usher_clearkey_key key;
  KNOWN(usher_rewrite_hls_keys, ((const uint8_t *)playlist, strlen(playlist), NULL, "http://x/", buffer, &size));
  KNOWN(usher_read_mp4, (read_film, plain_usher_protection_fn, NULL, NULL, 0));
  size = sizeof buffer;
  KNOWN(usher_clearkey_request, (film + sizeof film - 16, 1, buffer, &size));
  KNOWN(usher_clearkey_keys, ((const uint8_t *)film_license, strlen(film_license), &key, &count, NULL, 0));
  if (usher_get_api(USHER_VERSION_MAJOR)) worked("usher_get_api");
}
static void walk_ssp(void) {
  usher_context *context = opened();
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_loader_options loader = USHER_LOADER_OPTIONS_INIT;
  usher_loader *with_file = NULL;
  usher_response *certificate = NULL;
  uint64_t id = 0;
  if (!context) return;
  ssp.license_url = license_url();
  ssp.ssm_url = ssm_url();
  ssp.certificate_url = certificate_url();
  KNOWN(usher_ssp_delegate_new, (context, &ssp, &delegate));
  KNOWN(usher_player_new, (context, &player));
  loader.license_url = license_url();
  loader.certificate_file = "/proc/self/exe"; /* the library opens and reads this file; it accepts any bytes, up to
  1 MiB, as a certificate */
  loader.spc = plain_usher_spc_fn;
  KNOWN(usher_context_add_loader, (context, &loader, &with_file));
  item.delegate = delegate;
  item.user_data = &destroyed;
  item.destroy = DESTROY;
  played += KNOWN(usher_player_play, (player, &item, &playback)) == USHER_OK;
  KNOWN(usher_playback_set_content_token, (playback, content_token()));
  KNOWN(usher_playback_wait_session, (playback, 3000, NULL));
  licensed(playback, USHER_KEY_SYSTEM_WIDEVINE);
  KNOWN(usher_playback_get_certificate, (playback, 1000, &certificate));
  usher_response_free(certificate);
  call_all(context, delegate, player, playback);
  KNOWN(usher_context_add_observer, (context, plain_usher_event_fn, &destroyed, DESTROY, &id));
  KNOWN(usher_context_remove_observer, (context, id));
  KNOWN(usher_player_stop, (player, USHER_CLOSE_TEARDOWN));
  ended(playback);
  KNOWN(usher_player_free, (player));
  KNOWN(usher_delegate_free, (delegate));
  read_contents();
  KNOWN(usher_context_close, (context, 3000, NULL));
  KNOWN(usher_context_free, (context));
}

/* ---- the other delegates, and every kind of answer --------------------------------------------------------------- */

static void answer_hook(const usher_hook_call *call, void *user_data) {
  usher_response *builtin = NULL;
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  (void)user_data;
  if (call->hook == USHER_HOOK_LICENSE_URL) {
    KNOWN(usher_complete_builtin, (call->completion));
    return;
  }
  KNOWN(usher_hook_builtin, (call->completion, &builtin));
  usher_response_get(builtin, &info);
  if (call->hook == USHER_HOOK_HEADERS) KNOWN(usher_complete_headers, (call->completion, "X-Walk: 1"));
  else KNOWN(usher_complete_hook, (call->completion, info.data, info.data_size));
  usher_response_free(builtin);
}
static void answer_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  KNOWN(usher_complete_token, (completion, content_token()));
}
static void answer_license(const usher_customer_request *request, void *user_data) {
  usher_customer_license license = USHER_CUSTOMER_LICENSE_INIT;
  (void)user_data;
  license.license = request->payload;
  license.license_size = request->payload_size;
  license.heartbeat_s = 0.05;
  license.renew_type = USHER_RENEW_HEARTBEAT;
  KNOWN(usher_complete_license, (request->completion, &license));
}
static void answer_call(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  KNOWN(usher_complete_call, (completion, USHER_OK));
}
static void answer_spc(const usher_spc_request *request, void *user_data) {
  (void)user_data;
  KNOWN(usher_complete_payload, (request->completion, (const uint8_t *)"SPC", 3));
}
static void answer_server(const usher_server_request *request, void *user_data) {
  usher_entitlement entitlement = USHER_ENTITLEMENT_INIT;
  char header[8192];
  (void)user_data;
  if (memcmp(request->url, "skd://one", request->url_size) == 0) {
    snprintf(header, sizeof header, "nv-authorizations: %s", free_token());
    KNOWN(usher_complete_server, (request->completion, enforced_url(), header));
    return;
  }
  entitlement.url = license_url();
  KNOWN(usher_complete_entitlement, (request->completion, &entitlement));
}

static void walk_hooks(usher_context *context) {
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  usher_delegate *common = NULL, *plain = NULL;
  usher_playback *playback;
  usher_response *response = NULL;
  options.license_url = enforced_url();
  options.certificate_url = certificate_url();
  hooks.content_id = hooks.certificate = hooks.http_headers = hooks.license_url = hooks.license_body = hooks.license =
      answer_hook;
  KNOWN(usher_common_delegate_new, (context, &options, &hooks, &destroyed, DESTROY, &common));
  playback = started(context, common, free_token(), NULL);
  KNOWN(usher_playback_get_content_id, (playback, ARG_BYTES, ARG_SIZE, 1000, &response));
  usher_response_free(response);
  licensed(playback, USHER_KEY_SYSTEM_FAIRPLAY);
  ended(playback);
  KNOWN(usher_default_delegate_new, (context, &options, &plain));
  KNOWN(usher_delegate_set_hooks, (plain, &hooks, &destroyed, DESTROY));
  KNOWN(usher_delegate_set_token_callback, (plain, answer_token, &destroyed, DESTROY));
  playback = started(context, plain, NULL, NULL);
  licensed(playback, USHER_KEY_SYSTEM_FAIRPLAY);
  ended(playback);
}
static void walk_streams(usher_context *context) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_ssp_v2_options v2 = USHER_SSP_V2_OPTIONS_INIT;
  usher_token_map_options map = USHER_TOKEN_MAP_OPTIONS_INIT;
  usher_delegate *second = NULL, *streams = NULL;
  usher_playback *playback;
  usher_response *response = NULL;
  size_t count;
  ssp.license_url = license_url();
  ssp.ssm_url = ssm_url();
  KNOWN(usher_multi_instance_delegate_new, (context, &ssp, &map, &streams));
  KNOWN(usher_delegate_set_stream_token, (streams, (const uint8_t *)"one", 3, content_token()));
  KNOWN(usher_delegate_get_stream_token, (streams, (const uint8_t *)"one", 3, &response));
  usher_response_free(response);
  KNOWN(usher_delegate_count_stream_tokens, (streams, &count));
  playback = started(context, streams, NULL, "one");
  KNOWN(usher_playback_wait_session, (playback, 3000, NULL));
  ended(playback);
  KNOWN(usher_delegate_remove_stream_token, (streams, (const uint8_t *)"one", 3));
  KNOWN(usher_delegate_clear_stream_tokens, (streams));
  ssp.license_url = v2_url();
  v2.ssp = &ssp;
  KNOWN(usher_ssp_v2_delegate_new, (context, &v2, &second));
  playback = started(context, second, content_token(), NULL);
  licensed(playback, USHER_KEY_SYSTEM_WIDEVINE);
  ended(playback);
}
static void walk_customer(usher_context *context) {
  usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
  usher_customer_callbacks callbacks = USHER_CUSTOMER_CALLBACKS_INIT;
  usher_delegate *delegate = NULL;
  usher_playback *playback;
  KNOWN(usher_customer_delegate_new, (context, &options, &delegate));
  callbacks.license = answer_license;
  callbacks.heartbeat = callbacks.teardown = answer_call;
  KNOWN(usher_delegate_set_customer_callbacks, (delegate, &callbacks, &destroyed, DESTROY));
  playback = started(context, delegate, NULL, NULL);
  licensed(playback, USHER_KEY_SYSTEM_FAIRPLAY);
  ended(playback);
}
static void walk_loader(usher_context *context) {
  usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
  usher_loader *loader = NULL;
  usher_playback *playback;
  usher_response *response = NULL;
  uint64_t id = 0;
  options.spc = answer_spc;
  options.server = answer_server;
  options.user_data = &destroyed;
  options.destroy = DESTROY;
  KNOWN(usher_context_add_loader, (context, &options, &loader));
  playback = started(context, NULL, NULL, NULL);
  KNOWN(usher_playback_get_resource, (playback, ARG_BYTES, ARG_SIZE, 1000, &response));
  usher_response_free(response);
  KNOWN(usher_playback_get_resource, (playback, (const uint8_t *)"skd://two", 9, 1000, NULL));
  KNOWN(usher_playback_load_resource,
      (playback, (const uint8_t *)"skd://two", 9, 1000, plain_usher_license_fn, &destroyed, DESTROY, &id));
  KNOWN(usher_playback_cancel_load, (playback, id));
  ended(playback);
  KNOWN(usher_loader_free, (loader));
}
static void walk_delegates(void) {
  usher_context *context = opened();
  if (!context) return;
  walk_hooks(context);
  walk_streams(context);
  walk_customer(context);
  walk_loader(context);
  KNOWN(usher_context_begin_close, (context, 1000));
  KNOWN(usher_context_free, (context));
}

/* ---- pumped mode and the manual clock ---------------------------------------------------------------------------- */

static void walk_modes(void) {
  usher_context *context = opened_as(USHER_CALLBACKS_PUMPED, USHER_CLOCK_MANUAL);
  usher_delegate *delegate = NULL;
  usher_playback *playback;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  struct plain arguments = plain_defaults, *plain = &arguments;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  usher_metrics metrics = USHER_METRICS_INIT;
  uint8_t page[16384];
  size_t size = sizeof page;
  int round;
  if (!context) return;
  ssp.license_url = license_url();
  ssp.ssm_url = ssm_url();
  KNOWN(usher_context_pump_fd, (context, ARG_OUT(int)));
  KNOWN(usher_ssp_delegate_new, (context, &ssp, &delegate));
  playback = started(context, delegate, content_token(), NULL);
  KNOWN(usher_playback_request_license, (playback, &request, plain_usher_license_fn, &destroyed, DESTROY));
  for (round = 0; round < 4; round++) {
    KNOWN(usher_context_settle, (context, 0, UINT32_MAX, 2000));
    KNOWN(usher_context_pump, (context, ARG_OUT(uint32_t)));
    KNOWN(usher_context_advance, (context, 500, 2000));
    KNOWN(usher_context_jump, (context, 500));
    KNOWN(usher_context_pending, (context, ARG_FILLED(usher_pending)));
  }
  KNOWN(usher_context_metrics, (context, &metrics));
  KNOWN(usher_metrics_text, (&metrics, "screen=\"3\"", page, &size));
  KNOWN(usher_playback_close, (playback, USHER_CLOSE_TEARDOWN));
  KNOWN(usher_context_free, (context));
}

#endif
