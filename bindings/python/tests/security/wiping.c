/*
 * wiping.c - preloaded: what libcurl and OpenSSL free is wiped, so that what is left in memory was left by somebody else. (Their buffers are theirs: a library
 * that is a guest in a process does not change how it allocates.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

extern void __libc_free(void *memory);
extern void *__libc_realloc(void *memory, size_t size);

static int is_theirs(void *caller) {
  static const char *const names[] = { "/libcurl", "/libssl", "/libcrypto" };
  Dl_info found;
  if (!dladdr(caller, &found) || !found.dli_fname) return 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strstr(found.dli_fname, names[i])) return 1;
  return 0;
}

void free(void *memory) {
  if (memory && is_theirs(__builtin_return_address(0))) explicit_bzero(memory, malloc_usable_size(memory));
  __libc_free(memory);
}

void *realloc(void *memory, size_t size) {
  size_t had;
  void *grown;
  if (!memory || !size || !is_theirs(__builtin_return_address(0))) return __libc_realloc(memory, size);
  had = malloc_usable_size(memory);
  if (size <= had) return memory;
  grown = malloc(size);
  if (!grown) return NULL;
  memcpy(grown, memory, had);
  explicit_bzero(memory, had);
  __libc_free(memory);
  return grown;
}
