/*
 * idle_usher.c - measures how often a context with one playback wakes up, on the real clock. The program holds one
 * session for `--seconds`, and prints one line of JSON: the number of heartbeats, and how many times each thread of the
 * library has gone to sleep. The main thread, which sleeps all the time, does not count.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { threads_max = 64 };

typedef struct thread {
  char id[16], name[20];
  long sleeps;
} thread;

/** Reads a thread's name, and how many times it has gone to sleep. */
static void read_thread(thread *into, const char *id) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/self/task/%.15s/status", id);
  snprintf(into->id, sizeof into->id, "%.15s", id);
  FILE *status = fopen(path, "r");
  if (!status) bench_fail(path, "cannot be read");
  while (fgets(line, sizeof line, status)) {
    sscanf(line, "Name: %19s", into->name);
    sscanf(line, "voluntary_ctxt_switches: %ld", &into->sleeps);
  }
  fclose(status);
}

static int read_threads(thread *threads) {
  int count = 0;
  char main_thread[16];
  snprintf(main_thread, sizeof main_thread, "%d", (int)getpid());
  DIR *folder = opendir("/proc/self/task");
  if (!folder) bench_fail("/proc/self/task", "cannot be read");
  for (struct dirent *entry; (entry = readdir(folder)) && count < threads_max;)
    if (entry->d_name[0] != '.' && strcmp(entry->d_name, main_thread) != 0)
      read_thread(&threads[count++], entry->d_name);
  closedir(folder);
  return count;
}

static int64_t heartbeats(const host *me) {
  usher_metrics metrics = USHER_METRICS_INIT;
  host_check(usher_context_metrics(me->context, &metrics), "usher_context_metrics");
  return (int64_t)metrics.heartbeats_sent;
}

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  const usher_context_options context = USHER_CONTEXT_OPTIONS_INIT;
  const usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  host me = {0};
  thread before[threads_max], after[threads_max];
  host_open(&me, &options, context, ssp);
  host_play(&me, 1);
  const int64_t beats = heartbeats(&me);
  bench_sleep_until(bench_now().wall_ns + 300000000); /* until all threads sleep */
  const int count = read_threads(before);
  bench_clock spent = {0};
  const bench_clock start = bench_now();
  bench_sleep_until(start.wall_ns + (int64_t)options.seconds * 1000000000);
  bench_add(&spent, start);
  const int left = read_threads(after);
  printf("{\"operations\": %" PRId64 ", \"cpu_ns\": %" PRId64 ", \"sleeps\": {", heartbeats(&me) - beats, spent.cpu_ns);
  const char *comma = "";
  for (int i = 0; i < left; i++) {
    long sleeps = after[i].sleeps;
    for (int j = 0; j < count; j++)
      if (strcmp(after[i].id, before[j].id) == 0) sleeps -= before[j].sleeps;
    printf("%s\"%s\": %ld", comma, after[i].name, sleeps), comma = ", ";
  }
  printf("}}\n");
  if (host_active(&me) != 1) bench_fail("the session", "is not active at the end");
  host_close(&me);
  return 0;
}
