/*
 * stage.h - parts that free_in_callback.c and free_in_hook.c share. In these tests a callback frees the playback,
 * player, delegate or context for which it runs. This file has the objects, the actions that free them, and the final
 * checks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_STAGE_H
#define USHER_TEST_STAGE_H

#include "support.h"

enum action { FREE_PLAYBACK, CLOSE_AND_FREE, FREE_PLAYER, FREE_DELEGATE, FREE_CONTEXT, FREE_ALL, ACTIONS };
static const char *const action_names[] = {
    "playback freed", "playback closed and freed", "player freed", "delegate freed", "context freed", "all freed"};

struct stage {
  int kind; /* the kind of callback in which the test frees an object */
  enum action action;
  usher_context *context;
  usher_delegate *delegate;
  usher_loader *loader; /* NULL if there is none; the test frees it when it frees the delegate */
  usher_player *player;
  usher_playback *playback;
  int acted, destroyed, given, claimed;
  int32_t status;
};

/* Every callback calls this function. In the first callback of the kind under test, it frees the objects that `action`
   names. */
static void act(struct stage *s, int kind) {
  int32_t status = USHER_OK;
  if (s->kind != kind) return;
  /* The callback may run before the test has stored the handle of the playback, so wait for the handle. */
  while (!__atomic_load_n(&s->playback, __ATOMIC_SEQ_CST)) sleep_ms(1);
  if (__atomic_exchange_n(&s->claimed, 1, __ATOMIC_SEQ_CST)) return;
  if (s->action == CLOSE_AND_FREE) status = usher_playback_close(s->playback, USHER_CLOSE_TEARDOWN);
  if (s->action <= CLOSE_AND_FREE || s->action == FREE_ALL) status |= usher_playback_free(s->playback);
  if (s->action == FREE_PLAYER || s->action == FREE_ALL) status |= usher_player_free(s->player);
  if (s->action == FREE_DELEGATE || s->action == FREE_ALL)
    status |= usher_delegate_free(s->delegate) | usher_loader_free(s->loader);
  if (s->action == FREE_CONTEXT || s->action == FREE_ALL) status |= usher_context_free(s->context);
  s->status = status;
  add(&s->acted, 1);
}
static void on_destroy(void *user_data) { add(&((struct stage *)user_data)->destroyed, 1); }

/* Checks that the callback ran, that it freed the object, that the context can be freed, and that each destroy ran
   once. */
static void finish(struct stage *s, int32_t callbacks, const char *what) {
  int tries;
  if (!comes(s->context, callbacks, &s->acted, 1, 8000)) tell(0, "%s: the callback came", what);
  if (s->status != USHER_OK) tell(0, "%s: freeing answers %d", what, (int)s->status);
  if (s->action < FREE_CONTEXT) {
    int32_t status = usher_context_close(s->context, 0, NULL),
            wanted = callbacks == USHER_CALLBACKS_PUMPED ? USHER_E_WOULD_DEADLOCK : USHER_OK;
    if (status != wanted) tell(0, "%s: usher_context_close answers %s", what, usher_status_name(status));
    status = usher_context_free(s->context);
    if (status != USHER_OK) tell(0, "%s: usher_context_free answers %s", what, usher_status_name(status));
  } else {
    reaches(&s->destroyed, s->given, 8000); /* a threaded context runs each destroy in the background */
    if (usher_context_free(s->context) != USHER_E_INVALID_HANDLE) tell(0, "%s: the handle is stale", what);
  }
  for (tries = 0; tries < 10 && get(&s->destroyed) == s->given; tries++) sleep_ms(1);
  tell(get(&s->destroyed) == s->given, "%s: every destroy ran exactly once (%d of %d)", what, get(&s->destroyed),
      s->given);
}

#endif
