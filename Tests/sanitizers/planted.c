/*
 * planted.c - a host with a planted memory error: the library reads bad memory of the host. The sanitizer must report
 * this error, with a stack frame of the library.
 *   race        one thread writes the first field of a structure while usher_context_new() reads it
 *   after-free  usher_context_new() reads a structure that was freed
 *   leak        the program allocates memory and forgets the address; the library has no part in this
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <usher/usher.h>

static usher_context_options shared = USHER_CONTEXT_OPTIONS_INIT;
static int stop;

static void make_context(const usher_context_options *options) {
  usher_context *context = NULL;
  usher_context_new(options, &context);
  usher_context_free(context);
}

/* Writes `struct_size`, which the library reads by itself; it copies the other fields with memcpy(), and the
 * ThreadSanitizer of the Swift toolchain does not report races of memcpy(). `volatile`: the compiler must keep the
 * writes in the loop. */
static void *writes(void *unused) {
  volatile size_t *size = &shared.struct_size;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) *size = sizeof shared;
  return unused;
}
static void race(void) {
  pthread_t thread;
  int times;
  pthread_create(&thread, NULL, writes, NULL);
  for (times = 0; times < 50; times++) make_context(&shared);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
}

static void after_free(void) {
  usher_context_options *options = (usher_context_options *)malloc(sizeof *options);
  const usher_context_options *volatile freed = options;
  if (!options) return;
  memcpy(options, &shared, sizeof *options);
  free(options);
  make_context(freed);
}

static void leak(void) {
  char *volatile lost = (char *)malloc(1234);
  if (lost) lost[0] = 1;
  lost = NULL;
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "";
  if (strcmp(way, "race") == 0) race();
  if (strcmp(way, "after-free") == 0) after_free();
  if (strcmp(way, "leak") == 0) leak();
  return 0;
}
