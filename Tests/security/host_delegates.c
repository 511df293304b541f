/*
 * host_delegates.c - a host that gets licences in the ways that host.c does not use: with hooks, a token map, customer
 * SSM and a resource loader.
 *
 *   stdin: a URL that replies with a licence to every request, a header, content token, payload, licence, cookie
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"

static struct { char *url, *header, *token, *payload, *licence, *cookie; } given;

static void on_hook(const usher_hook_call *call, void *user_data) {
  (void)user_data;
  if (call->hook == USHER_HOOK_HEADERS) {
    char lines[8192];
    snprintf(lines, sizeof lines, "%s\nnv-authorizations: %s", given.header, given.token);
    usher_complete_headers(call->completion, lines);
    explicit_bzero(lines, sizeof lines);
  } else if (call->hook == USHER_HOOK_LICENSE_BODY) {
    usher_complete_hook(call->completion, (const uint8_t *)given.payload, strlen(given.payload));
  } else {
    usher_complete_hook(call->completion, (const uint8_t *)given.licence, strlen(given.licence));
  }
}
static void on_license(const usher_customer_request *request, void *user_data) {
  usher_customer_license answer = USHER_CUSTOMER_LICENSE_INIT;
  (void)user_data;
  answer.license = (const uint8_t *)given.licence;
  answer.license_size = strlen(given.licence);
  usher_complete_license(request->completion, &answer);
}
static void on_spc(const usher_spc_request *request, void *user_data) {
  (void)user_data;
  usher_complete_payload(request->completion, (const uint8_t *)given.payload, strlen(given.payload));
}

static int licence_of(usher_context *context, usher_delegate *delegate, const char *token) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  int wrong = 0;
  item.delegate = delegate;
  item.content_token = token;
  item.content_id = (const uint8_t *)"movie";
  item.content_id_size = 5;
  request.key_system = USHER_KEY_SYSTEM_FAIRPLAY;
  request.payload = (const uint8_t *)given.payload;
  request.payload_size = strlen(given.payload);
  wrong |= check(usher_player_new(context, &player), "player");
  wrong |= check(usher_player_play(player, &item, &playback), "play");
  wrong |= check(usher_playback_get_license(playback, &request, &response), "licence");
  wrong |= check(usher_response_free(response), "response");
  wrong |= check(usher_playback_close(playback, USHER_CLOSE_DEFAULT), "close");
  wrong |= check(usher_playback_wait_closed(playback, 10000), "closed");
  wrong |= check(usher_playback_free(playback), "playback");
  wrong |= check(usher_player_free(player), "player");
  wrong |= check(usher_delegate_free(delegate), "delegate");
  return wrong;
}

static int by_hooks(usher_context *context) {
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  usher_delegate *delegate = NULL;
  options.license_url = given.url;
  hooks.http_headers = hooks.license_body = hooks.license = on_hook;
  return check(usher_common_delegate_new(context, &options, &hooks, NULL, NULL, &delegate), "common delegate") ||
         check(usher_delegate_set_http_header(delegate, "X-Set", strchr(given.header, ' ') + 1), "header") ||
         licence_of(context, delegate, given.token);
}

static int by_map(usher_context *context) {
  usher_ssp_options options = USHER_SSP_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  usher_response *response = NULL;
  int wrong = 0;
  options.license_url = given.url;
  options.extra_headers = given.header;
  wrong |= check(usher_multi_instance_delegate_new(context, &options, NULL, &delegate), "multi-instance delegate");
  wrong |= check(usher_delegate_set_stream_token(delegate, (const uint8_t *)"movie", 5, given.token), "token");
  wrong |= check(usher_delegate_set_stream_token(delegate, (const uint8_t *)"other", 5, given.token), "other token");
  wrong |= check(usher_delegate_get_stream_token(delegate, (const uint8_t *)"movie", 5, &response), "the token back");
  wrong |= check(usher_response_free(response), "response");
  wrong |= check(usher_delegate_remove_stream_token(delegate, (const uint8_t *)"other", 5), "other token removed");
  return wrong || licence_of(context, delegate, NULL);
}

static int by_own_servers(usher_context *context) {
  usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  options.license = on_license;
  return check(usher_customer_delegate_new(context, &options, &delegate), "customer delegate") ||
         licence_of(context, delegate, given.token);
}

static int by_loader(usher_context *context) {
  static const char url[] = "skd://movie";
  usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_loader *loader = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  int wrong = 0;
  options.license_url = given.url;
  options.extra_headers = given.header;
  options.customer_cookie = given.cookie;
  options.spc = on_spc;
  wrong |= check(usher_context_add_loader(context, &options, &loader), "loader");
  wrong |= check(usher_player_new(context, &player), "player");
  wrong |= check(usher_player_play(player, &item, &playback), "play");
  wrong |= check(usher_playback_get_resource(playback, (const uint8_t *)url, sizeof url - 1, 0, &response), "key");
  wrong |= check(usher_response_free(response), "response");
  wrong |= check(usher_playback_free(playback), "playback");
  wrong |= check(usher_player_free(player), "player");
  wrong |= check(usher_loader_free(loader), "loader");
  return wrong;
}

static int play(char *at, int is_held) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  int wrong = 0;
  given.url = line(&at);
  given.header = line(&at);
  given.token = line(&at);
  given.payload = line(&at);
  given.licence = line(&at);
  given.cookie = line(&at);
  if (is_held || !given.cookie || !line(&at)) return 1;
  options.proxy = "";
  wrong |= check(usher_context_new(&options, &context), "context");
  wrong |= by_hooks(context);
  wrong |= by_map(context);
  wrong |= by_own_servers(context);
  wrong |= by_loader(context);
  wrong |= check(usher_context_free(context), "context");
  return wrong;
}
