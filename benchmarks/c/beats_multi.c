/*
 * beats_multi.c - heartbeats of a plain event loop. It uses libcurl's multi interface with socket functions, and epoll;
 * json-c reads the replies. The program has at most `--in-flight` requests in flight (default: one per session), and
 * reuses its easy handles. With --pace it sends one heartbeat after the other on the real clock.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "request.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

typedef struct slot {
  CURL *easy;
  bench_body body;
  request_headers headers;
  int session;
} slot;

typedef struct loop {
  CURLM *multi;
  int epoll;
  int64_t due_ms; /* the time at which libcurl wants the next call; -1: no time is set */
  char **lines;
  int next, ended, last; /* the next session to send for, how many have ended, and the end of the round */
} loop;

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *known) {
  loop *me = data;
  (void)easy;
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(me->epoll, EPOLL_CTL_DEL, fd, NULL);
    curl_multi_assign(me->multi, fd, NULL);
    return 0;
  }
  struct epoll_event event = {0};
  event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
  event.data.fd = fd;
  epoll_ctl(me->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
  if (!known) curl_multi_assign(me->multi, fd, me);
  return 0;
}

static int on_timer(CURLM *multi, long milliseconds, void *data) {
  (void)multi;
  ((loop *)data)->due_ms = milliseconds < 0 ? -1 : now_ms() + milliseconds;
  return 0;
}

static void send_next(loop *me, slot *on) {
  on->session = me->next++;
  request_set_line(&on->headers, me->lines[on->session]);
  if (curl_multi_add_handle(me->multi, on->easy) != CURLM_OK) bench_fail("curl_multi_add_handle", "refused");
}

static void collect(loop *me) {
  CURLMsg *message;
  int left;
  while ((message = curl_multi_info_read(me->multi, &left)) != NULL) {
    slot *on = NULL;
    const CURLcode code = message->data.result;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&on);
    curl_multi_remove_handle(me->multi, on->easy);
    request_answered(on->easy, code, &on->body, &me->lines[on->session]);
    me->ended++;
    if (me->next < me->last) send_next(me, on);
  }
}

/** Sends a heartbeat for each session from `first` to `last` - 1. */
static void beat(loop *me, slot *slots, int in_flight, int first, int last) {
  struct epoll_event ready[64];
  int left;
  me->next = me->ended = first;
  me->last = last;
  for (int i = 0; i < in_flight && me->next < last; i++) send_next(me, &slots[i]);
  while (me->ended < last) {
    int64_t wait = me->due_ms < 0 ? 10000 : me->due_ms - now_ms();
    const int count = epoll_wait(me->epoll, ready, 64, wait < 0 ? 0 : (int)wait);
    for (int i = 0; i < count; i++) {
      const int flags = (ready[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                        (ready[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                        (ready[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
      curl_multi_socket_action(me->multi, ready[i].data.fd, flags, &left);
    }
    if (me->due_ms >= 0 && me->due_ms <= now_ms()) {
      me->due_ms = -1;
      curl_multi_socket_action(me->multi, CURL_SOCKET_TIMEOUT, 0, &left);
    }
    collect(me);
  }
}

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  const int in_flight =
      options.in_flight && options.in_flight < options.sessions ? options.in_flight : options.sessions;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  loop me = {
      curl_multi_init(), epoll_create1(EPOLL_CLOEXEC), -1, calloc((size_t)options.sessions, sizeof(char *)), 0, 0, 0};
  slot *slots = calloc((size_t)in_flight, sizeof *slots);
  if (!me.multi || me.epoll < 0 || !me.lines || !slots) bench_fail("the loop", "cannot be made");
  curl_multi_setopt(me.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(me.multi, CURLMOPT_SOCKETDATA, &me);
  curl_multi_setopt(me.multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(me.multi, CURLMOPT_TIMERDATA, &me);
  bench_body body = {NULL, 0, 0};
  CURL *first = request_handle(&options, &body);
  request_headers headers;
  request_use_headers(first, &headers);
  for (int i = 0; i < options.sessions; i++) me.lines[i] = request_setup(first, &options, &headers, &body);
  curl_easy_cleanup(first);
  for (int i = 0; i < in_flight; i++) {
    slots[i].easy = request_handle(&options, &slots[i].body);
    curl_easy_setopt(slots[i].easy, CURLOPT_PRIVATE, &slots[i]);
    request_use_headers(slots[i].easy, &slots[i].headers);
    request_route(slots[i].easy, &options, "heartbeat");
  }
  bench_clock spent = {0};
  int64_t due = bench_now().wall_ns;
  for (int round = -options.warm_up; round < options.rounds; round++) {
    const bench_clock start = bench_now();
    if (!options.pace) beat(&me, slots, in_flight, 0, options.sessions);
    for (int i = 0; options.pace && i < options.sessions; i++) {
      bench_sleep_until(due += 1000000000 / options.pace);
      beat(&me, slots, 1, i, i + 1);
    }
    if (round >= 0) bench_add(&spent, start);
  }
  bench_print(spent, (int64_t)options.rounds * options.sessions);
  for (int i = 0; i < in_flight; i++) {
    curl_easy_cleanup(slots[i].easy);
    free(slots[i].body.bytes);
  }
  curl_multi_cleanup(me.multi);
  for (int i = 0; i < options.sessions; i++) free(me.lines[i]);
  free(me.lines);
  free(slots);
  free(body.bytes);
  close(me.epoll);
  curl_global_cleanup();
  return 0;
}
