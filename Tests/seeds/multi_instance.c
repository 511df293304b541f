/*
 * multi_instance.c - several players at the same time, ported line by line to C.
 * S2:17 is line 17 of document S2 (see README.md).
 *
 *   multi_instance DELEGATE CERTIFICATE_URL LICENSE_URL SSM_URL
 *
 * DELEGATE: "none"; "default", the OTVDefaultLicenseDelegate; "own", the MultiInstanceDelegate of the seed's example,
 * which the application writes; "library", the multi-instance delegate of the library, which also has sessions.
 * Actions on standard input: header VALUE, token TOKEN CONTENT_ID, remove CONTENT_ID, play PLAYER CLIP SKD_URL,
 * clear PLAYER CLIP, stop PLAYER. PLAYER: 0 or 1.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "av_player.h"
#include <pthread.h>
#include <stdlib.h>
#include <usher/usher.h>

/* Seed S2, line 15: MultiInstanceDelegate, a subclass of OTVCommonLicenseDelegate. The application writes this
   class. */
typedef struct multi_instance_delegate {
  pthread_mutex_t lock;
  struct {
    char *content_id, *token;
  } token_id_map[8]; /* S2:21  tokenIDMap */
} multi_instance_delegate;

/* Seed S2, line 17: setStreamToken: the token is "stored in a map using the content ID as the key". NULL removes the
   token (line 21). */
static void set_stream_token(multi_instance_delegate *me, const char *token, const char *content_id) {
  int i, place = -1;
  pthread_mutex_lock(&me->lock);
  for (i = 7; i >= 0; i--) {
    if (!me->token_id_map[i].content_id) place = place < 0 ? i : place;
    if (me->token_id_map[i].content_id && strcmp(me->token_id_map[i].content_id, content_id) == 0) {
      free(me->token_id_map[i].content_id);
      free(me->token_id_map[i].token);
      me->token_id_map[i].content_id = me->token_id_map[i].token = NULL;
      place = i;
    }
  }
  if (token && place >= 0) {
    me->token_id_map[place].content_id = strdup(content_id);
    me->token_id_map[place].token = strdup(token);
  }
  pthread_mutex_unlock(&me->lock);
}

/* Seed S2, line 19: generateHTTPHeaders(assetID). The asset ID is "base-64 encoded JSON which includes the SSP content
   ID". */
static void generate_http_headers(const usher_hook_call *call, void *user_data) {
  multi_instance_delegate *me = (multi_instance_delegate *)user_data;
  char content_id[512] = "", headers[8192] = "";
  size_t size = sizeof content_id - 1;
  int i;
  if (usher_content_id(call->asset_id, call->asset_id_size, USHER_CONTENT_ID_SSP, (uint8_t *)content_id, &size) == 0)
    content_id[size] = 0;
  pthread_mutex_lock(&me->lock);
  /* Seed S2, line 19: the page says "The stream's token can then be pulled from the map". */
  for (i = 0; i < 8; i++)
    if (me->token_id_map[i].content_id && strcmp(me->token_id_map[i].content_id, content_id) == 0)
      snprintf(headers, sizeof headers, "nv-authorizations: %s", me->token_id_map[i].token);
  pthread_mutex_unlock(&me->lock);
  usher_complete_headers(call->completion, headers[0] ? headers : NULL);
}

/* S2:5  "create two players" */
typedef struct screen {
  usher_player *player;
  usher_playback *item;
} screen;

static void start(screen *me, const usher_playback_options *item) {
  int32_t status;
  usher_playback_free(me->item);
  me->item = NULL;
  status = usher_player_play(me->player, item, &me->item);
  if (status) printf("play: %s\n", usher_status_name(status));
}

/* Seed S2, line 23: the page says "the clear stream does not require a license and so does not have a token or content
   ID". */
static void play_clear(screen *me, const char *clip) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  item.clear = 1;
  start(me, &item);
  if (me->item) decode(clip, "");
}

/* Seed S2, line 19: plays an encrypted stream. The sentence "When a license request is made ..." describes this. */
static void play(screen *me, const char *clip, const char *skd) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  usher_response *content_id = NULL, *ckc = NULL;
  usher_response_info id = USHER_RESPONSE_INFO_INIT, got = USHER_RESPONSE_INFO_INIT;
  const char *asset_id = skd + strlen("skd://");
  spc asked;
  int32_t status;
  start(me, &item);
  if (!me->item) return;
  status = usher_playback_get_content_id(me->item, (const uint8_t *)skd, strlen(skd), 0, &content_id);
  if (!status) status = usher_response_get(content_id, &id);
  if (!status) {
    cdm_make_spc(&asked, NULL, 0, id.data, id.data_size);
    request.key_system = USHER_KEY_SYSTEM_FAIRPLAY;
    request.payload = asked.bytes;
    request.payload_size = asked.size;
    request.asset_id = (const uint8_t *)asset_id;
    request.asset_id_size = strlen(asset_id);
    status = usher_playback_get_license(me->item, &request, &ckc);
  }
  if (!status) status = usher_response_get(ckc, &got);
  if (!status) cdm_play(clip, &asked, got.data, got.data_size);
  if (status) printf("no licence: %s\n", usher_status_name(status));
  usher_response_free(content_id);
  usher_response_free(ckc);
}

int main(int argc, char **argv) {
  usher_context *drm_manager = NULL; /* OTVDRMManager.shared */
  usher_delegate *license_delegate = NULL;
  multi_instance_delegate own;
  screen screens[2] = {{NULL, NULL}, {NULL, NULL}};
  usher_default_options urls = USHER_DEFAULT_OPTIONS_INIT;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  action next;
  int32_t status;
  if (argc < 5 || !main_queue_open()) return 2;
  memset(&own, 0, sizeof own);
  pthread_mutex_init(&own.lock, NULL);
  urls.certificate_url = ssp.certificate_url = argv[2];
  urls.license_url = ssp.license_url = argv[3];
  ssp.ssm_url = argv[4];
  status = usher_context_new(NULL, &drm_manager);
  if (!status && strcmp(argv[1], "default") == 0) /* S2:13  OTVDefaultLicenseDelegate */
    status = usher_default_delegate_new(drm_manager, &urls, &license_delegate);
  if (!status && strcmp(argv[1], "own") == 0) { /* S2:15  "OTVCommonLicenseDelegate subclassed" */
    hooks.http_headers = generate_http_headers;
    status = usher_common_delegate_new(drm_manager, &urls, &hooks, &own, NULL, &license_delegate);
  }
  if (!status && strcmp(argv[1], "library") == 0)
    status = usher_multi_instance_delegate_new(drm_manager, &ssp, NULL, &license_delegate);
  if (!status && license_delegate) status = usher_context_set_delegate(drm_manager, license_delegate);
  if (!status) status = usher_player_new(drm_manager, &screens[0].player);
  if (!status) status = usher_player_new(drm_manager, &screens[1].player);
  if (status) return 2;
  while (main_queue_next(&next)) {
    screen *at = &screens[word(&next, 1)[0] == '1'];
    const char *content_id = word(&next, is(&next, "token") ? 2 : 1);
    const char *token = is(&next, "token") ? word(&next, 1) : NULL;
    if (is(&next, "header")) /* S2:17  setHTTPHeader */
      usher_delegate_set_http_header(license_delegate, "nv-authorizations", word(&next, 1));
    if (is(&next, "token") || is(&next, "remove")) { /* S2:17, S2:21 */
      if (strcmp(argv[1], "own") == 0) set_stream_token(&own, token, content_id);
      else if (token)
        usher_delegate_set_stream_token(license_delegate, (const uint8_t *)content_id, strlen(content_id), token);
      else usher_delegate_remove_stream_token(license_delegate, (const uint8_t *)content_id, strlen(content_id));
    }
    if (is(&next, "play")) play(at, word(&next, 2), word(&next, 3));
    if (is(&next, "clear")) play_clear(at, word(&next, 2));
    if (is(&next, "stop")) usher_player_stop(at->player, USHER_CLOSE_DEFAULT);
  }
  usher_context_free(drm_manager); /* no hook runs afterwards */
  return 0;
}
