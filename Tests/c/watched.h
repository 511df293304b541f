/*
 * watched.h - a user_data that counts the callbacks that get it, and the calls of its destroy. The user_data also
 * notices a callback after the destroy.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_WATCHED_H
#define USHER_TEST_WATCHED_H

#include "support.h"

/* Passed as user_data. `late` counts the callbacks that came after the `destroy`. */
struct watched {
  int calls, destroyed, late, line;
};
/* The test uses each element for only one user_data. So if the library destroys a user_data late, the test does not
   count this for another user_data. */
static struct watched arena[1000];
static int given;
static struct watched *watch_at(struct watched **w, int line) {
  *w = &arena[given++];
  (*w)->line = line;
  return *w;
}
#define watch(w) watch_at(w, __LINE__)
/* Excludes a user_data from the final check, because the library did not get it, or got it without a destroy. */
MAY_BE_UNUSED static void forget(struct watched *w) { w->destroyed = 1; }
static void called(void *user_data) {
  struct watched *w = (struct watched *)user_data;
  if (get(&w->destroyed)) add(&w->late, 1);
  add(&w->calls, 1);
}
static void on_destroy(void *user_data) { add(&((struct watched *)user_data)->destroyed, 1); }

/* Makes a claim: the library refused a call, and destroyed its user_data at most once, after `calls` callbacks. */
static int at_return, after_return;
static void refused_after(int calls, struct watched *w, int32_t wanted, int32_t found, const char *what) {
  int destroyed = get(&w->destroyed);
  add(destroyed ? &at_return : &after_return, 1);
  tell(wanted == found && destroyed <= 1 && w->calls == calls, "%s: %s, destroyed %d times at return, called %d times",
      what, usher_status_name(found), destroyed, get(&w->calls));
}
static void refused(struct watched *w, int32_t wanted, int32_t found, const char *what) {
  refused_after(0, w, wanted, found, what);
}
#define at_once(w, wanted, call, what) \
  do { \
    int32_t found_; \
    watch(&w); \
    found_ = (call); \
    refused(w, wanted, found_, what); \
  } while (0)
/* Makes a claim: the library soon destroys the user_data, exactly once, after `calls` callbacks (-1: after any
   number of callbacks). */
static void once(usher_context *context, int32_t callbacks, struct watched *w, int calls, const char *what) {
  int came = context ? comes(context, callbacks, &w->destroyed, 1, 5000) : reaches(&w->destroyed, 1, 5000);
  sleep_ms(2);
  tell(came && get(&w->destroyed) == 1 && get(&w->late) == 0 && (calls < 0 || get(&w->calls) == calls),
      "%s (%s): destroyed %d times, called %d times, %d of them too late", what, mode_name(callbacks),
      get(&w->destroyed), get(&w->calls), get(&w->late));
}

/* Called at the end of threaded mode and of pumped mode: checks every user_data that the test passed since the last
   check. */
static void all_destroyed(int32_t callbacks) {
  static int seen;
  int wrong = 0;
  for (; seen < given; seen++)
    if (get(&arena[seen].destroyed) != 1 || get(&arena[seen].late) != 0)
      printf("passed in line %d: destroyed %d times\n", arena[seen].line, get(&arena[seen].destroyed)), wrong++;
  tell(wrong == 0, "in the end every user_data was destroyed exactly once (%s): except %d of %d", mode_name(callbacks),
      wrong, given);
}

#endif
