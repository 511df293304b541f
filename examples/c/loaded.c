/*
 * loaded.c - plays an encrypted clip under a session. The program is not linked with libusher: it loads the library by
 * dlopen() and calls it through the table of usher_get_api(), so that it also starts where libusher is not installed.
 *
 *   cc loaded.c $(pkg-config --cflags usher libavformat libavcodec libavutil) \
 *      $(pkg-config --libs libavformat libavcodec libavutil) -ldl -o loaded
 *   ./loaded LIBRARY CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID      (LIBRARY: libusher.so.0; key id: 32 hex digits)
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <usher/usher.h>

static const usher_api *usher;
/* challenge.h and clip.h call these three functions. */
#define usher_clearkey_request usher->clearkey_request
#define usher_clearkey_keys usher->clearkey_keys
#define usher_playback_session_state usher->playback_session_state
#include "challenge.h"
#include "clip.h" /* decodes the clip; in your app, the player does this */

/* @return 1 if the library is there and has every function that this program needs. */
static int load(const char *name) {
  usher_get_api_fn get_api = NULL;
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "usher_get_api") : NULL;
  memcpy(&get_api, &symbol, sizeof get_api); /* ISO C cannot cast a data pointer to a function pointer */
  usher = get_api ? get_api(USHER_VERSION_MAJOR) : NULL;
  const size_t needed = offsetof(usher_api, clearkey_keys) + sizeof usher->clearkey_keys;
  if (!library) fprintf(stderr, "no libusher: %s\n", dlerror());
  else if (!usher || usher->struct_size < needed) fprintf(stderr, "this libusher has another version\n");
  return usher && usher->struct_size >= needed;
}

int main(int argc, char **argv) {
  if (argc != 7)
    return fprintf(stderr, "usage: %s LIBRARY CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", argv[0]), 2;
  if (!load(argv[1])) return 1;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info licence = USHER_RESPONSE_INFO_INIT;
  char challenge[128];
  if (!challenge_for(argv[6], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[6]), 2;
  usher_ssp_options ssp = {.struct_size = sizeof ssp, .license_url = argv[3], .ssm_url = argv[4]};
  usher_playback_options item = {.struct_size = sizeof item, .content_token = argv[5]};
  usher_license_request request = {.struct_size = sizeof request,
      .key_system = USHER_KEY_SYSTEM_CLEARKEY,
      .payload = (const uint8_t *)challenge,
      .payload_size = strlen(challenge)};
  int32_t status = usher->context_new(NULL, &context);
  if (!status) status = usher->ssp_delegate_new(context, &ssp, &delegate);
  if (!status) status = usher->context_set_delegate(context, delegate);
  if (!status) status = usher->player_new(context, &player);
  if (!status) status = usher->player_play(player, &item, &playback);
  if (!status) status = usher->playback_get_license(playback, &request, &response);
  if (!status) status = usher->response_get(response, &licence);
  int failed = status ? fprintf(stderr, "%s\n", usher->status_message(status))
                      : clip_play(argv[2], licence.data, licence.data_size, playback);
  usher->response_free(response);
  usher->context_close(context, 0, NULL); /* waits until the session is torn down */
  usher->context_free(context); /* frees everything in the context */
  return failed != 0;
}
