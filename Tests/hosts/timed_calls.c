/*
 * timed_calls.c - a library that a test preloads into a player. It measures the calls of libusher by a plug-in.
 *   cc -shared -fPIC -DCALLS='TIMED(usher_player_new) ...' timed_calls.c
 * The file that USHER_CALL_TIMES names gets a line per call: the function, and for how many microseconds the call held
 * its thread. Time in which the thread was ready but had no processor does not count, so the numbers are right also on
 * a busy machine. The wrappers pass on eight words: all functions have integers and pointers as arguments.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef long word;
typedef word (*function)(word, word, word, word, word, word, word, word);

static int out = -1;

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("USHER_CALL_TIMES");
  if (file) out = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static function find(const char *name) {
  function found = NULL;
  void *symbol = dlsym(RTLD_NEXT, name);
  /* mpv loads its plug-ins, and libusher with them, with RTLD_LOCAL. In mpv, dlsym(RTLD_NEXT) therefore does not find
     the function, so look it up in libusher itself. */
  if (!symbol) {
    void *library = dlopen("libusher.so.0", RTLD_LAZY | RTLD_NOLOAD);
    symbol = library ? dlsym(library, name) : NULL;
  }
  if (!symbol) abort();
  memcpy(&found, &symbol, sizeof found);
  return found;
}

/* @return for how long the thread has waited for a processor since it began, in ns; always 0 if the kernel does not
   count this. */
static long long queued_ns(void) {
  char text[100] = "";
  long long ns = 0;
  int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  if (read(fd, text, sizeof text - 1) < 1 || sscanf(text, "%*d %lld", &ns) != 1) ns = 0;
  close(fd);
  return ns;
}

static long long wall_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static word timed(const char *name, function call, const word *a) {
  char line[100];
  long long queued = queued_ns(), wall = wall_ns();
  word result = call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
  wall = wall_ns() - wall, queued = queued_ns() - queued;
  int size = snprintf(line, sizeof line, "%s %lld\n", name, wall > queued ? (wall - queued) / 1000 : 0);
  if (out >= 0 && write(out, line, (size_t)size) != size) abort();
  return result;
}

#define TIMED(name) \
  word name(word a, word b, word c, word d, word e, word f, word g, word h); \
  word name(word a, word b, word c, word d, word e, word f, word g, word h) { \
    static function call; \
    if (!call) call = find(#name); \
    return timed(#name, call, (const word[]){a, b, c, d, e, f, g, h}); \
  }

CALLS
