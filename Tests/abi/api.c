/*
 * api.c - usher_get_api(): the table has every function of the headers, each with its type, and the functions of the
 * last release at the same offsets as in that release. This program is not linked with libusher.
 *   api LIBUSHER [OTHER]       OTHER: another libcurl, which the host loads with RTLD_GLOBAL before libusher
 * api.sh writes two files of macro calls. functions.h has FUNCTION(name) for each member of the table, in the order of
 * the headers. recorded.h has RECORDED(name) for each member of the table in the newest release of Tests/abi/releases,
 * in the same order. Each name is the name of a function without its prefix usher_.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

static int failed;
static void tell(int good, const char *what) {
  printf("%sok - %s\n", good ? "" : "not ", what);
  failed += !good;
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3) return 2;
  if (argc == 3) tell(dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) != NULL, "the host has another libcurl already");
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  usher_get_api_fn get_api = NULL;
  if (library) {
    void *symbol = dlsym(library, "usher_get_api");
    memcpy(&get_api, &symbol, sizeof symbol); /* copies the address: ISO C has no cast to a function pointer */
  }
  tell(get_api != NULL, "dlsym finds usher_get_api");
  if (!get_api) return 1;
  const usher_api *api = get_api(USHER_VERSION_MAJOR);
  tell(api != NULL, "usher_get_api() has a table for the header's major version");
  if (!api) return 1;
  tell(get_api(USHER_VERSION_MAJOR + 1) == NULL && get_api(UINT32_MAX) == NULL,
      "usher_get_api() has no table for another version");
  tell(get_api(USHER_VERSION_MAJOR) == api, "usher_get_api() returns the same table each time");
  tell(api->struct_size == sizeof *api, "struct_size is the header's");

  size_t offset = sizeof(size_t);
#define RECORDED(name) \
  tell(offsetof(usher_api, name) == offset, #name " has the offset of the last release"); \
  offset += sizeof(void *);
#include "recorded.h"
  offset = sizeof(size_t);
#define FUNCTION(name) \
  { \
    void *symbol = dlsym(library, "usher_" #name); \
    (void)sizeof(api->name == usher_##name); /* no code calls this function: the compiler checks the types in it */ \
    tell(symbol &&memcmp(&symbol, &api->name, sizeof symbol) == 0, #name " is usher_" #name); \
    tell(offsetof(usher_api, name) == offset, #name " follows the member before it"); \
    offset += sizeof symbol; \
  }
#include "functions.h"
  tell(offset == sizeof *api, "the table has no other members");

  usher_context *context = NULL;
  tell(api->context_new(NULL, &context) == USHER_OK && api->context_free(context) == USHER_OK, "it works");
  printf("ok - the program ends by itself\n");
  return failed != 0;
}
