/*
 * wiping.c - a preloaded library that wipes memory when libcurl or OpenSSL frees it. So if the test finds a secret in
 * memory, libusher did not wipe it. (libusher itself cannot wipe the buffers of libcurl and OpenSSL, because it must
 * not change how the process allocates memory.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

extern void __libc_free(void *memory);
extern void *__libc_realloc(void *memory, size_t size);

/* @return the file of the library that contains this code; "" if there is none. _dl_find_object() makes this fast:
   dladdr() would read all symbols of the library, for each block that is freed. */
static const char *library_of(void *code) {
  struct dl_find_object found;
  return _dl_find_object(code, &found) == 0 ? found.dlfo_link_map->l_name : "";
}
static int is_theirs(const char *library) {
  return strstr(library, "/libcurl") || strstr(library, "/libssl") || strstr(library, "/libcrypto");
}

void free(void *memory) {
  if (memory && is_theirs(library_of(__builtin_return_address(0)))) explicit_bzero(memory, malloc_usable_size(memory));
  __libc_free(memory);
}

/* Moves a block each time it grows; the realloc() of the C library moves only some blocks. If json-c makes the call,
   this function does not wipe the old block, so that the test finds the secrets that json-c leaves in memory. */
void *realloc(void *memory, size_t size) {
  const char *library = library_of(__builtin_return_address(0));
  const int is_wiped = is_theirs(library);
  size_t had;
  void *grown;
  if (!memory || !size || (!is_wiped && !strstr(library, "/libjson-c"))) return __libc_realloc(memory, size);
  had = malloc_usable_size(memory);
  if (size <= had) return memory;
  grown = malloc(size);
  if (!grown) return NULL;
  memcpy(grown, memory, had);
  if (is_wiped) explicit_bzero(memory, had);
  __libc_free(memory);
  return grown;
}
