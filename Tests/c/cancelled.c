/*
 * cancelled.c - a host cancels its own threads while they call the library. No function of the library is a
 * cancellation point: each call returns, and only then the thread ends. Callback threads cannot be cancelled.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>

#include "support.h"

static usher_context *context;
static usher_delegate *delegate;
static usher_player *player;
static usher_playback *playback;
static int calls, events;

static void on_hang(int signal) {
  static const char message[] = "not ok - a cancelled thread keeps a lock of the library\n";
  (void)signal;
  _exit(write(1, message, sizeof message - 1) < 0 ? 3 : 2);
}
static void on_event(const usher_event *event, void *user_data) {
  (void)event, (void)user_data;
  pthread_cancel(pthread_self());
  pthread_testcancel();
  add(&events, 1);
}
static void call(int which) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  usher_pending pending = USHER_PENDING_INIT;
  usher_response *response = NULL;
  uint64_t id = 0;
  int32_t state;
  switch (which) {
  case 0: usher_context_resume(context); break;
  case 1: usher_context_pending(context, &pending); break;
  case 2: usher_playback_wait_session(playback, 2000, NULL); break;
  case 3: usher_playback_get_license(playback, &request, &response); break;
  case 4: usher_context_settle(context, 100, 100, 2000); break;
  case 5: usher_context_add_observer(context, on_event, NULL, NULL, &id); break;
  case 6: usher_playback_session_state(playback, &state); break;
  case 7: usher_complete_token(12345, "x"); break;
  case 8: usher_delegate_set_http_header(delegate, "x-name", "value"); break;
  case 9: usher_playback_wait_closed(playback, 10); break;
  default: usher_player_stop(player, USHER_CLOSE_DEFAULT); break;
  }
}
static void *cancelled(void *which) {
  pthread_cancel(pthread_self());
  call(*(int *)which);
  add(&calls, 1);
  pthread_testcancel();
  return NULL;
}

int main(void) {
  int which, ended = 0;
  signal(SIGALRM, on_hang);
  alarm((unsigned)(30 * patience()));
  context = new_context(USHER_CALLBACKS_THREADED);
  delegate = new_delegate(context, license_url());
  player = new_player(context);
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  playback = play(player, delegate);
  for (which = 0; which <= 10; which++) {
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, cancelled, &which);
    pthread_join(thread, &result);
    ended += result == PTHREAD_CANCELED;
  }
  tell(get(&calls) == 11, "%d of 11 calls return although the host has cancelled their thread", get(&calls));
  tell(ended == 11, "%d of 11 threads end after the call", ended);
  answers(USHER_OK, usher_context_resume(context), "the library works afterwards");
  answers(USHER_OK, usher_context_close(context, 0, NULL), "usher_context_close");
  tell(get(&events) >= 2, "callback threads survive pthread_cancel() (%d events)", get(&events));
  answers(USHER_OK, usher_context_free(context), "usher_context_free");
  nothing_held("cancelled");
  return failed != 0;
}
