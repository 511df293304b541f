/*
 * ssp_delegate.c - the SSP licence delegate with SSM v1, ported line by line to C.
 * S0:18 is line 18 of document S0 (see README.md).
 *
 *   ssp_delegate CERTIFICATE_URL LICENSE_URL SSM_SERVER_URL SYNC [FRESH_TOKEN]
 *
 * SYNC: 0 or 1. FRESH_TOKEN: what token() returns; "-": token() returns nil. Without FRESH_TOKEN, the host sets no
 * token callback.
 * Actions on standard input: play CLIP SKD_URL TOKEN, airplay, background, foreground, picture-in-picture, stop.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "av_player.h"
#include <usher/usher.h>

typedef struct app {
  usher_context *drm_manager; /* OTVDRMManager.shared */
  usher_player *player; /* OTVAVPlayer */
  usher_playback *item; /* OTVAVPlayerItem */
  const char *fresh_token;
  action stream; /* the clip that plays, its skd: URL and its token */
} app;

/* S0:30  func token() -> String? */
static void token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  const app *me = (const app *)user_data;
  (void)playback, (void)tag;
  printf("token()\n");
  usher_complete_token(completion, strcmp(me->fresh_token, "-") == 0 ? NULL : me->fresh_token);
}

/* Seed S0, line 50: the method that the page declares as @objc func didReceiveSSMError(_ notification:
   NSNotification) */
static void did_receive_ssm_error(const usher_event *notification) {
  int64_t ssm_error = notification->error.service_code; /* S0:53  userInfo?["errorCode"] */
  int32_t code = notification->error.http_status; /* S0:55  userInfo?["code"] */
  const char *message = notification->error.message; /* S0:57  userInfo?["message"] */
  printf("%s: error %d HTTP status code %d and message %s\n", usher_event_name(notification->type), (int)ssm_error,
      (int)code, message);
  /* Seed S0, line 70: the page says "stop playback and attempt to zap to the same stream". */
  if (notification->type == USHER_EVENT_HEARTBEAT_ERROR) main_queue_post("zap\n");
}

/* S0:46-48  NotificationCenter.default.addObserver(...) */
static void observer(const usher_event *event, void *user_data) {
  (void)user_data;
  switch (event->type) {
  case USHER_EVENT_SETUP_ERROR:
  case USHER_EVENT_HEARTBEAT_ERROR:
  case USHER_EVENT_TEARDOWN_ERROR: did_receive_ssm_error(event); break;
  default: printf("%s\n", usher_event_name(event->type));
  }
}

/* Seed S0, line 28: FairPlay asks for a key when the item starts, and again when playback moves to AirPlay or back. */
static void key_request(app *me) {
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  usher_response *certificate = NULL, *content_id = NULL, *ckc = NULL;
  usher_response_info cert = USHER_RESPONSE_INFO_INIT, id = USHER_RESPONSE_INFO_INIT, got = USHER_RESPONSE_INFO_INIT;
  const uint8_t *url = (const uint8_t *)word(&me->stream, 2);
  const size_t url_size = strlen(word(&me->stream, 2));
  spc asked;
  int32_t status = usher_playback_get_certificate(me->item, 0, &certificate);
  if (!status) status = usher_response_get(certificate, &cert);
  if (!status) status = usher_playback_get_content_id(me->item, url, url_size, 0, &content_id);
  if (!status) status = usher_response_get(content_id, &id);
  if (!status) {
    cdm_make_spc(&asked, cert.data, cert.data_size, id.data, id.data_size);
    request.key_system = USHER_KEY_SYSTEM_FAIRPLAY;
    request.payload = asked.bytes;
    request.payload_size = asked.size;
    request.asset_id = url;
    request.asset_id_size = url_size;
    status = usher_playback_get_license(me->item, &request, &ckc);
  }
  if (!status) status = usher_response_get(ckc, &got);
  if (!status) cdm_play(word(&me->stream, 1), &asked, got.data, got.data_size);
  if (status) printf("no licence: %s\n", usher_status_name(status)); /* S0:6  "playback can not continue" */
  usher_response_free(certificate);
  usher_response_free(content_id);
  usher_response_free(ckc);
}

/* Seed S0, line 20: the page says "every playback will have an SSM session". */
static void play(app *me) {
  usher_playback_options stream = USHER_PLAYBACK_OPTIONS_INIT;
  int32_t state = USHER_SESSION_NONE, status;
  stream.content_token = word(&me->stream, 3);
  /* Seed S0, line 18: with the option for sync, this call "blocks the main thread". */
  status = usher_player_play(me->player, &stream, &me->item);
  usher_playback_session_state(me->item, &state);
  printf("play: %s, session %s\n", usher_status_name(status), state == USHER_SESSION_ACTIVE ? "active" : "pending");
  key_request(me);
}

/* Seed S0, line 20: the page says "the player will release the session when OTVAVPlayerItem is de-initialised". */
static void deinit_item(app *me) {
  int64_t began = av_gettime_relative();
  usher_playback_free(me->item);
  me->item = NULL;
  printf("stopped after %d ms\n", (int)((av_gettime_relative() - began) / 1000));
}

int main(int argc, char **argv) {
  app me;
  action next;
  usher_delegate *license_delegate = NULL;
  usher_ssp_options init = USHER_SSP_OPTIONS_INIT;
  int32_t status;
  memset(&me, 0, sizeof me);
  if (argc < 5 || !main_queue_open()) return 2;
  /* S0:14  OTVSSPLicenseDelegate.init(certificateURL:licenseURL:ssmServerURL:syncSSMSetupTeardown:) */
  init.certificate_url = argv[1];
  init.license_url = argv[2];
  init.ssm_url = argv[3]; /* S0:16 */
  init.sync_setup_teardown = argv[4][0] == '1'; /* S0:18 */
  status = usher_context_new(NULL, &me.drm_manager);
  if (!status) status = usher_ssp_delegate_new(me.drm_manager, &init, &license_delegate);
  if (!status && argc > 5) { /* S0:26  setToken(sspTokenCallback:) */
    me.fresh_token = argv[5];
    status = usher_delegate_set_token_callback(license_delegate, token, &me, NULL);
  }
  if (!status) status = usher_context_set_delegate(me.drm_manager, license_delegate);
  if (!status) status = usher_context_add_observer(me.drm_manager, observer, NULL, NULL, NULL);
  if (!status) status = usher_player_new(me.drm_manager, &me.player);
  if (status) return 2;
  while (main_queue_next(&next)) {
    if (is(&next, "play")) {
      me.stream = next;
      play(&me);
    }
    if (is(&next, "airplay")) key_request(&me); /* S0:28 */
    if (is(&next, "background")) usher_context_suspend(me.drm_manager); /* S0:66 */
    if (is(&next, "foreground")) usher_context_resume(me.drm_manager); /* S0:69 */
    if (is(&next, "picture-in-picture")) printf("the SSM service as normal\n"); /* S0:73: nothing to do */
    if (is(&next, "zap")) { /* S0:70 */
      deinit_item(&me);
      play(&me);
    }
    if (is(&next, "stop")) deinit_item(&me);
  }
  usher_context_free(me.drm_manager);
  return 0;
}
