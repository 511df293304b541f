/*
 * failing_calls.c - a host calls every function in many rounds; in each round another system call of the library fails.
 * Each function returns a status that the headers name, each playback gets PLAYBACK_CLOSED, each `destroy` runs, and
 * afterwards the process has as many descriptors and threads as before. Tests/c/run preloads fail_calls.c.
 *
 * USHER_TEST_ROUNDS sets how many times each kind of system call fails in each walk (default: 3).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>

#include "fail_calls.h"
#include "support.h"

static const char *const kind_names[FAIL_KINDS] = {"nothing", "pthread_create", "pthread_key_create", "eventfd",
    "epoll_create1", "epoll_ctl", "epoll_wait", "timerfd_create", "timerfd_settime", "getrandom", "socket",
    "socketpair", "connect", "getsockname", "setsockopt", "getsockopt", "ioctl", "read", "send", "recv", "write",
    "fcntl", "open", "curl_global_init", "memory of libcurl and json-c"};

static char now[160]; /* the current step; on_hang() prints it */
static int given, destroyed, played, closed, kept_alive, system_lines;

static void on_hang(int signal) {
  static const char message[] = "not ok - the library hangs: ";
  (void)signal;
  if (write(1, message, sizeof message - 1) < 0 || write(1, now, strlen(now)) < 0 || write(1, "\n", 1) < 0) _exit(3);
  _exit(2);
}
static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type == USHER_EVENT_PLAYBACK_CLOSED) add(&closed, 1);
  if (event->type == USHER_EVENT_KEPT_ALIVE) add(&kept_alive, 1);
}
static void on_log(int32_t level, const char *line, void *user_data) {
  (void)user_data;
  if (level == USHER_LOG_ERROR && strstr(line, "USHER_E_SYSTEM")) add(&system_lines, 1);
}
#include "failing_walks.h"

static void (*const walks[])(void) = {walk_ssp, walk_delegates, walk_modes};
static const char *const walk_names[] = {"SSP", "all delegates", "pumped mode on the manual clock"};
enum { WALKS = 3 };

/* Checks that every `destroy` ran, that every PLAYBACK_CLOSED came, and that the process has as many descriptors and
   threads as before. Makes a claim for each check that fails. @return 1 if no check failed, otherwise 0. */
static int is_clean(int descriptors_before, int threads_before) {
  int good = 1, tries;
  for (tries = 0; tries < 2000 && (threads() > threads_before || get(&destroyed) < given); tries++) sleep_ms(5);
  if (get(&destroyed) != given) good = tell(0, "%s: %d of %d destroys ran", now, get(&destroyed), given);
  if (get(&closed) != played) good = tell(0, "%s: PLAYBACK_CLOSED came for %d of %d", now, get(&closed), played);
  if (threads() != threads_before) good = tell(0, "%s: %d threads, %d before", now, threads(), threads_before);
  if (descriptors() != descriptors_before)
    good = tell(0, "%s: %d descriptors, %d before", now, descriptors(), descriptors_before);
  return good;
}

/* Chooses the call that fails in run number `index` of a walk. A walk makes `seen` calls, and has at most `most` runs.
   In the first half of the runs the first calls fail, in order; in the other runs, calls at equal distances among the
   rest. @return the number of the call; the first call has the number 1. */
static int chosen(int index, int most, int seen) {
  int first = (most + 1) / 2;
  if (seen <= most || index < first) return index + 1;
  return first + (seen - first) * (index - first + 1) / (most - first);
}
/* @return whether the library makes calls of this kind only once in a process, for its first context. The function
   made_once() tests such calls. */
static int is_made_once(int kind) { return kind == FAIL_CURL_GLOBAL_INIT || kind == FAIL_PTHREAD_KEY_CREATE; }
/* @return how many calls of the kind failed in the walk. */
static int fails_in(int walk, int kind, int most, int seen) {
  int descriptors_before = descriptors(), threads_before = threads(), index, count = 0, good = 1;
  for (index = 0; index < most && index < seen; index++) {
    int nth = chosen(index, most, seen);
    snprintf(now, sizeof now, "walk %s: call %d of %s fails", walk_names[walk], nth, kind_names[kind]);
    alarm((unsigned)(25 * patience()));
    fail_nth(kind, nth, 0);
    walks[walk]();
    count += fail_stop();
    good &= is_clean(descriptors_before, threads_before);
  }
  if (!good) tell(0, "walk %s: failed calls of %s", walk_names[walk], kind_names[kind]);
  return count;
}
static void each_call(int most) {
  enum { none_fails = 1 << 30 };
  int kind, walk, failures = 0, seen[WALKS][FAIL_KINDS];
  for (walk = 0; walk < WALKS; walk++) {
    snprintf(now, sizeof now, "walk %s: nothing fails", walk_names[walk]);
    alarm((unsigned)(25 * patience()));
    /* The first run of each walk is not counted: in it, libcurl and its libraries allocate memory that they never
       free. */
    walks[walk]();
    /* From here on fail_seen() counts the calls of each kind, that is, the calls in the second run of this walk. */
    fail_nth(FAIL_MEMORY, none_fails, 0);
    walks[walk]();
    fail_stop();
    for (kind = FAIL_NOTHING + 1; kind < FAIL_KINDS; kind++) seen[walk][kind] = fail_seen(kind);
  }
  check_walked();
  for (kind = FAIL_NOTHING + 1; kind < FAIL_KINDS; kind++) {
    int made = 0, calls = 0, before = failed;
    for (walk = 0; walk < WALKS; walk++) {
      calls += seen[walk][kind];
      made += fails_in(walk, kind, most, seen[walk][kind]);
    }
    if (is_made_once(kind)) continue;
    tell(failed == before && made > 0, "%s: %d of %d calls failed, each with a status; everything ends",
        kind_names[kind], made, calls);
    failures += made;
  }
  tell(failures > 10 * most, "%d calls failed", failures);
}

/* If libusher itself gets no memory, the process ends by a signal at once; it does not continue with a bad pointer.
 * This concerns only the shipped library, which allocates its memory itself: in the checked build Swift's run-time
 * library allocates memory for libusher. */
static void without_own_memory(void) {
  int nth, ended = 0, others = 0;
  if (dlsym(RTLD_DEFAULT, "swift_allocObject") != NULL) return;
  /* Tests each of the first 20 allocations, because they are of different kinds: Swift objects, locks and tables. */
  for (nth = 1; nth <= 400; nth += nth < 20 ? 1 : 57) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
      close(1); /* The runner must not count the child's lines. The child reports failures by its exit status. */
      alarm((unsigned)(25 * patience()));
      fail_nth(FAIL_OWN_MEMORY, nth, 0);
      walk_ssp();
      fail_stop();
      /* The child gets here if libcurl made the allocation that failed. The test cannot avoid this: if libcurl
         allocates in a tail call, fail_calls.c sees libusher as the caller. */
      _exit(failed);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status) &&
        (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGTRAP))
      ended++;
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      others++;
      tell(0, "libusher gets no memory in allocation %d: the process ends with wait status %d", nth, status);
    }
  }
  tell(ended >= 5 && others == 0, "libusher without memory: %d processes ended by SIGILL or SIGABRT, %d otherwise",
      ended, others);
}

/* The system refuses to start the n-th thread and all later ones. */
static void no_more_threads(void) {
  int nth, good = 1, descriptors_before = descriptors(), threads_before = threads(), lines_before = get(&system_lines);
  for (nth = 2; nth <= 4; nth++) {
    snprintf(now, sizeof now, "no thread starts from number %d on", nth);
    alarm((unsigned)(25 * patience()));
    fail_nth(FAIL_PTHREAD_CREATE, nth, 1);
    walk_ssp();
    fail_stop();
    good &= is_clean(descriptors_before, threads_before);
  }
  tell(good, "without a callback thread the context ends: usher_context_free runs the callbacks");
  tell(get(&system_lines) > lines_before, "the log reports USHER_E_SYSTEM");
}

/* For some time the system refuses to start threads. When the system starts threads again, the callbacks run. */
static void threads_come_back(void) {
  usher_context *context;
  usher_playback *playback;
  int before = get(&closed);
  snprintf(now, sizeof now, "no thread starts for some time");
  alarm((unsigned)(25 * patience()));
  context = opened();
  fail_nth(FAIL_PTHREAD_CREATE, 1, 1);
  playback = play(new_player(context), new_delegate(context, license_url()));
  usher_playback_wait_session(playback, 3000, NULL);
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  tell(usher_playback_wait_closed(playback, 300) == USHER_E_TIMEOUT && get(&closed) == before,
      "without a callback thread no callback comes");
  played++;
  tell(fail_stop() > 0, "threads did not start");
  tell(reaches(&closed, before + 1, 5000), "then they start: PLAYBACK_CLOSED comes without a further call");
  answers(USHER_OK, usher_context_free(context), "usher_context_free");
}

/* The context ends while a request has no reply and the system starts no thread. */
static void context_ends_without_threads(void) {
  struct sockaddr_in address = {0};
  socklen_t size = sizeof address;
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), before = get(&closed);
  char url[64];
  usher_context *context;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_delegate *delegate = NULL;
  snprintf(now, sizeof now, "the end of a context, no thread starts");
  alarm((unsigned)(25 * patience()));
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(server, (struct sockaddr *)&address, size) || listen(server, 8) ||
      getsockname(server, (struct sockaddr *)&address, &size))
    tell(0, "%s: a server that never replies", now);
  snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
  context = opened();
  ssp.license_url = ssp.ssm_url = url;
  if (usher_ssp_delegate_new(context, &ssp, &delegate) != USHER_OK) tell(0, "%s: usher_ssp_delegate_new", now);
  fail_nth(FAIL_PTHREAD_CREATE, 1, 1);
  play(new_player(context), delegate);
  played++;
  answers(USHER_E_TIMEOUT, usher_context_close(context, 20, NULL), "usher_context_close while a set-up has no reply");
  answers(USHER_OK, usher_context_free(context), "usher_context_free, without a callback thread");
  tell(fail_stop() > 0 && get(&closed) == before + 1, "usher_context_free has run the callback of PLAYBACK_CLOSED");
  close(server);
}

/* The callbacks of some playbacks block, and the system starts no further callback thread. The log reports this once,
 * although the library tries again. Then the context is freed. As soon as threads start again, the callbacks of the
 * other playbacks run, although the first callbacks still block. */
enum { PLAYBACKS = 8 }; /* more than the callback threads that run already when the first callback blocks */
static int blocks, is_freeing, may_go_on, went_on, closed_before;
static int runs_io_thread(void) {
  DIR *tasks = opendir("/proc/self/task");
  struct dirent *entry;
  int found = 0;
  while (tasks && (entry = readdir(tasks))) {
    char path[300], name[20] = "";
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    file = fopen(path, "r");
    if (file && fgets(name, sizeof name, file)) found |= strncmp(name, "usher-io", 8) == 0;
    if (file) fclose(file);
  }
  if (tasks) closedir(tasks);
  return found;
}
static void on_closed(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type != USHER_EVENT_PLAYBACK_CLOSED || get(&may_go_on)) return;
  if (!get(&blocks)) fail_nth(FAIL_PTHREAD_CREATE, 1, 1);
  add(&blocks, 1);
  while (!get(&is_freeing) || (!get(&may_go_on) && runs_io_thread())) sleep_ms(5);
  fail_stop();
  add(&may_go_on, 1);
  if (reaches(&closed, closed_before + PLAYBACKS, 5000)) add(&went_on, 1);
}
static void callbacks_block(void) {
  int descriptors_before = descriptors(), threads_before = threads(), lines_before = get(&system_lines);
  int index, seen;
  usher_playback_options clear = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback;
  usher_context *context;
  snprintf(now, sizeof now, "callbacks block, no other thread starts");
  alarm((unsigned)(25 * patience()));
  closed_before = get(&closed);
  context = opened();
  usher_context_add_observer(context, on_closed, NULL, NULL, NULL);
  clear.delegate = new_delegate(context, license_url());
  clear.clear = 1;
  for (index = 0; index < PLAYBACKS; index++) {
    played += usher_player_play(new_player(context), &clear, &playback) == USHER_OK;
    usher_playback_close(playback, USHER_CLOSE_DEFAULT);
    if (!reaches(&blocks, 1, 5000)) tell(0, "the callback of the first playback blocks");
  }
  seen = fail_seen(FAIL_PTHREAD_CREATE);
  while (fail_seen(FAIL_PTHREAD_CREATE) < seen + 4) sleep_ms(5);
  add(&is_freeing, 1);
  answers(USHER_OK, usher_context_free(context), "usher_context_free");
  tell(get(&blocks) < PLAYBACKS && get(&went_on) == get(&blocks),
      "at the end of the context the other callbacks run beside the %d that block", get(&blocks));
  /* The log is a callback too: its lines come when threads start again. */
  tell(get(&system_lines) == lines_before + 1, "the log reports the missing threads once (%d)",
      get(&system_lines) - lines_before);
  tell(is_clean(descriptors_before, threads_before), "everything has ended");
}

/* A callback of one context frees another context while the system refuses to start threads. */
static usher_context *other;
static int freed;
static int32_t freed_status;
static void on_free(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type != USHER_EVENT_PLAYBACK_CLOSED) return;
  fail_nth(FAIL_PTHREAD_CREATE, 1, 1);
  freed_status = usher_context_free(other);
  sleep_ms(250);
  fail_stop();
  add(&freed, 1);
}
static void free_in_callback(void) {
  usher_context *context;
  usher_playback *playback;
  usher_playback_options clear = USHER_PLAYBACK_OPTIONS_INIT;
  int descriptors_before = descriptors(), threads_before = threads();
  snprintf(now, sizeof now, "free in a callback, no thread starts");
  alarm((unsigned)(25 * patience()));
  context = opened();
  other = opened();
  usher_context_add_observer(context, on_free, NULL, NULL, NULL);
  clear.delegate = new_delegate(context, license_url());
  clear.clear = 1;
  played += usher_player_play(new_player(context), &clear, &playback) == USHER_OK;
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  tell(reaches(&freed, 1, 5000), "a callback frees a context");
  answers(USHER_OK, freed_status, "usher_context_free in it, without a thread for the rest");
  usher_context_free(context);
  tell(is_clean(descriptors_before, threads_before), "the context ends as soon as a thread starts");
}

/* Makes a context whose requests time out after 20 s. If a test with this context ends earlier, no request waited for
   its time-out. @return the context. */
static usher_context *patient_context(void) {
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  options.http_timeout_ms = 20000;
  if (usher_context_new(&options, &context) != USHER_OK) tell(0, "%s: usher_context_new", now);
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  return context;
}

/* The system refuses to set two timers: the one that tells the I/O thread that the machine slept, and the one that
   starts the watchdog. Heartbeats go on, because the I/O thread waits for them with the time-out of epoll. The library
   tries to set the timers again. */
static void timer_is_not_set(void) {
  usher_context *context = patient_context();
  usher_playback *playback;
  int before = get(&kept_alive);
  snprintf(now, sizeof now, "timerfd_settime fails for some time");
  alarm((unsigned)(25 * patience()));
  fail_nth(FAIL_TIMERFD_SETTIME, 1, 1);
  playback = play(new_player(context), new_delegate(context, license_url()));
  played++;
  answers(USHER_OK, usher_playback_wait_session(playback, 5000, NULL), "a session starts without the timer");
  tell(reaches(&kept_alive, before + 3, 8000), "heartbeats keep it alive without the timer");
  tell(fail_stop() > 0, "the timer was not set");
  usher_context_free(context);
}

/* The system refuses to let epoll watch the socket of a request: the request fails at once, and the library retries
   it. */
static void socket_is_not_watched(void) {
  int nth, good = 1, count = 0;
  for (nth = 1; nth <= 4; nth++) {
    usher_context *context = patient_context();
    usher_playback *playback;
    double started;
    int32_t status;
    int before = get(&kept_alive);
    snprintf(now, sizeof now, "call %d of epoll_ctl for a request fails", nth);
    alarm((unsigned)(25 * patience()));
    fail_nth(FAIL_EPOLL_CTL, nth, 0);
    started = now_s();
    playback = play(new_player(context), new_delegate(context, license_url()));
    played++;
    status = usher_playback_wait_session(playback, 8000, NULL);
    if (status != USHER_OK && status != USHER_E_SYSTEM) good = tell(0, "%s: %s", now, usher_status_name(status));
    if (status == USHER_OK && !reaches(&kept_alive, before + 2, 8000)) good = tell(0, "%s: no heartbeats", now);
    if (now_s() - started > 8 * patience()) good = tell(0, "%s: %.1f s", now, now_s() - started);
    count += fail_stop();
    usher_playback_close(playback, USHER_CLOSE_DEFAULT);
    if (usher_playback_wait_closed(playback, 5000) != USHER_OK) good = tell(0, "%s: no close", now);
    usher_context_free(context);
  }
  tell(good && count > 0, "%d sockets were not watched; no request waits for its time-out", count);
}

/* A server stops replying to heartbeats. When a request times out, the library looks for the socket of the request. It
 * asks the system for the port of each socket only once, not at each time-out. */
static void many_time_outs(void) {
  enum { count = 100, none_fails = 1 << 30 };
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  usher_delegate *delegate;
  usher_playback *playbacks[count];
  int index, asked, connected;
  snprintf(now, sizeof now, "%d heartbeats time out", count);
  alarm((unsigned)(25 * patience()));
  options.requests_per_origin_max = count;
  options.connections_max = count + 10;
  if (usher_context_new(&options, &context) != USHER_OK) tell(0, "%s: usher_context_new", now);
  delegate = new_delegate(context, license_url());
  for (index = 0; index < count; index++) playbacks[index] = play(new_player(context), delegate);
  for (index = 0; index < count; index++)
    if (usher_playback_wait_session(playbacks[index], 8000, NULL) != USHER_OK) tell(0, "%s: session %d", now, index);
  fault("{\"route\":\"heartbeat\",\"fault\":{\"kind\":\"stall\"},\"times\":1000}");
  fail_nth(FAIL_GETSOCKNAME, none_fails, 0);
  for (index = 0; index < 5000 && fail_seen(FAIL_CONNECT) < count; index++) sleep_ms(2);
  asked = fail_seen(FAIL_GETSOCKNAME);
  /* Each retry of a heartbeat opens a new connection, so the number of connections is the number of retries. */
  connected = fail_seen(FAIL_CONNECT);
  fail_stop();
  fault("{\"clear\":true}");
  release_held();
  tell(connected >= count && asked < 10 * connected, "%s: %d calls of getsockname for %d new connections", now, asked,
      connected);
  answers(USHER_OK, usher_context_free(context), "usher_context_free");
}

/* If libcurl has no memory to split a URL, the call returns USHER_E_SYSTEM, not the status for a bad URL. */
static void urls_without_memory(void) {
  usher_context *context = opened();
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  int nth, made = 1, good = 1, count = 0;
  snprintf(now, sizeof now, "libcurl gets no memory for a URL");
  options.license_url = "https://license.example:8443/one?two=3";
  for (nth = 1; nth <= 60 && made; nth++) {
    usher_delegate *delegate = NULL;
    int32_t status;
    fail_nth(FAIL_MEMORY, nth, 0);
    status = usher_default_delegate_new(context, &options, &delegate);
    count += made = fail_stop();
    if (status != USHER_OK && status != USHER_E_SYSTEM)
      good = tell(0, "allocation %d fails: %s", nth, usher_status_name(status));
    if (made && status == USHER_OK) good = tell(0, "allocation %d fails: the URL is accepted", nth);
  }
  tell(good && count >= 3, "libcurl gets no memory for a URL, %d times: USHER_E_SYSTEM", count);
  usher_context_free(context);
}

/* A call that the library makes once in a process fails: usher_context_new() returns USHER_E_SYSTEM. If the
   initialisation of libcurl failed, the next usher_context_new() tries it again. If the library got no key for
   thread-local data, every later usher_context_new() fails too. The test runs in a child process. */
static void made_once(int kind, int32_t next) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    usher_context *context = NULL;
    alarm((unsigned)(25 * patience()));
    fail_nth(kind, 1, 0);
    if (usher_context_new(NULL, &context) != USHER_E_SYSTEM || context || fail_stop() != 1) _exit(4);
    if (usher_context_new(NULL, &context) != next) _exit(5);
    _exit(!context || usher_context_free(context) == USHER_OK ? 0 : 6);
  }
  waitpid(child, &status, 0);
  tell(WIFEXITED(status) && WEXITSTATUS(status) == 0,
      "%s fails: USHER_E_SYSTEM, and the next usher_context_new: %s (%d)", kind_names[kind], usher_status_name(next),
      status);
}

int main(void) {
  const char *wanted = getenv("USHER_TEST_ROUNDS");
  if (!fail_nth) return tell(0, "fail_calls.c is preloaded") - 1;
  signal(SIGALRM, on_hang);
  /* This test is the first: a child of fork() can use the library only if its parent has made no context yet. */
  without_own_memory();
  made_once(FAIL_CURL_GLOBAL_INIT, USHER_OK);
  made_once(FAIL_PTHREAD_KEY_CREATE, USHER_E_SYSTEM);
  each_call(wanted ? atoi(wanted) : 3);
  no_more_threads();
  threads_come_back();
  context_ends_without_threads();
  callbacks_block();
  free_in_callback();
  timer_is_not_set();
  socket_is_not_watched();
  urls_without_memory();
  many_time_outs();
  nothing_held("failing calls");
  return failed != 0;
}
