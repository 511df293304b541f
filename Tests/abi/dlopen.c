/*
 * dlopen.c - a host that does not include the headers and is not linked with the library. It loads the library with
 * RTLD_LOCAL (the argument is the path), calls functions that dlsym finds, and unloads the library while the library's
 * threads may still be ending.
 *   cc dlopen.c -ldl -o dlopen && ./dlopen /path/libusher.so
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int failed;
static void tell(int good, const char *what) {
  printf("%sok - %s\n", good ? "" : "not ", what);
  failed += !good;
}

typedef const char *(*text_fn)(void);
typedef int32_t (*new_fn)(const void *, void **);
typedef int32_t (*close_fn)(void *, uint32_t, uint32_t *);
typedef int32_t (*free_fn)(void *);

/* Stores the address of the library's function `name` in `*function`. Copies the bytes of the address, because ISO C
   has no cast from an object pointer to a function pointer. @return 1 if the library has the function, otherwise 0. */
static int find(void *library, const char *name, void *function, size_t size) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, size);
  return symbol != NULL;
}

int main(int argc, char **argv) {
  text_fn version = NULL;
  new_fn context_new = NULL;
  close_fn context_close = NULL;
  free_fn context_free = NULL;
  void *context = NULL;
  uint32_t open_playbacks = 99;
  if (argc != 2) return 2;

  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  tell(library != NULL, "dlopen with RTLD_NOW | RTLD_LOCAL");
  if (!library) {
    printf("    %s\n", dlerror());
    return 1;
  }
  tell(dlsym(RTLD_DEFAULT, "usher_version") == NULL, "its names stay out of the global scope");
  if (!find(library, "usher_version", &version, sizeof version) ||
      !find(library, "usher_context_new", &context_new, sizeof context_new) ||
      !find(library, "usher_context_close", &context_close, sizeof context_close) ||
      !find(library, "usher_context_free", &context_free, sizeof context_free)) {
    tell(0, "dlsym finds the functions");
    return 1;
  }
  tell(version()[0] != '\0', "usher_version() through dlsym answers");
  tell(context_new(NULL, &context) == 0 && context != NULL, "a context is made");
  tell(context_close(context, 0, &open_playbacks) == 0 && open_playbacks == 0, "it closes");
  tell(context_free(context) == 0, "it is freed");
  tell(context_free(context) != 0, "its stale handle is refused");
  tell(context_new(NULL, &context) == 0 && context_free(context) == 0, "a second one, freed without being closed");
  tell(dlclose(library) == 0, "dlclose");
  tell(version()[0] != '\0', "the library stays mapped: its code can still run");
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  tell(library != NULL && find(library, "usher_version", &version, sizeof version) && version()[0] != '\0',
      "loaded again");
  printf("ok - the program ends by itself\n");
  return failed != 0;
}
