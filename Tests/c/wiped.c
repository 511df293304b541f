/*
 * wiped.c - memory that the library frees no longer contains a token. This program replaces free() and looks into each
 * block that libusher, json-c and Swift's run-time library free. (libusher does not wipe the buffers of libcurl.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"
#include <link.h>
#include <malloc.h>

extern void __libc_free(void *memory);

enum { most_ranges = 16, most_seen = 8 };
static struct { uintptr_t from, to; } watched[most_ranges];
static int ranges, freed, dirty, probes, probing;
static char mark[16], kept[most_seen][64];

static int find_code(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size;
  (void)unused;
  if (!strstr(object->dlpi_name, "libusher") && !strstr(object->dlpi_name, "libjson-c") &&
      !strstr(object->dlpi_name, "libswiftCore"))
    return 0;
  for (int i = 0; i < object->dlpi_phnum && ranges < most_ranges; i++) {
    if (object->dlpi_phdr[i].p_type != PT_LOAD || !(object->dlpi_phdr[i].p_flags & PF_X)) continue;
    watched[ranges].from = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
    watched[ranges].to = watched[ranges].from + object->dlpi_phdr[i].p_memsz;
    ranges++;
  }
  return 0;
}

/* All tokens of the head-end are JWTs with the same header, so they begin with the same characters. */
static void look_for_tokens(void) {
  memcpy(mark, content_token(), sizeof mark - 1);
  dl_iterate_phdr(find_code, NULL);
}

void free(void *memory) {
  const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
  int counts = get(&probing);
  for (int i = 0; i < ranges && !counts; i++) counts = caller >= watched[i].from && caller < watched[i].to;
  if (memory && counts) {
    const size_t size = malloc_usable_size(memory);
    const char *found = mark[0] ? (const char *)memmem(memory, size, mark, sizeof mark - 1) : NULL;
    add(get(&probing) ? &probes : &freed, 1);
    if (found) {
      const size_t rest = (size_t)((const char *)memory + size - found);
      const int seen = __atomic_fetch_add(&dirty, 1, __ATOMIC_SEQ_CST);
      if (seen < most_seen)
        snprintf(kept[seen], sizeof kept[0], "%zu bytes, %.*s", size, (int)(rest < 30 ? rest : 30), found);
    }
  }
  __libc_free(memory);
}

/* Checks that the search notices a freed block with a token in it. */
static void a_guard_that_sees(void) {
  char *block = strdup(content_token());
  add(&probing, 1);
  free(block);
  add(&probing, -1);
  tell(get(&dirty) == 1 && get(&probes) == 1, "the check notices a freed block with a token in it: %d of %d",
      get(&dirty), get(&probes));
  add(&dirty, -get(&dirty));
}

static void a_session_and_its_licence(void) {
  static const uint8_t challenge[] = {8, 1, 18, 4, 't', 'e', 's', 't'};
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  usher_context *context = NULL;
  usher_response *response = NULL;
  options.clock = USHER_CLOCK_MANUAL;
  answers(USHER_OK, usher_context_new(&options, &context), "a context is made");
  usher_player *player = new_player(context);
  usher_delegate *delegate = new_delegate(context, license_url());
  usher_playback *playback = play(player, delegate);
  answers(USHER_OK, usher_playback_wait_session(playback, 0, NULL), "the session is set up");
  request.key_system = USHER_KEY_SYSTEM_WIDEVINE;
  request.payload = challenge;
  request.payload_size = sizeof challenge;
  answers(USHER_OK, usher_playback_get_license(playback, &request, &response), "a licence arrives");
  usher_response_free(response);
  for (int beat = 0; beat < 5; beat++) usher_context_advance(context, 1000, 10000);
  tell(requests("heartbeat") >= 5, "kept alive: %d heartbeats", requests("heartbeat"));
  usher_playback_close(playback, USHER_CLOSE_TEARDOWN);
  usher_context_settle(context, 0, 0, 10000);
  answers(USHER_OK, usher_context_free(context), "usher_context_free");
}

int main(void) {
  look_for_tokens();
  a_guard_that_sees();
  a_session_and_its_licence();
  tell(ranges > 1 && get(&freed) > 200, "the program looked into blocks freed by %d code ranges: %d", ranges,
      get(&freed));
  for (int i = 0; i < get(&dirty) && i < most_seen; i++) printf("held a token: %s\n", kept[i]);
  tell(get(&dirty) == 0, "none of them held a token: %d did", get(&dirty));
  nothing_held("at the end");
  return failed != 0;
}
