/*
 * wiped.c - memory that the library frees no longer contains a token. This program replaces free(), and keeps a copy of
 * each block that libusher, json-c and Swift's run-time library free. After the playback the program reads the tokens
 * from the head-end's journal, and searches the copies for these tokens. (libusher does not wipe the buffers of
 * libcurl.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"
#include <link.h>
#include <malloc.h>

extern void __libc_free(void *memory);

enum { most_ranges = 16, most_tokens = 64, most_bytes = 256 << 20, mark_size = 12 };
static struct { uintptr_t from, to; } watched[most_ranges];
static int ranges, freed, probing;
/* The copies of the freed blocks, with a NUL after each. */
static char copies[most_bytes];
static size_t copied;
/* The ends of the tokens. The beginning of a JWT is no secret: all JWTs of a head-end begin alike. An opaque token has
   at least `mark_size` characters. */
static char marks[most_tokens][mark_size + 1];
static int tokens;

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

void free(void *memory) {
  const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
  int counts = get(&probing);
  for (int i = 0; i < ranges && !counts; i++) counts = caller >= watched[i].from && caller < watched[i].to;
  if (memory && counts) {
    const size_t size = malloc_usable_size(memory);
    const size_t at = __atomic_fetch_add(&copied, size + 1, __ATOMIC_SEQ_CST);
    if (at + size < most_bytes) memcpy(copies + at, memory, size);
    add(&freed, 1);
  }
  __libc_free(memory);
}

/* Adds the end of a token to `marks`, once. */
static void add_mark(const char *token, size_t size) {
  if (size < mark_size || tokens == most_tokens) {
    tell(0, "a token of %zu characters is in the list of tokens", size);
    return;
  }
  for (int i = 0; i < tokens; i++)
    if (memcmp(marks[i], token + size - mark_size, mark_size) == 0) return;
  memcpy(marks[tokens++], token + size - mark_size, mark_size);
}
/* Adds the tokens that the library sent, from the headers in the head-end's journal. */
static void add_sent_tokens(void) {
  static const char name[] = "\"nv-authorizations\"";
  char path[256];
  const size_t size = 4u << 20;
  char *journal = (char *)malloc(size);
  const char *at;
  if (!journal) return;
  snprintf(path, sizeof path, "journal?account=%s", setting("USHER_TEST_ACCOUNT"));
  ask(path, NULL, journal, size);
  for (at = strstr(journal, name); at; at = strstr(at, name)) {
    at = strchr(at + sizeof name - 1, '"');
    if (!at) break;
    do {
      const size_t length = strcspn(++at, ",\"");
      add_mark(at, length);
      at += length;
    } while (*at == ',');
  }
  free(journal);
}
/* @return how many tokens are in the copies of freed blocks; prints for each its number and the text that
   follows it. */
static int tokens_in_copies(void) {
  const size_t size = copied < most_bytes ? copied : most_bytes;
  int count = 0;
  for (int i = 0; i < tokens; i++) {
    const char *found = (const char *)memmem(copies, size, marks[i], mark_size);
    if (!found) continue;
    count++;
    printf("a freed block has the end of token %d; after it the block has: %.30s\n", i, found + mark_size);
  }
  return count;
}

/* Checks that the search finds a token in a freed block. */
static void a_guard_that_sees(void) {
  char *block = strdup(content_token());
  add_mark(content_token(), strlen(content_token()));
  add(&probing, 1);
  free(block);
  add(&probing, -1);
  tell(tokens_in_copies() == 1, "the search finds a token in a freed block");
  memset(copies, 0, copied);
  copied = 0;
  freed = 0;
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
  int found;
  dl_iterate_phdr(find_code, NULL);
  a_guard_that_sees();
  a_session_and_its_licence();
  add_sent_tokens();
  tell(tokens > 5, "the program searches for %d tokens", tokens);
  tell(ranges > 1 && get(&freed) > 200 && copied < most_bytes, "the program copied %d blocks freed by %d code ranges",
      get(&freed), ranges);
  found = tokens_in_copies();
  tell(found == 0, "none of them held a token: %d did", found);
  nothing_held("at the end");
  return failed != 0;
}
