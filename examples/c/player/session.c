/* session.c - see session.h. SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <stdio.h>
#include <string.h>

#define CLOSE_WAIT_MS 10000

/* The observer of the context. It runs on a callback thread of libusher. */
static void on_event(const usher_event *event, void *user_data) {
  struct session *session = user_data;
  timeline_event(session->timeline, event);
  if (event->error.must_stop) stop_set(session->stop, STOP_EVENT);
}

/* The payload callback: libusher needs a challenge for each renewal. Clear Key's challenge never changes. */
static void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  struct session *session = user_data;
  (void)playback, (void)key_system, (void)tag;
  usher_complete_payload(completion, (const uint8_t *)session->challenge, session->challenge_size);
}

static void on_log(int32_t level, const char *line, void *user_data) {
  static const char *const names[] = {"", "error", "warning", "info", "debug"};
  (void)user_data;
  fprintf(stderr, "usher %s: %s\n", level >= USHER_LOG_ERROR && level <= USHER_LOG_DEBUG ? names[level] : "", line);
}

static int32_t make_context(struct session *session, const struct options *options) {
  usher_context_options context = USHER_CONTEXT_OPTIONS_INIT;
  context.ca_file = options->ca_file;
  if (options->verbose) {
    context.log = on_log;
    context.log_level = USHER_LOG_DEBUG;
  }
  session->timeline->context_start_ms = clock_ms();
  int32_t status = usher_context_new(&context, &session->context);
  if (status != USHER_OK) return status;
  return usher_context_add_observer(session->context, on_event, session, NULL, NULL);
}

static int32_t make_delegate(struct session *session, const struct options *options) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  ssp.license_url = options->license_url;
  ssp.ssm_url = options->ssm_url;
  return usher_ssp_delegate_new(session->context, &ssp, &session->delegate);
}

static int32_t play(struct session *session, const struct options *options) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  item.delegate = session->delegate;
  item.content_token = options->token;
  item.content_id = (const uint8_t *)options->file;
  item.content_id_size = strlen(options->file);
  item.tag = options->tag;
  item.payload = on_payload;
  item.user_data = session;
  return usher_player_play(session->player, &item, &session->playback);
}

int32_t session_start(struct session *session, const struct options *options, const struct keyring *ring,
    struct timeline *timeline, struct stop *stop) {
  *session = (struct session){.timeline = timeline, .stop = stop, .verbose = options->verbose};
  session->challenge_size = clear_key_request(ring, session->challenge);
  int32_t status = make_context(session, options);
  if (status == USHER_OK) status = make_delegate(session, options);
  if (status == USHER_OK) status = usher_player_new(session->context, &session->player);
  if (status == USHER_OK) status = play(session, options);
  return status;
}

int32_t session_wait(struct session *session) { return usher_playback_wait_session(session->playback, 0, NULL); }

int32_t session_get_keys(struct session *session, struct keyring *ring, struct licence_facts *facts) {
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  request.key_system = USHER_KEY_SYSTEM_CLEARKEY;
  request.payload = (const uint8_t *)session->challenge;
  request.payload_size = session->challenge_size;
  usher_response *response = NULL;
  int32_t status = usher_playback_get_license(session->playback, &request, &response);
  if (status == USHER_OK) {
    usher_response_info info = USHER_RESPONSE_INFO_INIT;
    status = usher_response_get(response, &info);
    if (status == USHER_OK)
      *facts = (struct licence_facts){
          info.data_size, clear_key_licence(info.data, info.data_size, ring), info.period_ms, info.renew_type};
  }
  usher_response_free(response);
  return status;
}

/* Counts the heartbeats when the playback has closed. KEPT_ALIVE events are not enough for this: a heartbeat that is in
   flight at the close has none. */
static void count_heartbeats(struct session *session) {
  usher_metrics metrics = USHER_METRICS_INIT;
  int32_t status = usher_context_metrics(session->context, &metrics);
  if (status == USHER_OK) session->heartbeats_sent = metrics.heartbeats_sent;
  else timeline_failure(session->timeline, "heartbeats not counted", status);
}

void session_close(struct session *session) {
  if (session->playback) {
    usher_playback_close(session->playback, USHER_CLOSE_DEFAULT);
    int32_t status = usher_playback_wait_closed(session->playback, CLOSE_WAIT_MS);
    if (status != USHER_OK) timeline_failure(session->timeline, "close failed", status);
  }
  if (session->context) count_heartbeats(session);
  usher_playback_free(session->playback);
  usher_player_free(session->player);
  usher_delegate_free(session->delegate);
  usher_context_free(session->context);
}
