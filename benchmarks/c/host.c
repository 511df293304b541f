/* host.c - see host.h. SPDX-License-Identifier: Apache-2.0 */
#include "host.h"
#include <stdio.h>
#include <stdlib.h>

void host_check(int32_t status, const char *what) {
  if (status != USHER_OK) bench_fail(what, usher_status_name(status));
}

void host_open(host *me, const bench_options *options, usher_context_options context, usher_ssp_options ssp) {
  char license[1024];
  snprintf(license, sizeof license, "%.900s/licenses%s", options->base, me->is_v2 ? "-v2" : "");
  context.ca_file = options->ca;
  /* Allow HTTP/2 in every run. The URL `base` decides whether the library uses HTTP/2, because only one port of the
     server offers HTTP/2. */
  context.http2 = 1;
  if (options->in_flight) context.requests_per_origin_max = (uint32_t)options->in_flight;
  me->is_pumped = context.callbacks == USHER_CALLBACKS_PUMPED;
  ssp.license_url = license;
  ssp.ssm_url = options->base;
  ssp.jitter_permille = USHER_OFF;
  host_check(usher_context_new(&context, &me->context), "usher_context_new");
  usher_ssp_v2_options v2 = USHER_SSP_V2_OPTIONS_INIT;
  v2.ssp = &ssp;
  if (me->is_v2) host_check(usher_ssp_v2_delegate_new(me->context, &v2, &me->delegate), "usher_ssp_v2_delegate_new");
  else host_check(usher_ssp_delegate_new(me->context, &ssp, &me->delegate), "usher_ssp_delegate_new");
  host_check(usher_context_set_delegate(me->context, me->delegate), "usher_context_set_delegate");
  me->players = calloc((size_t)options->sessions, sizeof *me->players);
  me->playbacks = calloc((size_t)options->sessions, sizeof *me->playbacks);
  me->count = 0;
  if (!me->players || !me->playbacks) bench_fail("calloc", "no memory");
}

void host_start(host *me) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  item.content_token = "content.token";
  host_check(usher_player_new(me->context, &me->players[me->count]), "usher_player_new");
  host_check(usher_player_play(me->players[me->count], &item, &me->playbacks[me->count]), "usher_player_play");
  me->count++;
}

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->error.status == USHER_OK) return;
  fprintf(stderr, "%s: %s: %s\n", usher_event_name(event->type), usher_status_name(event->error.status),
      event->error.message ? event->error.message : "");
}

void host_play(host *me, int count) {
  uint64_t observer = 0;
  host_check(usher_context_add_observer(me->context, on_event, NULL, NULL, &observer), "usher_context_add_observer");
  for (int i = 0; i < count; i++) host_start(me);
  host_check(usher_context_settle(me->context, 0, UINT32_MAX, 600000), "set-up: usher_context_settle");
  if (me->is_pumped) host_check(usher_context_pump(me->context, NULL), "usher_context_pump");
  host_check(usher_context_settle(me->context, 0, 0, 600000), "set-up: usher_context_settle");
  host_check(usher_context_remove_observer(me->context, observer), "usher_context_remove_observer");
  if (me->is_pumped) host_check(usher_context_pump(me->context, NULL), "usher_context_pump");
  if (host_active(me) != me->count) bench_fail("set-up", "not every session is active");
}

int host_active(const host *me) {
  int active = 0;
  for (int i = 0; i < me->count; i++) {
    int32_t state = 0;
    host_check(usher_playback_session_state(me->playbacks[i], &state), "usher_playback_session_state");
    active += state == USHER_SESSION_ACTIVE;
  }
  return active;
}

void host_close(host *me) {
  for (int i = 0; i < me->count; i++)
    host_check(usher_playback_close(me->playbacks[i], USHER_CLOSE_LEAVE), "usher_playback_close");
  host_check(usher_context_free(me->context), "usher_context_free");
  free(me->players);
  free(me->playbacks);
}
