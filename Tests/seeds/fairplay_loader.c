/*
 * fairplay_loader.c - the FairPlay resource loader of the seed, ported line by line to C.
 *
 *   fairplay_loader USE_CASE SERVER_URL SKD_URL [device_registered]
 *
 * USE_CASE 1: SERVER_URL is an on-premise FairPlay server. 2: SERVER_URL is the entitlement server. 3: the `skd:` URL
 * is the ExpressPlay token URL. Prints "CKC <size>" or the error, then each event's name.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <usher/usher.h>

typedef struct app {
  int use_case;
  const char *server;
} app;

/* getMyAssetIdentifierFromURL(url): the packager of this example writes skd://<content id>, or puts the content id
   after a semicolon. */
static size_t my_asset_identifier(const uint8_t *url, size_t size, uint8_t *asset_id) {
  size_t start = size;
  while (start > 0 && url[start - 1] != ';') start--;
  if (start == 0) start = size < 6 ? size : 6;
  memcpy(asset_id, url + start, size - start);
  return size - start;
}

/* The application decides to which server the licence request goes, and how to get the ExpressPlay token. */
static void should_wait_for_loading(const usher_server_request *request, void *user_data) {
  const app *me = user_data;
  uint8_t asset_id[1024];
  usher_entitlement wanted = USHER_ENTITLEMENT_INIT;
  if (request->url_size > sizeof asset_id) {
    usher_complete_server(request->completion, NULL, NULL);
    return;
  }
  wanted.content_id_size = my_asset_identifier(request->url, request->url_size, asset_id);
  wanted.content_id = asset_id;
  switch (me->use_case) {
  case 1: /* strUrl = getOnPremiseServerUrl(strUrl, assetId) */
    usher_complete_server(request->completion, me->server, "X-Asset: on-premise");
    break;
  case 2: /* strUrl = getExpressPlayTokenUrlFromEntilementServer(strUrl, assetId, true, &error) */
    wanted.url = me->server;
    wanted.token_kind = request->token_kind; /* bEnforceDeviceID: false registers the device, true needs it */
    usher_complete_entitlement(request->completion, &wanted);
    break;
  default: /* strUrl is already the ExpressPlay token URL; only its scheme skd:// must become http(s):// */
    usher_complete_builtin(request->completion);
  }
}

/* Makes the SPC: [loadingRequest streamingContentKeyRequestDataForApp:appCert contentIdentifier:assetId ...], with a
   test CDM. */
static void make_spc(const usher_spc_request *request, void *user_data) {
  uint8_t spc[2048] = "\0\0\0\1USPC";
  (void)user_data;
  memcpy(spc + 40, "sixteen bytes nrthis tv", 23);
  if (request->url_size > sizeof spc - 72) {
    usher_complete_payload(request->completion, NULL, 0);
    return;
  }
  usher_complete_payload(request->completion, spc, 72 + my_asset_identifier(request->url, request->url_size, spc + 72));
}

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  printf("event %s\n", usher_event_name(event->type));
}

int main(int argc, char **argv) {
  usher_context *context = NULL;
  usher_loader *loader = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_loader_options options = USHER_LOADER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  app me;
  int32_t status;
  if (argc < 4) return 2;
  me.use_case = atoi(argv[1]);
  me.server = argv[2];
  options.server = should_wait_for_loading;
  options.spc = make_spc;
  options.user_data = &me;
  options.content_id_rule = USHER_CONTENT_ID_HOST;
  options.allowed_hosts = "127.0.0.1:*";
  options.derived_scheme = "http";
  if (me.use_case == 2) {
    options.device_binding = 1;
    options.customer_cookie = "household-1";
    options.device_registered = argc > 4;
  }
  if (me.use_case == 3) options.route = USHER_ROUTE_TOKEN_URL;

  status = usher_context_new(NULL, &context);
  if (!status) status = usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  /* [[PTDefaultMediaPlayerClientFactory defaultFactory] registerPTAVAssetResourceLoader:resourceLoader] */
  if (!status) status = usher_context_add_loader(context, &options, &loader);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  if (!status) {
    usher_response *response = NULL;
    usher_response_info info = USHER_RESPONSE_INFO_INIT;
    status = usher_playback_get_resource(playback, (const uint8_t *)argv[3], strlen(argv[3]), 0, &response);
    usher_response_get(response, &info);
    /* finishLoadingWithResponse: or finishLoadingWithError: */
    if (status) printf("error %s: %s\n", usher_status_name(status), info.error.message ? info.error.message : "");
    if (!status) printf("CKC %d\n", (int)info.data_size);
    usher_response_free(response);
  }
  usher_context_close(context, 0, NULL);
  usher_context_free(context);
  return status != USHER_OK;
}
