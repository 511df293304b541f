/*
 * forked.c - fork() while the library's threads run: in the child every function returns USHER_E_FORKED at once, and
 * the child can end in any way. The parent's session continues. One test calls fork() inside a callback.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int beats, child_failed, destroyed, callback_child;
static usher_context *context;
static usher_delegate *delegate;
static usher_player *player;
static usher_playback *playback;
static usher_response *response;

static void on_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type == USHER_EVENT_KEPT_ALIVE) add(&beats, 1);
}
static void on_license(usher_playback *p, const usher_response_info *r, uint64_t tag, void *user_data) {
  (void)p, (void)r, (void)tag, (void)user_data;
}
static void on_token(usher_completion completion, usher_playback *p, uint64_t tag, void *user_data) {
  (void)p, (void)tag, (void)user_data;
  usher_complete_token(completion, "x");
}

static void is_forked(int32_t found, const char *what) {
  if (found == USHER_E_FORKED) return;
  child_failed++;
  printf("not ok - in the child usher_%s answers %s\n", what, usher_status_name(found));
}

/* Runs in the child. Passes options whose `struct_size` is too small; the memory after these options is not readable.
   */
static void short_options(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = (char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t *size = (size_t *)(void *)(pages + page - sizeof *size);
  void *options = size, *none = NULL;
  if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) {
    child_failed++;
    return;
  }
  *size = sizeof *size;
  is_forked(usher_context_new((usher_context_options *)options, (usher_context **)&none), "context_new, short options");
  is_forked(usher_player_play(player, (usher_playback_options *)options, (usher_playback **)&none),
      "player_play, short options");
  is_forked(usher_customer_delegate_new(context, (usher_customer_options *)options, (usher_delegate **)&none),
      "customer_delegate_new, short options");
  is_forked(usher_context_add_loader(context, (usher_loader_options *)options, (usher_loader **)&none),
      "context_add_loader, short options");
}

/* Runs in the child. @return the child's exit code. */
static int every_call(void) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  usher_pending pending = USHER_PENDING_INIT;
  usher_metrics metrics = USHER_METRICS_INIT;
  usher_context *c = NULL;
  usher_delegate *d = NULL;
  usher_player *p = NULL;
  usher_playback *b = NULL;
  usher_response *r = NULL;
  uint32_t number;
  uint64_t id;
  int32_t state;
  int fd;
  alarm((unsigned)(10 * patience())); /* if the child hangs, SIGALRM ends it */
  short_options();
  ssp.license_url = license_url();
  item.delegate = delegate;
  item.content_token = "x";
  item.user_data = &destroyed;
  item.destroy = count_destroy;
  options.log_user_data = &destroyed;
  options.log_destroy = count_destroy;
  is_forked(usher_context_new(&options, &c), "context_new");
  is_forked(usher_context_new(NULL, &c), "context_new");
  is_forked(usher_context_close(context, 100, &number), "context_close");
  is_forked(usher_context_pump(context, &number), "context_pump");
  is_forked(usher_context_pump_fd(context, &fd), "context_pump_fd");
  is_forked(usher_context_add_observer(context, on_event, &destroyed, count_destroy, &id), "context_add_observer");
  is_forked(usher_context_remove_observer(context, 1), "context_remove_observer");
  is_forked(usher_context_set_delegate(context, delegate), "context_set_delegate");
  is_forked(usher_ssp_delegate_new(context, &ssp, &d), "ssp_delegate_new");
  is_forked(
      usher_delegate_set_token_callback(delegate, on_token, &destroyed, count_destroy), "delegate_set_token_callback");
  is_forked(usher_complete_token(1, "x"), "complete_token");
  is_forked(usher_player_new(context, &p), "player_new");
  is_forked(usher_player_play(player, &item, &b), "player_play");
  is_forked(usher_player_stop(player, 0), "player_stop");
  is_forked(usher_complete_payload(1, NULL, 0), "complete_payload");
  is_forked(usher_playback_close(playback, 0), "playback_close");
  is_forked(usher_playback_wait_session(playback, 100, NULL), "playback_wait_session");
  is_forked(usher_playback_wait_closed(playback, 100), "playback_wait_closed");
  is_forked(usher_playback_session_state(playback, &state), "playback_session_state");
  is_forked(usher_playback_request_license(playback, &request, on_license, &destroyed, count_destroy),
      "playback_request_license");
  is_forked(usher_playback_get_license(playback, &request, &r), "playback_get_license");
  is_forked(usher_playback_get_certificate(playback, 100, &r), "playback_get_certificate");
  is_forked(usher_playback_request_certificate(playback, on_license, &destroyed, count_destroy),
      "playback_request_certificate");
  is_forked(usher_response_get(response, &info), "response_get");
  is_forked(usher_context_advance(context, 1, 0), "context_advance");
  is_forked(usher_context_jump(context, 1), "context_jump");
  is_forked(usher_context_settle(context, 0, 0, 100), "context_settle");
  is_forked(usher_context_pending(context, &pending), "context_pending");
  is_forked(usher_context_metrics(context, &metrics), "context_metrics");
  is_forked(usher_response_free(response), "response_free");
  is_forked(usher_playback_free(playback), "playback_free");
  is_forked(usher_player_free(player), "player_free");
  is_forked(usher_delegate_free(delegate), "delegate_free");
  is_forked(usher_context_free(context), "context_free");
  if (c || d || p || b || r) child_failed++, printf("not ok - in the child an out is not NULL\n");
  if (!usher_version()[0] || !usher_status_name(USHER_E_FORKED)[0] || !usher_get_api(USHER_VERSION_MAJOR))
    child_failed++;
  if (destroyed != 6)
    printf("not ok - in the child the user_data of refused calls was destroyed %d times, not 6\n", destroyed);
  fflush(stdout);
  return child_failed != 0;
}

static void ended(pid_t child, int wanted, const char *what) {
  int status = 0;
  pid_t found = waitpid(child, &status, 0);
  if (found != child) tell(0, "%s: waitpid", what);
  else if (WIFSIGNALED(status)) tell(0, "%s: ended by signal %d", what, WTERMSIG(status));
  else tell(WEXITSTATUS(status) == wanted, "%s: exit code %d", what, WEXITSTATUS(status));
}

static void on_fork_event(const usher_event *event, void *user_data) {
  (void)user_data;
  if (event->type != USHER_EVENT_KEPT_ALIVE || get(&callback_child)) return;
  {
    pid_t child = fork();
    if (child == 0) _exit(every_call());
    __atomic_store_n(&callback_child, (int)child, __ATOMIC_SEQ_CST);
  }
}

static void story(int32_t callbacks) {
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  pid_t child;
  int before;
  uint64_t id = 0;
  callback_child = 0;
  context = new_context(callbacks);
  delegate = new_delegate(context, license_url());
  player = new_player(context);
  usher_context_add_observer(context, on_event, NULL, NULL, NULL);
  playback = play(player, delegate);
  answers(USHER_OK, usher_playback_get_license(playback, &request, &response), "a licence");
  fflush(stdout);
  child = fork();
  if (child == 0) _exit(every_call());
  ended(child, 0, "a child that calls every function, then _exit");
  child = fork();
  if (child == 0) {
    alarm((unsigned)(10 * patience()));
    exit(7); /* runs atexit handlers and destructors */
  }
  ended(child, 7, "a child that calls exit()");
  child = fork();
  if (child == 0) {
    alarm((unsigned)(10 * patience()));
    child = fork();
    if (child == 0) _exit(every_call());
    ended(child, 0, "a grandchild");
    _exit(failed);
  }
  ended(child, 0, "a child that forks again");
  child = fork();
  if (child == 0) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(9);
  }
  ended(child, 0, "a child that execs");
  before = get(&beats);
  tell(comes(context, callbacks, &beats, before + 2, 8000), "the parent's session is kept alive after the forks (%s)",
      mode_name(callbacks));
  answers(USHER_OK, usher_context_add_observer(context, on_fork_event, NULL, NULL, &id), "an observer that forks");
  if (tell(comes(context, callbacks, &callback_child, 1, 8000), "a fork in a callback"))
    ended((pid_t)get(&callback_child), 0, "a child of a callback's thread");
  before = get(&beats);
  tell(comes(context, callbacks, &beats, before + 1, 8000), "the parent's session is still kept alive");
  answers(USHER_OK, usher_response_free(response), "the parent's response is freed");
  answers(USHER_OK, usher_context_free(context), "the parent's context is freed");
  nothing_held(mode_name(callbacks));
}

static void *plays(void *unused) {
  context = new_context(USHER_CALLBACKS_THREADED);
  playback = play(new_player(context), new_delegate(context, license_url()));
  if (usher_playback_wait_session(playback, 0, NULL) != USHER_OK) failed++;
  if (usher_context_free(context) != USHER_OK) failed++;
  return unused;
}

/*
 * If the parent forks before it makes its first context, the library works in the child. In the checked build Swift's
 * run-time library has a bug: in the child it still has the thread number that it stored in the parent. So the child's
 * first thread may wait for ever when two threads ask for the metadata of a type at the same time. Therefore in this
 * build the child plays on a second thread.
 */
static void forked_before(void) {
  pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    alarm((unsigned)(20 * patience()));
    if (dlsym(RTLD_DEFAULT, "swift_retain"))
      failed += pthread_create(&thread, NULL, plays, NULL) || pthread_join(thread, NULL);
    else plays(NULL);
    _exit(failed);
  }
  ended(child, 0, "a child forked before the first context plays");
}

int main(void) {
  forked_before();
  story(USHER_CALLBACKS_THREADED);
  story(USHER_CALLBACKS_PUMPED);
  return failed != 0;
}
