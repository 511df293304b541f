/*
 * support.h - parts that the C tests share: claims, counters, requests to the head-end, and functions that make the
 * objects which each test needs. `Tests/c/run` passes the head-end's URLs in environment variables (USHER_TEST_...).
 * This file is also valid C++.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_SUPPORT_H
#define USHER_TEST_SUPPORT_H

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <usher/usher.h>

#if defined(__GNUC__)
#define MAY_BE_UNUSED __attribute__((unused))
#define LIKE_PRINTF(text, first) __attribute__((format(printf, text, first), unused))
#else
#define MAY_BE_UNUSED
#define LIKE_PRINTF(text, first)
#endif

/* ---- claims ------------------------------------------------------------------------------------------------------ */

static int failed;

/* Prints one claim, "ok - ..." or "not ok - ...", which `Tests/c/run` counts. @return good. */
static int tell(int good, const char *format, ...) LIKE_PRINTF(2, 3);
static int tell(int good, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  printf("%sok - %s\n", good ? "" : "not ", line);
  fflush(stdout);
  if (!good) failed++;
  return good;
}

/* Makes a claim: a call returned the wanted status. @return 1 if the claim is true, otherwise 0. */
MAY_BE_UNUSED static int answers(int32_t wanted, int32_t found, const char *what) {
  if (wanted == found) return tell(1, "%s", what);
#ifdef USHER_TEST_NOT_LINKED
  return tell(0, "%s: %d (wanted %d)", what, (int)found, (int)wanted);
#else
  return tell(0, "%s: %s (wanted %s)", what, usher_status_name(found), usher_status_name(wanted));
#endif
}

/* ---- time and counters that threads share ------------------------------------------------------------------------ */

static void sleep_ms(long ms) {
  struct timespec time;
  time.tv_sec = ms / 1000;
  time.tv_nsec = ms % 1000 * 1000000;
  nanosleep(&time, NULL);
}
MAY_BE_UNUSED static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
static void add(int *counter, int by) { __atomic_add_fetch(counter, by, __ATOMIC_SEQ_CST); }
static int get(int *counter) { return __atomic_load_n(counter, __ATOMIC_SEQ_CST); }

/* @return the factor for all time limits: 1, or more under valgrind and sanitizers, which make programs slow. */
static int patience(void) {
  const char *text = getenv("USHER_TEST_PATIENCE");
  return text ? atoi(text) : 1;
}
/* Waits until the counter is at least `wanted`, at most `ms` times patience(). @return 1 if the counter is at least
   `wanted`, otherwise 0. */
MAY_BE_UNUSED static int reaches(int *counter, int wanted, long ms) {
  for (ms *= patience(); ms > 0 && get(counter) < wanted; ms -= 2) sleep_ms(2);
  return get(counter) >= wanted;
}
/* A `destroy` that counts its calls; its user_data is the counter. */
MAY_BE_UNUSED static void count_destroy(void *user_data) { add((int *)user_data, 1); }

/* ---- the head-end ------------------------------------------------------------------------------------------------ */

static const char *setting(const char *name) {
  const char *text = getenv(name);
  if (!text) {
    printf("not ok - %s is not set: run Tests/c/run\n", name);
    exit(2);
  }
  return text;
}
MAY_BE_UNUSED static const char *license_url(void) {
  return setting("USHER_TEST_LICENSE_URL");
} /* Widevine: with this key system, heartbeats keep the sessions alive. */
MAY_BE_UNUSED static const char *enforced_url(void) {
  return setting("USHER_TEST_ENFORCED_URL");
} /* FairPlay: with this key system, renewals keep the sessions alive. */
MAY_BE_UNUSED static const char *v2_url(void) { return setting("USHER_TEST_V2_URL"); } /* Widevine by SSP V2 */
MAY_BE_UNUSED static const char *v2_enforced_url(void) {
  return setting("USHER_TEST_V2_ENFORCED_URL");
} /* FairPlay by SSP V2 */
MAY_BE_UNUSED static const char *certificate_url(void) { return setting("USHER_TEST_CERTIFICATE_URL"); }
MAY_BE_UNUSED static const char *ssm_url(void) { return setting("USHER_TEST_SSM_URL"); }
MAY_BE_UNUSED static const char *content_token(void) { return setting("USHER_TEST_TOKEN"); }
MAY_BE_UNUSED static const char *free_token(void) {
  return setting("USHER_TEST_FREE_TOKEN");
} /* its content needs no session */

/* Sends a request to a control endpoint: POST if there is a body, otherwise GET. @return the reply's body, or "". */
static const char *ask(const char *path, const char *body, char *answer, size_t size) {
  struct sockaddr_in address;
  char request[1024];
  size_t have = 0;
  ssize_t got = 1;
  char *found;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)atoi(setting("USHER_TEST_PORT")));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  answer[0] = '\0';
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    if (fd >= 0) close(fd);
    return answer;
  }
  snprintf(request, sizeof request,
      "%s /_control/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
      body ? "POST" : "GET", path, body ? strlen(body) : 0, body ? body : "");
  if (write(fd, request, strlen(request)) < 0) got = 0;
  while (have + 1 < size && got > 0) {
    got = read(fd, answer + have, size - 1 - have);
    if (got > 0) have += (size_t)got;
  }
  answer[have] = '\0';
  close(fd);
  found = strstr(answer, "\r\n\r\n");
  if (found) memmove(answer, found + 4, strlen(found + 4) + 1);
  return answer;
}

/* @return how many sessions this test's account holds now, or -1 if the head-end does not reply. */
static int held(void) {
  char path[256], answer[65536];
  const char *found;
  snprintf(path, sizeof path, "sessions?state=active&account=%s", setting("USHER_TEST_ACCOUNT"));
  found = strstr(ask(path, NULL, answer, sizeof answer), "\"active\":");
  return found ? atoi(found + 9) : -1;
}
/* ---- descriptors and threads ------------------------------------------------------------------------------------- */

static int entries(const char *folder) {
  DIR *open_folder = opendir(folder);
  int count = 0;
  if (!open_folder) return -1;
  while (readdir(open_folder)) count++;
  closedir(open_folder);
  return count;
}
MAY_BE_UNUSED static int descriptors(void) { return entries("/proc/self/fd"); }
MAY_BE_UNUSED static int threads(void) { return entries("/proc/self/task"); }
/* Prints each open descriptor and the file or socket to which it refers. */
static void print_descriptors(void) {
  DIR *open_folder = opendir("/proc/self/fd");
  struct dirent *entry;
  if (!open_folder) return;
  while ((entry = readdir(open_folder))) {
    char target[256];
    ssize_t size = readlinkat(dirfd(open_folder), entry->d_name, target, sizeof target);
    if (size > 0) printf("descriptor %s: %.*s\n", entry->d_name, (int)size, target);
  }
  closedir(open_folder);
}
static int descriptors_at_start, threads_at_start;
static void *note_thread_id(void *id) {
  *(pid_t *)id = gettid();
  return NULL;
}
/* Starts a thread and waits until it is no longer in the list of threads. ThreadSanitizer starts a thread for itself at
   the first pthread_create() of the process; that thread must be in `threads_at_start`. */
static void start_and_end_one_thread(void) {
  char path[64];
  pthread_t thread;
  pid_t id = 0;
  if (pthread_create(&thread, NULL, note_thread_id, &id) != 0 || pthread_join(thread, NULL) != 0) abort();
  snprintf(path, sizeof path, "/proc/self/task/%d", (int)id);
  while (access(path, F_OK) == 0) sleep_ms(1); /* the kernel removes this folder soon after the thread's end */
}
__attribute__((constructor)) static void count_at_start(void) {
  start_and_end_one_thread();
  descriptors_at_start = descriptors();
  threads_at_start = threads();
}
/* Makes a claim: no descriptor or thread of the library is left. Waits for this, since a context that was freed in a
   callback ends in the background. */
MAY_BE_UNUSED static void nothing_left(const char *who) {
  int tries = 500 * patience();
  while ((descriptors() > descriptors_at_start || threads() > threads_at_start) && tries-- > 0) sleep_ms(20);
  tell(descriptors() <= descriptors_at_start && threads() <= threads_at_start,
      "%s: %d descriptors and %d threads, %d and %d at the start", who, descriptors(), threads(), descriptors_at_start,
      threads_at_start);
  if (descriptors() > descriptors_at_start) print_descriptors();
}

/* Makes the last claims of each test: no descriptor and no thread is left, and the head-end holds no session of the
   test's account. Waits for a short time, because the library tears sessions down in the background if the host frees
   them without a close. */
MAY_BE_UNUSED static void nothing_held(const char *who) {
  /* The wait is long enough for a session that was left to expire: it expires after four periods of 1 s. */
  int found = held(), tries = 500 * patience();
  while (found != 0 && tries-- > 0) {
    sleep_ms(20);
    found = held();
  }
  tell(found == 0, "%s: no session is held (%d)", who, found);
  nothing_left(who);
}
/* @return how many of this account's requests to a route have `text` in their line of the journal. */
MAY_BE_UNUSED static int sent(const char *route, const char *text) {
  char path[256];
  static const char mark[] = "\"number\":";
  size_t size = 4u << 20;
  char *answer = (char *)malloc(size), *at, *next;
  int count = 0;
  if (!answer) return -1;
  snprintf(path, sizeof path, "journal?account=%s&route=%s", setting("USHER_TEST_ACCOUNT"), route);
  ask(path, NULL, answer, size);
  if ((at = strstr(answer, "\"text\":"))) *at = '\0'; /* the answer has the journal a second time, as text */
  for (at = strstr(answer, mark); at; at = next) {
    next = strstr(at + 1, mark);
    if (next) next[-1] = '\0'; /* this journal line now ends with a NUL */
    count += strstr(at, text) != NULL;
  }
  free(answer);
  return count;
}
/* @return how many requests this account made to a route. */
MAY_BE_UNUSED static int requests(const char *route) { return sent(route, ""); }
MAY_BE_UNUSED static void fault(const char *json) {
  char answer[4096];
  ask("faults", json, answer, sizeof answer);
  if (!strstr(answer, "pending")) tell(0, "the head-end accepts the fault %s: %s", json, answer);
}
MAY_BE_UNUSED static void release_held(void) {
  char answer[4096];
  ask("release", "{}", answer, sizeof answer);
}

/* ---- objects that each test needs -------------------------------------------------------------------------------- */

MAY_BE_UNUSED static usher_context *new_context(int32_t callbacks) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  options.callbacks = callbacks;
  if (usher_context_new(&options, &context) != USHER_OK) tell(0, "a context is made");
  return context;
}
MAY_BE_UNUSED static usher_delegate *new_delegate(usher_context *context, const char *url) {
  usher_ssp_options options = USHER_SSP_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  options.license_url = url;
  options.ssm_url = ssm_url();
  options.certificate_url = certificate_url();
  if (usher_ssp_delegate_new(context, &options, &delegate) != USHER_OK) tell(0, "a delegate is made");
  return delegate;
}
MAY_BE_UNUSED static usher_player *new_player(usher_context *context) {
  usher_player *player = NULL;
  if (usher_player_new(context, &player) != USHER_OK) tell(0, "a player is made");
  return player;
}
/* Starts a playback with the token of this test's account. @return the playback; NULL on failure. */
MAY_BE_UNUSED static usher_playback *play(usher_player *player, usher_delegate *delegate) {
  usher_playback_options options = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  options.delegate = delegate;
  options.content_token = content_token();
  if (usher_player_play(player, &options, &playback) != USHER_OK) tell(0, "a playback is started");
  return playback;
}
MAY_BE_UNUSED static usher_license_request a_request(const char *key_system) {
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  request.key_system = key_system;
  request.payload = (const uint8_t *)"challenge";
  request.payload_size = 9;
  return request;
}
/* Waits until the counter is at least `wanted`, at most `ms` times patience(). In pumped mode, pumps meanwhile. @return
   1 if the counter is at least `wanted`, otherwise 0. */
MAY_BE_UNUSED static int comes(usher_context *context, int32_t callbacks, int *counter, int wanted, long ms) {
  if (callbacks == USHER_CALLBACKS_THREADED) return reaches(counter, wanted, ms);
  for (ms *= patience(); ms > 0 && get(counter) < wanted; ms -= 2) {
    usher_context_pump(context, NULL);
    if (get(counter) < wanted) sleep_ms(2);
  }
  return get(counter) >= wanted;
}
MAY_BE_UNUSED static const char *mode_name(int32_t callbacks) {
  return callbacks == USHER_CALLBACKS_PUMPED ? "pumped" : "threaded";
}

#endif
