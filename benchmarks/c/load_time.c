/*
 * load_time.c - loads libraries in the order of its arguments, and measures the time that dlopen() takes for the last
 * one:
 *   load_time libcurl.so.4 libjson-c.so.5 /path/to/libusher.so
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench.h"
#include <dlfcn.h>

int main(int argc, char **argv) {
  if (argc < 2) bench_fail("load_time", "which library?");
  for (int i = 1; i < argc - 1; i++) {
    if (!dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL)) bench_fail(argv[i], dlerror());
  }
  bench_clock spent = {0};
  const bench_clock start = bench_now();
  void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
  bench_add(&spent, start);
  if (!library) bench_fail(argv[argc - 1], dlerror());
  bench_print(spent, 1);
  return 0;
}
