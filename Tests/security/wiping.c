/*
 * wiping.c - a preloaded library that wipes memory when libcurl or OpenSSL frees it. So if the test finds a secret in
 * memory, libusher did not wipe it. (libusher itself cannot wipe the buffers of libcurl and OpenSSL, because it must
 * not change how the process allocates memory.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

extern void __libc_free(void *memory);
extern void *__libc_realloc(void *memory, size_t size);

static int is_in(void *caller, const char *name) {
  Dl_info found;
  return dladdr(caller, &found) && found.dli_fname && strstr(found.dli_fname, name);
}
static int is_theirs(void *caller) {
  return is_in(caller, "/libcurl") || is_in(caller, "/libssl") || is_in(caller, "/libcrypto");
}

void free(void *memory) {
  if (memory && is_theirs(__builtin_return_address(0))) explicit_bzero(memory, malloc_usable_size(memory));
  __libc_free(memory);
}

/* Moves a block each time it grows; the realloc() of the C library moves only some blocks. If json-c makes the call,
   the old block is not wiped, so that the test finds the secrets that json-c leaves in memory. */
void *realloc(void *memory, size_t size) {
  const int is_wiped = is_theirs(__builtin_return_address(0));
  size_t had;
  void *grown;
  if (!memory || !size || (!is_wiped && !is_in(__builtin_return_address(0), "/libjson-c")))
    return __libc_realloc(memory, size);
  had = malloc_usable_size(memory);
  if (size <= had) return memory;
  grown = malloc(size);
  if (!grown) return NULL;
  memcpy(grown, memory, had);
  if (is_wiped) explicit_bzero(memory, had);
  __libc_free(memory);
  return grown;
}
