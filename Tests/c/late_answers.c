/*
 * late_answers.c - a host closes a playback that has an open question, and answers this question: either after the
 * close on the same thread, or at the same time on another thread. If the answer is first, the request completes with
 * it; if the close is first, the library refuses the answer. The last callbacks of a playback are PLAYBACK_CLOSED and
 * then the `destroy` of the playback's options. This `destroy` frees the memory that every callback reads, so
 * AddressSanitizer reports a later callback.
 *
 * After these rounds the host makes more contexts, one for every 20 playbacks. It ends each of them with
 * usher_context_close or usher_context_free while a question is open.
 *
 * USHER_TEST_ROUNDS sets the number of playbacks (default: 5,000).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <sched.h>

#include "support.h"

enum kind {
  CONTENT_ID,
  CERTIFICATE,
  HEADERS,
  LICENSE_URL,
  LICENSE_BODY,
  TOKEN,
  SPC,
  SERVER,
  PAYLOAD,
  CUSTOMER_LICENSE,
  CUSTOMER_HEARTBEAT,
  CUSTOMER_TEARDOWN, /* the library asks this question when the host closes the playback for the first time */
  TOKEN_URL,
  BUILTIN, /* a content identifier hook that answers with the built-in behaviour */
  LICENSE, /* this kind needs a reply of the licence server, so it gets the fewest rounds */
  KINDS
};
static const char *const kind_names[] = {"content identifier", "certificate", "headers", "licence URL", "licence body",
    "token", "SPC", "server", "payload", "customer's licence", "customer's heartbeat", "customer's teardown",
    "token URL", "built-in", "licence"};
/* @return whether the library accepts an answer after the close. The library accepts answers to the questions of
   customer SSM, because the host may have set up a session that the library must tear down. */
static int stays_open(enum kind kind) {
  return kind == CUSTOMER_LICENSE || kind == CUSTOMER_HEARTBEAT || kind == CUSTOMER_TEARDOWN;
}
/* @return whether the library asks this question only during a session. If so, the host first gets a licence. */
static int needs_session(enum kind kind) {
  return kind == PAYLOAD || kind == CUSTOMER_HEARTBEAT || kind == CUSTOMER_TEARDOWN;
}

enum closer { CLOSE, STOP, ZAP, FREE, FREE_PLAYER, CLOSERS };
static const char *const closer_names[] = {
    "usher_playback_close", "usher_player_stop", "usher_player_play", "usher_playback_free", "usher_player_free"};

/* The host's record of one playback; the `destroy` of the playback's options frees it. */
struct screen {
  int closed;
  enum kind kind;
};
/* The host's record of one request; the `destroy` of the request frees it. */
struct job {
  struct screen *screen;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static usher_completion asked;
static int asks, completed, last_status, screens_gone, jobs_gone, told_closed;
static int after_closed; /* the number of callbacks of a playback after its PLAYBACK_CLOSED */
/* in_race: 0: the other thread waits; 1: it answers now; 2: it ends. answered: how many questions the other thread has
   answered. */
static int in_race, answered;
static int32_t race_status;

static void bump(int *counter) {
  pthread_mutex_lock(&lock);
  ++*counter;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
/* Waits until the counter is at least `wanted`. An idle callback thread looks for work every 5 s, even if the library
   does not wake it. The time limit of this wait is shorter than 5 s, so that the test fails if the library forgets to
   wake the thread. @return 1 if the counter has reached `wanted` in time, otherwise 0. */
static int arrives(int *counter, int wanted) {
  struct timespec end;
  int good, late = 0;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 4 * patience();
  pthread_mutex_lock(&lock);
  while (*counter < wanted && !late) late = pthread_cond_timedwait(&changed, &lock, &end) != 0;
  good = *counter >= wanted;
  pthread_mutex_unlock(&lock);
  return good;
}
static void look(const struct screen *screen) {
  if (screen->closed) bump(&after_closed);
}

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

static void ask_of(uint64_t tag, usher_completion completion) {
  look((const struct screen *)(uintptr_t)tag);
  pthread_mutex_lock(&lock);
  asked = completion;
  asks++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
static void on_hook(const usher_hook_call *call, void *user_data) {
  (void)user_data, ask_of(call->tag, call->completion);
}
static void on_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)user_data, ask_of(tag, completion);
}
static void on_spc(const usher_spc_request *request, void *user_data) {
  (void)user_data, ask_of(request->tag, request->completion);
}
static void on_server(const usher_server_request *request, void *user_data) {
  (void)user_data, ask_of(request->tag, request->completion);
}
static void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  (void)playback, (void)key_system;
  look((const struct screen *)user_data);
  ask_of(tag, completion);
}
static usher_customer_license a_session(int32_t renew_type) {
  usher_customer_license license = USHER_CUSTOMER_LICENSE_INIT;
  license.license = (const uint8_t *)"licence";
  license.license_size = 7;
  license.heartbeat_s = 1;
  license.renew_type = renew_type;
  return license;
}
static void on_customer_license(const usher_customer_request *request, void *user_data) {
  const struct screen *screen = (const struct screen *)(uintptr_t)request->tag;
  usher_customer_license license = a_session(screen->kind == PAYLOAD ? USHER_RENEW_ENFORCED : USHER_RENEW_HEARTBEAT);
  (void)user_data;
  if (screen->kind == CUSTOMER_LICENSE) ask_of(request->tag, request->completion);
  else usher_complete_license(request->completion, &license);
}
static void on_customer_heartbeat(
    usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)user_data, ask_of(tag, completion);
}
static void on_customer_teardown(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)user_data;
  if (((const struct screen *)(uintptr_t)tag)->kind == CUSTOMER_TEARDOWN) ask_of(tag, completion);
  else usher_complete_call(completion, USHER_OK);
}
static void on_completed(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  look(((struct job *)user_data)->screen);
  pthread_mutex_lock(&lock);
  last_status = response->error.status;
  pthread_mutex_unlock(&lock);
  bump(&completed);
}
static void on_job_gone(void *user_data) {
  look(((struct job *)user_data)->screen);
  free(user_data);
  bump(&jobs_gone);
}
static void on_screen_gone(void *user_data) {
  free(user_data);
  bump(&screens_gone);
}
static void on_event(const usher_event *event, void *user_data) {
  struct screen *screen = (struct screen *)(uintptr_t)event->tag;
  (void)user_data;
  if (!screen) return; /* this event belongs to a clear item, to which the host has zapped */
  look(screen);
  if (event->type != USHER_EVENT_PLAYBACK_CLOSED) return;
  screen->closed = 1;
  bump(&told_closed);
}

/* ---- playbacks --------------------------------------------------------------------------------------------------- */

struct stage {
  usher_context *context;
  usher_delegate *delegates[KINDS], *clear;
  usher_player *player;
};

static usher_delegate *hooked(usher_context *context, enum kind kind) {
  usher_default_options options = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  usher_delegate *delegate = NULL;
  options.license_url = enforced_url();
  if (kind == CONTENT_ID || kind == BUILTIN) hooks.content_id = on_hook;
  if (kind == CERTIFICATE) hooks.certificate = on_hook;
  if (kind == HEADERS) hooks.http_headers = on_hook;
  if (kind == LICENSE_URL) hooks.license_url = on_hook;
  if (kind == LICENSE_BODY) hooks.license_body = on_hook;
  if (kind == LICENSE) hooks.license = on_hook;
  usher_common_delegate_new(context, &options, &hooks, NULL, NULL, &delegate);
  return delegate;
}
static struct stage stage(void) {
  struct stage s;
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_customer_options customer = USHER_CUSTOMER_OPTIONS_INIT;
  usher_loader_options loader = USHER_LOADER_OPTIONS_INIT;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_loader *handle = NULL;
  int kind;
  memset(&s, 0, sizeof s);
  options.clock = USHER_CLOCK_MANUAL;
  usher_context_new(&options, &s.context);
  usher_context_add_observer(s.context, on_event, NULL, NULL, NULL);
  for (kind = 0; kind < KINDS; kind++) s.delegates[kind] = hooked(s.context, (enum kind)kind);
  ssp.license_url = license_url();
  ssp.ssm_url = ssm_url();
  usher_ssp_delegate_new(s.context, &ssp, &s.delegates[TOKEN]);
  usher_delegate_set_token_callback(s.delegates[TOKEN], on_token, NULL, NULL);
  customer.license = on_customer_license;
  customer.heartbeat = on_customer_heartbeat;
  customer.teardown = on_customer_teardown;
  usher_customer_delegate_new(s.context, &customer, &s.delegates[PAYLOAD]);
  s.delegates[CUSTOMER_LICENSE] = s.delegates[CUSTOMER_HEARTBEAT] = s.delegates[PAYLOAD];
  s.delegates[CUSTOMER_TEARDOWN] = s.delegates[PAYLOAD];
  s.clear = s.delegates[CONTENT_ID];
  loader.license_url = license_url();
  loader.spc = on_spc;
  loader.certificate = (const uint8_t *)"certificate";
  loader.certificate_size = 11;
  usher_context_add_loader(s.context, &loader, &handle);
  loader.scheme = "key";
  loader.server = on_server;
  usher_context_add_loader(s.context, &loader, &handle);
  loader.scheme = "token";
  loader.server = NULL;
  loader.route = USHER_ROUTE_ENTITLEMENT;
  /* No server listens at this address, so the request that follows the answer fails. */
  loader.entitlement_url = "http://127.0.0.1:1/";
  loader.token_url = on_server;
  usher_context_add_loader(s.context, &loader, &handle);
  s.player = new_player(s.context);
  return s;
}
static usher_playback *start(struct stage *s, enum kind kind, struct screen *screen) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *playback = NULL;
  screen->kind = kind;
  item.delegate = s->delegates[kind];
  item.content_token = kind == TOKEN ? NULL : free_token();
  item.tag = (uint64_t)(uintptr_t)screen;
  item.payload = on_payload;
  item.user_data = screen;
  item.destroy = on_screen_gone;
  usher_player_play(s->player, &item, &playback);
  return playback;
}
/* Makes the request for which the library asks a question of this kind. @return the status of the call. */
static int32_t request(usher_playback *playback, enum kind kind, struct screen *screen) {
  usher_license_request license = a_request(USHER_KEY_SYSTEM_FAIRPLAY);
  struct job *job = (struct job *)calloc(1, sizeof *job);
  const uint8_t *url = (const uint8_t *)"skd://one";
  job->screen = screen;
  switch (kind) {
  case TOKEN_URL:
    return usher_playback_load_resource(
        playback, (const uint8_t *)"token://one", 11, 0, on_completed, job, on_job_gone, NULL);
  case BUILTIN:
  case CONTENT_ID: return usher_playback_request_content_id(playback, url, 9, on_completed, job, on_job_gone);
  case CERTIFICATE: return usher_playback_request_certificate(playback, on_completed, job, on_job_gone);
  case SERVER: url = (const uint8_t *)"key://one"; /* falls through */
  case SPC: return usher_playback_load_resource(playback, url, 9, 0, on_completed, job, on_job_gone, NULL);
  default: return usher_playback_request_license(playback, &license, on_completed, job, on_job_gone);
  }
}
/* Asks for the result of the built-in behaviour, and then answers with this result. If the library refuses the first
   call because the playback has closed, the library must also refuse the second call. @return the status of the second
   call; USHER_E_STATE if the library refused only the first call. */
static int32_t answer_builtin(usher_completion id) {
  usher_response *response = NULL;
  const int32_t asked_first = usher_hook_builtin(id, &response);
  const int32_t status = usher_complete_builtin(id);
  usher_response_free(response);
  return asked_first == USHER_E_INVALID_COMPLETION && status == USHER_OK ? USHER_E_STATE : status;
}
/* Answers a question. For some kinds the answer is "no value", so that no request goes to a server. @return the status
   of the call. */
static int32_t answer(usher_completion id, enum kind kind) {
  switch (kind) {
  case CONTENT_ID:
  case CERTIFICATE: return usher_complete_hook(id, (const uint8_t *)"bytes", 5);
  case HEADERS: return usher_complete_headers(id, NULL);
  case LICENSE_URL:
  case LICENSE_BODY:
  case LICENSE: return usher_complete_hook(id, NULL, 0);
  case TOKEN: return usher_complete_token(id, NULL);
  case SPC:
  case PAYLOAD: return usher_complete_payload(id, NULL, 0);
  case SERVER: return usher_complete_server(id, NULL, NULL);
  case CUSTOMER_LICENSE: return usher_complete_license(id, NULL);
  case CUSTOMER_HEARTBEAT:
  case CUSTOMER_TEARDOWN: return usher_complete_call(id, USHER_OK);
  case TOKEN_URL: return usher_complete_entitlement(id, NULL);
  case BUILTIN: return answer_builtin(id);
  default: return USHER_E_INVALID_ARGUMENT;
  }
}
/* For a question that needs a session: waits for the licence, and then causes the question. @return success. */
static int cause_question(struct stage *s, enum kind kind, usher_playback *playback, int completed_before) {
  if (!needs_session(kind)) return 1;
  if (!arrives(&completed, completed_before + 1)) return 0;
  if (kind == CUSTOMER_TEARDOWN) usher_playback_close(playback, USHER_CLOSE_TEARDOWN);
  else usher_context_advance(s->context, 1000, 0);
  return 1;
}
static usher_completion open_question(void) {
  usher_completion id;
  pthread_mutex_lock(&lock);
  id = asked;
  pthread_mutex_unlock(&lock);
  return id;
}
static void *answer_in_race(void *kind) {
  int state;
  while ((state = get(&in_race)) != 2) {
    if (state == 0) {
      sched_yield();
      continue;
    }
    race_status = answer(open_question(), (enum kind)get((int *)kind));
    __atomic_store_n(&in_race, 0, __ATOMIC_SEQ_CST);
    bump(&answered);
  }
  return NULL;
}
static int32_t close_by(struct stage *s, usher_playback *playback, enum closer closer) {
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_playback *next = NULL;
  int32_t status;
  switch (closer) {
  case CLOSE: return usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  case STOP: return usher_player_stop(s->player, USHER_CLOSE_DEFAULT);
  case ZAP:
    item.delegate = s->clear;
    item.clear = 1;
    status = usher_player_play(s->player, &item, &next);
    return status == USHER_OK ? usher_playback_free(next) : status;
  case FREE: return usher_playback_free(playback);
  default:
    status = usher_player_free(s->player);
    s->player = new_player(s->context);
    return status;
  }
}

static int wrong;
static void complain(enum kind kind, enum closer closer, const char *what, int32_t status) {
  if (wrong++ < 10) tell(0, "%s, %s: %s (%s)", kind_names[kind], closer_names[closer], what, usher_status_name(status));
}

static void rounds(int count) {
  struct stage s = stage();
  pthread_t other;
  int round, jobs = 0, kind_now = 0, races = 0, won = 0, refused = 0;
  pthread_create(&other, NULL, answer_in_race, &kind_now);
  for (round = 0; round < count && wrong < 10; round++) {
    enum kind kind = (enum kind)(round % 100 == 99 ? LICENSE : round % LICENSE);
    enum closer closer = (enum closer)(round / KINDS % CLOSERS);
    int races_now = round / (KINDS * CLOSERS) % 2, spins = round % 89 * 29;
    int asks_before = asks, completed_before = completed, answered_before = answered;
    struct screen *screen = (struct screen *)calloc(1, sizeof *screen);
    usher_playback *playback = start(&s, kind, screen);
    int32_t status, accepted;
    if (kind != TOKEN) {
      jobs++;
      if ((status = request(playback, kind, screen)) != USHER_OK) complain(kind, closer, "the request", status);
    }
    if (!cause_question(&s, kind, playback, completed_before)) complain(kind, closer, "the licence does not come", 0);
    if (!arrives(&asks, asks_before + 1)) complain(kind, closer, "the library asks nothing", 0);
    if (races_now) {
      __atomic_store_n(&kind_now, (int)kind, __ATOMIC_SEQ_CST);
      __atomic_store_n(&in_race, 1, __ATOMIC_SEQ_CST);
      while (spins-- > 0) __atomic_signal_fence(__ATOMIC_SEQ_CST);
      /* In every fourth race this thread waits until the other thread has answered. */
      for (spins = 0; round % 4 == 0 && spins < 100000 && get(&in_race) == 1; spins++) sched_yield();
    }
    if ((status = close_by(&s, playback, closer)) != USHER_OK) complain(kind, closer, "the close", status);
    if (races_now) {
      if (!arrives(&answered, answered_before + 1)) complain(kind, closer, "the answering thread hangs", 0);
      accepted = race_status;
    } else {
      /* If the host does not answer within the time limit of a teardown, the library closes the playback. */
      if (kind == CUSTOMER_TEARDOWN && round % 2 == 0) {
        usher_context_advance(s.context, 3000, 0);
        if (!arrives(&told_closed, round + 1))
          complain(kind, closer, "the playback does not close after the time limit", 0);
      }
      accepted = answer(open_question(), kind);
      if (!stays_open(kind) && accepted != USHER_E_INVALID_COMPLETION)
        complain(kind, closer, "the library accepts an answer after the close", accepted);
      if (closer == CLOSE || closer == ZAP) {
        status = usher_playback_request_content_id(playback, (const uint8_t *)"skd://one", 9, on_completed, NULL, NULL);
        if (status != USHER_E_CLOSED) complain(kind, closer, "the library accepts a request after the close", status);
      }
    }
    usher_playback_free(playback);
    if (!arrives(&screens_gone, round + 1)) complain(kind, closer, "the playback's destroy does not run", 0);
    if (!arrives(&jobs_gone, jobs)) complain(kind, closer, "a request's destroy does not run", 0);
    if ((status = answer(open_question(), kind)) != USHER_E_INVALID_COMPLETION)
      complain(kind, closer, "the library accepts an answer after PLAYBACK_CLOSED", status);
    /* Do not check an accepted answer to TOKEN_URL: the library then sends a request, which the close may end. */
    if (!stays_open(kind) && kind != TOKEN && kind != PAYLOAD && !(kind == TOKEN_URL && accepted == USHER_OK) &&
        (accepted == USHER_OK) == (last_status == USHER_E_CLOSED))
      complain(kind, closer, accepted == USHER_OK ? "an accepted answer is not used" : "a refused answer is used",
          last_status);
    if (!stays_open(kind) && races_now) races++, won += accepted == USHER_OK, refused += accepted != USHER_OK;
  }
  __atomic_store_n(&in_race, 2, __ATOMIC_SEQ_CST);
  pthread_join(other, NULL);
  tell(wrong == 0, "%d playbacks were closed while a question was open", round);
  tell(told_closed == screens_gone, "PLAYBACK_CLOSED came for each (%d of %d)", told_closed, screens_gone);
  tell(after_closed == 0, "no callback came after PLAYBACK_CLOSED (%d)", after_closed);
  tell(won > 0 && refused > 0, "of %d races the answer won %d and the close %d", races, won, refused);
  usher_context_free(s.context);
}

/* Opens a question of this kind. */
static void open_a_question(struct stage *s, enum kind kind, struct screen *screen, const char *closer) {
  int asks_before = asks, completed_before = completed;
  usher_playback *playback = start(s, kind, screen);
  int32_t status = kind == TOKEN ? USHER_OK : request(playback, kind, screen);
  if (status != USHER_OK) tell(0, "%s, %s: the request (%s)", kind_names[kind], closer, usher_status_name(status));
  wrong += !cause_question(s, kind, playback, completed_before);
  if (!arrives(&asks, asks_before + 1)) wrong += !tell(0, "%s, %s: no question", kind_names[kind], closer);
}

/* A host ends a context while a question is open. With customer SSM the library waits for the answer before it ends the
   context, so the other thread always answers during the close. */
static void context_rounds(int count) {
  pthread_t other;
  int round, kind_now = 0, races = 0, won = 0, closed_before = told_closed, screens_before = screens_gone;
  int jobs_before = jobs_gone, jobs = 0;
  wrong = 0;
  __atomic_store_n(&in_race, 0, __ATOMIC_SEQ_CST);
  pthread_create(&other, NULL, answer_in_race, &kind_now);
  for (round = 0; round < count && wrong < 10; round++) {
    enum kind kind = (enum kind)(round % KINDS);
    int is_free = round / KINDS % 2, races_now = stays_open(kind) || round / (KINDS * 2) % 2;
    int spins = round % 89 * 29, answered_before = answered;
    const char *closer = is_free ? "usher_context_free" : "usher_context_close";
    struct stage s = stage();
    struct screen *screen = (struct screen *)calloc(1, sizeof *screen);
    int32_t status, accepted;
    open_a_question(&s, kind, screen, closer);
    jobs += kind != TOKEN;
    if (races_now) {
      __atomic_store_n(&kind_now, (int)kind, __ATOMIC_SEQ_CST);
      __atomic_store_n(&in_race, 1, __ATOMIC_SEQ_CST);
      while (spins-- > 0) __atomic_signal_fence(__ATOMIC_SEQ_CST);
      for (spins = 0; round % 4 == 0 && spins < 100000 && get(&in_race) == 1; spins++) sched_yield();
    }
    status = is_free ? usher_context_free(s.context) : usher_context_close(s.context, 0, NULL);
    if (status != USHER_OK) wrong += !tell(0, "%s, %s: %s", kind_names[kind], closer, usher_status_name(status));
    if (races_now) {
      if (!arrives(&answered, answered_before + 1)) wrong += !tell(0, "%s: the answering thread hangs", closer);
      accepted = race_status;
      races++;
      won += accepted == USHER_OK;
    } else {
      accepted = answer(open_question(), kind);
      if (accepted != USHER_E_INVALID_COMPLETION)
        wrong += !tell(0, "%s, %s: an answer after it: %s", kind_names[kind], closer, usher_status_name(accepted));
    }
    if (!is_free) usher_context_free(s.context);
    if (screens_gone - screens_before != round + 1 || jobs_gone - jobs_before != jobs)
      wrong += !tell(0, "%s, %s: a destroy does not run", kind_names[kind], closer);
  }
  __atomic_store_n(&in_race, 2, __ATOMIC_SEQ_CST);
  pthread_join(other, NULL);
  tell(wrong == 0, "%d contexts ended while a question was open", round);
  tell(told_closed - closed_before == round, "PLAYBACK_CLOSED came for each (%d)", told_closed - closed_before);
  tell(after_closed == 0, "no callback came after PLAYBACK_CLOSED (%d)", after_closed);
  tell(won > 0 && won < races, "of %d races the answer won %d", races, won);
}

int main(void) {
  const char *wanted = getenv("USHER_TEST_ROUNDS");
  int count = wanted ? atoi(wanted) : 5000;
  rounds(count);
  context_rounds(count / 20);
  nothing_held("late answers");
  return failed != 0;
}
