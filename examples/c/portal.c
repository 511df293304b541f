/*
 * portal.c - an operator's own session management, as a plug-in for players: native callbacks for licences, heartbeats
 * and teardown.
 *
 *   cc -shared -fPIC portal.c $(pkg-config --cflags --libs usher json-c libcurl) -o portal.so   (customer.c loads it)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "backend.h" /* requests to the operator's servers; in your app, your HTTP client */
#include <usher/usher.h>

struct portal {
  char backend[512], session[64];
}; /* `session`: the id of the session; only one playback at a time uses this struct */

/* OTVCustomerSSMCallback.license of the SDKs. */
static void on_license(const usher_customer_request *request, void *user_data) {
  struct portal *mine = user_data;
  const char *what = request->type == USHER_LICENSE_RENEWAL ? "renew" : "start";
  struct backend_reply reply = backend_ask(mine->backend, what, mine->session, request->payload, request->payload_size);
  const char *licence = backend_text(&reply, "licence"), *session = backend_text(&reply, "session");
  if (session) snprintf(mine->session, sizeof mine->session, "%s", session);
  usher_customer_license answer = {.struct_size = sizeof answer,
      .license = (const uint8_t *)licence,
      .license_size = licence ? strlen(licence) : 0,
      .heartbeat_s = backend_number(&reply, "period"),
      .renew_type = backend_number(&reply, "renewals") ? USHER_RENEW_ENFORCED : USHER_RENEW_HEARTBEAT,
      .http_status = reply.status,
      .service_code = (int64_t)backend_number(&reply, "code"),
      .message = backend_text(&reply, "message")};
  usher_complete_license(request->completion, &answer); /* answers at once; any thread may also answer later */
  json_object_put(reply.json);
}
static void call(usher_completion completion, const char *what, struct portal *mine) {
  struct backend_reply reply = backend_ask(mine->backend, what, mine->session, NULL, 0);
  usher_complete_call(completion, reply.status == 200   ? USHER_OK
                                  : reply.status == 403 ? USHER_E_SESSION
                                                        : USHER_E_TRANSPORT); /* 403: the operator ended the session */
  json_object_put(reply.json);
}
static void on_heartbeat(usher_completion id, usher_playback *p, uint64_t tag, void *mine) {
  (void)p, (void)tag, call(id, "alive", mine);
}
static void on_teardown(usher_completion id, usher_playback *p, uint64_t tag, void *mine) {
  (void)p, (void)tag, call(id, "stop", mine);
}

/* Makes a delegate whose callbacks send the requests. This is the plug-in's only function. The callbacks use `mine`
   until the library destroys it with free(). @return a status of libusher. */
int32_t portal_delegate_new(usher_context *context, const char *backend, usher_delegate **out) {
  struct portal *mine = calloc(1, sizeof *mine);
  if (!mine) return USHER_E_SYSTEM;
  snprintf(mine->backend, sizeof mine->backend, "%s", backend);
  usher_customer_options options = {.struct_size = sizeof options,
      .license = on_license,
      .heartbeat = on_heartbeat,
      .teardown = on_teardown,
      .user_data = mine,
      .destroy = free};
  /* If this call fails, it runs free(mine) before it returns. */
  return usher_customer_delegate_new(context, &options, out);
}
