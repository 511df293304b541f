/*
 * customer_ssm.c - the application's own session management, ported line by line to C.
 * S3:53 is line 53 of document S3 (see README.md).
 *
 *   customer_ssm CERTIFICATE_URL LICENSE_URL SSM_SERVER_URL RENEW_TYPE
 *
 * RENEW_TYPE: "default", "heartbeat" or "enforced". Actions on standard input: play CLIP SKD_URL TOKEN, stop.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "av_player.h"
#include "http.h"
#include <usher/usher.h>

/* S3:22  CustomerCallback(licenseURL: licenseURL, ssmServerURL: ssmServerURL) */
typedef struct customer_callback {
  const char *license_url, *ssm_server_url;
  int32_t renew_type;
  double heartbeat; /* S3:92  the period in seconds */
  char content_token[8192], session_token[4096];
} customer_callback;

/* Keeps the newest session token of the operator's servers. */
static void keep_session_token(customer_callback *me, const http_reply *reply) {
  json_object *token = http_member(reply, "sessionToken");
  if (token) snprintf(me->session_token, sizeof me->session_token, "%s", json_object_get_string(token));
}

/* Seed S3, line 53: the page says "It will be necessary to perform a secure session setup before acquiring the licence
   for the first time". */
static int session_setup(customer_callback *me) {
  http_reply reply;
  http_ask(&reply, me->ssm_server_url, "/v1/sessions/setup", me->content_token, "{}", 2);
  keep_session_token(me, &reply);
  me->heartbeat = json_object_get_double(http_member(&reply, "heartbeat"));
  json_object_put(reply.json);
  return reply.status == 200;
}

/* Seed S3, line 43: the callback that the page declares as func license(keySystem: String, payload: Data, licenseType:
   OTVLicenseRequestType) -> OTVSSMLicenseResponse */
static void license(const usher_customer_request *request, void *user_data) {
  customer_callback *me = (customer_callback *)user_data;
  usher_customer_license response = USHER_CUSTOMER_LICENSE_INIT; /* S3:113  license: nil, heartbeat: 0 */
  const int renewal = request->type == USHER_LICENSE_RENEWAL; /* S3:64 */
  const int fairplay = strcmp(request->key_system, "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2") == 0; /* S3:83 */
  http_reply reply;
  char tokens[16384];
  uint8_t ckc[4096];
  printf("license(%s, %s)\n", fairplay ? "FairPlay" : request->key_system, renewal ? "renewal" : "request");
  if (renewal || session_setup(me)) {
    snprintf(tokens, sizeof tokens, "%s%s%s", renewal ? "" : me->content_token, renewal ? "" : ",", me->session_token);
    http_ask(&reply, me->license_url, renewal ? "?renew=true" : "", tokens, request->payload, request->payload_size);
    keep_session_token(me, &reply);
    response.license_size = http_bytes(&reply, "CkcMessage", ckc, sizeof ckc);
    json_object_put(reply.json);
  }
  if (response.license_size) { /* S3:113  init(license:heartbeat:renewType:) */
    response.license = ckc; /* S3:97  "is the CKC message" */
    response.heartbeat_s = me->heartbeat;
    response.renew_type = me->renew_type;
  }
  usher_complete_license(request->completion, &response);
}

/* Seed S3, line 48: the callback func heartbeat(), which "has no parameters or return values" (line 101). */
static void heartbeat(usher_playback *playback, uint64_t tag, void *user_data) {
  customer_callback *me = (customer_callback *)user_data;
  http_reply reply;
  (void)tag;
  http_ask(&reply, me->ssm_server_url, "/v1/sessions/heartbeat", me->session_token, "{}", 2);
  keep_session_token(me, &reply);
  json_object_put(reply.json);
  printf("heartbeat(): %ld\n", reply.status);
  /* Seed S3, line 101: the page says "If the callback fails, the application must take any necessary actions". */
  if (reply.status >= 400) usher_playback_close(playback, USHER_CLOSE_DEFAULT);
}

static void observer(const usher_event *event, void *user_data) {
  (void)user_data;
  printf("%s\n", usher_event_name(event->type));
}

/* Called with each renewed licence, which a real application gives to its CDM. */
static void renewed(usher_playback *playback, const usher_response_info *ckc, uint64_t tag, void *user_data) {
  (void)playback, (void)tag, (void)user_data;
  printf("renewed: CKC of %d bytes\n", (int)ckc->data_size);
}

static void play(usher_player *player, usher_playback **item, const char *clip, const char *skd) {
  usher_playback_options stream = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  usher_response *certificate = NULL, *content_id = NULL, *ckc = NULL;
  usher_response_info cert = USHER_RESPONSE_INFO_INIT, id = USHER_RESPONSE_INFO_INIT, got = USHER_RESPONSE_INFO_INIT;
  const uint8_t *url = (const uint8_t *)skd;
  spc asked;
  int32_t status;
  stream.renewed = renewed;
  status = usher_player_play(player, &stream, item);
  if (!status) status = usher_playback_get_certificate(*item, 0, &certificate);
  if (!status) status = usher_response_get(certificate, &cert);
  if (!status) status = usher_playback_get_content_id(*item, url, strlen(skd), 0, &content_id);
  if (!status) status = usher_response_get(content_id, &id);
  if (!status) {
    cdm_make_spc(&asked, cert.data, cert.data_size, id.data, id.data_size);
    request.key_system = USHER_KEY_SYSTEM_FAIRPLAY;
    request.payload = asked.bytes;
    request.payload_size = asked.size;
    status = usher_playback_get_license(*item, &request, &ckc); /* ckcMessage() */
  }
  if (!status) status = usher_response_get(ckc, &got);
  if (!status) cdm_play(clip, &asked, got.data, got.data_size);
  if (status) printf("no licence: %s\n", usher_status_name(status));
  usher_response_free(certificate);
  usher_response_free(content_id);
  usher_response_free(ckc);
}

int main(int argc, char **argv) {
  usher_context *drm_manager = NULL; /* OTVDRMManager.shared */
  usher_delegate *customer_ssm_delegate = NULL;
  usher_customer_options init = USHER_CUSTOMER_OPTIONS_INIT;
  usher_customer_callbacks callbacks = USHER_CUSTOMER_CALLBACKS_INIT;
  usher_player *player = NULL;
  usher_playback *item = NULL;
  customer_callback callback;
  http_reply fairplay_certificate, done;
  action next;
  int32_t status;
  if (argc < 5 || !main_queue_open()) return 2;
  curl_global_init(CURL_GLOBAL_ALL);
  memset(&callback, 0, sizeof callback);
  callback.license_url = argv[2];
  callback.ssm_server_url = argv[3];
  callback.renew_type = strcmp(argv[4], "heartbeat") == 0  ? USHER_RENEW_HEARTBEAT
                        : strcmp(argv[4], "enforced") == 0 ? USHER_RENEW_ENFORCED
                                                           : USHER_RENEW_DEFAULT; /* S3:112 */
  /* S3:19  getFairplayCertificate(certificateURL: fairplayCertificateURL) */
  http_ask(&fairplay_certificate, argv[1], "", "", NULL, 0);
  /* S3:20  OTVCustomerSSMDelegate(certificate: fairplayCertificate) */
  init.certificate = fairplay_certificate.body;
  init.certificate_size = fairplay_certificate.size;
  status = usher_context_new(NULL, &drm_manager);
  if (!status) status = usher_customer_delegate_new(drm_manager, &init, &customer_ssm_delegate);
  /* Seed S3, line 23: customerSSMDelegate.setCallback(customerCallback) sets "a pair of callbacks" (line 10). */
  callbacks.license = license;
  callbacks.simple_heartbeat = heartbeat;
  if (!status) status = usher_delegate_set_customer_callbacks(customer_ssm_delegate, &callbacks, &callback, NULL);
  /* S3:25  OTVDRMManager.shared.setLicenseDelegate(customerSSMDelegate) */
  if (!status) status = usher_context_set_delegate(drm_manager, customer_ssm_delegate);
  if (!status) status = usher_context_add_observer(drm_manager, observer, NULL, NULL, NULL);
  if (!status) status = usher_player_new(drm_manager, &player);
  if (status) return 2;
  while (main_queue_next(&next)) {
    if (is(&next, "play")) {
      snprintf(callback.content_token, sizeof callback.content_token, "%s", word(&next, 3));
      play(player, &item, word(&next, 1), word(&next, 2));
    }
    /* Seed S3, line 10: the page says "The client application handles session management". */
    if (is(&next, "stop")) {
      usher_playback_close(item, USHER_CLOSE_DEFAULT);
      usher_playback_wait_closed(item, USHER_OFF);
      http_ask(&done, callback.ssm_server_url, "/v1/sessions/teardown", callback.session_token, "{}", 2);
      json_object_put(done.json);
      printf("stopped: %ld\n", done.status);
    }
  }
  usher_context_free(drm_manager);
  return 0;
}
