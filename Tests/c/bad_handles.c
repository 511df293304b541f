/*
 * bad_handles.c - passes four invalid handles to every function that takes a handle: NULL, garbage, a freed handle and
 * a handle of another kind. Each function refuses these handles, sets every out parameter to NULL, and destroys each
 * user_data once. functions.h has the list of functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"
#include "plain.h"

#define ANYTHING ((void *)&failed) /* every out parameter has this value before the call */

static int wrong_answers, functions_called, given, destroyed, out_count;
static void *outs[64];

/* @return valid arguments for all parameters except the handle, so that a function can refuse only the handle. */
static struct plain valid_arguments(void) {
  struct plain plain = plain_defaults;
  static usher_ssp_options ssp;
  plain.of_usher_ssp_options.license_url = license_url();
  ssp = plain.of_usher_ssp_options;
  plain.of_usher_ssp_v2_options.ssp = &ssp;
  plain.of_usher_default_options.license_url = license_url();
  plain.of_usher_delegate_hooks.license = plain_usher_hook_fn;
  plain.of_usher_customer_options.license = plain_usher_customer_license_fn;
  plain.of_usher_customer_options.user_data = &destroyed;
  plain.of_usher_customer_options.destroy = count_destroy;
  plain.of_usher_loader_options.spc = plain_usher_spc_fn;
  plain.of_usher_loader_options.license_url = license_url();
  plain.of_usher_loader_options.user_data = &destroyed;
  plain.of_usher_loader_options.destroy = count_destroy;
  plain.of_usher_playback_options.content_token = "token";
  plain.of_usher_playback_options.user_data = &destroyed;
  plain.of_usher_playback_options.destroy = count_destroy;
  plain.of_usher_license_request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  return plain;
}

/* How many fields with a user_data each structure has. */
enum {
#define STRUCTURE(type, init, destroys) destroys_##type = destroys,
#include "functions.h"
#undef STRUCTURE
};


static void check(const char *what, const char *name, int32_t found, int32_t wanted) {
  functions_called++;
  if (found == wanted) return;
  wrong_answers++;
  tell(0, "%s: %s answers %s", what, name, usher_status_name(found));
}
/* Adds `count` to the number of user_data that the test has passed to functions. @return a `destroy` that counts its
   calls. */
static usher_destroy_fn with_destroy(int count) {
  given += count;
  return count_destroy;
}
static void *next_out(void) {
  outs[out_count % 64] = ANYTHING;
  return &outs[out_count++ % 64];
}

/* Passes the handle `bad` to every function that takes a handle. */
static void refused(const char *what, void *bad, int null) {
  const int32_t free_answer = null ? USHER_OK : USHER_E_INVALID_HANDLE;
  struct plain arguments = valid_arguments(), *plain = &arguments;
  int handed_out = 0, index;
  wrong_answers = functions_called = given = destroyed = out_count = 0;

#undef ARG_OPTIONS
#define ARG_OPTIONS(type) (with_destroy(destroys_##type), &plain->of_##type)
#define ARG_HANDLE(type) ((type *)bad)
#define ARG_OUT_HANDLE(type) ((type **)next_out())
#define ARG_USER_DATA ((void *)&destroyed)
#define ARG_DESTROY with_destroy(1)
#define CALL_HANDLE(name, arguments) check(what, #name, name arguments, USHER_E_INVALID_HANDLE);
#define CALL_FREES(name, arguments) check(what, #name, name arguments, free_answer);
#define CALL_NOTHING(name, arguments)
#define FUNCTION(name, result, takes, arguments) CALL_##takes(name, arguments)
#include "functions.h"
#undef FUNCTION

  tell(wrong_answers == 0, "%s: refused by all %d functions", what, functions_called);
  for (index = 0; index < out_count && index < 64; index++) handed_out += outs[index] != NULL;
  tell(handed_out == 0 && out_count > 0 && out_count <= 64, "%s: every out is NULL", what);
  tell(destroyed == given && given > 0, "%s: each user_data of a refused call was destroyed once (%d of %d)", what,
      destroyed, given);
}

int main(void) {
  usher_context *context;
  usher_player *player;
  static char memory[256];
  refused("NULL", NULL, 1);
  refused("a stack address", &context, 0);
  refused("a heap address", memory, 0);
  refused("all ones", (void *)UINTPTR_MAX, 0);
  refused("5", (void *)5, 0);
  context = new_context(USHER_CALLBACKS_THREADED);
  player = new_player(context);
  {
    usher_playback *wrong = (usher_playback *)(void *)context;
    int32_t state;
    answers(USHER_E_INVALID_HANDLE, usher_playback_session_state(wrong, &state), "a context as the playback");
    answers(USHER_E_INVALID_HANDLE, usher_context_free((usher_context *)(void *)player), "context_free of a player");
    answers(USHER_OK, usher_player_stop(player, 0), "the player is still alive");
  }
  usher_player_free(player);
  refused("a freed player", player, 0);
  usher_context_free(context);
  refused("a freed context", context, 0);
  return failed != 0;
}
