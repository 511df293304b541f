/*
 * every_delegate.c - one story for every kind of delegate: default, common, SSP V2, multi-instance, customer SSM.
 * Further stories test a resource loader, a late token, a clear item, a sleep, and the functions that read contents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "film.h"
#include "support.h"

static int events[32], answers_told, asked[8], teardowns;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type > 0 && event->type < 32) add(&events[event->type], 1);
}
static usher_context *observed(void) {
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  memset(events, 0, sizeof events);
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  return context;
}
static usher_playback *start(usher_context *context, usher_delegate *delegate, const char *token) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  item.delegate = delegate;
  item.content_token = token;
  item.tag = 7;
  answers(USHER_OK, usher_player_play(new_player(context), &item, &playback), "an item is started");
  return playback;
}
/* @return a copy of the response's data, as text; "" if there are no data. Frees the response. */
static const char *text_of(usher_response *response) {
  static char text[4096];
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  text[0] = '\0';
  if (usher_response_get(response, &info) == USHER_OK && info.data_size < sizeof text)
    memcpy(text, info.data, info.data_size), text[info.data_size] = '\0';
  usher_response_free(response);
  return text;
}
static const char *licence_of(usher_playback *playback, const char *key_system) {
  usher_license_request request = a_request(key_system);
  usher_response *response = NULL;
  request.asset_id = (const uint8_t *)"skd://one";
  request.asset_id_size = 9;
  answers(USHER_OK, usher_playback_get_license(playback, &request, &response), "a licence comes");
  return text_of(response);
}

static void default_story(void) {
  usher_context *context = observed();
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  usher_playback *playback;
  int32_t state = -1;
  options.license_url = enforced_url();
  answers(USHER_OK, usher_default_delegate_new(context, &options, &delegate), "usher_default_delegate_new");
  answers(USHER_OK, usher_delegate_set_http_header(delegate, "X-C", "default"), "usher_delegate_set_http_header");
  answers(USHER_OK, usher_delegate_set_http_header(delegate, "X-Gone", "gone"), "a second header");
  answers(USHER_OK, usher_delegate_set_http_header(delegate, "x-gone", NULL),
      "a header removed by its name in another case");
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_http_header(delegate, NULL, "x"),
      "a header without a name is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_http_header(delegate, "A: b", "x"),
      "an invalid header name is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_http_header(delegate, "A", "x\ny"),
      "a header value of two lines is refused");
  playback = start(context, delegate, free_token());
  tell(strncmp(licence_of(playback, USHER_KEY_SYSTEM_FAIRPLAY), "CKC1", 4) == 0, "the licence's bytes");
  tell(sent("license", "\"X-C\", \"default\"") == 1 && sent("license", "X-Gone") == 0, "the head-end saw the header");
  usher_playback_session_state(playback, &state);
  tell(state == USHER_SESSION_NONE && held() == 0, "there is no session");
  usher_context_free(context);
}

/* The hooks for URL and body give the built-in answer; every other hook adds "mine" to it. */
static void on_hook(const usher_hook_call *call, void *user_data) {
  usher_response *builtin = NULL;
  char text[4200];
  add(&asked[call->hook], 1);
  if (call->tag != 7 || user_data != asked || call->struct_size < sizeof *call)
    tell(0, "a hook gets its own arguments");
  if (call->hook == USHER_HOOK_LICENSE_URL || call->hook == USHER_HOOK_LICENSE_BODY) {
    answers(USHER_OK, usher_complete_builtin(call->completion), "usher_complete_builtin");
    return;
  }
  answers(USHER_OK, usher_hook_builtin(call->completion, &builtin), "usher_hook_builtin");
  if (call->hook == USHER_HOOK_HEADERS) {
    snprintf(text, sizeof text, "%s\nX-C: hook", text_of(builtin));
    answers(USHER_OK, usher_complete_headers(call->completion, text), "usher_complete_headers");
  } else {
    snprintf(text, sizeof text, "%.8s mine", text_of(builtin));
    answers(
        USHER_OK, usher_complete_hook(call->completion, (const uint8_t *)text, strlen(text)), "usher_complete_hook");
  }
}
static void on_content_id(
    usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)user_data;
  if (tag == 7 && response->data_size == 8 && memcmp(response->data, "one mine", 8) == 0) add(&answers_told, 1);
}

static void common_story(void) {
  usher_context *context = observed();
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  usher_delegate *delegate = NULL;
  usher_playback *playback;
  usher_response *response = NULL;
  int index, all = 1;
  options.license_url = enforced_url();
  options.certificate_url = certificate_url();
  hooks.content_id = hooks.certificate = hooks.http_headers = hooks.license_url = hooks.license_body = hooks.license =
      on_hook;
  answers(USHER_OK, usher_common_delegate_new(context, &options, &hooks, asked, NULL, &delegate),
      "usher_common_delegate_new");
  playback = start(context, delegate, free_token());
  answers(USHER_OK, usher_playback_get_content_id(playback, (const uint8_t *)"skd://one", 9, 0, &response),
      "usher_playback_get_content_id");
  tell(strcmp(text_of(response), "one mine") == 0, "the content identifier of the hook");
  answers(USHER_OK,
      usher_playback_request_content_id(playback, (const uint8_t *)"skd://one", 9, on_content_id, NULL, NULL),
      "usher_playback_request_content_id");
  tell(reaches(&answers_told, 1, 5000), "the requested content identifier arrives");
  answers(USHER_OK, usher_playback_get_certificate(playback, 0, &response), "the hook's certificate");
  tell(strstr(text_of(response), " mine") != NULL, "the hook's certificate contains the hook's text");
  tell(strstr(licence_of(playback, USHER_KEY_SYSTEM_FAIRPLAY), " mine") != NULL, "the hook's licence");
  tell(sent("license", "\"X-C\", \"hook\"") == 1, "the head-end saw the hook's header");
  for (index = USHER_HOOK_CONTENT_ID; index <= USHER_HOOK_LICENSE; index++) all = all && asked[index] > 0;
  tell(all, "the library called all six hooks");
  answers(USHER_OK, usher_delegate_set_hooks(delegate, NULL, NULL, NULL), "usher_delegate_set_hooks: none");
  tell(strncmp(licence_of(playback, USHER_KEY_SYSTEM_FAIRPLAY), "CKC1", 4) == 0, "the built-in licence");
  usher_context_free(context);
}

static void v2_story(void) {
  usher_context *context = observed();
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_ssp_v2_options options = USHER_SSP_V2_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  usher_playback *playback;
  ssp.license_url = v2_url();
  ssp.ssm_url = ssm_url();
  options.ssp = &ssp;
  answers(USHER_OK, usher_ssp_v2_delegate_new(context, &options, &delegate), "usher_ssp_v2_delegate_new");
  playback = start(context, delegate, content_token());
  // shows: v2-play-sends-nothing
  tell(held() == 0, "no session before the first licence");
  licence_of(playback, USHER_KEY_SYSTEM_WIDEVINE);
  tell(held() == 1 && reaches(&events[USHER_EVENT_SESSION_STARTED], 1, 5000), "the licence opened one");
  tell(reaches(&events[USHER_EVENT_KEPT_ALIVE], 1, 5000), "which is kept alive");
  answers(USHER_OK, usher_playback_close(playback, USHER_CLOSE_TEARDOWN), "closed, to be torn down");
  usher_playback_wait_closed(playback, 5000);
  tell(held() == 0, "the session is torn down");
  licence_of(start(context, delegate, free_token()), USHER_KEY_SYSTEM_WIDEVINE);
  tell(reaches(&events[USHER_EVENT_NO_SESSION], 1, 5000), "a content that needs no session: NO_SESSION");
  usher_context_free(context);
}

static void tokens_story(void) {
  usher_context *context = observed();
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_token_map_options map = USHER_TOKEN_MAP_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  usher_playback *first = NULL, *second = NULL;
  usher_response *response = NULL;
  const uint8_t *one = (const uint8_t *)"o\0ne", *two = (const uint8_t *)"two";
  size_t count = 9;
  ssp.license_url = license_url();
  ssp.ssm_url = ssm_url();
  map.tokens_max = 2;
  answers(
      USHER_OK, usher_multi_instance_delegate_new(context, &ssp, &map, &delegate), "usher_multi_instance_delegate_new");
  answers(
      USHER_OK, usher_delegate_set_stream_token(delegate, one, 4, content_token()), "usher_delegate_set_stream_token");
  answers(USHER_E_NO_TOKEN, usher_delegate_get_stream_token(delegate, one, 1, &response),
      "content identifiers are compared as bytes, beyond the first NUL");
  tell(response == NULL, "no response");
  answers(USHER_OK, usher_delegate_get_stream_token(delegate, one, 4, &response), "usher_delegate_get_stream_token");
  tell(strcmp(text_of(response), content_token()) == 0, "the token that was set");
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_stream_token(delegate, two, 0, "x"),
      "a content identifier of no bytes is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_stream_token(delegate, two, (1u << 16) + 1, "x"),
      "a content identifier of 64 kB and a byte is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_stream_token(delegate, two, 3, "a\nb"),
      "a token of two lines is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_stream_token(delegate, two, 3, NULL), "no token");
  item.delegate = delegate;
  item.content_id = one;
  item.content_id_size = 4;
  usher_player_play(new_player(context), &item, &first);
  item.content_id = two;
  item.content_id_size = 3;
  usher_player_play(new_player(context), &item, &second);
  answers(USHER_OK, usher_playback_wait_session(first, 0, NULL), "a session with the token of its content");
  answers(USHER_OK, usher_delegate_set_stream_token(delegate, two, 3, content_token()), "a token that comes later");
  answers(USHER_OK, usher_playback_wait_session(second, 0, NULL), "the playback that waited for it continues");
  tell(held() == 2, "two streams, two sessions");
  answers(USHER_E_FULL, usher_delegate_set_stream_token(delegate, (const uint8_t *)"three", 5, "x"),
      "a third token, while playbacks hold both");
  answers(USHER_OK, usher_delegate_count_stream_tokens(delegate, &count), "usher_delegate_count_stream_tokens");
  tell(count == 2, "the map has two tokens");
  answers(USHER_OK, usher_delegate_remove_stream_token(delegate, two, 3), "usher_delegate_remove_stream_token");
  answers(USHER_E_NO_TOKEN, usher_delegate_remove_stream_token(delegate, two, 3),
      "the token cannot be removed a second time");
  answers(USHER_OK, usher_delegate_clear_stream_tokens(delegate), "usher_delegate_clear_stream_tokens");
  usher_delegate_count_stream_tokens(delegate, &count);
  tell(count == 0, "no token is left");
  answers(USHER_E_STATE, usher_delegate_count_stream_tokens(new_delegate(context, license_url()), &count),
      "a delegate without a map has no count");
  usher_context_free(context);
}

static void on_license(const usher_customer_request *request, void *user_data) {
  usher_customer_license license = USHER_CUSTOMER_LICENSE_INIT;
  (void)user_data;
  if (request->tag != 7 || request->payload_size != 9 || request->asset_id_size != 9 ||
      request->struct_size < sizeof *request)
    tell(0, "a callback gets its own arguments");
  license.license = request->payload;
  license.license_size = request->payload_size;
  license.heartbeat_s = 0.2;
  license.renew_type = USHER_RENEW_HEARTBEAT;
  answers(USHER_OK, usher_complete_license(request->completion, &license), "usher_complete_license");
}
static void on_heartbeat(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  answers(USHER_OK, usher_complete_call(completion, USHER_OK), "usher_complete_call");
}
static void on_teardown(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  add(&teardowns, 1);
  usher_complete_call(completion, USHER_OK);
}
static void customer_story(void) {
  usher_context *context = observed();
  usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  usher_playback *playback;
  options.license = on_license;
  options.heartbeat = on_heartbeat;
  options.teardown = on_teardown;
  answers(USHER_OK, usher_customer_delegate_new(context, &options, &delegate), "usher_customer_delegate_new");
  playback = start(context, delegate, NULL);
  tell(strcmp(licence_of(playback, USHER_KEY_SYSTEM_FAIRPLAY), "challenge") == 0, "the licence the callback made");
  tell(reaches(&events[USHER_EVENT_KEPT_ALIVE], 2, 5000) && get(&events[USHER_EVENT_SESSION_STARTED]) == 1,
      "a session, kept alive");
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  usher_playback_wait_closed(playback, 5000);
  tell(get(&teardowns) == 1, "the library asks for one teardown");
  usher_context_free(context);
}

static void on_spc(const usher_spc_request *request, void *user_data) {
  (void)user_data;
  if (request->content_id_size == 5) return; /* "later": no answer */
  answers(USHER_OK, usher_complete_payload(request->completion, (const uint8_t *)"SPC", 3), "an SPC");
}
static void on_server(const usher_server_request *request, void *user_data) {
  usher_entitlement entitlement = USHER_ENTITLEMENT_INIT;
  (void)user_data;
  if (memcmp(request->url, "skd://one", request->url_size) == 0) {
    answers(USHER_OK, usher_complete_server(request->completion, enforced_url(), "X-Mine: 1"), "a server of the host");
    return;
  }
  entitlement.url = license_url();
  entitlement.token_kind = USHER_TOKEN_DEVICE_BOUND;
  answers(USHER_OK, usher_complete_entitlement(request->completion, &entitlement), "an entitlement server of the host");
}
static void on_token_url(const usher_server_request *request, void *header) {
  tell(request->entitlement_id_size == 3 && memcmp(request->entitlement_id, "one", 3) == 0, "the entitlement's id");
  answers(USHER_OK, usher_complete_server(request->completion, enforced_url(), (const char *)header), "a token URL");
}
static void on_ckc(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  if (response->error.status == USHER_E_CLOSED) add((int *)user_data, 1);
}
static void loader_story(void) {
  usher_context *context = observed();
  usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
  usher_loader *loader = NULL;
  usher_playback *playback;
  usher_response *response = NULL;
  char header[8192];
  uint64_t id = 0;
  int cancelled = 0;
  int32_t status;
  snprintf(header, sizeof header, "nv-authorizations: %s", free_token());
  options.license_url = enforced_url();
  options.extra_headers = header;
  options.spc = on_spc;
  answers(USHER_OK, usher_context_add_loader(context, &options, &loader), "usher_context_add_loader");
  playback = start(context, NULL, NULL);
  answers(USHER_OK, usher_playback_get_resource(playback, (const uint8_t *)"skd://one", 9, 0, &response),
      "usher_playback_get_resource");
  tell(strncmp(text_of(response), "CKC1", 4) == 0, "the CKC");
  answers(USHER_OK,
      usher_playback_load_resource(playback, (const uint8_t *)"skd://later", 11, 0, on_ckc, &cancelled, NULL, &id),
      "usher_playback_load_resource");
  answers(USHER_OK, usher_playback_cancel_load(playback, id), "usher_playback_cancel_load");
  tell(reaches(&cancelled, 1, 5000), "told so");
  answers(USHER_E_STATE, usher_playback_cancel_load(playback, id), "the load cannot be cancelled a second time");
  answers(USHER_E_STATE, usher_playback_cancel_load(playback, 0), "a load that does not exist cannot be cancelled");
  answers(USHER_E_DECLINED, usher_playback_get_resource(playback, (const uint8_t *)"abc://one", 9, 0, &response),
      "another scheme");
  options.license_url = NULL;
  options.server = on_server;
  answers(USHER_OK, usher_context_add_loader(context, &options, &loader), "a loader whose host chooses the servers");
  answers(USHER_OK, usher_playback_get_resource(playback, (const uint8_t *)"skd://one", 9, 0, &response),
      "a licence from the host's server");
  tell(strncmp(text_of(response), "CKC1", 4) == 0, "its CKC");
  status = usher_playback_get_resource(playback, (const uint8_t *)"skd://two", 9, 0, NULL);
  tell(status != USHER_OK && status != USHER_E_CALLBACK, "the host's entitlement server is asked, and names no URL: %s",
      usher_status_name(status));
  options.server = NULL;
  options.route = USHER_ROUTE_ENTITLEMENT;
  options.token_url = on_token_url;
  options.user_data = header;
  options.extra_headers = NULL;
  answers(USHER_OK, usher_context_add_loader(context, &options, &loader), "a loader whose host gets the token URLs");
  answers(USHER_OK, usher_playback_get_resource(playback, (const uint8_t *)"skd://one", 9, 0, &response),
      "a CKC from the host's token URL");
  tell(strncmp(text_of(response), "CKC1", 4) == 0, "this CKC");
  answers(USHER_OK, usher_loader_free(loader), "usher_loader_free");
  answers(USHER_OK, usher_loader_free(NULL), "of none");
  answers(USHER_E_DECLINED, usher_playback_get_resource(playback, (const uint8_t *)"skd://one", 9, 0, NULL),
      "without a loader");
  usher_context_free(context);
}

static void of_a_playback(void) {
  usher_context *context = observed();
  usher_delegate *delegate = new_delegate(context, license_url());
  usher_playback_options clear = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = start(context, delegate, NULL), *other = NULL;
  int32_t state = -1;
  answers(
      USHER_E_INVALID_ARGUMENT, usher_playback_set_content_token(playback, NULL), "a late token of NULL is refused");
  answers(USHER_E_INVALID_ARGUMENT, usher_playback_set_content_token(playback, "a\nb"),
      "a late token of two lines is refused");
  answers(USHER_OK, usher_playback_set_content_token(playback, content_token()), "usher_playback_set_content_token");
  answers(USHER_OK, usher_playback_wait_session(playback, 0, NULL), "the session is set up with the late token");
  answers(USHER_E_STATE, usher_playback_set_content_token(playback, content_token()), "a second token");
  answers(USHER_OK, usher_playback_suspend(playback), "usher_playback_suspend");
  answers(USHER_OK, usher_playback_resume(playback), "usher_playback_resume");
  answers(USHER_OK, usher_context_suspend(context), "usher_context_suspend");
  answers(USHER_OK, usher_context_resume(context), "usher_context_resume");
  answers(USHER_OK, usher_context_network_changed(context), "usher_context_network_changed");
  tell(reaches(&events[USHER_EVENT_KEPT_ALIVE], 1, 5000), "the session is kept alive");
  clear.delegate = delegate;
  clear.clear = 1;
  usher_player_play(new_player(context), &clear, &other);
  answers(USHER_OK, usher_playback_wait_session(other, 0, NULL), "a clear item");
  usher_playback_session_state(other, &state);
  tell(state == USHER_SESSION_NONE && held() == 1, "a clear item has no session");
  usher_context_free(context);
}

/* The server refuses set-up and asks the client to wait. Then a licence request fails for the same reason. */
static void refused_setup(void) {
  usher_context *context = observed();
  usher_license_request request = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  usher_response *response = NULL;
  usher_playback *playback;
  fault("{\"route\":\"setup\",\"fault\":{\"kind\":\"reply\",\"status\":503,\"headers\":{\"Retry-After\":\"7\"}}}");
  playback = start(context, new_delegate(context, license_url()), content_token());
  answers(USHER_E_HTTP, usher_playback_wait_session(playback, 0, &response), "set-up is refused");
  answers(USHER_OK, usher_response_get(response, &info), "the error of set-up");
  tell(info.error.status == USHER_E_HTTP && info.error.http_status == 503 && info.error.must_stop == 1 &&
           info.error.operation == USHER_OPERATION_SETUP && info.error.already_reported == 0 &&
           info.error.tls_fault == USHER_TLS_FAULT_NONE,
      "wait_session gives the whole error");
  tell(info.error.retry_after_ms == 7000, "it has the time of Retry-After");
  usher_response_free(response);
  response = NULL;
  answers(USHER_E_HTTP, usher_playback_get_license(playback, &request, &response), "a licence without a session");
  tell(usher_response_get(response, &info) == USHER_OK && info.error.already_reported == 1,
      "the error of the licence request is reported already");
  usher_response_free(response);
  usher_context_free(context);
}

static void count_protection(const usher_protection *protection, void *user_data) {
  if (protection->struct_size >= sizeof *protection && protection->key_system) add((int *)user_data, 1);
}
struct file {
  size_t size; /* how many bytes of `film` the file contains */
  int parts, is_broken;
  uint8_t key_id[16];
  char scheme[5];
};
static int64_t read_file(uint64_t offset, uint8_t *buffer, size_t size, void *user_data) {
  const struct file *file = user_data;
  size_t count = 0;
  if (file->is_broken) return -7;
  for (; count < size && offset + count < file->size; count++) buffer[count] = film[offset + count];
  return (int64_t)count;
}
static void on_part(const usher_protection *protection, void *user_data) {
  struct file *file = user_data;
  if (file->parts++ > 0) return;
  tell(protection->part == USHER_PART_FILE && protection->key_id_count == 1, "the first part is the whole file");
  memcpy(file->key_id, protection->key_ids, 16), memcpy(file->scheme, protection->scheme, 5);
}
static void clear_key(void) {
  static const char *const license = film_license;
  struct file file = {.size = sizeof film}, cut = {.size = sizeof film - 9}, broken = {.is_broken = 1};
  char message[128];
  uint8_t request[128];
  usher_clearkey_key keys[2];
  size_t size = sizeof request, count = 2;
  answers(USHER_OK, usher_read_mp4(read_file, on_part, &file, message, sizeof message), "usher_read_mp4");
  tell(file.parts == 2 && file.key_id[15] == 15 && strcmp(file.scheme, "cenc") == 0 && !*message,
      "the file and its track: %s", message);
  answers(USHER_E_PROTOCOL, usher_read_mp4(read_file, on_part, &cut, message, sizeof message), "a file that is cut");
  tell(strcmp(message,
           "moov/trak[1]/mdia/minf/stbl/stsd/encv/sinf/schi/tenc: the box ends before the end of the key id") == 0 &&
           cut.parts == 0,
      "the path of the box: %s", message);
  answers(USHER_E_CALLBACK, usher_read_mp4(read_file, on_part, &broken, NULL, 0), "a callback that fails");
  answers(USHER_E_INVALID_ARGUMENT, usher_read_mp4(NULL, on_part, &file, message, 5), "no callback");
  tell(strlen(message) == 4, "the message is cut");
  answers(USHER_OK, usher_clearkey_request(file.key_id, 1, request, &size), "usher_clearkey_request");
  tell(size == 54 && memcmp(request, "{\"kids\":[\"AAECAwQFBgcICQoLDA0ODw\"],\"type\":\"temporary\"}", size) == 0,
      "the request: %.*s", (int)size, (const char *)request);
  size = 53;
  answers(USHER_E_TOO_LARGE, usher_clearkey_request(file.key_id, 1, request, &size), "a small buffer");
  answers(USHER_OK,
      usher_clearkey_keys((const uint8_t *)license, strlen(license), keys, &count, message, sizeof message),
      "usher_clearkey_keys");
  tell(count == 1 && memcmp(keys[0].key_id, file.key_id, 16) == 0 && keys[0].key[15] == 15, "the key: %s", message);
  answers(USHER_E_TOO_LARGE, usher_clearkey_keys((const uint8_t *)license, strlen(license), NULL, &count, NULL, 0),
      "without room it returns the number of keys");
  tell(count == 1, "one key");
  answers(USHER_E_PROTOCOL, usher_clearkey_keys((const uint8_t *)"{}", 2, keys, &count, message, sizeof message),
      "no licence");
  tell(strcmp(message, "the licence has no array \"keys\"") == 0 && count == 0, "in words: %s", message);
}

static void contents(void) {
  static const uint8_t pssh[] = {0, 0, 0, 52, 'p', 's', 's', 'h', 1, 0, 0, 0, 0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d,
      0x02, 0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b, 0, 0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
      14, 15, 0, 0, 0, 0};
  static const uint8_t tenc[] = {
      0, 0, 0, 32, 't', 'e', 'n', 'c', 0, 0, 0, 0, 0, 0, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  static const char keys[] =
      "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://one\",KEYFORMAT=\"com.apple.streamingkeydelivery\"\n";
  static const char mpd[] = "<ContentProtection schemeIdUri=\"urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b\"/>";
  uint8_t buffer[256];
  size_t count = 0, size = 0;
  int known = 0;
  usher_error limit = {USHER_E_LIMIT, USHER_ORIGIN_SSM, USHER_OPERATION_SETUP, 400, 1007, "", 1, 0, 0, 0, 0};
  usher_legacy_codes codes;
  answers(USHER_OK, usher_read_pssh(pssh, sizeof pssh, count_protection, &known, &count), "usher_read_pssh");
  tell(count == 1 && known == 1, "one protection, of a known system");
  answers(USHER_OK, usher_read_tenc(tenc, sizeof tenc, count_protection, &known, &count), "usher_read_tenc");
  tell(count == 1, "one protection");
  answers(USHER_OK, usher_read_hls_keys((const uint8_t *)keys, strlen(keys), count_protection, &known, &count),
      "usher_read_hls_keys");
  tell(count == 1 && known == 2, "one protection, of a known system");
  answers(USHER_OK, usher_read_dash_protection((const uint8_t *)mpd, strlen(mpd), count_protection, &known, &count),
      "usher_read_dash_protection");
  tell(count == 1 && known == 3, "one protection, of a known system");
  answers(USHER_E_INVALID_ARGUMENT, usher_read_pssh(pssh, sizeof pssh, NULL, NULL, NULL),
      "usher_read_pssh without a callback");
  answers(USHER_E_TOO_LARGE, usher_content_id((const uint8_t *)"skd://host/x", 12, USHER_CONTENT_ID_HOST, NULL, &size),
      "usher_content_id without a buffer returns the size");
  tell(size == 4, "the size is four bytes");
  answers(USHER_OK, usher_content_id((const uint8_t *)"skd://host/x", 12, USHER_CONTENT_ID_HOST, buffer, &size),
      "usher_content_id");
  tell(size == 4 && memcmp(buffer, "host", 4) == 0, "the identifier is the host");
  answers(USHER_E_INVALID_ARGUMENT, usher_content_id((const uint8_t *)"skd://host/x", 12, 99, buffer, &size),
      "usher_content_id refuses an unknown rule");
  size = sizeof buffer;
  answers(USHER_OK, usher_rewrite_hls_keys((const uint8_t *)keys, strlen(keys), NULL, "http://x/", buffer, &size),
      "usher_rewrite_hls_keys");
  tell(size > 0 && memmem(buffer, size, "URI=\"http://x/0\"", 16) != NULL, "the playlist has the other URI");
  answers(USHER_OK, usher_error_legacy_codes(&limit, &codes), "usher_error_legacy_codes");
  tell(codes.react_native == 6004 && codes.android_what == -1352 && codes.android_extra == 1007 &&
           codes.apple_internal == 3010 && codes.apple_code == 400,
      "1007 in the numbers of other players");
  answers(USHER_E_INVALID_ARGUMENT, usher_error_legacy_codes(NULL, &codes), "usher_error_legacy_codes of a NULL error");
}

int main(void) {
  default_story();
  common_story();
  v2_story();
  tokens_story();
  customer_story();
  loader_story();
  of_a_playback();
  refused_setup();
  contents();
  clear_key();
  nothing_held("every delegate");
  return failed != 0;
}
