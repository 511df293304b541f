/*
 * ssp_v2_delegate.c - the licence delegate for SSM V2, ported line by line to C.
 * S1:12 is line 12 of document S1 (see README.md).
 *
 *   ssp_v2_delegate CERTIFICATE_URL LICENSE_URL SSM_SERVER_URL [FRESH_TOKEN]
 *
 * FRESH_TOKEN: what token() returns; "-": token() returns nil. Without FRESH_TOKEN, the host sets no token callback.
 * Actions on standard input: play CLIP SKD_URL TOKEN, airplay, background, foreground, picture-in-picture, stop,
 * teardown.
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

/* S1:17  func token() -> String? */
static void token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  const app *me = (const app *)user_data;
  (void)playback, (void)tag;
  printf("token()\n");
  usher_complete_token(completion, strcmp(me->fresh_token, "-") == 0 ? NULL : me->fresh_token);
}

/* Seed S1, line 28: the method that the page declares as @objc func didReceiveSSMError(_ notification:
   NSNotification) */
static void did_receive_ssm_error(const usher_event *notification) {
  int64_t ssm_error = notification->error.service_code; /* S1:31  userInfo?["errorCode"] */
  int32_t code = notification->error.http_status; /* S1:33  userInfo?["code"] */
  const char *message = notification->error.message; /* S1:35  userInfo?["message"] */
  printf("%s: error %d HTTP status code %d and message %s\n", usher_event_name(notification->type), (int)ssm_error,
      (int)code, message);
  /* Seed S1, line 43: the page says "stop playback and attempt to zap to the same stream". */
  if (notification->type == USHER_EVENT_HEARTBEAT_ERROR) main_queue_post("zap\n");
}

/* S1:25-27  NotificationCenter.default.addObserver(...) */
static void observer(const usher_event *event, void *user_data) {
  (void)user_data;
  switch (event->type) {
  case USHER_EVENT_SETUP_ERROR:
  case USHER_EVENT_HEARTBEAT_ERROR:
  case USHER_EVENT_TEARDOWN_ERROR: did_receive_ssm_error(event); break;
  default: printf("%s\n", usher_event_name(event->type));
  }
}

/* Seed S1, line 16: FairPlay asks for a key when the item starts, and again when playback moves to AirPlay or back. */
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
  if (status) printf("no licence: %s\n", usher_status_name(status)); /* S1:23  "should not continue" */
  usher_response_free(certificate);
  usher_response_free(content_id);
  usher_response_free(ckc);
}

/* Seed S1, line 12: the page says "every playback will have an SSM session". */
static void play(app *me) {
  usher_playback_options stream = USHER_PLAYBACK_OPTIONS_INIT;
  int32_t status;
  usher_playback_free(me->item); /* the previous item, which has ended already */
  stream.content_token = word(&me->stream, 3);
  status = usher_player_play(me->player, &stream, &me->item);
  printf("play: %s\n", usher_status_name(status));
  key_request(me);
}

int main(int argc, char **argv) {
  app me;
  action next;
  usher_delegate *license_delegate = NULL;
  usher_ssp_options urls = USHER_SSP_OPTIONS_INIT;
  usher_ssp_v2_options init = USHER_SSP_V2_OPTIONS_INIT;
  int32_t status;
  memset(&me, 0, sizeof me);
  if (argc < 4 || !main_queue_open()) return 2;
  /* S1:11  OTVSSPLicenseDelegateV2.init(certificateURL:licenseURL:ssmServerURL) */
  urls.certificate_url = argv[1];
  urls.license_url = argv[2];
  urls.ssm_url = argv[3];
  init.ssp = &urls;
  status = usher_context_new(NULL, &me.drm_manager);
  if (!status) status = usher_ssp_v2_delegate_new(me.drm_manager, &init, &license_delegate);
  if (!status && argc > 4) { /* S1:15  setToken(sspTokenCallback:) */
    me.fresh_token = argv[4];
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
    if (is(&next, "airplay")) key_request(&me); /* S1:16 */
    if (is(&next, "background")) usher_context_suspend(me.drm_manager); /* S1:40 */
    if (is(&next, "foreground")) usher_context_resume(me.drm_manager); /* S1:42 */
    if (is(&next, "picture-in-picture")) printf("the SSM service as normal\n"); /* S1:44: nothing to do */
    /* Seed S1, line 12. In the page, the sentence that begins with "When the playback stops" describes these calls. */
    if (is(&next, "stop") || is(&next, "zap")) {
      usher_player_stop(me.player, USHER_CLOSE_DEFAULT);
      printf("stopped\n");
    }
    if (is(&next, "zap")) play(&me); /* S1:43 */
    /* Seed S1, line 12: about the time after the end of the playback, the page says "Application will need to teardown
       the session specifically". */
    if (is(&next, "teardown"))
      printf("teardown: %s\n", usher_status_name(usher_playback_close(me.item, USHER_CLOSE_TEARDOWN)));
  }
  usher_context_free(me.drm_manager);
  return 0;
}
