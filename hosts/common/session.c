/* session.c - see session.h. SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <poll.h>
#include <string.h>

static void on_license(usher_playback *playback, const usher_response_info *license, uint64_t tag, void *user_data) {
  (void)playback;
  struct session *session = user_data;
  usher_clearkey_key keys[SESSION_KEYS_MAX];
  size_t count = SESSION_KEYS_MAX;
  if (!session->playback || tag != session->tag) return;
  if (license->error.status) { /* on_notice() reports the end of the item, if it must end */
    if (session->unlicensed) session->unlicensed(&license->error, session->user_data);
    return;
  }
  if (usher_clearkey_keys(license->data, license->data_size, keys, &count, NULL, 0)) count = 0;
  session->licensed(keys, count, session->user_data);
  explicit_bzero(keys, sizeof keys);
}
static void on_notice(const usher_notice *notice, void *user_data) {
  struct session *session = user_data;
  bool failed = notice->type == USHER_NOTICE_REFUSED || notice->type == USHER_NOTICE_LOST;
  if (!session->playback) return; /* the host stopped this item earlier, so do not report it */
  if (notice->type == USHER_NOTICE_WAITING) session->waiting(notice, session->user_data);
  if (failed) session->failed(notice, session->user_data);
}
static void on_event(const usher_event *event, void *user_data) {
  struct session *session = user_data;
  if (event->type == USHER_EVENT_CONTEXT_CLOSED) session->closed = true;
  bool failed = event->type == USHER_EVENT_TEARDOWN_ERROR;
  bool lost = event->type == USHER_EVENT_PLAYBACK_CLOSED && event->error.orphan_possible;
  if ((!failed && !lost) || event->tag == session->unconfirmed_tag) return;
  session->unconfirmed_tag = event->tag;
  session->unconfirmed(failed ? event->error.message : "its session token did not arrive", session->user_data);
}
static void on_payload(usher_completion id, usher_playback *playback, const char *system, uint64_t tag, void *mine) {
  struct session *session = mine;
  bool current = playback && system && tag == session->tag;
  usher_complete_payload(id, current ? session->request : NULL, session->request_size);
}
int32_t session_open(struct session *session, const usher_context_options *options) {
  int32_t status = usher_context_new(options, &session->context);
  if (!status) status = usher_context_pump_fd(session->context, &session->fd);
  if (!status) status = usher_context_add_observer(session->context, on_event, session, NULL, NULL);
  if (!status) status = usher_player_new(session->context, &session->player);
  return status ? status : usher_player_add_observer(session->player, on_notice, session, NULL, NULL);
}
int32_t session_play(struct session *session, const usher_ssp_options *ssp, const char *token, const uint8_t *key_ids,
    size_t count, uint32_t timeout_ms) {
  usher_playback_options item = {sizeof item, .content_token = token, .tag = ++session->tag, .payload = on_payload};
  item.user_data = session;
  int32_t status = usher_ssp_delegate_new(session->context, ssp, &item.delegate);
  if (!status) status = usher_player_play(session->player, &item, &session->playback);
  if (!status) status = session_request(session, key_ids, count, timeout_ms);
  return usher_delegate_free(item.delegate), status;
}
int32_t session_request(struct session *session, const uint8_t *key_ids, size_t count, uint32_t timeout_ms) {
  usher_license_request request = {sizeof request, USHER_KEY_SYSTEM_CLEARKEY, .timeout_ms = timeout_ms};
  session->request_size = sizeof session->request, request.payload = session->request;
  int32_t status = usher_clearkey_request(key_ids, count, session->request, &session->request_size);
  request.payload_size = session->request_size;
  return status ? status : usher_playback_request_license(session->playback, &request, on_license, session, NULL);
}
void session_stop(struct session *session) { usher_playback_free(session->playback), session->playback = NULL; }
void session_close(struct session *session, uint32_t timeout_ms) {
  if (session->context && usher_context_begin_close(session->context, timeout_ms ? timeout_ms : 1) == USHER_OK)
    while (!session->closed && poll(&(struct pollfd){session->fd, POLLIN, 0}, 1, (int)timeout_ms + 1000) > 0)
      usher_context_pump(session->context, NULL);
  usher_context_free(session->context), session->context = NULL, session->fd = -1;
}
