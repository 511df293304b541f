/*
 * metrics.c - a host reads the metrics of its context while it plays, as the agent of a monitoring system does: their
 * numbers agree with the head-end's journal, and their text is written only into a buffer that is large enough.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

static usher_context *context;
static int32_t in_callback = 1;
static int started, reads, wrong, stop;

static void on_event(const usher_event *event, void *user_data) {
  usher_metrics metrics = USHER_METRICS_INIT;
  (void)user_data;
  if (event->type != USHER_EVENT_SESSION_STARTED) return;
  in_callback = usher_context_metrics(context, &metrics);
  add(&started, 1);
}
/* The work of a thread that reads the metrics again and again until the test sets `stop`. Adds 1 to `wrong` if a call
   fails, if a counter has decreased, or if there were more keep-alives than heartbeats. @return NULL. */
static void *scrape(void *unused) {
  usher_metrics before = USHER_METRICS_INIT;
  (void)unused;
  while (!get(&stop)) {
    usher_metrics now = USHER_METRICS_INIT;
    if (usher_context_metrics(context, &now) != USHER_OK) add(&wrong, 1);
    if (now.heartbeats_sent < before.heartbeats_sent || now.sessions_opened < before.sessions_opened ||
        now.connections_opened < before.connections_opened || now.keep_alives > now.heartbeats_sent)
      add(&wrong, 1);
    before = now;
    add(&reads, 1);
  }
  return NULL;
}
static usher_metrics read_metrics(void) {
  usher_metrics metrics = USHER_METRICS_INIT;
  tell(usher_context_settle(context, 0, 0, 5000) == USHER_OK, "all requests and callbacks have ended");
  tell(usher_context_metrics(context, &metrics) == USHER_OK, "usher_context_metrics succeeds");
  return metrics;
}
static int has(const char *page, size_t size, const char *line) {
  size_t length = strlen(line), at;
  for (at = 0; at + length <= size; at++)
    if (memcmp(page + at, line, length) == 0) return 1;
  return 0;
}

static void texts(const usher_metrics *metrics) {
  static char page[16384];
  size_t size = 0, needed;
  usher_metrics small = *metrics;
  tell(usher_metrics_text(metrics, NULL, NULL, &size) == USHER_E_TOO_LARGE && size > 1000,
      "without a buffer it returns the length: %lu bytes", (unsigned long)size);
  needed = size--;
  memset(page, '#', sizeof page);
  tell(usher_metrics_text(metrics, NULL, (uint8_t *)page, &size) == USHER_E_TOO_LARGE && size == needed &&
           page[0] == '#',
      "a buffer that is one byte too small: the length, and nothing is written");
  size = sizeof page;
  tell(usher_metrics_text(metrics, NULL, (uint8_t *)page, &size) == USHER_OK && size == needed && page[size] == '#',
      "a large buffer gets the text and nothing after it");
  tell(page[size - 1] == '\n' && has(page, size, "\nusher_sessions_held 1\n") &&
           has(page, size, "\nusher_requests_sent_total{kind=\"setup\"} 1\n"),
      "the text has the numbers");
  size = sizeof page;
  tell(usher_metrics_text(metrics, "screen=\"3\"", (uint8_t *)page, &size) == USHER_OK &&
           has(page, size, "\nusher_sessions_held{screen=\"3\"} 1\n") &&
           has(page, size, "\nusher_requests_sent_total{screen=\"3\",kind=\"setup\"} 1\n"),
      "the text has the host's labels");
  tell(usher_metrics_text(metrics, "a=\"\n\"", (uint8_t *)page, &size) == USHER_E_INVALID_ARGUMENT, "a bad label");
  tell(usher_metrics_text(NULL, NULL, (uint8_t *)page, &size) == USHER_E_INVALID_ARGUMENT, "no metrics");
  tell(usher_metrics_text(metrics, NULL, (uint8_t *)page, NULL) == USHER_E_INVALID_ARGUMENT, "no size");
  small.struct_size--;
  tell(usher_metrics_text(&small, NULL, (uint8_t *)page, &size) == USHER_E_INVALID_ARGUMENT, "a struct too short");
  tell(usher_context_metrics(context, &small) == USHER_E_INVALID_ARGUMENT, "a struct too short for the context");
  tell(usher_context_metrics(context, NULL) == USHER_E_INVALID_ARGUMENT, "no struct");
  tell(usher_context_metrics(NULL, &small) == USHER_E_INVALID_HANDLE, "no context");
}

int main(void) {
  usher_metrics metrics;
  usher_player *player;
  usher_playback *playback;
  pthread_t thread;
  context = new_context(USHER_CALLBACKS_THREADED);
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  player = new_player(context);
  pthread_create(&thread, NULL, scrape, NULL);
  playback = play(player, new_delegate(context, license_url()));
  tell(usher_playback_wait_session(playback, 5000, NULL) == USHER_OK, "a session");
  tell(reaches(&started, 1, 5000) && in_callback == USHER_E_WOULD_DEADLOCK, "refused in a callback: %d", in_callback);
  tell(reaches(&reads, get(&reads) + 2, 5000), "another thread reads the metrics meanwhile");
  add(&stop, 1);
  pthread_join(thread, NULL);
  tell(get(&wrong) == 0, "reads that failed or had a wrong number: %d", get(&wrong));
  metrics = read_metrics();
  tell(metrics.sessions_held == 1 && metrics.sessions_opened == 1, "one session is held");
  tell((int)metrics.setups_sent == requests("setup") && metrics.setups_sent == 1, "one set-up was sent");
  texts(&metrics);
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  tell(usher_playback_wait_closed(playback, 5000) == USHER_OK, "the playback is closed");
  metrics = read_metrics();
  tell(metrics.sessions_held == 0 && metrics.sessions_lost == 0, "no session is held, none was lost");
  tell((int)metrics.teardowns_sent == requests("teardown") && metrics.teardowns_failed == 0, "one teardown was sent");
  tell((int)metrics.heartbeats_sent == requests("heartbeat"), "as many heartbeats as the head-end got: %d",
      (int)metrics.heartbeats_sent);
  usher_context_free(context);
  nothing_held("metrics");
  return failed != 0;
}
