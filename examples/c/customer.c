/*
 * customer.c - plays an encrypted clip under the operator's own session management: licences, heartbeats and teardown are native callbacks of a plug-in.
 *
 *   cc -pthread customer.c $(pkg-config --cflags --libs usher libavformat libavcodec libavutil json-c libcurl) -o customer
 *   ./customer CLIP BACKEND_URL KEY_ID      (key id in base64url)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "backend.h" /* talks to the operator's servers: your app */
#include "clip.h"    /* decodes: your player */

struct plug_in { const char *backend, *challenge; char session[64]; }; /* one for each playback; here there is one */

static void on_license(const usher_customer_request *request, void *user_data) { /* OTVCustomerSSMCallback.license */
  struct plug_in *mine = user_data;
  const char *what = request->type == USHER_LICENSE_RENEWAL ? "renew" : "start";
  struct backend_reply reply = backend_ask(mine->backend, what, mine->session, request->payload, request->payload_size);
  const char *licence = backend_text(&reply, "licence"), *session = backend_text(&reply, "session");
  if (session) snprintf(mine->session, sizeof mine->session, "%s", session);
  usher_customer_license answer = {.struct_size = sizeof answer, .license = (const uint8_t *)licence, .license_size = licence ? strlen(licence) : 0,
      .heartbeat_s = backend_number(&reply, "period"), .renew_type = backend_number(&reply, "renewals") ? USHER_RENEW_ENFORCED : USHER_RENEW_HEARTBEAT,
      .http_status = reply.status, .service_code = (int64_t)backend_number(&reply, "code"), .message = backend_text(&reply, "message")};
  usher_complete_license(request->completion, &answer); /* now; later, from any thread, would do as well */
  json_object_put(reply.json);
}
static void call(usher_completion completion, const char *what, struct plug_in *mine) {
  struct backend_reply reply = backend_ask(mine->backend, what, mine->session, NULL, 0);
  usher_complete_call(completion, reply.status == 200 ? USHER_OK : reply.status == 403 ? USHER_E_SESSION : USHER_E_TRANSPORT); /* 403: it was ended */
  json_object_put(reply.json);
}
static void on_heartbeat(usher_completion id, usher_playback *p, uint64_t tag, void *mine) { (void)p, (void)tag, call(id, "alive", mine); }
static void on_teardown(usher_completion id, usher_playback *p, uint64_t tag, void *mine) { (void)p, (void)tag, call(id, "stop", mine); }
static void on_payload(usher_completion id, usher_playback *p, const char *key_system, uint64_t tag, void *user_data) { /* what the CDM says to renew */
  const struct plug_in *mine = user_data;
  (void)p, (void)key_system, (void)tag, usher_complete_payload(id, (const uint8_t *)mine->challenge, strlen(mine->challenge));
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: %s CLIP BACKEND_URL KEY_ID\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info licence = USHER_RESPONSE_INFO_INIT;
  char challenge[128];
  size_t size = (size_t)snprintf(challenge, sizeof challenge, "{\"kids\":[\"%.64s\"],\"type\":\"temporary\"}", argv[3]);
  struct plug_in mine = {.backend = argv[2], .challenge = challenge};
  usher_customer_options options = {sizeof options, .license = on_license, .heartbeat = on_heartbeat, .teardown = on_teardown, .user_data = &mine};
  usher_playback_options item = {sizeof item, .payload = on_payload, .user_data = &mine};
  usher_license_request request = {sizeof request, USHER_KEY_SYSTEM_CLEARKEY, .payload = (const uint8_t *)challenge, .payload_size = size};
  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_customer_delegate_new(context, &options, &delegate);
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  if (!status) status = usher_playback_get_license(playback, &request, &response);
  if (!status) status = usher_response_get(response, &licence);
  int failed = status ? fprintf(stderr, "%s\n", usher_status_message(status)) : clip_play(argv[1], licence.data, licence.data_size, playback);
  return usher_context_free(context), failed != 0; /* once the teardown callback has answered */
}
