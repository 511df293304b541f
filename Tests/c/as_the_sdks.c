/*
 * as_the_sdks.c - hosts that are ported from the SDKs' pages line by line: customer SSM with its pair of callbacks,
 * clear streams without a delegate, a teardown after playback has stopped, and synchronous set-up and teardown.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

/* OTVCustomerSSMCallback: license(keySystem:payload:licenseType:) and heartbeat(), which has no parameters. */
struct callback {
  int32_t renew_type;
  int licenses, renewals, same_payload, fairplay, heartbeats, kept_alive, missed, ended;
};

static void license(const usher_customer_request *request, void *user_data) {
  struct callback *it = (struct callback *)user_data;
  usher_customer_license answer = USHER_CUSTOMER_LICENSE_INIT;
  add(request->type == USHER_LICENSE_RENEWAL ? &it->renewals : &it->licenses, 1);
  add(&it->same_payload, request->payload_size == 9 && memcmp(request->payload, "challenge", 9) == 0);
  add(&it->fairplay, strcmp(request->key_system, "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2") == 0);
  answer.license = (const uint8_t *)"ckc";
  answer.license_size = 3;
  answer.heartbeat_s = 0.2;
  answer.renew_type = it->renew_type;
  usher_complete_license(request->completion, &answer);
}
static void heartbeat(usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback;
  add(&((struct callback *)user_data)->heartbeats, tag == 7);
}
static void observer(const usher_event *event, void *user_data) {
  struct callback *it = (struct callback *)user_data;
  if (event->type == USHER_EVENT_KEPT_ALIVE) add(&it->kept_alive, 1);
  if (event->type == USHER_EVENT_HEARTBEAT_ERROR || event->type == USHER_EVENT_RENEWAL_DUE) add(&it->missed, 1);
  if (event->type == USHER_EVENT_SESSION_ENDED && !event->left) add(&it->ended, 1);
}

/* Makes the calls of an SDK host: OTVCustomerSSMDelegate(certificate:), setCallback(_:), setLicenseDelegate(_:). */
static void customer(int32_t renew_type) {
  struct callback it;
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
  usher_customer_callbacks pair = USHER_CUSTOMER_CALLBACKS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request("94CE86FB-07FF-4F43-ADB8-93D2FA968CA2");
  usher_delegate *delegate = NULL;
  usher_playback *playback = NULL;
  const char *what = renew_type == USHER_RENEW_HEARTBEAT ? "heartbeats" : "renewals";
  int *count = renew_type == USHER_RENEW_HEARTBEAT ? &it.heartbeats : &it.renewals;
  memset(&it, 0, sizeof it);
  it.renew_type = renew_type;
  usher_context_add_observer(context, observer, &it, NULL, NULL);
  options.certificate = (const uint8_t *)"certificate";
  options.certificate_size = 11;
  answers(USHER_OK, usher_customer_delegate_new(context, &options, &delegate), "a customer delegate without callbacks");
  pair.license = license;
  pair.simple_heartbeat = heartbeat;
  answers(USHER_OK, usher_delegate_set_customer_callbacks(delegate, &pair, &it, NULL), "then its pair of callbacks");
  answers(USHER_OK, usher_context_set_delegate(context, delegate), "then the delegate of the context");
  item.tag = 7;
  answers(USHER_OK, usher_player_play(new_player(context), &item, &playback), "the item plays");
  answers(USHER_OK, usher_playback_get_license(playback, &request, NULL), "the licence");
  tell(reaches(count, 3, 8000) && reaches(&it.kept_alive, 2, 8000),
      "the pair of callbacks is enough for %s (%d calls, %d kept alive)", what, get(count), get(&it.kept_alive));
  tell(get(&it.missed) == 0, "returning is done, and no renewal is missed: %s", what);
  tell(get(&it.licenses) == 1 && get(&it.fairplay) == 1 + get(&it.renewals) &&
           get(&it.same_payload) == 1 + get(&it.renewals),
      "license() gets the key system as the SDK writes it, and the payload: %s", what);
  answers(USHER_OK, usher_delegate_set_customer_callbacks(delegate, NULL, NULL, NULL), "the callbacks are removed");
  answers(USHER_E_STATE, usher_playback_get_license(playback, &request, NULL), "then a licence fails with STATE");
  usher_context_free(context);
}

static void wrong_callbacks(void) {
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_customer_options options = USHER_CUSTOMER_OPTIONS_INIT;
  usher_customer_callbacks pair = USHER_CUSTOMER_CALLBACKS_INIT;
  usher_delegate *delegate = NULL, *other = new_delegate(context, license_url());
  int destroyed = 0;
  usher_customer_delegate_new(context, &options, &delegate);
  pair.simple_heartbeat = heartbeat;
  answers(USHER_E_INVALID_ARGUMENT, usher_delegate_set_customer_callbacks(delegate, &pair, &destroyed, count_destroy),
      "callbacks without license()");
  pair.license = license;
  answers(USHER_E_STATE, usher_delegate_set_customer_callbacks(other, &pair, &destroyed, count_destroy),
      "callbacks of a delegate of another kind");
  tell(get(&destroyed) == 2, "destroy ran for both (%d)", get(&destroyed));
  usher_context_free(context);
}

/* The SDKs say: "To use multiple players for clear streams, simply create two players." */
static void clear_streams(void) {
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *one = NULL, *two = NULL, *encrypted = NULL;
  int32_t state = USHER_SESSION_PENDING;
  item.clear = 1;
  answers(USHER_OK, usher_player_play(new_player(context), &item, &one), "a clear stream without a delegate");
  answers(USHER_OK, usher_player_play(new_player(context), &item, &two), "a second one beside it");
  answers(USHER_OK, usher_playback_wait_session(two, 0, NULL), "it needs no session");
  usher_playback_session_state(two, &state);
  tell(state == USHER_SESSION_NONE, "it has none");
  item.clear = 0;
  answers(USHER_E_NO_DELEGATE, usher_player_play(new_player(context), &item, &encrypted), "an encrypted one needs one");
  usher_context_free(context);
}

/* The SDKs say: "When the playback stops, Application will need to teardown the session specifically." */
static void stop_then_teardown(int by_player) {
  struct callback it;
  usher_context *context = new_context(USHER_CALLBACKS_THREADED);
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_ssp_v2_options v2 = USHER_SSP_V2_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  usher_delegate *delegate = NULL;
  usher_player *player = new_player(context);
  usher_playback *playback;
  const char *what = by_player ? "player" : "playback";
  memset(&it, 0, sizeof it);
  usher_context_add_observer(context, observer, &it, NULL, NULL);
  ssp.license_url = v2_url();
  ssp.ssm_url = ssm_url();
  v2.ssp = &ssp;
  usher_ssp_v2_delegate_new(context, &v2, &delegate);
  playback = play(player, delegate);
  answers(USHER_OK, usher_playback_get_license(playback, &request, NULL), "SSP V2: a licence opens the session");
  answers(USHER_OK, usher_player_stop(player, USHER_CLOSE_DEFAULT), "playback stops");
  answers(USHER_OK, usher_playback_wait_closed(playback, 8000), "the playback is closed");
  tell(held() == 1, "after the stop the session is held: %s", what);
  answers(USHER_OK,
      by_player ? usher_player_stop(player, USHER_CLOSE_TEARDOWN)
                : usher_playback_close(playback, USHER_CLOSE_TEARDOWN),
      "then the application tears the session down");
  answers(USHER_OK, usher_playback_wait_closed(playback, 8000), "and waits for that");
  tell(held() == 0, "after the teardown the slot is free: %s", what);
  tell(reaches(&it.ended, 1, 8000), "SESSION_ENDED says so: %s", what);
  if (by_player) {
    playback = play(player, delegate);
    answers(USHER_OK, usher_playback_get_license(playback, &request, NULL), "the next item");
    usher_player_stop(player, USHER_CLOSE_LEAVE);
    usher_playback_free(playback);
    answers(USHER_E_STATE, usher_player_stop(player, USHER_CLOSE_TEARDOWN), "without the handle: STATE");
  }
  usher_context_free(context);
}

/* The SDKs say: "Setting syncSSMSetupTeardown to true blocks the main thread while the network requests are being
   made." */
static void sync_main_thread(int32_t callbacks) {
  static const char *const names[] = {"close", "free", "stop", "free of the player"};
  usher_context *context = new_context(callbacks);
  usher_ssp_options options = USHER_SSP_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  int way;
  options.license_url = license_url();
  options.ssm_url = ssm_url();
  options.sync_setup_teardown = 1;
  usher_ssp_delegate_new(context, &options, &delegate);
  if (callbacks == USHER_CALLBACKS_PUMPED) usher_context_pump(context, NULL); /* this is the pumping thread */
  for (way = 0; way < 4; way++) {
    usher_player *player = new_player(context);
    usher_playback *playback = play(player, delegate);
    int32_t state = USHER_SESSION_NONE, status = USHER_E_STATE;
    usher_playback_session_state(playback, &state);
    tell(state == USHER_SESSION_ACTIVE, "sync play, %s: returns with the session", mode_name(callbacks));
    fault("{\"route\":\"teardown\",\"fault\":{\"kind\":\"delay\",\"ms\":100}}");
    if (way == 0) status = usher_playback_close(playback, USHER_CLOSE_DEFAULT);
    if (way == 1) status = usher_playback_free(playback);
    if (way == 2) status = usher_player_stop(player, USHER_CLOSE_DEFAULT);
    if (way == 3) status = usher_player_free(player);
    answers(USHER_OK, status, names[way]);
    tell(held() == 0, "sync end by %s, %s: returns when the slot is free", names[way], mode_name(callbacks));
  }
  usher_context_free(context);
}

int main(void) {
  customer(USHER_RENEW_HEARTBEAT);
  customer(USHER_RENEW_DEFAULT);
  wrong_callbacks();
  clear_streams();
  sync_main_thread(USHER_CALLBACKS_THREADED);
  sync_main_thread(USHER_CALLBACKS_PUMPED);
  stop_then_teardown(0);
  stop_then_teardown(1); /* leaves a session, which expires */
  nothing_held("as_the_sdks");
  return failed != 0;
}
