/*
 * dlopen_again.c - a host that is not linked with libusher and has already loaded another libcurl (the one for GnuTLS).
 * It loads libusher with dlopen and RTLD_LOCAL, plays with the functions of usher_get_api(), unloads the library, loads
 * it again, and plays again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define USHER_TEST_NOT_LINKED 1
#include "support.h"
#include <dlfcn.h>

static int events;
/* @return whether a file with this name is mapped into the process. */
static int mapped(const char *name) {
  char line[1024];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && !found && fgets(line, sizeof line, maps)) found = strstr(line, name) != NULL;
  if (maps) fclose(maps);
  return found;
}
static void on_event(const usher_event *event, void *user_data) {
  (void)event, (void)user_data;
  add(&events, 1);
}
static void host_uses_curl(void *curl) {
  void *(*easy_init)(void), (*easy_cleanup)(void *);
  const char *(*version)(void);
  void *easy;
  *(void **)&easy_init = dlsym(curl, "curl_easy_init");
  *(void **)&easy_cleanup = dlsym(curl, "curl_easy_cleanup");
  *(void **)&version = dlsym(curl, "curl_version");
  easy = easy_init();
  tell(easy != NULL, "the host's own libcurl works: %s", version());
  easy_cleanup(easy);
}

static const usher_api *load(void **library, int flags) {
  usher_get_api_fn get_api = NULL;
  *library = dlopen(setting("USHER_TEST_LIBRARY"), RTLD_NOW | flags);
  if (!tell(*library != NULL, "dlopen: %s", *library ? "done" : dlerror())) exit(1);
  *(void **)&get_api = dlsym(*library, "usher_get_api");
  tell(get_api != NULL, "dlsym finds usher_get_api");
  tell(dlsym(RTLD_DEFAULT, "usher_context_new") == NULL || flags == RTLD_GLOBAL,
      "the global scope has no name of libusher");
  tell(get_api(USHER_VERSION_MAJOR + 1) == NULL && get_api(UINT32_MAX) == NULL,
      "usher_get_api refuses an unknown major version");
  return get_api(USHER_VERSION_MAJOR);
}

static void story(const usher_api *usher, int leave_running) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  int32_t status;
  ssp.license_url = license_url();
  ssp.ssm_url = ssm_url();
  item.content_token = content_token();
  status = usher->context_new(NULL, &context);
  status |= usher->context_add_observer(context, on_event, NULL, NULL, NULL);
  status |= usher->ssp_delegate_new(context, &ssp, &delegate);
  status |= usher->context_set_delegate(context, delegate);
  status |= usher->player_new(context, &player);
  status |= usher->player_play(player, &item, &playback);
  status |= usher->playback_get_license(playback, &request, &response);
  status |= usher->response_get(response, &info);
  tell(status == 0 && info.data_size == 36, "a licence through the table: %d", (int)status);
  tell(held() >= 1, "a session is held");
  usher->response_free(response);
  if (leave_running) return;
  status = usher->context_close(context, 0, NULL);
  status |= usher->context_free(context);
  tell(status == 0, "closed and freed: %d", (int)status);
  nothing_held("through the table");
}

int main(void) {
  void *curl = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_GLOBAL), *library;
  const usher_api *usher;
  const char *(*its_version)(void), *(*host_version)(void);
  const size_t pointers = (sizeof(usher_api) - sizeof(size_t)) / sizeof(void *);
  size_t index;
  int empty = 0, round;
  if (!tell(curl != NULL, "the host has a libcurl: libcurl-gnutls.so.4 (Debian package: libcurl3-gnutls)")) return 1;
  tell(!mapped("/libusher.so") && !mapped("/libcurl.so"), "neither libusher nor the libcurl it needs is loaded yet");
  host_uses_curl(curl);
  for (round = 0; round < 3; round++) {
    usher = load(&library, RTLD_LOCAL);
    if (!tell(usher != NULL && usher->struct_size >= sizeof(usher_api), "the table is as large as the header's"))
      return 1;
    for (index = 0; index < pointers; index++) empty += ((void *const *)(const void *)&usher->version)[index] == NULL;
    tell(empty == 0, "every entry is filled");
    tell(mapped("/libcurl-gnutls.so") && mapped("/libcurl.so"), "two libcurls are loaded now");
    *(void **)&its_version = dlsym(library, "curl_version");
    *(void **)&host_version = dlsym(curl, "curl_version");
    tell(strstr(host_version(), "GnuTLS") && strstr(its_version(), "OpenSSL"),
        "the host's is with GnuTLS, ours with OpenSSL");
    story(usher, 0);
    answers(0, dlclose(library), "dlclose");
    tell(usher->version()[0] != 0, "libusher stays mapped after dlclose");
  }
  usher = load(&library, RTLD_LOCAL);
  story(usher, 1); /* story() does not free the context; the session expires when this process has ended */
  answers(0, dlclose(library), "dlclose while a context lives");
  index = (size_t)get(&events);
  tell(reaches(&events, (int)index + 1, 5000), "heartbeats still keep its session alive");
  /* Loads the library again while the context of the first load still runs. No code has the handle of that context any
     more, since story() has returned. */
  usher = load(&library, RTLD_LOCAL);
  story(usher, 1);
  host_uses_curl(curl);
  return failed != 0;
}
