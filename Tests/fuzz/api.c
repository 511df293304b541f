/*
 * api.c - libFuzzer calls the C functions. Each input consists of three programs: one for each of two threads, and one
 * for callbacks. A program calls any functions of the headers in any order, with any handles and with options of any
 * size. Whatever the input is: each accepted request completes once; the library destroys each user_data once, and does
 * not use it after that; no thread hangs; and at the end the server holds no session, unless the input leaves one on
 * purpose.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api_steps.h"

#include <time.h>

static int threads_ended;

static void nap(void) {
  struct timespec time = {0, 100000};
  nanosleep(&time, NULL);
}

static void *run_program(void *argument) {
  struct program *p = (struct program *)argument;
  int steps_taken = 0;
  while (!over(p) && steps_taken++ < 64) take_step(p), step_over(p);
  add(&threads_ended);
  return NULL;
}

/* Starts a playback before the programs run, since few inputs would start a playback themselves. The bits of `choices`
   select the clock, the delegate and the number of callback threads. */
static void begin(unsigned choices) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_ssp_v2_options v2 = USHER_SSP_V2_OPTIONS_INIT;
  usher_customer_options own = USHER_CUSTOMER_OPTIONS_INIT;
  usher_default_options plain = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  usher_loader_options loader = USHER_LOADER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  char url[128], keys[128];
  make_url(url, sizeof url, server_port, "good", "sessions"),
      make_url(keys, sizeof keys, server_port, "good", "license");
  options.clock = !is_strict && (choices & 2) ? USHER_CLOCK_MANUAL : USHER_CLOCK_SYSTEM;
  options.callbacks = choices & 4 ? USHER_CALLBACKS_PUMPED : USHER_CALLBACKS_THREADED;
  MUST(usher_context_new(&options, &context) == USHER_OK, "a context is made\n");
  ssp.license_url = ssp.certificate_url = keys, ssp.ssm_url = url;
  ssp.token_timeout_ms = ssp.payload_timeout_ms = ssp.hook_timeout_ms = ssp.token_wait_ms = 30;
  v2.ssp = &ssp, v2.teardown_on_close = 1;
  own.license = on_license, own.heartbeat = own.teardown = on_call,
  own.user_data = watch(at_usher_customer_delegate_new, 0), own.destroy = on_destroy;
  own.license_timeout_ms = own.teardown_timeout_ms = own.payload_timeout_ms = 30;
  if ((choices & 24) == 8) usher_ssp_v2_delegate_new(context, &v2, &delegate);
  if ((choices & 24) == 16) usher_customer_delegate_new(context, &own, &delegate);
  else on_destroy(own.user_data);
  if ((choices & 24) == 24) {
    plain.license_url = plain.certificate_url = keys, plain.hook_timeout_ms = 30;
    hooks.content_id = hooks.certificate = hooks.http_headers = hooks.license_url = hooks.license_body = hooks.license =
        on_hook;
    usher_common_delegate_new(context, &plain, &hooks, watch(at_usher_common_delegate_new, 0), on_destroy, &delegate);
  }
  if (!delegate) usher_multi_instance_delegate_new(context, &ssp, NULL, &delegate);
  usher_delegate_set_stream_token(delegate, (const uint8_t *)"one", 3, "token");
  if (choices & 32)
    usher_delegate_set_token_callback(delegate, on_token, watch(at_usher_delegate_set_token_callback, 0), on_destroy);
  usher_context_set_delegate(context, delegate);
  loader.license_url = keys, loader.spc = on_spc, loader.spc_timeout_ms = 30,
  loader.user_data = watch(at_usher_context_add_loader, 0), loader.destroy = on_destroy;
  usher_context_add_loader(context, &loader, (usher_loader **)(uintptr_t)&handles[LOADERS][0]);
  usher_player_new(context, (usher_player **)(uintptr_t)&handles[PLAYERS][0]);
  item.content_token = choices & 64 ? NULL : "token", item.payload = on_payload,
  item.user_data = watch(at_usher_player_play, 0), item.destroy = on_destroy;
  usher_player_play((usher_player *)handles[PLAYERS][0], &item, (usher_playback **)(uintptr_t)&handles[PLAYBACKS][0]);
  handles[CONTEXTS][0] = context, handles[DELEGATES][0] = delegate;
}

static void end_all(void) {
  unsigned slot;
  int index, tries;
  for (slot = 0; slot < SLOTS; slot++) CALL(usher_context_free, ((usher_context *)look(CONTEXTS, slot)));
  for (slot = 0; slot < SLOTS; slot++) CALL(usher_response_free, ((usher_response *)look(RESPONSES, slot)));
  for (index = 0; index < get(&watch_count); index++) {
    struct watch *w = &watches[index];
    /* Waits, because a context that a callback freed ends in the background. */
    for (tries = 0; tries < 80000 && !get(&w->destroyed) && !w->may_be_lost; tries++) nap();
    MUST(get(&w->destroyed) == 1 || (w->may_be_lost && get(&w->destroyed) == 0),
        "%s: its user_data was destroyed %d times\n", names[w->function], get(&w->destroyed));
    MUST(get(&w->late) == 0, "%s: its user_data was used after its destroy\n", names[w->function]);
    MUST(!w->is_once || get(&w->calls) == get(&w->is_accepted), "%s: accepted %d times, completed %d times\n",
        names[w->function], get(&w->is_accepted), get(&w->calls));
  }
  if (is_strict) MUST(sessions_held() == 0, "%u sessions are held\n", sessions_held());
  for (index = 0; index < KINDS; index++)
    for (slot = 0; slot < SLOTS; slot++) handles[index][slot] = NULL;
}

static void tell_calls(void) {
  int index, called_count = 0, well = 0;
  for (index = 0; index < FUNCTION_COUNT; index++) {
    called_count += calls[index] > 0, well += went_well[index] > 0;
    if (!calls[index]) fprintf(stderr, "never called: %s\n", names[index]);
    if (calls[index] && !went_well[index]) fprintf(stderr, "never succeeded: %s\n", names[index]);
  }
  fprintf(stderr, "%d of %d functions were called, %d succeeded\n", called_count, FUNCTION_COUNT, well);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  start_server();
  atexit(tell_calls);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct program programs[3];
  size_t at[3] = {0, 0, 0}, third, index;
  pthread_t threads[2];
  if (size < 8) return 0;
  is_strict = bytes[0] & 1;
  reset_server(bytes + size - bytes[1] % 64 % size, bytes[1] % 64 % size);
  third = (size - 2) / 5;
  memset(programs, 0, sizeof programs);
  for (index = 0; index < 3; index++) programs[index].at = &at[index];
  programs[0].bytes = bytes + 2, programs[0].size = 2 * third;
  programs[1].bytes = bytes + 2 + 2 * third, programs[1].size = 2 * third;
  programs[2].bytes = bytes + 2 + 4 * third, programs[2].size = third, programs[2].is_callback = 1;
  callback_program = programs[2];
  watch_count = threads_ended = 0;
  begin(bytes[0]);
  for (index = 0; index < 2; index++)
    MUST(pthread_create(&threads[index], NULL, run_program, &programs[index]) == 0, "no thread\n");
  /* A thread may be waiting for the manual clock of a context, so move the clocks until both threads have ended. */
  while (get(&threads_ended) < 2) {
    for (index = 0; index < SLOTS; index++)
      usher_context_advance((usher_context *)look(CONTEXTS, (unsigned)index), 20, 0);
    nap();
  }
  for (index = 0; index < 2; index++) pthread_join(threads[index], NULL);
  end_all();
  return 0;
}
