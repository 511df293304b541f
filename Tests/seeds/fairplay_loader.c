/*
 * fairplay_loader.c - the FairPlay resource loader of the seed, ported line by line to C. S4:67 is line 67 of the
 * seed S4.
 *
 *   fairplay_loader USE_CASE SERVER_URL SKD_URL CERTIFICATE CLIP CONTENT_ID [device_registered]
 *
 * USE_CASE 0: SERVER_URL is the ExpressPlay token URL, hard-coded for a test. 1: SERVER_URL is an on-premise FairPlay
 * server. 2: SERVER_URL is the entitlement server, or "-" if the `skd:` URL contains its URL. 3: the `skd:` URL is the
 * ExpressPlay token URL. CERTIFICATE is a file. The application uses CONTENT_ID if the `skd:` URL has no content id.
 * Prints the pictures of the clip or the error, and each event's name.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "av_player.h"
#include <stdlib.h>
#include <usher/usher.h>

typedef struct app {
  int use_case;
  const char *server, *content_id;
  spc asked;
} app;

/* Seed S4, line 77: getMyAssetIdentifierFromURL(url): returns the content id in the URL. A packager may write
 * `skd:{entitlement_server_url}?cid={content_id}` or `skd:{content_id}` (line 31), or the content id after a semicolon.
 * If the URL has no content id (line 33), the function returns the one that the application knows. */
static const char *my_asset_identifier(const app *me, const uint8_t *url, size_t size, char text[2048]) {
  static const char *const marks[] = {"?cid=", ";", "skd://", "skd:"};
  size_t i;
  snprintf(text, 2048, "%.*s", (int)size, (const char *)url);
  for (i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    const char *mark = strstr(text, marks[i]);
    if (mark && mark[strlen(marks[i])] && strcmp(mark, "skd://") != 0) return mark + strlen(marks[i]);
  }
  return me->content_id;
}

/* Seed S4, lines 17-21: the application decides to which server the request goes, and how to get the ExpressPlay
   token. */
static void should_wait_for_loading(const usher_server_request *request, void *user_data) {
  const app *me = (const app *)user_data;
  char text[2048], derived[2048];
  const char *asset_id = my_asset_identifier(me, request->url, request->url_size, text);
  usher_entitlement wanted = USHER_ENTITLEMENT_INIT;
  wanted.content_id = (const uint8_t *)asset_id;
  wanted.content_id_size = strlen(asset_id);
  switch (me->use_case) {
  /* Seed S4, line 48: the constant NSString* const EXPRESSPLAY_TOKEN = @"https://..." */
  case 0: usher_complete_server(request->completion, me->server, NULL); break;
  case 1: /* S4:85  strUrl = getOnPremiseServerUrl(strUrl, assetId) */
    usher_complete_server(request->completion, me->server, "X-Asset: on-premise");
    break;
  /* Seed S4, line 106: the page calls strUrl = getExpressPlayTokenUrlFromEntilementServer(strUrl, assetId, true,
     &error) */
  case 2:
    wanted.url = me->server;
    if (strcmp(me->server, "-") == 0) {
      /* Seed S4, line 67: replaces "skd://" in strUrl, here by "http://", because the server listens on loopback. */
      const char *strUrl = strstr(text, "//") ? strstr(text, "//") + 2 : text + strlen("skd:");
      snprintf(derived, sizeof derived, "http://%.*s", (int)strcspn(strUrl, "?"), strUrl);
      wanted.url = derived;
    }
    /* Seed S4, lines 99-103: bEnforceDeviceID. If it is false, the library asks for a token that registers the device;
       if it is true, for a token that only this device can use. */
    wanted.token_kind = request->token_kind;
    usher_complete_entitlement(request->completion, &wanted);
    break;
  default:
    /* Seed S4, line 109: the page says "strUrl is already the ExpressPlay Token Url". The library replaces the scheme
     * `skd:` of this URL by the option `derived_scheme`. The seed replaces it, too (line 167). */
    usher_complete_builtin(request->completion);
  }
}

/* Seed S4, line 120: makes the SPC, as [loadingRequest streamingContentKeyRequestDataForApp:...] does. */
static void make_spc(const usher_spc_request *request, void *user_data) {
  app *me = (app *)user_data;
  char text[2048];
  const char *asset_id = my_asset_identifier(me, request->url, request->url_size, text);
  cdm_make_spc(
      &me->asked, request->certificate, request->certificate_size, (const uint8_t *)asset_id, strlen(asset_id));
  memcpy(me->asked.bytes + 56, "this tv", 7); /* the device */
  usher_complete_payload(request->completion, me->asked.bytes, me->asked.size);
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
  if (argc < 7) return 2;
  memset(&me, 0, sizeof me);
  me.use_case = atoi(argv[1]);
  me.server = argv[2];
  me.content_id = argv[6];
  options.certificate_file = argv[4]; /* S4:114-117 */
  options.server = should_wait_for_loading;
  options.spc = make_spc;
  options.user_data = &me;
  options.content_id_rule = USHER_CONTENT_ID_HOST;
  options.allowed_hosts = "127.0.0.1:*";
  options.derived_scheme = "http";
  if (me.use_case == 2) {
    options.device_binding = 1;
    options.customer_cookie = "household-1";
    options.device_registered = argc > 7;
  }
  if (me.use_case == 3) options.route = USHER_ROUTE_TOKEN_URL;

  status = usher_context_new(NULL, &context);
  if (!status) status = usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  /* S4:174  [[PTDefaultMediaPlayerClientFactory defaultFactory] registerPTAVAssetResourceLoader:resourceLoader] */
  if (!status) status = usher_context_add_loader(context, &options, &loader);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  if (!status) {
    usher_response *response = NULL;
    usher_response_info info = USHER_RESPONSE_INFO_INIT;
    status = usher_playback_get_resource(playback, (const uint8_t *)argv[3], strlen(argv[3]), 0, &response);
    usher_response_get(response, &info);
    if (!status) cdm_play(argv[5], &me.asked, info.data, info.data_size); /* S4:136  finishLoadingWithResponse: */
    if (status) /* S4:141  finishLoadingWithError: */
      printf("error %s: %s\n", usher_status_name(status), info.error.message ? info.error.message : "");
    usher_response_free(response);
  }
  usher_context_close(context, 0, NULL);
  usher_context_free(context);
  return status != USHER_OK;
}
